/* A compiled program against the reference: value, gradient, memory. */
#ifndef PROGRAM_CHECK_H
#define PROGRAM_CHECK_H

#include "program/program.h"
#include "program_reference.h"

/* Compiles `output` of the nodes and checks its value and its derivatives in some directions at the
 * point where the nodes are. `what` is printed with a failure. */
void program_check(scl_context *ctx, program_nodes *l, int output, const char *what);

/* The same for its second derivatives: those of its first derivative in a direction. Nothing is
 * checked if they are not available. */
void program_check_again(scl_context *ctx, program_nodes *l, int output, const char *what);

/* Its sparse Hessian by the chosen parameters (NULL: all) against the dense one, and the gradient
 * of its product with a direction from both sides. Returns how many elements the lower triangle
 * has; 0 if there is none. */
size_t program_check_sparse(scl_context *ctx, program_nodes *l, int output,
                            const unsigned char *chosen, const char *what);

/* A program of the nodes, or NULL after a failed check. */
scl_program *program_compile(scl_context *ctx, const program_nodes *l, int output,
                             const char *what);

/* The program for several vectors, around that point, against the program for one. */
void program_check_vectors(scl_context *ctx, program_nodes *l, int output, size_t vectors,
                           const char *what);
/* Maps a program of these nodes. */
scl_status program_map(scl_program *p, const program_nodes *l, int output, size_t vectors);
/* Whether columns of numbers are equal up to the order of sums; prints the first that is not. */
bool program_same_columns(const double *got, const double *want, size_t rows, size_t vectors,
                          const char *what);

/* Ends the nodes after program_check(). */
void program_check_and_end(scl_context *ctx, program_nodes *l, int output, const char *what);

/* An argument made from x for which operation `op` is defined and well scaled, as operand k. */
int program_argument(program_nodes *l, scl_op op, int k, int x);
/* Whether small changes of the operands cannot reach a place where the operation is not smooth. */
bool program_is_smooth(const program_nodes *l, int node);

#endif
