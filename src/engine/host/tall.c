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

/* WORTH_A_TEAM numbers take one core some 80 us at 20 GB/s, to wake threads some 10. */
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

scl_status scl_host_gram(scl_context *ctx, scl_block a, scl_block w, scl_block c, bool *done) {
  const double *weight = scl_host_at(w);
  (void)ctx;
  *done = a.ld == a.nrow && c.ld == a.ncol;
  for (size_t i = 0; i < a.nrow && *done; i++) *done = weight[i] >= 0.0; /* of its roots */
  if (!*done) return SCL_OK;
  return scl_host_weighted_gram(scl_host_at(a), a.nrow, a.ncol, weight, scl_host_at(c));
}
