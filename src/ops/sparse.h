/* Sparse symmetric positive definite matrices: Cholesky factor, solutions, log determinant, and the
 * elements of the inverse that the matrix itself has. The pattern is analysed once. */
#ifndef SCL_OPS_SPARSE_H
#define SCL_OPS_SPARSE_H

#include <stddef.h>

#include "base/status.h"

typedef struct scl_sparse_factor scl_sparse_factor;

/* BLAS and LAPACK for the larger dense parts, as engine/host/blas.h has them; copied. Without them
 * plain loops do the work. */
typedef struct {
  void (*gemm)(char trans_a, char trans_b, int m, int n, int k, double alpha, const double *a,
               int lda, const double *b, int ldb, double beta, double *c, int ldc);
  void (*syrk)(char uplo, char trans, int n, int k, double alpha, const double *a, int lda,
               double beta, double *c, int ldc);
  void (*trsm)(char side, char uplo, char trans, int m, int n, double alpha, const double *a,
               int lda, double *b, int ldb);
  int (*potrf)(char uplo, int n, double *a, int lda);
  void (*lauum)(char uplo, int n, double *a, int lda);
  int (*trtri)(char uplo, int n, double *a, int lda);
} scl_sparse_blas;
void scl_sparse_set_blas(const scl_sparse_blas *blas);

/* The matrix is given by the columns of its lower triangle: those of column j are row[start[j]],
 * ..., in order, the diagonal first. order: which column is eliminated first, second, ...; NULL: an
 * order that keeps the factor small (ops/sparse_order.c). SCL_E_MEMORY. */
scl_status scl_sparse_analyse(size_t n, const size_t *start, const uint32_t *row,
                              const uint32_t *order, scl_sparse_factor **out);
void scl_sparse_factor_release(scl_sparse_factor *f); /* accepts NULL */

size_t scl_sparse_factor_order(const scl_sparse_factor *f); /* rows */
size_t scl_sparse_factor_count(const scl_sparse_factor *f); /* numbers of the matrix given */
double scl_sparse_factor_size(const scl_sparse_factor *f);  /* numbers of the factor */

/* The factor of the matrix x, in the order of `row`, with `shift` added to its diagonal.
 * SCL_E_NOT_PD with the 1-based column at which it was found. */
scl_status scl_sparse_factorize(scl_sparse_factor *f, const double *x, double shift);

/* These need a factor: SCL_E_ARGUMENT if the last factorization failed. */
/* k columns of b are replaced by the solution. */
scl_status scl_sparse_solve(scl_sparse_factor *f, double *b, size_t k);
/* With the matrix P' L L' P, P a permutation: L^-1 P x, P' L^-T x, or L' P x; `to` is not x. room:
 * n numbers, for SCL_SPARSE_BACKWARD only. May run in several threads. */
typedef enum { SCL_SPARSE_FORWARD, SCL_SPARSE_BACKWARD, SCL_SPARSE_TIMES } scl_sparse_half;
scl_status scl_sparse_apply_half(const scl_sparse_factor *f, scl_sparse_half half, const double *x,
                                 double *to, double *room);
scl_status scl_sparse_log_det(const scl_sparse_factor *f, double *to);
/* The elements of the inverse in the order of `row`, by Takahashi's recursion. SCL_E_MEMORY. */
scl_status scl_sparse_inverse(const scl_sparse_factor *f, double *to);

#endif
