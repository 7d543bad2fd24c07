/* .Call entries for likelihoods of generalised linear models. */
#include "r_entries.h"
#include "r_glue.h"

#include <string.h>

#include "scl_glm.h"

/* ---- arguments ------------------------------------------------------------------------------- */

/* One bit for each name asked for. */
static scl_status read_wanted(SEXP gradient, unsigned *out) {
  static const char *const name[] = {"alpha", "beta", "x"};
  unsigned wanted = 0;
  if (gradient != R_NilValue && TYPEOF(gradient) != STRSXP) {
    return scl_fail_argument("gradient", "'gradient' must be NULL or names of arguments");
  }
  for (R_xlen_t i = 0; i < Rf_xlength(gradient); i++) {
    const char *asked = CHAR(STRING_ELT(gradient, i));
    int k = 0;
    while (k < 3 && strcmp(asked, name[k]) != 0) k++;
    if (k == 3) {
      return scl_fail_argument(
          "gradient", "'gradient' must be among \"alpha\", \"beta\" and \"x\", not \"%.40s\"",
          asked);
    }
    wanted |= 1u << k;
  }
  *out = wanted;
  return SCL_OK;
}

/* A vector of numbers as double; R_NilValue for anything else. Protect it. */
static SEXP as_double(SEXP x) {
  bool number = TYPEOF(x) == REALSXP || TYPEOF(x) == LGLSXP || TYPEOF(x) == INTSXP;
  return number && !Rf_isFactor(x) ? Rf_coerceVector(x, REALSXP) : R_NilValue;
}

static scl_status require_numbers(SEXP x, const char *argument) {
  if (TYPEOF(x) == REALSXP) return SCL_OK;
  return scl_fail_argument(argument, "'%s' must be a numeric vector", argument);
}

/* ---- the value with its gradient ------------------------------------------------------------- */

/* A vector shaped and named like the argument whose gradient it is. */
static SEXP new_like(SEXP x) {
  SEXP result = PROTECT(Rf_allocVector(REALSXP, Rf_xlength(x)));
  SEXP names = Rf_getAttrib(x, R_NamesSymbol);
  if (names != R_NilValue) Rf_setAttrib(result, R_NamesSymbol, names);
  UNPROTECT(1);
  return result;
}

/* Phase 1: one number, with the attribute "gradient" when something is wanted; its elements are at
 * `at`. The gradient by x comes as a handle if `resident`. Protect it. */
static SEXP new_value(unsigned wanted, SEXP alpha, SEXP beta, bool resident, size_t n, size_t p,
                      SEXP at[3]) {
  SEXP value = PROTECT(Rf_ScalarReal(0.0));
  if (wanted != 0) {
    const char *names[4] = {"", "", "", ""};
    int count = 0;
    if (wanted & SCL_GLM_ALPHA) names[count++] = "alpha";
    if (wanted & SCL_GLM_BETA) names[count++] = "beta";
    if (wanted & SCL_GLM_X) names[count++] = "x";
    SEXP list = PROTECT(Rf_mkNamed(VECSXP, names));
    count = 0;
    if (wanted & SCL_GLM_ALPHA) SET_VECTOR_ELT(list, count++, at[0] = new_like(alpha));
    if (wanted & SCL_GLM_BETA) SET_VECTOR_ELT(list, count++, at[1] = new_like(beta));
    if (wanted & SCL_GLM_X) SET_VECTOR_ELT(list, count++, at[2] = r_result_new(resident, n, p));
    Rf_setAttrib(value, Rf_install("gradient"), list);
    UNPROTECT(1);
  }
  UNPROTECT(1);
  return value;
}

/* Phase 2. */
static scl_status evaluate(scl_glm *glm, SEXP alpha, SEXP beta, unsigned wanted, SEXP value,
                           SEXP at[3]) {
  scl_mat *d_x = NULL;
  SCL_TRY(require_numbers(alpha, "alpha"));
  SCL_TRY(require_numbers(beta, "beta"));
  const scl_glm_parameters parameters = {.alpha = REAL_RO(alpha),
                                         .beta = REAL_RO(beta),
                                         .n_alpha = (size_t)XLENGTH(alpha),
                                         .n_beta = (size_t)XLENGTH(beta)};
  const scl_glm_results results = {.value = REAL(value),
                                   .d_alpha = wanted & SCL_GLM_ALPHA ? REAL(at[0]) : NULL,
                                   .d_beta = wanted & SCL_GLM_BETA ? REAL(at[1]) : NULL,
                                   .d_x = &d_x};
  SCL_TRY(scl_glm_evaluate(glm, &parameters, wanted, &results));
  scl_status status = d_x != NULL ? r_result_set(at[2], &d_x) : SCL_OK;
  scl_mat_release(d_x);
  return status;
}

static scl_status create(SEXP family, SEXP y, SEXP x, SEXP where, scl_glm **out) {
  scl_status status = SCL_OK;
  scl_glm_family which;
  scl_context *ctx = NULL;
  scl_mat *matrix = NULL;
  SCL_GO(scl_glm_family_find(CHAR(STRING_ELT(family, 0)), &which));
  SCL_GO(require_numbers(y, "y"));
  SCL_GO(r_context_pick(where, 1, &x, &ctx));
  SCL_GO(r_operand(ctx, x, "x", &matrix));
  SCL_GO(scl_glm_create(which, REAL_RO(y), (size_t)XLENGTH(y), matrix, out));
done:
  scl_mat_release(matrix);
  return status;
}

SEXP r_glm_lpdf(SEXP family, SEXP y, SEXP x, SEXP alpha, SEXP beta, SEXP gradient, SEXP where) {
  unsigned wanted = 0;
  if (read_wanted(gradient, &wanted) != SCL_OK) r_throw();
  alpha = PROTECT(as_double(alpha));
  beta = PROTECT(as_double(beta));
  SEXP at[3] = {NULL, NULL, NULL};
  SEXP value = PROTECT(new_value(wanted, alpha, beta, r_is_handle(x), r_nrow(x), r_ncol(x), at));
  scl_glm *glm = NULL;
  scl_status status = create(family, y, x, where, &glm);
  if (status == SCL_OK) status = evaluate(glm, alpha, beta, wanted, value, at);
  scl_glm_release(glm);
  UNPROTECT(3);
  return r_return(status, value);
}

/* ---- likelihoods that stay ------------------------------------------------------------------- */

static SEXP glm_tag(void) {
  return Rf_install("statcl_glm");
}

static void finalize_glm(SEXP handle) {
  scl_glm *glm = R_ExternalPtrAddr(handle);
  R_ClearExternalPtr(handle);
  /* A forked child must not touch the parent's device objects. */
  if (glm != NULL && scl_context_check(scl_glm_context(glm)) != SCL_E_FORK) scl_glm_release(glm);
}

/* The handle keeps x alive: on the host it is used where R has it. */
SEXP r_glm_new(SEXP family, SEXP y, SEXP x, SEXP where) {
  SEXP handle = PROTECT(R_MakeExternalPtr(NULL, glm_tag(), x));
  R_RegisterCFinalizerEx(handle, finalize_glm, FALSE);
  scl_glm *glm = NULL;
  scl_status status = create(family, y, x, where, &glm);
  if (status == SCL_OK) R_SetExternalPtrAddr(handle, glm);
  UNPROTECT(1);
  return r_return(status, handle);
}

/* NULL unless the handle can be used in this process: it may come from a file or from before a
 * fork, or its device may be lost. */
static scl_glm *usable(SEXP handle) {
  if (TYPEOF(handle) != EXTPTRSXP || R_ExternalPtrTag(handle) != glm_tag()) return NULL;
  scl_glm *glm = R_ExternalPtrAddr(handle);
  return glm != NULL && scl_context_check(scl_glm_context(glm)) == SCL_OK ? glm : NULL;
}

/* NULL when the handle has to be made again. */
SEXP r_glm_evaluate(SEXP handle, SEXP alpha, SEXP beta, SEXP gradient) {
  scl_glm *glm = usable(handle);
  if (glm == NULL) return R_NilValue;
  unsigned wanted = 0;
  if (read_wanted(gradient, &wanted) != SCL_OK) r_throw();
  alpha = PROTECT(as_double(alpha));
  beta = PROTECT(as_double(beta));
  SEXP at[3] = {NULL, NULL, NULL};
  bool resident = r_is_handle(R_ExternalPtrProtected(handle));
  SEXP value =
      PROTECT(new_value(wanted, alpha, beta, resident, scl_glm_nrow(glm), scl_glm_ncol(glm), at));
  scl_status status = evaluate(glm, alpha, beta, wanted, value, at);
  UNPROTECT(3);
  return r_return(status, value);
}

/* Facts for printing, NULL as above: engine ("host" or the device's name) and bytes held. */
SEXP r_glm_info(SEXP handle) {
  scl_glm *glm = usable(handle);
  if (glm == NULL) return R_NilValue;
  const char *names[] = {"host", "device", "bytes", ""};
  SEXP info = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(info, 0, Rf_ScalarLogical(scl_context_is_host(scl_glm_context(glm))));
  SET_VECTOR_ELT(info, 1, Rf_mkString(scl_context_name(scl_glm_context(glm))));
  SET_VECTOR_ELT(info, 2, Rf_ScalarReal((double)scl_glm_bytes(glm)));
  UNPROTECT(1);
  return info;
}
