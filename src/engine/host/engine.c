/* The host engine: its table, and memory. */
#include "engine/host/host.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 }; /* a cache line, and the widest vector register */

static scl_status create_buffer(scl_context *ctx, void *foreign, size_t bytes, scl_buffer **out) {
  scl_host_buffer *b = malloc(sizeof *b);
  if (b == NULL) return scl_fail_memory(sizeof *b, 0, "a buffer");
  b->base = (scl_buffer){.ctx = ctx, .refs = 1, .bytes = bytes};
  b->foreign = foreign != NULL;
  b->memory = foreign;
  b->data = foreign;
  if (foreign == NULL) {
    if (bytes <= SIZE_MAX - ALIGNMENT) b->memory = malloc(bytes + ALIGNMENT - 1);
    if (b->memory == NULL) {
      free(b);
      return scl_fail_memory(bytes, 0, "a matrix on the host");
    }
    uintptr_t address = (uintptr_t)b->memory;
    b->data = (double *)((address + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  }
  *out = &b->base;
  return SCL_OK;
}

static scl_status buffer_create(scl_context *ctx, size_t bytes, scl_buffer **out) {
  return create_buffer(ctx, NULL, bytes, out);
}

scl_status scl_host_buffer_wrap(scl_context *ctx, double *data, size_t bytes, scl_buffer **out) {
  return create_buffer(ctx, data, bytes, out);
}

static void buffer_destroy(scl_buffer *buffer) {
  scl_host_buffer *b = (scl_host_buffer *)buffer;
  if (!b->foreign) free(b->memory);
  free(b);
}

/* The copy that makes a full canonical matrix from the triangle of a view. */
static scl_copy canonical(scl_view view) {
  switch (view) {
  case SCL_LOWER:
    return SCL_COPY_LOWER;
  case SCL_UPPER:
    return SCL_COPY_UPPER;
  case SCL_SYMMETRIC:
    return SCL_COPY_MIRROR_LOWER;
  default:
    return SCL_COPY;
  }
}

static scl_status upload(scl_context *ctx, scl_view view, const double *data, size_t ld,
                         scl_block dst) {
  (void)ctx;
  scl_host_copy_raw(canonical(view), dst.nrow, dst.ncol, data, ld, scl_host_at(dst), dst.ld);
  return SCL_OK;
}

static scl_status download(scl_context *ctx, scl_view view, scl_block src, double *data,
                           size_t ld) {
  (void)ctx;
  scl_host_copy_raw(canonical(view), src.nrow, src.ncol, scl_host_at(src), src.ld, data, ld);
  return SCL_OK;
}

static scl_status finish(scl_context *ctx) {
  (void)ctx;
  return SCL_OK;
}

/* The host context is never destroyed. */
static void context_destroy(scl_context *ctx) {
  (void)ctx;
}

const scl_engine scl_host_engine = {
    .name = "host",
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .upload = upload,
    .download = download,
    .finish = finish,
    .context_destroy = context_destroy,
    .fill = scl_host_fill,
    .identity = scl_host_identity,
    .copy = scl_host_copy,
    .gather = scl_host_gather,
    .scale_diagonal = scl_host_scale_diagonal,
    .add_diagonal = scl_host_add_diagonal,
    .diagonal = scl_host_diagonal,
    .expr = scl_host_expr,
    .check = scl_host_check,
    .gemm = scl_host_gemm,
    .potrf = scl_host_potrf,
    .potrf_copy = scl_host_potrf_copy,
    .trsm = scl_host_trsm,
    .trtri = scl_host_trtri,
    .potri = scl_host_potri,
    .potrf_adjoint_leaf = scl_host_potrf_adjoint_leaf,
    .batch = scl_host_batch,
    .covariance = scl_host_covariance,
    .covariance_adjoint = scl_host_covariance_adjoint,
    .covariance_inputs = scl_host_covariance_inputs,
    .adjoint_leaf = 64,
    .glm = scl_host_glm,
};
