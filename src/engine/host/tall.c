/* y = alpha A' x + beta y for a tall A, on several threads: the derivative of every linear
 * predictor. Rows are cut into tiles of one size, and the sums of the tiles are added in their
 * order, so that the bits do not depend on the number of threads. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"
#include "engine/host/host.h"

enum { TILE = 8192, LANES = 8, WORTH_A_TEAM = 200000 };

typedef struct {
  size_t m, n, lda, tiles;
  const double *a, *x;
  double *sum; /* n for each tile */
  _Atomic size_t next;
  _Atomic bool stop;
} job;

static double dot(size_t n, const double *a, const double *x) {
  double lane[LANES] = {0.0}, sum = 0.0;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    for (size_t l = 0; l < LANES; l++) lane[l] += a[i + l] * x[i + l];
  }
  for (; i < n; i++) sum += a[i] * x[i];
  for (size_t l = 0; l < LANES; l++) sum += lane[l];
  return sum;
}

static void run_part(void *arg, int part, int parts) {
  job *j = arg;
  (void)parts;
  for (;;) {
    const size_t tile = atomic_fetch_add(&j->next, 1);
    if (tile >= j->tiles || atomic_load(&j->stop)) return;
    const size_t first = tile * TILE, rows = scl_min(TILE, j->m - first);
    for (size_t c = 0; c < j->n; c++) {
      j->sum[tile * j->n + c] = dot(rows, j->a + first + c * j->lda, j->x + first);
    }
    /* part 0 is the caller's thread, which alone may ask */
    if (part == 0 && scl_poll() != SCL_OK) atomic_store(&j->stop, true);
  }
}

bool scl_host_is_tall(scl_block a) {
  return a.nrow >= 2 * TILE && a.ncol <= a.nrow / TILE * 64;
}

scl_status scl_host_tall_product(double alpha, scl_block a, const double *x, double beta,
                                 double *y) {
  job j = {.m = a.nrow,
           .n = a.ncol,
           .lda = a.ld,
           .tiles = scl_ceil_div(a.nrow, TILE),
           .a = scl_host_at(a),
           .x = x};
  j.sum = malloc(j.tiles * j.n * sizeof *j.sum);
  if (j.sum == NULL) return scl_fail_memory(j.tiles * j.n * sizeof *j.sum, 0, "a product");
  int threads = j.m * j.n < WORTH_A_TEAM ? 1 : scl_copy_threads();
  if ((size_t)threads > j.tiles) threads = (int)j.tiles;
  scl_team *team = threads > 1 ? scl_team_start(threads) : NULL;
  scl_team_run(team, run_part, &j);
  scl_team_stop(team);
  for (size_t c = 0; c < j.n && !j.stop; c++) {
    double sum = 0.0;
    for (size_t tile = 0; tile < j.tiles; tile++) sum += j.sum[tile * j.n + c];
    y[c] = beta == 0.0 ? alpha * sum : alpha * sum + beta * y[c];
  }
  free(j.sum);
  return j.stop ? SCL_E_INTERRUPT : SCL_OK;
}

scl_status scl_host_weighted_gram(const double *x, size_t n, size_t p, const double *w,
                                  double *out) {
  enum { GRAM_BYTES = 256 << 10, GRAM_POLL = 256 }; /* of a block; blocks between two polls */
  size_t step = GRAM_BYTES / sizeof(double) / (p + 1);
  if (step < 64) step = 64;
  double *block = malloc(step * (p + 1) * sizeof *block);
  if (block == NULL) return scl_fail_memory(step * (p + 1) * sizeof *block, 0, "X' W X");
  double *root = block + step * p;
  scl_status status = SCL_OK;
  memset(out, 0, p * p * sizeof *out);
  for (size_t first = 0, i = 0; first < n && p > 0 && status == SCL_OK; first += step, i++) {
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

scl_status scl_host_gram(scl_context *ctx, scl_block a, scl_block w, scl_block c, bool *done) {
  const double *weight = scl_host_at(w);
  (void)ctx;
  *done = a.ld == a.nrow && c.ld == a.ncol;
  for (size_t i = 0; i < a.nrow && *done; i++) *done = weight[i] >= 0.0; /* it takes their roots */
  if (!*done) return SCL_OK;
  return scl_host_weighted_gram(scl_host_at(a), a.nrow, a.ncol, weight, scl_host_at(c));
}
