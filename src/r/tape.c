/* The tape of R/trace.R and its nodes (r/tape.h).
 *
 *   r_trace_add(tape, kind, op, args, at, number, n): adds a node and returns its number
 *   r_trace_number(tape, x): the node of a number
 *   r_trace_known(data, candidates, x): which of these vectors of a list is x, or 0
 *   r_trace_reached(args, output): whether nodes 1 to `output` are operands, directly or not, of
 *       the last of them, or itself. args: of each node the operands */
#include "r/tape.h"

#include <math.h>
#include <string.h>

#include "r/entries.h"
#include "r/glue.h"

static SEXP symbol[R_TAPE_FIELD_COUNT];

/* Values that many nodes and traced values share. */
static SEXP no_args, no_at, one, class_names, text_apply, text_number, text_part, text_concat,
    text_data, text_reduce, text_sum;

static SEXP kept(SEXP x) {
  R_PreserveObject(x);
  MARK_NOT_MUTABLE(x);
  return x;
}

void r_tape_init(void) {
  static const char *const name[] = {
#define R_TAPE_FIELD(name) #name,
      R_TAPE_FIELDS(R_TAPE_FIELD)
#undef R_TAPE_FIELD
  };
  for (int k = 0; k < R_TAPE_FIELD_COUNT; k++) symbol[k] = Rf_install(name[k]);
  no_args = kept(Rf_allocVector(INTSXP, 0));
  no_at = kept(Rf_allocVector(REALSXP, 0));
  one = kept(Rf_ScalarInteger(1));
  class_names = kept(Rf_allocVector(STRSXP, 2));
  SET_STRING_ELT(class_names, 0, Rf_mkChar("cl_traced"));
  SET_STRING_ELT(class_names, 1, Rf_mkChar("numeric"));
  text_apply = kept(Rf_mkChar("apply"));
  text_number = kept(Rf_mkChar("number"));
  text_part = kept(Rf_mkChar("part"));
  text_data = kept(Rf_mkChar("data"));
  text_reduce = kept(Rf_mkChar("reduce"));
  text_sum = kept(Rf_mkChar("sum"));
  text_concat = kept(Rf_mkChar("concat"));
}

SEXP r_tape_get(SEXP env, r_field field) {
  return R_getVarEx(symbol[field], env, FALSE, R_NilValue);
}

void r_tape_set(SEXP env, r_field field, SEXP value) {
  PROTECT(value);
  Rf_defineVar(symbol[field], value, env);
  UNPROTECT(1);
}

/* A tape with a variable `watched` has all nodes added by R's functions (stop_at_node()). */
bool r_tape_read(SEXP env, r_tape *t) {
  static const unsigned type[R_TAPE_COLUMNS] = {STRSXP, STRSXP, VECSXP, VECSXP, REALSXP, INTSXP};
  if (TYPEOF(env) != ENVSXP) return false;
  SEXP count = r_tape_get(env, R_AT_count);
  if (TYPEOF(count) != INTSXP) return false;
  *t = (r_tape){.env = env, .count = INTEGER_RO(count)[0], .room = INT_MAX};
  for (int k = 0; k < R_TAPE_COLUMNS; k++) {
    SEXP x = t->column[k] = r_tape_get(env, (r_field)k);
    if ((unsigned)TYPEOF(x) != type[k]) return false;
    const int room = MAYBE_SHARED(x) ? 0 : (int)XLENGTH(x);
    if (room < t->room) t->room = room;
  }
  return r_tape_get(env, R_AT_watched) == R_NilValue;
}

bool r_tape_is_number(SEXP x) {
  return (TYPEOF(x) == REALSXP || TYPEOF(x) == INTSXP) && XLENGTH(x) == 1 && !ANY_ATTRIB(x);
}

bool r_is_plain(SEXP x) {
  if (TYPEOF(x) != REALSXP || Rf_isObject(x) || XLENGTH(x) >= INT_MAX) return false;
  return !ANY_ATTRIB(x) || TYPEOF(Rf_getAttrib(x, R_DimSymbol)) == INTSXP;
}

bool r_tape_traced(SEXP x, const r_tape *t, r_traced *o) {
  if (TYPEOF(x) != ENVSXP || !Rf_inherits(x, "cl_traced") || r_tape_get(x, R_AT_tape) != t->env)
    return false;
  SEXP id = r_tape_get(x, R_AT_id), n = r_tape_get(x, R_AT_n);
  if (TYPEOF(id) != INTSXP || TYPEOF(n) != INTSXP) return false;
  if (r_tape_get(x, R_AT_names) != R_NilValue || r_tape_get(x, R_AT_times) != R_NilValue) {
    return false;
  }
  *o = (r_traced){
      INTEGER_RO(id)[0],        INTEGER_RO(n)[0],         false, 0.0, r_tape_get(x, R_AT_dim),
      r_tape_get(x, R_AT_from), r_tape_get(x, R_AT_index)};
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

r_tape_entry r_tape_at(const r_tape *t, int id) {
  return (r_tape_entry){
      STRING_ELT(t->column[R_AT_kind], id - 1), STRING_ELT(t->column[R_AT_op], id - 1),
      VECTOR_ELT(t->column[R_AT_args], id - 1), VECTOR_ELT(t->column[R_AT_at], id - 1),
      REAL_RO(t->column[R_AT_number])[id - 1]};
}

int r_tape_size(const r_tape *t, int id) {
  return INTEGER_RO(t->column[R_AT_size])[id - 1];
}

bool r_tape_is(const r_tape *t, int id, const char *kind) {
  return strcmp(CHAR(STRING_ELT(t->column[R_AT_kind], id - 1)), kind) == 0;
}

/* Gives the columns room for twice the nodes. */
static void grow(r_tape *t) {
  t->room = 2 * t->count + 256;
  for (int k = 0; k < R_TAPE_COLUMNS; k++) {
    t->column[k] = Rf_xlengthgets(t->column[k], t->room);
    r_tape_set(t->env, (r_field)k, t->column[k]);
  }
}

static void set_count(r_tape *t, int nodes) {
  SEXP count = r_tape_get(t->env, R_AT_count);
  t->count = nodes;
  if (MAYBE_SHARED(count)) {
    r_tape_set(t->env, R_AT_count, Rf_ScalarInteger(t->count));
  } else {
    INTEGER(count)[0] = t->count;
  }
}

int r_tape_add(r_tape *t, r_tape_entry node, int n) {
  if (t->count >= t->room) {
    PROTECT(node.args);
    PROTECT(node.at);
    grow(t);
    UNPROTECT(2);
  }
  SET_STRING_ELT(t->column[R_AT_kind], t->count, node.kind);
  SET_STRING_ELT(t->column[R_AT_op], t->count, node.op);
  SET_VECTOR_ELT(t->column[R_AT_args], t->count, node.args);
  SET_VECTOR_ELT(t->column[R_AT_at], t->count, node.at);
  REAL(t->column[R_AT_number])[t->count] = node.number;
  INTEGER(t->column[R_AT_size])[t->count] = n;
  set_count(t, t->count + 1);
  return t->count;
}

int r_tape_apply(r_tape *t, const char *op, int count, const int *arg, int n) {
  SEXP args = PROTECT(Rf_allocVector(INTSXP, count));
  memcpy(INTEGER(args), arg, (size_t)count * sizeof *arg);
  const int id = r_tape_add(t, (r_tape_entry){text_apply, Rf_mkChar(op), args, no_at, 0.0}, n);
  UNPROTECT(1);
  return id;
}

int r_tape_sum(r_tape *t, int id) {
  SEXP args = PROTECT(Rf_ScalarInteger(id)), at = PROTECT(Rf_allocVector(REALSXP, 3));
  const double shape[] = {r_tape_size(t, id), 1.0, 0.0};
  memcpy(REAL(at), shape, sizeof shape);
  const int sum = r_tape_add(t, (r_tape_entry){text_reduce, text_sum, args, at, 0.0}, 1);
  UNPROTECT(2);
  return sum;
}

int r_tape_part(r_tape *t, int id, const double *at) {
  SEXP args = PROTECT(Rf_ScalarInteger(id)), all = PROTECT(Rf_allocVector(REALSXP, 5));
  memcpy(REAL(all), at, 5 * sizeof *at);
  const r_tape_entry node = {text_part, R_BlankString, args, all, 0.0};
  const int part = r_tape_add(t, node, (int)(at[3] * at[4]));
  UNPROTECT(2);
  return part;
}

int r_tape_elements(r_tape *t, int id, const int *at, int n) {
  const int size = r_tape_size(t, id);
  if (size == 1 && n == 1) return id;
  for (int k = 1; k < n; k++) {
    if (at[k] != at[0] + k) return 0;
  }
  if (n == size) return id;
  const double part[] = {size, at[0], 0.0, n, 1.0};
  return r_tape_part(t, id, part);
}

int r_tape_data(r_tape *t, int at, int n) {
  SEXP all = PROTECT(Rf_allocVector(REALSXP, 2));
  REAL(all)[0] = at;
  REAL(all)[1] = n;
  const int id = r_tape_add(t, (r_tape_entry){text_data, R_BlankString, no_args, all, 0.0}, n);
  UNPROTECT(1);
  return id;
}

int r_tape_concat(r_tape *t, SEXP args, int n) {
  return r_tape_add(t, (r_tape_entry){text_concat, R_BlankString, args, no_at, 0.0}, n);
}

/* The place for the number among those of recent nodes; NULL if it is not kept. */
static int *recent_of(const r_tape *t, double x) {
  SEXP recent = r_tape_get(t->env, R_AT_recent);
  uint64_t bits;
  if (isnan(x) || TYPEOF(recent) != INTSXP || XLENGTH(recent) != 256) return NULL;
  memcpy(&bits, &x, sizeof bits);
  return &INTEGER(recent)[(bits * 0x9e3779b97f4a7c15u) >> 56];
}

int r_tape_number(r_tape *t, double x) {
  int *recent = recent_of(t, x);
  if (recent != NULL && *recent > 0 && *recent <= t->count) {
    const double *known = &REAL_RO(t->column[R_AT_number])[*recent - 1];
    if (memcmp(known, &x, sizeof x) == 0) return *recent;
  }
  const int id = r_tape_add(t, (r_tape_entry){text_number, R_BlankString, no_args, no_at, x}, 1);
  if (recent != NULL) *recent = id;
  return id;
}

void r_tape_cut(r_tape *t, int count) {
  SEXP recent = r_tape_get(t->env, R_AT_recent);
  if (t->count == count) return;
  for (R_xlen_t k = 0; k < XLENGTH(recent); k++) {
    if (INTEGER_RO(recent)[k] > count) INTEGER(recent)[k] = 0;
  }
  set_count(t, count);
}

int r_tape_node(r_tape *t, const r_traced *o) {
  return o->number ? r_tape_number(t, o->value) : o->id;
}

SEXP r_tape_value(const r_tape *t, int id, int n) {
#if R_VERSION >= R_Version(4, 1, 0)
  SEXP x = PROTECT(R_NewEnv(R_EmptyEnv, 0, 0));
#else
  SEXP call = PROTECT(Rf_lang1(Rf_install("new.env")));
  SEXP x = PROTECT(Rf_eval(call, R_BaseEnv));
#endif
  r_tape_set(x, R_AT_tape, t->env);
  r_tape_set(x, R_AT_n, n == 1 ? one : Rf_ScalarInteger(n));
  r_tape_set(x, R_AT_id, Rf_ScalarInteger(id));
  Rf_setAttrib(x, R_ClassSymbol, class_names);
#if R_VERSION >= R_Version(4, 1, 0)
  UNPROTECT(1);
#else
  UNPROTECT(2);
#endif
  return x;
}

/* ---- entries -------------------------------------------------------------------------------- */

SEXP r_trace_add(SEXP env, SEXP kind, SEXP op, SEXP args, SEXP at, SEXP number, SEXP n) {
  r_tape t;
  r_tape_read(env, &t);
  args = PROTECT(Rf_coerceVector(args, INTSXP));
  at = PROTECT(Rf_coerceVector(at, REALSXP));
  const r_tape_entry node = {STRING_ELT(kind, 0), STRING_ELT(op, 0), args, at, Rf_asReal(number)};
  const int id = r_tape_add(&t, node, Rf_asInteger(n));
  UNPROTECT(2);
  return Rf_ScalarInteger(id);
}

SEXP r_trace_number(SEXP env, SEXP x) {
  r_tape t;
  r_tape_read(env, &t);
  return Rf_ScalarInteger(r_tape_number(&t, Rf_asReal(x)));
}

SEXP r_trace_known(SEXP data, SEXP candidates, SEXP x) {
  for (R_xlen_t k = 0; k < Rf_xlength(candidates); k++) {
    const int at = INTEGER_RO(candidates)[k];
    if (R_compute_identical(VECTOR_ELT(data, at - 1), x, 16)) return Rf_ScalarInteger(at);
  }
  return Rf_ScalarInteger(0);
}

SEXP r_trace_reached(SEXP args, SEXP output) {
  const int last = Rf_asInteger(output);
  SEXP reached = PROTECT(Rf_allocVector(LGLSXP, last));
  int *is = LOGICAL(reached);
  memset(is, 0, (size_t)last * sizeof *is);
  is[last - 1] = TRUE;
  for (int k = last; k > 0; k--) {
    SEXP of = VECTOR_ELT(args, k - 1);
    for (R_xlen_t i = 0; is[k - 1] && i < XLENGTH(of); i++) is[INTEGER_RO(of)[i] - 1] = TRUE;
  }
  UNPROTECT(1);
  return reached;
}
