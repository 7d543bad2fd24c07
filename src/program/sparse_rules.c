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

/* Row k of the value is row source[k] of a term of x. */
static void select_term(scl_jacobian *w, int value, int x, int term, const size_t *source,
                        size_t count) {
  const scl_entries *e = scl_entries_of(w, term);
  size_t *start = NULL, *list = NULL, total = 0;
  scl_listing l;
  if (list_rows(w, e, scl_tape_length(w->t, x), &start, &list)) {
    for (size_t k = 0; k < count; k++) total += start[source[k] + 1] - start[source[k]];
    if (scl_listing_begin(w, value, total, &l)) {
      for (size_t k = 0; k < count; k++) {
        for (size_t i = start[source[k]]; i < start[source[k] + 1]; i++) {
          scl_listing_put(&l, k, e->column[list[i]], list[i]);
        }
      }
      scl_listing_finish(w, value, &l, w->term[term].value);
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
  scl_listing l;
  if (w->refused[x]) w->refused[value] = true;
  for (int k = w->first[x]; target != NULL && k != NONE; k = w->term[k].next) {
    const scl_entries *e = scl_entries_of(w, k);
    if (!scl_listing_begin(w, value, e->length, &l)) return;
    for (size_t i = 0; i < e->length; i++) {
      scl_listing_put(&l, target[scl_entries_row(e, i)], e->column[i], i);
    }
    scl_listing_finish(w, value, &l, w->term[k].value);
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

/* ---- all kinds ------------------------------------------------------------------------------ */

static void rule_others(scl_jacobian *w, int value) {
  for (int k = 0; k < w->t->value[value].operands; k++) {
    if (depends(w, operand_of(w, value, k))) w->refused[value] = true;
  }
}

static void (*const rules[SCL_VALUE_KINDS])(scl_jacobian *, int) = {
    [SCL_VALUE_APPLY] = rule_apply,
    [SCL_VALUE_BROADCAST] = rule_select,
    [SCL_VALUE_TRANSPOSE] = rule_select,
    [SCL_VALUE_PART] = rule_select,
    [SCL_VALUE_GATHER] = rule_select,
    [SCL_VALUE_GATHER_COLUMNS] = rule_select,
    [SCL_VALUE_COPY_AS] = rule_copy_as,
    [SCL_VALUE_SCATTER] = rule_scatter,
    [SCL_VALUE_SCATTER_COLUMNS] = rule_scatter,
    [SCL_VALUE_REDUCE] = rule_reduce,
    [SCL_VALUE_CONCAT] = rule_concat,
    [SCL_VALUE_MATMUL] = scl_sparse_matmul,
    [SCL_VALUE_CUMSUM] = scl_sparse_cumsum,
    [SCL_VALUE_TRI_SOLVE] = scl_sparse_solve_rule,
    [SCL_VALUE_LU_SOLVE] = scl_sparse_solve_rule,
    [SCL_VALUE_SPARSE_SOLVE] = scl_sparse_solve_rule,
};

void scl_sparse_rule(scl_jacobian *w, int value) {
  void (*rule)(scl_jacobian *, int) = rules[w->t->value[value].kind];
  if (rule != NULL) {
    rule(w, value);
  } else { /* leaves have no operands, and parameters are filled in already */
    rule_others(w, value);
  }
  if (w->refused[value]) w->first[value] = NONE;
}
