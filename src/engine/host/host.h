/* Internals of the host engine. */
#ifndef SCL_ENGINE_HOST_HOST_H
#define SCL_ENGINE_HOST_HOST_H

#include "base/engine.h"
#include "engine/host/blas.h"

extern scl_host_blas scl_host_lib;

typedef struct {
  scl_buffer base;
  double *data; /* aligned, unless foreign */
  bool foreign; /* wrapped: not freed */
} scl_host_buffer;

/* ---- long work in blocks (engine/host/blocks.c) ------------------------------------------------
 */
/* Each is the function of BLAS or LAPACK of that name, on blocks of host memory; SCL_E_INTERRUPT
 * once the user asks to stop, and the result is then undefined. syrk, potrf and potri use the lower
 * half. *order and *place: `info`, 0 on success. */
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
/* Operations of one call, for tests; 0: the default. */
void scl_host_set_work(double operations);

/* Address of element (0, 0); NULL for a block without buffer. */
static inline double *scl_host_at(scl_block b) {
  return b.buffer == NULL ? NULL : ((scl_host_buffer *)b.buffer)->data + b.offset;
}

/* y = alpha A' x + beta y for an A with many more rows than columns (engine/host/tall.c); x and y
 * without gaps. */
bool scl_host_is_tall(scl_block a);
scl_status scl_host_tall_product(double alpha, scl_block a, const double *x, double beta,
                                 double *y);

/* dst (m x n) from src as `kind` says; in place only where base/engine.h allows it. */
void scl_host_copy_raw(scl_copy kind, size_t m, size_t n, const double *src, size_t ld_src,
                       double *dst, size_t ld_dst);
/* a = factor a. */
void scl_host_scale(double factor, scl_block a);
/* Whether all of n numbers are finite. */
bool scl_host_all_finite(size_t n, const double *x);
/* Upper half of a square block from its lower half, in place. */
void scl_host_mirror(scl_block a);

/* ---- the engine's functions ----------------------------------------------------------------- */
#define SCL_SLOT(result, name, parameters) result scl_host_##name parameters;
#define SCL_SLOT_OPTIONAL SCL_SLOT
#include "base/engine.def"

extern const scl_engine scl_host_engine;

#endif
