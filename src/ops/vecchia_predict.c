/* Vecchia's approximation conditioned on the data: the sparse precision matrix, and predictions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "ops/gp_private.h"
#include "ops/vecchia_order.h"
#include "ops/vecchia_private.h"

enum { ROUND = 1 << 14 }; /* points whose weights are in memory at the same time */

static scl_status fail_space(size_t numbers) {
  return scl_fail_memory(numbers * sizeof(double), 0, "a workspace");
}

/* ---- the data given all others -------------------------------------------------------------- */

/* A point's part of Q Z, in `product` (n x columns), and of the diagonal of Q. */
static void scatter(const scl_vecchia *v, size_t i, const double *w, double *product,
                    double *diagonal) {
  const int32_t *next = v->neighbours + i * v->stride;
  size_t size = scl_vecchia_record_size(v), columns = v->outputs + v->q;
  for (size_t c = 0; c < columns; c++) {
    double e = w[v->m] * v->records[i * size + v->p + c];
    for (size_t k = 0; k < v->m && next[k] >= 0; k++) {
      e += w[k] * v->records[(size_t)next[k] * size + v->p + c];
    }
    product[i + c * v->n] += e * w[v->m];
    for (size_t k = 0; k < v->m && next[k] >= 0; k++)
      product[(size_t)next[k] + c * v->n] += e * w[k];
  }
  diagonal[i] += w[v->m] * w[v->m];
  for (size_t k = 0; k < v->m && next[k] >= 0; k++) diagonal[next[k]] += w[k] * w[k];
}

/* From Q Z and the diagonal of Q, in the order of the rows: the weights, and the diagonal of P. */
static void project(const scl_vecchia *v, const scl_vecchia_solution *s, const double *product,
                    const double *diagonal, double *weights, double *precisions) {
  for (size_t i = 0; i < v->n; i++) {
    size_t row = (size_t)v->order[i];
    const double *h = product + i + v->outputs * v->n;
    for (size_t y = 0; y < v->outputs; y++) {
      double sum = product[i + y * v->n];
      for (size_t k = 0; k < v->q; k++) sum -= h[k * v->n] * s->b[k + y * v->q];
      weights[row + y * v->n] = sum;
    }
    precisions[row] = diagonal[i];
    for (size_t j = 0; j < v->q; j++) {
      double sum = 0;
      for (size_t k = 0; k <= j; k++) sum += s->root_inverse[j + k * v->q] * h[k * v->n];
      precisions[row] -= sum * sum;
    }
  }
}

scl_status scl_vecchia_condition(scl_vecchia *v, const scl_covariance *kernel, scl_gp_trend trend,
                                 double *value, double *b, double *a_inverse, double *weights,
                                 double *precisions) {
  size_t q = v->q, columns = v->outputs + q, rows = scl_min(ROUND, v->n);
  size_t numbers = v->n * (columns + 1) + rows * (v->m + 1);
  scl_vecchia_space space = {0};
  double found = 0, *product = calloc(numbers, sizeof *product);
  scl_status status;
  if (product == NULL) return fail_space(numbers);
  double *diagonal = product + v->n * columns, *w = diagonal + v->n, order = 0;
  SCL_GO(scl_vecchia_begin(v, kernel, &space));
  SCL_GO(scl_vecchia_sums(v, scl_vecchia_fast_copy(v), kernel, trend, &space, &found));
  memcpy(b, space.s.b, q * v->outputs * sizeof *b);
  scl_gp_invert(space.s.root_inverse, q, a_inverse);
  struct scl_vecchia_pass pass = scl_vecchia_begin_pass(v, &v->host, kernel, SCL_VECCHIA_WEIGHTS);
  pass.weights = w;
  pass.out = &order;
  for (; pass.first < v->n; pass.first += rows) {
    pass.n = scl_min(rows, v->n - pass.first);
    SCL_GO(scl_vecchia_run(v, v->host.ctx, &pass));
    for (size_t i = 0; i < pass.n; i++) {
      scatter(v, pass.first + i, w + i * (v->m + 1), product, diagonal);
    }
  }
  *value = found;
  if (v->blocks != NULL && q > 0) { /* Q is that of single points, so b must be too */
    scl_vecchia_copy plain = v->host;
    plain.blocks = NULL;
    SCL_GO(scl_vecchia_sums(v, &plain, kernel, trend, &space, &found));
  }
  project(v, &space.s, product, diagonal, weights, precisions);
done:
  free(space.memory);
  free(product);
  return status;
}

/* ---- predictions ---------------------------------------------------------------------------- */

/* The `most` observations nearest to `at` (count points as scl_vecchia_points() gives them), in
 * columns of scl_vecchia_stride(most). */
static scl_status find_nearest(const scl_vecchia *v, const double *at, size_t count,
                               int32_t *neighbours) {
  size_t size = scl_vecchia_record_size(v);
  double *points = malloc((v->n * v->p + 1) * sizeof *points);
  if (points == NULL) return fail_space(v->n * v->p);
  for (size_t i = 0; i < v->n; i++) {
    for (size_t c = 0; c < v->p; c++) points[i * v->p + c] = v->records[i * size + c] * v->scale[c];
  }
  scl_status status = scl_vecchia_nearest(points, v->n, v->p, at, count, v->most,
                                          scl_vecchia_stride(v->most), neighbours);
  free(points);
  return status;
}

scl_status scl_vecchia_weigh(const scl_vecchia *v, struct scl_vecchia_pass *pass, double *all,
                             size_t rows, double *records, int32_t *neighbours, size_t count) {
  size_t size = scl_vecchia_record_size(v), ld = scl_vecchia_stride(pass->m) / 2;
  scl_mat *from = NULL, *at = NULL, *next = NULL;
  scl_status status;
  SCL_GO(scl_mat_wrap(v->host.ctx, all, size, rows, SCL_GENERAL, &from));
  SCL_GO(scl_mat_wrap(v->host.ctx, records, size, count, SCL_GENERAL, &at));
  SCL_GO(scl_mat_wrap(v->host.ctx, (double *)neighbours, ld, count, SCL_GENERAL, &next));
  pass->n = count;
  pass->quiet = true;
  pass->records = scl_mat_block(from);
  pass->at = scl_mat_block(at);
  pass->neighbours = scl_mat_block(next);
  status = scl_vecchia_run(v, v->host.ctx, pass);
done:
  scl_mat_release(from);
  scl_mat_release(at);
  scl_mat_release(next);
  return status;
}

/* Records of n points from `first` on; without a basis its part is 0. */
static void write_points(const scl_vecchia *v, const double *x, const double *basis, size_t first,
                         size_t n, size_t count, double *records) {
  size_t size = scl_vecchia_record_size(v);
  memset(records, 0, n * size * sizeof *records);
  for (size_t i = 0; i < n; i++, records += size) {
    for (size_t c = 0; c < v->p; c++) records[c] = x[first + i + c * count];
    for (size_t k = 0; k < v->q && basis != NULL; k++) {
      records[v->p + v->outputs + k] = basis[first + i + k * count];
    }
  }
}

scl_status scl_vecchia_rounds(const scl_vecchia *v, const scl_covariance *kernel, const double *x,
                              const double *basis, size_t count, bool noisy, scl_vecchia_each *each,
                              void *arg) {
  size_t rows = scl_min(ROUND, count), stride = scl_vecchia_stride(v->most);
  size_t numbers = rows * (v->most + 1 + scl_vecchia_record_size(v)) + 1;
  double *weights = malloc(numbers * sizeof *weights), order = 0;
  double *at = scl_vecchia_points(v, x, count);
  int32_t *neighbours = malloc((count * stride + 1) * sizeof *neighbours);
  scl_status status;
  if (weights == NULL || at == NULL || neighbours == NULL) {
    status = fail_space(numbers + count * stride / 2);
    goto done;
  }
  SCL_GO(scl_require_finite_data(x, count, v->p, "newdata"));
  SCL_GO(find_nearest(v, at, count, neighbours));
  struct scl_vecchia_pass pass = scl_vecchia_begin_pass(v, &v->host, kernel, SCL_VECCHIA_WEIGHTS);
  pass.m = v->most;
  pass.noisy = noisy ? v->n : 0;
  pass.out = &order;
  pass.weights = weights;
  double *records = weights + rows * (v->most + 1);
  for (size_t first = 0, n; first < count; first += n) {
    n = scl_min(rows, count - first);
    int32_t *next = neighbours + first * stride;
    write_points(v, x, basis, first, n, count, records);
    SCL_GO(scl_vecchia_weigh(v, &pass, v->records, v->n, records, next, n));
    SCL_GO(each(arg, &(scl_vecchia_round){first, n, weights, records, next}));
  }
done:
  free(weights);
  free(at);
  free(neighbours);
  return status;
}

typedef struct {
  const scl_vecchia *v;
  const double *b, *a_inverse;
  size_t count; /* of all points */
  double *mean, *variance;
  double rest[64]; /* h* - H' c: check_data() allows no more columns */
} prediction;

/* Point i from its weights, its record and its neighbours. */
static void predict_point(prediction *p, size_t i, const double *w, const double *record,
                          const int32_t *next) {
  const scl_vecchia *v = p->v;
  size_t size = scl_vecchia_record_size(v);
  double last = w[v->most], more = 0;
  for (size_t k = 0; k < v->q; k++) p->rest[k] = record[v->p + v->outputs + k];
  for (size_t y = 0; y < v->outputs; y++) p->mean[i + y * p->count] = 0;
  for (size_t j = 0; j < v->most && next[j] >= 0; j++) {
    const double *of = v->records + (size_t)next[j] * size + v->p;
    double c = -w[j] / last;
    for (size_t y = 0; y < v->outputs; y++) p->mean[i + y * p->count] += c * of[y];
    for (size_t k = 0; k < v->q; k++) p->rest[k] -= c * of[v->outputs + k];
  }
  for (size_t k = 0; k < v->q; k++) {
    for (size_t y = 0; y < v->outputs; y++) {
      p->mean[i + y * p->count] += p->rest[k] * p->b[k + y * v->q];
    }
    for (size_t l = 0; l < v->q; l++) {
      more += p->rest[k] * p->rest[l] * p->a_inverse[k + l * v->q];
    }
  }
  p->variance[i] = 1.0 / (last * last) + more;
}

static scl_status predict_round(void *arg, const scl_vecchia_round *r) {
  prediction *p = arg;
  size_t size = scl_vecchia_record_size(p->v), most = p->v->most;
  for (size_t i = 0; i < r->n; i++) {
    predict_point(p, r->first + i, r->weights + i * (most + 1), r->records + i * size,
                  r->neighbours + i * scl_vecchia_stride(most));
  }
  return SCL_OK;
}

scl_status scl_vecchia_predict(scl_vecchia *v, const scl_covariance *kernel, const double *x,
                               const double *basis, size_t count, const double *b,
                               const double *a_inverse, double *mean, double *variance) {
  SCL_TRY(scl_covariance_check(kernel, v->p));
  prediction p = {
      .v = v, .b = b, .a_inverse = a_inverse, .count = count, .mean = mean, .variance = variance};
  return count == 0 ? SCL_OK
                    : scl_vecchia_rounds(v, kernel, x, basis, count, true, predict_round, &p);
}
