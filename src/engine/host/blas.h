/* BLAS and LAPACK for the host engine, as function pointers: those of R, or those of the tests. */
#ifndef SCL_ENGINE_HOST_BLAS_H
#define SCL_ENGINE_HOST_BLAS_H

#include <stddef.h>

#include "base/status.h"

/* BLAS and LAPACK with their usual meaning and argument order, arguments by value: column-major,
 * letters as in Fortran, no diagonal is implicitly unit. LAPACK functions return `info`. */
typedef struct {
  void (*gemm)(char trans_a, char trans_b, int m, int n, int k, double alpha, const double *a,
               int lda, const double *b, int ldb, double beta, double *c, int ldc);
  void (*gemv)(char trans, int m, int n, double alpha, const double *a, int lda, const double *x,
               int incx, double beta, double *y, int incy);
  void (*syrk)(char uplo, char trans, int n, int k, double alpha, const double *a, int lda,
               double beta, double *c, int ldc);
  void (*trmm)(char side, char uplo, char trans, int m, int n, double alpha, const double *a,
               int lda, double *b, int ldb);
  void (*trsm)(char side, char uplo, char trans, int m, int n, double alpha, const double *a,
               int lda, double *b, int ldb);
  int (*potrf)(char uplo, int n, double *a, int lda);
  void (*lauum)(char uplo, int n, double *a, int lda);
  int (*trtri)(char uplo, int n, double *a, int lda);
  int (*getrf)(int m, int n, double *a, int lda, int *pivot);
  void (*getrs)(char trans, int n, int k, const double *a, int lda, const int *pivot, double *b,
                int ldb);
  int (*syev)(char jobz, char uplo, int n, double *a, int lda, double *w, double *work, int lwork);
} scl_host_blas;

/* Set once, before the first operation on the host; copied. */
void scl_host_set_blas(const scl_host_blas *blas);

/* out = X' diag(w) X, p x p, for x, n x p without gaps, without a weighted copy of all of x; w: n
 * numbers of at least 0. SCL_E_MEMORY; the status of scl_poll(). */
scl_status scl_host_weighted_gram(const double *x, size_t n, size_t p, const double *w,
                                  double *out);

/* rest = y - x beta (n, not stored if NULL) and slope = (x, rest)' rest (p + 1 numbers, the last
 * one the sum of squares), for x, n x p and column-major, in one pass, on the threads of the host;
 * the bits do not depend on their number. If y is NULL, rest = x beta, and there is no slope.
 * SCL_E_MEMORY, SCL_E_INTERRUPT. */
scl_status scl_host_rest(const double *x, size_t n, size_t p, const double *y, const double *beta,
                         double *rest, double *slope);

#endif
