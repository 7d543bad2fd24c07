/* r_trace_again(tape, name, values): a call of a density, or of another such function, recorded by
 * copying the nodes of an earlier call of the same form (R/trace-again.R). NULL if there is none.
 */
#include <math.h>
#include <string.h>

#include "r/entries.h"
#include "r/glue.h"
#include "r/tape.h"

/* The fields of a pattern. */
enum { NAMES, FREE, FIXED, IDS, FIRST, LAST, RESULT, DIM };
/* What may differ between plain numbers: nothing, all, or all but the sign. */
enum { NOTHING, ALL, ALL_BUT_SIGN };

/* Formulas know the node of an operand, and the values of which it is an elementwise function. */
enum { MOST_VALUES = 8, DEPTH = 3, MOST_PLACES = MOST_VALUES * DEPTH, MOST_NODES = 256 };

typedef struct {
  int count, old[MOST_PLACES], now[MOST_PLACES]; /* nodes of operands */
} pairs;

/* The operand of a node op(x); 0 for others. */
static int operand_below(const r_tape *t, int id) {
  SEXP args = r_tape_at(t, id).args;
  return XLENGTH(args) == 1 && r_tape_is(t, id, "apply") ? INTEGER_RO(args)[0] : 0;
}

static bool same_kind(const r_tape *t, int old, int now) {
  const r_tape_entry a = r_tape_at(t, old), b = r_tape_at(t, now);
  return r_tape_size(t, old) == r_tape_size(t, now) && a.kind == b.kind && a.op == b.op;
}

/* Notes that a node takes the place of another; false if a further one would have to. */
static bool pair(pairs *p, int old, int now) {
  for (int k = 0; k < p->count; k++) {
    if (p->old[k] == old) return p->now[k] == now;
  }
  p->old[p->count] = old;
  p->now[p->count++] = now;
  return true;
}

static bool pair_operand(const r_tape *t, pairs *p, int old, int now) {
  for (int depth = 0; depth < DEPTH; depth++) {
    if (!same_kind(t, old, now) || !pair(p, old, now)) return false;
    old = operand_below(t, old);
    now = operand_below(t, now);
    if (old == 0 || now == 0) return old == now;
  }
  return true;
}

/* Whether x is traced, with a node and these dimensions. */
static bool is_traced(SEXP x, SEXP dim, const r_tape *t, r_traced *o) {
  return r_tape_traced(x, t, o) && o->id > 0 && !r_tape_is(t, o->id, "number") &&
         R_compute_identical(o->dim, dim, 16);
}

static bool is_free_number(SEXP x, SEXP known, bool sign, const r_tape *t, r_traced *o) {
  if (TYPEOF(x) == ENVSXP || TYPEOF(x) == LGLSXP || !r_tape_operand(x, t, o)) return false;
  return isfinite(o->value) && (!sign || o->value * Rf_asReal(known) > 0.0);
}

/* Whether the values have the form of a pattern. `p`: the nodes of traced ones. */
static bool matches(const r_tape *t, SEXP pattern, SEXP values, pairs *p) {
  const int *ids = INTEGER_RO(VECTOR_ELT(pattern, IDS));
  const int *is_free = INTEGER_RO(VECTOR_ELT(pattern, FREE));
  SEXP fixed = VECTOR_ELT(pattern, FIXED), names = Rf_getAttrib(values, R_NamesSymbol);
  r_traced o;
  p->count = 0;
  if (XLENGTH(fixed) != XLENGTH(values)) return false;
  for (R_xlen_t k = 0; k < XLENGTH(values); k++) {
    SEXP x = VECTOR_ELT(values, k), known = VECTOR_ELT(fixed, k);
    if (is_free[k] != NOTHING ? !is_free_number(x, known, is_free[k] == ALL_BUT_SIGN, t, &o)
        : ids[k] > 0          ? !is_traced(x, known, t, &o) || !pair_operand(t, p, ids[k], o.id)
                              : !R_compute_identical(x, known, 16)) {
      return false;
    }
  }
  return R_compute_identical(names, VECTOR_ELT(pattern, NAMES), 16);
}

/* The number of the node that takes the place of node `id`; itself if nothing does. */
static int placed(int id, const pairs *p, int first, int last, const int *copied) {
  if (id >= first && id <= last) return copied[id - first];
  for (int k = 0; k < p->count; k++) {
    if (p->old[k] == id) return p->now[k];
  }
  return id;
}

/* A copy of the nodes, also of operations that would be the same: loops are rolled where their
 * iterations have the same operations, and those that the formula records have all of them. */
static SEXP copy_nodes(r_tape *t, SEXP pattern, const pairs *p) {
  const int first = INTEGER_RO(VECTOR_ELT(pattern, FIRST))[0];
  const int last = INTEGER_RO(VECTOR_ELT(pattern, LAST))[0];
  int copied[MOST_NODES];
  for (int id = first; id <= last; id++) {
    r_tape_entry node = r_tape_at(t, id);
    const int *from = INTEGER_RO(node.args), count = (int)XLENGTH(node.args);
    copied[id - first] = id;
    if (count == 0) continue; /* a number */
    node.args = PROTECT(Rf_allocVector(INTSXP, count));
    for (int k = 0; k < count; k++) {
      INTEGER(node.args)[k] = placed(from[k], p, first, last, copied);
    }
    copied[id - first] = r_tape_add(t, node, r_tape_size(t, id));
    UNPROTECT(1);
  }
  const int result = placed(INTEGER_RO(VECTOR_ELT(pattern, RESULT))[0], p, first, last, copied);
  SEXP value = PROTECT(r_tape_value(t, result, r_tape_size(t, result)));
  SEXP dim = VECTOR_ELT(pattern, DIM);
  if (dim != R_NilValue) r_tape_set(value, R_AT_dim, dim);
  UNPROTECT(1);
  return value;
}

SEXP r_trace_again(SEXP env, SEXP name, SEXP values) {
  r_tape t;
  r_traced o;
  pairs p;
  if (XLENGTH(values) > MOST_VALUES || !r_tape_read(env, &t)) {
    return R_NilValue;
  }
  SEXP patterns = R_getVarEx(Rf_installChar(STRING_ELT(name, 0)), r_tape_get(env, R_AT_patterns),
                             FALSE, R_NilValue);
  const R_xlen_t count = TYPEOF(patterns) == VECSXP ? XLENGTH(patterns) : 0;
  for (R_xlen_t k = 0; k < count; k++) {
    SEXP pattern = VECTOR_ELT(patterns, k);
    if (!matches(&t, pattern, values, &p)) continue;
    for (R_xlen_t i = 0; i < XLENGTH(values); i++) {
      if (INTEGER_RO(VECTOR_ELT(pattern, FREE))[i] == NOTHING) continue;
      r_tape_operand(VECTOR_ELT(values, i), &t, &o);
      pair(&p, INTEGER_RO(VECTOR_ELT(pattern, IDS))[i], r_tape_node(&t, &o));
    }
    return copy_nodes(&t, pattern, &p);
  }
  return R_NilValue;
}
