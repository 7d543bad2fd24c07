/* Symbolic analysis: the elimination tree, supernodes, their rows, and where numbers go. */
#include <stdlib.h>
#include <string.h>

#include "base/result_pool.h"
#include "ops/sparse_parts.h"

#define NONE SCL_SPARSE_ROOT

/* Of places, which are the columns of the factor. */
typedef struct {
  scl_sparse_factor *f;
  size_t n, count;
  const size_t *start; /* of the matrix */
  const uint32_t *row;
  uint32_t *place;  /* of each column of the matrix */
  size_t *first;    /* of each place: where its list begins; of n + 1 */
  uint32_t *before; /* lists of the places before it that it has a number with */
  uint32_t *parent, *mark, *order, *child, *next, *stack;
  size_t *height; /* numbers of each column of the factor */
  uint32_t *node_of;
  uint32_t *rows; /* room for the rows of one supernode */
} analysis;

static void end(analysis *a) {
  free(a->place);
  free(a->first);
  free(a->before);
  free(a->parent);
  free(a->mark);
  free(a->order);
  free(a->child);
  free(a->next);
  free(a->stack);
  free(a->height);
  free(a->node_of);
  free(a->rows);
}

static scl_status begin(analysis *a) {
  const size_t n = a->n + 1;
  uint32_t **each[] = {&a->place, &a->parent, &a->mark,    &a->order, &a->child,
                       &a->next,  &a->stack,  &a->node_of, &a->rows};
  bool failed = false;
  for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
    *each[k] = malloc(n * sizeof **each[k]);
    failed = failed || *each[k] == NULL;
  }
  a->first = malloc((n + 1) * sizeof *a->first);
  a->height = malloc(n * sizeof *a->height);
  a->before = malloc((a->count + 1) * sizeof *a->before);
  failed = failed || a->first == NULL || a->height == NULL || a->before == NULL;
  return failed ? scl_fail_memory(n * sizeof *a->height, 0, "a sparse factor") : SCL_OK;
}

/* ---- the tree ------------------------------------------------------------------------------- */

/* Lists the matrix by rows, in the order f->order. */
static void list_rows(analysis *a) {
  const uint32_t *order = a->f->order;
  for (size_t i = 0; i < a->n; i++) a->place[order[i]] = (uint32_t)i;
  memset(a->first, 0, (a->n + 2) * sizeof *a->first);
  for (int pass = 0; pass < 2; pass++) {
    for (size_t j = 0; j < a->n; j++) {
      for (size_t k = a->start[j]; k < a->start[j + 1]; k++) {
        const uint32_t x = a->place[j], y = a->place[a->row[k]];
        if (x == y) continue;
        const uint32_t low = x < y ? x : y, high = x < y ? y : x;
        if (pass == 0) {
          a->first[high + 2]++;
        } else {
          a->before[a->first[high + 1]++] = low;
        }
      }
    }
    for (size_t i = 0; pass == 0 && i < a->n; i++) a->first[i + 2] += a->first[i + 1];
  }
}

/* Each column's parent is the first row below its diagonal; `mark` has shortened paths. */
static void find_parents(analysis *a) {
  for (size_t i = 0; i < a->n; i++) {
    a->parent[i] = a->mark[i] = NONE;
    for (size_t k = a->first[i]; k < a->first[i + 1]; k++) {
      uint32_t j = a->before[k];
      while (a->mark[j] != NONE && a->mark[j] != i) {
        const uint32_t next = a->mark[j];
        a->mark[j] = (uint32_t)i;
        j = next;
      }
      if (a->mark[j] == NONE) a->parent[j] = a->mark[j] = (uint32_t)i;
    }
  }
}

static void find_heights(analysis *a) {
  for (size_t i = 0; i < a->n; i++) {
    a->height[i] = 1;
    a->mark[i] = (uint32_t)i;
    for (size_t k = a->first[i]; k < a->first[i + 1]; k++) {
      for (uint32_t j = a->before[k]; a->mark[j] != i; j = a->parent[j]) {
        a->height[j]++;
        a->mark[j] = (uint32_t)i;
      }
    }
  }
}

/* Changes f->order so that children stand before their parents, and subtrees together. The child
 * with the most rows stands next to its parent, where both may become one supernode. */
static void order_by_tree(analysis *a) {
  size_t count = 0;
  uint32_t *tallest = a->node_of;
  for (size_t i = 0; i <= a->n; i++) a->child[i] = tallest[i] = NONE;
  for (size_t i = 0; i < a->n; i++) { /* roots are children of n */
    const size_t p = a->parent[i] == NONE ? a->n : a->parent[i];
    if (tallest[p] == NONE || a->height[i] >= a->height[tallest[p]]) tallest[p] = (uint32_t)i;
  }
  for (size_t p = 0; p <= a->n; p++) {
    a->child[p] = tallest[p];
    if (tallest[p] != NONE) a->next[tallest[p]] = NONE;
  }
  for (size_t i = a->n; i-- > 0;) {
    const size_t p = a->parent[i] == NONE ? a->n : a->parent[i];
    if (tallest[p] == i) continue;
    a->next[i] = a->child[p];
    a->child[p] = (uint32_t)i;
  }
  size_t depth = 0;
  a->stack[depth++] = (uint32_t)a->n;
  while (depth > 0) {
    const uint32_t top = a->stack[depth - 1], first = a->child[top];
    if (first == NONE) {
      if (top < a->n) a->order[count++] = a->f->order[top];
      depth--;
    } else {
      a->child[top] = a->next[first];
      a->stack[depth++] = first;
    }
  }
  memcpy(a->f->order, a->order, a->n * sizeof *a->order);
}

/* ---- supernodes ----------------------------------------------------------------------------- */

/* Whether a supernode of c columns is worth while if `share` of its numbers are zeros. */
static bool is_worth(size_t c, double share) {
  return c <= 4 || (c <= 16 && share < 0.3) || (c <= 48 && share < 0.1) || share < 0.05;
}

/* The cost of a supernode of c columns and r rows below them, in products: those of its panel, and
 * passes over the r x r update of its parent, where a number takes as long as some products. */
static double cost_of(double c, double r) {
  const double passes = 12.0, m = c + r;
  return (m * m * m - r * r * r) / 6.0 + passes * r * r;
}

/* Whether a column with `height` numbers costs less within a supernode of c columns and r rows. */
static bool is_cheaper(double c, double r, double height) {
  return cost_of(c + 1.0, height - 1.0) < cost_of(c, r) + cost_of(1.0, height - 1.0);
}

/* One dense supernode, if that takes less than those that there are. */
static void take_whole(analysis *a) {
  scl_sparse_factor *f = a->f;
  double sum = 0.0;
  for (size_t k = 0; k < f->nodes; k++) sum += cost_of(f->node[k].columns, f->node[k].rows);
  if (f->nodes < 2 || sum < cost_of((double)a->n, 0.0)) return;
  f->nodes = 1;
  f->node[0].columns = (uint32_t)a->n;
  f->node[0].rows = 0;
  memset(a->node_of, 0, a->n * sizeof *a->node_of);
}

/* Adjacent columns of a chain of the tree whose rows are, or nearly are, the same. */
static scl_status find_nodes(analysis *a) {
  scl_sparse_factor *f = a->f;
  f->node = malloc((a->n + 1) * sizeof *f->node);
  if (f->node == NULL) return scl_fail_memory(a->n * sizeof *f->node, 0, "a sparse factor");
  double numbers = 0.0; /* of the columns of the last supernode */
  for (size_t j = 0; j < a->n; j++) {
    scl_supernode *last = f->nodes > 0 ? &f->node[f->nodes - 1] : NULL;
    if (last != NULL && a->parent[j - 1] == j) {
      const double c = last->columns + 1.0, m = (double)a->height[j] + c - 1.0;
      const double all = c * m - c * (c - 1.0) / 2.0;
      const double there = numbers + (double)a->height[j];
      const bool same = a->height[j - 1] == a->height[j] + 1;
      if ((same && there == all) || is_worth(last->columns + 1, 1.0 - there / all) ||
          is_cheaper(last->columns, last->rows, (double)a->height[j])) {
        last->columns++;
        last->rows = (uint32_t)a->height[j] - 1;
        numbers = there;
        a->node_of[j] = (uint32_t)f->nodes - 1;
        continue;
      }
    }
    f->node[f->nodes] = (scl_supernode){.from = (uint32_t)j,
                                        .columns = 1,
                                        .rows = (uint32_t)a->height[j] - 1,
                                        .parent = NONE,
                                        .child = NONE,
                                        .next = NONE};
    a->node_of[j] = (uint32_t)f->nodes++;
    numbers = (double)a->height[j];
  }
  take_whole(a);
  return SCL_OK;
}

/* Children are linked with the last one first. */
static void link_nodes(analysis *a) {
  scl_sparse_factor *f = a->f;
  size_t at = 0, panel = 0, stack = 0;
  for (size_t k = 0; k < f->nodes; k++) {
    scl_supernode *s = &f->node[k];
    const uint32_t above = a->parent[s->from + s->columns - 1];
    const size_t r = s->rows, m = r + s->columns;
    s->at = at;
    s->panel = panel;
    at += r;
    panel += m * s->columns;
    for (uint32_t i = s->child; i != NONE; i = f->node[i].next) {
      stack -= (size_t)f->node[i].rows * f->node[i].rows;
    }
    stack += r * r;
    size_t peak = stack; /* a supernode's part is made behind those of its children */
    for (uint32_t i = s->child; i != NONE; i = f->node[i].next) {
      peak += (size_t)f->node[i].rows * f->node[i].rows;
    }
    if (peak > f->stack) f->stack = peak;
    if (above == NONE) continue;
    s->parent = a->node_of[above];
    s->next = f->node[s->parent].child;
    f->node[s->parent].child = (uint32_t)k;
  }
  f->size = panel;
}

/* The most room that blocks of the inverse take, as ops/sparse.c places them. */
static scl_status measure_inverse(scl_sparse_factor *f) {
  size_t *block = malloc((f->nodes + 1) * sizeof *block);
  if (block == NULL) return scl_fail_memory(f->nodes * sizeof *block, 0, "a sparse factor");
  for (size_t k = f->nodes; k-- > 0;) {
    const scl_supernode *s = &f->node[k];
    const size_t m = (size_t)s->columns + s->rows;
    size_t at = 0;
    block[k] = 0;
    if (s->parent != NONE) {
      const size_t order = (size_t)f->node[s->parent].columns + f->node[s->parent].rows;
      at = block[s->parent] + order * order;
      block[k] = s->next == NONE ? block[s->parent] : at;
    }
    if (at + m * m > f->inverse_stack) f->inverse_stack = at + m * m;
  }
  free(block);
  return SCL_OK;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int compare(const void *x, const void *y) {
  const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
  return a < b ? -1 : a > b;
}

static void add_row(analysis *a, uint32_t row, size_t last, uint32_t node, size_t *count) {
  if (row < last || a->mark[row] == node) return;
  a->mark[row] = node;
  a->rows[(*count)++] = row;
}

/* The rows of a supernode: those of the matrix, and those of its children. */
static void find_rows(analysis *a, uint32_t k, const size_t *first, const uint32_t *after) {
  scl_sparse_factor *f = a->f;
  const scl_supernode *s = &f->node[k];
  const size_t last = (size_t)s->from + s->columns;
  size_t count = 0;
  for (size_t i = first[s->from]; i < first[last]; i++) add_row(a, after[i], last, k, &count);
  for (uint32_t i = s->child; i != NONE; i = f->node[i].next) {
    const scl_supernode *child = &f->node[i];
    for (size_t j = 0; j < child->rows; j++) add_row(a, f->row[child->at + j], last, k, &count);
  }
  qsort(a->rows, count, sizeof *a->rows, compare);
  memcpy(f->row + s->at, a->rows, count * sizeof *a->rows);
}

/* Both lists have the same order. */
static void find_places(scl_sparse_factor *f, const scl_supernode *s) {
  if (s->parent == NONE) return;
  const scl_supernode *p = &f->node[s->parent];
  const uint32_t *rows = f->row + p->at;
  for (size_t i = 0, k = 0; i < s->rows; i++) {
    const uint32_t row = f->row[s->at + i];
    if (row < p->from + p->columns) {
      f->place[s->at + i] = row - p->from;
      continue;
    }
    while (rows[k] != row) k++;
    f->place[s->at + i] = (uint32_t)(p->columns + k);
  }
}

/* Lists the matrix by columns of the factor. */
static void list_columns(const analysis *a, size_t *first, uint32_t *after) {
  memset(first, 0, (a->n + 2) * sizeof *first);
  for (size_t k = 0; k < a->first[a->n]; k++) first[a->before[k] + 2]++;
  for (size_t j = 0; j < a->n; j++) first[j + 2] += first[j + 1];
  for (size_t i = 0; i < a->n; i++) {
    for (size_t k = a->first[i]; k < a->first[i + 1]; k++) {
      after[first[a->before[k] + 1]++] = (uint32_t)i;
    }
  }
}

static scl_status find_all_rows(analysis *a) {
  scl_sparse_factor *f = a->f;
  const size_t rows = f->nodes > 0 ? f->node[f->nodes - 1].at + f->node[f->nodes - 1].rows : 0;
  size_t *first = malloc((a->n + 2) * sizeof *first);
  uint32_t *after = malloc((a->count + 1) * sizeof *after);
  f->row = malloc((rows + 1) * sizeof *f->row);
  f->place = malloc((rows + 1) * sizeof *f->place);
  const bool failed = first == NULL || after == NULL || f->row == NULL || f->place == NULL;
  if (!failed) {
    list_columns(a, first, after);
    for (size_t i = 0; i < a->n; i++) a->mark[i] = NONE;
    for (size_t k = 0; k < f->nodes; k++) find_rows(a, (uint32_t)k, first, after);
    for (size_t k = 0; k < f->nodes; k++) find_places(f, &f->node[k]);
  }
  free(first);
  free(after);
  return failed ? scl_fail_memory(rows * sizeof *f->row, 0, "a sparse factor") : SCL_OK;
}

/* ---- where numbers go ----------------------------------------------------------------------- */

static size_t position(const analysis *a, uint32_t row, uint32_t column) {
  const scl_sparse_factor *f = a->f;
  const scl_supernode *s = &f->node[a->node_of[column]];
  const size_t m = (size_t)s->columns + s->rows, panel = s->panel + (column - s->from) * m;
  if (row < s->from + s->columns) return panel + row - s->from;
  const uint32_t *rows = f->row + s->at;
  size_t low = 0, high = s->rows;
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    *(rows[middle] <= row ? &low : &high) = middle;
  }
  return panel + s->columns + low;
}

static scl_status find_targets(analysis *a) {
  scl_sparse_factor *f = a->f;
  const size_t most = f->stack > f->inverse_stack ? f->stack : f->inverse_stack;
  const size_t bytes = (2 * f->size + most) * sizeof *f->x, limit = scl_memory_limit();
  if (limit > 0 && bytes > limit) return scl_fail_memory(bytes, limit, "a sparse factor");
  f->to = malloc((a->count + 1) * sizeof *f->to);
  f->diagonal = malloc((a->n + 1) * sizeof *f->diagonal);
  f->x = malloc((f->size + 1) * sizeof *f->x);
  f->room = malloc((f->stack + 1) * sizeof *f->room);
  f->vector = malloc((a->n + 1) * sizeof *f->vector);
  if (f->to == NULL || f->diagonal == NULL || f->x == NULL || f->room == NULL ||
      f->vector == NULL) {
    return scl_fail_memory((f->size + f->stack) * sizeof *f->x, 0, "a sparse factor");
  }
  for (size_t j = 0; j < a->n; j++) {
    f->diagonal[a->place[j]] = position(a, a->place[j], a->place[j]);
    for (size_t k = a->start[j]; k < a->start[j + 1]; k++) {
      const uint32_t x = a->place[j], y = a->place[a->row[k]];
      f->to[k] = position(a, x < y ? y : x, x < y ? x : y);
    }
  }
  return SCL_OK;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static scl_status analyse(analysis *a, const uint32_t *order) {
  scl_sparse_factor *f = a->f;
  f->order = malloc((a->n + 1) * sizeof *f->order);
  if (f->order == NULL) return scl_fail_memory(a->n * sizeof *f->order, 0, "a sparse factor");
  SCL_TRY(begin(a));
  if (order != NULL) {
    memcpy(f->order, order, a->n * sizeof *order);
  } else {
    SCL_TRY(scl_sparse_order(a->n, a->start, a->row, f->order));
  }
  list_rows(a);
  find_parents(a);
  find_heights(a);
  order_by_tree(a);
  list_rows(a);
  find_parents(a);
  find_heights(a);
  SCL_TRY(find_nodes(a));
  link_nodes(a);
  SCL_TRY(measure_inverse(f));
  SCL_TRY(find_all_rows(a));
  return find_targets(a);
}

void scl_sparse_factor_release(scl_sparse_factor *f) {
  if (f == NULL) return;
  free(f->order);
  free(f->node);
  free(f->row);
  free(f->place);
  free(f->to);
  free(f->diagonal);
  free(f->x);
  free(f->room);
  free(f->vector);
  free(f);
}

scl_status scl_sparse_analyse(size_t n, const size_t *start, const uint32_t *row,
                              const uint32_t *order, scl_sparse_factor **out) {
  scl_sparse_factor *f = calloc(1, sizeof *f);
  if (f == NULL) return scl_fail_memory(sizeof *f, 0, "a sparse factor");
  f->n = n;
  f->count = start[n];
  analysis a = {.f = f, .n = n, .count = start[n], .start = start, .row = row};
  const scl_status status = analyse(&a, order);
  end(&a);
  if (status != SCL_OK) {
    scl_sparse_factor_release(f);
    return status;
  }
  *out = f;
  return SCL_OK;
}
