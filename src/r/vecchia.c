/* .Call entries for Vecchia's approximation. Results are NULL for handles that cannot be used in
 * this process, as in r/gp.c. */
#include <string.h>

#include "ops/vecchia_latent.h"

#include "r/covariance.h"
#include "r/entries.h"
#include "r/gp.h"
#include "r/pointer.h"

R_POINTER_KIND(process, "statcl_vecchia", scl_vecchia)

/* Whether x is a double matrix of these sizes. */
static scl_status need(SEXP x, size_t rows, size_t columns) {
  if (r_is_double(x, rows * columns)) return SCL_OK;
  return scl_fail_argument("x", "'x' must have %zu numbers", rows * columns);
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
  if (!r_is_double(scale, data.p)) {
    SCL_GO(scl_fail_argument("x", "'x' must have one scale for each column"));
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
  const scl_context *ctx = scl_vecchia_context(v);
  return r_info_new(ctx, scl_context_name(ctx), scl_vecchia_bytes(v), scl_vecchia_block_count(v));
}

/* list(order, neighbours, blocks): rows of x, and an m x n matrix of positions in the order, both
 * from 1; the blocks as scl_vecchia_group() gives them, with NA for -1. */
SEXP r_vecchia_graph(SEXP handle) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  int n = (int)scl_vecchia_shape_of(v).n, m = (int)scl_vecchia_neighbour_count(v);
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
  const scl_gp_shape s = scl_vecchia_shape_of(v);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)(1 + s.q * s.outputs)));
  SEXP slope = PROTECT(wanted ? Rf_allocVector(REALSXP, Rf_xlength(values)) : R_NilValue);
  if (status == SCL_OK) {
    status = scl_vecchia_evaluate(v, &kernel, r_gp_trend(integrate), REAL(result), REAL(result) + 1,
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
  const scl_gp_shape s = scl_vecchia_shape_of(v);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)(1 + s.q * s.outputs)));
  SEXP slope = PROTECT(Rf_allocVector(REALSXP, size));
  SEXP information = PROTECT(Rf_allocMatrix(REALSXP, size, size));
  if (status == SCL_OK && (TYPEOF(group) != INTSXP || Rf_xlength(group) != Rf_xlength(values))) {
    status = scl_fail_argument("kernel", "'kernel' has parameters without a place");
  }
  if (status == SCL_OK) {
    status = scl_vecchia_inform(v, &kernel, r_gp_trend(integrate), INTEGER_RO(group), (size_t)size,
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
  const scl_gp_shape s = scl_vecchia_shape_of(v);
  const r_part parts[] = {{"value", 1, 1},
                          {"b", s.q, s.outputs},
                          {"a_inverse", s.q, s.q},
                          {"weights", s.n, s.outputs},
                          {"precisions", s.n, 1}};
  double *part[5];
  SEXP state = PROTECT(r_list_new(5, parts, part));
  if (status == SCL_OK) {
    status = scl_vecchia_condition(v, &kernel, r_gp_trend(integrate), part[0], part[1], part[2],
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
  size_t m = r_nrow(x, "x"), o = scl_vecchia_shape_of(v).outputs, q = scl_vecchia_shape_of(v).q;
  double *part[2];
  SEXP result = PROTECT(r_list_new(2, (r_part[]){{"mean", m, o}, {"variance", m, R_VECTOR}}, part));
  if (status == SCL_OK) status = r_gp_points(x, scl_vecchia_shape_of(v).p);
  if (status == SCL_OK) status = r_gp_basis(basis, m, q);
  if (status == SCL_OK) {
    status = scl_vecchia_predict(v, &kernel, REAL_RO(x), q > 0 ? REAL_RO(basis) : NULL, m,
                                 REAL_RO(b), REAL_RO(a_inverse), part[0], part[1]);
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
  size_t m = r_nrow(x, "x"), q = scl_vecchia_shape_of(v).q, draws = r_ncol(normal, "normal");
  size_t all = m + (given ? scl_vecchia_shape_of(v).n : 0);
  SEXP space = PROTECT(Rf_duplicate(normal));
  SEXP result = PROTECT(Rf_allocMatrix(REALSXP, (int)m, (int)draws));
  if (status == SCL_OK) status = r_gp_points(x, scl_vecchia_shape_of(v).p);
  if (status == SCL_OK) status = need(normal, all, draws);
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

SEXP r_vecchia_latent(SEXP handle, SEXP layout, SEXP values) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  SEXP weights = PROTECT(Rf_allocMatrix(REALSXP, (int)scl_vecchia_neighbour_count(v) + 1,
                                        (int)scl_vecchia_shape_of(v).n));
  if (status == SCL_OK) status = scl_vecchia_latent_weights(v, &kernel, REAL(weights));
  UNPROTECT(1);
  return r_return(status, weights);
}

SEXP r_vecchia_latent_square(SEXP handle, SEXP weights, SEXP g) {
  scl_vecchia *v = r_pointer_usable(&process, handle);
  if (v == NULL) return R_NilValue;
  size_t n = scl_vecchia_shape_of(v).n;
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
  size_t n = scl_vecchia_shape_of(v).n, m = scl_vecchia_neighbour_count(v), count = r_ncol(x, "x");
  double *part[3];
  SEXP result = PROTECT(
      r_list_new(3, (r_part[]){{"x", 0, 0}, {"half", 1, R_VECTOR}, {"factor", m + 1, n}}, part));
  SET_VECTOR_ELT(result, 0, Rf_duplicate(x));
  scl_status status = need(weights, m + 1, n);
  if (status == SCL_OK) status = need(d, n, 1);
  if (status == SCL_OK) status = need(x, n, count);
  if (status == SCL_OK) {
    status = scl_vecchia_latent_solve(v, REAL_RO(weights), REAL_RO(d), count,
                                      REAL(VECTOR_ELT(result, 0)), part[2], part[1]);
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
  size_t count = r_nrow(x, "x"), columns = r_ncol(given, "given"), n = scl_vecchia_shape_of(v).n;
  double *part[2];
  SEXP result = PROTECT(
      r_list_new(2, (r_part[]){{"mean", count, columns}, {"variance", count, R_VECTOR}}, part));
  if (status == SCL_OK) status = need(x, count, scl_vecchia_shape_of(v).p);
  if (status == SCL_OK) status = need(given, n, columns);
  if (status == SCL_OK) status = need(factor, scl_vecchia_neighbour_count(v) + 1, n);
  if (status == SCL_OK) {
    status = scl_vecchia_latent_predict(v, &kernel, REAL_RO(x), count, REAL_RO(given), columns,
                                        REAL_RO(factor), part[0], part[1]);
  }
  UNPROTECT(1);
  return r_return(status, result);
}
