#include "expr_reference.h"

#include <math.h>

#include "test.h"

static double reduce_array(scl_reduction op, size_t count, size_t step, const double *x) {
  double r = scl_reduction_identity(op), place = 0;
  for (size_t k = 0; k < count; k++) {
    const double v = x[k * step];
    switch (op) {
    case SCL_REDUCE_SUM:
      r += v;
      break;
    case SCL_REDUCE_PROD:
      r *= v;
      break;
    case SCL_REDUCE_MIN:
      r = isnan(r) || isnan(v) ? NAN : fmin(r, v);
      break;
    case SCL_REDUCE_MAX:
      r = isnan(r) || isnan(v) ? NAN : fmax(r, v);
      break;
    case SCL_REDUCE_COUNT_TRUE:
      r += !isnan(v) && v != 0;
      break;
    case SCL_REDUCE_COUNT_NAN:
      r += isnan(v) != 0;
      break;
    default: { /* which_max, which_min */
      const bool better = op == SCL_REDUCE_WHICH_MAX ? v > r : v < r;
      if (!isnan(v) && (place == 0 || better)) {
        r = v;
        place = (double)k + 1;
      }
    }
    }
  }
  return scl_reduces_to_index(op) ? place : r;
}

double *expr_reduced(scl_reduction op, const double *x, size_t rows, size_t columns,
                     scl_margin margin, size_t *m, size_t *n) {
  *m = margin == SCL_BY_ROW ? rows : 1;
  *n = margin == SCL_BY_COLUMN ? columns : 1;
  double *want = test_alloc((*m * *n + 1) * sizeof *want);
  for (size_t k = 0; k < *m * *n; k++) {
    want[k] = margin == SCL_TOTAL    ? reduce_array(op, rows * columns, 1, x)
              : margin == SCL_BY_ROW ? reduce_array(op, columns, rows, x + k)
                                     : reduce_array(op, rows, 1, x + k * rows);
  }
  return want;
}
