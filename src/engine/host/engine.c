/* The host engine: its table, and memory. */
#include "engine/host/host.h"

#include "engine/host/memory.h"

#include <stdio.h>
#include <stdlib.h>

static scl_status create_buffer(scl_context *ctx, void *foreign, size_t bytes, scl_buffer **out) {
  scl_host_buffer *b = malloc(sizeof *b);
  if (b == NULL) return scl_fail_memory(sizeof *b, 0, "a buffer");
  b->base = (scl_buffer){.ctx = ctx, .refs = 1, .bytes = bytes};
  b->foreign = foreign != NULL;
  b->data = foreign != NULL ? foreign : scl_host_memory_get(bytes);
  if (b->data == NULL) {
    free(b);
    return scl_fail_memory(bytes, 0, "a matrix on the host");
  }
  *out = &b->base;
  return SCL_OK;
}

static double *offered;
static size_t offered_bytes;

static void offer(scl_context *ctx, double *data, size_t bytes) {
  (void)ctx;
  offered = data;
  offered_bytes = bytes;
}

scl_status scl_host_buffer_create(scl_context *ctx, size_t bytes, scl_storage storage,
                                  scl_buffer **out) {
  (void)storage;
  double *memory = bytes == offered_bytes ? offered : NULL;
  if (memory != NULL) offered = NULL;
  return create_buffer(ctx, memory, bytes, out);
}

scl_status scl_host_buffer_wrap(scl_context *ctx, double *data, size_t bytes, scl_buffer **out) {
  return create_buffer(ctx, data, bytes, out);
}

void scl_host_buffer_destroy(scl_buffer *buffer) {
  scl_host_buffer *b = (scl_host_buffer *)buffer;
  if (!b->foreign) scl_host_memory_return(b->data, buffer->bytes);
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

scl_status scl_host_upload(scl_context *ctx, scl_view view, const double *data, size_t ld,
                           scl_block dst) {
  (void)ctx;
  scl_host_copy_raw(canonical(view), dst.nrow, dst.ncol, data, ld, scl_host_at(dst), dst.ld);
  return SCL_OK;
}

scl_status scl_host_download(scl_context *ctx, scl_view view, scl_block src, scl_wait wait,
                             double *data, size_t ld) {
  (void)ctx;
  (void)wait;
  if (data == scl_host_at(src)) return SCL_OK; /* it was offered */
  scl_host_copy_raw(canonical(view), src.nrow, src.ncol, scl_host_at(src), src.ld, data, ld);
  return SCL_OK;
}

scl_status scl_host_finish(scl_context *ctx) {
  (void)ctx;
  return SCL_OK;
}

/* The host context is never destroyed. */
void scl_host_context_destroy(scl_context *ctx) {
  (void)ctx;
}

const scl_engine scl_host_engine = {
    .name = "host",
    .traits = {.types = 1u << SCL_F64,
               .synchronous = true,
               .column_multiple = 1,
               .adjoint_leaf = 64},
#define SCL_SLOT(result, name, parameters) .name = scl_host_##name,
#define SCL_SLOT_OPTIONAL(result, name, parameters)
#include "base/engine.def"
    .buffer_wrap = scl_host_buffer_wrap,
    .buffer_offer = offer,
    .expr_ready = scl_host_expr_ready,
    .expr_repeat = scl_host_expr_repeat,
    .expr_forget = scl_host_expr_forget,
    .pass_columns = scl_host_pass_columns,
    .transpose_lower = scl_host_transpose_lower,
    .gram = scl_host_gram,
    .lu = scl_host_lu,
    .lu_solve = scl_host_lu_solve,
    .eigen = scl_host_eigen,
    .vecchia = scl_host_vecchia,
};

scl_context *scl_context_host(void) {
  static scl_context host;
  if (host.engine == NULL) {
    host.engine = &scl_host_engine;
    host.tag = SCL_CONTEXT_TAG;
    host.refs = 1;
    snprintf(host.name, sizeof host.name, "host");
    snprintf(host.label, sizeof host.label, "the host");
  }
  return &host;
}

bool scl_context_is_host(const scl_context *ctx) {
  return ctx->engine == &scl_host_engine;
}
