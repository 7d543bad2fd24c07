/* BLAS and LAPACK for the host engine: Fortran's, or plain loops (SCL_PLAIN_BLAS). */
#include <stdbool.h>
#include <stddef.h>

#ifdef SCL_PLAIN_BLAS
#include "plain_blas.h"
#define fortran_blas plain_blas
#else
/* Lengths of the character arguments follow the others, as gfortran's callers pass them. */
#define FCONE , (size_t)1
#define F77_CALL(name) name##_
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
            const double *, const int *, const double *, const int *, const double *, double *,
            const int *, size_t, size_t);
void dgemv_(const char *, const int *, const int *, const double *, const double *, const int *,
            const double *, const int *, const double *, double *, const int *, size_t);
void dsyrk_(const char *, const char *, const int *, const int *, const double *, const double *,
            const int *, const double *, double *, const int *, size_t, size_t);
void dtrmm_(const char *, const char *, const char *, const char *, const int *, const int *,
            const double *, const double *, const int *, double *, const int *, size_t, size_t,
            size_t, size_t);
void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *,
            const double *, const double *, const int *, double *, const int *, size_t, size_t,
            size_t, size_t);
void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);
void dlauum_(const char *, const int *, double *, const int *, int *, size_t);
void dtrtri_(const char *, const char *, const int *, double *, const int *, int *, size_t, size_t);
void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
void dgetrs_(const char *, const int *, const int *, const double *, const int *, const int *,
             double *, const int *, int *, size_t);
void dsyev_(const char *, const char *, const int *, double *, const int *, double *, double *,
            const int *, int *, size_t, size_t);

#include "engine/host/fortran.h"
#endif
#include "ops/sparse.h"
#include "test.h"

void test_set_blas(void) {
  scl_host_set_blas(&fortran_blas);
  scl_sparse_set_blas(&(scl_sparse_blas){gemm, syrk, trsm, potrf, lauum, trtri});
  scl_context_set_complete(scl_context_host());
}

int test_factor(double *a, size_t n) {
  return n > 0 ? fortran_blas.potrf('L', (int)n, a, (int)n) : 0;
}
