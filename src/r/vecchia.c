/* .Call entries for Vecchia's approximation. Results are NULL for handles that cannot be used in
 * this process, as in r/gp.c. */
#include <string.h>

#include "ops/vecchia_latent.h"

#include "r/covariance.h"
#include "r/entries.h"
#include "r/gp.h"
#include "r/pointer.h"

static scl_context *context_of(const void *v) {
  return scl_vecchia_context(v);
}

static void release(void *v) {
  scl_vecchia_release(v);
}

static const r_pointer_kind process = {"statcl_vecchia", context_of, release};

static scl_gp_trend read_trend(SEXP integrate) {
  return Rf_asLogical(integrate) == TRUE ? SCL_GP_INTEGRATE : SCL_GP_PROFILE;
}

/* scale: a number for each column of x. */
SEXP r_vecchia_new(SEXP y, SEXP x, SEXP basis, SEXP spread, SEXP scale, SEXP m, SEXP grouped,
                   SEXP where) {
  SEXP handle = PROTECT(r_pointer_new(&process, R_NilValue));
  scl_context *ctx = NULL;
  scl_vecchia *v = NULL;
  scl_gp_data data;
  scl_status status;
  SCL_GO(r_gp_read_data(y, x, basis, spread, &data));
  if (TYPEOF(scale) != REALSXP || (size_t)Rf_xlength(scale) != data.p) {
    status = scl_fail_argument("x", "'x' must have one scale for each column");
    goto done;
  }
  SCL_GO(r_context(Rf_asInteger(where), &ctx));
  SCL_GO(scl_vecchia_create(ctx, &data, REAL_RO(scale), (size_t)Rf_asInteger(m),
                            Rf_asLogical(grouped) == TRUE, &v));
  r_pointer_set(handle, v);
done:
  UNPROTECT(1);
  return r_return(status, handle);
}

SEXP r_vecchia_info(SEXP handle) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  const char *names[] = {"device", "host", "bytes", "blocks", ""};
  SEXP info = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(info, 0, Rf_mkString(scl_context_name(scl_vecchia_context(v))));
  SET_VECTOR_ELT(info, 1, Rf_ScalarLogical(scl_context_is_host(scl_vecchia_context(v))));
  SET_VECTOR_ELT(info, 2, Rf_ScalarReal((double)scl_vecchia_bytes(v)));
  SET_VECTOR_ELT(info, 3, Rf_ScalarInteger((int)scl_vecchia_block_count(v)));
  UNPROTECT(1);
  return info;
}

/* list(order, neighbours, blocks): rows of x, and an m x n matrix of positions in the order, both
 * from 1; the blocks as scl_vecchia_group() gives them, with NA for -1. */
SEXP r_vecchia_graph(SEXP handle) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  int n = (int)scl_vecchia_rows(v), m = (int)scl_vecchia_neighbour_count(v);
  const char *names[] = {"order", "neighbours", "blocks", ""};
  SEXP graph = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(graph, 0, Rf_allocVector(INTSXP, n));
  SET_VECTOR_ELT(graph, 1, Rf_allocMatrix(INTSXP, m, n));
  int *order = INTEGER(VECTOR_ELT(graph, 0)), *next = INTEGER(VECTOR_ELT(graph, 1));
  scl_vecchia_graph(v, order, next);
  for (int i = 0; i < n; i++) order[i]++;
  for (R_xlen_t i = 0; i < (R_xlen_t)m * n; i++) next[i] = next[i] < 0 ? NA_INTEGER : next[i] + 1;
  size_t rows = scl_vecchia_block_size(v), size = rows * scl_vecchia_block_count(v);
  SET_VECTOR_ELT(graph, 2, Rf_allocMatrix(INTSXP, (int)rows, (int)scl_vecchia_block_count(v)));
  next = INTEGER(VECTOR_ELT(graph, 2));
  const int32_t *blocks = scl_vecchia_blocks(v);
  for (size_t i = 0; i < size; i++) next[i] = blocks[i] < 0 ? NA_INTEGER : blocks[i];
  UNPROTECT(1);
  return graph;
}

/* c(value, b), on request with the derivatives with respect to the logarithms of the values as the
 * attribute "gradient". */
SEXP r_vecchia_evaluate(SEXP handle, SEXP layout, SEXP values, SEXP integrate, SEXP gradient) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  bool wanted = Rf_asLogical(gradient) == TRUE;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  size_t trend = scl_vecchia_basis_columns(v) * scl_vecchia_outputs(v);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)(1 + trend)));
  SEXP slope = PROTECT(wanted ? Rf_allocVector(REALSXP, Rf_xlength(values)) : R_NilValue);
  if (status == SCL_OK) {
    status = scl_vecchia_evaluate(v, &kernel, read_trend(integrate), REAL(result), REAL(result) + 1,
                                  wanted ? REAL(slope) : NULL);
  }
  if (status == SCL_OK && wanted) Rf_setAttrib(result, Rf_install("gradient"), slope);
  UNPROTECT(2);
  return r_return(status, result);
}

/* The same with derivatives with respect to the logarithms of parameters, and their "information";
 * group: for each of the values the number of its parameter, up to `count`, as
 * scl_vecchia_inform() takes it. */
SEXP r_vecchia_inform(SEXP handle, SEXP layout, SEXP values, SEXP integrate, SEXP group,
                      SEXP count) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  int size = Rf_asInteger(count);
  size_t trend = scl_vecchia_basis_columns(v) * scl_vecchia_outputs(v);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)(1 + trend)));
  SEXP slope = PROTECT(Rf_allocVector(REALSXP, size));
  SEXP information = PROTECT(Rf_allocMatrix(REALSXP, size, size));
  if (status == SCL_OK && (TYPEOF(group) != INTSXP || Rf_xlength(group) != Rf_xlength(values))) {
    status = scl_fail_argument("kernel", "'kernel' has parameters without a place");
  }
  if (status == SCL_OK) {
    status = scl_vecchia_inform(v, &kernel, read_trend(integrate), INTEGER_RO(group), (size_t)size,
                                REAL(result), REAL(result) + 1, REAL(slope), REAL(information));
  }
  Rf_setAttrib(result, Rf_install("gradient"), slope);
  Rf_setAttrib(result, Rf_install("information"), information);
  UNPROTECT(3);
  return r_return(status, result);
}

/* list(value, b, a_inverse, weights, precisions) */
SEXP r_vecchia_condition(SEXP handle, SEXP layout, SEXP values, SEXP integrate) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  size_t n = scl_vecchia_rows(v), o = scl_vecchia_outputs(v), q = scl_vecchia_basis_columns(v);
  const char *names[] = {"value", "b", "a_inverse", "weights", "precisions", ""};
  size_t rows[] = {1, q, q, n, n}, columns[] = {1, o, q, o, 1};
  SEXP state = PROTECT(Rf_mkNamed(VECSXP, names));
  double *part[5];
  for (int i = 0; i < 5; i++) {
    SET_VECTOR_ELT(state, i, Rf_allocMatrix(REALSXP, (int)rows[i], (int)columns[i]));
    part[i] = REAL(VECTOR_ELT(state, i));
  }
  if (status == SCL_OK) {
    status = scl_vecchia_condition(v, &kernel, read_trend(integrate), part[0], part[1], part[2],
                                   part[3], part[4]);
  }
  UNPROTECT(1);
  return r_return(status, state);
}

/* list(mean, variance) at the rows of x; b and a_inverse of r_vecchia_condition(). */
SEXP r_vecchia_predict(SEXP handle, SEXP layout, SEXP values, SEXP x, SEXP basis, SEXP b,
                       SEXP a_inverse) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  size_t m = r_nrow(x, "x"), o = scl_vecchia_outputs(v), q = scl_vecchia_basis_columns(v);
  const char *names[] = {"mean", "variance", ""};
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(result, 0, Rf_allocMatrix(REALSXP, (int)m, (int)o));
  SET_VECTOR_ELT(result, 1, Rf_allocVector(REALSXP, (R_xlen_t)m));
  if (status == SCL_OK &&
      (TYPEOF(x) != REALSXP || r_ncol(x, "x") != scl_vecchia_input_columns(v))) {
    status = scl_fail_argument("x", "'x' must be a double matrix with %zu columns",
                               scl_vecchia_input_columns(v));
  }
  if (status == SCL_OK && q > 0 &&
      (TYPEOF(basis) != REALSXP || r_nrow(basis, "mean") != m || r_ncol(basis, "mean") != q)) {
    status = scl_fail_argument("basis", "'basis' must be %zu x %zu", m, q);
  }
  if (status == SCL_OK) {
    status = scl_vecchia_predict(v, &kernel, REAL_RO(x), q > 0 ? REAL_RO(basis) : NULL, m,
                                 REAL_RO(b), REAL_RO(a_inverse), REAL(VECTOR_ELT(result, 0)),
                                 REAL(VECTOR_ELT(result, 1)));
  }
  UNPROTECT(1);
  return r_return(status, result);
}

/* Draws at the rows of x, a column for each one of `normal`: scl_vecchia_simulate(). */
SEXP r_vecchia_simulate(SEXP handle, SEXP layout, SEXP values, SEXP x, SEXP basis, SEXP b,
                        SEXP noise, SEXP normal) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  bool given = !Rf_isNull(noise);
  size_t m = r_nrow(x, "x"), q = scl_vecchia_basis_columns(v), draws = r_ncol(normal, "normal");
  size_t all = m + (given ? scl_vecchia_rows(v) : 0);
  SEXP space = PROTECT(Rf_duplicate(normal));
  SEXP result = PROTECT(Rf_allocMatrix(REALSXP, (int)m, (int)draws));
  if (status == SCL_OK &&
      (TYPEOF(x) != REALSXP || TYPEOF(normal) != REALSXP ||
       r_ncol(x, "x") != scl_vecchia_input_columns(v) || r_nrow(normal, "normal") != all)) {
    status = scl_fail_argument("x", "'x' must be a double matrix with %zu columns",
                               scl_vecchia_input_columns(v));
  }
  if (status == SCL_OK) {
    status = scl_vecchia_simulate(v, &kernel, REAL_RO(x), q > 0 ? REAL_RO(basis) : NULL, m,
                                  given && q > 0 ? REAL_RO(b) : NULL, given ? REAL_RO(noise) : NULL,
                                  draws, REAL(space));
  }
  for (size_t d = 0; status == SCL_OK && d < draws; d++) {
    memcpy(REAL(result) + d * m, REAL(space) + d * all + all - m, m * sizeof(double));
  }
  UNPROTECT(2);
  return r_return(status, result);
}

/* ---- latent processes: ops/vecchia_latent.h ------------------------------------------------- */

/* Whether x is a double matrix of these sizes. */
static scl_status need(SEXP x, size_t rows, size_t columns) {
  if (TYPEOF(x) == REALSXP && (size_t)Rf_xlength(x) == rows * columns) return SCL_OK;
  return scl_fail_argument("x", "'x' must have %zu numbers", rows * columns);
}

SEXP r_vecchia_latent(SEXP handle, SEXP layout, SEXP values) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  SEXP weights = PROTECT(
      Rf_allocMatrix(REALSXP, (int)scl_vecchia_neighbour_count(v) + 1, (int)scl_vecchia_rows(v)));
  if (status == SCL_OK) status = scl_vecchia_latent_weights(v, &kernel, REAL(weights));
  UNPROTECT(1);
  return r_return(status, weights);
}

SEXP r_vecchia_latent_square(SEXP handle, SEXP weights, SEXP g) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  size_t n = scl_vecchia_rows(v);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, 1));
  scl_status status = need(weights, scl_vecchia_neighbour_count(v) + 1, n);
  if (status == SCL_OK) status = need(g, n, 1);
  if (status == SCL_OK) {
    status = scl_vecchia_latent_square(v, REAL_RO(weights), REAL_RO(g), REAL(result));
  }
  UNPROTECT(1);
  return r_return(status, result);
}

/* list(x: P^-1 x, half, factor) */
SEXP r_vecchia_latent_solve(SEXP handle, SEXP weights, SEXP d, SEXP x) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  size_t n = scl_vecchia_rows(v), m = scl_vecchia_neighbour_count(v), count = r_ncol(x, "x");
  const char *names[] = {"x", "half", "factor", ""};
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(result, 0, Rf_duplicate(x));
  SET_VECTOR_ELT(result, 1, Rf_allocVector(REALSXP, 1));
  SET_VECTOR_ELT(result, 2, Rf_allocMatrix(REALSXP, (int)m + 1, (int)n));
  scl_status status = need(weights, m + 1, n);
  if (status == SCL_OK) status = need(d, n, 1);
  if (status == SCL_OK) status = need(x, n, count);
  if (status == SCL_OK) {
    status = scl_vecchia_latent_solve(v, REAL_RO(weights), REAL_RO(d), count,
                                      REAL(VECTOR_ELT(result, 0)), REAL(VECTOR_ELT(result, 2)),
                                      REAL(VECTOR_ELT(result, 1)));
  }
  UNPROTECT(1);
  return r_return(status, result);
}

/* list(mean: of each column of `given`, variance) */
SEXP r_vecchia_latent_predict(SEXP handle, SEXP layout, SEXP values, SEXP x, SEXP given,
                              SEXP factor) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  size_t count = r_nrow(x, "x"), columns = r_ncol(given, "given"), n = scl_vecchia_rows(v);
  const char *names[] = {"mean", "variance", ""};
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(result, 0, Rf_allocMatrix(REALSXP, (int)count, (int)columns));
  SET_VECTOR_ELT(result, 1, Rf_allocVector(REALSXP, (R_xlen_t)count));
  if (status == SCL_OK) status = need(x, count, scl_vecchia_input_columns(v));
  if (status == SCL_OK) status = need(given, n, columns);
  if (status == SCL_OK) status = need(factor, scl_vecchia_neighbour_count(v) + 1, n);
  if (status == SCL_OK) {
    status = scl_vecchia_latent_predict(v, &kernel, REAL_RO(x), count, REAL_RO(given), columns,
                                        REAL_RO(factor), REAL(VECTOR_ELT(result, 0)),
                                        REAL(VECTOR_ELT(result, 1)));
  }
  UNPROTECT(1);
  return r_return(status, result);
}
