/* Matrices for suites: made from C arrays, read back as they are stored. */
#ifndef MATRICES_H
#define MATRICES_H

#include "base/engine.h"
#include "test.h"

/* A matrix of the context with this content (canonical for the view by upload). Ends the run when
 * it cannot be made. */
scl_mat *mat_make(scl_context *ctx, const double *data, size_t m, size_t n, scl_view view);
/* The same with random content. */
scl_mat *mat_random(scl_context *ctx, size_t m, size_t n, scl_view view);
/* All stored elements, whatever the view promises. Free it. */
double *mat_stored(const scl_mat *a);

/* Symmetric positive definite, n x n, with eigenvalues from scale down to scale / condition. */
void mat_spd(double *a, size_t n, double condition, double scale);

/* Whether the stored elements are what the view promises, exactly. */
bool mat_is_canonical(const double *stored, size_t m, size_t n, scl_view view);
/* Largest |got - want| / max(1, |want|); infinity where only one is NaN or infinities differ. */
double mat_distance(const double *got, const double *want, size_t count);

/* Largest |a - b|; NaN where one is. */
double mat_largest_difference(const double *a, const double *b, size_t count);

/* Element (i, j) of the structured copy of x, which has m rows. */
double test_copied(scl_copy kind, const double *x, size_t m, size_t i, size_t j);

#endif
