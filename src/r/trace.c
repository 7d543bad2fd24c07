/* .Call entries for the most frequent operations on traced values (R/trace.R). Each returns NULL if
 * a value is not of the usual form; then R code does it.
 *
 *   r_trace_binary(tape, op, a, b): an operator applied to traced values or numbers without names
 *       and dimensions
 *   r_trace_apply(tape, op, values): an operation of elementwise.def, of a list of values
 *   r_trace_dot(tape, x, y): sum(x * y) of two vectors
 *   r_trace_element(tape, x, i, j): x[i] for j = NULL; x[i, j], where TRUE is all rows or columns
 * of a traced value; x may be numbers r_trace_put(tape, x, i, j, value): x with that element
 * replaced */
#include <math.h>
#include <string.h>

#include "r/entries.h"
#include "r/glue.h"
#include "r/tape.h"

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
    return k < ARITHMETIC || r_tape_get(env, R_AT_live) == R_NilValue ? names[k][1] : NULL;
  }
  return NULL;
}

/* As r_tape_operand(), of an assembled value too, for which it makes the node. */
static bool read_joined(SEXP x, r_tape *t, r_traced *o) {
  if (r_tape_operand(x, t, o)) return true;
  if (!r_tape_traced(x, t, o) || o->id > 0 || o->dim != R_NilValue) return false;
  o->id = r_tape_join(t, o);
  if (o->id > 0) r_tape_set(x, R_AT_id, Rf_ScalarInteger(o->id));
  return o->id > 0;
}

enum { DATA = -1 }; /* in place of a node, which is added later */

/* Data too. Within a step of a scan these are data of the function around it (R code). */
static bool read_any(SEXP x, r_tape *t, r_traced *o) {
  if (read_joined(x, t, o)) return true;
  if (TYPEOF(x) != REALSXP || XLENGTH(x) < 2 || XLENGTH(x) >= INT_MAX || ANY_ATTRIB(x) ||
      r_tape_get(t->env, R_AT_parent) != R_NilValue) {
    return false;
  }
  *o = (r_traced){DATA, (int)XLENGTH(x), false, 0.0, R_NilValue, R_NilValue, R_NilValue};
  return true;
}

static int any_node(r_tape *t, const r_traced *o, SEXP x) {
  if (o->id != DATA) return r_tape_node(t, o);
  SEXP call = PROTECT(Rf_lang2(r_tape_get(t->env, R_AT_add_data), x));
  const int id = r_tape_data(t, Rf_asInteger(Rf_eval(call, R_BaseEnv)), o->n);
  UNPROTECT(1);
  return id;
}

int r_tape_binary(r_tape *t, const char *sign, const r_traced *x, const r_traced *y, SEXP a,
                  SEXP b) {
  const char *name = operator_name(t->env, sign);
  const bool plain = (x->number || x->id == DATA) && (y->number || y->id == DATA);
  if (name == NULL || plain || (x->n != y->n && x->n != 1 && y->n != 1)) return 0;
  const int n = x->n > y->n ? x->n : y->n;
  if (sign[0] == '^' && y->number && y->value == 2.0) {
    return r_tape_apply(t, "square", 1, &x->id, n);
  }
  const int first = any_node(t, x, a), arg[] = {first, any_node(t, y, b)};
  return r_tape_apply(t, name, 2, arg, n);
}

SEXP r_trace_binary(SEXP env, SEXP op, SEXP a, SEXP b) {
  r_traced x, y;
  r_tape t;
  if (!r_tape_read(env, &t) || !read_any(a, &t, &x) || !read_any(b, &t, &y)) return R_NilValue;
  const int id = r_tape_binary(&t, CHAR(STRING_ELT(op, 0)), &x, &y, a, b);
  return id > 0 ? r_tape_value(&t, id, r_tape_size(&t, id)) : R_NilValue;
}

SEXP r_trace_apply(SEXP env, SEXP op, SEXP values) {
  const int count = (int)XLENGTH(values);
  r_traced x[3];
  int arg[3], n = 1;
  bool numbers = true;
  r_tape t;
  if (count < 1 || count > 3 || !r_tape_read(env, &t)) return R_NilValue;
  for (int k = 0; k < count; k++) {
    if (!read_joined(VECTOR_ELT(values, k), &t, &x[k])) return R_NilValue;
    if (x[k].n != 1 && n != 1 && x[k].n != n) return R_NilValue;
    if (x[k].n != 1) n = x[k].n;
    numbers = numbers && x[k].number;
  }
  if (numbers) return R_NilValue;
  for (int k = 0; k < count; k++) arg[k] = r_tape_node(&t, &x[k]);
  return r_tape_value(&t, r_tape_apply(&t, CHAR(STRING_ELT(op, 0)), count, arg, n), n);
}

SEXP r_trace_dot(SEXP env, SEXP a, SEXP b) {
  r_traced x, y;
  r_tape t;
  if (!r_tape_read(env, &t) || !read_any(a, &t, &x) || !read_any(b, &t, &y)) return R_NilValue;
  SEXP elements = r_tape_get(env, R_AT_elements); /* of cl_map(): one by one */
  if ((x.id == DATA && y.id == DATA) || x.n != y.n || x.n < 2 || elements == R_NilValue ||
      Rf_asLogical(elements) != FALSE) {
    return R_NilValue;
  }
  const int first = any_node(&t, &x, a), arg[] = {first, any_node(&t, &y, b)};
  return r_tape_value(&t, r_tape_sum(&t, r_tape_apply(&t, "mul", 2, arg, x.n)), 1);
}

/* ---- elements ------------------------------------------------------------------------------- */

/* A subscript from 1 to n, as one from 0; negative for all others. */
static int place_of(double at, int n) {
  return at >= 1.0 && at < (double)n + 1.0 ? (int)at - 1 : -1;
}

/* A subscript that is one number; 0, which is none, for others. */
static double subscript(SEXP i) {
  return r_tape_is_number(i) ? Rf_asReal(i) : 0.0;
}

static bool is_all(SEXP i) {
  return TYPEOF(i) == LGLSXP && XLENGTH(i) == 1 && LOGICAL_RO(i)[0] == TRUE;
}

static bool read_dim(const r_traced *x, int *rows, int *columns) {
  if (TYPEOF(x->dim) != INTSXP || XLENGTH(x->dim) != 2) return false;
  *rows = INTEGER_RO(x->dim)[0];
  *columns = INTEGER_RO(x->dim)[1];
  return true;
}

int r_tape_place(const r_traced *x, int count, const double *at) {
  int rows, columns;
  if (count == 1) return place_of(at[0], x->n);
  if (!read_dim(x, &rows, &columns)) return -1;
  const int row = place_of(at[0], rows), column = place_of(at[1], columns);
  return row < 0 || column < 0 ? -1 : row + column * rows;
}

static int element_place(const r_traced *x, SEXP i, SEXP j) {
  const double at[] = {subscript(i), subscript(j)};
  return r_tape_place(x, j == R_NilValue ? 1 : 2, at);
}

int r_tape_element(r_tape *t, const r_traced *x, int place) {
  const bool assembled = x->from != R_NilValue;
  const int id = assembled ? INTEGER_RO(x->from)[place] : x->id;
  const int at = assembled ? INTEGER_RO(x->index)[place] - 1 : place;
  const int size = r_tape_size(t, id);
  const double part[] = {size, at, 0.0, 1.0, 1.0};
  return size == 1 ? id : r_tape_part(t, id, part);
}

/* Row `place` of a matrix, or a column of one without rows. */
static SEXP line(r_tape *t, const r_traced *x, int rows, int columns, int place, bool is_row) {
  const int n = is_row ? columns : rows, step = is_row ? rows : 1;
  const int first = is_row ? place : place * rows;
  if (x->from == R_NilValue) {
    const double row[] = {rows, place, 0.0, 1.0, columns}, column[] = {x->n, first, 0.0, rows, 1.0};
    return r_tape_value(t, r_tape_part(t, x->id, is_row ? row : column), n);
  }
  SEXP from = PROTECT(Rf_allocVector(INTSXP, n)), index = PROTECT(Rf_allocVector(INTSXP, n));
  bool same = true;
  for (int k = 0; k < n; k++) {
    INTEGER(from)[k] = INTEGER_RO(x->from)[first + k * step];
    INTEGER(index)[k] = INTEGER_RO(x->index)[first + k * step];
    same = same && INTEGER_RO(from)[k] == INTEGER_RO(from)[0];
  }
  SEXP value = R_NilValue;
  if (same) {
    for (int k = 0; k < n; k++) INTEGER(index)[k]--;
    const int id = r_tape_elements(t, INTEGER_RO(from)[0], INTEGER_RO(index), n);
    if (id > 0) value = r_tape_value(t, id, n);
  } else {
    value = PROTECT(r_tape_value(t, 0, n));
    r_tape_set(value, R_AT_from, from);
    r_tape_set(value, R_AT_index, index);
    UNPROTECT(1);
  }
  UNPROTECT(2);
  return value;
}

SEXP r_trace_element(SEXP env, SEXP value, SEXP i, SEXP j) {
  r_traced x;
  r_tape t;
  int rows, columns;
  if (r_is_plain(value)) {
    x = (r_traced){.n = (int)XLENGTH(value), .dim = Rf_getAttrib(value, R_DimSymbol)};
    const int place = element_place(&x, i, j);
    return place < 0 ? R_NilValue : Rf_ScalarReal(REAL_RO(value)[place]);
  }
  if (!r_tape_read(env, &t) || !r_tape_traced(value, &t, &x)) return R_NilValue;
  const bool is_row = is_all(j);
  if (!is_all(i) && !is_row) {
    const int place = element_place(&x, i, j);
    return place < 0 ? R_NilValue : r_tape_value(&t, r_tape_element(&t, &x, place), 1);
  }
  if (!read_dim(&x, &rows, &columns) || rows < 2 || columns < 2) return R_NilValue;
  const int place = is_row ? place_of(subscript(i), rows) : place_of(subscript(j), columns);
  return place < 0 ? R_NilValue : line(&t, &x, rows, columns, place, is_row);
}

SEXP r_trace_put(SEXP env, SEXP value, SEXP i, SEXP j, SEXP element) {
  r_traced x, y;
  r_tape t;
  if (!r_tape_read(env, &t) || !r_tape_traced(value, &t, &x) || !r_tape_operand(element, &t, &y)) {
    return R_NilValue;
  }
  const int place = element_place(&x, i, j);
  if (place < 0 || y.n != 1 || y.from != R_NilValue || x.from == R_NilValue) return R_NilValue;
  const int id = r_tape_node(&t, &y);
  SEXP result = PROTECT(r_tape_value(&t, 0, x.n));
  const bool same = INTEGER_RO(x.index)[place] == 1;
  r_tape_set(result, R_AT_from, r_tape_version(x.from, place, id));
  r_tape_set(result, R_AT_index, same ? x.index : r_tape_version(x.index, place, 1));
  if (x.dim != R_NilValue) r_tape_set(result, R_AT_dim, x.dim);
  UNPROTECT(1);
  return result;
}
