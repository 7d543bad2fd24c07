/* .Call entries for Gaussian processes. The result is NULL for a handle that cannot be used in this
 * process: it was read from a file or made before a fork, or its device is lost. R code then makes
 * a new one. */
#include "ops/gp_toeplitz.h"

#include "r/covariance.h"
#include "r/entries.h"
#include "r/gp.h"
#include "r/pointer.h"

#include <string.h>

R_POINTER_KIND(process, "statcl_gp", scl_gp)

scl_status r_gp_read_data(SEXP y, SEXP x, SEXP basis, SEXP spread, scl_gp_data *out) {
  if (TYPEOF(x) != REALSXP || TYPEOF(y) != REALSXP || r_nrow(y, "y") != r_nrow(x, "x")) {
    return scl_fail_argument("y", "'y' must have one row for each row of 'x'");
  }
  if (basis != R_NilValue &&
      (TYPEOF(basis) != REALSXP || r_nrow(basis, "mean") != r_nrow(x, "x"))) {
    return scl_fail_argument("mean", "the basis of the mean must have one row for each row of 'x'");
  }
  if (spread != R_NilValue &&
      (TYPEOF(spread) != REALSXP || r_nrow(spread, "weights") != r_nrow(x, "x") ||
       r_ncol(spread, "weights") != 2)) {
    return scl_fail_argument("weights", "'weights' must have one value for each row of 'x'");
  }
  *out = (scl_gp_data){.n = r_nrow(x, "x"),
                       .p = r_ncol(x, "x"),
                       .outputs = r_ncol(y, "y"),
                       .basis_columns = basis == R_NilValue ? 0 : r_ncol(basis, "mean"),
                       .x = REAL_RO(x),
                       .y = REAL_RO(y),
                       .basis = r_numbers(basis),
                       .spread = r_numbers(spread)};
  return SCL_OK;
}

SEXP r_gp_new(SEXP y, SEXP x, SEXP basis, SEXP spread, SEXP where) {
  SEXP handle = PROTECT(r_pointer_new(&process, R_NilValue));
  scl_status status;
  scl_context *ctx = NULL;
  scl_gp *gp = NULL;
  scl_gp_data data;
  SCL_GO(r_gp_read_data(y, x, basis, spread, &data));
  SCL_GO(r_context(Rf_asInteger(where), &ctx));
  SCL_GO(scl_gp_create(ctx, &data, &gp));
  r_pointer_set(handle, gp);
done:
  UNPROTECT(1);
  return r_return(status, handle);
}

SEXP r_gp_info(SEXP handle) {
  scl_gp *gp = r_pointer_usable(&process, handle);
  if (gp == NULL) return R_NilValue;
  const scl_context *ctx = scl_gp_context(gp);
  return r_info_new(ctx, scl_context_name(ctx), scl_gp_bytes(gp), 0);
}

/* Largest number of observations for one and for two matrices, 0: unknown. */
SEXP r_gp_largest(SEXP where) {
  SEXP result = PROTECT(Rf_allocVector(REALSXP, 2));
  scl_context *ctx = NULL;
  scl_status status = r_context(Rf_asInteger(where), &ctx);
  for (int i = 0; i < 2 && status == SCL_OK; i++) {
    REAL(result)[i] = (double)scl_gp_largest(ctx, i + 1);
  }
  UNPROTECT(1);
  return r_return(status, result);
}

/* From a layout (kernel_layout() in R): the index of each value in c(1, parameters), and which
 * values are inverses. */
typedef struct {
  R_xlen_t count;
  const int *index;
  bool *inverse;
} parameter_map;

static scl_status read_parameter_map(SEXP layout, SEXP par, SEXP names, parameter_map *out) {
  if (TYPEOF(layout) != VECSXP || XLENGTH(layout) < 3 || TYPEOF(names) != STRSXP ||
      Rf_xlength(names) != Rf_xlength(par)) {
    return scl_fail_argument("kernel", "'kernel' is not a covariance function");
  }
  SEXP index = VECTOR_ELT(layout, 1), inverse = VECTOR_ELT(layout, 2);
  R_xlen_t count = Rf_xlength(index), most = Rf_xlength(par) + 1;
  bool good = TYPEOF(index) == INTSXP && TYPEOF(inverse) == INTSXP && TYPEOF(par) == REALSXP;
  for (R_xlen_t i = 0; good && i < count; i++)
    good = INTEGER(index)[i] >= 1 && INTEGER(index)[i] <= most;
  for (R_xlen_t i = 0; good && i < Rf_xlength(inverse); i++)
    good = INTEGER(inverse)[i] >= 1 && INTEGER(inverse)[i] <= count;
  if (!good) return scl_fail_argument("kernel", "'kernel' is not a covariance function");
  *out = (parameter_map){count, INTEGER(index), (bool *)R_alloc((size_t)count + 1, sizeof(bool))};
  memset(out->inverse, 0, (size_t)count * sizeof(bool));
  for (R_xlen_t i = 0; i < Rf_xlength(inverse); i++) out->inverse[INTEGER(inverse)[i] - 1] = true;
  return SCL_OK;
}

/* Derivatives with respect to the parameters, from those with respect to the logarithms of the
 * values. */
static void by_parameters(const parameter_map *v, const double *by_log, SEXP par, double *out) {
  R_xlen_t count = Rf_xlength(par);
  const double *at = REAL_RO(par);
  memset(out, 0, (size_t)count * sizeof *out);
  for (R_xlen_t i = 0; i < v->count; i++) {
    if (v->index[i] > 1) out[v->index[i] - 2] += v->inverse[i] ? -by_log[i] : by_log[i];
  }
  for (R_xlen_t k = 0; k < count; k++) out[k] = at[k] == 0.0 ? 0.0 : out[k] / at[k];
}

/* The kernel of a layout with the values that its parameters have; `by_log` has room for their
 * derivatives. All lives until the .Call returns. */
static scl_status read_kernel(SEXP layout, SEXP par, SEXP names, parameter_map *map,
                              scl_covariance *kernel, double **by_log) {
  SCL_TRY(read_parameter_map(layout, par, names, map));
  double *values = (double *)R_alloc((size_t)map->count + 1, sizeof *values);
  for (R_xlen_t i = 0; i < map->count; i++) {
    double value = map->index[i] == 1 ? 1.0 : REAL_RO(par)[map->index[i] - 2];
    values[i] = map->inverse[i] ? 1.0 / value : value;
  }
  *by_log = (double *)R_alloc((size_t)map->count + 1, sizeof **by_log);
  return r_covariance_read_values(VECTOR_ELT(layout, 0), values, map->count, kernel);
}

static void set_gradient(SEXP result, const parameter_map *map, const double *by_log, SEXP par,
                         SEXP names) {
  SEXP slope = PROTECT(Rf_allocVector(REALSXP, Rf_xlength(par)));
  by_parameters(map, by_log, par, REAL(slope));
  Rf_setAttrib(slope, R_NamesSymbol, names);
  Rf_setAttrib(result, Rf_install("gradient"), slope);
  UNPROTECT(1);
}

/* c(value, b). On request it has the attribute "gradient", the derivatives with respect to `par`
 * (the kernel's parameters and the noise), with these names. */
SEXP r_gp_evaluate(SEXP handle, SEXP layout, SEXP par, SEXP names, SEXP leave_one_out,
                   SEXP integrate, SEXP gradient) {
  scl_gp *gp = r_pointer_usable(&process, handle);
  if (gp == NULL) return R_NilValue;
  bool wanted = Rf_asLogical(gradient) == TRUE;
  scl_gp_objective objective =
      Rf_asLogical(leave_one_out) == TRUE ? SCL_GP_LEAVE_ONE_OUT : SCL_GP_MARGINAL;
  const scl_gp_shape s = scl_gp_shape_of(gp);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)(1 + s.q * s.outputs)));
  parameter_map map;
  scl_covariance kernel;
  double *by_log;
  scl_status status = read_kernel(layout, par, names, &map, &kernel, &by_log);
  if (status == SCL_OK) {
    status = scl_gp_evaluate(gp, &kernel, objective, r_gp_trend(integrate), REAL(result),
                             REAL(result) + 1, wanted ? by_log : NULL);
  }
  if (status == SCL_OK && wanted) set_gradient(result, &map, by_log, par, names);
  UNPROTECT(1);
  return r_return(status, result);
}

/* The same for points in equal steps and one column of y, without a handle; NULL if the result
 * would not be accurate. */
SEXP r_gp_toeplitz(SEXP y, SEXP x, SEXP basis, SEXP layout, SEXP par, SEXP names, SEXP integrate,
                   SEXP gradient) {
  bool wanted = Rf_asLogical(gradient) == TRUE, usable = false;
  SEXP result = PROTECT(
      Rf_allocVector(REALSXP, 1 + (basis == R_NilValue ? 0 : (R_xlen_t)r_ncol(basis, "mean"))));
  parameter_map map;
  scl_covariance kernel;
  double *by_log;
  scl_context *host = NULL;
  scl_gp_data data;
  scl_status status = read_kernel(layout, par, names, &map, &kernel, &by_log);
  if (status == SCL_OK) status = r_gp_read_data(y, x, basis, R_NilValue, &data);
  if (status == SCL_OK) status = r_context(-1, &host);
  if (status == SCL_OK) {
    status = scl_gp_toeplitz(host, &data, &kernel, r_gp_trend(integrate), &usable, REAL(result),
                             REAL(result) + 1, wanted ? by_log : NULL);
  }
  if (status == SCL_OK && usable && wanted) set_gradient(result, &map, by_log, par, names);
  UNPROTECT(1);
  return r_return(status, usable ? result : R_NilValue);
}

/* The same for a given C: c(value, b), with the derivatives with respect to C as the attribute
 * "weights": a handle if C is one. */
SEXP r_gp_evaluate_given(SEXP handle, SEXP c, SEXP leave_one_out, SEXP integrate, SEXP gradient) {
  scl_gp *gp = r_pointer_usable(&process, handle);
  if (gp == NULL) return R_NilValue;
  bool wanted = Rf_asLogical(gradient) == TRUE;
  scl_gp_objective objective =
      Rf_asLogical(leave_one_out) == TRUE ? SCL_GP_LEAVE_ONE_OUT : SCL_GP_MARGINAL;
  const scl_gp_shape s = scl_gp_shape_of(gp);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)(1 + s.q * s.outputs)));
  SEXP slope = PROTECT(wanted ? r_result_new(r_is_handle(c), s.n, s.n) : R_NilValue);
  scl_mat *given = NULL, *weights = NULL;
  scl_status status;
  SCL_GO(r_operand(scl_gp_context(gp), c, "kernel", &given));
  SCL_GO(scl_gp_evaluate_given(gp, given, objective, r_gp_trend(integrate), REAL(result),
                               REAL(result) + 1, wanted ? &weights : NULL));
  if (wanted) SCL_GO(r_result_set(slope, &weights));
done:
  scl_mat_release(given);
  scl_mat_release(weights);
  if (status == SCL_OK && wanted) Rf_setAttrib(result, Rf_install("weights"), slope);
  UNPROTECT(2);
  return r_return(status, result);
}

/* list(value, b, a_inverse, weights, handle), to be filled. */
static SEXP new_state(const scl_gp *gp, size_t n, SEXP handle, double *part[5]) {
  const size_t o = scl_gp_shape_of(gp).outputs, q = scl_gp_shape_of(gp).q;
  const r_part parts[] = {
      {"value", 1, 1}, {"b", q, o}, {"a_inverse", q, q}, {"weights", n, o}, {"handle", 0, 0}};
  SEXP state = r_list_new(5, parts, part);
  SET_VECTOR_ELT(state, 4, handle);
  return state;
}

/* Without values `layout` is C itself, a matrix or a handle. */
SEXP r_gp_condition(SEXP handle, SEXP layout, SEXP values, SEXP integrate) {
  scl_gp *gp = r_pointer_usable(&process, handle);
  if (gp == NULL) return R_NilValue;
  bool is_given = values == R_NilValue;
  scl_covariance kernel;
  scl_mat *given = NULL;
  double *part[5];
  scl_status status = is_given ? SCL_OK : r_covariance_read(layout, values, &kernel);
  SEXP state = PROTECT(new_state(gp, scl_gp_shape_of(gp).n, handle, part));
  if (is_given) {
    SCL_GO(r_operand(scl_gp_context(gp), layout, "kernel", &given));
    SCL_GO(scl_gp_condition_given(gp, given, r_gp_trend(integrate), part[0], part[1], part[2],
                                  part[3]));
  } else if (status == SCL_OK) {
    status =
        scl_gp_condition(gp, &kernel, r_gp_trend(integrate), part[0], part[1], part[2], part[3]);
  }
done:
  scl_mat_release(given);
  UNPROTECT(1);
  return r_return(status, state);
}

/* The same for a conditioned process with further observations; a new handle. */
SEXP r_gp_extend(SEXP handle, SEXP y, SEXP x, SEXP basis, SEXP spread, SEXP layout, SEXP values,
                 SEXP integrate) {
  scl_gp *gp = r_pointer_usable(&process, handle), *more = NULL;
  if (gp == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_gp_data data;
  double *part[5];
  scl_status status = r_covariance_read(layout, values, &kernel);
  if (status == SCL_OK) status = r_gp_read_data(y, x, basis, spread, &data);
  SEXP new = PROTECT(r_pointer_new(&process, R_NilValue));
  SEXP state = PROTECT(new_state(gp, r_nrow(x, "x"), new, part));
  if (status == SCL_OK) {
    status = scl_gp_extend(gp, &data, &kernel, r_gp_trend(integrate), part[0], part[1], part[2],
                           part[3], &more);
  }
  if (status == SCL_OK) r_pointer_set(new, more);
  UNPROTECT(2);
  return r_return(status, state);
}

scl_status r_gp_points(SEXP x, size_t p) {
  if (TYPEOF(x) == REALSXP && r_ncol(x, "x") == p) return SCL_OK;
  return scl_fail_argument("x", "'x' must be a double matrix with %zu columns", p);
}

scl_status r_gp_basis(SEXP basis, size_t m, size_t q) {
  if (q == 0 ||
      (TYPEOF(basis) == REALSXP && r_nrow(basis, "mean") == m && r_ncol(basis, "mean") == q)) {
    return SCL_OK;
  }
  return scl_fail_argument("basis", "'basis' must be %zu x %zu", m, q);
}

/* list(mean, variance or NULL, covariance or NULL) at the rows of x, for a conditioned process;
 * `what`: "mean", "variance" or "covariance". */
SEXP r_gp_predict(SEXP handle, SEXP layout, SEXP values, SEXP x, SEXP basis, SEXP what) {
  scl_gp *gp = r_pointer_usable(&process, handle);
  if (gp == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  if (status == SCL_OK) status = r_gp_points(x, scl_gp_shape_of(gp).p);
  const char *names[] = {"mean", "variance", "covariance", ""};
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  size_t m = r_nrow(x, "x"), q = scl_gp_shape_of(gp).q;
  double *part[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; i++) {
    if (i > 0 && strcmp(r_string(what), names[i]) != 0) continue;
    int columns = i == 0 ? (int)scl_gp_shape_of(gp).outputs : i == 1 ? 1 : (int)m;
    SET_VECTOR_ELT(result, i, Rf_allocMatrix(REALSXP, (int)m, columns));
    part[i] = REAL(VECTOR_ELT(result, i));
  }
  if (status == SCL_OK) status = r_gp_basis(basis, m, q);
  if (status == SCL_OK) {
    status = scl_gp_predict(gp, &kernel, REAL_RO(x), q > 0 ? REAL_RO(basis) : NULL, m, part[0],
                            part[1], part[2]);
  }
  UNPROTECT(1);
  return r_return(status, result);
}

/* The same from given covariances: `cross` with the observations; `prior`: NULL, the variances
 * before the observations, or the covariances of the points. */
SEXP r_gp_predict_given(SEXP handle, SEXP cross, SEXP prior, SEXP basis, SEXP what) {
  scl_gp *gp = r_pointer_usable(&process, handle);
  if (gp == NULL) return R_NilValue;
  const char *names[] = {"mean", "variance", "covariance", ""};
  size_t m = r_ncol(cross, "kernel"), q = scl_gp_shape_of(gp).q;
  bool variance = strcmp(r_string(what), "variance") == 0;
  bool covariance = strcmp(r_string(what), "covariance") == 0;
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(result, 0, Rf_allocMatrix(REALSXP, (int)m, (int)scl_gp_shape_of(gp).outputs));
  if (variance) SET_VECTOR_ELT(result, 1, Rf_duplicate(prior));
  if (covariance) SET_VECTOR_ELT(result, 2, Rf_allocMatrix(REALSXP, (int)m, (int)m));
  scl_mat *between = NULL, *within = NULL;
  scl_status status;
  SCL_GO(r_gp_basis(basis, m, q));
  if (variance && !r_is_double(prior, m)) {
    SCL_GO(scl_fail_argument("basis", "'basis' must be %zu x %zu", m, q));
  }
  SCL_GO(r_operand(scl_gp_context(gp), cross, "kernel", &between));
  if (covariance) SCL_GO(r_operand(scl_gp_context(gp), prior, "kernel", &within));
  SCL_GO(scl_gp_predict_given(gp, between, within, q > 0 ? REAL_RO(basis) : NULL,
                              REAL(VECTOR_ELT(result, 0)),
                              variance ? REAL(VECTOR_ELT(result, 1)) : NULL,
                              covariance ? REAL(VECTOR_ELT(result, 2)) : NULL));
done:
  scl_mat_release(between);
  scl_mat_release(within);
  UNPROTECT(1);
  return r_return(status, result);
}

/* Derivatives of the mean of one output (counted from 1) without the basis, with respect to the
 * points. */
SEXP r_gp_slope(SEXP handle, SEXP layout, SEXP values, SEXP x, SEXP output) {
  scl_gp *gp = r_pointer_usable(&process, handle);
  if (gp == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  if (status == SCL_OK) status = r_gp_points(x, scl_gp_shape_of(gp).p);
  SEXP result = PROTECT(Rf_allocMatrix(REALSXP, (int)r_nrow(x, "x"), (int)r_ncol(x, "x")));
  if (status == SCL_OK) {
    status = scl_gp_slope(gp, &kernel, REAL_RO(x), r_nrow(x, "x"),
                          (size_t)(Rf_asInteger(output) - 1), REAL(result));
  }
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_gp_precisions(SEXP handle) {
  scl_gp *gp = r_pointer_usable(&process, handle);
  if (gp == NULL) return R_NilValue;
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)scl_gp_shape_of(gp).n));
  scl_status status = scl_gp_precisions(gp, REAL(result));
  UNPROTECT(1);
  return r_return(status, result);
}
