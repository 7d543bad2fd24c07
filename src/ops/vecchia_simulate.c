/* Draws of a process by Vecchia's approximation. Without a condition points come in a maximin
 * order, each one given the nearest before it. For draws given the data the observations are drawn
 * too, and the prediction of the residuals (data minus drawn observations) is added (Journel and
 * Huijbregts, 1978). */
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "ops/operation.h"
#include "ops/vecchia_order.h"
#include "ops/vecchia_private.h"

enum { ROUND = 1 << 14 }; /* points whose weights are in memory at the same time */

typedef struct {
  const scl_vecchia *v;
  size_t data, count, all; /* the observations that are drawn too, the points, both */
  size_t draws;
  const double *x, *basis, *b, *noise;
  double *values;  /* all x draws: the observations in their order, then the points */
  double *at;      /* coordinates of all in units of distances */
  double *records; /* of all in the order of the draws */
  double *weights; /* of a round */
  int32_t *order, *neighbours;
} simulation;

/* The coordinate c of one of all. */
static double coordinate(const simulation *s, size_t i, size_t c) {
  const scl_vecchia *v = s->v;
  return i < s->data ? v->records[i * scl_vecchia_record_size(v) + c]
                     : s->x[i - s->data + c * s->count];
}

/* The order of all, their records in it, and neighbours. */
static scl_status arrange(simulation *s) {
  const scl_vecchia *v = s->v;
  size_t p = v->p, size = scl_vecchia_record_size(v);
  for (size_t i = 0; i < s->all; i++) {
    for (size_t c = 0; c < p; c++) s->at[i * p + c] = coordinate(s, i, c) * v->scale[c];
  }
  SCL_TRY(scl_vecchia_order(s->at, s->all, p, s->order));
  for (size_t k = 0; k < s->all; k++) {
    size_t i = (size_t)s->order[k];
    memset(s->records + k * size, 0, size * sizeof *s->records);
    for (size_t c = 0; c < p; c++) {
      s->records[k * size + c] = coordinate(s, i, c);
      s->at[k * p + c] = coordinate(s, i, c) * v->scale[c];
    }
  }
  return scl_vecchia_neighbours(s->at, s->all, p, v->wanted, scl_vecchia_stride(v->wanted),
                                s->neighbours);
}

/* Draws of point k of the order from its weights, in place of the normal numbers. */
static void draw(const simulation *s, size_t k, const double *w) {
  size_t m = s->v->wanted;
  const int32_t *next = s->neighbours + k * scl_vecchia_stride(m);
  double *to = s->values + s->order[k], by = 1.0 / w[m];
  for (size_t d = 0; d < s->draws; d++) to[d * s->all] *= by;
  for (size_t j = 0; j < m && next[j] >= 0; j++) {
    const double *of = s->values + s->order[next[j]];
    for (size_t d = 0; d < s->draws; d++) to[d * s->all] -= w[j] * by * of[d * s->all];
  }
}

/* Adds the mean of point i, and the prediction from the data less mean, draw and noise. */
static void add_prediction(const simulation *s, size_t i, const double *w, const int32_t *next) {
  const scl_vecchia *v = s->v;
  size_t size = scl_vecchia_record_size(v), m = v->most, q = v->q;
  double *to = s->values + s->data + i;
  for (size_t d = 0; d < s->draws; d++) {
    const double *b = s->b + d * q;
    for (size_t k = 0; k < q; k++) to[d * s->all] += s->basis[i + k * s->count] * b[k];
    for (size_t j = 0; j < m && next[j] >= 0; j++) {
      size_t near = (size_t)next[j];
      const double *of = v->records + near * size + v->p;
      double e = of[0] - s->values[near + d * s->all];
      e -= s->noise[(size_t)v->order[near] + d * v->n];
      for (size_t k = 0; k < q; k++) e -= of[1 + k] * b[k];
      to[d * s->all] -= w[j] / w[m] * e;
    }
  }
}

static scl_status add_round(void *arg, const scl_vecchia_round *r) {
  const simulation *s = arg;
  size_t m = s->v->most;
  for (size_t i = 0; i < r->n; i++) {
    add_prediction(s, r->first + i, r->weights + i * (m + 1),
                   r->neighbours + i * scl_vecchia_stride(m));
  }
  return SCL_OK;
}

static scl_status run(simulation *s, const scl_covariance *kernel) {
  const scl_vecchia *v = s->v;
  size_t size = scl_vecchia_record_size(v);
  double failed = 0;
  struct scl_vecchia_pass pass = scl_vecchia_begin_pass(v, &v->host, kernel, SCL_VECCHIA_WEIGHTS);
  pass.out = &failed;
  pass.weights = s->weights;
  pass.m = v->wanted;
  SCL_TRY(arrange(s));
  for (size_t low = 0, n; low < s->all; low += n) {
    n = scl_min(ROUND, s->all - low);
    SCL_TRY(scl_vecchia_weigh(v, &pass, s->records, s->all, s->records + low * size,
                              s->neighbours + low * scl_vecchia_stride(v->wanted), n));
    for (size_t i = 0; i < n; i++) draw(s, low + i, s->weights + i * (v->wanted + 1));
  }
  if (s->data == 0) return SCL_OK;
  return scl_vecchia_rounds(v, kernel, s->x, NULL, s->count, true, add_round, s);
}

scl_status scl_vecchia_simulate(scl_vecchia *v, const scl_covariance *kernel, const double *x,
                                const double *basis, size_t count, const double *b,
                                const double *noise, size_t draws, double *values) {
  SCL_TRY(scl_covariance_check(kernel, v->p));
  if (v->outputs != 1) return scl_fail_argument("y", "draws need one column of 'y'");
  if (count == 0) return SCL_OK;
  if (count > INT32_MAX - v->n) return scl_fail_argument("newdata", "too many points");
  SCL_TRY(scl_require_finite_data(x, count, v->p, "newdata"));
  simulation s = {.v = v,
                  .data = noise == NULL ? 0 : v->n,
                  .count = count,
                  .draws = draws,
                  .x = x,
                  .basis = basis,
                  .b = b,
                  .noise = noise,
                  .values = values};
  s.all = s.data + count;
  size_t size = scl_vecchia_record_size(v), rows = scl_min(ROUND, s.all);
  size_t numbers = s.all * (size + v->p) + rows * (v->wanted + 1);
  scl_status status = SCL_OK;
  s.records = malloc(numbers * sizeof *s.records);
  s.order = malloc(s.all * (1 + scl_vecchia_stride(v->wanted)) * sizeof *s.order);
  if (s.records == NULL || s.order == NULL) {
    status = scl_fail_memory(numbers * sizeof *s.records, 0, "a simulation");
  } else {
    s.at = s.records + s.all * size;
    s.weights = s.at + s.all * v->p;
    s.neighbours = s.order + s.all;
    status = run(&s, kernel);
  }
  free(s.records);
  free(s.order);
  return status;
}
