/* Vecchia's approximation: values against the definition in long double, derivatives against
 * differences of it, and what happens without memory. */
#include "ops/vecchia.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "gp_process.h"
#include "ops/operation.h"
#include "test.h"

/* ---- the definition ------------------------------------------------------------------------- */

/* The parts of the approximate precision matrix Q = W W', by positions in the order. */
typedef struct {
  size_t n, m;
  int32_t *order, *near;
  long_double *w; /* n x n */
} parts;

/* w = K^-1 e_last / sqrt((K^-1)_last,last) of a block, by elimination. */
static void find_weights(long_double *k, size_t size, long_double *w) {
  for (size_t i = 0; i < size; i++) w[i] = i + 1 == size;
  for (size_t j = 0; j < size; j++) {
    for (size_t i = 0; i < size; i++) {
      if (i == j) continue;
      long_double ratio = k[i + j * size] / k[j + j * size];
      for (size_t c = j; c < size; c++) k[i + c * size] -= ratio * k[j + c * size];
      w[i] -= ratio * w[j];
    }
  }
  for (size_t i = 0; i < size; i++) w[i] /= k[i + i * size];
  long_double root = sqrtl(w[size - 1]);
  for (size_t i = 0; i < size; i++) w[i] /= root;
}

static size_t block_of(const parts *q, size_t i, size_t *row) {
  size_t size = 0;
  for (; size < q->m && q->near[size + i * q->m] >= 0; size++) {
    row[size] = (size_t)q->near[size + i * q->m];
  }
  row[size] = i;
  return size + 1;
}

static parts new_parts(const problem *p, const scl_vecchia *v) {
  size_t n = p->data.n, m = scl_vecchia_neighbour_count(v);
  parts q = {.n = n, .m = m, .order = test_alloc(n * sizeof *q.order)};
  q.near = test_alloc((n * m + 1) * sizeof *q.near);
  q.w = test_alloc(n * n * sizeof *q.w);
  scl_vecchia_graph(v, q.order, q.near);
  return q;
}

static void fill_parts(const problem *p, parts *q) {
  size_t *row = test_alloc((q->m + 1) * sizeof *row);
  long_double *k = test_alloc((q->m + 1) * (q->m + 2) * sizeof *k),
              *w = k + (q->m + 1) * (q->m + 1);
  for (size_t i = 0; i < q->n * q->n; i++) q->w[i] = 0;
  for (size_t i = 0; i < q->n; i++) {
    size_t size = block_of(q, i, row);
    for (size_t a = 0; a < size; a++) {
      for (size_t b = 0; b < size; b++) {
        k[a + b * size] = process_covariance(p, (size_t)q->order[row[a]], (size_t)q->order[row[b]]);
      }
    }
    find_weights(k, size, w);
    for (size_t a = 0; a < size; a++) q->w[row[a] + i * q->n] = w[a];
  }
  FREE(row, k);
}

static void free_parts(parts *q) {
  FREE(q->order, q->near, q->w);
}

/* Column c of (y, H), by positions. */
static long_double datum(const problem *p, const parts *q, size_t i, size_t c) {
  size_t row = (size_t)q->order[i], o = p->data.outputs;
  return c < o ? p->y[row + c * q->n] : p->basis[row + (c - o) * q->n];
}

enum { MOST_COLUMNS = MOST_OUTPUTS + MOST_BASIS };

typedef struct {
  long_double value, b[MOST_BASIS * MOST_OUTPUTS], a_inverse[MOST_BASIS * MOST_BASIS];
} answer;

/* Inverse of a symmetric matrix by elimination; gives the logarithm of its determinant. */
static long_double invert(long_double *a, size_t n, long_double *inverse) {
  long_double logs = 0;
  for (size_t i = 0; i < n * n; i++) inverse[i] = i % (n + 1) == 0;
  for (size_t j = 0; j < n; j++) {
    long_double pivot = a[j + j * n];
    logs += logl(pivot);
    for (size_t c = 0; c < n; c++) {
      a[j + c * n] /= pivot;
      inverse[j + c * n] /= pivot;
    }
    for (size_t i = 0; i < n; i++) {
      long_double ratio = a[i + j * n];
      for (size_t c = 0; i != j && c < n; c++) {
        a[i + c * n] -= ratio * a[j + c * n];
        inverse[i + c * n] -= ratio * inverse[j + c * n];
      }
    }
  }
  return logs;
}

/* The likelihood by its formulas. */
static answer solve_parts(const problem *p, const parts *q) {
  size_t o = p->data.outputs, h = p->data.basis_columns, n = q->n;
  long_double g[MOST_COLUMNS][MOST_COLUMNS] = {{0}}, a[MOST_BASIS * MOST_BASIS];
  long_double logs = 0, pi2 = 2 * acosl(-1);
  answer r = {0};
  for (size_t i = 0; i < n; i++) {
    long_double e[MOST_COLUMNS] = {0};
    logs += logl(q->w[i + i * n]);
    for (size_t c = 0; c < o + h; c++) {
      for (size_t k = 0; k <= i; k++) e[c] += q->w[k + i * n] * datum(p, q, k, c);
      for (size_t d = 0; d <= c; d++) g[c][d] = g[d][c] = g[c][d] + e[c] * e[d];
    }
  }
  for (size_t k = 0; k < h * h; k++) a[k] = g[o + k % h][o + k / h];
  long_double log_det = invert(a, h, r.a_inverse);
  for (size_t y = 0; y < o; y++) {
    r.value += logs - g[y][y] / 2 - (long_double)n * logl(pi2) / 2;
    if (p->trend == SCL_GP_INTEGRATE) r.value += ((long_double)h * logl(pi2) - log_det) / 2;
    for (size_t k = 0; k < h; k++) {
      for (size_t l = 0; l < h; l++) r.b[k + y * h] += r.a_inverse[k + l * h] * g[o + l][y];
      r.value += r.b[k + y * h] * g[o + k][y] / 2;
    }
  }
  return r;
}

static long_double value_of(const problem *p, parts *q) {
  fill_parts(p, q);
  return solve_parts(p, q).value;
}

/* Value, coefficients and derivatives. */
static void check_evaluate(scl_vecchia *v, problem *p, parts *q) {
  double value = 7, alone = 7, b[MOST_BASIS * MOST_OUTPUTS], gradient[MOST_PARAMETERS];
  size_t count = p->data.basis_columns * p->data.outputs;
  fill_parts(p, q);
  answer want = solve_parts(p, q);
  CHECK_OK(scl_vecchia_evaluate(v, &p->k.kernel, p->trend, &alone, b, NULL));
  CHECK_NEAR(alone, (double)want.value, 1e-11);
  CHECK_OK(scl_vecchia_evaluate(v, &p->k.kernel, p->trend, &value, b, gradient));
  CHECK_NEAR(value, (double)want.value, 1e-11);
  for (size_t i = 0; i < count; i++) CHECK_NEAR(b[i], (double)want.b[i], 1e-9);
  for (int i = 0; i < scl_covariance_count(&p->k.kernel); i++) {
    double *parameter = test_kernel_parameter(&p->k, i), keep = *parameter;
    double up = keep * exp(0x1p-20), down = keep * exp(-0x1p-20);
    *parameter = up;
    long_double high = value_of(p, q);
    *parameter = down;
    long_double low = value_of(p, q);
    *parameter = keep;
    CHECK_NEAR(gradient[i], (double)((high - low) / (logl(up) - logl(down))), 1e-8);
  }
}

/* Q z, or its diagonal with z NULL, for position i. */
static long_double precision_times(const parts *q, size_t i, const long_double *z) {
  long_double sum = 0;
  for (size_t j = i; j < q->n; j++) {
    long_double e = 0;
    for (size_t k = 0; z != NULL && k <= j; k++) e += q->w[k + j * q->n] * z[k];
    sum += q->w[i + j * q->n] * (z == NULL ? q->w[i + j * q->n] : e);
  }
  return sum;
}

/* The state: Q (y - H b), and the diagonal of P. */
static void check_condition(scl_vecchia *v, problem *p, parts *q) {
  size_t n = q->n, o = p->data.outputs, h = p->data.basis_columns;
  double *weights = test_alloc(n * (o + 1) * sizeof *weights), *diagonal = weights + n * o;
  double value, b[MOST_BASIS * MOST_OUTPUTS], a_inverse[MOST_BASIS * MOST_BASIS];
  long_double *z = test_alloc(n * sizeof *z), qh[MOST_BASIS];
  fill_parts(p, q);
  answer want = solve_parts(p, q);
  REQUIRE_OK(
      scl_vecchia_condition(v, &p->k.kernel, p->trend, &value, b, a_inverse, weights, diagonal));
  CHECK_NEAR(value, (double)want.value, 1e-11);
  for (size_t k = 0; k < h * h; k++) CHECK_NEAR(a_inverse[k], (double)want.a_inverse[k], 1e-9);
  for (size_t y = 0; y < o; y++) {
    for (size_t i = 0; i < n; i++) {
      z[i] = datum(p, q, i, y);
      for (size_t k = 0; k < h; k++) z[i] -= datum(p, q, i, o + k) * want.b[k + y * h];
    }
    for (size_t i = 0; i < n; i++) {
      CHECK_NEAR(weights[(size_t)q->order[i] + y * n], (double)precision_times(q, i, z), 1e-9);
    }
  }
  for (size_t i = 0; i < n; i += n / 3 + 1) {
    long_double sum = precision_times(q, i, NULL);
    for (size_t k = 0; k < h; k++) {
      for (size_t j = 0; j < n; j++) z[j] = datum(p, q, j, o + k);
      qh[k] = precision_times(q, i, z);
    }
    for (size_t k = 0; k < h * h; k++) sum -= qh[k % h] * want.a_inverse[k] * qh[k / h];
    CHECK_NEAR(diagonal[q->order[i]], (double)sum, 1e-9);
  }
  FREE(weights, z);
}

static void check_problem(scl_context *ctx, kernel_maker *make, size_t n, size_t m, size_t i) {
  for (int trend = 0; trend < 2; trend++) {
    size_t q = n > 4 ? (i + 1) % 4 : 0;
    double scale[3] = {1.0, 0.5, 2.0};
    scl_vecchia *v = NULL;
    problem p;
    process_problem(&p, make, n, 1 + i % 3, 1 + i % 2, q, i % 3 == 1, (scl_gp_trend)trend);
    REQUIRE_OK(scl_vecchia_create(ctx, &p.data, scale, m, false, &v));
    CHECK(scl_vecchia_shape_of(v).n == n && scl_vecchia_neighbour_count(v) == (m < n ? m : n - 1));
    parts of = new_parts(&p, v);
    check_evaluate(v, &p, &of);
    check_condition(v, &p, &of);
    if (m >= n) { /* exact then */
      double value;
      CHECK_OK(scl_vecchia_evaluate(v, &p.k.kernel, p.trend, &value, NULL, NULL));
      CHECK_NEAR(value, (double)process_value(&p, SCL_GP_MARGINAL), 1e-11);
    }
    free_parts(&of);
    scl_vecchia_release(v);
    process_problem_free(&p);
    if (q == 0) return;
  }
}

/* ---- predictions ---------------------------------------------------------------------------- */

enum { ROWS = 24, NEW = 7 };

/* Mean and covariance of the process at new points, exactly. */
static void condition_exactly(const problem *p, const double *at, const double *h,
                              long_double *mean, long_double *covariance) {
  size_t n = p->data.n, q = p->data.basis_columns;
  long_double c[NEW][ROWS], u[NEW][MOST_BASIS];
  reference r;
  process_new(&r, p, n);
  for (size_t i = 0; i < NEW; i++) {
    for (size_t k = 0; k < q; k++) u[i][k] = h[i + k * NEW];
    for (size_t j = 0; j < n; j++) {
      c[i][j] = test_covariance_value(&p->k.kernel, at, NEW, i, p->x, n, j);
    }
    mean[i] = process_mean(&r, c[i], u[i], 0);
    process_spread(&r, c[i], u[i]);
  }
  for (size_t i = 0; i < NEW; i++) {
    for (size_t j = 0; j < NEW; j++) {
      covariance[i + j * NEW] = test_covariance_value(&p->k.kernel, at, NEW, i, at, NEW, j) -
                                process_dot(c[i], c[j], n) + process_dot(u[i], u[j], q);
    }
  }
  process_free(&r);
}

/* The covariance matrix of draws, which are affine in the normal numbers and the noise: from unit
 * vectors, less the draw of zeros. */
static void check_draws(scl_vecchia *v, const problem *p, const double *at, const double *h,
                        const double *b, const long_double *mean, const long_double *covariance) {
  enum { ALL = ROWS + NEW, DRAWS = ALL + ROWS + 1 };
  size_t q = p->data.basis_columns, n = mean == NULL ? NEW : ALL;
  double *values = calloc(ALL * DRAWS, sizeof *values), same[2 * DRAWS];
  double *noise = calloc(ROWS * DRAWS, sizeof *noise);
  for (size_t d = 0; d < DRAWS; d++) {
    if (d > 0 && d <= n) values[d - 1 + d * n] = 1;
    if (d > n && mean != NULL) {
      size_t row = d - n - 1;
      long_double own = test_covariance_value(&p->k.kernel, p->x, ROWS, row, p->x, ROWS, row);
      noise[row + d * ROWS] = sqrt((double)(process_covariance(p, row, row) - own));
    }
    for (size_t k = 0; k < q; k++) same[k + d * q] = b[k];
  }
  CHECK_OK(scl_vecchia_simulate(v, &p->k.kernel, at, h, NEW, same, mean == NULL ? NULL : noise,
                                DRAWS, values));
  const double *drawn = values + n - NEW;
  for (size_t i = 0; i < NEW; i++) {
    CHECK_NEAR(drawn[i], mean == NULL ? 0.0 : (double)mean[i], 1e-9);
    for (size_t j = 0; j < NEW; j++) {
      long_double sum = 0;
      for (size_t d = 1; d < DRAWS; d++) {
        sum += ((long_double)drawn[i + d * n] - drawn[i]) * (drawn[j + d * n] - drawn[j]);
      }
      CHECK_NEAR((double)sum, (double)covariance[i + j * NEW], 1e-7);
    }
  }
  FREE(values, noise);
}

/* With all observations as neighbours predictions are exact, and so are draws. */
static void check_new_points(scl_context *ctx, kernel_maker *make, size_t q) {
  double scale[2] = {1, 1}, at[2 * NEW], h[2 * NEW], b[2], a_inverse[4], value;
  double mean[NEW], variance[NEW], weights[ROWS], diagonal[ROWS];
  long_double want[NEW], covariance[NEW * NEW];
  scl_vecchia *v = NULL;
  problem p;
  process_problem(&p, make, ROWS, 2, 1, q, true, SCL_GP_PROFILE);
  test_fill(at, 2 * NEW);
  test_fill(h, 2 * NEW);
  at[0] = p.x[3]; /* an observation's place */
  at[NEW] = p.x[3 + ROWS];
  condition_exactly(&p, at, h, want, covariance);
  REQUIRE_OK(scl_vecchia_create(ctx, &p.data, scale, ROWS + NEW, false, &v));
  REQUIRE_OK(
      scl_vecchia_condition(v, &p.k.kernel, p.trend, &value, b, a_inverse, weights, diagonal));
  CHECK_OK(scl_vecchia_predict(v, &p.k.kernel, at, h, NEW, b, a_inverse, mean, variance));
  for (size_t i = 0; i < NEW; i++) {
    CHECK_NEAR(mean[i], (double)want[i], 1e-10);
    CHECK_NEAR(variance[i], (double)covariance[i * (NEW + 1)], 1e-10);
  }
  if (q == 0) check_draws(v, &p, at, h, b, want, covariance);
  for (size_t i = 0; i < NEW * NEW; i++) {
    covariance[i] = test_covariance_value(&p.k.kernel, at, NEW, i % NEW, at, NEW, i / NEW);
  }
  check_draws(v, &p, at, h, b, NULL, covariance);
  at[1] = NAN;
  CHECK_STATUS(SCL_E_NONFINITE,
               scl_vecchia_predict(v, &p.k.kernel, at, h, NEW, b, a_inverse, mean, variance));
  CHECK_STATUS(SCL_E_NONFINITE, scl_vecchia_simulate(v, &p.k.kernel, at, h, NEW, b, NULL, 1, mean));
  CHECK_OK(scl_vecchia_predict(v, &p.k.kernel, at, h, 0, b, a_inverse, mean, variance));
  CHECK_OK(scl_vecchia_simulate(v, &p.k.kernel, at, h, 0, b, NULL, 1, mean));
  scl_vecchia_release(v);
  process_problem_free(&p);
}

/* ---- refusals and faults -------------------------------------------------------------------- */

static void check_refusals(scl_context *ctx) {
  double x[4] = {0.1, 0.1, 0.5, 0.9}, y[4] = {1, 2, 3, 4}, basis[8] = {1, 1, 1, 1, 2, 2, 2, 2};
  double scale[1] = {1}, value = 7, gradient[MOST_PARAMETERS];
  scl_gp_data data = {.n = 0, .p = 1, .outputs = 1, .x = x, .y = y};
  scl_vecchia *v = NULL;
  test_kernel k;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_vecchia_create(ctx, &data, scale, 2, false, &v));
  data.n = 4;
  CHECK_FAULT(SCL_E_ARGUMENT, "neighbours", scl_vecchia_create(ctx, &data, scale, 0, false, &v));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_vecchia_create(ctx, &data, scale, 401, false, &v));
  scale[0] = INFINITY;
  CHECK_FAULT(SCL_E_ARGUMENT, "kernel", scl_vecchia_create(ctx, &data, scale, 2, false, &v));
  scale[0] = 1;
  x[3] = NAN;
  CHECK_STATUS(SCL_E_NONFINITE, scl_vecchia_create(ctx, &data, scale, 2, false, &v));
  CHECK(strcmp(scl_fault_last()->argument, "x") == 0 && scl_fault_last()->index == 4);
  x[3] = 0.9;
  y[2] = INFINITY;
  CHECK_STATUS(SCL_E_NONFINITE, scl_vecchia_create(ctx, &data, scale, 2, false, &v));
  y[2] = 3;
  CHECK(v == NULL);
  test_kernel_mixed(&k, 1);
  k.kernel.terms = k.kernel.entries = 1;
  k.term[0].sd = 1;
  k.kernel.noise = 0; /* rows 1 and 2 are equal: singular */
  REQUIRE_OK(scl_vecchia_create(ctx, &data, scale, 3, false, &v));
  for (int i = 0; i < 2; i++) {
    CHECK_STATUS(SCL_E_NOT_PD, scl_vecchia_evaluate(v, &k.kernel, SCL_GP_PROFILE, &value, NULL,
                                                    i == 0 ? NULL : gradient));
    CHECK(scl_fault_last()->index == 1 || scl_fault_last()->index == 2);
  }
  CHECK(value == 7);
  k.kernel.noise = 0.1;
  CHECK_OK(scl_vecchia_evaluate(v, &k.kernel, SCL_GP_PROFILE, &value, NULL, gradient));
  CHECK(isfinite(value));
  scl_vecchia_release(v);
  data.basis = basis;
  data.basis_columns = 2;
  REQUIRE_OK(scl_vecchia_create(ctx, &data, scale, 3, false, &v));
  double b[2];
  CHECK_STATUS(SCL_E_SINGULAR, scl_vecchia_evaluate(v, &k.kernel, SCL_GP_PROFILE, &value, b, NULL));
  scl_vecchia_release(v);
}

/* Everything once: an object, its gradient, its state, predictions. */
static scl_status run_all(scl_context *ctx, const problem *p, bool grouped, double *value) {
  size_t n = p->data.n;
  double scale[2] = {1, 1}, b[4], a_inverse[4], gradient[MOST_PARAMETERS], at[2] = {0.1, 0.2};
  double h[2] = {1, 0.3}, mean, variance, own = 0, drawn[41] = {0.4, 0.3},
         *weights = test_alloc(2 * n * sizeof *weights);
  scl_vecchia *v = NULL;
  scl_status status;
  SCL_GO(scl_vecchia_create(ctx, &p->data, scale, 6, grouped, &v));
  SCL_GO(scl_vecchia_evaluate(v, &p->k.kernel, p->trend, &own, b, gradient));
  SCL_GO(
      scl_vecchia_condition(v, &p->k.kernel, p->trend, &own, b, a_inverse, weights, weights + n));
  SCL_GO(scl_vecchia_predict(v, &p->k.kernel, at, h, 1, b, a_inverse, &mean, &variance));
  SCL_GO(scl_vecchia_simulate(v, &p->k.kernel, at, h, 1, b, p->y, 1, drawn));
  *value = own + mean + variance + drawn[n];
done:
  scl_vecchia_release(v);
  free(weights);
  return status;
}

static void check_end(scl_context *ctx, scl_status status, double value, double want,
                      scl_memory before) {
  if (status == SCL_OK) CHECK_NEAR(value, want, 1e-12);
  CHECK(status == SCL_OK || value == 7);
  CHECK_OK(scl_context_finish(ctx));
  CHECK(scl_context_memory(ctx).live == before.live);
  CHECK(scl_context_memory(ctx).buffers == before.buffers);
}

#include "driver.h"
#include "base/device.h"

/* Each call of the driver fails in turn. */
static void check_driver(scl_context *ctx, const problem *p, bool grouped, double want) {
  static const int codes[] = {-4, -5};
  const scl_memory before = scl_context_memory(ctx);
  long faults = 0;
  driver_install();
  for (int c = 0; c < 2; c++) {
    bool fired = true;
    for (long n = 1; fired && n < 400; n++) {
      double value = 7;
      long calls = driver_counted().calls;
      driver_fail(n, codes[c], false);
      scl_status status = run_all(ctx, p, grouped, &value);
      fired = driver_counted().calls - calls >= n;
      driver_fail(0, 0, false);
      ctx->lost = false;
      CHECK(status == SCL_OK || status == (c == 0 ? SCL_E_MEMORY : SCL_E_LOST));
      CHECK(!fired || status != SCL_OK || c == 0);
      check_end(ctx, status, value, want, before);
      faults += fired;
    }
  }
  CHECK(faults > 10);
  scl_device_trim(ctx);
  driver_remove();
}

/* Each allocation of the host's memory, and each buffer of the engine, fails in turn. */
static void check_faults(scl_context *ctx, bool grouped) {
  enum { OWN_ALLOCATIONS = 1 /* of run_all() */, TRIES = 400 };
  double want = 0, value;
  scl_status status = SCL_E_MEMORY;
  problem p;
  process_problem(&p, test_kernel_mixed, 40, 2, 1, 2, true, SCL_GP_INTEGRATE);
  const scl_memory before = scl_context_memory(ctx);
  REQUIRE_OK(run_all(ctx, &p, grouped, &want));
#ifdef SCL_TEST_ALLOC
  bool fails = true;
  for (long n = 1; fails && n < TRIES; n++) {
    value = 7;
    alloc_fail(n + OWN_ALLOCATIONS);
    status = run_all(ctx, &p, grouped, &value);
    fails = alloc_failed();
    alloc_fail(0);
    CHECK(status == SCL_OK || (status == SCL_E_MEMORY && fails));
    check_end(ctx, status, value, want, before);
  }
  CHECK(!fails);
#endif
  status = SCL_E_MEMORY;
  for (int n = 1; status != SCL_OK && n < TRIES; n++) {
    value = 7;
    scl_buffer_fail_after(n);
    status = run_all(ctx, &p, grouped, &value);
    scl_buffer_fail_after(-1);
    CHECK(status == SCL_OK || status == SCL_E_MEMORY);
    check_end(ctx, status, value, want, before);
  }
  CHECK(status == SCL_OK);
  if (!scl_context_is_host(ctx)) check_driver(ctx, &p, grouped, want);
  process_problem_free(&p);
}

void test_vecchia(scl_context *ctx) {
  static const size_t sizes[] = {1, 2, 9, 24, 35};
  static const size_t neighbours[] = {1, 6, 40, 5, 33};
  for (size_t i = 0; i < (test_small() ? 3 : 5); i++) {
    if (!test_turn(ctx, i, 2)) continue;
    check_problem(ctx, test_kernel_mixed, sizes[i], neighbours[i], i);
    if (i < 4) check_problem(ctx, test_kernel_composed, sizes[i], neighbours[i], i + 1);
  }
  test_seed(1);
  for (size_t k = 0; k < 4; k++)
    check_new_points(ctx, k < 2 ? test_kernel_mixed : test_kernel_composed, k % 2 * 2);
  check_refusals(ctx);
  if (test_turn(ctx, 0, 2)) check_faults(ctx, false);
  if (test_turn(ctx, 1, 2)) check_faults(ctx, true);
}
