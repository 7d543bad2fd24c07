/* Derivatives while they are accumulated: sums of shares, one share for each use of a value.
 * Between program/reverse.c, program/reverse_shares.c and
 * program/reverse_sparse.c. */
#ifndef SCL_PROGRAM_REVERSE_H
#define SCL_PROGRAM_REVERSE_H

#include "program/tape.h"

/* A share of some elements: x, the share, and which elements it belongs to. */
typedef struct {
  int share;
  int data; /* indices, or NONE: those from `from` on */
  size_t from, length;
  int before; /* the value's share before this one, or NONE */
} scl_partial;

typedef struct {
  scl_tape *t;
  int values;   /* those that were there at the start */
  int *whole;   /* the sum of shares so far, or NONE */
  int *last;    /* the last of the partial shares, or NONE */
  bool *active; /* depends on parameters */
  size_t parameters;
  const unsigned char *chosen; /* which of these; NULL: all */
  bool again;
  scl_partial *partials;
  int used, room;
} scl_reverse;

/* Adds a share of all elements of a value; a negative one is ignored. */
void scl_share_whole(scl_reverse *r, int value, int share);
/* Adds a share of some of its elements; `before` is set here. */
void scl_share_some(scl_reverse *r, int value, scl_partial p);
/* The sum of a value's shares of some elements, of which there is at least one, as long as the
 * value. */
int scl_share_sum(scl_reverse *r, int value);

/* The rules of sparse matrices (program/reverse_sparse.c). */
void scl_reverse_sparse_log_det(scl_reverse *r, int value, int g);
void scl_reverse_sparse_solve(scl_reverse *r, int value, int g);
void scl_reverse_sparse_root(scl_reverse *r, int value, int g);
/* Of their adjoints: an error that says up to which order these can be differentiated. */
void scl_refuse_sparse(scl_reverse *r, int value, int g);
/* The derivatives by A, symmetric, from the lower triangle of those, g, by its factor. */
int scl_chol_adjoint_by_solves(scl_tape *t, int l, int g, size_t n);

#endif
