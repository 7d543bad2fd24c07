/* The tape of R/trace.R and its nodes (r/tape.h). */
#include "r/tape.h"

#include <math.h>
#include <string.h>

#include "r/glue.h"

/* The value of a variable of an environment; NULL if there is none. */
SEXP r_tape_get(SEXP env, const char *name) {
  return R_getVarEx(Rf_install(name), env, FALSE, R_NilValue);
}

/* A tape with a variable `watched` has all nodes added by R's functions (stop_at_node()). */
bool r_tape_read(SEXP env, int more, r_tape *t) {
  if (TYPEOF(env) != ENVSXP || r_tape_get(env, "watched") != R_NilValue) return false;
  *t = (r_tape){env, r_tape_get(env, "nodes"), r_tape_get(env, "size"), 0};
  SEXP count = r_tape_get(env, "count");
  if (TYPEOF(t->nodes) != VECSXP || TYPEOF(t->size) != INTSXP || TYPEOF(count) != INTSXP) {
    return false;
  }
  t->count = INTEGER_RO(count)[0];
  return !MAYBE_SHARED(t->nodes) && !MAYBE_SHARED(t->size) && t->count + more <= XLENGTH(t->size) &&
         XLENGTH(t->size) <= XLENGTH(t->nodes);
}

bool r_tape_is_number(SEXP x) {
  return (TYPEOF(x) == REALSXP || TYPEOF(x) == INTSXP) && XLENGTH(x) == 1 && !ANY_ATTRIB(x);
}

bool r_tape_traced(SEXP x, const r_tape *t, r_traced *o) {
  if (TYPEOF(x) != ENVSXP || !Rf_inherits(x, "cl_traced") || r_tape_get(x, "tape") != t->env)
    return false;
  SEXP id = r_tape_get(x, "id"), n = r_tape_get(x, "n");
  if (TYPEOF(id) != INTSXP || TYPEOF(n) != INTSXP) return false;
  if (r_tape_get(x, "names") != R_NilValue || r_tape_get(x, "times") != R_NilValue) return false;
  *o = (r_traced){INTEGER_RO(id)[0],     INTEGER_RO(n)[0],      false, 0.0, r_tape_get(x, "dim"),
                  r_tape_get(x, "from"), r_tape_get(x, "index")};
  const bool assembled = TYPEOF(o->from) == INTSXP && TYPEOF(o->index) == INTSXP &&
                         XLENGTH(o->from) == o->n && XLENGTH(o->index) == o->n;
  return o->n > 0 && (assembled || (o->from == R_NilValue && o->id > 0 && o->id <= t->count));
}

/* A value with a node, or a number. */
bool r_tape_operand(SEXP x, const r_tape *t, r_traced *o) {
  if (r_tape_is_number(x) || (TYPEOF(x) == LGLSXP && XLENGTH(x) == 1 && !ANY_ATTRIB(x))) {
    *o = (r_traced){0, 1, true, Rf_asReal(x), R_NilValue, R_NilValue, R_NilValue};
    return true;
  }
  return r_tape_traced(x, t, o) && o->id > 0 && o->dim == R_NilValue;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

/* Keeps a value for the session, in `*to` once that is certain. */
static void keep(SEXP *to, SEXP x) {
  PROTECT(x);
  R_PreserveObject(x);
  MARK_NOT_MUTABLE(x);
  UNPROTECT(1);
  *to = x;
}

void r_tape_set(SEXP env, const char *name, SEXP value) {
  PROTECT(value);
  Rf_defineVar(Rf_install(name), value, env);
  UNPROTECT(1);
}

/* A name as a character vector; those of operations are few. */
static SEXP text(const char *name) {
  static SEXP known[128];
  static int count;
  for (int k = 0; k < count; k++) {
    if (strcmp(CHAR(STRING_ELT(known[k], 0)), name) == 0) return known[k];
  }
  SEXP x = Rf_mkString(name);
  if (count == 128) return x;
  keep(&known[count], x);
  return known[count++];
}

/* Counts a node. */
static void count_node(r_tape *t) {
  SEXP count = r_tape_get(t->env, "count");
  t->count++;
  if (MAYBE_SHARED(count)) {
    r_tape_set(t->env, "count", Rf_ScalarInteger(t->count));
  } else {
    INTEGER(count)[0] = t->count;
  }
}

int r_tape_add(r_tape *t, const char *kind, const char *op, SEXP args, SEXP at, double number,
               int n) {
  static SEXP zero, none;
  PROTECT(args);
  PROTECT(at);
  if (zero == NULL) keep(&zero, Rf_ScalarReal(0.0));
  if (none == NULL) keep(&none, Rf_allocVector(REALSXP, 0));
  SEXP node = PROTECT(Rf_allocVector(VECSXP, 5));
  SET_VECTOR_ELT(node, 0, text(kind));
  SET_VECTOR_ELT(node, 1, text(op));
  SET_VECTOR_ELT(node, 2, args);
  SET_VECTOR_ELT(node, 3, at == R_NilValue ? none : at);
  SET_VECTOR_ELT(node, 4, number == 0.0 && !signbit(number) ? zero : Rf_ScalarReal(number));
  SET_VECTOR_ELT(t->nodes, t->count, node);
  INTEGER(t->size)[t->count] = n;
  count_node(t);
  UNPROTECT(3);
  return t->count;
}

int r_tape_node(r_tape *t, const r_traced *o) {
  if (!o->number) return o->id;
  return r_tape_add(t, "number", "", Rf_allocVector(INTSXP, 0), R_NilValue, o->value, 1);
}

SEXP r_tape_value(const r_tape *t, int id, int n) {
  static SEXP class, one;
  if (one == NULL) keep(&one, Rf_ScalarInteger(1));
  if (class == NULL) {
    SEXP names = PROTECT(Rf_allocVector(STRSXP, 2));
    SET_STRING_ELT(names, 0, Rf_mkChar("cl_traced"));
    SET_STRING_ELT(names, 1, Rf_mkChar("numeric"));
    keep(&class, names);
    UNPROTECT(1);
  }
#if R_VERSION >= R_Version(4, 1, 0)
  SEXP x = PROTECT(R_NewEnv(R_EmptyEnv, 0, 0));
#else
  SEXP call = PROTECT(Rf_lang1(Rf_install("new.env")));
  SEXP x = PROTECT(Rf_eval(call, R_BaseEnv));
#endif
  r_tape_set(x, "tape", t->env);
  r_tape_set(x, "n", n == 1 ? one : Rf_ScalarInteger(n));
  r_tape_set(x, "id", Rf_ScalarInteger(id));
  Rf_setAttrib(x, R_ClassSymbol, class);
#if R_VERSION >= R_Version(4, 1, 0)
  UNPROTECT(1);
#else
  UNPROTECT(2);
#endif
  return x;
}

int r_tape_part(r_tape *t, int id, const double *at) {
  SEXP args = PROTECT(Rf_ScalarInteger(id)), all = PROTECT(Rf_allocVector(REALSXP, 5));
  memcpy(REAL(all), at, 5 * sizeof *at);
  const int part = r_tape_add(t, "part", "", args, all, 0.0, (int)(at[3] * at[4]));
  UNPROTECT(2);
  return part;
}
