/* The algorithms of engine/host/lanes.h: textbook forms whose inner loop runs down a column. */
#include "engine/host/lanes.h"

#include <math.h>
#include <string.h>

static const double singular_below = 0x1p-1022; /* a pivot whose reciprocal could overflow */

static const scl_lanes zero = {0};

static void set_status(unsigned char *status, int w, double size, size_t k) {
  if (status[w] != SCL_BATCH_FINE) return;
  if (!(size < INFINITY)) {
    status[w] = SCL_BATCH_NONFINITE;
  } else if (size < singular_below) {
    status[w] = (unsigned char)(k + 1);
  }
}

/* Finds the largest element of column k from row k on, in each lane (a NaN is larger than all), and
 * swaps its row with row k. */
static void pivot(size_t n, size_t k, scl_lanes *x, unsigned char *piv, unsigned char *status) {
  for (int w = 0; w < SCL_LANES; w++) {
    size_t p = k;
    double big = fabs(*scl_lane(x, k + k * n, w));
    for (size_t i = k + 1; i < n; i++) {
      double v = fabs(*scl_lane(x, i + k * n, w));
      if (v <= big || isnan(big)) continue;
      big = v;
      p = i;
    }
    set_status(status, w, big, k);
    piv[k * SCL_LANES + (size_t)w] = (unsigned char)p;
    if (p == k) continue;
    for (size_t j = 0; j < n; j++) {
      double *u = scl_lane(x, k + j * n, w), *v = scl_lane(x, p + j * n, w), t = *u;
      *u = *v;
      *v = t;
    }
  }
}

/* Copies column k, and replaces it by that of the result before the step is applied. */
static void take_column(size_t n, size_t k, scl_lanes *x, scl_lanes *aside) {
  scl_lanes *column = x + k * n;
  memcpy(aside, column, n * sizeof *column);
  for (size_t i = 0; i < n; i++) column[i] = zero;
  column[k] = zero + 1.0;
}

/* One step on one column; *d is the reciprocal of the pivot. */
static void eliminate(size_t n, size_t k, const scl_lanes *aside, const scl_lanes *d,
                      scl_lanes *column) {
  scl_lanes r = column[k] * *d;
  for (size_t i = 0; i < n; i++) column[i] -= aside[i] * r;
  column[k] = r;
}

/* Steps k and k + 1, each column read and written once for both. */
static void eliminate_two(size_t n, size_t k, scl_lanes *x, unsigned char *piv, scl_lanes *work,
                          unsigned char *status) {
  scl_lanes *aside = work, *next = work + n, d = 1.0 / x[k + k * n];
  take_column(n, k, x, aside);
  eliminate(n, k, aside, &d, x + (k + 1) * n);
  pivot(n, k + 1, x, piv, status);
  for (int w = 0; w < SCL_LANES; w++) { /* the rows of the copied columns are swapped too */
    double *u = scl_lane(aside, k + 1, w);
    double *v = scl_lane(aside, piv[(k + 1) * SCL_LANES + (size_t)w], w), t = *u;
    *u = *v;
    *v = t;
  }
  scl_lanes e = 1.0 / x[k + 1 + (k + 1) * n];
  take_column(n, k + 1, x, next);
  for (size_t j = 0; j < n; j++) {
    scl_lanes *column = x + j * n;
    if (j == k + 1) { /* step k is done */
      eliminate(n, k + 1, next, &e, column);
      continue;
    }
    scl_lanes r = column[k] * d, s = (column[k + 1] - aside[k + 1] * r) * e;
    for (size_t i = 0; i < n; i++) column[i] = column[i] - aside[i] * r - next[i] * s;
    column[k] = r - next[k] * s;
    column[k + 1] = s;
  }
}

void scl_lanes_inverse(size_t n, scl_lanes *x, unsigned char *piv, scl_lanes *work,
                       unsigned char *status) {
  for (size_t k = 0; k < n; k += 2) {
    pivot(n, k, x, piv, status);
    if (k + 1 < n) {
      eliminate_two(n, k, x, piv, work, status);
      continue;
    }
    scl_lanes d = 1.0 / x[k + k * n];
    take_column(n, k, x, work);
    for (size_t j = 0; j < n; j++) eliminate(n, k, work, &d, x + j * n);
  }
  for (size_t k = n; k-- > 0;) {
    for (int w = 0; w < SCL_LANES; w++) {
      size_t p = piv[k * SCL_LANES + (size_t)w];
      for (size_t i = 0; p != k && i < n; i++) {
        double *u = scl_lane(x, i + k * n, w), *v = scl_lane(x, i + p * n, w), t = *u;
        *u = *v;
        *v = t;
      }
    }
  }
}

void scl_lanes_cofactors(size_t n, scl_lanes *x, unsigned char *status) {
  scl_lanes a[9], c[9], det;
  memcpy(a, x, n * n * sizeof *a);
  if (n == 1) {
    c[0] = zero + 1.0;
    det = a[0];
  } else if (n == 2) {
    c[0] = a[3], c[1] = -a[1], c[2] = -a[2], c[3] = a[0];
    det = a[0] * a[3] - a[2] * a[1];
  } else {
    c[0] = a[4] * a[8] - a[7] * a[5], c[1] = a[7] * a[2] - a[1] * a[8];
    c[2] = a[1] * a[5] - a[4] * a[2], c[3] = a[6] * a[5] - a[3] * a[8];
    c[4] = a[0] * a[8] - a[6] * a[2], c[5] = a[3] * a[2] - a[0] * a[5];
    c[6] = a[3] * a[7] - a[6] * a[4], c[7] = a[6] * a[1] - a[0] * a[7];
    c[8] = a[0] * a[4] - a[3] * a[1];
    det = a[0] * c[0] + a[3] * c[1] + a[6] * c[2];
  }
  scl_lanes d = 1.0 / det;
  for (size_t e = 0; e < n * n; e++) x[e] = c[e] * d;
  for (int w = 0; w < SCL_LANES; w++) set_status(status, w, fabs(*scl_lane(&det, 0, w)), n - 1);
}

/* Divides column k below its pivot. */
static scl_lanes *multipliers(size_t n, size_t k, scl_lanes *x) {
  scl_lanes *left = x + k * n, d = 1.0 / left[k];
  for (size_t i = k + 1; i < n; i++) left[i] *= d;
  return left;
}

/* column -= left * factor from row `from` on. */
static void subtract(size_t from, size_t n, const scl_lanes *left, const scl_lanes *factor,
                     scl_lanes *column) {
  const scl_lanes r = *factor;
  for (size_t i = from; i < n; i++) column[i] -= left[i] * r;
}

/* Two steps at a time: the columns to the right are read and written once for both. */
void scl_lanes_lu(size_t n, scl_lanes *x, unsigned char *piv, unsigned char *status) {
  for (size_t k = 0; k < n; k += 2) {
    pivot(n, k, x, piv, status);
    const scl_lanes *left = multipliers(n, k, x);
    if (k + 1 == n) break;
    subtract(k + 1, n, left, left + n + k, x + (k + 1) * n);
    pivot(n, k + 1, x, piv, status);
    const scl_lanes *next = multipliers(n, k + 1, x);
    for (size_t j = k + 2; j < n; j++) {
      scl_lanes *column = x + j * n, r = column[k], s = column[k + 1] - left[k + 1] * r;
      column[k + 1] = s;
      for (size_t i = k + 2; i < n; i++) column[i] = column[i] - left[i] * r - next[i] * s;
    }
  }
}

void scl_lanes_lu_solve(size_t n, size_t k, const scl_lanes *x, const unsigned char *piv,
                        scl_lanes *b) {
  for (size_t j = 0; j < k; j++, b += n) {
    for (size_t i = 0; i < n; i++) {
      for (int w = 0; w < SCL_LANES; w++) {
        double *u = scl_lane(b, i, w), *v = scl_lane(b, piv[i * SCL_LANES + (size_t)w], w), t = *u;
        *u = *v;
        *v = t;
      }
    }
    for (size_t q = 0; q < n; q++) {
      scl_lanes r = b[q];
      for (size_t i = q + 1; i < n; i++) b[i] -= x[i + q * n] * r;
    }
    for (size_t q = n; q-- > 0;) {
      scl_lanes r = b[q] / x[q + q * n];
      b[q] = r;
      for (size_t i = 0; i < q; i++) b[i] -= x[i + q * n] * r;
    }
  }
}

/* The product is kept as a number near 1 and a power of two: no pivot's size can overflow it. */
void scl_lanes_lu_det(size_t n, scl_lanes *x, const unsigned char *piv, bool logarithm,
                      double value[SCL_LANES], double sign[SCL_LANES]) {
  for (int w = 0; w < SCL_LANES; w++) {
    double product = 1.0;
    long power = 0;
    for (size_t k = 0; k < n; k++) {
      int exponent = 0;
      product = frexp(product * *scl_lane(x, k + k * n, w), &exponent);
      power += exponent;
      if (piv[k * SCL_LANES + (size_t)w] != k) product = -product;
      /* The rest of a column without a pivot is not finite, but the determinant is zero. */
      if (product == 0.0) break;
    }
    sign[w] = isnan(product) ? NAN : (product > 0.0) - (product < 0.0);
    if (logarithm) {
      value[w] = log(fabs(product)) + (double)power * 0.693147180559945309417;
    } else {
      value[w] = ldexp(product, power > 5000 ? 5000 : power < -5000 ? -5000 : (int)power);
    }
  }
}

/* The root of a pivot, and its column divided by it. */
static void chol_column(size_t n, size_t k, scl_lanes *x, unsigned char *status) {
  scl_lanes *left = x + k * n, root = left[k];
  for (int w = 0; w < SCL_LANES; w++) {
    double *d = scl_lane(&root, 0, w);
    if (status[w] == SCL_BATCH_FINE) {
      status[w] = !(fabs(*d) < INFINITY) ? SCL_BATCH_NONFINITE
                  : *d > 0.0             ? SCL_BATCH_FINE
                                         : (unsigned char)(k + 1);
    }
    *d = *d > 0.0 ? sqrt(*d) : NAN;
  }
  scl_lanes r = 1.0 / root;
  left[k] = root;
  for (size_t i = k + 1; i < n; i++) left[i] *= r;
}

void scl_lanes_chol(size_t n, scl_lanes *x, unsigned char *status) {
  for (size_t k = 0; k < n; k += 2) {
    chol_column(n, k, x, status);
    if (k + 1 == n) break;
    const scl_lanes *left = x + k * n, *next = left + n;
    subtract(k + 1, n, left, left + k + 1, x + (k + 1) * n);
    chol_column(n, k + 1, x, status);
    for (size_t j = k + 2; j < n; j++) {
      scl_lanes *column = x + j * n, r = left[j], s = next[j];
      for (size_t i = j; i < n; i++) column[i] = column[i] - left[i] * r - next[i] * s;
    }
  }
}

/* Backwards through the right-looking factorisation: the column of step k sees the trailing part of
 * S as the forward step left it. Murray (2016), level 2. */
void scl_lanes_chol_adjoint(size_t n, scl_lanes *l, scl_lanes *s, unsigned char *status) {
  for (size_t k = 0; k < n; k++) {
    for (int w = 0; w < SCL_LANES; w++) set_status(status, w, fabs(*scl_lane(l, k + k * n, w)), k);
  }
  for (size_t k = n; k-- > 0;) {
    scl_lanes *factor = l + k * n, *adjoint = s + k * n, d = 1.0 / factor[k];
    for (size_t j = k + 1; j < n; j++) {
      scl_lanes *column = s + j * n, r = 2.0 * factor[j];
      for (size_t i = k + 1; i < n; i++) adjoint[i] -= column[i] * r;
    }
    scl_lanes sum = adjoint[k];
    for (size_t i = k + 1; i < n; i++) {
      adjoint[i] *= d;
      sum -= adjoint[i] * factor[i];
      adjoint[i] *= 0.5;
      s[k + i * n] = adjoint[i];
    }
    adjoint[k] = 0.5 * sum * d;
  }
}

void scl_lanes_forward(size_t n, size_t k, const scl_lanes *l, scl_lanes *b) {
  for (size_t j = 0; j < k; j++, b += n) {
    for (size_t q = 0; q < n; q++) {
      scl_lanes r = b[q] / l[q + q * n];
      b[q] = r;
      for (size_t i = q + 1; i < n; i++) b[i] -= l[i + q * n] * r;
    }
  }
}

void scl_lanes_product(size_t m, size_t n, size_t k, const scl_lanes *a, const scl_lanes *b,
                       scl_lanes *c) {
  for (size_t j = 0; j < n; j++) {
    for (size_t q = 0; q < k; q++) {
      scl_lanes r = b[q + j * k];
      for (size_t i = 0; i < m; i++) c[i + j * m] += a[i + q * m] * r;
    }
  }
}
