/* Which device-specific kernels may be used: decided once a context, by trying them.
 *
 * The matrix-instruction kernels (gemm_mma.cl, cholesky_mma.cl) hold inline assembly that another
 * driver may refuse or read differently. So each form of the product is built and compared with a
 * plain loop on small whole numbers, for which every order of summation is exact. Any failure
 * leaves the portable kernels in charge, and the reason in cl->variant_reason. */
#include "engine/cl/linalg/linalg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"

/* Odd in every direction, more than one tile each way, more stages than the ring holds. */
enum { PROBE_M = 171, PROBE_N = 149, PROBE_K = 83, PROBE_LD = 176 };

static double probe_value(size_t i, size_t j) {
  return (double)((i * 37 + j * 101 + i * j) % 23) - 11.0;
}

/* Entry (i, j) of op(X), X stored as probe_value() of its own indices. */
static double probe_entry(bool transposed, size_t i, size_t j) {
  return transposed ? probe_value(j, i) : probe_value(i, j);
}

static bool exact(const double *c, bool trans_a, bool trans_b) {
  for (size_t j = 0; j < PROBE_N; j++) {
    for (size_t i = 0; i < PROBE_M; i++) {
      double sum = 0.0;
      for (size_t k = 0; k < PROBE_K; k++)
        sum += probe_entry(trans_a, i, k) * probe_entry(trans_b, k, j);
      if (!(c[i + j * PROBE_LD] == sum)) return false;
    }
  }
  return true;
}

/* One form and tile size: C = op(A) op(B), all three in one square buffer each. */
static scl_status probe_form(scl_cl_context *cl, scl_cl_tile tile, bool trans_a, bool trans_b,
                             scl_block a, scl_block b, scl_block c, double *host, bool *good) {
  scl_cl_product product = {.alpha = 1.0,
                            .trans_a = trans_a ? SCL_TRANS : SCL_NO_TRANS,
                            .trans_b = trans_b ? SCL_TRANS : SCL_NO_TRANS,
                            .a = trans_a ? scl_block_part(a, 0, 0, PROBE_K, PROBE_M)
                                         : scl_block_part(a, 0, 0, PROBE_M, PROBE_K),
                            .b = trans_b ? scl_block_part(b, 0, 0, PROBE_N, PROBE_K)
                                         : scl_block_part(b, 0, 0, PROBE_K, PROBE_N),
                            .c = scl_block_part(c, 0, 0, PROBE_M, PROBE_N),
                            .batch = 1};
  scl_cl_op op;
  scl_cl_op_begin(&op, &cl->base);
  scl_cl_op_reads(&op, a.buffer);
  scl_cl_op_reads(&op, b.buffer);
  scl_cl_op_writes(&op, c.buffer);
  SCL_TRY(scl_cl_op_order(&op, -1));
  SCL_TRY(scl_cl_op_end(&op, scl_cl_product_tiled_in(&op, &product, tile)));
  SCL_TRY(scl_cl_download(&cl->base, SCL_GENERAL, c, SCL_WAIT_WRITES, host, PROBE_LD));
  *good = exact(host, trans_a, trans_b);
  return SCL_OK;
}

static scl_status probe_products(scl_cl_context *cl, double *host, bool *good) {
  scl_block a = {0}, b = {0}, c = {0};
  scl_status status;
  SCL_GO(scl_block_create(&cl->base, PROBE_LD, PROBE_LD, &a));
  SCL_GO(scl_block_create(&cl->base, PROBE_LD, PROBE_LD, &b));
  SCL_GO(scl_block_create(&cl->base, PROBE_LD, PROBE_LD, &c));
  for (size_t j = 0; j < PROBE_LD; j++) {
    for (size_t i = 0; i < PROBE_LD; i++) host[i + j * PROBE_LD] = probe_value(i, j);
  }
  SCL_GO(scl_cl_upload(&cl->base, SCL_GENERAL, host, PROBE_LD, a));
  SCL_GO(scl_cl_upload(&cl->base, SCL_GENERAL, host, PROBE_LD, b));
  *good = true;
  for (int tile = SCL_CL_TILE_MMA_TINY; tile < SCL_CL_TILES; tile++) {
    bool huge = tile == SCL_CL_TILE_MMA_HUGE; /* form 2 alone */
    for (int form = huge ? 2 : 0; form < (huge ? 3 : 4) && *good; form++)
      SCL_GO(probe_form(cl, (scl_cl_tile)tile, form & 1, form & 2, a, b, c, host, good));
  }
done:
  scl_buffer_release(a.buffer);
  scl_buffer_release(b.buffer);
  scl_buffer_release(c.buffer);
  return status;
}

static bool refuse(scl_cl_context *cl, const char *reason) {
  snprintf(cl->variant_reason, sizeof cl->variant_reason, "%.120s", reason);
  return false;
}

static bool decide(scl_cl_context *cl) {
  const char *wish = scl_env("STATCL_VARIANT");
  if (wish != NULL && strcmp(wish, "portable") == 0) return refuse(cl, "STATCL_VARIANT");
  /* What lies between has them, but for hardly more than show. */
  if (!cl->emulated_mma && cl->info.capability != 80 && cl->info.capability < 90)
    return refuse(cl, "no matrix instructions for this device");
  cl->small_mma = cl->info.capability == 80 || (wish != NULL && strcmp(wish, "m8n8k4") == 0);
  if (cl->emulated_mma) return true; /* for tests, which look at all kernels */
  double *host = malloc(sizeof *host * PROBE_LD * PROBE_LD);
  if (host == NULL) return refuse(cl, "out of memory");
  bool good = false;
  scl_status status = probe_products(cl, host, &good);
  free(host);
  if (status != SCL_OK) return refuse(cl, scl_fault_last()->message);
  return good ? true : refuse(cl, "a trial product was not exact");
}

bool scl_cl_has_mma(scl_cl_context *cl) {
  if (cl->variant == SCL_CL_VARIANT_UNKNOWN) {
    cl->variant = SCL_CL_VARIANT_PORTABLE; /* what the trial itself would fall back on */
    if (decide(cl)) cl->variant = SCL_CL_VARIANT_MMA;
  }
  return cl->variant == SCL_CL_VARIANT_MMA;
}
