/* Rows, factor and solves of a block (engine/host/vecchia.h). */
#include <math.h>

#include "engine/host/vecchia.h"

static const lanes zero = {0};

/* The noise of quiet neighbours, relative to their variance: with smooth covariances, draws
 * conditioned on draws would diverge without it. */
static const double quiet_noise = 1e-10;

void scl_vecchia_read(block *v, const double *record, size_t row, int w, bool real, bool quiet) {
  const struct scl_vecchia_pass *pass = v->pass;
  size_t rows = v->rows;
  double noise2 = quiet ? 0.0 : pass->kernel->noise * pass->kernel->noise, known = 0;
  for (size_t c = 0; c < pass->p; c++) *scl_lane(v->x, c * rows + row, w) = record[c];
  record += pass->p;
  for (size_t c = 0; c < pass->columns; c++) {
    *scl_lane(v->z, c * rows + row, w) = real ? record[c] : 0.0;
  }
  if (pass->spread && !quiet) {
    noise2 *= record[pass->columns];
    known = record[pass->columns + 1];
  }
  *scl_lane(v->noise, row, w) = noise2 + known;
  *scl_lane(v->by_noise, row, w) = 2.0 * noise2;
  *scl_lane(v->quiet, row, w) = quiet ? 1.0 : 0.0;
  *scl_lane(v->real, row, w) = real ? 1.0 : 0.0;
}

/* ---- factor and solves ---------------------------------------------------------------------- */

/* Divides column j of the factor by the root of its pivot. A pivot that is nothing but rounding
 * errors of the diagonal counts as zero. */
INLINED void scale_column(block *v, size_t j, lanes *diagonal) {
  size_t rows = v->rows;
  lanes *column = v->k + j * rows, pivot = column[j];
  for (int w = 0; w < SCL_LANES; w++) {
    double least = *scl_lane(diagonal, j, w) * (double)rows * 0x1p-52;
    if (*scl_lane(&pivot, 0, w) > least) continue;
    if (*scl_lane(v->quiet, j, w) != 0) {
      *scl_lane(&pivot, 0, w) = least; /* a point that is also an observation, or another point */
    } else if (v->order == 0) {
      v->order = w + 1;
    }
  }
  lanes d, inverse;
  for (int w = 0; w < SCL_LANES; w++) *scl_lane(&d, 0, w) = sqrt(*scl_lane(&pivot, 0, w));
  inverse = 1.0 / d;
  column[j] = d;
  for (size_t i = j + 1; i < rows; i++) column[i] *= inverse;
}

/* The lower factor, two columns at a time. */
INLINED void factor(block *v) {
  size_t n = v->rows;
  lanes *diagonal = v->c;
  for (size_t j = 0; j < n; j++) {
    diagonal[j] = v->k[j + j * n];
    if (j + 1 < n) v->k[j + j * n] += v->quiet[j] * diagonal[j] * quiet_noise;
  }
  for (size_t k = 0; k < n; k += 2) {
    lanes *left = v->k + k * n, *next = left + n;
    scale_column(v, k, diagonal);
    if (k + 1 == n) break;
    for (size_t i = k + 1; i < n; i++) next[i] -= left[i] * left[k + 1];
    scale_column(v, k + 1, diagonal);
    for (size_t j = k + 2; j < n; j++) {
      lanes *column = v->k + j * n, r = left[j], s = next[j];
      for (size_t i = j; i < n; i++) column[i] -= left[i] * r + next[i] * s;
    }
  }
}

INLINED void solve_back(const block *v, size_t last, lanes *x) {
  for (size_t j = last + 1; j-- > 0;) {
    const lanes *column = v->k + j * v->rows;
    lanes even = zero, odd = zero;
    size_t i = j + 1;
    for (; i < last; i += 2) {
      even += column[i] * x[i];
      odd += column[i + 1] * x[i + 1];
    }
    if (i == last) even += column[i] * x[i];
    x[j] = (x[j] - (even + odd)) / column[j];
  }
}

INLINED void solve_forward(const block *v, size_t last, lanes *x) {
  for (size_t j = 0; j <= last; j++) {
    const lanes *column = v->k + j * v->rows;
    lanes r = x[j] / column[j];
    x[j] = r;
    for (size_t i = j + 1; i <= last; i++) x[i] -= column[i] * r;
  }
}

SCL_BY_WIDTH(extern, scl_vecchia_factor, factor, (block * v), (v))

SCL_BY_WIDTH(extern, scl_vecchia_back, solve_back, (const block *v, size_t last, lanes *x),
             (v, last, x))

SCL_BY_WIDTH(extern, scl_vecchia_forward, solve_forward, (const block *v, size_t last, lanes *x),
             (v, last, x))
