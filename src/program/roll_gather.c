/* Vectors made of single elements: the value that has them, a view of it, data, or a gather. */
#include "program/facts.h"
#include "program/roll_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = SCL_ROLL_NONE, FEW_PIECES = 8, VIEW_COST = 1, SHORT_CYCLE = 16 };

scl_roll_source scl_roll_source_of(scl_roll *r, scl_roll_element e) {
  const scl_value *v = scl_roll_value(r, e.root);
  if (r->role[e.root] == SCL_ROLL_READ) {
    scl_tape_data *d = &r->to->data[v->at[0]];
    d->assumed |= SCL_DATA_READ;
    return (scl_roll_source){NONE, 0, d->numbers[e.at], 0};
  }
  if (v->kind == SCL_VALUE_NUMBER) return (scl_roll_source){NONE, 0, v->number, 0};
  const scl_roll_place *p = &r->place[e.root];
  if (p->value == NONE) { /* does not happen */
    r->broken = true;
    return (scl_roll_source){NONE, 0, 0.0, 0};
  }
  const scl_value *there = &r->to->value[p->value];
  if (there->kind == SCL_VALUE_NUMBER) return (scl_roll_source){NONE, 0, there->number, 0};
  return (scl_roll_source){p->value, p->at + (size_t)e.at * p->step, 0.0, 0};
}

static bool same_source(scl_roll_source a, scl_roll_source b) {
  return a.value == b.value && a.at == b.at && memcmp(&a.number, &b.number, sizeof a.number) == 0;
}

bool scl_roll_all_same(const scl_roll_source *s, size_t count) {
  for (size_t k = 1; k < count; k++) {
    if (!same_source(s[k], s[0])) return false;
  }
  return true;
}

int scl_roll_data(scl_roll *r, double *numbers, size_t count) {
  for (int k = r->own_first; k < r->to->data_used; k++) {
    const scl_tape_data *d = &r->to->data[k];
    if (d->length != count || memcmp(d->numbers, numbers, count * sizeof *numbers) != 0) continue;
    free(numbers);
    return k;
  }
  return scl_tape_own_data(r->to, numbers, count);
}

/* ---- elements of one value --------------------------------------------------------------------
 */

/* Element i + j * m is a + i * s + j * t of the value; m = count if there is one level only. False
 * if the elements have no such order. */
typedef struct {
  size_t a, m, n;
  ptrdiff_t s, t;
} order;

static bool find_order(const scl_roll_source *x, size_t count, order *o) {
  const ptrdiff_t s = (ptrdiff_t)x[1].at - (ptrdiff_t)x[0].at;
  size_t m = 1;
  while (m < count && (ptrdiff_t)x[m].at - (ptrdiff_t)x[m - 1].at == s) m++;
  *o = (order){x[0].at, m, count / m, s, 0};
  if (m == count) return true;
  if (count % m != 0) return false;
  o->t = (ptrdiff_t)x[m].at - (ptrdiff_t)x[0].at;
  for (size_t k = 0; k < count; k++) {
    const ptrdiff_t at = (ptrdiff_t)o->a + (ptrdiff_t)(k % m) * s + (ptrdiff_t)(k / m) * o->t;
    if ((ptrdiff_t)x[k].at != at) return false;
  }
  return true;
}

typedef enum { WHOLE, PART, EACH, CYCLE, ACROSS, INDEXED } form;

static form form_of(const order *o, size_t length) {
  const size_t m = o->m, n = o->n;
  if (n == 1 && o->s == 1) return m == length ? WHOLE : PART;
  if (n == 1 && o->s > 1) {
    const size_t rows = (size_t)o->s;
    return (o->a / rows + m) * rows <= length ? PART : INDEXED;
  }
  if (n == 1) return INDEXED;
  if (o->s == 0 && o->t == 1) return EACH;
  if (o->s == 1 && o->t == 0) return CYCLE;
  if (o->s == (ptrdiff_t)n && o->t == 1) return ACROSS;
  if (o->s == 1 && o->t > (ptrdiff_t)m) {
    const size_t rows = (size_t)o->t;
    return o->a % rows + m <= rows && (o->a / rows + n) * rows <= length ? PART : INDEXED;
  }
  return INDEXED;
}

/* The operand of a concatenation that has the elements from `from` on; NONE: none has just these.
 */
static int whole_operand(const scl_tape *t, int concat, size_t from, size_t count) {
  const scl_value *v = &t->value[concat];
  size_t at = 0;
  for (int k = 0; v->kind == SCL_VALUE_CONCAT && k < v->operands && at <= from; k++) {
    const int x = scl_tape_operand(t, concat, k);
    if (at == from && scl_tape_length(t, x) == count) return x;
    at += scl_tape_length(t, x);
  }
  return NONE;
}

static int gather_of_one(scl_roll *r, const scl_roll_source *x, size_t count) {
  scl_tape *t = r->to;
  const int v = x[0].value;
  order o;
  const bool ordered = find_order(x, count, &o);
  switch (ordered ? form_of(&o, scl_tape_length(t, v)) : INDEXED) {
  case WHOLE:
    return v;
  case PART: {
    const int own = o.n == 1 && o.s == 1 ? whole_operand(t, v, o.a, count) : NONE;
    if (own != NONE) return own;
    if (o.n == 1 && o.s == 1) return scl_tape_part(t, v, o.a, count);
    const size_t rows = (size_t)(o.n == 1 ? o.s : o.t);
    const size_t at[] = {rows, o.a % rows, o.a / rows, o.n == 1 ? 1 : o.m, o.n == 1 ? o.m : o.n};
    return scl_tape_block_part(t, v, at);
  }
  case EACH:
    return scl_tape_broadcast(t, scl_tape_part(t, v, o.a, o.n), o.m, o.n, true);
  case CYCLE:
    return scl_tape_broadcast(t, scl_tape_part(t, v, o.a, o.m), o.m, o.n, false);
  case ACROSS:
    return scl_tape_transpose(t, scl_tape_part(t, v, o.a, count), o.n, o.m);
  default: {
    double *index = malloc((count + 1) * sizeof *index);
    for (size_t k = 0; index != NULL && k < count; k++) index[k] = (double)x[k].at;
    if (index == NULL) scl_tape_fail(t, scl_fail_memory(count * sizeof *index, 0, "a program"));
    return index == NULL ? 0 : scl_tape_gather(t, v, scl_roll_data(r, index, count));
  }
  }
}

/* ---- elements of any values -------------------------------------------------------------------
 */

static int one(scl_roll *r, scl_roll_source s) {
  return s.value == NONE ? scl_tape_number(r->to, s.number)
                         : scl_tape_part(r->to, s.value, s.at, 1);
}

static size_t count_runs(const scl_roll_source *s, size_t count) {
  size_t runs = 1;
  for (size_t k = 1; k < count; k++) runs += s[k].value != s[k - 1].value;
  return runs;
}

/* Data that are read by element together with other data become numbers. */
static void read_data(scl_roll *r, scl_roll_source *s, size_t count) {
  for (size_t k = 0; k < count; k++) {
    const scl_value *v = s[k].value != NONE ? &r->to->value[s[k].value] : NULL;
    if (v == NULL || v->kind != SCL_VALUE_DATA) continue;
    r->to->data[v->at[0]].assumed |= SCL_DATA_READ;
    s[k] = (scl_roll_source){NONE, 0, r->to->data[v->at[0]].numbers[s[k].at], 0};
  }
}

static int numbers(scl_roll *r, const scl_roll_source *s, size_t count) {
  double *x = malloc((count + 1) * sizeof *x);
  for (size_t k = 0; x != NULL && k < count; k++) x[k] = s[k].number;
  if (x == NULL) {
    scl_tape_fail(r->to, scl_fail_memory(count * sizeof *x, 0, "the data of a program"));
    return 0;
  }
  return scl_tape_data_value(r->to, scl_roll_data(r, x, count));
}

/* Runs of elements of one value, one after the other. */
static int pieces(scl_roll *r, scl_roll_source *s, size_t count, size_t runs) {
  int *piece = scl_roll_room(r, runs, sizeof *piece), used = 0;
  if (piece == NULL) return 0;
  for (size_t first = 0; first < count && !scl_roll_failed(r);) {
    size_t n = 1;
    while (first + n < count && s[first + n].value == s[first].value) n++;
    piece[used++] = scl_tape_fill(r->to, scl_roll_gather(r, s + first, n), n);
    first += n;
  }
  return scl_roll_failed(r) ? 0 : scl_tape_concat(r->to, used, piece);
}

/* Missing values last; 0 and -0 differ. */
static int order_of_numbers(double a, double b) {
  if (a < b || a > b) return a < b ? -1 : 1;
  if (!isnan(a) != !isnan(b)) return isnan(a) ? 1 : -1;
  return memcmp(&a, &b, sizeof a);
}

int scl_roll_by_source(const void *a, const void *b) {
  const scl_roll_source *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return order_of_numbers(x->number, y->number);
}

static int by_rank(const void *a, const void *b) {
  const scl_roll_source *x = a, *y = b;
  return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : scl_roll_by_source(a, b);
}

static size_t place_of(const scl_roll_source *sorted, size_t count, scl_roll_source s) {
  size_t low = 0, high = count;
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    *(by_rank(&sorted[middle], &s) <= 0 ? &low : &high) = middle;
  }
  return low;
}

/* Ranks elements by the place where their value comes first. */
static void rank(scl_roll_source *s, scl_roll_source *sorted, size_t count) {
  for (size_t k = 0; k < count; k++) s[k].rank = (int)k;
  memcpy(sorted, s, count * sizeof *s);
  qsort(sorted, count, sizeof *sorted, scl_roll_by_source);
  for (size_t k = 0; k < count;) {
    int first = sorted[k].rank;
    size_t n = 0;
    for (; k + n < count && sorted[k + n].value == sorted[k].value; n++) {
      if (sorted[k + n].rank < first) first = sorted[k + n].rank;
    }
    for (size_t i = 0; i < n; i++) s[sorted[k + i].rank].rank = first;
    k += n;
  }
  memcpy(sorted, s, count * sizeof *s);
  qsort(sorted, count, sizeof *sorted, by_rank);
}

/* All elements that occur, each once, in one vector; and a gather from it. */
static int from_pool(scl_roll *r, scl_roll_source *s, size_t count) {
  scl_roll_source *sorted = scl_roll_room(r, count, sizeof *sorted);
  scl_roll_source *from = scl_roll_room(r, count, sizeof *from);
  size_t some = 0;
  if (sorted == NULL || from == NULL) return 0;
  rank(s, sorted, count);
  for (size_t k = 0; k < count; k++) {
    if (k == 0 || by_rank(&sorted[k], &sorted[some - 1]) != 0) sorted[some++] = sorted[k];
  }
  const int pool = pieces(r, sorted, some, count_runs(sorted, some));
  for (size_t k = 0; k < count; k++) {
    from[k] = (scl_roll_source){pool, place_of(sorted, some, s[k]), 0.0, 0};
  }
  return scl_roll_failed(r) ? 0 : gather_of_one(r, from, count);
}

bool scl_roll_is_ordered(const scl_roll_source *s, size_t count) {
  order o;
  if (scl_roll_all_same(s, count)) return true;
  size_t length = 0;
  for (size_t k = 0; k < count; k++) length = s[k].at >= length ? s[k].at + 1 : length;
  return find_order(s, count, &o) && form_of(&o, length) != INDEXED;
}

int scl_roll_gather(scl_roll *r, scl_roll_source *s, size_t count) {
  if (scl_roll_failed(r) || count == 0) return 0;
  if (scl_roll_all_same(s, count)) return one(r, s[0]);
  size_t runs = count_runs(s, count);
  if (runs > 1) {
    read_data(r, s, count);
    runs = count_runs(s, count);
  }
  if (runs == 1 && s[0].value == NONE) return numbers(r, s, count);
  if (runs == 1) return gather_of_one(r, s, count);
  const size_t few = count / SCL_ROLL_FEWEST > FEW_PIECES ? count / SCL_ROLL_FEWEST : FEW_PIECES;
  return runs <= few ? pieces(r, s, count, runs) : from_pool(r, s, count);
}

static int by_int(const void *a, const void *b) {
  const int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

size_t scl_roll_count_different(int *x, size_t count) {
  size_t different = count > 0;
  qsort(x, count, sizeof *x, by_int);
  for (size_t k = 1; k < count; k++) different += x[k] != x[k - 1];
  return different;
}

/* The number of values that the elements come from. */
static size_t count_values(scl_roll *r, const scl_roll_source *s, size_t count) {
  int *value = malloc(count * sizeof *value);
  if (value == NULL) {
    scl_tape_fail(r->to, scl_fail_memory(count * sizeof *value, 0, "a program"));
    return count;
  }
  for (size_t k = 0; k < count; k++) value[k] = s[k].value;
  const size_t values = scl_roll_count_different(value, count);
  free(value);
  return values;
}

int scl_roll_gather_cost(scl_roll *r, const scl_roll_source *s, size_t count) {
  if (scl_roll_all_same(s, count)) return 0;
  const size_t runs = count_runs(s, count);
  if (runs > 1) {
    for (size_t k = 0; k < count; k++) {
      const int v = s[k].value;
      if (v == NONE || r->to->value[v].kind == SCL_VALUE_DATA) continue;
      if (runs <= FEW_PIECES) return SCL_ROLL_GATHERED;
      const bool many = count_values(r, s, count) > FEW_PIECES + count / SCL_ROLL_FEWEST;
      return many ? SCL_ROLL_TOO_MUCH : 2 * SCL_ROLL_GATHERED;
    }
    return 0; /* numbers */
  }
  if (s[0].value == NONE) return 0;
  order o;
  if (!find_order(s, count, &o)) return SCL_ROLL_GATHERED;
  switch (form_of(&o, scl_tape_length(r->to, s[0].value))) {
  case WHOLE:
    return 0;
  case CYCLE:
    return o.m <= SHORT_CYCLE ? 2 * VIEW_COST : VIEW_COST;
  case ACROSS:
    return 4 * VIEW_COST;
  case PART:
    return o.n == 1 && o.s > 1 ? 4 * VIEW_COST : VIEW_COST;
  case INDEXED:
    return SCL_ROLL_GATHERED;
  default:
    return VIEW_COST;
  }
}

/* ---- whole values -----------------------------------------------------------------------------
 */

/* Whether a root is on the new tape as a value of its own. */
static bool is_alone(const scl_roll *r, int root) {
  const scl_roll_place *p = &r->place[root];
  if (scl_roll_value(r, root)->kind == SCL_VALUE_NUMBER) return true;
  return p->value != NONE && p->at == 0 && p->step == 1 &&
         scl_tape_length(r->to, p->value) == scl_tape_length(r->from, root);
}

static bool is_plain(const scl_roll *r, int node) {
  const scl_roll_view *v = &r->view[node];
  if (v->root != NONE) return is_alone(r, v->root);
  for (size_t k = 0; k < scl_tape_length(r->from, node); k++) {
    if (!is_alone(r, v->list[k].root)) return false;
  }
  return true;
}

/* Puts the recorded operation on the new tape, on which its operands are. */
static int repeat(scl_roll *r, int node) {
  const scl_value *v = scl_roll_value(r, node);
  int few[4], *operand = v->operands > 4 ? scl_roll_room(r, (size_t)v->operands, sizeof *few) : few;
  if (operand == NULL) return 0;
  for (int k = 0; k < v->operands; k++) {
    operand[k] = scl_roll_whole(r, scl_tape_operand(r->from, node, k));
  }
  return scl_tape_add(r->to, (scl_value_kind)v->kind, v->op, v->operands, operand, v->at,
                      v->number);
}

int scl_roll_whole(scl_roll *r, int node) {
  if (scl_roll_failed(r)) return 0;
  const size_t length = scl_tape_length(r->from, node);
  const bool root = scl_roll_is_root(r, node);
  if (scl_roll_value(r, node)->kind == SCL_VALUE_NUMBER) return repeat(r, node);
  if (root && is_alone(r, node)) return r->place[node].value;
  if (root && r->place[node].value == NONE) return repeat(r, node); /* it is being put there */
  if (!root && is_plain(r, node)) return repeat(r, node);
  scl_roll_source few[4], *s = length > 4 ? scl_roll_room(r, length, sizeof *s) : few;
  if (s == NULL) return 0;
  for (size_t k = 0; k < length; k++) s[k] = scl_roll_source_of(r, scl_roll_at(r, node, k));
  return scl_tape_fill(r->to, scl_roll_gather(r, s, length), length);
}
