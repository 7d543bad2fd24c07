#include "ops/covariance.h"

#include <math.h>
#include <string.h>

#include "ops/operation.h"

static const char *const type_name[] = {
#define SCL_COVARIANCE_ENTRY(ID, name, metric) #name,
    SCL_COVARIANCE_TABLE(SCL_COVARIANCE_ENTRY)
#undef SCL_COVARIANCE_ENTRY
};

scl_status scl_covariance_find(const char *name, scl_covariance_type *out) {
  for (int i = 0; i < SCL_COVARIANCE_TYPES; i++) {
    if (strcmp(name, type_name[i]) == 0) {
      *out = (scl_covariance_type)i;
      return SCL_OK;
    }
  }
  return scl_fail_argument("kernel", "unknown covariance function '%s'", name);
}

static bool is_positive(double x) {
  return isfinite(x) && x > 0;
}

/* For divisors: 1 / x must be finite too. */
static bool is_divisor(double x) {
  return is_positive(x) && isfinite(1.0 / x);
}

static scl_status fail_divisor(const char *name, double x) {
  return scl_fail_argument("kernel", "'%s' must be finite and above 5.6e-309, not %g", name, x);
}

/* Whether the value does not depend on any column. */
static bool is_plain(scl_covariance_type type) {
  return type == SCL_COVARIANCE_CONSTANT || type == SCL_COVARIANCE_WHITE;
}

static scl_status check_terms(const scl_covariance *kernel) {
  int entries = 0;
  for (int t = 0; t < kernel->terms; t++) {
    const scl_covariance_term *term = &kernel->term[t];
    if ((int)term->type < 0 || term->type >= SCL_COVARIANCE_TYPES ||
        (is_plain(term->type) ? term->entries != 0 : term->entries < 1)) {
      return scl_fail_argument("kernel", "term %d of 'kernel' is not a covariance function", t + 1);
    }
    if (!is_positive(term->sd)) {
      return scl_fail_argument("kernel", "'sd' must be positive and finite, not %g", term->sd);
    }
    if (!isfinite(term->sd * term->sd)) {
      return scl_fail_argument(
          "kernel", "'sd' must be below 1.3e154, where its square overflows, not %g", term->sd);
    }
    if (!is_divisor(term->extra)) {
      return fail_divisor(term->type == SCL_COVARIANCE_PERIODIC       ? "period"
                          : term->type == SCL_COVARIANCE_GREAT_CIRCLE ? "lengthscale"
                                                                      : "alpha",
                          term->extra);
    }
    entries += term->entries;
  }
  if (kernel->terms < 1 || entries != kernel->entries) {
    return scl_fail_argument("kernel", "'kernel' has no terms");
  }
  return SCL_OK;
}

static scl_status check_factors(const scl_covariance *kernel) {
  const int *next = kernel->factors;
  for (int g = 0; next != NULL && g < kernel->products; g++) {
    int count = *next++;
    if (count < 1 || count > SCL_COVARIANCE_MOST_FACTORS) {
      return scl_fail_argument("kernel", "a product of %d kernels: at most %d are supported", count,
                               SCL_COVARIANCE_MOST_FACTORS);
    }
    for (int f = 0; f < count; f++, next++) {
      if (*next < 0 || *next >= kernel->terms) {
        return scl_fail_argument("kernel", "'kernel' has no term %d", *next + 1);
      }
    }
  }
  if (kernel->factors != NULL && kernel->products < 1) {
    return scl_fail_argument("kernel", "'kernel' has no terms");
  }
  return SCL_OK;
}

scl_status scl_covariance_check(const scl_covariance *kernel, size_t p) {
  SCL_TRY(check_terms(kernel));
  SCL_TRY(check_factors(kernel));
  for (int e = 0; e < kernel->entries; e++) {
    if (kernel->column[e] < 0 || (size_t)kernel->column[e] >= p) {
      return scl_fail_argument("kernel", "'kernel' uses column %d, but there are %zu columns",
                               kernel->column[e] + 1, p);
    }
    if (!is_divisor(kernel->lengthscale[e])) {
      return fail_divisor("lengthscale", kernel->lengthscale[e]);
    }
    if (kernel->center != NULL && !isfinite(kernel->center[e])) {
      return scl_fail_argument("kernel", "'center' must be finite");
    }
  }
  if (!(isfinite(kernel->noise) && kernel->noise >= 0)) {
    return scl_fail_argument("noise", "'noise' must be finite and non-negative");
  }
  return SCL_OK;
}

/* k_t(x_i, x_i), white ones 0. */
static double term_variance(const scl_covariance *kernel, int t, const double *x, size_t ld) {
  const scl_covariance_term *term = &kernel->term[t];
  int first = 0;
  for (int before = 0; before < t; before++) first += kernel->term[before].entries;
  double s = term->type == SCL_COVARIANCE_WHITE ? 1.0 : 0.0;
  for (int e = first; e < first + term->entries; e++) {
    double value = x[(size_t)kernel->column[e] * ld];
    s += covariance_part(covariance_metric(term->type), value, value,
                         kernel->center == NULL ? 0.0 : kernel->center[e],
                         1.0 / kernel->lengthscale[e], term->extra);
  }
  return term->sd * term->sd * covariance_any(term->type, s, term->extra).value;
}

void scl_covariance_variances(const scl_covariance *kernel, const double *x, size_t n, size_t ld,
                              double *out) {
  for (size_t i = 0; i < n; i++) {
    double sum = 0;
    const int *next = kernel->factors;
    if (next == NULL) {
      for (int t = 0; t < kernel->terms; t++) sum += term_variance(kernel, t, x + i, ld);
    }
    for (int g = 0; next != NULL && g < kernel->products; g++) {
      double product = 1;
      int count = *next++;
      for (int f = 0; f < count; f++) product *= term_variance(kernel, *next++, x + i, ld);
      sum += product;
    }
    out[i] = sum;
  }
}

static scl_status check_inputs(const scl_covariance *kernel, const scl_mat *x1, const scl_mat *x2) {
  SCL_TRY(scl_covariance_check(kernel, x1->ncol));
  if (x2 == NULL) return SCL_OK;
  SCL_TRY(scl_mat_same_context(x1, x2));
  if (x2->ncol != x1->ncol) {
    return scl_fail_argument("x2", "'x2' has %zu columns, but 'x1' has %zu", x2->ncol, x1->ncol);
  }
  return SCL_OK;
}

/* The pass without its task. */
static struct scl_covariance_pass begin_pass(const scl_covariance *kernel, const scl_mat *x1,
                                             const scl_mat *x2) {
  bool symmetric = x2 == NULL;
  return (struct scl_covariance_pass){.kernel = kernel,
                                      .x1 = scl_mat_block(x1),
                                      .x2 = scl_mat_block(symmetric ? x1 : x2),
                                      .symmetric = symmetric,
                                      .region = symmetric ? SCL_MIRRORED : SCL_ALL};
}

scl_status scl_covariance_matrix(const scl_covariance *kernel, const scl_mat *x1, const scl_mat *x2,
                                 scl_mat **out) {
  SCL_TRY(check_inputs(kernel, x1, x2));
  scl_mat *k = NULL;
  SCL_TRY(scl_mat_create(x1->ctx, x1->nrow, x2 == NULL ? x1->nrow : x2->nrow,
                         x2 == NULL ? SCL_SYMMETRIC : SCL_GENERAL, &k));
  scl_status status = SCL_OK;
  if (!scl_is_empty(k)) {
    struct scl_covariance_pass pass = begin_pass(kernel, x1, x2);
    pass.k = scl_mat_block(k);
    status = scl_engine_of(x1)->covariance(x1->ctx, &pass);
  }
  return scl_give(status, k, out);
}

static scl_status check_weights(const scl_mat *x1, const scl_mat *x2, const scl_mat *weights) {
  SCL_TRY(scl_mat_same_context(x1, weights));
  size_t n = x2 == NULL ? x1->nrow : x2->nrow;
  if (weights->nrow != x1->nrow || weights->ncol != n) {
    return scl_fail_argument("k_adj",
                             "'k_adj' is %zu x %zu, but the covariance matrix is %zu x %zu",
                             weights->nrow, weights->ncol, x1->nrow, n);
  }
  return SCL_OK;
}

scl_status scl_covariance_adjoint(const scl_covariance *kernel, const scl_mat *x1,
                                  const scl_mat *x2, const scl_mat *weights, double *out) {
  SCL_TRY(check_inputs(kernel, x1, x2));
  SCL_TRY(check_weights(x1, x2, weights));
  int count = scl_covariance_count(kernel);
  if (scl_is_empty(weights)) {
    for (int q = 0; q < count; q++) out[q] = 0;
    return SCL_OK;
  }
  struct scl_covariance_pass pass = begin_pass(kernel, x1, x2);
  pass.weights = scl_mat_block(weights);
  pass.inner = 1;
  SCL_TRY(scl_block_create(x1->ctx, (size_t)count, 1, &pass.out));
  scl_status status = scl_engine_of(x1)->covariance_adjoint(x1->ctx, &pass);
  if (status == SCL_OK) {
    status = scl_read_block(x1->ctx, pass.out, SCL_WAIT_WRITES, out);
  }
  scl_buffer_release(pass.out.buffer);
  return status;
}

scl_status scl_covariance_inputs(const scl_covariance *kernel, const scl_mat *x1, const scl_mat *x2,
                                 const scl_mat *weights, scl_mat **out) {
  SCL_TRY(check_inputs(kernel, x1, x2));
  SCL_TRY(check_weights(x1, x2, weights));
  scl_mat *by_x = NULL;
  SCL_TRY(scl_mat_create(x1->ctx, x1->nrow, x1->ncol, SCL_GENERAL, &by_x));
  scl_status status = SCL_OK;
  if (scl_is_empty(weights)) {
    if (!scl_is_empty(by_x)) {
      status = scl_engine_of(x1)->fill(x1->ctx, 0.0, scl_mat_block(by_x));
    }
  } else {
    struct scl_covariance_pass pass = begin_pass(kernel, x1, x2);
    pass.weights = scl_mat_block(weights);
    pass.inner = 1;
    pass.out = scl_mat_block(by_x);
    status = scl_engine_of(x1)->covariance_inputs(x1->ctx, &pass);
  }
  return scl_give(status, by_x, out);
}
