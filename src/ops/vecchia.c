#include "ops/vecchia.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"
#include "ops/gp_private.h"
#include "ops/vecchia_order.h"
#include "ops/vecchia_private.h"

/* ---- the object ----------------------------------------------------------------------------- */

size_t scl_vecchia_record_size(const scl_vecchia *v) {
  return v->p + v->outputs + v->q + (v->spread ? 2 : 0);
}

size_t scl_vecchia_stride(size_t m) {
  return 2 * scl_max((m + 1) / 2, 1);
}

typedef struct {
  const scl_vecchia *v;
  const double *x;
  size_t n;
  double *points;
} scale_work;

static void scale_part(void *arg, int part, int parts) {
  const scale_work *w = arg;
  size_t p = w->v->p, n = w->n, high = n * ((size_t)part + 1) / (size_t)parts;
  for (size_t i = n * (size_t)part / (size_t)parts; i < high; i++) {
    for (size_t c = 0; c < p; c++) w->points[i * p + c] = w->x[i + c * n] * w->v->scale[c];
  }
}

static scl_team *start_team(size_t n) {
  return n < 100000 ? NULL : scl_team_start(scl_copy_threads());
}

double *scl_vecchia_points(const scl_vecchia *v, const double *x, size_t n) {
  double *points = malloc((n * v->p + 1) * sizeof *points);
  if (points == NULL) return NULL;
  scl_expect_writes(points, n * v->p * sizeof *points);
  scale_work work = {v, x, n, points};
  scl_team *team = start_team(n);
  scl_team_run(team, scale_part, &work);
  scl_team_stop(team);
  return points;
}

/* Writes record i of the data as record k. */
static void write_record(const scl_vecchia *v, const scl_gp_data *data, size_t i, double *to) {
  for (size_t c = 0; c < v->p; c++) *to++ = data->x[i + c * data->n];
  for (size_t c = 0; c < v->outputs; c++) *to++ = data->y[i + c * data->n];
  for (size_t c = 0; c < v->q; c++) *to++ = data->basis[i + c * data->n];
  for (size_t c = 0; v->spread && c < 2; c++) *to++ = data->spread[i + c * data->n];
}

typedef struct {
  const scl_vecchia *v;
  const scl_gp_data *data;
  const double *points;
  double *ordered;
} arrange_work;

static void arrange_part(void *arg, int part, int parts) {
  const arrange_work *w = arg;
  const scl_vecchia *v = w->v;
  size_t low = v->n * (size_t)part / (size_t)parts;
  size_t high = v->n * ((size_t)part + 1) / (size_t)parts;
  for (size_t k = low; k < high; k++) {
    size_t i = (size_t)v->order[k];
    memcpy(w->ordered + k * v->p, w->points + i * v->p, v->p * sizeof *w->points);
    write_record(v, w->data, i, v->records + k * scl_vecchia_record_size(v));
  }
}

/* The order, the records in it, and the neighbours. */
static scl_status arrange(scl_vecchia *v, const scl_gp_data *data) {
  double *points = scl_vecchia_points(v, data->x, v->n);
  double *ordered = malloc((v->n * v->p + 1) * sizeof *ordered);
  scl_status status = SCL_OK;
  v->order = malloc(v->n * sizeof *v->order);
  if (points == NULL || ordered == NULL || v->order == NULL) {
    status = scl_fail_memory(v->n * v->p * sizeof *points, 0, "an order of points");
    goto done;
  }
  SCL_GO(scl_require_finite_data(points, v->n, v->p, "x"));
  SCL_GO(scl_vecchia_order(points, v->n, v->p, v->order));
  arrange_work work = {v, data, points, ordered};
  scl_team *team = start_team(v->n);
  scl_team_run(team, arrange_part, &work);
  scl_team_stop(team);
  status = scl_vecchia_neighbours(ordered, v->n, v->p, v->m, v->stride, v->neighbours);
done:
  free(points);
  free(ordered);
  return status;
}

/* Memory on the host, and the matrices around it. */
static scl_status create_host(scl_vecchia *v) {
  size_t size = scl_vecchia_record_size(v),
         bytes = v->n * (size * sizeof(double) + v->stride * sizeof(int32_t));
  scl_context *host = scl_context_complete();
  v->records = malloc(v->n * size * sizeof *v->records);
  v->neighbours = malloc(v->n * v->stride * sizeof *v->neighbours);
  if (v->records == NULL || v->neighbours == NULL) {
    return scl_fail_memory(bytes, 0, "the neighbours of the observations");
  }
  scl_expect_writes(v->records, v->n * size * sizeof *v->records);
  scl_expect_writes(v->neighbours, v->n * v->stride * sizeof *v->neighbours);
  v->host.ctx = scl_context_retain(host);
  SCL_TRY(scl_mat_wrap(host, v->records, size, v->n, SCL_GENERAL, &v->host.records));
  return scl_mat_wrap(host, (double *)v->neighbours, v->stride / 2, v->n, SCL_GENERAL,
                      &v->host.neighbours);
}

static scl_status group(scl_vecchia *v) {
  if (v->n > INT32_MAX / 2) return scl_fail_argument("y", "'y' has too many values");
  v->block_rows = scl_vecchia_block_rows(v->m);
  SCL_TRY(scl_vecchia_group(v->neighbours, v->n, v->m, v->stride, &v->blocks, &v->block_count));
  for (size_t rows = v->block_rows; rows > 32 && v->tall < v->block_count; v->tall++) {
    if (v->blocks[v->tall * rows + 32] < 0) break;
  }
  return scl_mat_wrap(v->host.ctx, (double *)v->blocks, v->block_rows / 2, v->block_count,
                      SCL_GENERAL, &v->host.blocks);
}

/* The device's copy. */
static scl_status send(scl_vecchia *v, scl_context *ctx) {
  v->fast.ctx = scl_context_retain(ctx);
  SCL_TRY(scl_mat_from_host(ctx, v->records, scl_vecchia_record_size(v), v->n, SCL_GENERAL,
                            &v->fast.records));
  if (v->blocks != NULL) {
    return scl_mat_from_host(ctx, (double *)v->blocks, v->block_rows / 2, v->block_count,
                             SCL_GENERAL, &v->fast.blocks);
  }
  return scl_mat_from_host(ctx, (double *)v->neighbours, v->stride / 2, v->n, SCL_GENERAL,
                           &v->fast.neighbours);
}

static void release_copy(scl_vecchia_copy *c) {
  if (c->ctx == NULL) return;
  scl_mat_release(c->records);
  scl_mat_release(c->neighbours);
  scl_mat_release(c->blocks);
  scl_context_release(c->ctx);
}

static scl_status check_data(const scl_gp_data *data, const double *scale, size_t m) {
  SCL_TRY(scl_gp_check_data(data));
  if (data->n > INT32_MAX - 1) return scl_fail_argument("y", "'y' has too many values");
  if (data->basis_columns >= data->n || data->outputs + data->basis_columns > 64) {
    return scl_fail_argument("mean",
                             "the mean has %zu coefficients for %zu observations; at most 64 with "
                             "the columns of 'y', and fewer than observations, are supported",
                             data->basis_columns, data->n);
  }
  if (m < 1 || m > SCL_VECCHIA_MOST_NEIGHBOURS) {
    return scl_fail_argument("neighbours", "'neighbours' must be between 1 and %d",
                             SCL_VECCHIA_MOST_NEIGHBOURS);
  }
  for (size_t c = 0; c < data->p; c++) {
    if (!(scale[c] >= 0 && isfinite(scale[c]))) {
      return scl_fail_argument("kernel", "'lengthscale' must be finite");
    }
  }
  return SCL_OK;
}

scl_status scl_vecchia_create(scl_context *ctx, const scl_gp_data *data, const double *scale,
                              size_t m, bool grouped, scl_vecchia **out) {
  SCL_TRY(check_data(data, scale, m));
  scl_vecchia *v = calloc(1, sizeof *v);
  if (v == NULL) return scl_fail_memory(sizeof *v, 0, "a Gaussian process");
  scl_status status = SCL_OK;
  *v = (scl_vecchia){.n = data->n,
                     .p = data->p,
                     .outputs = data->outputs,
                     .q = data->basis_columns,
                     .m = scl_min(m, data->n - 1),
                     .most = scl_min(m, data->n),
                     .wanted = m,
                     .spread = data->spread != NULL};
  v->scale = malloc(v->p * sizeof *v->scale);
  if (v->scale == NULL) {
    status = scl_fail_memory(v->p * sizeof *v->scale, 0, "a Gaussian process");
    goto done;
  }
  memcpy(v->scale, scale, v->p * sizeof *scale);
  v->stride = scl_vecchia_stride(v->m);
  SCL_GO(create_host(v));
  SCL_GO(arrange(v, data));
  if (grouped) SCL_GO(group(v));
  if (ctx != scl_context_complete() && ctx->engine->vecchia != NULL &&
      (grouped ? v->block_rows - 1 : v->m) <= SCL_VECCHIA_DEVICE_NEIGHBOURS)
    SCL_GO(send(v, ctx));
done:
  if (status != SCL_OK) {
    scl_vecchia_release(v);
    return status;
  }
  *out = v;
  return SCL_OK;
}

void scl_vecchia_release(scl_vecchia *v) {
  if (v == NULL) return;
  release_copy(&v->host);
  release_copy(&v->fast);
  free(v->records);
  free(v->neighbours);
  free(v->blocks);
  free(v->order);
  free(v->scale);
  free(v);
}

const scl_vecchia_copy *scl_vecchia_fast_copy(const scl_vecchia *v) {
  return v->fast.ctx == NULL ? &v->host : &v->fast;
}

scl_context *scl_vecchia_context(const scl_vecchia *v) {
  return scl_vecchia_fast_copy(v)->ctx;
}

scl_gp_shape scl_vecchia_shape_of(const scl_vecchia *v) {
  return (scl_gp_shape){v->n, v->p, v->outputs, v->q};
}

size_t scl_vecchia_neighbour_count(const scl_vecchia *v) {
  return v->m;
}

uint64_t scl_vecchia_bytes(const scl_vecchia *v) {
  const scl_vecchia_copy *c = scl_vecchia_fast_copy(v);
  return scl_mat_bytes(c->records) + (c->neighbours == NULL ? 0 : scl_mat_bytes(c->neighbours)) +
         (c->blocks == NULL ? 0 : scl_mat_bytes(c->blocks));
}

size_t scl_vecchia_block_count(const scl_vecchia *v) {
  return v->block_count;
}

size_t scl_vecchia_block_size(const scl_vecchia *v) {
  return v->block_rows;
}

const int32_t *scl_vecchia_blocks(const scl_vecchia *v) {
  return v->blocks;
}

void scl_vecchia_graph(const scl_vecchia *v, int32_t *order, int32_t *neighbours) {
  memcpy(order, v->order, v->n * sizeof *order);
  for (size_t i = 0; i < v->n; i++) {
    memcpy(neighbours + i * v->m, v->neighbours + i * v->stride, v->m * sizeof *neighbours);
  }
}

/* ---- likelihood ----------------------------------------------------------------------------- */

struct scl_vecchia_pass scl_vecchia_begin_pass(const scl_vecchia *v, const scl_vecchia_copy *c,
                                               const scl_covariance *kernel,
                                               scl_vecchia_what what) {
  bool grouped = c->blocks != NULL && what != SCL_VECCHIA_WEIGHTS;
  return (struct scl_vecchia_pass){.what = what,
                                   .kernel = kernel,
                                   .n = grouped ? v->block_count : v->n,
                                   .p = v->p,
                                   .columns = v->outputs + v->q,
                                   .m = grouped ? v->block_rows - 1 : v->m,
                                   .grouped = grouped,
                                   .tall = v->tall,
                                   .records = scl_mat_block(c->records),
                                   .spread = v->spread,
                                   .neighbours =
                                       scl_mat_block(grouped ? c->blocks : c->neighbours)};
}

/* The last member of a block. */
static size_t last_member(const scl_vecchia *v, size_t block) {
  const int32_t *rows = v->blocks + block * v->block_rows;
  size_t size = v->block_rows;
  while (size > 1 && rows[size - 1] < 0) size--;
  return (size_t)rows[size - 1] / 2;
}

scl_status scl_vecchia_run(const scl_vecchia *v, scl_context *ctx,
                           const struct scl_vecchia_pass *pass) {
  struct scl_vecchia_pass on_host = *pass;
  bool fits = ctx == v->host.ctx || pass->m <= SCL_VECCHIA_DEVICE_NEIGHBOURS;
  if (fits) {
    SCL_TRY(ctx->engine->vecchia(ctx, pass));
    fits = pass->out[0] >= 0;
  }
  if (!fits) {
    on_host.records = scl_mat_block(v->host.records);
    on_host.neighbours = scl_mat_block(pass->grouped ? v->host.blocks : v->host.neighbours);
    pass = &on_host;
    SCL_TRY(v->host.ctx->engine->vecchia(v->host.ctx, pass));
  }
  if (pass->out[0] == 0) return SCL_OK;
  size_t at = pass->first + (size_t)pass->out[0] - 1;
  if (pass->grouped) at = last_member(v, at);
  int64_t row = pass->at.buffer == NULL ? v->order[at] + 1 : (int64_t)at + 1;
  return scl_fail_index(SCL_E_NOT_PD, row,
                        "the covariance matrix of %s %lld and its neighbours is not positive",
                        pass->at.buffer == NULL ? "observation" : "point", (long long)row);
}

/* The lower factor R of A in place, then R^-1; 0, or the order of a failing minor. */
static size_t invert_root(double *a, size_t q, double *log_det) {
  *log_det = 0;
  for (size_t j = 0; j < q; j++) {
    double first = a[j + j * q];
    for (size_t k = 0; k < j; k++) a[j + j * q] -= a[j + k * q] * a[j + k * q];
    if (!(a[j + j * q] > 1e-14 * first)) return j + 1;
    a[j + j * q] = sqrt(a[j + j * q]);
    *log_det += 2 * log(a[j + j * q]);
    for (size_t i = j + 1; i < q; i++) {
      for (size_t k = 0; k < j; k++) a[i + j * q] -= a[i + k * q] * a[j + k * q];
      a[i + j * q] /= a[j + j * q];
    }
  }
  for (size_t j = 0; j < q; j++) { /* by columns; the rows above are done */
    for (size_t i = j; i < q; i++) {
      double sum = i == j ? 1.0 : 0.0;
      for (size_t k = j; k < i; k++) sum -= a[i + k * q] * a[k + j * q];
      a[i + j * q] = sum / a[i + i * q];
    }
  }
  return 0;
}

/* Element (i, j) of the sums of products, i >= j. */
static double product_at(const scl_vecchia *v, const double *products, size_t i, size_t j) {
  size_t columns = v->outputs + v->q;
  return products[j * columns - j * (j - 1) / 2 + i - j];
}

scl_status scl_vecchia_solve(const scl_vecchia *v, const double *results,
                             scl_vecchia_solution *out) {
  size_t q = v->q, o = v->outputs;
  const double *products = results + 2;
  out->logs = results[1];
  for (size_t j = 0; j < q; j++) {
    for (size_t i = 0; i < q; i++) {
      out->root_inverse[i + j * q] = i < j ? 0 : product_at(v, products, o + i, o + j);
    }
  }
  size_t failed = invert_root(out->root_inverse, q, &out->log_det);
  if (failed > 0) {
    return scl_fail_index(SCL_E_SINGULAR, (int64_t)failed,
                          "column %zu of the basis of the mean is a linear combination of others",
                          failed);
  }
  out->square = 0;
  for (size_t y = 0; y < o; y++) {
    double *b = out->b + y * q;
    out->square += product_at(v, products, y, y);
    for (size_t k = 0; k < q; k++) b[k] = 0;
    for (size_t k = 0; k < q; k++) { /* b = R^-T (R^-1 H'Q y) */
      double c = 0;
      for (size_t i = 0; i <= k; i++) {
        c += out->root_inverse[k + i * q] * product_at(v, products, o + i, y);
      }
      out->square -= c * c;
      for (size_t i = 0; i <= k; i++) b[i] += out->root_inverse[k + i * q] * c;
    }
  }
  return SCL_OK;
}

double scl_vecchia_marginal(const scl_vecchia *v, scl_gp_trend trend,
                            const scl_vecchia_solution *s) {
  double o = (double)v->outputs, n = (double)v->n;
  double value = o * s->logs - 0.5 * s->square - 0.5 * n * o * LOG_2_PI;
  if (trend == SCL_GP_INTEGRATE) value += 0.5 * o * ((double)v->q * LOG_2_PI - s->log_det);
  return value;
}

size_t scl_vecchia_combine(const scl_vecchia *v, scl_gp_trend trend, const scl_vecchia_solution *s,
                           double *columns, double *factor) {
  size_t q = v->q, o = v->outputs, rows = o + q, count = o;
  size_t more = trend == SCL_GP_INTEGRATE ? q : 0;
  memset(columns, 0, rows * (o + more) * sizeof *columns);
  for (size_t y = 0; y < o; y++, columns += rows) {
    columns[y] = 1;
    factor[y] = 1;
    for (size_t k = 0; k < q; k++) columns[o + k] = -s->b[k + y * q];
  }
  for (size_t j = 0; j < more; j++, columns += rows) {
    for (size_t i = 0; i <= j; i++) columns[o + i] = s->root_inverse[j + i * q];
    factor[count++] = (double)o;
  }
  return count;
}

scl_status scl_vecchia_begin(const scl_vecchia *v, const scl_covariance *kernel,
                             scl_vecchia_space *w) {
  size_t q = v->q, all = v->outputs + q, r = (size_t)scl_covariance_count(kernel);
  size_t count = q * q + q * v->outputs + all * all + all + 3 +
                 (r + 1) * (1 + all * (all + 1) / 2) + r * (r + 1) / 2;
  SCL_TRY(scl_covariance_check(kernel, v->p));
  w->memory = malloc(count * sizeof *w->memory);
  if (w->memory == NULL) return scl_fail_memory(count * sizeof *w->memory, 0, "derivatives");
  w->s = (scl_vecchia_solution){.root_inverse = w->memory, .b = w->memory + q * q};
  w->columns = w->s.b + q * v->outputs;
  w->factor = w->columns + all * all;
  w->out = w->factor + all;
  return SCL_OK;
}

scl_status scl_vecchia_sums(const scl_vecchia *v, const scl_vecchia_copy *c,
                            const scl_covariance *kernel, scl_gp_trend trend, scl_vecchia_space *w,
                            double *value) {
  struct scl_vecchia_pass pass = scl_vecchia_begin_pass(v, c, kernel, SCL_VECCHIA_SUMS);
  pass.out = w->out;
  SCL_TRY(scl_vecchia_run(v, c->ctx, &pass));
  SCL_TRY(scl_vecchia_solve(v, w->out, &w->s));
  *value = scl_vecchia_marginal(v, trend, &w->s);
  return SCL_OK;
}

scl_status scl_vecchia_evaluate(scl_vecchia *v, const scl_covariance *kernel, scl_gp_trend trend,
                                double *value, double *b, double *gradient) {
  scl_vecchia_space w = {0};
  scl_status status;
  const scl_vecchia_copy *c = scl_vecchia_fast_copy(v);
  double result = 0;
  SCL_GO(scl_vecchia_begin(v, kernel, &w));
  if (v->q > 0 || gradient == NULL) {
    SCL_GO(scl_vecchia_sums(v, c, kernel, trend, &w, &result));
  }
  if (gradient != NULL) {
    struct scl_vecchia_pass pass = scl_vecchia_begin_pass(v, c, kernel, SCL_VECCHIA_DERIVATIVES);
    pass.combined = scl_vecchia_combine(v, trend, &w.s, w.columns, w.factor);
    pass.combine = w.columns;
    pass.factor = w.factor;
    pass.logs = (double)v->outputs;
    pass.out = w.out;
    SCL_GO(scl_vecchia_run(v, c->ctx, &pass));
    if (v->q == 0) {
      w.s.logs = w.out[1];
      w.s.square = w.out[2];
      result = scl_vecchia_marginal(v, SCL_GP_PROFILE, &w.s);
    }
    memcpy(gradient, w.out + 3, (size_t)scl_covariance_count(kernel) * sizeof *gradient);
  }
  *value = result;
  if (b != NULL && v->q > 0) memcpy(b, w.s.b, v->q * v->outputs * sizeof *b);
done:
  free(w.memory);
  return status;
}
