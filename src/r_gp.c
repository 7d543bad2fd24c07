/* .Call entries for Gaussian processes. A handle that cannot be used in this process (it comes from
 * a file, from before a fork, or its device is gone) gives NULL: R code then makes a new one. */
#include "r_covariance.h"
#include "r_entries.h"

#include <string.h>

#include "scl_gp.h"

static SEXP gp_tag(void) {
  return Rf_install("statcl_gp");
}

static void finalize_gp(SEXP handle) {
  scl_gp *gp = R_ExternalPtrAddr(handle);
  R_ClearExternalPtr(handle);
  /* A forked child must not touch the parent's device objects. */
  if (gp != NULL && scl_context_check(scl_gp_context(gp)) != SCL_E_FORK) scl_gp_release(gp);
}

static scl_gp *usable(SEXP handle) {
  if (TYPEOF(handle) != EXTPTRSXP || R_ExternalPtrTag(handle) != gp_tag()) return NULL;
  scl_gp *gp = R_ExternalPtrAddr(handle);
  return gp != NULL && scl_context_check(scl_gp_context(gp)) == SCL_OK ? gp : NULL;
}

/* NA stands for a mean that is to be estimated. */
static scl_gp_mean read_mean(SEXP mean) {
  double value = Rf_asReal(mean);
  return (scl_gp_mean){.estimated = ISNAN(value), .value = value};
}

SEXP r_gp_new(SEXP y, SEXP x, SEXP where) {
  SEXP handle = PROTECT(R_MakeExternalPtr(NULL, gp_tag(), R_NilValue));
  R_RegisterCFinalizerEx(handle, finalize_gp, FALSE);
  scl_status status = SCL_OK;
  scl_context *ctx = NULL;
  scl_gp *gp = NULL;
  if (TYPEOF(x) != REALSXP || TYPEOF(y) != REALSXP || (size_t)XLENGTH(y) != r_nrow(x)) {
    SCL_GO(scl_fail_argument("y", "'y' must have one value for each row of 'x'"));
  }
  SCL_GO(r_context(Rf_asInteger(where), &ctx));
  SCL_GO(scl_gp_create(ctx, REAL_RO(x), REAL_RO(y), r_nrow(x), r_ncol(x), &gp));
  R_SetExternalPtrAddr(handle, gp);
done:
  UNPROTECT(1);
  return r_return(status, handle);
}

SEXP r_gp_info(SEXP handle) {
  scl_gp *gp = usable(handle);
  if (gp == NULL) return R_NilValue;
  const char *names[] = {"device", "host", "bytes", ""};
  SEXP info = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(info, 0, Rf_mkString(scl_context_name(scl_gp_context(gp))));
  SET_VECTOR_ELT(info, 1, Rf_ScalarLogical(scl_context_is_host(scl_gp_context(gp))));
  SET_VECTOR_ELT(info, 2, Rf_ScalarReal((double)scl_gp_bytes(gp)));
  UNPROTECT(1);
  return info;
}

/* c(log likelihood, mean, derivatives by the logarithms of `values` if asked for). */
SEXP r_gp_evaluate(SEXP handle, SEXP layout, SEXP values, SEXP mean, SEXP gradient) {
  scl_gp *gp = usable(handle);
  if (gp == NULL) return R_NilValue;
  bool wanted = Rf_asLogical(gradient) == TRUE;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, 2 + (wanted ? Rf_xlength(values) : 0)));
  double *out = REAL(result);
  if (status == SCL_OK) {
    status =
        scl_gp_evaluate(gp, &kernel, read_mean(mean), &out[0], &out[1], wanted ? out + 2 : NULL);
  }
  UNPROTECT(1);
  return r_return(status, result);
}

/* c(mean, weights). */
SEXP r_gp_condition(SEXP handle, SEXP layout, SEXP values, SEXP mean) {
  scl_gp *gp = usable(handle);
  if (gp == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, 1 + (R_xlen_t)scl_gp_rows(gp)));
  if (status == SCL_OK) {
    status = scl_gp_condition(gp, &kernel, read_mean(mean), REAL(result), REAL(result) + 1);
  }
  UNPROTECT(1);
  return r_return(status, result);
}

/* list(mean, variance or NULL, covariance or NULL) at the rows of x, for a conditioned process;
 * `what`: "mean", "variance" or "covariance". */
SEXP r_gp_predict(SEXP handle, SEXP layout, SEXP values, SEXP x, SEXP what) {
  scl_gp *gp = usable(handle);
  if (gp == NULL) return R_NilValue;
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  const char *names[] = {"mean", "variance", "covariance", ""};
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  size_t m = r_nrow(x);
  double *part[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; i++) {
    if (i > 0 && strcmp(CHAR(STRING_ELT(what, 0)), names[i]) != 0) continue;
    SEXP values_of =
        i < 2 ? Rf_allocVector(REALSXP, (R_xlen_t)m) : Rf_allocMatrix(REALSXP, (int)m, (int)m);
    SET_VECTOR_ELT(result, i, values_of);
    part[i] = REAL(values_of);
  }
  if (status == SCL_OK) {
    status = scl_gp_predict(gp, &kernel, REAL_RO(x), m, part[0], part[1], part[2]);
  }
  UNPROTECT(1);
  return r_return(status, result);
}
