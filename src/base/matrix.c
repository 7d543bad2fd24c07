#include "base/matrix.h"

#include <limits.h>
#include <stdlib.h>

#include "base/engine.h"
#include "base/sizes.h"

size_t scl_mat_ld(const scl_context *ctx, size_t m, size_t n) {
  size_t multiple = scl_traits(ctx)->column_multiple;
  if (multiple == 1 || n <= 1 || m < 64 || m > INT_MAX - multiple) return m > 0 ? m : 1;
  return scl_round_up(m, multiple);
}

/* Bytes of an m x n matrix; an error if the number is too large. */
static scl_status storage_bytes(scl_type type, size_t ld, size_t n, size_t *out) {
  size_t size = scl_type_size(type);
  if (n != 0 && ld > PTRDIFF_MAX / size / n) {
    return scl_fail_memory(UINT64_MAX, 0, "a matrix larger than the address space");
  }
  *out = ld * n * size;
  return SCL_OK;
}

static scl_status check_dims(size_t m, size_t n, scl_view view) {
  if (m > INT_MAX || n > INT_MAX) {
    return scl_fail_argument(m > INT_MAX ? "nrow" : "ncol",
                             "a matrix can have at most %d rows and columns", INT_MAX);
  }
  if (view == SCL_SYMMETRIC && m != n) {
    return scl_fail_argument("view", "a symmetric matrix must be square, not %zu x %zu", m, n);
  }
  return SCL_OK;
}

scl_status scl_block_create_in(scl_context *ctx, size_t m, size_t n, scl_storage storage,
                               scl_block *out) {
  scl_block block = {NULL, 0, scl_mat_ld(ctx, m, n), m, n, storage.type};
  size_t bytes = 0;
  if ((scl_traits(ctx)->types >> storage.type & 1) == 0) {
    return scl_fail_argument("type", "'%s' does not compute with elements of this type",
                             ctx->label);
  }
  if (m != 0 && n != 0) SCL_TRY(storage_bytes(storage.type, block.ld, n, &bytes));
  SCL_TRY(scl_buffer_create(ctx, bytes, storage, &block.buffer));
  *out = block;
  return SCL_OK;
}

scl_status scl_block_create(scl_context *ctx, size_t m, size_t n, scl_block *out) {
  return scl_block_create_in(ctx, m, n, (scl_storage){.purpose = SCL_RESULT}, out);
}

scl_status scl_block_upload(scl_context *ctx, const double *numbers, size_t n, scl_purpose purpose,
                            scl_block *out) {
  scl_block block;
  SCL_TRY(scl_block_create_in(ctx, n, 1, (scl_storage){.purpose = purpose}, &block));
  const scl_status status = ctx->engine->upload(ctx, SCL_GENERAL, numbers, n, block);
  if (status == SCL_OK) {
    *out = block;
  } else {
    scl_buffer_release(block.buffer);
  }
  return status;
}

/* The matrix owns the buffer of `block`, which is released on failure. */
static scl_status wrap_block(scl_context *ctx, scl_block block, scl_view view, scl_mat **out) {
  scl_mat *a = calloc(1, sizeof *a);
  if (a == NULL) {
    scl_buffer_release(block.buffer);
    return scl_fail_memory(sizeof *a, 0, "a matrix handle");
  }
  a->tag = SCL_MAT_TAG;
  a->refs = 1;
  a->ctx = scl_context_retain(ctx);
  a->buffer = block.buffer;
  a->ld = block.ld;
  a->nrow = block.nrow;
  a->ncol = block.ncol;
  a->type = block.type;
  a->view = view;
  *out = a;
  return SCL_OK;
}

static scl_status create(scl_context *ctx, size_t m, size_t n, scl_view view, scl_purpose purpose,
                         scl_mat **out) {
  SCL_TRY(check_dims(m, n, view));
  SCL_TRY(scl_context_check(ctx));
  scl_block block;
  SCL_TRY(scl_block_create_in(ctx, m, n, (scl_storage){.purpose = purpose}, &block));
  return wrap_block(ctx, block, view, out);
}

scl_status scl_mat_create(scl_context *ctx, size_t m, size_t n, scl_view view, scl_mat **out) {
  return create(ctx, m, n, view, SCL_RESULT, out);
}

scl_status scl_mat_create_original(scl_context *ctx, size_t m, size_t n, scl_view view,
                                   scl_mat **out) {
  return create(ctx, m, n, view, SCL_ORIGINAL, out);
}

scl_status scl_mat_from_host(scl_context *ctx, const double *data, size_t m, size_t n,
                             scl_view view, scl_mat **out) {
  scl_mat *a;
  SCL_TRY(scl_mat_create_original(ctx, m, n, view, &a));
  scl_status status = SCL_OK;
  if (a->buffer != NULL) status = ctx->engine->upload(ctx, view, data, m, scl_mat_block(a));
  if (status != SCL_OK) {
    scl_mat_release(a);
    return status;
  }
  *out = a;
  return SCL_OK;
}

scl_status scl_mat_wrap(scl_context *ctx, double *data, size_t m, size_t n, scl_view view,
                        scl_mat **out) {
  SCL_TRY(check_dims(m, n, view));
  scl_block block = {.ld = scl_mat_ld(ctx, m, n), .nrow = m, .ncol = n};
  if (m != 0 && n != 0) {
    size_t bytes = 0;
    SCL_TRY(storage_bytes(block.type, block.ld, n, &bytes));
    SCL_TRY(ctx->engine->buffer_wrap(ctx, data, bytes, &block.buffer));
  }
  return wrap_block(ctx, block, view, out);
}

scl_status scl_mat_create_pending(scl_context *ctx, size_t m, size_t n, scl_view view,
                                  struct scl_node *node, void (*release)(struct scl_node *node),
                                  scl_mat **out) {
  SCL_TRY(check_dims(m, n, view));
  scl_block none = {.ld = 1, .nrow = m, .ncol = n};
  SCL_TRY(wrap_block(ctx, none, view, out));
  (*out)->pending = node;
  (*out)->release_pending = release;
  return SCL_OK;
}

scl_status scl_mat_to_host(const scl_mat *a, double *data) {
  SCL_TRY(scl_context_check(a->ctx));
  if (a->nrow == 0 || a->ncol == 0) return SCL_OK;
  return a->ctx->engine->download(a->ctx, a->view, scl_mat_block(a), SCL_WAIT_WRITES, data,
                                  a->nrow);
}

scl_mat *scl_mat_retain(scl_mat *a) {
  a->refs++;
  return a;
}

void scl_mat_release(scl_mat *a) {
  if (a == NULL || --a->refs > 0) return;
  a->tag = 0;
  scl_context *ctx = a->ctx;
  if (a->pending != NULL) a->release_pending(a->pending);
  scl_buffer_release(a->buffer);
  free(a);
  scl_context_release(ctx);
}

size_t scl_mat_nrow(const scl_mat *a) {
  return a->nrow;
}
size_t scl_mat_ncol(const scl_mat *a) {
  return a->ncol;
}
scl_view scl_mat_view(const scl_mat *a) {
  return a->view;
}
scl_context *scl_mat_context(const scl_mat *a) {
  return a->ctx;
}

uint64_t scl_mat_bytes(const scl_mat *a) {
  return a->buffer == NULL ? 0 : (uint64_t)a->ld * a->ncol * scl_type_size(a->type);
}

scl_block scl_mat_block(const scl_mat *a) {
  return (scl_block){a->buffer, a->offset, a->ld, a->nrow, a->ncol, a->type};
}

scl_block scl_block_part(scl_block b, size_t i, size_t j, size_t m, size_t n) {
  b.offset += i + j * b.ld;
  b.nrow = m;
  b.ncol = n;
  return b;
}

bool scl_view_is_lower(scl_view view) {
  return view == SCL_LOWER;
}
bool scl_view_is_upper(scl_view view) {
  return view == SCL_UPPER;
}

scl_view scl_view_transposed(scl_view view) {
  if (view == SCL_LOWER) return SCL_UPPER;
  return view == SCL_UPPER ? SCL_LOWER : view;
}

const char *scl_view_name(scl_view view) {
  switch (view) {
  case SCL_LOWER:
    return "lower";
  case SCL_UPPER:
    return "upper";
  case SCL_SYMMETRIC:
    return "symmetric";
  default:
    return "general";
  }
}

scl_status scl_mat_same_context(const scl_mat *a, const scl_mat *b) {
  if (a->ctx == b->ctx) return SCL_OK;
  return scl_fail(SCL_E_ARGUMENT, "one matrix is on %s, the other on %s", scl_context_label(a->ctx),
                  scl_context_label(b->ctx));
}
