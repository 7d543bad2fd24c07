/* The only file that raises R conditions: the last error becomes a call of abort_fault() in
 * R/base-conditions.R, which knows the classes. */
#include "r/glue.h"

static const char *const class_of[] = {
    [SCL_OK] = "",
    [SCL_E_ARGUMENT] = "argument",
    [SCL_E_NO_DEVICE] = "no_device",
    [SCL_E_NO_FP64] = "no_fp64",
    [SCL_E_REFUSED] = "refused",
    [SCL_E_MEMORY] = "memory",
    [SCL_E_NOT_PD] = "not_pd",
    [SCL_E_SINGULAR] = "singular",
    [SCL_E_NONFINITE] = "nonfinite",
    [SCL_E_STALE] = "stale",
    [SCL_E_FORK] = "fork",
    [SCL_E_BUILD] = "build",
    [SCL_E_BUILDING] = "building",
    [SCL_E_LOST] = "lost",
    [SCL_E_OPENCL] = "opencl",
    [SCL_E_STAN] = "stan",
    [SCL_E_INTERRUPT] = "interrupt",
};

void r_throw(void) {
  SEXP jump = r_jump();
  if (jump != NULL) R_ContinueUnwind(jump);
  const scl_fault fault = *scl_fault_last(); /* R code below may overwrite the record */
  const char *names[] = {"what",  "message", "argument", "index", "bytes",  "limit", "status",
                         "where", "device",  "log",      "line",  "column", ""};
  SEXP fields = PROTECT(Rf_mkNamed(VECSXP, names));
  const bool limit = fault.status == SCL_E_INTERRUPT && r_time_limit()[0] != '\0';
  SET_VECTOR_ELT(fields, 0, Rf_mkString(limit ? "time_limit" : class_of[fault.status]));
  SET_VECTOR_ELT(fields, 1, Rf_mkString(limit ? r_time_limit() : fault.message));
  SET_VECTOR_ELT(fields, 2, Rf_mkString(fault.argument));
  SET_VECTOR_ELT(fields, 3, Rf_ScalarReal((double)fault.index));
  SET_VECTOR_ELT(fields, 4, Rf_ScalarReal((double)fault.bytes));
  SET_VECTOR_ELT(fields, 5, Rf_ScalarReal((double)fault.limit));
  SET_VECTOR_ELT(fields, 6, Rf_ScalarInteger(fault.cl_code));
  SET_VECTOR_ELT(fields, 7, Rf_mkString(fault.where));
  SET_VECTOR_ELT(fields, 8, Rf_mkString(fault.device));
  SET_VECTOR_ELT(fields, 9, Rf_ScalarString(Rf_mkCharCE(fault.log, CE_UTF8)));
  SET_VECTOR_ELT(fields, 10, Rf_ScalarInteger(fault.line));
  SET_VECTOR_ELT(fields, 11, Rf_ScalarInteger(fault.column));
  SEXP package = PROTECT(Rf_mkString("statcl"));
  SEXP space = PROTECT(R_FindNamespace(package));
  SEXP call = PROTECT(Rf_lang2(Rf_install("abort_fault"), fields));
  Rf_eval(call, space);
  UNPROTECT(4);
  Rf_error("abort_fault() returned"); /* cannot happen: it stops */
}

void r_throw_given_back(void) {
  Rf_error("the memory of this matrix was freed before its finalizer ran");
}

SEXP r_return(scl_status status, SEXP result) {
  if (status != SCL_OK) r_throw();
  PROTECT(result);
  r_announce();
  UNPROTECT(1);
  return result;
}
