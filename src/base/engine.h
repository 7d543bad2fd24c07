/* An engine: its traits, and the table of its functions (base/engine.def). Operations
 * (ops/cholesky.c, ...) use nothing else of an engine, and none asks which engine it has.
 *
 * Common rules
 * - A function may return before its work is done, except where it says "waits" and on engines that
 *   are synchronous.
 * - Work that touches one buffer keeps its order; independent work may overlap.
 * - Blocks are checked by the caller: shapes agree, dimensions may be 0 (then nothing is done).
 * - Output blocks do not overlap inputs unless it says "in place".
 * - Results are the same bits, run after run, for the same input on the same device.  */
#ifndef SCL_BASE_ENGINE_H
#define SCL_BASE_ENGINE_H

#include "base/matrix.h"

typedef enum { SCL_NO_TRANS = 0, SCL_TRANS } scl_trans;
typedef enum { SCL_LEFT = 0, SCL_RIGHT } scl_side;

/* Which elements of a result are computed. */
typedef enum {
  SCL_ALL = 0,
  SCL_LOWER_HALF, /* the lower triangle with the diagonal; elements above it stay, or are
                     overwritten with undefined values */
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

/* The commands that download() waits for: those that write the block; or, at the end of an
 * operation, all commands of its queue, so that no queue waits for another; the same for work of
 * less than a millisecond, without polling for interrupts. */
typedef enum { SCL_WAIT_WRITES = 0, SCL_WAIT_QUEUE, SCL_WAIT_SHORT } scl_wait;

struct scl_compressed_rows; /* engine/pass/compressed.h */
struct scl_compressed_pair; /* engine/pass/compressed.h */
struct scl_batch_pass;      /* engine/pass/batch.h */
struct scl_glm_pass;        /* engine/pass/glm.h */
struct scl_glm_batch_pass;  /* engine/pass/glm_batch.h */
struct scl_covariance_pass; /* engine/pass/covariance.h */
struct scl_vecchia_pass;    /* engine/pass/vecchia.h */
struct scl_plan;            /* engine/plan/plan.h */
struct scl_repeat;          /* engine/plan/repeat.h */
struct scl_ready_plan;      /* an engine's own */
struct scl_scan_pass;       /* engine/plan/scan.h */

/* The properties of an engine by which operations choose their algorithms. */
typedef struct {
  unsigned types;   /* bit 1 << t: matrices may have the element type t */
  bool synchronous; /* work is done when a function returns: results can be read at once, and input
                       is checked before work on it starts */
  bool prefers_transposed_copy; /* before a reduction across the columns of many elements */
  bool prefers_inverse;         /* products with a triangle's inverse are faster than solves */
  size_t column_multiple;       /* columns of 64 rows or more start at multiples of this number */
  size_t adjoint_leaf;          /* largest order of potrf_adjoint_leaf() */
} scl_engine_traits;

typedef struct scl_engine {
  const char *name;
  scl_engine_traits traits;
#define SCL_SLOT(result, name, parameters) result(*name) parameters;
#define SCL_SLOT_OPTIONAL SCL_SLOT
#include "base/engine.def"
} scl_engine;

enum { SCL_SMALL_BUFFER = 16 << 20 }; /* bytes: the largest of the small buffers */

/* The part of a context that all engines share; an engine's own context starts with it. */
struct scl_context {
  const scl_engine *engine;
  uint32_t tag;
  _Atomic uint32_t refs; /* of the host: by several threads */
  long owner;            /* process id that made a device context; 0 for the host */
  _Atomic bool lost;     /* set by the device engine, from any thread; never cleared */
  char name[128];
  char label[160]; /* for messages: the name, and the id of a device */
  scl_memory memory;
  /* When to collect garbage (base/buffer.c): bytes created since the last collection and not
   * released, by buffers up to SCL_SMALL_BUFFER and above, and by operations of a device with
   * memory to spare. */
  uint64_t small_since_collect, large_since_collect, results_since_collect;
  uint64_t spare; /* bytes of garbage that such a device has room for, else 0 */
  uint64_t collections;
  uint64_t live_then; /* live bytes when all garbage was collected last, or fewer since; */
  uint64_t left;      /* more of them after the last collection of young garbage */
  uint64_t collected_at, collected; /* the end of the last collection by the clock; its us */
};

#define SCL_CONTEXT_TAG 0x53434c43u /* "SCLC" */

static inline const scl_engine_traits *scl_traits(const scl_context *ctx) {
  return &ctx->engine->traits;
}

#endif
