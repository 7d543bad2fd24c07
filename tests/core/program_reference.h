/* The values of a program by plain loops over the nodes from which it was recorded; only the names
 * of the kinds are taken from src/program. The nodes are as R records them, not yet folded.
 */
#ifndef PROGRAM_REFERENCE_H
#define PROGRAM_REFERENCE_H

#include "program/tape.h"

typedef struct {
  scl_value_kind kind;
  unsigned op;
  int operands, *operand;
  size_t at[SCL_VALUE_ATTRIBUTES];
  double number;
  size_t length;
  double *value; /* at the point that was evaluated last */
} program_node;

typedef struct {
  program_node *node;
  int nodes, room;
  double **data;
  size_t *data_length;
  int data_count;
  size_t parameters;
  double *x;      /* where the nodes have their values; parameters */
  bool no_factor; /* a matrix had no Cholesky factor there */
} program_nodes;

void program_begin(program_nodes *l);
void program_end(program_nodes *l);

/* Adds a node with its value at the present point; returns its index. Operands must fit. */
int program_add(program_nodes *l, scl_value_kind kind, unsigned op, int operands,
                const int *operand, const size_t *at, double number);

/* The same, by kind. New parameters are drawn from (-1, 1). */
int node_parameter(program_nodes *l, size_t length);
int node_data(program_nodes *l, const double *x, size_t length);
int node_random_data(program_nodes *l, size_t length);
int node_number(program_nodes *l, double number);
int node_unary(program_nodes *l, scl_op op, int a);
int node_binary(program_nodes *l, scl_op op, int a, int b);
int node_ifelse(program_nodes *l, int test, int yes, int no);
int node_one(program_nodes *l, scl_value_kind kind, int x, const size_t *at);
/* Each operation that is recorded by the dimensions of its operands, of m x m matrices; `variant`:
 * its flags. */
int node_calls(program_nodes *l, size_t m, size_t n, int variant);
/* Eigenvalues that are apart, and the squares of eigenvectors, which have no sign. */
int node_eigen(program_nodes *l, size_t m, size_t n, int variant);
/* Of a sparse matrix of order m: its log determinant, or the solution of n columns. */
int node_sparse(program_nodes *l, size_t m, size_t n, int variant);
int node_reduce(program_nodes *l, scl_reduction op, int x, size_t m, size_t n, scl_margin margin);
int node_sum(program_nodes *l, int x);
int node_concat(program_nodes *l, int count, const int *x);
int node_matmul(program_nodes *l, int a, int b, size_t m, size_t k, size_t n, bool ta, bool tb);
int node_two(program_nodes *l, scl_value_kind kind, int a, int b, const size_t *at);
/* `count` random indices among `limit` elements, as data. */
int node_indices(program_nodes *l, size_t count, size_t limit);
#define AT(...) ((const size_t[SCL_VALUE_ATTRIBUTES]){__VA_ARGS__})

/* All values at x. */
void program_evaluate(program_nodes *l, const double *x);
/* The value of `output` at x; NaN where a matrix has no Cholesky factor. */
double program_value(program_nodes *l, int output, const double *x);
/* Its derivative in a direction, by central differences with steps h and h / 2. */
double program_slope(program_nodes *l, int output, const double *x, const double *direction,
                     double h);

/* Records the nodes on an empty tape; returns the index of `output`. */
int program_record(const program_nodes *l, scl_tape *t, int output);

#endif
