/* Sums that a loop accumulates, `total <- total + term`: chains of additions and subtractions whose
 * intermediate results nothing else reads. Terms keep the operations within them. */
#include "program/roll_parts.h"

#include <stdlib.h>

static bool adds(const scl_roll *r, int v) {
  const scl_value *w = scl_roll_value(r, v);
  return w->kind == SCL_VALUE_APPLY && (w->op == SCL_OP_ADD || w->op == SCL_OP_SUB);
}

/* Operand k of an addition if it is itself an addition and has no other use, else NONE. */
static int inner(const scl_roll *r, int v, int k) {
  const int x = scl_tape_operand(r->from, v, k), root = r->view[x].root;
  if (root == SCL_ROLL_NONE || r->uses[root] != 1 || !adds(r, root)) return SCL_ROLL_NONE;
  const size_t length = scl_tape_length(r->from, v);
  const bool whole = scl_tape_length(r->from, x) == length && r->view[x].from == 0 &&
                     scl_tape_length(r->from, root) == length && r->view[x].step == 1;
  return whole ? root : SCL_ROLL_NONE;
}

/* Whether both operands have the length of the result. */
static bool is_even(const scl_roll *r, int v) {
  const size_t length = scl_tape_length(r->from, v);
  return scl_tape_length(r->from, scl_tape_operand(r->from, v, 0)) == length &&
         scl_tape_length(r->from, scl_tape_operand(r->from, v, 1)) == length;
}

/* The operand that has the longer chain, or NONE; and the lengths of chains. */
static int longer(const scl_roll *r, const int *chain, int v, int *k) {
  const int a = inner(r, v, 0), b = inner(r, v, 1);
  const int m = a != SCL_ROLL_NONE ? chain[a] : 0, n = b != SCL_ROLL_NONE ? chain[b] : 0;
  *k = n > m;
  return n > m ? b : m > 0 ? a : SCL_ROLL_NONE;
}

/* A hash of an operation and of the operations of its operands. */
static uint64_t shape_of(const scl_roll *r, int node) {
  const int root = r->view[node].root;
  if (root == SCL_ROLL_NONE) return 0;
  uint64_t hash = r->local[root];
  for (int k = 0; k < scl_roll_value(r, root)->operands; k++) {
    const int x = r->view[scl_tape_operand(r->from, root, k)].root;
    hash = scl_tape_mix(hash, x == SCL_ROLL_NONE ? 0 : r->local[x]);
  }
  return hash;
}

/* The hash that most terms of the chain have. */
static uint64_t usual_shape(const scl_roll *r, const int *chain, int v) {
  uint64_t usual = 0;
  for (int k, votes = 0; v != SCL_ROLL_NONE; v = longer(r, chain, v, &k)) {
    longer(r, chain, v, &k);
    const uint64_t shape = shape_of(r, scl_tape_operand(r->from, v, 1 - k));
    if (votes == 0) usual = shape;
    votes += shape == usual ? 1 : -1;
  }
  return usual;
}

/* Terms of the sum at v, from the last to the first. */
static void take_terms(scl_roll *r, const int *chain, int v) {
  const int top = v;
  const uint64_t usual = usual_shape(r, chain, v);
  scl_roll_term *term = scl_roll_room(r, (size_t)chain[v] + 1, sizeof *term);
  bool minus = false;
  if (term == NULL) return;
  r->role[top] = SCL_ROLL_SUM;
  r->term[top] = term;
  for (int at = 0;;) {
    int k;
    const int next = longer(r, chain, v, &k);
    const bool second = scl_roll_value(r, v)->op == SCL_OP_SUB;
    term[at++] = (scl_roll_term){scl_tape_operand(r->from, v, 1 - k), minus != (second && k == 0)};
    minus = minus != (second && k == 1);
    r->top[v] = top;
    if (next == SCL_ROLL_NONE || shape_of(r, next) == usual) { /* the first term */
      term[at++] = (scl_roll_term){scl_tape_operand(r->from, v, k), minus};
      r->terms[top] = at;
      return;
    }
    v = next;
    r->role[v] = SCL_ROLL_INSIDE;
  }
}

/* ---- short sums -------------------------------------------------------------------------------
 */

/* Chains with few terms, in the order of their hashes. */
typedef struct {
  uint64_t hash;
  int top;
} short_sum;

enum { LEAST_ALIKE = 3 };

static int by_hash(const void *a, const void *b) {
  const short_sum *x = a, *y = b;
  return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : x->top - y->top;
}

/* A hash of the terms of the chain at v, whichever values these are; 0 if fewer than LEAST_ALIKE of
 * them are alike. */
static uint64_t hash_terms(const scl_roll *r, const int *chain, int v) {
  const uint64_t usual = usual_shape(r, chain, v);
  uint64_t hash = 1;
  int alike = 0, k;
  for (int next; v != SCL_ROLL_NONE; v = next) {
    next = longer(r, chain, v, &k);
    for (int j = 0; j < 2; j++) {
      if (j == k && next != SCL_ROLL_NONE) continue;
      const uint64_t shape = shape_of(r, scl_tape_operand(r->from, v, j));
      hash = scl_tape_mix(hash, shape);
      alike += shape == usual;
    }
    hash = scl_tape_mix(hash, r->local[v]);
  }
  return alike < LEAST_ALIKE ? 0 : hash;
}

/* Where at most half of many sums differ, as those of rows of a table of few patterns, the
 * different ones are rows of one small matrix. Sums of other numbers are computed in one pass as
 * they are. */
static void take_short(scl_roll *r, const int *chain, short_sum *s, int count) {
  qsort(s, (size_t)count, sizeof *s, by_hash);
  for (int k = 0, n; k < count && !scl_roll_failed(r); k += n) {
    int different = 0;
    for (n = 0; k + n < count && s[k + n].hash == s[k].hash; n++) {
      different += r->number[s[k + n].top] == s[k + n].top;
    }
    if (n < SCL_ROLL_FEWEST || 2 * different > n) continue;
    for (int i = k; i < k + n; i++) take_terms(r, chain, s[i].top);
  }
}

/* ---- all --------------------------------------------------------------------------------------
 */

void scl_roll_find_sums(scl_roll *r) {
  int *chain = scl_roll_room(r, (size_t)r->nodes, sizeof *chain), few = 0;
  bool *on = scl_roll_room(r, (size_t)r->nodes, sizeof *on); /* a longer chain */
  short_sum *s = scl_roll_room(r, (size_t)r->nodes, sizeof *s);
  if (chain == NULL || on == NULL || s == NULL) return;
  for (int v = 0; v < r->nodes; v++) {
    r->top[v] = SCL_ROLL_NONE;
    if (!r->live[v] || !adds(r, v) || !is_even(r, v)) continue;
    int k;
    const int next = longer(r, chain, v, &k);
    chain[v] = 1 + (next != SCL_ROLL_NONE ? chain[next] : 0);
    if (next != SCL_ROLL_NONE) on[next] = true;
  }
  for (int v = 0; v < r->nodes && !scl_roll_failed(r); v++) {
    if (!on[v] && chain[v] + 1 >= SCL_ROLL_FEWEST) take_terms(r, chain, v);
  }
  for (int v = 0; v < r->nodes; v++) {
    /* The longer sum may have been taken above, with v as its first term. */
    const bool is_term = on[v] && r->top[r->user[v]] != SCL_ROLL_NONE;
    if (r->top[v] != SCL_ROLL_NONE || chain[v] + 1 < LEAST_ALIKE || (on[v] && !is_term)) continue;
    s[few] = (short_sum){hash_terms(r, chain, v), v};
    few += s[few].hash != 0;
  }
  take_short(r, chain, s, few);
}
