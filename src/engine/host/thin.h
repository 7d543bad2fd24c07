/* Products of a vector and a matrix that stays in the cache: between the files of engine/host. */
#ifndef SCL_ENGINE_HOST_THIN_H
#define SCL_ENGINE_HOST_THIN_H

#include "engine/host/host.h"

/* to += X weight, for n rows of X; column l is at x + l * ld. */
void scl_host_add_columns(size_t n, size_t columns, const double *x, size_t ld,
                          const double *weight, double *to);
/* to += X' r, for n rows of X. */
void scl_host_add_dots(size_t n, size_t columns, const double *x, size_t ld, const double *r,
                       double *to);

/* Whether a product of this matrix and a vector is quicker without the BLAS. */
bool scl_host_is_thin(scl_block a);
/* y = op(A) x; x and y have no gaps. */
void scl_host_thin_product(scl_trans trans, scl_block a, const double *x, double *y);

#endif
