/* Matrices of doubles, column-major, on the host or on a device.
 *
 * Storage is always full and canonical: elements outside a triangular view are stored as zero, and
 * a symmetric matrix is stored with both halves. So any kernel may read any element, and a view is
 * a promise that lets an operation skip work or a transfer move half of the bytes.
 *
 * A matrix is immutable once an operation has returned it. Operations on a device return before the
 * work is done; buffers order the work (engine/cl/runtime/cl.h).
 *
 * The operations of graph/expr.h return pending matrices, which have no storage yet. Only these
 * operations and the functions for shapes below accept them; for all others scl_mat_force() comes
 * first. */
#ifndef SCL_BASE_MATRIX_H
#define SCL_BASE_MATRIX_H

#include "base/buffer.h"

typedef enum { SCL_GENERAL = 0, SCL_LOWER, SCL_UPPER, SCL_SYMMETRIC } scl_view;

/* A rectangle of a buffer: element (i, j) is at offset + i + j * ld. Passed by value, borrowed. */
typedef struct {
  scl_buffer *buffer;
  size_t offset, ld;
  size_t nrow, ncol;
  scl_type type;
} scl_block;

struct scl_node; /* graph/graph.h */

/* For the core; R code has the functions below. */
typedef struct scl_mat {
  uint32_t tag; /* SCL_MAT_TAG while alive */
  uint32_t refs;
  scl_context *ctx;
  scl_buffer *buffer; /* NULL when empty, or while an expression is pending */
  size_t offset, ld, nrow, ncol;
  scl_type type;
  scl_view view;
  struct scl_node *pending; /* the expression that yields `buffer` (graph/expr.h), or NULL */
  void (*release_pending)(struct scl_node *node);
} scl_mat;

#define SCL_MAT_TAG 0x53434c4du /* "SCLM" */

/* ---- making them ----------------------------------------------------------------------------- */
/* Makes an m x n matrix with undefined contents. Zero rows or columns are allowed. SCL_E_ARGUMENT
 * if a dimension exceeds 2^31 - 1, SCL_E_MEMORY. */
scl_status scl_mat_create(scl_context *ctx, size_t m, size_t n, scl_view view, scl_mat **out);

/* scl_mat_create() for a matrix that is not the result of an operation (SCL_ORIGINAL). */
scl_status scl_mat_create_original(scl_context *ctx, size_t m, size_t n, scl_view view,
                                   scl_mat **out);

/* A matrix that waits for the value of `node`; owns the reference on success, and releases it by
 * `release`. */
scl_status scl_mat_create_pending(scl_context *ctx, size_t m, size_t n, scl_view view,
                                  struct scl_node *node, void (*release)(struct scl_node *node),
                                  scl_mat **out);

/* An m x n block in a new buffer (leading dimension by scl_mat_ld()), for workspaces: release
 * block.buffer when enqueued. Empty shapes give a block without a buffer. */
scl_status scl_block_create(scl_context *ctx, size_t m, size_t n, scl_block *out);
/* n x 1, of these numbers. */
scl_status scl_block_upload(scl_context *ctx, const double *numbers, size_t n, scl_purpose purpose,
                            scl_block *out);
/* The first with other storage than that of a workspace. SCL_E_ARGUMENT for a type that the engine
 * does not compute with. */
scl_status scl_block_create_in(scl_context *ctx, size_t m, size_t n, scl_storage storage,
                               scl_block *out);

/* A matrix filled from host memory (leading dimension m). Of a triangular or symmetric view only
 * that triangle (the lower one of a symmetric matrix) is read. `data` has been read on return. */
scl_status scl_mat_from_host(scl_context *ctx, const double *data, size_t m, size_t n,
                             scl_view view, scl_mat **out);

/* Wraps foreign host memory (leading dimension m) in a context whose engine can (buffer_wrap); no
 * copy. The memory must outlive the matrix and must already be canonical for `view`. */
scl_status scl_mat_wrap(scl_context *ctx, double *data, size_t m, size_t n, scl_view view,
                        scl_mat **out);

/* Copies all m x n elements to host memory (leading dimension m); complete on return. */
scl_status scl_mat_to_host(const scl_mat *a, double *data);

scl_mat *scl_mat_retain(scl_mat *a);
void scl_mat_release(scl_mat *a); /* accepts NULL */

/* Leading dimension of a new m x n matrix: m (at least 1), or the next multiple of the engine's
 * column_multiple. */
size_t scl_mat_ld(const scl_context *ctx, size_t m, size_t n);

size_t scl_mat_nrow(const scl_mat *a);
size_t scl_mat_ncol(const scl_mat *a);
scl_view scl_mat_view(const scl_mat *a);
scl_context *scl_mat_context(const scl_mat *a); /* borrowed */
uint64_t scl_mat_bytes(const scl_mat *a);

/* A matrix, which is not pending, as a block; and a part of it: rows i .. i+m-1, columns j ..
 * j+n-1. */
scl_block scl_mat_block(const scl_mat *a);
scl_block scl_block_part(scl_block b, size_t i, size_t j, size_t m, size_t n);

/* Whether `a` is known to hold zeros above (below) its diagonal. */
bool scl_view_is_lower(scl_view view);
bool scl_view_is_upper(scl_view view);
scl_view scl_view_transposed(scl_view view);
const char *scl_view_name(scl_view view);

/* SCL_E_ARGUMENT unless both live in one context. */
scl_status scl_mat_same_context(const scl_mat *a, const scl_mat *b);

#endif
