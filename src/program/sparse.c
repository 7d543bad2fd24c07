/* The gradient is recorded first; its sparse Jacobian (program/sparse_rules.c) is the Hessian. */
#include "program/sparse.h"

#include <stdlib.h>
#include <string.h>

#include "program/reverse.h"
#include "program/sparse_parts.h"

enum { NONE = SCL_SPARSE_NONE };

void scl_sparse_pattern_end(scl_sparse_pattern *p) {
  free(p->start);
  free(p->row);
  *p = (scl_sparse_pattern){.n = 0};
}

/* ---- which values --------------------------------------------------------------------------- */

/* The identity, for the chosen ones among the parameters of a value. */
static void fill_parameter(scl_jacobian *w, int value, const uint32_t *place) {
  const scl_value v = w->t->value[value];
  uint32_t *row = scl_sparse_room(w, v.length, sizeof *row);
  uint32_t *column = scl_sparse_room(w, v.length, sizeof *column);
  size_t count = 0;
  for (size_t i = 0; w->t->status == SCL_OK && i < v.length; i++) {
    if (place[v.at[0] + i] == UINT32_MAX) continue;
    row[count] = (uint32_t)i;
    column[count++] = place[v.at[0] + i];
  }
  if (w->t->status == SCL_OK && count > 0) {
    const int entries = scl_sparse_entries(w, count, row, column);
    scl_sparse_add(w, value, entries, scl_tape_number(w->t, 1.0));
    return;
  }
  free(row);
  free(column);
}

/* Values that the last one needs. */
static bool *find_live(scl_jacobian *w) {
  bool *live = calloc((size_t)w->values + 1, sizeof *live);
  if (live == NULL) {
    scl_tape_fail(w->t, scl_fail_memory((size_t)w->values, 0, "a sparse Hessian"));
    return NULL;
  }
  live[w->values - 1] = true;
  for (int v = w->values - 1; v >= 0; v--) {
    for (int k = 0; live[v] && k < w->t->value[v].operands; k++) {
      live[scl_tape_operand(w->t, v, k)] = true;
    }
  }
  return live;
}

static void find_jacobians(scl_jacobian *w, const uint32_t *place) {
  bool *live = w->t->status == SCL_OK ? find_live(w) : NULL;
  for (int v = 0; v < w->values && live != NULL && w->t->status == SCL_OK; v++) {
    if (!live[v]) continue;
    if (w->t->value[v].kind == SCL_VALUE_PARAMETER) {
      fill_parameter(w, v, place);
    } else {
      scl_sparse_rule(w, v);
    }
  }
  free(live);
}

/* ---- the matrix ----------------------------------------------------------------------------- */

/* The entries of the gradient's Jacobian below the diagonal, or on it, and behind them the
 * diagonal; `of`: for each of these its entry, in the order of the terms. */
typedef struct {
  size_t count, all;
  uint32_t *row, *column;
  size_t *of, *order;
} triangle;

static void end_triangle(triangle *l) {
  free(l->row);
  free(l->column);
  free(l->of);
  free(l->order);
}

static void find_triangle(scl_jacobian *w, int slope, const uint32_t *place, size_t n,
                          triangle *l) {
  for (int k = w->first[slope]; k != NONE; k = w->term[k].next) {
    l->all += scl_entries_of(w, k)->length;
  }
  l->row = scl_sparse_room(w, l->all + n, sizeof *l->row);
  l->column = scl_sparse_room(w, l->all + n, sizeof *l->column);
  l->of = scl_sparse_room(w, l->all + n, sizeof *l->of);
  l->order = scl_sparse_room(w, l->all + n, sizeof *l->order);
  if (w->t->status != SCL_OK) return;
  size_t from = 0;
  for (int k = w->first[slope]; k != NONE; k = w->term[k].next) {
    const scl_entries *e = scl_entries_of(w, k);
    for (size_t i = 0; i < e->length; i++, from++) {
      const uint32_t row = place[scl_entries_row(e, i)];
      if (row == UINT32_MAX || row < e->column[i]) continue;
      l->row[l->count] = row;
      l->column[l->count] = e->column[i];
      l->of[l->count++] = from;
    }
  }
  for (size_t i = 0; i < n; i++, l->count++) {
    l->row[l->count] = l->column[l->count] = (uint32_t)i;
    l->of[l->count] = l->all;
  }
}

/* Fills the pattern, and `to` for each entry with its place there, or the place behind the last
 * one. */
static void fill_pattern(const triangle *l, scl_sparse_pattern *p, double *to) {
  uint32_t last = UINT32_MAX;
  memset(p->start, 0, (p->n + 1) * sizeof *p->start);
  for (size_t k = 0; k < l->count; k++) {
    const size_t e = l->order[k];
    if (p->count == 0 || l->column[e] != last || p->row[p->count - 1] != l->row[e]) {
      p->row[p->count++] = l->row[e];
      last = l->column[e];
      p->start[last + 1]++;
    }
    if (l->of[e] < l->all) to[l->of[e]] = (double)(p->count - 1);
  }
  for (size_t j = 0; j < p->n; j++) p->start[j + 1] += p->start[j];
  for (size_t k = 0; k < l->all; k++) {
    if (to[k] < 0.0) to[k] = (double)p->count;
  }
}

static int make_matrix(scl_jacobian *w, int slope, const uint32_t *place, scl_sparse_pattern *p) {
  triangle l = {.count = 0};
  int result = NONE;
  find_triangle(w, slope, place, p->n, &l);
  p->start = scl_sparse_room(w, p->n + 1, sizeof *p->start);
  p->row = scl_sparse_room(w, l.count, sizeof *p->row);
  double *to = scl_sparse_room(w, l.all, sizeof *to);
  for (size_t k = 0; to != NULL && k < l.all; k++) to[k] = -1.0;
  if (w->t->status == SCL_OK && scl_sparse_sort(w, l.count, l.column, p->n, l.row, p->n, l.order)) {
    fill_pattern(&l, p, to);
    result = scl_tape_fill(w->t, scl_tape_number(w->t, 0.0), p->count);
    if (l.all > 0) {
      const int all = scl_sparse_concat(w, slope), index = scl_tape_own_data(w->t, to, l.all);
      result = scl_tape_part(w->t, scl_tape_scatter(w->t, all, index, p->count + 1), 0, p->count);
      to = NULL;
    }
  }
  free(to);
  end_triangle(&l);
  return result;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void end(scl_jacobian *w) {
  for (int k = 0; k < w->used; k++) {
    free(w->entries[k].row);
    free(w->entries[k].column);
  }
  free(w->entries);
  free(w->term);
  free(w->first);
  free(w->refused);
  free(w->mark);
}

scl_status scl_tape_sparse_hessian(scl_tape *t, int output, size_t parameters,
                                   const unsigned char *chosen, size_t most,
                                   scl_sparse_pattern *pattern, int *hessian, int *slope) {
  scl_sparse_pattern p = {.n = 0};
  *slope = scl_tape_gradient_of(t, output, parameters, chosen, true);
  scl_jacobian w = {.t = t, .values = *slope + 1, .most = most};
  SCL_TRY(t->status);
  *hessian = NONE;
  uint32_t *place = scl_sparse_room(&w, parameters, sizeof *place);
  w.first = scl_sparse_room(&w, (size_t)w.values, sizeof *w.first);
  w.refused = calloc((size_t)w.values + 1, sizeof *w.refused);
  if (w.refused == NULL) scl_tape_fail(t, scl_fail_memory((size_t)w.values, 0, "a Hessian"));
  for (size_t i = 0; place != NULL && i < parameters; i++) {
    place[i] = chosen[i] ? (uint32_t)p.n++ : UINT32_MAX;
  }
  for (int v = 0; w.first != NULL && v < w.values; v++) w.first[v] = NONE;
  w.columns = p.n;
  w.mark = scl_sparse_room(&w, p.n, sizeof *w.mark);
  for (size_t i = 0; w.mark != NULL && i < p.n; i++) w.mark[i] = UINT32_MAX;
  if (t->status == SCL_OK) find_jacobians(&w, place);
  if (t->status == SCL_OK && !w.refused[*slope]) *hessian = make_matrix(&w, *slope, place, &p);
  if (t->status == SCL_OK && w.refused[*slope] && w.lacking > 0) {
    const uint64_t bytes = SCL_SPARSE_BYTES;
    scl_tape_fail(t, scl_fail_memory(bytes * w.lacking, bytes * most, "a sparse Hessian"));
  }
  end(&w);
  free(place);
  if (t->status != SCL_OK || *hessian == NONE) scl_sparse_pattern_end(&p);
  if (t->status == SCL_OK) *pattern = p;
  return t->status;
}
