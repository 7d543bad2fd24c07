/* Sparse Jacobians by kind of value. Entries of an operand are moved to other rows, or multiplied
 * by the derivative of an elementwise operation. */
#include <stdlib.h>
#include <string.h>

#include "program/sparse_parts.h"

enum { NONE = SCL_SPARSE_NONE };

static int operand_of(const scl_jacobian *w, int value, int k) {
  return scl_tape_operand(w->t, value, k);
}

static bool depends(const scl_jacobian *w, int x) {
  return w->first[x] != NONE || w->refused[x];
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Lists of the entries of each row: those of row i are list[start[i]] and so on. */
static bool list_rows(scl_jacobian *w, const scl_entries *e, size_t rows, size_t **start,
                      size_t **list) {
  *start = scl_sparse_room(w, rows + 1, sizeof **start);
  *list = scl_sparse_room(w, e->length, sizeof **list);
  if (*start == NULL || *list == NULL) return false;
  memset(*start, 0, (rows + 2) * sizeof **start);
  for (size_t k = 0; k < e->length; k++) (*start)[scl_entries_row(e, k) + 2]++;
  for (size_t i = 1; i <= rows; i++) (*start)[i + 1] += (*start)[i];
  for (size_t k = 0; k < e->length; k++) (*list)[(*start)[scl_entries_row(e, k) + 1]++] = k;
  return true;
}

/* Entries while they are listed; pick: which entries of an operand's term they are. */
typedef struct {
  size_t count;
  uint32_t *row, *column;
  size_t *pick;
} listing;

static void end(listing *l) {
  free(l->row);
  free(l->column);
  free(l->pick);
}

/* Room for the entries of a term of `value`. If false, nothing is held. */
static bool begin(scl_jacobian *w, int value, size_t total, listing *l) {
  *l = (listing){.count = 0};
  if (!scl_sparse_allows(w, value, total)) return false;
  l->row = scl_sparse_room(w, total, sizeof *l->row);
  l->column = scl_sparse_room(w, total, sizeof *l->column);
  l->pick = scl_sparse_room(w, total, sizeof *l->pick);
  if (w->t->status != SCL_OK) end(l);
  return w->t->status == SCL_OK;
}

static void put(listing *l, size_t row, uint32_t column, size_t pick) {
  l->row[l->count] = (uint32_t)row;
  l->column[l->count] = column;
  l->pick[l->count++] = pick;
}

/* Adds the term with these entries, and their numbers among those of `from`, to the value. */
static void finish(scl_jacobian *w, int value, listing *l, int from) {
  const int entries = scl_sparse_entries(w, l->count, l->row, l->column);
  l->row = l->column = NULL;
  scl_sparse_add_picked(w, value, entries, from, l->pick);
  end(l);
}

/* Row k of the value is row source[k] of a term of x. */
static void select_term(scl_jacobian *w, int value, int x, int term, const size_t *source,
                        size_t count) {
  const scl_entries *e = scl_entries_of(w, term);
  size_t *start = NULL, *list = NULL, total = 0;
  listing l;
  if (list_rows(w, e, scl_tape_length(w->t, x), &start, &list)) {
    for (size_t k = 0; k < count; k++) total += start[source[k] + 1] - start[source[k]];
    if (begin(w, value, total, &l)) {
      for (size_t k = 0; k < count; k++) {
        for (size_t i = start[source[k]]; i < start[source[k] + 1]; i++) {
          put(&l, k, e->column[list[i]], list[i]);
        }
      }
      finish(w, value, &l, w->term[term].value);
    }
  }
  free(start);
  free(list);
}

static void select_rows(scl_jacobian *w, int value, int x, const size_t *source) {
  const size_t count = scl_tape_length(w->t, value);
  if (w->refused[x]) w->refused[value] = true;
  for (int k = w->first[x]; source != NULL && k != NONE && !w->refused[value];
       k = w->term[k].next) {
    select_term(w, value, x, k, source, count);
  }
}

/* Row i of x is added to row target[i] of the value. */
static void move_rows(scl_jacobian *w, int value, int x, const size_t *target) {
  listing l;
  if (w->refused[x]) w->refused[value] = true;
  for (int k = w->first[x]; target != NULL && k != NONE; k = w->term[k].next) {
    const scl_entries *e = scl_entries_of(w, k);
    if (!begin(w, value, e->length, &l)) return;
    for (size_t i = 0; i < e->length; i++) {
      put(&l, target[scl_entries_row(e, i)], e->column[i], i);
    }
    finish(w, value, &l, w->term[k].value);
  }
}

/* ---- rules ---------------------------------------------------------------------------------- */

/* Adds `slope`, a number for each element or one for all, times the Jacobian of x. */
static void add_times(scl_jacobian *w, int value, int x, int slope) {
  const size_t length = scl_tape_length(w->t, value);
  int from = x, moved = NONE;
  if (!scl_sparse_allows(w, value, 0)) return;
  if (scl_tape_length(w->t, x) == 1 && length != 1) { /* repeated in each row */
    size_t *source = scl_sparse_room(w, length, sizeof *source);
    if (source == NULL) return;
    memset(source, 0, length * sizeof *source);
    moved = w->first[value]; /* built up there, then taken away */
    w->first[value] = NONE;
    select_rows(w, value, x, source);
    free(source);
    from = value;
  }
  int k = w->first[from];
  if (from == value) w->first[value] = moved;
  if (w->refused[x]) w->refused[value] = true;
  for (; k != NONE && w->t->status == SCL_OK && !w->refused[value]; k = w->term[k].next) {
    const int entries = w->term[k].entries;
    const int slopes = scl_sparse_by_row(w, slope, entries);
    scl_sparse_add(w, value, entries, scl_tape_times_poles(w->t, slopes, w->term[k].value));
  }
}

static void rule_apply(scl_jacobian *w, int value) {
  for (int k = 0; k < w->t->value[value].operands; k++) {
    const int x = operand_of(w, value, k);
    if (!depends(w, x)) continue;
    const int slope = scl_tape_slope(w->t, value, k, scl_tape_number(w->t, 1.0));
    if (slope >= 0) add_times(w, value, x, slope);
  }
}

/* Views, gathers, triangles: each element is an element of the operand. */
static void rule_select(scl_jacobian *w, int value) {
  const scl_value v = w->t->value[value];
  size_t m, n, *source = scl_sparse_room(w, v.length, sizeof *source);
  const int x = operand_of(w, value, 0);
  if (source == NULL) return;
  if (v.kind == SCL_VALUE_GATHER || v.kind == SCL_VALUE_GATHER_COLUMNS) {
    const scl_tape_data *index = &w->t->data[v.at[0]];
    const size_t columns = v.kind == SCL_VALUE_GATHER ? 1 : v.at[1];
    const size_t height = scl_tape_length(w->t, x) / (columns > 0 ? columns : 1);
    for (size_t k = 0; k < v.length; k++) {
      source[k] = (size_t)index->numbers[k % index->length] + k / index->length * height;
    }
  } else if (v.kind == SCL_VALUE_COPY_AS) { /* both halves from the lower one */
    for (size_t k = 0; k < v.length; k++) {
      const size_t i = k % v.at[0], j = k / v.at[0];
      source[k] = i >= j ? k : j + i * v.at[0];
    }
  } else {
    scl_value_view_shape(&v, &m, &n);
    for (size_t k = 0; k < v.length; k++) source[k] = scl_value_view_element(&v, k % m, k / m);
  }
  select_rows(w, value, x, source);
  free(source);
}

/* A triangle, by a product with ones and zeros. */
static void rule_copy_as(scl_jacobian *w, int value) {
  const size_t n = w->t->value[value].at[0];
  const scl_copy kind = (scl_copy)w->t->value[value].at[1];
  if (kind == SCL_COPY_MIRROR_LOWER) {
    rule_select(w, value);
    return;
  }
  double *keep = scl_sparse_room(w, n * n, sizeof *keep);
  for (size_t k = 0; keep != NULL && k < n * n; k++) {
    keep[k] = kind == SCL_COPY_LOWER ? k % n >= k / n : k % n <= k / n;
  }
  const int mask = scl_tape_data_value(w->t, scl_tape_own_data(w->t, keep, n * n));
  if (w->t->status == SCL_OK) add_times(w, value, operand_of(w, value, 0), mask);
}

static void rule_scatter(scl_jacobian *w, int value) {
  const scl_value v = w->t->value[value];
  const int x = operand_of(w, value, 0);
  const size_t length = scl_tape_length(w->t, x);
  const scl_tape_data *index = &w->t->data[v.at[0]];
  size_t *target = scl_sparse_room(w, length, sizeof *target);
  for (size_t k = 0; target != NULL && k < length; k++) {
    target[k] = (size_t)index->numbers[k % index->length] + k / index->length * v.at[1];
  }
  move_rows(w, value, x, target);
  free(target);
  scl_sparse_merge(w, value, false);
}

static void rule_reduce(scl_jacobian *w, int value) {
  const scl_value v = w->t->value[value];
  const size_t m = v.at[0], length = m * v.at[1];
  const int x = operand_of(w, value, 0);
  if (v.op != SCL_REDUCE_SUM) {
    w->refused[value] = depends(w, x);
    return;
  }
  size_t *target = scl_sparse_room(w, length, sizeof *target);
  for (size_t k = 0; target != NULL && k < length; k++) {
    target[k] = v.at[2] == SCL_TOTAL ? 0 : v.at[2] == SCL_BY_ROW ? k % m : k / m;
  }
  move_rows(w, value, x, target);
  free(target);
  scl_sparse_merge(w, value, false);
}

static void rule_concat(scl_jacobian *w, int value) {
  size_t at = 0;
  for (int k = 0; k < w->t->value[value].operands; k++) {
    const int x = operand_of(w, value, k);
    const size_t length = scl_tape_length(w->t, x);
    if (depends(w, x)) {
      size_t *target = scl_sparse_room(w, length, sizeof *target);
      for (size_t i = 0; target != NULL && i < length; i++) target[i] = at + i;
      move_rows(w, value, x, target);
      free(target);
    }
    at += length;
  }
}

/* ---- products ------------------------------------------------------------------------------- */

typedef struct {
  size_t m, k, n;
  bool ta, tb;
} product;

/* Whether the number is a zero, whatever the parameters are. */
static bool is_zero(const scl_jacobian *w, int x, size_t i) {
  const scl_value *v = &w->t->value[x];
  return v->kind == SCL_VALUE_DATA && w->t->data[v->at[0]].numbers[i] == 0.0;
}

/* Element `at` of one operand is in `count` elements of the product; number c of these has the row
 * *row, and there the factor with the index that is returned. */
static size_t place_in(const product *p, bool left, size_t at, size_t c, uint32_t *row) {
  const bool flipped = left ? p->ta : p->tb;
  const size_t height = left ? (flipped ? p->k : p->m) : (flipped ? p->n : p->k);
  const size_t i = at % height, j = at / height;
  const size_t outer = left == flipped ? j : i, inner = left == flipped ? i : j;
  if (left) {
    *row = (uint32_t)(outer + c * p->m);
    return p->tb ? c + inner * p->n : inner + c * p->k;
  }
  *row = (uint32_t)(c + outer * p->m);
  return p->ta ? inner + c * p->k : c + inner * p->m;
}

/* The entries of one operand's term, times the other operand. */
static void product_term(scl_jacobian *w, int value, const product *p, bool left, int term,
                         int other) {
  const scl_entries *e = scl_entries_of(w, term);
  const size_t each = left ? p->n : p->m, total = e->length * each;
  int from = w->term[term].value;
  listing l;
  if (!begin(w, value, total, &l)) return;
  size_t *factor = scl_sparse_room(w, total, sizeof *factor);
  for (size_t i = 0; factor != NULL && i < e->length; i++) {
    for (size_t c = 0; c < each; c++) {
      uint32_t row;
      factor[l.count] = place_in(p, left, scl_entries_row(e, i), c, &row);
      if (!is_zero(w, other, factor[l.count])) put(&l, row, e->column[i], i);
    }
  }
  if (scl_tape_length(w->t, from) > 1) from = scl_sparse_pick(w, from, l.pick, l.count);
  const int factors = scl_sparse_pick(w, other, factor, l.count);
  const size_t count = l.count;
  const int product = count > 0 ? scl_tape_binary(w->t, SCL_OP_MUL, factors, from) : 0;
  const int entries = scl_sparse_entries(w, count, l.row, l.column);
  l.row = l.column = NULL;
  scl_sparse_add(w, value, entries, product);
  end(&l);
  free(factor);
}

static void product_of(scl_jacobian *w, int value, const product *p, bool left, int x, int other) {
  if (w->refused[x]) w->refused[value] = true;
  for (int k = w->first[x]; k != NONE && !w->refused[value] && w->t->status == SCL_OK;
       k = w->term[k].next) {
    product_term(w, value, p, left, k, other);
  }
}

static void rule_matmul(scl_jacobian *w, int value) {
  const size_t *at = w->t->value[value].at;
  const product p = {at[0], at[1], at[2], at[3] != 0, at[4] != 0};
  const int a = operand_of(w, value, 0), b = operand_of(w, value, 1);
  product_of(w, value, &p, true, a, b);
  product_of(w, value, &p, false, b, a);
  scl_sparse_merge(w, value, false);
}

/* A^-1 B, for a matrix that does not depend on chosen parameters, as the product with its inverse.
 */
static void rule_solve(scl_jacobian *w, int value) {
  const scl_value v = w->t->value[value];
  const size_t n = v.at[0];
  const int a = operand_of(w, value, 0), b = operand_of(w, value, 1);
  if (depends(w, a) || w->refused[b]) w->refused[value] = true;
  if (w->first[b] == NONE || !scl_sparse_allows(w, value, n * n)) return;
  double *identity = scl_sparse_room(w, n * n, sizeof *identity);
  for (size_t k = 0; identity != NULL && k < n * n; k++) identity[k] = k % (n + 1) == 0;
  const int unit = scl_tape_data_value(w->t, scl_tape_own_data(w->t, identity, n * n));
  const size_t at[] = {n, n, v.at[2], v.at[3]};
  const int inverse = scl_tape_call(w->t, (scl_value_kind)v.kind, a, unit, at);
  if (w->t->status != SCL_OK) return;
  const product p = {n, n, v.at[1], false, false};
  product_of(w, value, &p, false, b, inverse);
}

/* A sum over the rows before in the same column, or after. */
static void rule_cumsum(scl_jacobian *w, int value) {
  const size_t m = w->t->value[value].at[0];
  const bool reverse = w->t->value[value].at[2] != 0;
  const int x = operand_of(w, value, 0);
  listing l;
  if (w->refused[x]) w->refused[value] = true;
  for (int k = w->first[x]; k != NONE; k = w->term[k].next) {
    const scl_entries *e = scl_entries_of(w, k);
    size_t total = 0;
    for (size_t i = 0; i < e->length; i++) {
      const size_t r = scl_entries_row(e, i) % m;
      total += reverse ? r + 1 : m - r;
    }
    if (!begin(w, value, total, &l)) return;
    for (size_t i = 0; i < e->length; i++) {
      const size_t from = scl_entries_row(e, i), top = from - from % m;
      for (size_t r = reverse ? top : from; r < (reverse ? from + 1 : top + m); r++) {
        put(&l, r, e->column[i], i);
      }
    }
    finish(w, value, &l, w->term[k].value);
  }
  scl_sparse_merge(w, value, false);
}

/* ---- all kinds ------------------------------------------------------------------------------ */

static void rule_others(scl_jacobian *w, int value) {
  for (int k = 0; k < w->t->value[value].operands; k++) {
    if (depends(w, operand_of(w, value, k))) w->refused[value] = true;
  }
}

void scl_sparse_rule(scl_jacobian *w, int value) {
  switch ((scl_value_kind)w->t->value[value].kind) {
  case SCL_VALUE_PARAMETER: /* filled in already */
  case SCL_VALUE_DATA:
  case SCL_VALUE_NUMBER:
    break;
  case SCL_VALUE_APPLY:
    rule_apply(w, value);
    break;
  case SCL_VALUE_BROADCAST:
  case SCL_VALUE_TRANSPOSE:
  case SCL_VALUE_PART:
  case SCL_VALUE_GATHER:
  case SCL_VALUE_GATHER_COLUMNS:
    rule_select(w, value);
    break;
  case SCL_VALUE_COPY_AS:
    rule_copy_as(w, value);
    break;
  case SCL_VALUE_SCATTER:
  case SCL_VALUE_SCATTER_COLUMNS:
    rule_scatter(w, value);
    break;
  case SCL_VALUE_REDUCE:
    rule_reduce(w, value);
    break;
  case SCL_VALUE_CONCAT:
    rule_concat(w, value);
    break;
  case SCL_VALUE_MATMUL:
    rule_matmul(w, value);
    break;
  case SCL_VALUE_CUMSUM:
    rule_cumsum(w, value);
    break;
  case SCL_VALUE_TRI_SOLVE:
  case SCL_VALUE_LU_SOLVE:
    rule_solve(w, value);
    break;
  default:
    rule_others(w, value);
    break;
  }
  if (w->refused[value]) w->first[value] = NONE;
}
