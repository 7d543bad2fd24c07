#include "ops/gp_toeplitz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gp_private.h"

enum { LANES = 4 }; /* partial sums of a product */

/* The recursion loses digits where the matrix is nearly singular. Sums that are known beforehand,
 * and the least conditional variance, that of the noise, show it: with a larger error the result is
 * not used. */
#define TOLERANCE 1e-6

/* Columns of n numbers; `reversed` and `backwards` have their last element where f ends. */
typedef struct {
  size_t n, right; /* columns of y and H together */
  double *memory;
  double *c, *reversed; /* the first column of C, forwards and backwards */
  double *f, *backwards;
  double *innovation; /* n x right, divided by their standard deviations */
  double *solved;     /* n x right: C^-1 of y and H; with derivatives only */
  double *sums;       /* of the derivatives with respect to C along its diagonals */
  double *small;      /* M (q x q), b (q) */
  double error, log_det;
} levinson;

static double product(const double *a, const double *b, size_t n) {
  double sum[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    for (size_t k = 0; k < LANES; k++) sum[k] += a[i + k] * b[i + k];
  }
  for (; i < n; i++) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void add_times(double t, const double *a, double *b, size_t n) {
  for (size_t i = 0; i < n; i++) b[i] += t * a[i];
}

static scl_status begin(levinson *v, const scl_gp_data *data) {
  size_t n = data->n, right = 1 + data->basis_columns, q = data->basis_columns;
  size_t count = n * (5 + 2 * right) + q * q + q;
  *v = (levinson){.n = n, .right = right, .memory = malloc(count * sizeof(double))};
  if (v->memory == NULL) {
    return scl_fail_memory(count * sizeof(double), 0, "a Toeplitz matrix");
  }
  v->c = v->memory;
  v->reversed = v->c + n;
  v->f = v->reversed + n;
  v->backwards = v->f + n;
  v->sums = v->backwards + n;
  v->innovation = v->sums + n;
  v->solved = v->innovation + n * right;
  v->small = v->solved + n * right;
  return SCL_OK;
}

/* One column of y and H after the other. */
static const double *right_column(const scl_gp_data *data, size_t k) {
  return k == 0 ? data->y : data->basis + (k - 1) * data->n;
}

/* f and its reverse for one observation more; i: how many there are. */
static void lengthen_filter(levinson *v, size_t i) {
  double *f = v->f, *g = v->backwards + v->n - 1 - i;
  double k = -product(g + 1, v->c + 1, i) / v->error;
  f[i] = g[0] = 0.0;
  for (size_t j = 0; j <= i; j++) {
    double forwards = f[j], backwards = g[j];
    f[j] = forwards + k * backwards;
    g[j] = backwards + k * forwards;
  }
  v->error *= (1.0 - k) * (1.0 + k);
}

/* False if C is not positive definite in this arithmetic. `solve`: C^-1 of y and H too. */
static bool run_recursion(levinson *v, const scl_gp_data *data, double least, bool solve) {
  size_t n = v->n;
  for (size_t i = 0; i < n; i++) v->reversed[n - 1 - i] = v->c[i];
  v->f[0] = v->backwards[n - 1] = 1.0;
  v->error = v->c[0];
  for (size_t i = 0; i < n; i++) {
    if (i > 0) lengthen_filter(v, i);
    if (!(v->error > least)) return false;
    const double *g = v->backwards + n - 1 - i;
    double root = sqrt(v->error);
    v->log_det += 0.5 * log(v->error);
    for (size_t k = 0; k < v->right; k++) {
      double innovation = product(g, right_column(data, k), i + 1);
      v->innovation[i + k * n] = innovation / root;
      if (!solve) continue;
      double *x = v->solved + k * n;
      x[i] = 0.0;
      add_times(innovation / v->error, g, x, i + 1);
    }
  }
  return true;
}

/* M of A = M M' = S' S, and b; y's innovations become those of y - H b, the others S M^-T. */
static scl_status solve_trend(levinson *v) {
  size_t n = v->n, q = v->right - 1;
  double *m = v->small, *b = m + q * q, *s = v->innovation + n;
  for (size_t k = 0; k < q; k++) { /* Cholesky, and Gram-Schmidt of S in the same order */
    for (size_t l = 0; l < k; l++) {
      m[k + l * q] = product(s + k * n, s + l * n, n);
      add_times(-m[k + l * q], s + l * n, s + k * n, n);
    }
    double length = sqrt(product(s + k * n, s + k * n, n));
    m[k + k * q] = length;
    if (!(length > 0)) {
      return scl_fail_index(
          SCL_E_SINGULAR, (int64_t)k + 1,
          "column %d of the basis of the mean is a linear combination of those before it",
          (int)k + 1);
    }
    for (size_t i = 0; i < n; i++) s[i + k * n] /= length;
    b[k] = product(s + k * n, v->innovation, n);
    add_times(-b[k], s + k * n, v->innovation, n);
  }
  for (size_t k = q; k-- > 0;) {
    for (size_t l = k + 1; l < q; l++) b[k] -= m[l + k * q] * b[l];
    b[k] /= m[k + k * q];
  }
  return SCL_OK;
}

/* solved: a = C^-1 (y - H b), and C^-1 H M^-T. */
static void solve_weights(levinson *v) {
  size_t n = v->n, q = v->right - 1;
  const double *m = v->small, *b = m + q * q;
  double *a = v->solved, *h = a + n;
  for (size_t k = 0; k < q; k++) add_times(-b[k], h + k * n, a, n);
  for (size_t k = 0; k < q; k++) {
    for (size_t l = 0; l < k; l++) add_times(-m[k + l * q], h + l * n, h + k * n, n);
    for (size_t i = 0; i < n; i++) h[i + k * n] /= m[k + k * q];
  }
}

/* sum_ij s_|i-j| c_|i-j|, for sums s along the diagonals */
static double with_matrix(const levinson *v, const double *s) {
  return 2.0 * product(s, v->c, v->n) - s[0] * v->c[0];
}

/* sums += outer times those along the diagonals of u u' */
static void add_outer(levinson *v, double outer, const double *u) {
  for (size_t d = 0; d < v->n; d++) v->sums[d] += outer * product(u, u + d, v->n - d);
}

/* The sums of a a' / 2 - C^-1 / 2 (integrated: P / 2); false if they are not accurate. `square`:
 * (y - H b)' a. */
static bool sum_weights(levinson *v, bool integrate, double square) {
  size_t n = v->n;
  double *f = v->f, *weighted = v->backwards; /* which is not needed any more */
  for (size_t j = 0; j < n; j++) weighted[j] = ((double)n - 2.0 * (double)j) * f[j];
  for (size_t d = 0; d < n; d++) {
    double sum = product(weighted, f + d, n - d) - (double)d * product(f, f + d, n - d);
    v->sums[d] = -0.5 * sum / v->error;
  }
  double trace = -2.0 * with_matrix(v, v->sums);
  if (!(fabs(trace - (double)n) <= TOLERANCE * (double)n)) return false;
  add_outer(v, 0.5, v->solved);
  double both = 2.0 * with_matrix(v, v->sums) + trace;
  if (!(fabs(both - square) <= TOLERANCE * ((double)n + square))) return false;
  for (size_t k = 1; integrate && k < v->right; k++) add_outer(v, 0.5, v->solved + k * n);
  return true;
}

static double marginal(const levinson *v, bool integrate, double square) {
  double rows = (double)v->n, log_det = v->log_det;
  size_t q = v->right - 1;
  for (size_t k = 0; integrate && k < q; k++) log_det += log(v->small[k * (q + 1)]);
  if (integrate) rows -= (double)q;
  return -0.5 * square - log_det - 0.5 * rows * LOG_2_PI;
}

/* A block of memory of the caller, m x 1 or more columns; the matrix is to be released. */
static scl_status wrap(scl_context *host, const double *data, size_t m, size_t n, scl_mat **out) {
  return scl_mat_wrap(host, (double *)data, m, n, SCL_GENERAL, out);
}

/* The first column of C; or the derivatives, if there are sums along its diagonals. */
static scl_status run_pass(scl_context *host, levinson *v, const scl_gp_data *data,
                           const scl_covariance *kernel, double *gradient) {
  bool reverse = gradient != NULL;
  size_t count = (size_t)scl_covariance_count(kernel);
  scl_mat *x = NULL, *column = NULL, *out = NULL;
  scl_status status;
  SCL_GO(wrap(host, data->x, data->n, data->p, &x));
  SCL_GO(wrap(host, reverse ? v->sums : v->c, data->n, 1, &column));
  struct scl_covariance_pass pass = {
      .kernel = kernel, .x1 = scl_mat_block(x), .symmetric = true, .region = SCL_LOWER_HALF};
  pass.x2 = scl_block_part(pass.x1, 0, 0, 1, data->p);
  if (reverse) {
    SCL_GO(wrap(host, gradient, count, 1, &out));
    pass.weights = scl_mat_block(column);
    pass.inner = 1.0;
    pass.out = scl_mat_block(out);
    status = host->engine->covariance_adjoint(host, &pass);
  } else {
    pass.k = scl_mat_block(column);
    status = host->engine->covariance(host, &pass);
  }
done:
  scl_mat_release(x);
  scl_mat_release(column);
  scl_mat_release(out);
  return status;
}

static scl_status check(const scl_context *host, const scl_gp_data *data,
                        const scl_covariance *kernel) {
  if (host->engine->buffer_wrap == NULL || data->n == 0 || data->outputs != 1 ||
      data->spread != NULL || data->basis_columns > data->n) {
    return scl_fail_argument("y", "this likelihood is for one column of observations with the same "
                                  "noise, on the host");
  }
  return scl_covariance_check(kernel, data->p);
}

scl_status scl_gp_toeplitz(scl_context *host, const scl_gp_data *data, const scl_covariance *kernel,
                           scl_gp_trend trend, bool *usable, double *value, double *b,
                           double *gradient) {
  bool integrate = trend == SCL_GP_INTEGRATE;
  levinson v;
  SCL_TRY(check(host, data, kernel));
  SCL_TRY(begin(&v, data));
  scl_status status;
  size_t q = data->basis_columns;
  SCL_GO(run_pass(host, &v, data, kernel, NULL));
  double least = kernel->noise * kernel->noise * (1.0 - TOLERANCE);
  bool good = run_recursion(&v, data, least, gradient != NULL);
  if (good) {
    SCL_GO(solve_trend(&v));
    double square = product(v.innovation, v.innovation, v.n);
    if (gradient != NULL) {
      solve_weights(&v);
      good = sum_weights(&v, integrate, square);
    }
    if (good && gradient != NULL) SCL_GO(run_pass(host, &v, data, kernel, gradient));
    if (good) *value = marginal(&v, integrate, square);
    if (good && b != NULL) memcpy(b, v.small + q * q, q * sizeof *b);
  }
  *usable = good;
done:
  free(v.memory);
  return status;
}
