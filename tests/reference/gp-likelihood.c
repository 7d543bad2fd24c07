/* Writes gp-likelihood.csv: likelihoods of Gaussian processes and their derivatives in 113-bit
 * arithmetic (34 digits). Values are by the textbook formulas (leave-one-out by leaving out);
 * derivatives by central differences of sixth order of these, which keep 24 digits or more: no
 * formula of a derivative is used. The problems are those of tests/testthat/helper-gp-reference.R.
 *
 *   gcc -O1 -o gp-likelihood gp-likelihood.c -lquadmath -lm
 *   ./gp-likelihood > gp-likelihood.csv */
#include <quadmath.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef __float128 real;

enum { N = 11, MOST = 10 };

static real x[N][2], y[N];

typedef real kernel(const real *u, const real *v, const real *p);

static real scaled(const real *u, const real *v, real l1, real l2) {
  real a = (u[0] - v[0]) / l1, b = (u[1] - v[1]) / l2;
  return a * a + b * b;
}

static real exp_quad(const real *u, const real *v, const real *p) {
  return p[0] * p[0] * expq(-scaled(u, v, p[1], p[2]) / 2);
}

static real matern32(const real *u, const real *v, const real *p) {
  real r = sqrtq(3 * scaled(u, v, p[1], p[1]));
  return p[0] * p[0] * (1 + r) * expq(-r);
}

static real rational_quadratic(const real *u, const real *v, const real *p) {
  return p[0] * p[0] * powq(1 + scaled(u, v, p[1], p[1]) / (2 * p[2]), -p[2]);
}

/* periodic (column 1) * exponential + linear * matern52 */
static real composed(const real *u, const real *v, const real *p) {
  real wave = sinq(M_PIq * (u[0] - v[0]) / p[2]) / p[1], q = (real)0.25;
  real r = sqrtq(5 * scaled(u, v, p[7], p[7]));
  real lines = p[5] * p[5] * ((u[0] - q) * (v[0] - q) + (u[1] - q) * (v[1] - q));
  return p[0] * p[0] * expq(-2 * wave * wave) * p[3] * p[3] *
             expq(-sqrtq(scaled(u, v, p[4], p[4]))) +
         lines * p[6] * p[6] * (1 + r + r * r / 3) * expq(-r);
}

typedef struct {
  const char *name;
  kernel *k;
  int count; /* parameters, the noise last */
  const char *par[MOST];
  double at[MOST];
  int basis; /* columns of 1, x1, x2 */
  bool integrate, leave_one_out;
} problem;

/* -y' P y / 2 - log|C| / 2 (- log|A| / 2) of all rows but `without`. */
static real marginal(const problem *q, const real *p, int without, bool integrate) {
  real l[N][N], z[N], done[3][N], value = 0, noise = p[q->count - 1];
  int row[N], n = 0, rows;
  for (int i = 0; i < N; i++) {
    if (i != without) row[n++] = i;
  }
  for (int j = 0; j < n; j++) {
    for (int i = j; i < n; i++) {
      real sum = q->k(x[row[i]], x[row[j]], p) + (i == j ? noise * noise : 0);
      for (int k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
      l[i][j] = i == j ? sqrtq(sum) : sum / l[j][j];
    }
    value -= logq(l[j][j]);
  }
  rows = n;
  for (int c = -1; c < q->basis; c++) { /* -1: y, which all columns are then taken off */
    real *s = c < 0 ? z : done[c];
    for (int i = 0; i < n; i++) {
      s[i] = c < 0 ? y[row[i]] : c == 0 ? 1 : x[row[i]][c - 1];
      for (int k = 0; k < i; k++) s[i] -= l[i][k] * s[k];
      s[i] /= l[i][i];
    }
    if (c < 0) continue;
    for (int before = 0; before < c; before++) {
      real dot = 0;
      for (int i = 0; i < n; i++) dot += done[before][i] * s[i];
      for (int i = 0; i < n; i++) s[i] -= dot * done[before][i];
    }
    real size = 0, dot = 0;
    for (int i = 0; i < n; i++) size += s[i] * s[i];
    size = sqrtq(size);
    for (int i = 0; i < n; i++) s[i] /= size;
    for (int i = 0; i < n; i++) dot += s[i] * z[i];
    for (int i = 0; i < n; i++) z[i] -= dot * s[i];
    if (integrate) {
      value -= logq(size);
      rows--;
    }
  }
  for (int i = 0; i < n; i++) value -= z[i] * z[i] / 2;
  return value - rows * logq(2 * M_PIq) / 2;
}

/* The density of y_i given the others is that of all less that of the others, an estimated mean
 * being integrated out in both. */
static real objective(const problem *q, const real *p) {
  if (!q->leave_one_out) return marginal(q, p, -1, q->integrate);
  real sum = 0;
  for (int i = 0; i < N; i++) sum += marginal(q, p, -1, true) - marginal(q, p, i, true);
  return sum;
}

static void print(const char *name, const char *what, real value) {
  char text[64];
  quadmath_snprintf(text, sizeof text, "%.33Qe", value);
  printf("%s,%s,%s\n", name, what, text);
}

static void solve(const problem *q) {
  real p[MOST];
  for (int i = 0; i < q->count; i++) p[i] = q->at[i];
  print(q->name, "value", objective(q, p));
  for (int i = 0; i < q->count; i++) {
    static const int weight[] = {45, -9, 1};
    real keep = p[i], h = keep * (real)0x1p-14, slope = 0;
    for (int step = 1; step <= 3; step++) {
      p[i] = keep + step * h;
      slope += weight[step - 1] * objective(q, p);
      p[i] = keep - step * h;
      slope -= weight[step - 1] * objective(q, p);
    }
    p[i] = keep;
    print(q->name, q->par[i], slope / (60 * h));
  }
}

#define COMPOSED                                                                                   \
  .k = composed, .count = 9,                                                                       \
  .par = {"sd1", "lengthscale1", "period1", "sd2", "lengthscale2", "sd3", "sd4", "lengthscale4",   \
          "noise"},                                                                                \
  .at = {1.5, 0.75, 0.625, 0.75, 1.25, 0.5, 1.25, 0.375, 0.125}

int main(void) {
  static const problem problems[] = {
      {"exp_quad", exp_quad, 4, {"sd", "lengthscale.1", "lengthscale.2", "noise"},
       {1.25, 0.5, 0.75, 0.25}, 0, false, false},
      {"smooth", exp_quad, 4, {"sd", "lengthscale.1", "lengthscale.2", "noise"},
       {1.25, 4, 0.75, 0x1p-10}, 0, false, false},
      {"matern32", matern32, 3, {"sd", "lengthscale", "noise"}, {1.5, 0.375, 0.125}, 1, false,
       false},
      {"rational_quadratic", rational_quadratic, 4, {"sd", "lengthscale", "alpha", "noise"},
       {0.75, 0.5, 1.5, 0.25}, 3, true, false},
      {.name = "composed", COMPOSED},
      {.name = "loo", COMPOSED, .basis = 1, .leave_one_out = true},
  };
  for (int i = 1; i <= N; i++) {
    x[i - 1][0] = (real)(i * 7 % 11) / 8;
    x[i - 1][1] = (real)(i * i % 13) / 16;
    y[i - 1] = (real)(i * 5 % 7 - 3) / 4;
  }
  printf("case,what,value\n");
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) solve(&problems[i]);
  return 0;
}
