/* The table of functions that an engine fills. Operations (ops/cholesky.c, ...) are written over it
 * and see nothing else of an engine.
 *
 * Common rules
 * - A function may return before its work is done, except where it says "waits".
 * - Work that touches one buffer keeps its order; independent work may overlap.
 * - Blocks are checked by the caller: shapes agree, dimensions may be 0 (then nothing is done).
 * - Output blocks do not overlap inputs unless it says "in place".
 * - Results are the same bits, run after run, for the same input on the same device. */
#ifndef SCL_BASE_ENGINE_H
#define SCL_BASE_ENGINE_H

#include "base/matrix.h"

typedef enum { SCL_NO_TRANS = 0, SCL_TRANS } scl_trans;
typedef enum { SCL_LEFT = 0, SCL_RIGHT } scl_side;

/* Which elements of a result are computed. */
typedef enum {
  SCL_ALL = 0,
  SCL_LOWER_HALF, /* the lower triangle with the diagonal; elements above it are left as they are,
                     or overwritten with anything */
  SCL_MIRRORED    /* the lower triangle, then copied to the upper: an exactly symmetric result */
} scl_region;

/* Structured copies, dst (m x n) from src. */
typedef enum {
  SCL_COPY = 0,
  SCL_COPY_TRANSPOSED,   /* src is n x m */
  SCL_COPY_LOWER,        /* lower triangle, zeros above it; in place (src is dst) allowed */
  SCL_COPY_UPPER,        /* upper triangle, zeros below it; in place allowed */
  SCL_COPY_MIRROR_LOWER, /* square: both halves from the lower triangle */
  SCL_COPY_MIRROR_UPPER  /* square: both halves from the upper triangle */
} scl_copy;

typedef enum {
  SCL_CHECK_FINITE = 0, /* first element that is NaN or infinite; index is column-major, 1-based */
  SCL_CHECK_SYMMETRIC,  /* first (i, j), i > j, with |a_ij - a_ji| > tol * max(|a_ij|, |a_ji|), or
                           only one of both NaN, or infinities that differ; index as above */
  SCL_CHECK_DIAGONAL    /* first exact zero on the diagonal; index is i */
} scl_check;

struct scl_batch_pass;      /* engine/pass/batch.h */
struct scl_glm_pass;        /* engine/pass/glm.h */
struct scl_covariance_pass; /* engine/pass/covariance.h */
struct scl_plan;            /* engine/plan/plan.h */

typedef struct scl_engine {
  const char *name;

  /* ---- memory ---------------------------------------------------------------------------------
   */
  /* Undefined contents; bytes > 0. */
  scl_status (*buffer_create)(scl_context *ctx, size_t bytes, scl_buffer **out);
  /* Called once, by the last release; never fails, never waits. */
  void (*buffer_destroy)(scl_buffer *buffer);
  /* Host memory to block and back; the other one is written full. upload: of a triangular or
   * symmetric view one triangle of `data` is read, on return. download: the block has what its view
   * promises; waits. */
  scl_status (*upload)(scl_context *ctx, scl_view view, const double *data, size_t ld,
                       scl_block dst);
  scl_status (*download)(scl_context *ctx, scl_view view, scl_block src, double *data, size_t ld);
  scl_status (*finish)(scl_context *ctx); /* waits */
  void (*context_destroy)(scl_context *ctx);

  /* ---- structure and elementwise --------------------------------------------------------------
   */
  scl_status (*fill)(scl_context *ctx, double value, scl_block dst);
  /* dst is m x (n * batch): `batch` copies of the m x n matrix with `value` on its diagonal. */
  scl_status (*identity)(scl_context *ctx, double value, size_t batch, scl_block dst);
  scl_status (*copy)(scl_context *ctx, scl_copy kind, scl_block src, scl_block dst);
  /* dst = diag(d) a (SCL_LEFT) or a diag(d) (SCL_RIGHT); d is a column; in place allowed. */
  scl_status (*scale_diagonal)(scl_context *ctx, scl_side side, scl_block d, scl_block a,
                               scl_block dst);
  /* a_ii += value, in place. */
  scl_status (*add_diagonal)(scl_context *ctx, double value, scl_block a);
  /* dst(i, j) = src(rows[i], columns[j]). Both index blocks are columns of 0-based whole numbers,
   * or have no buffer: all, in order. */
  scl_status (*gather)(scl_context *ctx, scl_block rows, scl_block columns, scl_block src,
                       scl_block dst);
  /* dst (a column) = diagonal of a. */
  scl_status (*diagonal)(scl_context *ctx, scl_block a, scl_block dst);
  /* The smallest number in dst, a column, becomes the index, or infinite when all pass. More than
   * one number spares a device a step. The triangle of `view` is looked at. */
  scl_status (*check)(scl_context *ctx, scl_check what, double tol, scl_view view, scl_block a,
                      scl_block dst);

  /* Runs a plan of lazy arithmetic (graph/graph.h); it has places, and outputs have blocks. */
  scl_status (*expr)(scl_context *ctx, const struct scl_plan *plan);

  /* ---- level 3 --------------------------------------------------------------------------------
   */
  /* C = alpha op(A) op(B) + beta C; C is not read when beta is 0. The views are those of A and B as
   * stored (before op): zeros that they promise may be skipped. SCL_MIRRORED needs a square C and
   * a result that is symmetric. */
  scl_status (*gemm)(scl_context *ctx, double alpha, scl_trans trans_a, scl_block a,
                     scl_view view_a, scl_trans trans_b, scl_block b, scl_view view_b, double beta,
                     scl_block c, scl_region region);
  /* Lower Cholesky factor in place; only the lower triangle is read or written. info (1 x 1)
   * becomes 0, or the order of the failing leading minor; a pivot that is not finite fails. */
  scl_status (*potrf)(scl_context *ctx, scl_block a, scl_block info);
  /* The same to another matrix: l gets zeros above its diagonal. */
  scl_status (*potrf_copy)(scl_context *ctx, scl_block a, scl_block l, scl_block info);
  /* B = op(T)^-1 B (SCL_LEFT) or B op(T)^-1 (SCL_RIGHT), in place. T is lower or upper triangular
   * by `view`; its other triangle is not read. The diagonal is taken to hold no zero. */
  scl_status (*trsm)(scl_context *ctx, scl_side side, scl_view view, scl_trans trans, scl_block t,
                     scl_block b);
  /* dst = T^-1 with zeros in the other triangle; T as for trsm. */
  scl_status (*trtri)(scl_context *ctx, scl_view view, scl_block t, scl_block dst);
  /* dst = (L L')^-1, both halves, from the lower factor; only its lower triangle is read. On the
   * host dst may be l. */
  scl_status (*potri)(scl_context *ctx, scl_block l, scl_block dst);
  /* Cholesky adjoint of a block of at most `adjoint_leaf` rows. In: s holds dF/dL (lower triangle
   * is read). Out: s holds the symmetric S, both halves. In place. */
  scl_status (*potrf_adjoint_leaf)(scl_context *ctx, scl_block l, scl_block s);
  size_t adjoint_leaf; /* largest n of the leaf */
  /* s = S from l, with zeros above its diagonal, and dF/dL (lower triangle is read), for any order
   * at once, where the engine knows a better way than the recursion over the leaf. NULL, or *taken
   * = false and nothing done, leaves it to that. */
  scl_status (*potrf_adjoint)(scl_context *ctx, scl_block l, scl_block l_adj, scl_block s,
                              bool *taken);

  /* ---- batches of small matrices --------------------------------------------------------------
   */
  /* One operation on all matrices of a batch. Waits where the pass asks for a status. */
  scl_status (*batch)(scl_context *ctx, const struct scl_batch_pass *pass);

  /* ---- statistics -----------------------------------------------------------------------------
   */
  scl_status (*glm)(scl_context *ctx, const struct scl_glm_pass *pass);
  scl_status (*covariance)(scl_context *ctx, const struct scl_covariance_pass *pass);
  scl_status (*covariance_adjoint)(scl_context *ctx, const struct scl_covariance_pass *pass);
  scl_status (*covariance_inputs)(scl_context *ctx, const struct scl_covariance_pass *pass);
} scl_engine;

enum { SCL_SMALL_BUFFER = 16 << 20 }; /* bytes: the largest of the small buffers */

/* The part of a context that all engines share; an engine's own context starts with it. */
struct scl_context {
  const scl_engine *engine;
  uint32_t tag;
  uint32_t refs;
  long owner;        /* process id that made a device context; 0 for the host */
  _Atomic bool lost; /* set by the device engine, from any thread; never cleared */
  char name[128];
  scl_memory memory;
  /* When garbage is to be collected (base/buffer.c): bytes created since the last time, by buffers
   * up to SCL_SMALL_BUFFER and above, and by operations of a device with memory to spare. */
  uint64_t small_since_collect, large_since_collect, results_since_collect;
  uint64_t spare;                   /* bytes of garbage that such a device has room for, else 0 */
  uint64_t collected_at, collected; /* the end of the last collection by the clock; its us */
  bool transient; /* the buffer being made is released in a moment: no reason to collect */
  bool original;  /* the buffer being made is no operation's result */
  bool at_last;   /* what is coming down ends an operation: it may wait for all of its queue */
};

/* The part of a buffer that all engines share; filled by scl_buffer_create(). */
struct scl_buffer {
  scl_context *ctx; /* borrowed: the matrices that hold the buffer hold the context */
  uint32_t refs;
  size_t bytes;
  bool counted; /* false: foreign memory, not part of the live bytes */
};

struct scl_mat {
  uint32_t tag; /* SCL_MAT_TAG while alive */
  uint32_t refs;
  scl_context *ctx;
  scl_buffer *buffer; /* NULL when empty, or while an expression is pending */
  size_t offset, ld, nrow, ncol;
  scl_view view;
  struct scl_node *pending; /* the expression that yields `buffer` (graph/expr.h), or NULL */
  /* Room for the recorded operation (derivatives of user functions); unset today. */
  void *record;
};

/* A matrix that waits for the value of `node`, whose shape and view it has; takes the reference
 * over on success. Dimensions are checked. */
scl_status scl_mat_create_pending(scl_context *ctx, struct scl_node *node, scl_mat **out);

#define SCL_MAT_TAG 0x53434c4du     /* "SCLM" */
#define SCL_CONTEXT_TAG 0x53434c43u /* "SCLC" */

/* Makes a counted buffer: checks the limits, collects garbage and retries once when memory runs
 * short, keeps the counters. bytes == 0 gives NULL. */
scl_status scl_buffer_create(scl_context *ctx, size_t bytes, scl_buffer **out);
scl_buffer *scl_buffer_retain(scl_buffer *buffer);
void scl_buffer_release(scl_buffer *buffer); /* accepts NULL */

/* For tests: the n-th creation from now (1: the next) fails with SCL_E_MEMORY, also after the
 * collection; later ones succeed. -1 turns it off. */
void scl_buffer_fail_after(long n);

/* An m x n block in a new buffer (leading dimension by scl_mat_ld()), for workspaces: release
 * block.buffer when enqueued. Empty shapes give a block without a buffer. */
scl_status scl_block_create(scl_context *ctx, size_t m, size_t n, scl_block *out);

/* scl_mat_create() for a matrix that is no operation's result: garbage of these is kept small. */
scl_status scl_mat_create_original(scl_context *ctx, size_t m, size_t n, scl_view view,
                                   scl_mat **out);

extern const scl_engine scl_host_engine;

/* An uncounted buffer of the host engine around foreign memory, which it never frees. */
scl_status scl_host_buffer_wrap(scl_context *ctx, double *data, size_t bytes, scl_buffer **out);

#endif
