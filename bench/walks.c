/* Trajectories of the sampler on the first GPU (src/ops/glm_walk.c): microseconds of a point, all
 * chains together, with a metric of low rank as cl_sample() finds it, and of a request of two.
 *
 * A program of its own, over the core without R: `make -C bench ../build/bench/walks`, then
 * `build/bench/walks inst/kernels [ROWS COLUMNS CHAINS POINTS]`, the last three at most 64, 64 and
 * 32. The last column are bits of all records: equal ones of two programs mean equal records. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "ops/glm.h"

#include "device.h"

enum { REPEATS = 25, RANK = 2, MOST_COLUMNS = 64, MOST_CHAINS = 64, MOST_POINTS = 32 };

static uint64_t seed = 1;
static double number(void) { /* between -1 and 1 */
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)seed * 0x1p-63;
}

static scl_glm *make_data(size_t n, size_t p) {
  double *x = malloc(n * p * sizeof *x), *y = malloc(n * sizeof *y);
  scl_mat *m;
  scl_glm *glm;
  for (size_t i = 0; i < n * p; i++) x[i] = number();
  for (size_t i = 0; i < n; i++) y[i] = number() < tanh(x[i] / 2.0);
  const scl_glm_data data = {.y = y, .n_y = n};
  check(scl_mat_from_host(ctx, x, n, p, SCL_GENERAL, &m));
  check(scl_glm_create(SCL_GLM_BERNOULLI_LOGIT, &data, m, &glm));
  scl_mat_release(m);
  free(x), free(y);
  return glm;
}

typedef struct {
  double start[6 * MOST_CHAINS * (1 + MOST_COLUMNS)];
  double record[MOST_POINTS * MOST_CHAINS * (3 + 2 * MOST_COLUMNS)];
  double scale[1 + MOST_COLUMNS], weight[RANK], matrix[RANK * (1 + MOST_COLUMNS)];
  size_t turn[MOST_CHAINS], valid[MOST_CHAINS];
  scl_glm_walk_metric metric[MOST_CHAINS];
} trajectory;

static void begin(trajectory *t, size_t n, size_t p, size_t chains, size_t points) {
  const size_t d = 1 + p, part = chains * d;
  for (size_t k = 0; k < d; k++) t->scale[k] = 1.0 / sqrt((double)n);
  for (size_t k = 0; k < RANK; k++) t->weight[k] = 0.5;
  for (size_t k = 0; k < RANK * d; k++) t->matrix[k] = number() / sqrt((double)d);
  for (size_t k = 0; k < part; k++) {
    t->start[k] = t->start[3 * part + k] = k % d == 1 ? 1.0 : 0.0;
    t->start[part + k] = number();
    t->start[4 * part + k] = -t->start[part + k];
    t->start[2 * part + k] = 0.3;
    t->start[5 * part + k] = -0.3;
  }
  for (size_t v = 0; v < chains; v++) {
    t->turn[v] = 1 + v % points;
    t->metric[v] = (scl_glm_walk_metric){false, RANK, t->scale, t->weight, t->matrix};
  }
}

/* The median of the microseconds of a request of so many points. */
static double measure(scl_glm *glm, trajectory *t, size_t chains, size_t points, uint64_t *bits) {
  double times[REPEATS];
  const int repeats = getenv("STATCL_BENCH_ONCE") ? 1 : REPEATS;
  const scl_glm_walk_task task = {points, chains,    t->start,  t->turn,
                                  NULL,   t->record, t->metric, SCL_GLM_ALPHA_FIRST};
  for (int run = repeats > 1 ? -3 : 0; run < repeats; run++) {
    const int64_t from = scl_clock_us();
    check(scl_glm_walk_begin(glm, 0, &task));
    check(scl_glm_walk_end(glm, 0, &task, t->valid));
    times[run < 0 ? 0 : run] = (double)(scl_clock_us() - from);
    for (size_t v = 0; v < chains; v++) {
      if (t->valid[v] < points) fprintf(stderr, "chain %zu: %zu valid\n", v, t->valid[v]);
    }
  }
  *bits = 0;
  for (size_t i = 0; i < points * chains * (3 + 2 * scl_glm_ncol(glm)); i++) {
    uint64_t own;
    memcpy(&own, &t->record[i], sizeof own);
    *bits = (*bits ^ own) * 1099511628211u;
  }
  qsort(times, (size_t)repeats, sizeof *times, ascending);
  return times[repeats / 2];
}

static void print_row(size_t n, size_t p, size_t chains, size_t points) {
  static trajectory t;
  uint64_t few_bits, bits;
  seed = 1;
  scl_glm *glm = make_data(n, p);
  begin(&t, n, p, chains, points);
  const double few = measure(glm, &t, chains, 2, &few_bits);
  const double many = measure(glm, &t, chains, points, &bits);
  printf("%8zu x %2zu, %2zu chains: %7.2f us a point, %7.1f us a request of two, %016llx\n", n, p,
         chains, points > 2 ? (many - few) / (double)(points - 2) : NAN, few,
         (unsigned long long)bits);
  fflush(stdout);
  scl_glm_release(glm);
}

int main(int argc, char **argv) {
  static const size_t rows[] = {10000, 100000, 1000000}, chains[] = {1, 4, 16, 64};
  const scl_device_type type = getenv("STATCL_BENCH_CPU") ? SCL_DEVICE_CPU : SCL_DEVICE_GPU;
  const scl_device_info *device = open_device(argv[1], type, "no GPU");
  scl_device_profiling(false);
  scl_cl_glm_force(getenv("STATCL_BENCH_LAYOUT"));
  printf("%s\n", device->name);
  if (argc == 6) {
    static const long most[] = {LONG_MAX, MOST_COLUMNS, MOST_CHAINS, MOST_POINTS};
    size_t of[4];
    for (int k = 0; k < 4; k++) {
      const long value = atol(argv[2 + k]);
      if (value < 1 || value > most[k]) {
        fprintf(stderr, "'%s' is not 1 to %ld\n", argv[2 + k], most[k]);
        return 1;
      }
      of[k] = (size_t)value;
    }
    print_row(of[0], of[1], of[2], of[3]);
    return 0;
  }
  for (size_t i = 0; i < 3; i++) {
    for (size_t k = 0; k < 4; k++) print_row(rows[i], 10, chains[k], MOST_POINTS);
  }
  return 0;
}
