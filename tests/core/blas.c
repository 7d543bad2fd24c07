/* Fortran BLAS and LAPACK behind the plain signatures of the host engine. */
#include "engine/host/blas.h"
#include "test.h"

/* Lengths of the character arguments follow the others, as gfortran's callers pass them. */
#define L1 , (size_t)1
#define L2 L1 L1
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

static void gemm(char ta, char tb, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc) {
  dgemm_(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc L2);
}

static void gemv(char trans, int m, int n, double alpha, const double *a, int lda, const double *x,
                 int incx, double beta, double *y, int incy) {
  dgemv_(&trans, &m, &n, &alpha, a, &lda, x, &incx, &beta, y, &incy L1);
}

static void syrk(char uplo, char trans, int n, int k, double alpha, const double *a, int lda,
                 double beta, double *c, int ldc) {
  dsyrk_(&uplo, &trans, &n, &k, &alpha, a, &lda, &beta, c, &ldc L2);
}

static void trmm(char side, char uplo, char trans, int m, int n, double alpha, const double *a,
                 int lda, double *b, int ldb) {
  dtrmm_(&side, &uplo, &trans, "N", &m, &n, &alpha, a, &lda, b, &ldb L2 L2);
}

static void trsm(char side, char uplo, char trans, int m, int n, double alpha, const double *a,
                 int lda, double *b, int ldb) {
  dtrsm_(&side, &uplo, &trans, "N", &m, &n, &alpha, a, &lda, b, &ldb L2 L2);
}

static int potrf(char uplo, int n, double *a, int lda) {
  int info = 0;
  dpotrf_(&uplo, &n, a, &lda, &info L1);
  return info;
}

static void lauum(char uplo, int n, double *a, int lda) {
  int info = 0;
  dlauum_(&uplo, &n, a, &lda, &info L1);
}

static int trtri(char uplo, int n, double *a, int lda) {
  int info = 0;
  dtrtri_(&uplo, "N", &n, a, &lda, &info L2);
  return info;
}

void test_set_blas(void) {
  scl_host_set_blas(&(scl_host_blas){.gemm = gemm,
                                     .gemv = gemv,
                                     .syrk = syrk,
                                     .trmm = trmm,
                                     .trsm = trsm,
                                     .potrf = potrf,
                                     .lauum = lauum,
                                     .trtri = trtri});
}
