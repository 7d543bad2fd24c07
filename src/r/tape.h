/* Traced values and the tape of R/trace.R, for the entries that record on it. */
#ifndef R_TAPE_H
#define R_TAPE_H

#include <stdbool.h>

#include "r/api.h"

/* A traced value, or a number. */
typedef struct {
  int id, n;   /* id 0: assembled from `from` and `index` */
  bool number; /* then: */
  double value;
  SEXP dim, from, index;
} r_traced;

typedef struct {
  SEXP env, nodes, size;
  int count;
} r_tape;

/* The value of a variable of an environment; NULL if there is none. */
SEXP r_tape_get(SEXP env, const char *name);
void r_tape_set(SEXP env, const char *name, SEXP value);
/* Whether x is one number without attributes. */
bool r_tape_is_number(SEXP x);
/* Whether `env` is a tape to which `more` nodes can be added here. */
bool r_tape_read(SEXP env, int more, r_tape *t);
/* Whether x is a traced value of this tape without names. */
bool r_tape_traced(SEXP x, const r_tape *t, r_traced *o);
/* Whether x is one with a node and without dimensions, or a number. */
bool r_tape_operand(SEXP x, const r_tape *t, r_traced *o);
/* Adds a node and returns its number. */
int r_tape_add(r_tape *t, const char *kind, const char *op, SEXP args, SEXP at, double number,
               int n);
/* A part of a node: rows of it as a matrix, first row, first column, rows, columns. */
int r_tape_part(r_tape *t, int id, const double *at);
/* The node of an assembled value (r/trace_move.c); 0 if R code has to make it. */
int r_tape_join(r_tape *t, const r_traced *x);
/* The node of an operand, added for a number. */
int r_tape_node(r_tape *t, const r_traced *o);
/* A traced value with a node, or with node 0, of n elements. Protect it. */
SEXP r_tape_value(const r_tape *t, int id, int n);

#endif
