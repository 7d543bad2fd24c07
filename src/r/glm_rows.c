/* .Call entries for the observations of generalised linear models, one by one. */
#include "r/entries.h"
#include "r/glue.h"

#include "ops/glm_family.h"
#include "ops/glm_rows.h"

/* Whether classes are among those that eta or the cuts have. */
static bool within(const scl_glm_rows *at) {
  const bool cuts = GLM_FAMILY_AUX(at->family) == SCL_GLM_CUTS;
  const size_t most = cuts ? at->aux_count + 1 : at->classes;
  for (size_t i = 0; i < at->n && (cuts || GLM_FAMILY_COUPLED(at->family)); i++) {
    if (!(at->y[i] >= 1.0 && at->y[i] <= (double)most)) return false;
  }
  return true;
}

/* A list with the first `columns` of ops/glm_rows.h, and `constant`: what to give as that for the
 * same data, instead of NULL. All are double but `family` and `columns`; `trials` and `aux` may be
 * NULL. */
SEXP r_glm_rows(SEXP family, SEXP y, SEXP trials, SEXP eta, SEXP aux, SEXP constant, SEXP columns) {
  const char *names[] = {"value",     "score",      "weight",     "d_weight",
                         "value_aux", "score_aux",  "weight_aux", "value_low",
                         "score_low", "weight_low", "constant",   ""};
  scl_glm_rows at = {.n = (size_t)XLENGTH(y), .columns = Rf_asInteger(columns)};
  if (scl_glm_family_find(r_string(family), &at.family) != SCL_OK) r_throw();
  at.classes = GLM_FAMILY_COUPLED(at.family) && at.n > 0 ? (size_t)XLENGTH(eta) / at.n : 1;
  at.aux_count = (size_t)Rf_xlength(aux);
  if (GLM_FAMILY_COUPLED(at.family)) at.columns = SCL_GLM_WEIGHT; /* the density needs its slope */
  bool fits = r_is_double(y, at.n) && r_is_double(eta, at.n * at.classes) &&
              (trials != R_NilValue) == GLM_FAMILY_DATUM(at.family) &&
              (trials == R_NilValue || r_is_double(trials, at.n)) &&
              (aux == R_NilValue || TYPEOF(aux) == REALSXP) &&
              (constant == R_NilValue || r_is_double(constant, at.n)) && at.columns >= 1 &&
              at.columns <= SCL_GLM_COLUMNS;
  const scl_glm_aux kind = GLM_FAMILY_AUX(at.family);
  if (kind == SCL_GLM_SIGMA || kind == SCL_GLM_PHI)
    fits = fits && (at.aux_count == 1 || at.aux_count == at.n);
  if (fits) {
    at.y = REAL_RO(y);
    at.datum = r_numbers(trials);
    at.eta = REAL_RO(eta);
    at.aux = r_numbers(aux);
  }
  if (!fits || !within(&at)) {
    scl_fail_argument("y", "'y', the predictors and parameters must be double and of matching "
                           "shapes");
    r_throw();
  }
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  for (int k = 0; k < at.columns; k++) {
    const bool wide = k == SCL_GLM_SCORE && GLM_FAMILY_COUPLED(at.family);
    SEXP column = wide ? Rf_allocMatrix(REALSXP, (int)at.n, (int)at.classes)
                       : Rf_allocVector(REALSXP, (R_xlen_t)at.n);
    SET_VECTOR_ELT(result, k, column);
    at.column[k] = REAL(column);
  }
  if (constant == R_NilValue) {
    constant = Rf_allocVector(REALSXP, (R_xlen_t)at.n);
    SET_VECTOR_ELT(result, SCL_GLM_COLUMNS, constant);
    scl_glm_constants(at.family, at.y, at.datum, at.n, REAL(constant));
  } else {
    SET_VECTOR_ELT(result, SCL_GLM_COLUMNS, constant);
  }
  at.constant = REAL_RO(constant);
  scl_glm_fill_rows(&at);
  UNPROTECT(1);
  return result;
}

/* Refuses responses that the family does not have. */
SEXP r_glm_check(SEXP family, SEXP y, SEXP trials) {
  const size_t n = (size_t)XLENGTH(y);
  scl_glm_family which;
  scl_status status = scl_glm_family_find(r_string(family), &which);
  if (status == SCL_OK && !(r_is_double(y, n) && (trials == R_NilValue || r_is_double(trials, n))))
    status = scl_fail_argument("y", "'y' and 'trials' must be double and of the same length");
  if (status == SCL_OK) {
    const scl_glm_data data = {.y = REAL_RO(y),
                               .n_y = n,
                               .datum = r_numbers(trials),
                               .n_datum = trials == R_NilValue ? 0 : n};
    status = scl_glm_check_data(which, &data, 0);
  }
  return r_return(status, R_NilValue);
}
