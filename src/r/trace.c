/* .Call entries for the most frequent operations on traced values (R/trace.R). Each returns NULL if
 * a value is not of the usual form; then R code does it.
 *
 *   r_trace_binary(tape, op, a, b): an operator applied to traced values or numbers without names
 *       and dimensions
 *   r_trace_apply(tape, op, values): an operation of elementwise.def, of a list of values
 *   r_trace_element(tape, x, i, j): x[i] for j = NULL; x[i, j], where TRUE is all rows or columns
 *   r_trace_put(tape, x, i, j, value): x with that element replaced */
#include <math.h>
#include <string.h>


#include "r/entries.h"
#include "r/glue.h"

/* A traced value, or a number. */
typedef struct {
  int id, n;   /* id 0: assembled from `from` and `index` */
  bool number; /* then: */
  double value;
  SEXP dim, from, index;
} operand;

typedef struct {
  SEXP env, nodes, size;
  int count;
} tape;

/* The value of a variable of an environment; NULL if there is none. */
static SEXP get(SEXP env, const char *name) {
  return R_getVarEx(Rf_install(name), env, FALSE, R_NilValue);
}

/* A tape with a variable `watched` has all nodes added by R's functions (stop_at_node()). */
static bool read_tape(SEXP env, int more, tape *t) {
  if (TYPEOF(env) != ENVSXP || get(env, "watched") != R_NilValue) return false;
  *t = (tape){env, get(env, "nodes"), get(env, "size"), 0};
  SEXP count = get(env, "count");
  if (TYPEOF(t->nodes) != VECSXP || TYPEOF(t->size) != INTSXP || TYPEOF(count) != INTSXP) {
    return false;
  }
  t->count = INTEGER_RO(count)[0];
  return !MAYBE_SHARED(t->nodes) && !MAYBE_SHARED(t->size) && t->count + more <= XLENGTH(t->size) &&
         XLENGTH(t->size) <= XLENGTH(t->nodes);
}

static bool is_scalar(SEXP x) {
  return (TYPEOF(x) == REALSXP || TYPEOF(x) == INTSXP) && XLENGTH(x) == 1 && !ANY_ATTRIB(x);
}

static bool read_traced(SEXP x, const tape *t, operand *o) {
  if (TYPEOF(x) != ENVSXP || !Rf_inherits(x, "cl_traced") || get(x, "tape") != t->env) return false;
  SEXP id = get(x, "id"), n = get(x, "n");
  if (TYPEOF(id) != INTSXP || TYPEOF(n) != INTSXP) return false;
  if (get(x, "names") != R_NilValue || get(x, "times") != R_NilValue) return false;
  *o = (operand){INTEGER_RO(id)[0], INTEGER_RO(n)[0], false,          0.0,
                 get(x, "dim"),     get(x, "from"),   get(x, "index")};
  const bool assembled = TYPEOF(o->from) == INTSXP && TYPEOF(o->index) == INTSXP &&
                         XLENGTH(o->from) == o->n && XLENGTH(o->index) == o->n;
  return o->n > 0 && (assembled || (o->from == R_NilValue && o->id > 0 && o->id <= t->count));
}

/* A value with a node, or a number. */
static bool read_plain(SEXP x, const tape *t, operand *o) {
  if (is_scalar(x) || (TYPEOF(x) == LGLSXP && XLENGTH(x) == 1 && !ANY_ATTRIB(x))) {
    *o = (operand){0, 1, true, Rf_asReal(x), R_NilValue, R_NilValue, R_NilValue};
    return true;
  }
  return read_traced(x, t, o) && o->id > 0 && o->dim == R_NilValue;
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

static void set(SEXP env, const char *name, SEXP value) {
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
static void count_node(tape *t) {
  SEXP count = get(t->env, "count");
  t->count++;
  if (MAYBE_SHARED(count)) {
    set(t->env, "count", Rf_ScalarInteger(t->count));
  } else {
    INTEGER(count)[0] = t->count;
  }
}

static int add_node(tape *t, const char *kind, const char *op, SEXP args, SEXP at, double number,
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

static int node_of(tape *t, const operand *o) {
  if (!o->number) return o->id;
  return add_node(t, "number", "", Rf_allocVector(INTSXP, 0), R_NilValue, o->value, 1);
}

static SEXP new_traced(const tape *t, int id, int n) {
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
  set(x, "tape", t->env);
  set(x, "n", n == 1 ? one : Rf_ScalarInteger(n));
  set(x, "id", Rf_ScalarInteger(id));
  Rf_setAttrib(x, R_ClassSymbol, class);
#if R_VERSION >= R_Version(4, 1, 0)
  UNPROTECT(1);
#else
  UNPROTECT(2);
#endif
  return x;
}

static SEXP apply(tape *t, const char *op, int count, const int *arg, int n) {
  SEXP args = PROTECT(Rf_allocVector(INTSXP, count));
  memcpy(INTEGER(args), arg, (size_t)count * sizeof *arg);
  const int id = add_node(t, "apply", op, args, R_NilValue, 0.0, n);
  UNPROTECT(1);
  return new_traced(t, id, n);
}

/* ---- operations ----------------------------------------------------------------------------- */

/* Comparisons have plain results if the values of the parameters are known. */
static const char *operator_name(SEXP env, const char *sign) {
  static const char *const names[][2] = {{"+", "add"}, {"-", "sub"}, {"*", "mul"}, {"/", "div"},
                                         {"^", "pow"}, {"==", "eq"}, {"!=", "ne"}, {"<", "lt"},
                                         {">", "gt"},  {"<=", "le"}, {">=", "ge"}, {"&", "and"},
                                         {"|", "or"}};
  enum { ARITHMETIC = 5, OPERATORS = sizeof names / sizeof *names };
  for (int k = 0; k < OPERATORS; k++) {
    if (strcmp(sign, names[k][0]) != 0) continue;
    return k < ARITHMETIC || get(env, "live") == R_NilValue ? names[k][1] : NULL;
  }
  return NULL;
}

SEXP r_trace_binary(SEXP env, SEXP op, SEXP a, SEXP b) {
  const char *sign = CHAR(STRING_ELT(op, 0));
  operand x, y;
  tape t;
  if (!read_tape(env, 3, &t) || !read_plain(a, &t, &x) || !read_plain(b, &t, &y)) {
    return R_NilValue;
  }
  const char *name = operator_name(env, sign);
  if (name == NULL || (x.number && y.number) || (x.n != y.n && x.n != 1 && y.n != 1)) {
    return R_NilValue;
  }
  const int n = x.n > y.n ? x.n : y.n;
  if (sign[0] == '^' && y.number && y.value == 2.0) return apply(&t, "square", 1, &x.id, n);
  const int first = node_of(&t, &x), arg[] = {first, node_of(&t, &y)};
  return apply(&t, name, 2, arg, n);
}

SEXP r_trace_apply(SEXP env, SEXP op, SEXP values) {
  const int count = (int)XLENGTH(values);
  operand x[3];
  int arg[3], n = 1;
  bool numbers = true;
  tape t;
  if (count < 1 || count > 3 || !read_tape(env, 4, &t)) return R_NilValue;
  for (int k = 0; k < count; k++) {
    if (!read_plain(VECTOR_ELT(values, k), &t, &x[k])) return R_NilValue;
    if (x[k].n != 1 && n != 1 && x[k].n != n) return R_NilValue;
    if (x[k].n != 1) n = x[k].n;
    numbers = numbers && x[k].number;
  }
  if (numbers) return R_NilValue;
  for (int k = 0; k < count; k++) arg[k] = node_of(&t, &x[k]);
  return apply(&t, CHAR(STRING_ELT(op, 0)), count, arg, n);
}

/* ---- elements ------------------------------------------------------------------------------- */

/* A subscript from 1 to n, as one from 0; negative for all others. */
static int place_of(SEXP i, int n) {
  if (!is_scalar(i)) return -1;
  const double at = Rf_asReal(i);
  return at >= 1.0 && at < (double)n + 1.0 ? (int)at - 1 : -1;
}

static bool is_all(SEXP i) {
  return TYPEOF(i) == LGLSXP && XLENGTH(i) == 1 && LOGICAL_RO(i)[0] == TRUE;
}

static bool read_dim(const operand *x, int *rows, int *columns) {
  if (TYPEOF(x->dim) != INTSXP || XLENGTH(x->dim) != 2) return false;
  *rows = INTEGER_RO(x->dim)[0];
  *columns = INTEGER_RO(x->dim)[1];
  return true;
}

/* The place of an element; negative for other subscripts. */
static int element_place(const operand *x, SEXP i, SEXP j) {
  int rows, columns;
  if (j == R_NilValue) return place_of(i, x->n);
  if (!read_dim(x, &rows, &columns)) return -1;
  const int row = place_of(i, rows), column = place_of(j, columns);
  return row < 0 || column < 0 ? -1 : row + column * rows;
}

static int add_part(tape *t, int id, const double *at, int n) {
  SEXP args = PROTECT(Rf_ScalarInteger(id)), all = PROTECT(Rf_allocVector(REALSXP, 5));
  memcpy(REAL(all), at, 5 * sizeof *at);
  const int part = add_node(t, "part", "", args, all, 0.0, n);
  UNPROTECT(2);
  return part;
}

/* The value that has the element at a place only. */
static SEXP element(tape *t, const operand *x, int place) {
  const bool assembled = x->from != R_NilValue;
  const int id = assembled ? INTEGER_RO(x->from)[place] : x->id;
  const int at = assembled ? INTEGER_RO(x->index)[place] - 1 : place;
  const int size = INTEGER_RO(t->size)[id - 1];
  const double part[] = {size, at, 0.0, 1.0, 1.0};
  return new_traced(t, size == 1 ? id : add_part(t, id, part, 1), 1);
}

/* Row `place` of a matrix, or a column of one without rows. */
static SEXP line(tape *t, const operand *x, int rows, int columns, int place, bool is_row) {
  const int n = is_row ? columns : rows, step = is_row ? rows : 1;
  const int first = is_row ? place : place * rows;
  if (x->from == R_NilValue) {
    const double row[] = {rows, place, 0.0, 1.0, columns}, column[] = {x->n, first, 0.0, rows, 1.0};
    return new_traced(t, add_part(t, x->id, is_row ? row : column, n), n);
  }
  SEXP from = PROTECT(Rf_allocVector(INTSXP, n)), index = PROTECT(Rf_allocVector(INTSXP, n));
  bool same = true;
  for (int k = 0; k < n; k++) {
    INTEGER(from)[k] = INTEGER_RO(x->from)[first + k * step];
    INTEGER(index)[k] = INTEGER_RO(x->index)[first + k * step];
    same = same && INTEGER_RO(from)[k] == INTEGER_RO(from)[0];
  }
  SEXP value = R_NilValue;
  if (!same) {
    value = PROTECT(new_traced(t, 0, n));
    set(value, "from", from);
    set(value, "index", index);
    UNPROTECT(1);
  }
  UNPROTECT(2);
  return value;
}

SEXP r_trace_element(SEXP env, SEXP value, SEXP i, SEXP j) {
  operand x;
  tape t;
  int rows, columns;
  if (!read_tape(env, 1, &t) || !read_traced(value, &t, &x)) return R_NilValue;
  const bool is_row = is_all(j);
  if (!is_all(i) && !is_row) {
    const int place = element_place(&x, i, j);
    return place < 0 ? R_NilValue : element(&t, &x, place);
  }
  if (!read_dim(&x, &rows, &columns) || rows < 2 || columns < 2) return R_NilValue;
  const int place = is_row ? place_of(i, rows) : place_of(j, columns);
  return place < 0 ? R_NilValue : line(&t, &x, rows, columns, place, is_row);
}

SEXP r_trace_put(SEXP env, SEXP value, SEXP i, SEXP j, SEXP element) {
  operand x, y;
  tape t;
  if (!read_tape(env, 1, &t) || !read_traced(value, &t, &x) || !read_plain(element, &t, &y)) {
    return R_NilValue;
  }
  const int place = element_place(&x, i, j);
  if (place < 0 || y.n != 1 || y.from != R_NilValue || x.from == R_NilValue) return R_NilValue;
  const int id = node_of(&t, &y);
  SEXP from = PROTECT(Rf_allocVector(INTSXP, x.n)), result = PROTECT(new_traced(&t, 0, x.n));
  memcpy(INTEGER(from), INTEGER_RO(x.from), (size_t)x.n * sizeof(int));
  INTEGER(from)[place] = id;
  set(result, "from", from);
  if (INTEGER_RO(x.index)[place] != 1) {
    SEXP index = PROTECT(Rf_duplicate(x.index));
    INTEGER(index)[place] = 1;
    set(result, "index", index);
    UNPROTECT(1);
  } else {
    set(result, "index", x.index);
  }
  if (x.dim != R_NilValue) set(result, "dim", x.dim);
  UNPROTECT(2);
  return result;
}
