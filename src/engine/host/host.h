/* Inside of the host engine: included by scl_host_*.c and by whoever hands in BLAS and LAPACK. */
#ifndef SCL_ENGINE_HOST_HOST_H
#define SCL_ENGINE_HOST_HOST_H

#include "base/engine.h"

/* BLAS and LAPACK with their usual meaning and argument order, arguments by value: column-major,
 * letters as in Fortran, diagonals are never taken to be unit. LAPACK functions give `info`. */
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
} scl_host_blas;

/* Set once, before the first operation on the host; copied. */
void scl_host_set_blas(const scl_host_blas *blas);
extern scl_host_blas scl_host_lib;

typedef struct {
  scl_buffer base;
  double *data; /* aligned */
  void *memory; /* what malloc() gave */
  bool foreign; /* wrapped: not freed */
} scl_host_buffer;

/* ---- long work in blocks (engine/host/blocks.c) ------------------------------------------------
 */
/* As the function of BLAS or LAPACK of that name, on blocks of host memory; SCL_E_INTERRUPT once
 * the user asks to stop, which leaves the result unfinished. syrk, potrf and potri take and leave
 * the lower half. *order and *place: `info`, 0 when there is no fault. */
scl_status scl_host_gemm_blocks(double alpha, scl_trans trans_a, scl_block a, scl_trans trans_b,
                                scl_block b, double beta, scl_block c);
scl_status scl_host_syrk_blocks(scl_trans trans, double alpha, scl_block a, double beta,
                                scl_block c);
scl_status scl_host_trsm_blocks(scl_side side, scl_view view, scl_trans trans, double alpha,
                                scl_block t, scl_block b);
scl_status scl_host_trmm_blocks(scl_side side, scl_view view, scl_trans trans, double alpha,
                                scl_block t, scl_block b);
scl_status scl_host_potrf_blocks(scl_block a, int *order);
scl_status scl_host_trtri_blocks(scl_view view, scl_block t, int *place);
scl_status scl_host_potri_blocks(scl_block l, int *place);
/* Operations of one call, for tests; 0: as usual. */
void scl_host_set_work(double operations);

/* Address of element (0, 0); NULL for a block without buffer. */
static inline double *scl_host_at(scl_block b) {
  return b.buffer == NULL ? NULL : ((scl_host_buffer *)b.buffer)->data + b.offset;
}

/* dst (m x n) from src as `kind` says; in place only where base/engine.h allows it. */
void scl_host_copy_raw(scl_copy kind, size_t m, size_t n, const double *src, size_t ld_src,
                       double *dst, size_t ld_dst);
/* a = factor a. */
void scl_host_scale(double factor, scl_block a);
/* Upper half of a square block from its lower half, in place. */
void scl_host_mirror(scl_block a);

/* ---- engine entries, by file ---------------------------------------------------------------- */
/* engine/host/copy.c */
scl_status scl_host_fill(scl_context *ctx, double value, scl_block dst);
scl_status scl_host_identity(scl_context *ctx, double value, size_t batch, scl_block dst);
scl_status scl_host_copy(scl_context *ctx, scl_copy kind, scl_block src, scl_block dst);
scl_status scl_host_gather(scl_context *ctx, scl_block rows, scl_block columns, scl_block src,
                           scl_block dst);
scl_status scl_host_scale_diagonal(scl_context *ctx, scl_side side, scl_block d, scl_block a,
                                   scl_block dst);
scl_status scl_host_add_diagonal(scl_context *ctx, double value, scl_block a);
scl_status scl_host_diagonal(scl_context *ctx, scl_block a, scl_block dst);
/* engine/host/check.c */
scl_status scl_host_check(scl_context *ctx, scl_check what, double tol, scl_view view, scl_block a,
                          scl_block dst);
/* engine/host/plan.c */
scl_status scl_host_expr(scl_context *ctx, const struct scl_plan *plan);
/* engine/host/linalg.c */
scl_status scl_host_gemm(scl_context *ctx, double alpha, scl_trans trans_a, scl_block a,
                         scl_view view_a, scl_trans trans_b, scl_block b, scl_view view_b,
                         double beta, scl_block c, scl_region region);
scl_status scl_host_potrf(scl_context *ctx, scl_block a, scl_block info);
scl_status scl_host_potrf_copy(scl_context *ctx, scl_block a, scl_block l, scl_block info);
scl_status scl_host_trsm(scl_context *ctx, scl_side side, scl_view view, scl_trans trans,
                         scl_block t, scl_block b);
scl_status scl_host_trtri(scl_context *ctx, scl_view view, scl_block t, scl_block dst);
scl_status scl_host_potri(scl_context *ctx, scl_block l, scl_block dst);
scl_status scl_host_potrf_adjoint_leaf(scl_context *ctx, scl_block l, scl_block s);
/* engine/host/batch.c */
scl_status scl_host_batch(scl_context *ctx, const struct scl_batch_pass *pass);
/* engine/host/glm.c, engine/host/covariance.c */
scl_status scl_host_glm(scl_context *ctx, const struct scl_glm_pass *pass);
scl_status scl_host_covariance(scl_context *ctx, const struct scl_covariance_pass *pass);
scl_status scl_host_covariance_adjoint(scl_context *ctx, const struct scl_covariance_pass *pass);
scl_status scl_host_covariance_inputs(scl_context *ctx, const struct scl_covariance_pass *pass);

#endif
