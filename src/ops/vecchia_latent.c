#include "ops/vecchia_latent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"
#include "ops/operation.h"
#include "ops/vecchia_private.h"

enum {
  MOST_STEPS = 2000,   /* of conjugate gradients */
  POLL_EVERY = 1 << 15 /* columns of the factor */
};

static const double tolerance = 1e-11; /* of residuals */

static scl_status fail_space(size_t numbers) {
  return scl_fail_memory(numbers * sizeof(double), 0, "a workspace");
}

static const int32_t *near_of(const scl_vecchia *v, size_t i) {
  return v->neighbours + i * v->stride;
}

scl_status scl_vecchia_latent_weights(scl_vecchia *v, const scl_covariance *kernel,
                                      double *weights) {
  double order = 0;
  SCL_TRY(scl_covariance_check(kernel, v->p));
  struct scl_vecchia_pass pass = scl_vecchia_begin_pass(v, &v->host, kernel, SCL_VECCHIA_WEIGHTS);
  pass.quiet = true;
  pass.weights = weights;
  pass.out = &order;
  return scl_vecchia_run(v, v->host.ctx, &pass);
}

/* ---- products and triangular solves, vectors in the order of the approximation -------------- */

/* w' x of column i. */
static double along(const scl_vecchia *v, const double *columns, size_t i, const double *x) {
  const double *w = columns + i * (v->m + 1);
  const int32_t *next = near_of(v, i);
  double sum = w[v->m] * x[i];
  for (size_t k = 0; k < v->m && next[k] >= 0; k++) sum += w[k] * x[next[k]];
  return sum;
}

/* x += a w of column i. */
static void add_column(const scl_vecchia *v, const double *columns, size_t i, double a, double *x) {
  const double *w = columns + i * (v->m + 1);
  const int32_t *next = near_of(v, i);
  x[i] += a * w[v->m];
  for (size_t k = 0; k < v->m && next[k] >= 0; k++) x[next[k]] += a * w[k];
}

/* out = P x */
static void times(const scl_vecchia *v, const double *weights, const double *d, const double *x,
                  double *out) {
  for (size_t i = 0; i < v->n; i++) out[i] = d[i] * x[i];
  for (size_t i = 0; i < v->n; i++) {
    add_column(v, weights, i, along(v, weights, i, x), out);
  }
}

/* x := (V V')^-1 x */
static void precondition(const scl_vecchia *v, const double *factor, double *x) {
  for (size_t i = v->n; i-- > 0;) {
    double own = factor[i * (v->m + 1) + v->m], at = x[i] / own;
    x[i] = 0;
    add_column(v, factor, i, -at, x);
    x[i] = at;
  }
  for (size_t i = 0; i < v->n; i++) {
    double own = factor[i * (v->m + 1) + v->m], at = x[i];
    x[i] = 0;
    x[i] = (at - along(v, factor, i, x)) / own;
  }
}

scl_status scl_vecchia_latent_square(const scl_vecchia *v, const double *weights, const double *g,
                                     double *out) {
  double sum = 0, *x = malloc(v->n * sizeof *x);
  if (x == NULL) return fail_space(v->n);
  for (size_t i = 0; i < v->n; i++) x[i] = g[v->order[i]];
  for (size_t i = 0; i < v->n; i++) {
    double u = along(v, weights, i, x);
    sum += u * u;
  }
  free(x);
  *out = sum;
  return SCL_OK;
}

/* ---- the incomplete factor ------------------------------------------------------------------ */

/* Adds w w' - v v' of column i at pairs of its neighbours that are in the pattern; place: 1 + the
 * number of a point among these neighbours, else 0. */
static void update_pairs(const scl_vecchia *v, size_t i, const double *w, const int32_t *place,
                         double *factor) {
  const int32_t *next = near_of(v, i);
  const double *own = factor + i * (v->m + 1);
  for (size_t b = 0; b < v->m && next[b] >= 0; b++) {
    const int32_t *of = near_of(v, (size_t)next[b]);
    double *to = factor + (size_t)next[b] * (v->m + 1);
    to[v->m] += w[b] * w[b] - own[b] * own[b];
    for (size_t k = 0; k < v->m && of[k] >= 0; k++) {
      int32_t a = place[of[k]];
      if (a > 0) to[k] += w[b] * w[a - 1] - own[b] * own[a - 1];
    }
  }
}

static scl_status not_pd(void) {
  return scl_fail(SCL_E_NOT_PD, "the precision matrix given the data is not positive definite");
}

/* Without negative elements of D, the Schur complement of what comes later is at least w w' + D,
 * which bounds the pivots. */
static scl_status factor_precision(const scl_vecchia *v, const double *weights, const double *d,
                                   double *factor, double *half) {
  size_t width = v->m + 1;
  int32_t *place = calloc(v->n, sizeof *place);
  scl_status status = SCL_OK;
  double sum = 0;
  bool bounded = true;
  if (place == NULL) return fail_space(v->n / 2);
  memset(factor, 0, v->n * width * sizeof *factor);
  for (size_t i = 0; i < v->n; i++) bounded = bounded && d[i] >= 0;
  for (size_t i = v->n; i-- > 0;) {
    const double *w = weights + i * width;
    double *own = factor + i * width, least = w[v->m] * w[v->m] + d[i];
    const int32_t *next = near_of(v, i);
    if (i % POLL_EVERY == 0) SCL_GO(scl_poll());
    own[v->m] += least;
    if (bounded && !(own[v->m] > least)) own[v->m] = least;
    if (!(own[v->m] > 0)) SCL_GO(not_pd());
    own[v->m] = sqrt(own[v->m]);
    sum += log(own[v->m] / w[v->m]);
    for (size_t k = 0; k < v->m && next[k] >= 0; k++) {
      own[k] = (own[k] + w[k] * w[v->m]) / own[v->m];
      place[next[k]] = (int32_t)k + 1;
    }
    update_pairs(v, i, w, place, factor);
    for (size_t k = 0; k < v->m && next[k] >= 0; k++) place[next[k]] = 0;
  }
  *half = sum;
done:
  free(place);
  return status;
}

/* ---- conjugate gradients -------------------------------------------------------------------- */

static double dot(const double *a, const double *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* x := P^-1 x; r, z, p, q: n numbers each. */
static scl_status solve_one(const scl_vecchia *v, const double *weights, const double *d,
                            const double *factor, double *x, double *r) {
  size_t n = v->n;
  double *z = r + n, *p = z + n, *q = p + n;
  memcpy(r, x, n * sizeof *x);
  memcpy(z, r, n * sizeof *z);
  memset(x, 0, n * sizeof *x);
  precondition(v, factor, z);
  memcpy(p, z, n * sizeof *p);
  double rz = dot(r, z, n), first = rz;
  for (int step = 0; step < MOST_STEPS && rz > first * tolerance * tolerance; step++) {
    SCL_TRY(scl_poll());
    times(v, weights, d, p, q);
    double curvature = dot(p, q, n), a = rz / curvature, before = rz;
    if (!(curvature > 0)) return not_pd();
    for (size_t i = 0; i < n; i++) {
      x[i] += a * p[i];
      r[i] -= a * q[i];
    }
    memcpy(z, r, n * sizeof *z);
    precondition(v, factor, z);
    rz = dot(r, z, n);
    for (size_t i = 0; i < n; i++) p[i] = z[i] + rz / before * p[i];
  }
  return SCL_OK;
}

scl_status scl_vecchia_latent_solve(const scl_vecchia *v, const double *weights, const double *d,
                                    size_t count, double *x, double *factor, double *half) {
  size_t n = v->n;
  double *memory = malloc(6 * n * sizeof *memory), *at = memory + n;
  scl_status status;
  if (memory == NULL) return fail_space(6 * n);
  for (size_t i = 0; i < n; i++) memory[i] = d[v->order[i]];
  SCL_GO(factor_precision(v, weights, memory, factor, half));
  for (size_t c = 0; c < count; c++) {
    for (size_t i = 0; i < n; i++) at[i] = x[(size_t)v->order[i] + c * n];
    SCL_GO(solve_one(v, weights, memory, factor, at, at + n));
    for (size_t i = 0; i < n; i++) x[(size_t)v->order[i] + c * n] = at[i];
  }
done:
  free(memory);
  return status;
}

/* ---- predictions ---------------------------------------------------------------------------- */

/* Points by their number in the order, the largest first. */
static void push(int32_t *heap, size_t n, int32_t point) {
  size_t at = n;
  for (; at > 0 && heap[(at - 1) / 2] < point; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = point;
}

static int32_t pop(int32_t *heap, size_t n) {
  int32_t top = heap[0], moved = heap[n - 1];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= n - 1) break;
    if (child + 1 < n - 1 && heap[child + 1] > heap[child]) child++;
    if (heap[child] <= moved) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
  return top;
}

typedef struct {
  const scl_vecchia *v;
  const double *factor, *given;
  const scl_vecchia_round *round;
  size_t count, columns; /* of all points; of `given` */
  double *mean, *variance;
  double *values; /* n for each thread, all 0 between points */
  int32_t *heaps; /* n for each thread */
  scl_team *team;
} round_work;

/* |V^-1 b|^2 for a sparse b in `x`, of which the heap has the `size` points; x becomes 0. */
static double square_solved(const round_work *r, double *x, int32_t *heap, size_t size,
                            unsigned char *seen) {
  const scl_vecchia *v = r->v;
  double sum = 0;
  while (size > 0) {
    size_t i = (size_t)pop(heap, size--);
    const double *w = r->factor + i * (v->m + 1);
    const int32_t *next = near_of(v, i);
    double at = x[i] / w[v->m];
    x[i] = 0;
    seen[i] = 0;
    sum += at * at;
    for (size_t k = 0; k < v->m && next[k] >= 0; k++) {
      x[next[k]] -= at * w[k];
      if (seen[next[k]]) continue;
      seen[next[k]] = 1;
      push(heap, size++, next[k]);
    }
  }
  return sum;
}

static void predict_part(void *arg, int part, int parts) {
  const round_work *r = arg;
  const scl_vecchia *v = r->v;
  double *x = r->values + (size_t)part * v->n;
  int32_t *heap = r->heaps + 2 * (size_t)part * v->n;
  unsigned char *seen = (unsigned char *)(heap + v->n);
  size_t stride = scl_vecchia_stride(v->most);
  for (size_t i = (size_t)part; i < r->round->n; i += (size_t)parts) {
    const int32_t *next = r->round->neighbours + i * stride;
    const double *w = r->round->weights + i * (v->most + 1);
    size_t at = r->round->first + i, size = 0;
    double last = w[v->most];
    for (size_t c = 0; c < r->columns; c++) r->mean[at + c * r->count] = 0;
    for (size_t k = 0; k < v->most && next[k] >= 0; k++) {
      double b = -w[k] / last;
      size_t row = (size_t)v->order[next[k]];
      for (size_t c = 0; c < r->columns; c++) {
        r->mean[at + c * r->count] += b * r->given[row + c * v->n];
      }
      x[next[k]] = b;
      seen[next[k]] = 1;
      push(heap, size++, next[k]);
    }
    r->variance[at] = 1.0 / (last * last) + square_solved(r, x, heap, size, seen);
  }
}

static scl_status predict_round(void *arg, const scl_vecchia_round *round) {
  round_work *w = arg;
  w->round = round;
  scl_team_run(w->team, predict_part, w);
  return scl_poll();
}

scl_status scl_vecchia_latent_predict(scl_vecchia *v, const scl_covariance *kernel, const double *x,
                                      size_t count, const double *given, size_t columns,
                                      const double *factor, double *mean, double *variance) {
  size_t threads = (size_t)scl_copy_threads();
  SCL_TRY(scl_covariance_check(kernel, v->p));
  if (count == 0) return SCL_OK;
  round_work work = {.v = v,
                     .factor = factor,
                     .given = given,
                     .count = count,
                     .columns = columns,
                     .mean = mean,
                     .variance = variance,
                     .values = calloc(threads * v->n, sizeof *work.values),
                     .heaps = calloc(2 * threads * v->n, sizeof *work.heaps),
                     .team = threads > 1 ? scl_team_start((int)threads) : NULL};
  scl_status status =
      work.values == NULL || work.heaps == NULL
          ? fail_space(2 * threads * v->n)
          : scl_vecchia_rounds(v, kernel, x, NULL, count, false, predict_round, &work);
  scl_team_stop(work.team);
  free(work.values);
  free(work.heaps);
  return status;
}
