/* Value, gradient and Fisher information of Vecchia's approximation in one pass. */
#include <stdlib.h>
#include <string.h>

#include "ops/vecchia_private.h"

/* c' (dP) c for the lower triangle dP of the derivatives of products, by columns. */
static double quadratic(const double *products, size_t size, const double *c) {
  double sum = 0;
  for (size_t j = 0; j < size; j++) {
    for (size_t i = j; i < size; i++) sum += (i == j ? 1 : 2) * c[i] * c[j] * *products++;
  }
  return sum;
}

/* The derivatives: those of the logarithms less half of those of the squares that make up the
 * likelihood. */
static void find_gradient(const scl_vecchia *v, scl_gp_trend trend, const scl_vecchia_space *w,
                          size_t count, double *gradient) {
  size_t columns = v->outputs + v->q, sums = 1 + columns * (columns + 1) / 2;
  size_t combined = scl_vecchia_combine(v, trend, &w->s, w->columns, w->factor);
  for (size_t r = 0; r < count; r++) {
    const double *by = w->out + 1 + (r + 1) * sums;
    gradient[r] = (double)v->outputs * by[0];
    for (size_t c = 0; c < combined; c++) {
      gradient[r] -= 0.5 * w->factor[c] * quadratic(by + 1, columns, w->columns + c * columns);
    }
  }
}

static bool are_groups(const int *group, size_t size, size_t count) {
  for (size_t i = 0; i < size; i++) {
    if (group[i] > (int)count || group[i] < -(int)count) return false;
  }
  return count <= size;
}

scl_status scl_vecchia_inform(scl_vecchia *v, const scl_covariance *kernel, scl_gp_trend trend,
                              const int *group, size_t count, double *value, double *b,
                              double *gradient, double *information) {
  scl_vecchia_space w = {0};
  scl_status status;
  const scl_vecchia_copy *c = scl_vecchia_fast_copy(v);
  SCL_GO(scl_vecchia_begin(v, kernel, &w));
  if (!are_groups(group, (size_t)scl_covariance_count(kernel), count)) {
    status = scl_fail_argument("kernel", "'kernel' has parameters without a place");
    goto done;
  }
  struct scl_vecchia_pass pass = scl_vecchia_begin_pass(v, c, kernel, SCL_VECCHIA_INFORMATION);
  pass.group = group;
  pass.parameters = count;
  pass.out = w.out;
  SCL_GO(scl_vecchia_run(v, c->ctx, &pass));
  SCL_GO(scl_vecchia_solve(v, w.out, &w.s));
  *value = scl_vecchia_marginal(v, trend, &w.s);
  find_gradient(v, trend, &w, count, gradient);
  const double *from = w.out + scl_vecchia_results(&pass) - count * (count + 1) / 2;
  for (size_t r = 0; r < count; r++) {
    for (size_t s = r; s < count; s++) {
      information[r + s * count] = information[s + r * count] = (double)v->outputs * *from++;
    }
  }
  if (b != NULL && v->q > 0) memcpy(b, w.s.b, v->q * v->outputs * sizeof *b);
done:
  free(w.memory);
  return status;
}
