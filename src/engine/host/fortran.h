/* BLAS and LAPACK of Fortran as the host engine needs them, without references and hidden lengths.
 * Included by one file of a library, which first declares the routines and defines F77_CALL(name)
 * and FCONE, a hidden length of 1, as R's headers do. */
#ifndef SCL_ENGINE_HOST_FORTRAN_H
#define SCL_ENGINE_HOST_FORTRAN_H

#include "engine/host/blas.h"

static void gemm(char trans_a, char trans_b, int m, int n, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc) {
  F77_CALL(dgemm)
  (&trans_a, &trans_b, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc FCONE FCONE);
}

static void gemv(char trans, int m, int n, double alpha, const double *a, int lda, const double *x,
                 int incx, double beta, double *y, int incy) {
  F77_CALL(dgemv)(&trans, &m, &n, &alpha, a, &lda, x, &incx, &beta, y, &incy FCONE);
}

static void syrk(char uplo, char trans, int n, int k, double alpha, const double *a, int lda,
                 double beta, double *c, int ldc) {
  F77_CALL(dsyrk)(&uplo, &trans, &n, &k, &alpha, a, &lda, &beta, c, &ldc FCONE FCONE);
}

static void trmm(char side, char uplo, char trans, int m, int n, double alpha, const double *a,
                 int lda, double *b, int ldb) {
  F77_CALL(dtrmm)
  (&side, &uplo, &trans, "N", &m, &n, &alpha, a, &lda, b, &ldb FCONE FCONE FCONE FCONE);
}

static void trsm(char side, char uplo, char trans, int m, int n, double alpha, const double *a,
                 int lda, double *b, int ldb) {
  F77_CALL(dtrsm)
  (&side, &uplo, &trans, "N", &m, &n, &alpha, a, &lda, b, &ldb FCONE FCONE FCONE FCONE);
}

static int potrf(char uplo, int n, double *a, int lda) {
  int info = 0;
  F77_CALL(dpotrf)(&uplo, &n, a, &lda, &info FCONE);
  return info;
}

static void lauum(char uplo, int n, double *a, int lda) {
  int info = 0;
  F77_CALL(dlauum)(&uplo, &n, a, &lda, &info FCONE);
}

static int trtri(char uplo, int n, double *a, int lda) {
  int info = 0;
  F77_CALL(dtrtri)(&uplo, "N", &n, a, &lda, &info FCONE FCONE);
  return info;
}

static int getrf(int m, int n, double *a, int lda, int *pivot) {
  int info = 0;
  F77_CALL(dgetrf)(&m, &n, a, &lda, pivot, &info);
  return info;
}

static void getrs(char trans, int n, int k, const double *a, int lda, const int *pivot, double *b,
                  int ldb) {
  int info = 0;
  F77_CALL(dgetrs)(&trans, &n, &k, a, &lda, pivot, b, &ldb, &info FCONE);
}

static int syev(char jobz, char uplo, int n, double *a, int lda, double *w, double *work,
                int lwork) {
  int info = 0;
  F77_CALL(dsyev)(&jobz, &uplo, &n, a, &lda, w, work, &lwork, &info FCONE FCONE);
  return info;
}

static const scl_host_blas fortran_blas = {.gemm = gemm,
                                           .gemv = gemv,
                                           .syrk = syrk,
                                           .trmm = trmm,
                                           .trsm = trsm,
                                           .potrf = potrf,
                                           .lauum = lauum,
                                           .trtri = trtri,
                                           .getrf = getrf,
                                           .getrs = getrs,
                                           .syev = syev};

#endif
