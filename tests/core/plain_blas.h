/* BLAS and LAPACK as engine/host/blas.h has them, in plain loops: for machines that the tests are
 * compiled for and that have none here (.ci/compilers.sh). Slow. Included by blas.c. */
#ifndef PLAIN_BLAS_H
#define PLAIN_BLAS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/host/blas.h"

#define AT(a, ld, i, j) (a)[(size_t)(i) + (size_t)(j) * (size_t)(ld)]

static void scale(double *c, int m, int n, int ldc, double beta) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) AT(c, ldc, i, j) = beta == 0 ? 0 : beta * AT(c, ldc, i, j);
}

static void gemm(char trans_a, char trans_b, int m, int n, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc) {
  scale(c, m, n, ldc, beta);
  if (alpha == 0) return;
  for (int j = 0; j < n; j++) {
    for (int l = 0; l < k; l++) {
      const double x = alpha * (trans_b == 'N' ? AT(b, ldb, l, j) : AT(b, ldb, j, l));
      for (int i = 0; i < m; i++)
        AT(c, ldc, i, j) += x * (trans_a == 'N' ? AT(a, lda, i, l) : AT(a, lda, l, i));
    }
  }
}

static void gemv(char trans, int m, int n, double alpha, const double *a, int lda, const double *x,
                 int incx, double beta, double *y, int incy) {
  const int rows = trans == 'N' ? m : n, inner = trans == 'N' ? n : m;
  for (int i = 0; i < rows; i++) {
    double sum = 0;
    for (int k = 0; k < inner; k++)
      sum += (trans == 'N' ? AT(a, lda, i, k) : AT(a, lda, k, i)) * AT(x, incx, 0, k);
    AT(y, incy, 0, i) = alpha * sum + (beta == 0 ? 0 : beta * AT(y, incy, 0, i));
  }
}

static void syrk(char uplo, char trans, int n, int k, double alpha, const double *a, int lda,
                 double beta, double *c, int ldc) {
  for (int j = 0; j < n; j++) {
    for (int i = uplo == 'L' ? j : 0; i < (uplo == 'L' ? n : j + 1); i++) {
      double sum = 0;
      for (int l = 0; l < k; l++)
        sum += trans == 'N' ? AT(a, lda, i, l) * AT(a, lda, j, l)
                            : AT(a, lda, l, i) * AT(a, lda, l, j);
      AT(c, ldc, i, j) = alpha * sum + (beta == 0 ? 0 : beta * AT(c, ldc, i, j));
    }
  }
}

/* ---- triangular matrices ----------------------------------------------------------------------
 */
/* Element (i, j) of op(A). */
#define OP(a, lda, trans, i, j) ((trans) == 'N' ? AT(a, lda, i, j) : AT(a, lda, j, i))

/* B := alpha op(A) B, or B op(A), by columns in an order in which nothing is overwritten that is
 * needed; with `solve`, the inverse of op(A). */
static void triangular(bool solve, char side, char uplo, char trans, int m, int n, double alpha,
                       const double *a, int lda, double *b, int ldb) {
  const bool left = side == 'L', upper = (uplo == 'U') == (trans == 'N');
  const int order = left ? m : n, others = left ? n : m;
  const bool up = upper == left ? !solve : solve; /* of the index of rows, or columns */
  for (int o = 0; o < others; o++) {
    for (int s = 0; s < order; s++) {
      const int i = up ? s : order - 1 - s;
      double *x = left ? &AT(b, ldb, i, o) : &AT(b, ldb, o, i);
      double sum = 0;
      for (int k = 0; k < order; k++) {
        if (k == i || (left == upper ? k < i : k > i)) continue;
        sum += (left ? OP(a, lda, trans, i, k) * AT(b, ldb, k, o)
                     : AT(b, ldb, o, k) * OP(a, lda, trans, k, i)) *
               (solve ? 1 : alpha);
      }
      const double d = AT(a, lda, i, i);
      *x = solve ? (alpha * *x - sum) / d : alpha * d * *x + sum;
    }
  }
}

static void trmm(char side, char uplo, char trans, int m, int n, double alpha, const double *a,
                 int lda, double *b, int ldb) {
  triangular(false, side, uplo, trans, m, n, alpha, a, lda, b, ldb);
}

static void trsm(char side, char uplo, char trans, int m, int n, double alpha, const double *a,
                 int lda, double *b, int ldb) {
  triangular(true, side, uplo, trans, m, n, alpha, a, lda, b, ldb);
}

/* Element (i, j) of the lower triangle, or of the transposed upper one. */
#define LOW(i, j) (*(uplo == 'L' ? &AT(a, lda, i, j) : &AT(a, lda, j, i)))

static int potrf(char uplo, int n, double *a, int lda) {
  for (int j = 0; j < n; j++) {
    for (int i = j; i < n; i++) {
      double sum = LOW(i, j);
      for (int k = 0; k < j; k++) sum -= LOW(i, k) * LOW(j, k);
      if (i == j && !(sum > 0)) return j + 1;
      LOW(i, j) = i == j ? sqrt(sum) : sum / LOW(j, j);
    }
  }
  return 0;
}

static void lauum(char uplo, int n, double *a, int lda) {
  for (int j = 0; j < n; j++) {
    for (int i = j; i < n; i++) {
      double sum = 0;
      for (int k = i; k < n; k++) sum += LOW(k, i) * LOW(k, j);
      LOW(i, j) = sum;
    }
  }
}

/* Each column of the inverse from those to its right, for 'U' from those to its left: X T is near
 * the identity, as LAPACK has it. */
static int trtri(char uplo, int n, double *a, int lda) {
  const bool lower = uplo == 'L';
  for (int j = 0; j < n; j++)
    if (AT(a, lda, j, j) == 0) return j + 1;
  for (int s = 0; s < n; s++) {
    const int j = lower ? n - 1 - s : s;
    AT(a, lda, j, j) = 1 / AT(a, lda, j, j);
    for (int r = 0; r < s; r++) {
      const int i = lower ? n - 1 - r : r;
      double sum = 0;
      for (int k = lower ? j + 1 : i; k <= (lower ? i : j - 1); k++)
        sum += AT(a, lda, i, k) * AT(a, lda, k, j);
      AT(a, lda, i, j) = -sum * AT(a, lda, j, j);
    }
  }
  return 0;
}

/* ---- general and symmetric matrices ------------------------------------------------------------
 */
static void swap_rows(double *a, int n, int lda, int i, int j) {
  for (int k = 0; k < n && i != j; k++) {
    const double x = AT(a, lda, i, k);
    AT(a, lda, i, k) = AT(a, lda, j, k);
    AT(a, lda, j, k) = x;
  }
}

static int getrf(int m, int n, double *a, int lda, int *pivot) {
  int info = 0;
  for (int j = 0; j < n && j < m; j++) {
    int best = j;
    for (int i = j + 1; i < m; i++)
      if (fabs(AT(a, lda, i, j)) > fabs(AT(a, lda, best, j))) best = i;
    pivot[j] = best + 1;
    swap_rows(a, n, lda, j, best);
    if (AT(a, lda, j, j) == 0) {
      if (info == 0) info = j + 1;
      continue;
    }
    for (int i = j + 1; i < m; i++) AT(a, lda, i, j) /= AT(a, lda, j, j);
    for (int k = j + 1; k < n; k++)
      for (int i = j + 1; i < m; i++) AT(a, lda, i, k) -= AT(a, lda, i, j) * AT(a, lda, j, k);
  }
  return info;
}

/* The solution with the unit lower factor. */
static void solve_unit(char trans, int n, int k, const double *a, int lda, double *b, int ldb) {
  for (int c = 0; c < k; c++) {
    for (int s = 0; s < n; s++) {
      const int i = trans == 'N' ? s : n - 1 - s;
      for (int l = 0; l < n; l++)
        if (trans == 'N' ? l < i : l > i)
          AT(b, ldb, i, c) -= OP(a, lda, trans, i, l) * AT(b, ldb, l, c);
    }
  }
}

static void getrs(char trans, int n, int k, const double *a, int lda, const int *pivot, double *b,
                  int ldb) {
  for (int i = 0; trans == 'N' && i < n; i++) swap_rows(b, k, ldb, i, pivot[i] - 1);
  if (trans == 'N') solve_unit(trans, n, k, a, lda, b, ldb);
  trsm('L', 'U', trans, n, k, 1, a, lda, b, ldb);
  if (trans != 'N') solve_unit(trans, n, k, a, lda, b, ldb);
  for (int i = n - 1; trans != 'N' && i >= 0; i--) swap_rows(b, k, ldb, i, pivot[i] - 1);
}

/* One rotation of Jacobi's method, which makes a[p, q] zero. */
static void rotate(double *a, double *v, int n, int p, int q) {
  const double h = (AT(a, n, q, q) - AT(a, n, p, p)) / (2 * AT(a, n, p, q));
  const double t = (h < 0 ? -1 : 1) / (fabs(h) + sqrt(h * h + 1)), c = 1 / sqrt(t * t + 1);
  for (int side = 0; side < 3; side++) {
    for (int k = 0; k < n; k++) {
      double *x = side == 0 ? &AT(a, n, k, p) : side == 1 ? &AT(a, n, p, k) : &AT(v, n, k, p);
      double *y = side == 0 ? &AT(a, n, k, q) : side == 1 ? &AT(a, n, q, k) : &AT(v, n, k, q);
      const double before = *x;
      *x = c * before - t * c * *y;
      *y = t * c * before + c * *y;
    }
  }
}

static void sort_values(double *w, double *v, int n) {
  for (int i = 0; i < n; i++) {
    int least = i;
    for (int j = i + 1; j < n; j++)
      if (w[j] < w[least]) least = j;
    const double x = w[i];
    w[i] = w[least];
    w[least] = x;
    for (int k = 0; k < n && least != i; k++) {
      const double y = AT(v, n, k, i);
      AT(v, n, k, i) = AT(v, n, k, least);
      AT(v, n, k, least) = y;
    }
  }
}

static int syev(char jobz, char uplo, int n, double *a, int lda, double *w, double *work,
                int lwork) {
  const size_t column = (size_t)n * sizeof *a, numbers = (size_t)n * (size_t)n;
  double *const s = malloc((2 * numbers + 1) * sizeof *s), *const v = s + numbers;
  double size = 0, rest = 1;
  (void)work, (void)lwork;
  if (s == NULL) return 1;
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < n; i++) {
      AT(s, n, i, j) = i >= j ? LOW(i, j) : LOW(j, i);
      AT(v, n, i, j) = i == j;
      size += AT(s, n, i, j) * AT(s, n, i, j);
    }
  }
  for (int sweep = 0; sweep < 60 && rest > 1e-34 * size; sweep++) {
    rest = 0;
    for (int p = 0; p < n; p++) {
      for (int q = p + 1; q < n; q++) {
        rest += AT(s, n, p, q) * AT(s, n, p, q);
        if (AT(s, n, p, q) != 0) rotate(s, v, n, p, q);
      }
    }
  }
  for (int i = 0; i < n; i++) w[i] = AT(s, n, i, i);
  sort_values(w, v, n);
  for (int j = 0; j < n && jobz == 'V'; j++) memcpy(&AT(a, lda, 0, j), &AT(v, n, 0, j), column);
  free(s);
  return n > 0 && !(rest <= 1e-20 * size);
}

static const scl_host_blas plain_blas = {.gemm = gemm,
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
