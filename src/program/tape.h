/* A program as a list of values, each made of earlier ones: the operations of a traced function,
 * and their derivatives. As values are added, equal values become one value, numbers and sums of
 * known numbers are folded, and operations without effect are omitted.
 *
 * Operands are given by their index in the list. The first failure (memory, operands that do not
 * fit) is kept: later calls return index 0, and `status` of the tape has the failure. Rules can
 * therefore be written as formulas. */
#ifndef SCL_PROGRAM_TAPE_H
#define SCL_PROGRAM_TAPE_H

#include "engine/plan/scan.h"
#include "ops/table.h"

enum { SCL_VALUE_ATTRIBUTES = 6 };

typedef struct {
  uint8_t kind;  /* scl_value_kind */
  uint8_t op;    /* of an APPLY: scl_op; of a REDUCE: scl_reduction */
  uint8_t zeros; /* program/facts.h */
  int operands;  /* how many; they stand in the tape's list, */
  int first;     /* from here on */
  size_t at[SCL_VALUE_ATTRIBUTES];
  double number; /* of a NUMBER */
  size_t length;
} scl_value;

/* Data: borrowed from the caller while the program is made, or owned by the tape. */
typedef struct {
  const double *numbers;
  size_t length;
  double *owned;
  unsigned tested, assumed; /* properties (program/facts.h); those on which the program relies */
} scl_tape_data;

struct scl_scan_body;

typedef struct {
  scl_value *value;
  int values, room;
  int *operand;
  int operands_used, operands_room;
  scl_tape_data *data;
  int data_used, data_room;
  struct scl_scan_body **body; /* of SCAN values */
  int bodies, bodies_room;
  bool borrows_bodies; /* from another tape */
  int *bucket;         /* of the search for equal values: 1 + the last value, 0 for none */
  int *next;           /* the value before in its bucket */
  int buckets;
  bool of_step;  /* parameters are the inputs of a scan's step: any numbers */
  bool recorded; /* values are what was recorded, for program/roll.h: nothing is left out */
  scl_status status;
} scl_tape;

/* The step of a SCAN: a program of its own, whose parameters are the numbers of all input ports in
 * their order, and whose result has those of STATE, SUM and OUT. A parameter value lies within one
 * port. */
typedef struct scl_scan_body {
  scl_scan_shape shape;
  scl_tape tape;
  int result;
  int guard;       /* 1 + a value of one number: a step where it is 0 is idle; 0: none */
  int of;          /* the body that this was made from (program/scan.c), or -1 */
  uint64_t active; /* and for which ports; 0: to have its states as outs */
} scl_scan_body;

void scl_tape_begin(scl_tape *t);
void scl_tape_end(scl_tape *t); /* releases what it holds */

static inline int scl_tape_operand(const scl_tape *t, int value, int k) {
  return t->operand[t->value[value].first + k];
}
static inline size_t scl_tape_length(const scl_tape *t, int value) {
  return t->value[value].length;
}
/* The shape of a part, a transpose or a broadcast, and which element of the operand (i, j) is. */
void scl_value_view_shape(const scl_value *v, size_t *m, size_t *n);
size_t scl_value_view_element(const scl_value *v, size_t i, size_t j);

static inline bool scl_tape_is_number(const scl_tape *t, int value, double number) {
  return t->value[value].kind == SCL_VALUE_NUMBER && t->value[value].number == number;
}

/* Borrowed numbers; the index of the data, for DATA, GATHER and SCATTER. */
int scl_tape_add_data(scl_tape *t, const double *numbers, size_t length);
/* All data of another tape, borrowed. */
void scl_tape_borrow_data(scl_tape *t, const scl_tape *from);
/* Numbers made by malloc(), which the tape owns from now on; NULL is SCL_E_MEMORY. */
int scl_tape_own_data(scl_tape *t, double *numbers, size_t length);

/* Adds a step, which the tape takes over, also on failure; returns its index. A failure of its tape
 * is a failure of this one. */
int scl_tape_add_body(scl_tape *t, scl_scan_body *body);

/* Releases the last step. */
void scl_tape_drop_body(scl_tape *t);

/* Adds any value and checks its operands and attributes: for values that come from outside
 * (program/input.c). SCL_E_ARGUMENT naming "f". */
int scl_tape_add(scl_tape *t, scl_value_kind kind, unsigned op, int operands, const int *operand,
                 const size_t *at, double number);

/* ---- for the files of src/program ------------------------------------------------------------ */
/* Keeps the first failure. Returns true. */
bool scl_tape_fail(scl_tape *t, scl_status status);
/* The most operands of the first `count` values. */
int scl_tape_most_operands(const scl_tape *t, int count);
/* Room for `more` entries in an array that has `used` (scl_grow()); false on failure, which is
 * noted. */
bool scl_tape_grow(scl_tape *t, void *array, int *room, int used, int more, size_t size);
uint64_t scl_tape_mix(uint64_t hash, uint64_t bits);
uint64_t scl_tape_mix_number(uint64_t hash, double number);
/* Of kind, operation, attributes and length; without number and operands. */
uint64_t scl_tape_hash(const scl_value *v);
/* Whether these are equal, and the counts of operands. */
bool scl_tape_alike(const scl_value *v, const scl_value *w);
/* Adds a value unchecked; its operands are copied. */
int scl_tape_add_value(scl_tape *t, scl_value v, const int *operand);

/* Whether all elements of a value are known numbers, the same in every run; and element k. */
bool scl_tape_is_known(const scl_tape *t, int value);
double scl_tape_known(const scl_tape *t, int value, size_t k);

/* ---- the same, by kind ---------------------------------------------------------------------- */
int scl_tape_number(scl_tape *t, double number);
int scl_tape_data_value(scl_tape *t, int data);
int scl_tape_unary(scl_tape *t, scl_op op, int a);
int scl_tape_binary(scl_tape *t, scl_op op, int a, int b);
int scl_tape_apply(scl_tape *t, scl_op op, int count, const int *operand);
int scl_tape_ifelse(scl_tape *t, int test, int yes, int no);
int scl_tape_broadcast(scl_tape *t, int x, size_t m, size_t n, bool by_row);
int scl_tape_transpose(scl_tape *t, int x, size_t m, size_t n);
int scl_tape_part(scl_tape *t, int x, size_t from, size_t length); /* of a vector */
int scl_tape_block_part(scl_tape *t, int x, const size_t *at);     /* attributes of PART */
int scl_tape_reduce(scl_tape *t, scl_reduction op, int x, size_t m, size_t n, scl_margin margin);
int scl_tape_gather(scl_tape *t, int x, int data);
int scl_tape_scatter(scl_tape *t, int x, int data, size_t length);
/* From, or to, each of `columns` columns. */
int scl_tape_gather_columns(scl_tape *t, int x, int data, size_t columns);
int scl_tape_scatter_columns(scl_tape *t, int x, int data, size_t length, size_t columns);
int scl_tape_concat(scl_tape *t, int count, const int *x);
int scl_tape_cumsum(scl_tape *t, int x, size_t m, size_t n, bool reverse);
int scl_tape_matmul(scl_tape *t, int a, int b, size_t m, size_t k, size_t n, bool ta, bool tb);
int scl_tape_call(scl_tape *t, scl_value_kind kind, int a, int b, const size_t *at);
int scl_tape_scan(scl_tape *t, const size_t *at, const int *operand);
/* x with `length` elements: x itself, or its one element repeated. */
int scl_tape_fill(scl_tape *t, int x, size_t length);

/* ---- the gradient (program/reverse.c) ------------------------------------------------------- */
/* Adds d(output)/d(parameters) to the tape: a vector of `parameters` numbers; those behind them are
 * constants. With `again` only values that can be differentiated once more are added. */
int scl_tape_gradient(scl_tape *t, int output, size_t parameters, bool again);
/* The same, where only derivatives by the chosen ones among them are needed: others may be 0. */
int scl_tape_gradient_of(scl_tape *t, int output, size_t parameters, const unsigned char *chosen,
                         bool again);
/* g d(value)/d(operand k) of an APPLY, before it is summed for an operand of length 1; a negative
 * index if that is zero everywhere (program/reverse_elementwise.c). */
int scl_tape_slope(scl_tape *t, int value, int k, int g);
/* Shares of a derivative g, which stay 0 where g is 0 (program/reverse_products.c): g d; the same
 * for a d that has poles; g / d; and x as a factor of g in a product of matrices. */
int scl_tape_times(scl_tape *t, int g, int d);
int scl_tape_times_poles(scl_tape *t, int g, int d);
int scl_tape_over(scl_tape *t, int g, int d);
int scl_tape_factor(scl_tape *t, int g, int x);
/* Derivatives of shares by g. */
int scl_tape_times_again(scl_tape *t, int again, int g, int d);
int scl_tape_over_again(scl_tape *t, int again, int g, int d);
/* g where the test is true, or where it is false; else 0. */
int scl_tape_where(scl_tape *t, int test, bool truth, int g);

#endif
