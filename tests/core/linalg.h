/* Shared by the suites of level-3 operations: matrices in a frame, and plain references. */
#ifndef LINALG_H
#define LINALG_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define TEST_EPS 0x1p-53 /* unit roundoff, as in LAPACK's test ratios */

/* An m x n block inside a larger matrix whose other elements (the frame) are NaN: a function that
 * reads them gets NaN in its result, and test_get() detects one that writes them. */
typedef struct {
  scl_mat *mat;
  scl_block block;
} test_framed;

/* Rows and columns of the frame before the block. With 2 the columns of a block on a device begin
 * at 16-byte boundaries, which some kernels need. Each suite runs with every frame from 1 to
 * test_frames(): 2 where there are such kernels, so that a device's other kernels are tested too.
 */
extern size_t test_frame;
size_t test_frames(const scl_context *ctx);

/* Whether few large orders are taken: in the quick tests on a device that is no GPU, whose kernels
 * need long for them. */
bool test_few(const scl_context *ctx);

/* `data` (leading dimension m) may be NULL: the block is then NaN too. Ends the run on failure. */
test_framed test_put(scl_context *ctx, size_t m, size_t n, const double *data);
/* Copies the block to `data`, checks the frame, releases the matrix. */
void test_get(test_framed a, double *data);
void test_drop(test_framed a);

/* Sets what lies strictly above (`upper`) or below the diagonal to `value`. */
void test_set_triangle(double *x, size_t m, size_t n, bool upper, double value);

/* 1-norm of an m x n matrix. */
double test_norm1(const double *x, size_t m, size_t n);

/* Columns to check of an n-column matrix whose residual is expensive: all up to 160, else the edges
 * of blocks and some in between. Next after j, or n. */
size_t test_next_column(size_t j, size_t n);

/* op(A)(i, j), A with leading dimension ld. */
static inline double test_at(const double *a, size_t ld, scl_trans trans, size_t i, size_t j) {
  return trans == SCL_TRANS ? a[j + i * ld] : a[i + j * ld];
}

#endif
