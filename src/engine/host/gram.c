/* X' W X on the host, on several threads. The rows are cut into parts, which depend on their number
 * only, so that the bits do not depend on the number of threads. */
#include "engine/host/gram.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"
#include "engine/host/host.h"
#include "engine/host/wide.h"

enum {
  GRAM_BYTES = 192 << 10, /* of a block */
  GRAM_POLL = 64,         /* blocks between two polls */
  WORTH_A_TEAM = 1000000  /* multiplications */
};

#if defined(__GNUC__)
typedef double lanes __attribute__((vector_size(8 * SCL_GRAM_LANES), aligned(8), may_alias));
#define INLINED static inline __attribute__((always_inline))
enum { AT_ONCE = SCL_GRAM_LANES };
#else
typedef double lanes;
#define INLINED static inline
enum { AT_ONCE = 1 };
#endif

size_t scl_gram_step(size_t q) {
  const size_t rows = GRAM_BYTES / sizeof(double) / (q + 1);
  if (rows < 64) return 64;
  return rows > 512 ? 512 : rows / SCL_GRAM_LANES * SCL_GRAM_LANES;
}

INLINED double total(lanes v) {
  double sum = 0.0;
  for (int l = 0; l < AT_ONCE; l++) sum += ((const double *)&v)[l];
  return sum;
}

/* Four columns from a by two from b. */
INLINED void add_tile(const double *a, const double *b, size_t ld, double *sum, size_t q) {
  lanes s[8];
  memset(s, 0, sizeof s);
  for (size_t i = 0; i < ld; i += AT_ONCE) {
    const lanes left = *(const lanes *)(b + i), right = *(const lanes *)(b + ld + i);
    for (size_t k = 0; k < 4; k++) {
      const lanes v = *(const lanes *)(a + k * ld + i);
      s[k] += v * left;
      s[4 + k] += v * right;
    }
  }
  for (size_t k = 0; k < 4; k++) {
    sum[k] += total(s[k]);
    sum[q + k] += total(s[4 + k]);
  }
}

INLINED void add_all(const double *b, size_t rows, size_t q, double *sum) {
  for (size_t j = 0; j < q; j += 2)
    for (size_t i = j / 4 * 4; i < q; i += 4)
      add_tile(b + i * rows, b + j * rows, rows, sum + j * q + i, q);
}

SCL_BY_WIDTH(extern, scl_gram_add, add_all, (const double *b, size_t rows, size_t q, double *sum),
             (b, rows, q, sum))

typedef struct {
  const double *x, *w;
  size_t n, p, q, step, parts, part_rows;
  double *sums, *blocks; /* q x q for each part; step x q for each thread */
  _Atomic size_t next;
  _Atomic bool stop;
} job;

static void add_part(job *j, size_t part, double *block, bool polls) {
  const size_t end = scl_min(j->n, (part + 1) * j->part_rows);
  double *sum = j->sums + part * j->q * j->q;
  double root[512];
  for (size_t first = part * j->part_rows, i = 0; first < end; first += j->step, i++) {
    const size_t rows = scl_min(end - first, j->step), ld = scl_gram_padded(rows);
    for (size_t r = 0; r < rows; r++) root[r] = sqrt(j->w[first + r]);
    memset(block, 0, ld * j->q * sizeof *block);
    for (size_t c = 0; c < j->p; c++) {
      const double *from = j->x + c * j->n + first;
      for (size_t r = 0; r < rows; r++) block[c * ld + r] = from[r] * root[r];
    }
    scl_gram_add(block, ld, j->q, sum);
    if (polls && i % GRAM_POLL == GRAM_POLL - 1 && scl_poll() != SCL_OK)
      atomic_store(&j->stop, true);
    if (atomic_load(&j->stop)) return;
  }
}

static void run_thread(void *arg, int thread, int threads) {
  job *j = arg;
  (void)threads;
  for (;;) {
    const size_t part = atomic_fetch_add(&j->next, 1);
    if (part >= j->parts) return;
    add_part(j, part, j->blocks + (size_t)thread * j->step * j->q, thread == 0);
  }
}

/* By BLAS: many columns. */
static scl_status gram_by_blas(const double *x, size_t n, size_t p, const double *w, double *out) {
  size_t step = scl_gram_step(p);
  double *block = malloc(step * (p + 1) * sizeof *block);
  if (block == NULL) return scl_fail_memory(step * (p + 1) * sizeof *block, 0, "X' W X");
  double *root = block + step * p;
  scl_status status = SCL_OK;
  memset(out, 0, p * p * sizeof *out);
  for (size_t first = 0, i = 0; first < n && status == SCL_OK; first += step, i++) {
    size_t rows = n - first < step ? n - first : step;
    for (size_t r = 0; r < rows; r++) root[r] = sqrt(w[first + r]);
    for (size_t j = 0; j < p; j++) {
      const double *from = x + j * n + first;
      for (size_t r = 0; r < rows; r++) block[j * rows + r] = from[r] * root[r];
    }
    scl_host_lib.syrk('L', 'T', (int)p, (int)rows, 1.0, block, (int)rows, 1.0, out, (int)p);
    if (i % GRAM_POLL == GRAM_POLL - 1) status = scl_poll();
  }
  free(block);
  for (size_t j = 0; j < p; j++)
    for (size_t k = 0; k < j; k++) out[j * p + k] = out[k * p + j];
  return status;
}

scl_status scl_host_weighted_gram(const double *x, size_t n, size_t p, const double *w,
                                  double *out) {
  if (p > SCL_GRAM_MOST) return gram_by_blas(x, n, p, w, out);
  job j = {.x = x, .w = w, .n = n, .p = p, .q = scl_gram_padded(p)};
  j.step = scl_gram_step(j.q);
  j.part_rows = scl_gram_padded(scl_ceil_div(n, SCL_GRAM_PARTS));
  if (j.part_rows < j.step) j.part_rows = j.step;
  j.parts = scl_ceil_div(n, j.part_rows);
  int threads = n * p * p < WORTH_A_TEAM ? 1 : scl_copy_threads();
  if ((size_t)threads > j.parts) threads = (int)scl_max(j.parts, 1);
  const size_t sums = (j.parts + 1) * j.q * j.q, bytes = j.step * j.q * (size_t)threads;
  j.sums = calloc(sums + bytes + 1, sizeof *j.sums);
  if (j.sums == NULL) return scl_fail_memory((sums + bytes) * sizeof *j.sums, 0, "X' W X");
  j.blocks = j.sums + sums;
  scl_team *team = threads > 1 ? scl_team_start(threads) : NULL;
  scl_team_run(team, run_thread, &j);
  scl_team_stop(team);
  for (size_t c = 0; c < p; c++)
    for (size_t r = c; r < p; r++) {
      double sum = 0.0;
      for (size_t part = 0; part < j.parts; part++) sum += j.sums[(part * j.q + c) * j.q + r];
      out[c * p + r] = out[r * p + c] = sum;
    }
  free(j.sums);
  return j.stop ? SCL_E_INTERRUPT : SCL_OK;
}
