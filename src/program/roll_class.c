/* Operations that are the same on other operands, none of which needs another one, become one
 * operation on a vector that has their results one after the other. */
#include "program/roll_parts.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = SCL_ROLL_NONE, LONGEST = 256, MOST_RESIDUES = 16, SHORT = 4 };

/* A row of a matrix for each member. Element e of operand k of member i is x[k][i + e * count]. */
typedef struct {
  scl_roll *r;
  const int *member;
  size_t count;
  int operands;
  bool shifts; /* only SHIFT reads the members */
  size_t length, n[3];
  scl_roll_source *x[3];
} class;

static void put_alone(scl_roll *r, int node) {
  const int value = scl_roll_whole(r, node);
  if (scl_roll_failed(r)) return;
  const bool one = scl_tape_length(r->to, value) == 1;
  r->place[node] = (scl_roll_place){value, 0, !one || scl_tape_length(r->from, node) == 1};
}

static void place_members(const class *c, int value) {
  if (scl_roll_failed(c->r)) return;
  const bool one = scl_tape_length(c->r->to, value) == 1;
  for (size_t i = 0; i < c->count; i++) {
    c->r->place[c->member[i]] = (scl_roll_place){value, one ? 0 : i, one ? 0 : c->count};
  }
}

/* The same for a value that has a column for each member. */
static void place_columns(const class *c, int value) {
  if (scl_roll_failed(c->r)) return;
  for (size_t i = 0; i < c->count; i++) {
    c->r->place[c->member[i]] = (scl_roll_place){value, i * c->length, 1};
  }
}

static bool read_operands(class *c) {
  const scl_tape *from = c->r->from;
  for (int k = 0; k < c->operands; k++) {
    c->n[k] = scl_tape_length(from, scl_tape_operand(from, c->member[0], k));
    c->x[k] = scl_roll_room(c->r, c->count * c->n[k], sizeof *c->x[k]);
    if (c->x[k] == NULL) return false;
    for (size_t i = 0; i < c->count; i++) {
      const int x = scl_tape_operand(from, c->member[i], k);
      for (size_t e = 0; e < c->n[k]; e++) {
        c->x[k][i + e * c->count] = scl_roll_source_of(c->r, scl_roll_at(c->r, x, e));
      }
    }
  }
  return true;
}

static bool same_of(const class *c, int k, size_t i, size_t j) {
  for (size_t e = 0; e < c->n[k]; e++) {
    const scl_roll_source pair[] = {c->x[k][i + e * c->count], c->x[k][j + e * c->count]};
    if (!scl_roll_all_same(pair, 2)) return false;
  }
  return true;
}

/* Whether operand k is the same for all members, or for every q-th one. */
static bool is_same(const class *c, int k, size_t q) {
  for (size_t i = q; i < c->count; i++) {
    if (!same_of(c, k, i, i - q)) return false;
  }
  return true;
}

static int cost_of(const class *c) {
  int cost = 0;
  for (int k = 0; k < c->operands; k++) {
    if (is_same(c, k, 1)) continue;
    const int more = scl_roll_gather_cost(c->r, c->x[k], c->count * c->n[k]);
    cost = more > SCL_ROLL_TOO_MUCH - cost ? SCL_ROLL_TOO_MUCH : cost + more;
  }
  return cost;
}

/* Operand k of all members, for results of this length. */
static int operand_of(const class *c, int k, size_t length) {
  const int x = scl_roll_gather(c->r, c->x[k], c->count * c->n[k]);
  if (scl_roll_failed(c->r) || scl_tape_length(c->r->to, x) == 1) return x;
  return c->n[k] == length ? x : scl_tape_broadcast(c->r->to, x, c->count, length, false);
}

/* Operand k with a column for each member. */
static int columns_of(const class *c, int k) {
  const size_t n = c->n[k], all = n * c->count;
  scl_roll_source *s = scl_roll_room(c->r, all, sizeof *s);
  if (s == NULL) return 0;
  for (size_t i = 0; i < all; i++) s[i] = c->x[k][i / n + (i % n) * c->count];
  return scl_tape_fill(c->r->to, scl_roll_gather(c->r, s, all), all);
}

/* ---- elementwise operations -------------------------------------------------------------------
 */

/* Short vectors element by element: an operation that reads one element can then be computed in the
 * same pass. */
static int apply_short(const class *c) {
  const scl_value *v = scl_roll_value(c->r, c->member[0]);
  int part[SHORT];
  for (size_t e = 0; e < c->length; e++) {
    int x[3];
    for (int k = 0; k < c->operands; k++) {
      const size_t from = c->n[k] == c->length ? e * c->count : 0;
      x[k] = scl_roll_gather(c->r, c->x[k] + from, c->count);
    }
    part[e] = scl_tape_add(c->r->to, SCL_VALUE_APPLY, v->op, c->operands, x, v->at, 0.0);
    part[e] = scl_tape_fill(c->r->to, part[e], c->count);
  }
  return scl_tape_concat(c->r->to, (int)c->length, part);
}

static int apply(const class *c) {
  const scl_value *v = scl_roll_value(c->r, c->member[0]);
  int x[3];
  if (c->length > 1 && c->length <= SHORT) return apply_short(c);
  for (int k = 0; k < c->operands; k++) x[k] = operand_of(c, k, c->length);
  return scl_tape_add(c->r->to, SCL_VALUE_APPLY, v->op, c->operands, x, v->at, 0.0);
}

/* Statements that alternate within an iteration: operand k has, for every q-th member, the same
 * element, one of the same value, or the next element, and does not have that for all members. */
static bool alternates(const class *c, int k, size_t q) {
  const scl_roll_source *x = c->x[k];
  bool near = true, value = true, next = true, all = true;
  for (size_t i = 1; i < c->count; i++) {
    near = near && x[i].value == x[0].value && x[i].at == x[i - 1].at + 1;
    all = all && x[i].value == x[0].value;
    if (i < q) continue;
    value = value && x[i].value == x[i - q].value;
    next = next && x[i].value == x[i - q].value && x[i].at == x[i - q].at + 1;
  }
  if (near || x[0].value == NONE) return false;
  return is_same(c, k, q) || (value && !all) || next;
}

static size_t find_period(const class *c) {
  for (size_t q = 2; q <= MOST_RESIDUES && q * SCL_ROLL_FEWEST <= c->count; q++) {
    for (int k = 0; k < c->operands && c->count % q == 0; k++) {
      if (!is_same(c, k, 1) && alternates(c, k, q)) return q;
    }
  }
  return 0;
}

/* Members 0, q, 2 q ..., then 1, 1 + q ...; or `count` of these from `first` on. */
static bool take_residues(const class *c, size_t q, size_t first, size_t count, class *to) {
  int *member = scl_roll_room(c->r, count, sizeof *member);
  const size_t each = c->count / q;
  if (member == NULL) return false;
  for (size_t j = 0; j < count; j++) {
    member[j] = c->member[(first + j) / each + (first + j) % each * q];
  }
  *to = *c;
  to->member = member;
  to->count = count;
  return read_operands(to);
}

/* Up to FEW_STATEMENTS of a loop's body get a vector each; of more there would be many short
 * passes, and one vector of all of them, in the order of the loop or sorted, costs less. */
enum { FEW_STATEMENTS = 3 };

static bool put_apply(class *c) {
  const size_t q = find_period(c), each = q > 0 ? c->count / q : 0;
  class sorted;
  for (size_t i = 0; i < q && q <= FEW_STATEMENTS; i++) {
    if (!take_residues(c, q, i * each, each, &sorted)) return true;
    if (put_apply(&sorted)) continue;
    for (size_t j = 0; j < each; j++) put_alone(c->r, sorted.member[j]);
  }
  if (q > 0 && q <= FEW_STATEMENTS) return true;
  if (q > 0 && !take_residues(c, q, 0, c->count, &sorted)) return true;
  const int cost = cost_of(c);
  if (q > 0 && cost_of(&sorted) < cost) {
    place_members(&sorted, apply(&sorted));
    return true;
  }
  if (cost >= SCL_ROLL_TOO_MUCH) return false;
  place_members(c, apply(c));
  return true;
}

/* ---- reductions and products ------------------------------------------------------------------
 */

/* If x, m x n, has each column multiplied with an element of one vector: that vector and the
 * columns. */
static bool is_product(const scl_roll *r, int x, size_t m, size_t n, int *b, int *columns) {
  const scl_value *v = &r->to->value[x];
  if (v->kind != SCL_VALUE_APPLY || v->op != SCL_OP_MUL) return false;
  for (int i = 0; i < 2; i++) {
    const int y = scl_tape_operand(r->to, x, i);
    const scl_value *w = &r->to->value[y];
    if (w->kind != SCL_VALUE_BROADCAST || w->at[2] == 0 || w->at[0] != m || w->at[1] != n) continue;
    *b = scl_tape_operand(r->to, y, 0);
    *columns = scl_tape_operand(r->to, x, 1 - i);
    return scl_tape_length(r->to, *columns) == m * n;
  }
  return false;
}

/* Extremes only where their derivatives do not count: these differ where elements are equal. */
static bool is_pairwise(const class *c, scl_reduction reduction, scl_op *op) {
  const bool largest = reduction == SCL_REDUCE_MAX, product = reduction == SCL_REDUCE_PROD;
  const bool extreme = largest || reduction == SCL_REDUCE_MIN;
  *op = largest ? SCL_OP_PMAX : extreme ? SCL_OP_PMIN : product ? SCL_OP_MUL : SCL_OP_ADD;
  return c->n[0] <= SHORT && (extreme ? c->shifts : product || reduction == SCL_REDUCE_SUM);
}

static int reduce_short(const class *c, scl_op op) {
  int total = scl_roll_gather(c->r, c->x[0], c->count);
  for (size_t e = 1; e < c->n[0]; e++) {
    const int x = scl_roll_gather(c->r, c->x[0] + e * c->count, c->count);
    total = scl_tape_binary(c->r->to, op, total, x);
  }
  return total;
}

static bool put_reduce(class *c) {
  const scl_value *v = scl_roll_value(c->r, c->member[0]);
  const scl_reduction op = (scl_reduction)v->op;
  const size_t n = c->n[0];
  scl_tape *t = c->r->to;
  scl_op pairwise;
  int b, columns;
  if (v->at[2] == SCL_BY_ROW || cost_of(c) >= SCL_ROLL_TOO_MUCH) return false;
  if (v->at[2] == SCL_BY_COLUMN) {
    const size_t all = v->at[1] * c->count;
    place_columns(c, scl_tape_reduce(t, op, columns_of(c, 0), v->at[0], all, SCL_BY_COLUMN));
    return true;
  }
  if (is_pairwise(c, op, &pairwise)) {
    place_members(c, reduce_short(c, pairwise));
    return true;
  }
  const int x = scl_tape_fill(t, operand_of(c, 0, n), n * c->count);
  if (scl_roll_failed(c->r)) return true;
  if (op == SCL_REDUCE_SUM && is_product(c->r, x, c->count, n, &b, &columns)) {
    place_members(c, scl_tape_matmul(t, columns, b, c->count, n, 1, false, false));
  } else {
    place_members(c, scl_tape_reduce(t, op, x, c->count, n, SCL_BY_ROW));
  }
  return true;
}

static int recorded_operand(const class *c, int k) {
  return scl_roll_whole(c->r, scl_tape_operand(c->r->from, c->member[0], k));
}

/* Products of a row and a column. */
static void put_dots(class *c, size_t k, bool same_a, bool same_b) {
  scl_tape *t = c->r->to;
  if (same_a || same_b) {
    const int x = scl_tape_fill(t, operand_of(c, same_a, k), k * c->count);
    const int b = recorded_operand(c, !same_a);
    place_members(c, scl_tape_matmul(t, x, b, c->count, k, 1, false, false));
    return;
  }
  const int x[] = {operand_of(c, 0, k), operand_of(c, 1, k)};
  const int both = scl_tape_fill(t, scl_tape_binary(t, SCL_OP_MUL, x[0], x[1]), k * c->count);
  place_members(c, scl_tape_reduce(t, SCL_REDUCE_SUM, both, c->count, k, SCL_BY_ROW));
}

static bool put_matmul(class *c) {
  const size_t *at = scl_roll_value(c->r, c->member[0])->at, m = at[0], k = at[1], n = at[2];
  const bool same_a = is_same(c, 0, 1), same_b = is_same(c, 1, 1);
  scl_tape *t = c->r->to;
  if (cost_of(c) >= SCL_ROLL_TOO_MUCH) return false;
  if (m == 1 && n == 1) {
    put_dots(c, k, same_a, same_b);
  } else if (same_a && (at[4] == 0 || k == 1 || n == 1)) {
    const int a = recorded_operand(c, 0), b = columns_of(c, 1);
    place_columns(c, scl_tape_matmul(t, a, b, m, k, n * c->count, at[3] != 0, false));
  } else if (same_b && m == 1) {
    const int b = recorded_operand(c, 1), a = columns_of(c, 0);
    place_columns(c, scl_tape_matmul(t, b, a, n, k, c->count, at[4] == 0, false));
  } else {
    return false;
  }
  return true;
}

/* ---- equal operations -------------------------------------------------------------------------
 */

typedef struct {
  int number; /* of the value: equal ones have one */
  int member, order;
  scl_roll_source x[3];
} equal;

static int by_number(const void *a, const void *b) {
  const equal *x = a, *y = b;
  return x->number != y->number ? (x->number < y->number ? -1 : 1) : x->order - y->order;
}

static int by_operands(const void *a, const void *b) {
  const equal *x = a, *y = b;
  for (int k = 0; k < 3; k++) {
    const int order = scl_roll_by_source(&x->x[k], &y->x[k]);
    if (order != 0) return order;
  }
  return x->order - y->order;
}

/* The number of different operations that use the members. */
static size_t count_users(const class *c) {
  int *number = scl_roll_room(c->r, c->count, sizeof *number);
  if (number == NULL) return c->count;
  for (size_t i = 0; i < c->count; i++) {
    const int user = c->r->user[c->member[i]];
    const bool sum = user == NONE || c->r->top[user] != NONE;
    number[i] = sum ? NONE : c->r->number[user];
  }
  return scl_roll_count_different(number, c->count);
}

/* Where one of MANY_EQUAL members or fewer differs, computing these and reading them in any order
 * costs less than computing all: a read costs as much as a few operations. */
enum { MANY_EQUAL = 8 };

/* Whether the elements of a vector can be read in this order without being moved. */
static bool is_ordered(class *c, const int *rank) {
  scl_roll_source *s = scl_roll_room(c->r, c->count, sizeof *s);
  if (s == NULL) return false;
  for (size_t i = 0; i < c->count; i++) s[i] = (scl_roll_source){0, (size_t)rank[i], 0.0, 0};
  return scl_roll_is_ordered(s, c->count);
}

static bool put_kind(class *c) {
  switch ((scl_value_kind)scl_roll_value(c->r, c->member[0])->kind) {
  case SCL_VALUE_APPLY:
    return put_apply(c);
  case SCL_VALUE_REDUCE:
    return put_reduce(c);
  default:
    return put_matmul(c);
  }
}

static void put_all(class *c) {
  const bool together = c->count >= SCL_ROLL_FEWEST && put_kind(c);
  for (size_t i = 0; i < c->count && !together; i++) put_alone(c->r, c->member[i]);
}

/* Computes equal operations once, where that saves time. */
static void put_different(class *c) {
  equal *e = scl_roll_room(c->r, c->count, sizeof *e);
  equal *once = scl_roll_room(c->r, c->count, sizeof *once);
  int *member = scl_roll_room(c->r, c->count, sizeof *member);
  int *rank = scl_roll_room(c->r, c->count, sizeof *rank);
  size_t some = 0;
  if (e == NULL || once == NULL || member == NULL || rank == NULL) return;
  for (size_t i = 0; i < c->count; i++) {
    e[i] = (equal){.number = c->r->number[c->member[i]], .member = c->member[i], .order = (int)i};
    for (int k = 0; k < c->operands; k++) e[i].x[k] = c->x[k][i];
  }
  qsort(e, c->count, sizeof *e, by_number);
  for (size_t i = 0; i < c->count; i++) {
    if (i == 0 || e[i].number != e[i - 1].number) once[some++] = e[i];
  }
  if (2 * some > c->count) {
    put_all(c);
    return;
  }
  qsort(once, some, sizeof *once, by_operands);
  class less = *c;
  for (size_t j = 0; j < some; j++) member[j] = once[j].member;
  less.member = member;
  less.count = some;
  if (!read_operands(&less)) return;
  for (size_t j = 0; j < some; j++) once[j].order = (int)j;
  qsort(once, some, sizeof *once, by_number);
  for (size_t i = 0, j = 0; i < c->count; i++) {
    while (once[j].number != e[i].number) j++;
    rank[e[i].order] = once[j].order;
  }
  const bool many = MANY_EQUAL * some <= c->count && MANY_EQUAL * count_users(c) <= c->count;
  if (some > 1 && !many && !is_ordered(c, rank) && cost_of(&less) >= cost_of(c)) {
    put_all(c);
    return;
  }
  put_all(&less);
  for (size_t i = 0; i < c->count; i++) {
    c->r->place[c->member[i]] = c->r->place[member[rank[i]]];
  }
}

/* ---- all --------------------------------------------------------------------------------------
 */

static bool is_joined(const scl_roll *r, const int *member, int count) {
  const scl_value *v = scl_roll_value(r, member[0]);
  if (count < SCL_ROLL_FEWEST || v->length > LONGEST || v->length == 0) return false;
  if (v->kind != SCL_VALUE_APPLY && v->kind != SCL_VALUE_REDUCE && v->kind != SCL_VALUE_MATMUL) {
    return false;
  }
  for (int i = 1; i < count; i++) {
    if (!scl_roll_same_operation(r, member[0], member[i])) return false;
  }
  return true;
}

static bool are_shifts(const scl_roll *r, const int *member, int count) {
  for (int i = 0; i < count; i++) {
    const int user = r->user[member[i]];
    if (r->uses[member[i]] != 1 || user == NONE) return false;
    const scl_value *v = scl_roll_value(r, user);
    if (v->kind != SCL_VALUE_APPLY || v->op != SCL_OP_SHIFT) return false;
  }
  return true;
}

void scl_roll_put_class(scl_roll *r, const int *member, int count) {
  const scl_value *v = scl_roll_value(r, member[0]);
  class c = {.r = r, .member = member, .count = (size_t)count, .operands = v->operands};
  c.length = v->length;
  c.shifts = are_shifts(r, member, count);
  if (is_joined(r, member, count)) {
    if (read_operands(&c)) put_different(&c);
    return;
  }
  for (int i = 0; i < count; i++) put_alone(r, member[i]);
}
