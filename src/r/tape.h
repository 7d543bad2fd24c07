/* Traced values and the tape of R/trace.R, for the entries that record on it. */
#ifndef R_TAPE_H
#define R_TAPE_H

#include <stdbool.h>

#include "r/api.h"

/* Variables of tapes and of traced values, whose symbols are looked up once. The first ones are the
 * columns of a tape. */
#define R_TAPE_FIELDS(F)                                                                           \
  F(kind)                                                                                          \
  F(op)                                                                                            \
  F(args)                                                                                          \
  F(at)                                                                                            \
  F(number)                                                                                        \
  F(size)                                                                                          \
  F(count)                                                                                         \
  F(recent)                                                                                        \
  F(live)                                                                                          \
  F(watched)                                                                                       \
  F(patterns)                                                                                      \
  F(has_missing)                                                                                   \
  F(parent)                                                                                        \
  F(add_data)                                                                                      \
  F(tape)                                                                                          \
  F(id)                                                                                            \
  F(n)                                                                                             \
  F(dim)                                                                                           \
  F(from)                                                                                          \
  F(index)                                                                                         \
  F(names)                                                                                         \
  F(times)                                                                                         \
  F(elements)

#define R_TAPE_FIELD(name) R_AT_##name,
typedef enum { R_TAPE_FIELDS(R_TAPE_FIELD) R_TAPE_FIELD_COUNT } r_field;
#undef R_TAPE_FIELD
enum { R_TAPE_COLUMNS = R_AT_count };

/* A traced value, or a number. */
typedef struct {
  int id, n;   /* id 0: assembled from `from` and `index` */
  bool number; /* then: */
  double value;
  SEXP dim, from, index;
  bool integer; /* of the number */
} r_traced;

/* The columns have room for more nodes than there are. */
typedef struct {
  SEXP env, column[R_TAPE_COLUMNS];
  int count, room;
} r_tape;

/* A node. kind, op: CHARSXP; args: integers; at: doubles. */
typedef struct {
  SEXP kind, op, args, at;
  double number;
} r_tape_entry;

void r_tape_init(void);
void r_tape_version_init(DllInfo *dll);
/* The value of a variable of an environment; NULL if there is none. */
SEXP r_tape_get(SEXP env, r_field field);
void r_tape_set(SEXP env, r_field field, SEXP value);
/* Whether x is one number without attributes. */
bool r_tape_is_number(SEXP x);
/* Whether x has numbers, and no attributes but dimensions that are not many. */
bool r_is_plain(SEXP x);
/* Whether `env` is a tape to which nodes can be added here. */
bool r_tape_read(SEXP env, r_tape *t);
/* Whether x is a traced value of this tape without names. */
bool r_tape_traced(SEXP x, const r_tape *t, r_traced *o);
/* Whether x is one with a node and without dimensions, or a number. */
bool r_tape_operand(SEXP x, const r_tape *t, r_traced *o);
/* A node; its length. */
r_tape_entry r_tape_at(const r_tape *t, int id);
int r_tape_size(const r_tape *t, int id);
/* Whether it is of this kind. */
bool r_tape_is(const r_tape *t, int id, const char *kind);
/* Adds a node and returns its number. */
int r_tape_add(r_tape *t, r_tape_entry node, int n);
/* An operation of elementwise.def. */
int r_tape_apply(r_tape *t, const char *op, int count, const int *arg, int n);
/* An operator (r/trace.c) on operands of which one is no number; 0 if R code has to do it. a, b:
 * data among them, which are not for r_tape_operand(). */
int r_tape_binary(r_tape *t, const char *sign, const r_traced *x, const r_traced *y, SEXP a,
                  SEXP b);
/* The place, from 0, of x[i] or x[i, j], which needs the length or the dimensions of x; negative
 * for no such element. */
int r_tape_place(const r_traced *x, int count, const double *at);
/* The node of the element at a place. */
int r_tape_element(r_tape *t, const r_traced *x, int place);
/* Removes the nodes after the first `count`, which no value may have. */
void r_tape_cut(r_tape *t, int count);
/* The sum of a node's elements. */
int r_tape_sum(r_tape *t, int id);
/* A part of a node: rows of it as a matrix, first row, first column, rows, columns. */
int r_tape_part(r_tape *t, int id, const double *at);
/* The node of elements of a node, whose places count from 0, as take() has it; 0 if R code has to
 * find out. */
int r_tape_elements(r_tape *t, int id, const int *at, int n);
/* n numbers of data, by their place among the tape's. */
int r_tape_data(r_tape *t, int at, int n);
/* The concatenation of nodes. */
int r_tape_concat(r_tape *t, SEXP args, int n);
/* The node of an assembled value (r/trace_move.c); 0 if R code has to make it. */
int r_tape_join(r_tape *t, const r_traced *x);
/* The node of a number: an earlier one, or a new one. */
int r_tape_number(r_tape *t, double x);
/* A vector of integers with one element replaced (r/trace_version.c); the place counts from 0.
 * Protect it. */
SEXP r_tape_version(SEXP x, int place, int element);
/* The node of an operand, added for a number. */
int r_tape_node(r_tape *t, const r_traced *o);
/* A traced value with a node, or with node 0, of n elements. Protect it. */
SEXP r_tape_value(const r_tape *t, int id, int n);

#endif
