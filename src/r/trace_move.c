/* Elements of traced values for the code of Stan programs (R/stan-values.R), which checks nothing
 * here: NULL if a value is not of the usual form; then R code does it, or finds the error. Values
 * of r_trace_pick() may be numbers, too.
 *
 *   r_trace_pick(tape, x, parts, single): x[i, j, ...]; `parts` are the indices, NULL: all.
 * `single` says which are one number and lose their dimension; NULL: the indices are parallel
 * vectors, one element for each lane of a loop r_trace_place(tape, x, parts, single, value): x with
 * that replaced r_trace_join(tape, x): the node of an assembled value, as join_nodes() makes it */
#include <math.h>
#include <string.h>

#include "r/entries.h"
#include "r/glue.h"
#include "r/tape.h"

enum { MOST_PARTS = 4 };

typedef struct {
  int rank, counts[MOST_PARTS];
  int n;    /* of places */
  SEXP all; /* places, counted from 0; protect it */
} places;

/* The dimensions of an operand; 0 if there are too many. */
static int dims_of(const r_traced *x, int *dims) {
  if (x->dim == R_NilValue) {
    dims[0] = x->n;
    return 1;
  }
  if (TYPEOF(x->dim) != INTSXP || XLENGTH(x->dim) > MOST_PARTS) return 0;
  memcpy(dims, INTEGER_RO(x->dim), (size_t)XLENGTH(x->dim) * sizeof *dims);
  return (int)XLENGTH(x->dim);
}

/* An index from 1 to n as one from 0; negative for all others. */
static int index_at(SEXP part, R_xlen_t k, int n) {
  const double i = TYPEOF(part) == INTSXP ? (double)INTEGER_RO(part)[k] : REAL_RO(part)[k];
  return i >= 1.0 && i < (double)n + 1.0 ? (int)i - 1 : -1;
}

static bool is_index(SEXP part) {
  return (TYPEOF(part) == INTSXP || TYPEOF(part) == REALSXP) && !Rf_isObject(part) &&
         XLENGTH(part) > 0 && XLENGTH(part) < INT_MAX;
}

/* Lengths of the parts, and the number of places; false if they are not of the usual form. */
static bool measure(SEXP parts, const int *dims, bool lanes, places *p) {
  double n = 1.0;
  if (XLENGTH(parts) != p->rank) return false;
  for (int k = 0; k < p->rank; k++) {
    SEXP part = VECTOR_ELT(parts, k);
    if (part == R_NilValue ? lanes : !is_index(part)) return false;
    p->counts[k] = part == R_NilValue ? dims[k] : (int)XLENGTH(part);
    if (lanes) {
      if (p->counts[k] != 1 && n != 1.0 && p->counts[k] != n) return false;
      if (p->counts[k] != 1) n = p->counts[k];
    } else {
      n *= p->counts[k];
    }
  }
  p->n = n >= 1.0 && n < 1e8 ? (int)n : 0;
  return p->n > 0;
}

/* The places that the parts choose. */
static bool read_places(const r_traced *x, SEXP parts, bool lanes, places *p) {
  int dims[MOST_PARTS], stride = 1, block = 1;
  p->rank = dims_of(x, dims);
  if (p->rank == 0 || !measure(parts, dims, lanes, p)) return false;
  p->all = Rf_allocVector(INTSXP, p->n);
  int *at = INTEGER(p->all);
  memset(at, 0, (size_t)p->n * sizeof *at);
  for (int k = 0; k < p->rank; k++) {
    SEXP part = VECTOR_ELT(parts, k);
    const int count = p->counts[k];
    for (int i = 0; i < p->n; i++) {
      const int which = lanes ? (count == 1 ? 0 : i) : i / block % count;
      const int place = part == R_NilValue ? which : index_at(part, which, dims[k]);
      if (place < 0) return false;
      at[i] += place * stride;
    }
    block *= count;
    stride *= dims[k];
  }
  return true;
}

/* The nodes and places there of all elements of x, of which a number may be repeated. */
static void sources_of(const r_tape *t, const r_traced *x, int *from, int *index) {
  const bool assembled = x->from != R_NilValue;
  const int step = assembled || r_tape_size(t, x->id) > 1;
  for (int k = 0; k < x->n; k++) {
    from[k] = assembled ? INTEGER_RO(x->from)[k] : x->id;
    index[k] = assembled ? INTEGER_RO(x->index)[k] : step * k + 1;
  }
}

static bool may_be_missing(SEXP env) {
  SEXP flag = r_tape_get(env, R_AT_has_missing);
  return TYPEOF(flag) != LGLSXP || LOGICAL_RO(flag)[0] != FALSE;
}

/* An assembled value, or one of elements of one node. */
static SEXP gathered(r_tape *t, const r_traced *x, const int *at, int n, SEXP dim) {
  SEXP from = PROTECT(Rf_allocVector(INTSXP, n)), index = PROTECT(Rf_allocVector(INTSXP, n));
  const bool assembled = x->from != R_NilValue;
  const int *old_from = assembled ? INTEGER_RO(x->from) : NULL;
  const int *old_index = assembled ? INTEGER_RO(x->index) : NULL;
  int *new_from = INTEGER(from), *new_index = INTEGER(index);
  bool same = true;
  for (int k = 0; k < n; k++) {
    new_from[k] = assembled ? old_from[at[k]] : x->id;
    new_index[k] = assembled ? old_index[at[k]] : at[k] + 1;
    same = same && new_from[k] == new_from[0];
  }
  SEXP value = R_NilValue;
  if (same) {
    for (int k = 0; k < n; k++) INTEGER(index)[k]--;
    const int id = r_tape_elements(t, INTEGER(from)[0], INTEGER(index), n);
    if (id > 0) value = r_tape_value(t, id, n);
  } else {
    value = r_tape_value(t, 0, n);
  }
  PROTECT(value);
  if (value != R_NilValue && !same) {
    r_tape_set(value, R_AT_from, from);
    r_tape_set(value, R_AT_index, index);
  }
  if (value != R_NilValue && dim != R_NilValue) r_tape_set(value, R_AT_dim, dim);
  UNPROTECT(3);
  return value;
}

/* The dimensions of the places that are kept: NULL for one or none. */
static SEXP kept_dims(const places *p, SEXP single) {
  int kept[MOST_PARTS], count = 0;
  for (int k = 0; k < p->rank && single != R_NilValue; k++) {
    if (LOGICAL_RO(single)[k] == FALSE) kept[count++] = p->counts[k];
  }
  if (count < 2) return R_NilValue;
  SEXP dim = Rf_allocVector(INTSXP, count);
  memcpy(INTEGER(dim), kept, (size_t)count * sizeof *kept);
  return dim;
}

/* Of numbers. */
static SEXP pick_numbers(SEXP value, SEXP parts, SEXP single) {
  r_traced x = {.n = (int)XLENGTH(value), .dim = Rf_getAttrib(value, R_DimSymbol)};
  places p;
  if (!read_places(&x, parts, single == R_NilValue, &p)) return R_NilValue;
  PROTECT(p.all);
  SEXP dim = PROTECT(kept_dims(&p, single)), result = PROTECT(Rf_allocVector(REALSXP, p.n));
  const double *from = REAL_RO(value);
  for (int k = 0; k < p.n; k++) REAL(result)[k] = from[INTEGER_RO(p.all)[k]];
  if (dim != R_NilValue) Rf_setAttrib(result, R_DimSymbol, dim);
  UNPROTECT(3);
  return result;
}

SEXP r_trace_pick(SEXP env, SEXP value, SEXP parts, SEXP single) {
  r_tape t;
  r_traced x;
  places p;
  if (r_is_plain(value)) return pick_numbers(value, parts, single);
  if (!r_tape_read(env, &t) || !r_tape_traced(value, &t, &x)) return R_NilValue;
  if (x.from == R_NilValue && may_be_missing(env)) return R_NilValue;
  if (!read_places(&x, parts, single == R_NilValue, &p)) return R_NilValue;
  PROTECT(p.all);
  SEXP dim = PROTECT(kept_dims(&p, single));
  SEXP result = gathered(&t, &x, INTEGER_RO(p.all), p.n, dim);
  UNPROTECT(2);
  return result;
}

/* Whether a value fits: its number of elements, and no more dimensions than a vector. */
static bool fits(const r_traced *y, const places *p, SEXP single) {
  int wide = 0;
  if (single == R_NilValue) return y->n == p->n || y->n == 1;
  for (int k = 0; k < p->rank; k++) wide += LOGICAL_RO(single)[k] == FALSE;
  return y->n == p->n && wide < 2 && y->dim == R_NilValue;
}

/* The value x, assembled, with other elements at these places. */
static SEXP placed(r_tape *t, const r_traced *x, const r_traced *y, const places *p) {
  SEXP from = PROTECT(Rf_allocVector(INTSXP, x->n)), index = PROTECT(Rf_allocVector(INTSXP, x->n));
  sources_of(t, x, INTEGER(from), INTEGER(index));
  const bool assembled = y->from != R_NilValue;
  const int id = assembled ? 0 : r_tape_node(t, y);
  for (int k = 0; k < p->n; k++) {
    const int at = INTEGER_RO(p->all)[k], of = y->n == 1 ? 0 : k;
    INTEGER(from)[at] = assembled ? INTEGER_RO(y->from)[of] : id;
    INTEGER(index)[at] = assembled ? INTEGER_RO(y->index)[of] : of + 1;
  }
  SEXP result = r_tape_value(t, 0, x->n);
  PROTECT(result);
  r_tape_set(result, R_AT_from, from);
  r_tape_set(result, R_AT_index, index);
  UNPROTECT(3);
  return result;
}

/* The same for one place of an assembled value and a node of one element, without a copy. */
static SEXP placed_one(r_tape *t, const r_traced *x, const r_traced *y, int at) {
  const int id = r_tape_node(t, y);
  SEXP result = PROTECT(r_tape_value(t, 0, x->n));
  const bool same = INTEGER_RO(x->index)[at] == 1;
  r_tape_set(result, R_AT_from, r_tape_version(x->from, at, id));
  r_tape_set(result, R_AT_index, same ? x->index : r_tape_version(x->index, at, 1));
  UNPROTECT(1);
  return result;
}

/* x as an operand that is not set yet, its node excepted. */
static bool read_unset(SEXP value, r_traced *x) {
  if (!r_is_plain(value)) return false;
  for (R_xlen_t k = 0; k < XLENGTH(value); k++) {
    if (!isnan(REAL_RO(value)[k])) return false;
  }
  *x = (r_traced){0,          (int)XLENGTH(value), false, 0.0, Rf_getAttrib(value, R_DimSymbol),
                  R_NilValue, R_NilValue};
  return true;
}

SEXP r_trace_place(SEXP env, SEXP value, SEXP parts, SEXP single, SEXP new_value) {
  r_tape t;
  r_traced x, y;
  places p;
  if (!r_tape_read(env, &t)) return R_NilValue;
  const bool traced = r_tape_traced(new_value, &t, &y), unset = traced && read_unset(value, &x);
  if (!unset && !r_tape_traced(value, &t, &x)) return R_NilValue;
  if (!traced && (TYPEOF(new_value) == ENVSXP || !r_tape_operand(new_value, &t, &y))) {
    return R_NilValue;
  }
  if (!read_places(&x, parts, single == R_NilValue, &p) || !fits(&y, &p, single) ||
      (x.dim == R_NilValue && p.n == x.n)) {
    return R_NilValue;
  }
  PROTECT(p.all);
  if (unset) x.id = r_tape_number(&t, NAN);
  const bool one = p.n == 1 && x.from != R_NilValue && y.from == R_NilValue;
  SEXP result =
      PROTECT(one ? placed_one(&t, &x, &y, INTEGER_RO(p.all)[0]) : placed(&t, &x, &y, &p));
  if (x.dim != R_NilValue) r_tape_set(result, R_AT_dim, x.dim);
  UNPROTECT(2);
  return result;
}

/* Whether no two runs of x are of one node. A run is of places that follow each other in a node. */
static int count_runs(const r_tape *t, const r_traced *x) {
  const int *from = INTEGER_RO(x->from), *index = INTEGER_RO(x->index);
  char *seen = R_alloc((size_t)t->count + 1, 1);
  int runs = 0;
  memset(seen, 0, (size_t)t->count + 1);
  for (int k = 0; k < x->n; k++) {
    if (k > 0 && from[k] == from[k - 1] && index[k] == index[k - 1] + 1) continue;
    if (seen[from[k]]) return 0;
    seen[from[k]] = 1;
    runs++;
  }
  return runs;
}

int r_tape_join(r_tape *t, const r_traced *x) {
  const void *top = vmaxget();
  const int runs = count_runs(t, x);
  vmaxset(top);
  if (runs < 2 || may_be_missing(t->env)) return 0;
  SEXP pieces = PROTECT(Rf_allocVector(INTSXP, runs));
  const int *from = INTEGER_RO(x->from), *index = INTEGER_RO(x->index);
  for (int k = 0, run = 0; k < x->n; run++) {
    const int first = k, size = r_tape_size(t, from[k]);
    do k++;
    while (k < x->n && from[k] == from[first] && index[k] == index[k - 1] + 1);
    const double part[] = {size, index[first] - 1, 0.0, k - first, 1.0};
    INTEGER(pieces)[run] = k - first == size ? from[first] : r_tape_part(t, from[first], part);
  }
  const int id = r_tape_concat(t, pieces, x->n);
  UNPROTECT(1);
  return id;
}

SEXP r_trace_join(SEXP env, SEXP value) {
  r_tape t;
  r_traced x;
  if (!r_tape_read(env, &t) || !r_tape_traced(value, &t, &x) || x.from == R_NilValue) {
    return R_NilValue;
  }
  const int id = r_tape_join(&t, &x);
  return id > 0 ? Rf_ScalarInteger(id) : R_NilValue;
}
