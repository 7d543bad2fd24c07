/* Residuals and their products with the columns and with themselves, in one pass over x: the rows
 * are taken in blocks that stay in the cache. They are cut into parts as in gram.c. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/sizes.h"
#include "base/threads.h"
#include "engine/host/blas.h"
#include "engine/host/gram.h"
#include "engine/host/host.h"
#include "engine/host/wide.h"

enum {
  ROWS = 512,           /* of a block */
  WORTH_A_TEAM = 200000 /* numbers of x: as in engine/host/tall.c */
};

#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif

typedef struct {
  const double *x, *y, *beta;
  size_t n, p, parts, part_rows;
  double *rest; /* NULL unless wanted */
  double *sums; /* p + 1 for each part */
  _Atomic size_t next;
} job;

INLINED void add_rows(const job *j, size_t first, size_t rows, double *sum) {
  double block[ROWS];
  double *rest = j->rest != NULL ? j->rest + first : block;
  const double sign = j->y != NULL ? -1.0 : 1.0;
  for (size_t i = 0; i < rows; i++) rest[i] = j->y != NULL ? j->y[first + i] : 0.0;
  for (size_t c = 0; c < j->p; c++) {
    const double *x = j->x + c * j->n + first, beta = sign * j->beta[c];
    for (size_t i = 0; i < rows; i++) rest[i] += x[i] * beta;
  }
  for (size_t c = 0; c <= j->p && j->y != NULL; c++) {
    const double *x = c < j->p ? j->x + c * j->n + first : rest;
    double s[8] = {0.0};
    size_t i = 0;
    for (; i + 8 <= rows; i += 8)
      for (size_t k = 0; k < 8; k++) s[k] += x[i + k] * rest[i + k];
    for (; i < rows; i++) s[0] += x[i] * rest[i];
    sum[c] += ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
  }
}

SCL_BY_WIDTH(static, add_by_width, add_rows, (const job *j, size_t first, size_t rows, double *sum),
             (j, first, rows, sum))

static void run_thread(void *arg, int thread, int threads) {
  job *j = arg;
  (void)thread;
  (void)threads;
  for (;;) {
    const size_t part = atomic_fetch_add(&j->next, 1);
    if (part >= j->parts) return;
    const size_t end = scl_min(j->n, (part + 1) * j->part_rows);
    for (size_t first = part * j->part_rows; first < end; first += ROWS) {
      add_by_width(j, first, scl_min(end - first, ROWS), j->sums + part * (j->p + 1));
    }
  }
}

scl_status scl_host_rest(const double *x, size_t n, size_t p, const double *y, const double *beta,
                         double *rest, double *slope) {
  job j = {.x = x, .y = y, .beta = beta, .n = n, .p = p, .rest = rest};
  j.part_rows = scl_ceil_div(n, SCL_GRAM_PARTS);
  if (j.part_rows < ROWS) j.part_rows = ROWS;
  j.parts = scl_ceil_div(n, j.part_rows);
  int threads = n * p < WORTH_A_TEAM ? 1 : scl_copy_threads();
  if ((size_t)threads > j.parts) threads = (int)scl_max(j.parts, 1);
  const size_t numbers = j.parts * (p + 1) + 1;
  j.sums = calloc(numbers, sizeof *j.sums);
  if (j.sums == NULL) return scl_fail_memory(numbers * sizeof *j.sums, 0, "X' r");
  scl_team *team = threads > 1 ? scl_team_start(threads) : NULL;
  scl_team_run(team, run_thread, &j);
  scl_team_stop(team);
  for (size_t c = 0; c <= p && y != NULL; c++) {
    slope[c] = 0.0;
    for (size_t part = 0; part < j.parts; part++) slope[c] += j.sums[part * (p + 1) + c];
  }
  free(j.sums);
  return scl_poll();
}
