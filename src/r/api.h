/* R's headers, with what later versions offer to packages in place of entry points that are not in
 * R's API: for earlier versions it is made of these, here and nowhere else (.ci/lint.sh). */
#ifndef R_API_H
#define R_API_H

#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <Rinternals.h>
#include <Rversion.h>

#if R_VERSION < R_Version(4, 5, 0)
#define ANY_ATTRIB(x) (ATTRIB(x) != R_NilValue)

static inline SEXP R_ClosureEnv(SEXP closure) {
  return CLOENV(closure);
}

static inline SEXP R_getVarEx(SEXP symbol, SEXP env, Rboolean inherits, SEXP otherwise) {
  SEXP value = inherits ? Rf_findVar(symbol, env) : Rf_findVarInFrame(env, symbol);
  if (value == R_UnboundValue) return otherwise;
  return TYPEOF(value) == PROMSXP ? Rf_eval(value, env) : value;
}
#endif

#endif
