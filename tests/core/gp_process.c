#include "gp_process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

void process_problem(problem *r, kernel_maker *make, size_t n, size_t p, size_t outputs, size_t q,
                     bool spread, scl_gp_trend trend) {
  r->trend = trend;
  make(&r->k, p);
  r->x = test_alloc(n * p * sizeof *r->x);
  r->y = test_alloc(n * outputs * sizeof *r->y);
  r->basis = test_alloc((n * q + 1) * sizeof *r->basis);
  r->spread = test_alloc(2 * n * sizeof *r->spread);
  test_fill(r->x, n * p);
  test_fill(r->y, n * outputs);
  test_fill(r->basis, n * q);
  for (size_t i = 0; i < n && q > 0; i++) r->basis[i] = 1;
  for (size_t i = 0; i < 2 * n; i++) r->spread[i] = 0.3 + fabs(test_random());
  r->data = (scl_gp_data){n, p, outputs, q, r->x, r->y, r->basis, spread ? r->spread : NULL};
}

void process_problem_free(problem *r) {
  FREE(r->x, r->y, r->basis, r->spread);
}

long_double process_covariance(const problem *r, size_t i, size_t j) {
  size_t n = r->data.n;
  long_double value = test_covariance_within(&r->k.kernel, r->x, n, i, j);
  if (i != j || r->data.spread == NULL) return value;
  long_double noise2 = (long_double)r->k.kernel.noise * r->k.kernel.noise;
  return value - noise2 + noise2 * r->spread[i] + r->spread[i + n];
}

static void factor(long_double *l, size_t n) {
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      for (size_t k = 0; k < j; k++) l[i + j * n] -= l[i + k * n] * l[j + k * n];
      l[i + j * n] = i == j ? sqrtl(l[i + j * n]) : l[i + j * n] / l[j + j * n];
    }
  }
}

static void solve_lower(const long_double *l, size_t n, long_double *b) {
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < i; k++) b[i] -= l[i + k * n] * b[k];
    b[i] /= l[i + i * n];
  }
}

static void solve_upper(const long_double *l, size_t n, long_double *b) {
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; k++) b[i] -= l[k + i * n] * b[k];
    b[i] /= l[i + i * n];
  }
}

long_double process_dot(const long_double *a, const long_double *b, size_t n) {
  long_double sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

static void solve_trend(reference *r) {
  size_t n = r->n, q = r->q;
  for (size_t i = 0; i < q; i++) {
    for (size_t j = 0; j < q; j++) r->m[i + j * q] = process_dot(r->s + i * n, r->s + j * n, n);
    for (size_t k = 0; k < r->outputs; k++) {
      r->b[i + k * q] = process_dot(r->s + i * n, r->z + k * n, n);
    }
  }
  factor(r->m, q);
  for (size_t k = 0; k < r->outputs; k++) {
    solve_lower(r->m, q, r->b + k * q);
    solve_upper(r->m, q, r->b + k * q);
    for (size_t j = 0; j < q; j++) {
      for (size_t i = 0; i < n; i++) r->z[i + k * n] -= r->s[i + j * n] * r->b[j + k * q];
    }
  }
}

void process_new(reference *r, const problem *p, size_t without) {
  size_t all = p->data.n, n = 0;
  *r = (reference){.q = p->data.basis_columns, .outputs = p->data.outputs};
  r->row = test_alloc(all * sizeof *r->row);
  for (size_t i = 0; i < all; i++) {
    if (i != without) r->row[n++] = i;
  }
  r->n = n;
  r->l = test_alloc(n * n * sizeof *r->l);
  r->s = test_alloc((n * r->q + 1) * sizeof *r->s);
  r->z = test_alloc(n * r->outputs * sizeof *r->z);
  r->a = test_alloc(n * r->outputs * sizeof *r->a);
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < n; j++) r->l[i + j * n] = process_covariance(p, r->row[i], r->row[j]);
    for (size_t k = 0; k < r->q; k++) r->s[i + k * n] = p->basis[r->row[i] + k * all];
    for (size_t k = 0; k < r->outputs; k++) r->z[i + k * n] = p->y[r->row[i] + k * all];
  }
  factor(r->l, n);
  for (size_t k = 0; k < r->q; k++) solve_lower(r->l, n, r->s + k * n);
  for (size_t k = 0; k < r->outputs; k++) solve_lower(r->l, n, r->z + k * n);
  solve_trend(r);
  long_double log_det = 0, rows = n;
  for (size_t i = 0; i < n; i++) log_det += logl(r->l[i + i * n]);
  if (p->trend == SCL_GP_INTEGRATE) {
    for (size_t i = 0; i < r->q; i++) log_det += logl(r->m[i + i * r->q]);
    rows -= r->q;
  }
  for (size_t k = 0; k < r->outputs; k++) {
    long_double *z = r->z + k * n, *a = r->a + k * n;
    r->value -= process_dot(z, z, n) / 2 + log_det + rows * logl(2 * acosl(-1)) / 2;
    memcpy(a, z, n * sizeof *a);
    solve_upper(r->l, n, a);
  }
}

void process_free(reference *r) {
  FREE(r->row, r->l, r->s, r->z, r->a);
}

long_double process_mean(const reference *r, long_double *v, long_double *h, size_t output) {
  long_double mean = process_dot(v, r->a + output * r->n, r->n);
  for (size_t j = 0; j < r->q; j++) mean += h[j] * r->b[j + output * r->q];
  return mean;
}

void process_spread(const reference *r, long_double *v, long_double *h) {
  solve_lower(r->l, r->n, v);
  for (size_t j = 0; j < r->q; j++) h[j] -= process_dot(r->s + j * r->n, v, r->n);
  solve_lower(r->m, r->q, h);
}

/* The sum of log p(y_i | the others), each from a new factor. */
static long_double leave_one_out(const problem *p) {
  size_t n = p->data.n;
  long_double sum = 0, *v = test_alloc(n * sizeof *v);
  for (size_t i = 0; i < n; i++) {
    reference r;
    process_new(&r, p, i);
    long_double h[MOST_BASIS], mean[MOST_OUTPUTS];
    for (size_t j = 0; j < r.q; j++) h[j] = p->basis[i + j * n];
    for (size_t j = 0; j < r.n; j++) v[j] = process_covariance(p, i, r.row[j]);
    for (size_t k = 0; k < r.outputs; k++) mean[k] = process_mean(&r, v, h, k);
    process_spread(&r, v, h);
    long_double variance =
        process_covariance(p, i, i) - process_dot(v, v, r.n) + process_dot(h, h, r.q);
    for (size_t k = 0; k < r.outputs; k++) {
      long_double e = p->y[i + k * n] - mean[k];
      sum -= e * e / variance / 2 + logl(2 * acosl(-1) * variance) / 2;
    }
    process_free(&r);
  }
  free(v);
  return sum;
}

long_double process_value(const problem *p, scl_gp_objective objective) {
  if (objective == SCL_GP_LEAVE_ONE_OUT) return leave_one_out(p);
  reference r;
  process_new(&r, p, p->data.n);
  process_free(&r);
  return r.value;
}
