/* Sparse second derivatives: the Hessian by some of the parameters, of any pattern, as a value of
 * the tape. It can be differentiated once more as any other value. */
#ifndef SCL_PROGRAM_SPARSE_H
#define SCL_PROGRAM_SPARSE_H

#include "program/tape.h"

/* The lower triangle of a symmetric matrix of order n by columns, rows in order; each diagonal
 * element is there. */
typedef struct {
  size_t n, count;
  size_t *start; /* n + 1 */
  uint32_t *row;
} scl_sparse_pattern;

#define SCL_SPARSE_BYTES 128

void scl_sparse_pattern_end(scl_sparse_pattern *p);

/* Adds the lower triangle of the Hessian of `output` by the chosen parameters, numbered in their
 * order: *hessian is a value of pattern->count numbers. Elements outside the pattern are 0 for all
 * parameters, and with the recorded data. *slope is the gradient by the chosen parameters, as long
 * as all parameters. *hessian < 0, with no pattern, if an operation has no
 * rule. SCL_E_MEMORY, also if intermediate matrices would have more than `most` elements, each of
 * which takes about SCL_SPARSE_BYTES. */
scl_status scl_tape_sparse_hessian(scl_tape *t, int output, size_t parameters,
                                   const unsigned char *chosen, size_t most,
                                   scl_sparse_pattern *pattern, int *hessian, int *slope);

#endif
