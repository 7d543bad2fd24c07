/* Elements of traced values for the code of Stan programs (R/stan-values.R), which checks nothing
 * here: NULL if a value is not of the usual form; then R code does it, or finds the error.
 *
 *   r_trace_pick(tape, x, parts, single): x[i, j, ...]; `parts` are the indices, NULL: all.
 * `single` says which are one number and lose their dimension; NULL: the indices are parallel
 * vectors, one element for each lane of a loop r_trace_place(tape, x, parts, single, value): x with
 * that replaced r_trace_join(tape, x): the node of an assembled value, as join_nodes() makes it */
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

/* The node of a part of a node, as take() has it; 0 if R code has to find out. */
static int part_of(r_tape *t, int id, const int *at, int n) {
  const int size = r_tape_size(t, id);
  if (size == 1 && n == 1) return id;
  for (int k = 1; k < n; k++) {
    if (at[k] != at[0] + k) return 0;
  }
  if (n == size) return id;
  const double part[] = {size, at[0], 0.0, n, 1.0};
  return r_tape_part(t, id, part);
}

/* The nodes and places there of all elements of x. */
static void sources_of(const r_traced *x, int *from, int *index) {
  for (int k = 0; k < x->n; k++) {
    from[k] = x->from == R_NilValue ? x->id : INTEGER_RO(x->from)[k];
    index[k] = x->from == R_NilValue ? k + 1 : INTEGER_RO(x->index)[k];
  }
}

static bool may_be_missing(SEXP env) {
  SEXP flag = r_tape_get(env, R_AT_has_missing);
  return TYPEOF(flag) != LGLSXP || LOGICAL_RO(flag)[0] != FALSE;
}

/* An assembled value, or one of elements of one node. */
static SEXP gathered(r_tape *t, const r_traced *x, const int *at, int n, SEXP dim) {
  SEXP from = PROTECT(Rf_allocVector(INTSXP, n)), index = PROTECT(Rf_allocVector(INTSXP, n));
  bool same = true;
  for (int k = 0; k < n; k++) {
    INTEGER(from)[k] = x->from == R_NilValue ? x->id : INTEGER_RO(x->from)[at[k]];
    INTEGER(index)[k] = (x->from == R_NilValue ? at[k] + 1 : INTEGER_RO(x->index)[at[k]]);
    same = same && INTEGER(from)[k] == INTEGER(from)[0];
  }
  SEXP value = R_NilValue;
  if (same) {
    for (int k = 0; k < n; k++) INTEGER(index)[k]--;
    const int id = part_of(t, INTEGER(from)[0], INTEGER(index), n);
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

SEXP r_trace_pick(SEXP env, SEXP value, SEXP parts, SEXP single) {
  r_tape t;
  r_traced x;
  places p;
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

SEXP r_trace_place(SEXP env, SEXP value, SEXP parts, SEXP single, SEXP new_value) {
  r_tape t;
  r_traced x, y;
  places p;
  if (!r_tape_read(env, &t) || !r_tape_traced(value, &t, &x)) return R_NilValue;
  if (!r_tape_traced(new_value, &t, &y)) {
    if (TYPEOF(new_value) == ENVSXP || !r_tape_operand(new_value, &t, &y)) return R_NilValue;
  }
  if (!read_places(&x, parts, single == R_NilValue, &p) || !fits(&y, &p, single) ||
      (x.dim == R_NilValue && p.n == x.n)) {
    return R_NilValue;
  }
  PROTECT(p.all);
  SEXP from = PROTECT(Rf_allocVector(INTSXP, x.n)), index = PROTECT(Rf_allocVector(INTSXP, x.n));
  sources_of(&x, INTEGER(from), INTEGER(index));
  const int id = y.from == R_NilValue ? r_tape_node(&t, &y) : 0;
  for (int k = 0; k < p.n; k++) {
    const int at = INTEGER_RO(p.all)[k], of = y.n == 1 ? 0 : k;
    INTEGER(from)[at] = id > 0 ? id : INTEGER_RO(y.from)[of];
    INTEGER(index)[at] = id > 0 ? of + 1 : INTEGER_RO(y.index)[of];
  }
  SEXP result = PROTECT(r_tape_value(&t, 0, x.n));
  r_tape_set(result, R_AT_from, from);
  r_tape_set(result, R_AT_index, index);
  if (x.dim != R_NilValue) r_tape_set(result, R_AT_dim, x.dim);
  UNPROTECT(4);
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
