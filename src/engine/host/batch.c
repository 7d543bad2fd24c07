/* Batched small matrices on the host: blocks of SCL_LANES matrices (engine/host/lanes.h),
 * distributed over threads. */
#include "engine/host/host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/host/lanes.h"
#include "base/sizes.h"
#include "base/threads.h"

enum { CHUNK = 32 };         /* right-hand sides, or terms of a product, at a time */
#define THREADS_FROM 2e5     /* operations that pay for threads */
#define ROUND 2e8            /* operations between two checks for interrupts */
#define LARGE_PRODUCT 2000.0 /* multiplications from which on BLAS computes a product */

static const double log_two_pi = 1.837877066409345483561;

/* The arrays of one thread. */
typedef struct {
  scl_lanes *x, *b, *c, *work;
  unsigned char *piv;
} scratch;

typedef struct {
  const scl_batch_pass *pass;
  size_t from, to; /* blocks of this round */
  char *memory;    /* scratch of all threads */
  size_t x, b, c;  /* elements of its arrays */
  size_t bytes;    /* of one thread */
} batch_work;

/* ---- packing --------------------------------------------------------------------------------- */

/* Whether a triangle is processed in reverse order, which makes it a lower one, solved forwards. */
static bool is_reversed(const scl_batch_pass *p) {
  return p->upper != p->transpose;
}

static size_t matrix_of(const scl_batch_pass *p, size_t block, int w) {
  size_t q = block * SCL_LANES + (size_t)w;
  return q < p->batch ? q : p->batch - 1;
}

static void pack(const scl_batch_pass *p, size_t block, scl_batch_operand from, size_t start,
                 size_t count, scl_lanes *to) {
  for (int w = 0; w < SCL_LANES; w++) {
    const double *source = scl_host_at(from.block) + matrix_of(p, block, w) * from.step + start;
    for (size_t e = 0; e < count; e++) *scl_lane(to, e, w) = source[e];
  }
}

/* The m x n part of a matrix with leading dimension ld that begins at `start`, or its transpose. */
static void pack_part(const scl_batch_pass *p, size_t block, scl_batch_operand from, size_t start,
                      size_t ld, bool transposed, size_t m, size_t n, scl_lanes *to) {
  for (int w = 0; w < SCL_LANES; w++) {
    const double *source = scl_host_at(from.block) + matrix_of(p, block, w) * from.step + start;
    for (size_t j = 0; j < n; j++) {
      for (size_t i = 0; i < m; i++) {
        *scl_lane(to, i + j * m, w) = source[transposed ? j + i * ld : i + j * ld];
      }
    }
  }
}

/* The triangle as a lower one that is solved forwards. A zero on its diagonal is its status. */
static void pack_triangle(const scl_batch_pass *p, size_t block, scl_lanes *to,
                          unsigned char *status) {
  size_t n = p->n;
  bool reversed = is_reversed(p);
  for (int w = 0; w < SCL_LANES; w++) {
    const double *l = scl_host_at(p->a.block) + matrix_of(p, block, w) * p->a.step;
    for (size_t j = 0; j < n; j++) {
      size_t source_j = reversed ? n - 1 - j : j;
      for (size_t i = j; i < n; i++) {
        size_t source_i = reversed ? n - 1 - i : i;
        *scl_lane(to, i + j * n, w) =
            l[p->transpose ? source_j + source_i * n : source_i + source_j * n];
      }
    }
    for (size_t k = n; k-- > 0;) {
      if (l[k + k * n] == 0.0) status[w] = (unsigned char)(k + 1);
    }
  }
}

/* k columns of order n from element `start` on, reversed if the triangle is. */
static void pack_columns(const scl_batch_pass *p, size_t block, scl_batch_operand from,
                         size_t start, size_t k, bool reversed, scl_lanes *to) {
  size_t n = p->n;
  if (!reversed) {
    pack(p, block, from, start, n * k, to);
    return;
  }
  for (int w = 0; w < SCL_LANES; w++) {
    const double *source = scl_host_at(from.block) + matrix_of(p, block, w) * from.step + start;
    for (size_t j = 0; j < k; j++) {
      for (size_t i = 0; i < n; i++) *scl_lane(to, i + j * n, w) = source[n - 1 - i + j * n];
    }
  }
}

/* Element e of a result comes from element map(e). */
typedef enum { AS_IT_IS, REVERSED, LOWER, LOWER_TRANSPOSED } arrangement;

static double arranged(arrangement how, scl_lanes *x, size_t n, size_t i, size_t j, int w) {
  switch (how) {
  case REVERSED:
    return *scl_lane(x, n - 1 - i + j * n, w);
  case LOWER:
    return i >= j ? *scl_lane(x, i + j * n, w) : 0.0;
  case LOWER_TRANSPOSED:
    return j >= i ? *scl_lane(x, j + i * n, w) : 0.0;
  default:
    return *scl_lane(x, i + j * n, w);
  }
}

/* n x k numbers of each matrix to the result, from element `start` on; NaN where the status is not
 * fine. */
static void unpack(const scl_batch_pass *p, size_t block, arrangement how, size_t n, size_t k,
                   size_t start, scl_lanes *x, const unsigned char *status) {
  for (int w = 0; w < SCL_LANES && block * SCL_LANES + (size_t)w < p->batch; w++) {
    double *to = scl_host_at(p->out.block) + matrix_of(p, block, w) * p->out.step + start;
    bool fine = status[w] == SCL_BATCH_FINE;
    for (size_t j = 0; j < k; j++) {
      for (size_t i = 0; i < n; i++) to[i + j * n] = fine ? arranged(how, x, n, i, j, w) : NAN;
    }
  }
}

/* ---- operations on one block ----------------------------------------------------------------- */

static void run_inverse(const scl_batch_pass *p, size_t block, scratch *s, unsigned char *status) {
  pack(p, block, p->a, 0, p->n * p->n, s->x);
  if (p->cofactors) {
    scl_lanes_cofactors(p->n, s->x, status);
  } else {
    scl_lanes_inverse(p->n, s->x, s->piv, s->work, status);
  }
  unpack(p, block, AS_IT_IS, p->n, p->n, 0, s->x, status);
}

static void run_chol(const scl_batch_pass *p, size_t block, scratch *s, unsigned char *status) {
  pack(p, block, p->a, 0, p->n * p->n, s->x);
  scl_lanes_chol(p->n, s->x, status);
  unpack(p, block, p->upper ? LOWER_TRANSPOSED : LOWER, p->n, p->n, 0, s->x, status);
}

static void run_chol_adjoint(const scl_batch_pass *p, size_t block, scratch *s,
                             unsigned char *status) {
  pack(p, block, p->a, 0, p->n * p->n, s->x);
  pack(p, block, p->b, 0, p->n * p->n, s->b);
  scl_lanes_chol_adjoint(p->n, s->x, s->b, status);
  unpack(p, block, AS_IT_IS, p->n, p->n, 0, s->b, status);
}

static void run_solve(const scl_batch_pass *p, size_t block, scratch *s, unsigned char *status) {
  pack(p, block, p->a, 0, p->n * p->n, s->x);
  scl_lanes_lu(p->n, s->x, s->piv, status);
  for (size_t j = 0; j < p->k; j += CHUNK) {
    size_t k = p->k - j < CHUNK ? p->k - j : CHUNK;
    pack(p, block, p->b, j * p->n, k * p->n, s->b);
    scl_lanes_lu_solve(p->n, k, s->x, s->piv, s->b);
    unpack(p, block, AS_IT_IS, p->n, k, j * p->n, s->b, status);
  }
}

static void run_det(const scl_batch_pass *p, size_t block, scratch *s, unsigned char *status) {
  double value[SCL_LANES], sign[SCL_LANES], *out = scl_host_at(p->out.block);
  pack(p, block, p->a, 0, p->n * p->n, s->x);
  scl_lanes_lu(p->n, s->x, s->piv, status);
  scl_lanes_lu_det(p->n, s->x, s->piv, p->logarithm, value, sign);
  for (int w = 0; w < SCL_LANES && block * SCL_LANES + (size_t)w < p->batch; w++) {
    out[matrix_of(p, block, w)] = value[w];
    if (p->logarithm) out[p->batch + matrix_of(p, block, w)] = sign[w];
  }
}

static void run_tri_solve(const scl_batch_pass *p, size_t block, scratch *s,
                          unsigned char *status) {
  bool reversed = is_reversed(p);
  pack_triangle(p, block, s->x, status);
  for (size_t j = 0; j < p->k; j += CHUNK) {
    size_t k = p->k - j < CHUNK ? p->k - j : CHUNK;
    pack_columns(p, block, p->b, j * p->n, k, reversed, s->b);
    scl_lanes_forward(p->n, k, s->x, s->b);
    unpack(p, block, reversed ? REVERSED : AS_IT_IS, p->n, k, j * p->n, s->b, status);
  }
}

static void run_matmul(const scl_batch_pass *p, size_t block, scratch *s, unsigned char *status) {
  memset(s->c, 0, p->m * p->n * sizeof *s->c);
  for (size_t q = 0; q < p->k; q += CHUNK) {
    size_t k = p->k - q < CHUNK ? p->k - q : CHUNK;
    size_t ld_a = p->transpose ? p->k : p->m, ld_b = p->transpose_b ? p->n : p->k;
    pack_part(p, block, p->a, p->transpose ? q : q * ld_a, ld_a, p->transpose, p->m, k, s->x);
    pack_part(p, block, p->b, p->transpose_b ? q * ld_b : q, ld_b, p->transpose_b, k, p->n, s->b);
    scl_lanes_product(p->m, p->n, k, s->x, s->b, s->c);
  }
  unpack(p, block, AS_IT_IS, p->m, p->n, 0, s->c, status);
}

static void run_mvn(const scl_batch_pass *p, size_t block, scratch *s, unsigned char *status) {
  size_t n = p->n;
  pack_triangle(p, block, s->x, status);
  pack(p, block, p->b, 0, n, s->b);
  if (p->c.block.buffer != NULL) {
    pack(p, block, p->c, 0, n, s->work);
    for (size_t i = 0; i < n; i++) s->b[i] -= s->work[i];
  }
  scl_lanes_forward(n, 1, s->x, s->b);
  for (int w = 0; w < SCL_LANES; w++) {
    double squares = 0.0, logs = 0.0;
    for (size_t i = 0; i < n; i++) {
      double z = *scl_lane(s->b, i, w);
      squares += z * z;
      logs += log(fabs(*scl_lane(s->x, i + i * n, w)));
    }
    *scl_lane(s->work, 0, w) = -0.5 * squares - logs - 0.5 * (double)n * log_two_pi;
  }
  unpack(p, block, AS_IT_IS, 1, 1, 0, s->work, status);
}

typedef void run_block(const scl_batch_pass *p, size_t block, scratch *s, unsigned char *status);

static run_block *const runs[] = {
    [SCL_BATCH_INVERSE] = run_inverse,
    [SCL_BATCH_CHOL] = run_chol,
    [SCL_BATCH_CHOL_ADJOINT] = run_chol_adjoint,
    [SCL_BATCH_SOLVE] = run_solve,
    [SCL_BATCH_DET] = run_det,
    [SCL_BATCH_TRI_SOLVE] = run_tri_solve,
    [SCL_BATCH_MATMUL] = run_matmul,
    [SCL_BATCH_MVN] = run_mvn,
};

/* ---- sharing out ----------------------------------------------------------------------------- */

static scl_lanes *aligned(char *memory) {
  uintptr_t at = (uintptr_t)memory;
  return (scl_lanes *)scl_round_up(at, 64);
}

static void run_part(void *arg, int part, int parts) {
  const batch_work *work = arg;
  const scl_batch_pass *p = work->pass;
  size_t blocks = work->to - work->from;
  size_t first = work->from + blocks * (size_t)part / (size_t)parts;
  size_t last = work->from + blocks * ((size_t)part + 1) / (size_t)parts;
  scratch s = {.x = aligned(work->memory + (size_t)part * work->bytes)};
  s.b = s.x + work->x;
  s.c = s.b + work->b;
  s.work = s.c + work->c;
  s.piv = (unsigned char *)(s.work + 2 * SCL_BATCH_ORDER);
  for (size_t block = first; block < last; block++) {
    unsigned char status[SCL_LANES] = {0};
    runs[p->op](p, block, &s, status);
    for (int w = 0; p->status != NULL && w < SCL_LANES; w++) {
      p->status[matrix_of(p, block, w)] = status[w];
    }
  }
}

/* Operations on one block, about. */
static double block_cost(const scl_batch_pass *p) {
  double n = (double)p->n, k = (double)p->k;
  double each =
      p->op == SCL_BATCH_MATMUL ? 2.0 * (double)p->m * n * k : n * n * (2.0 * n + 4.0 * k);
  return SCL_LANES * (each + 50.0);
}

static void size_arrays(const scl_batch_pass *p, batch_work *work) {
  size_t n = p->n, k = p->k < CHUNK ? p->k : CHUNK;
  work->x = p->op == SCL_BATCH_MATMUL ? p->m * k : n * n;
  work->b = p->op == SCL_BATCH_CHOL_ADJOINT ? n * n : n * k;
  work->c = p->op == SCL_BATCH_MATMUL ? p->m * n : 0;
  work->bytes = (work->x + work->b + work->c + 2 * SCL_BATCH_ORDER) * sizeof(scl_lanes) +
                SCL_BATCH_ORDER * SCL_LANES + 128;
}

/* Products that are too large for lanes, one by one. */
static scl_status large_products(scl_context *ctx, const scl_batch_pass *p) {
  size_t m = p->m, n = p->n, k = p->k;
  scl_block a = p->a.block, b = p->b.block, c = p->out.block;
  a.nrow = a.ld = p->transpose ? k : m, a.ncol = p->transpose ? m : k;
  b.nrow = b.ld = p->transpose_b ? n : k, b.ncol = p->transpose_b ? k : n;
  c.nrow = c.ld = m, c.ncol = n;
  for (size_t q = 0; q < p->batch; q++) {
    SCL_TRY(scl_poll());
    a.offset = p->a.block.offset + q * p->a.step;
    b.offset = p->b.block.offset + q * p->b.step;
    c.offset = p->out.block.offset + q * p->out.step;
    SCL_TRY(scl_host_gemm(ctx, 1.0, p->transpose ? SCL_TRANS : SCL_NO_TRANS, a, SCL_GENERAL,
                          p->transpose_b ? SCL_TRANS : SCL_NO_TRANS, b, SCL_GENERAL, 0.0, c,
                          SCL_ALL));
  }
  return SCL_OK;
}

scl_status scl_host_batch(scl_context *ctx, const scl_batch_pass *p, bool *written) {
  if (p->op == SCL_BATCH_MATMUL && (double)p->m * (double)p->n * (double)p->k > LARGE_PRODUCT) {
    return large_products(ctx, p);
  }
  *written = p->status != NULL;
  batch_work work = {.pass = p};
  size_t blocks = scl_ceil_div(p->batch, SCL_LANES);
  double cost = block_cost(p), round = ROUND / cost;
  size_t step = round < 1.0 ? 1 : round < (double)blocks ? (size_t)round : blocks;
  int threads = cost * (double)blocks < THREADS_FROM ? 1 : scl_copy_threads();
  if (step < (size_t)threads) step = (size_t)threads;
  size_arrays(p, &work);
  work.memory = malloc((size_t)threads * work.bytes);
  if (work.memory == NULL) return scl_fail_memory((size_t)threads * work.bytes, 0, "a workspace");
  scl_team *team = scl_team_start(threads);
  scl_status status = SCL_OK;
  for (; work.from < blocks; work.from = work.to) {
    work.to = work.from + step < blocks ? work.from + step : blocks;
    scl_team_run(team, run_part, &work);
    SCL_GO(scl_poll());
  }
done:
  scl_team_stop(team);
  free(work.memory);
  return status;
}
