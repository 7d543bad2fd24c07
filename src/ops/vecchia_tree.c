#include "ops/vecchia_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lower bounds of distances are summed in another order than the distances. */
static const double slack = 1.0 - 1e-12;

static double *record_at(const scl_tree *tree, size_t i) {
  return tree->record + i * (tree->p + 1);
}

/* The first record of leaf k; leaves differ by at most one record. */
static size_t leaf_start(const scl_tree *tree, size_t k) {
  return (size_t)((double)tree->n * (double)k / (double)tree->leaves);
}

/* ---- building ------------------------------------------------------------------------------- */

static void swap_records(double *a, double *b, size_t width) {
  for (size_t c = 0; c < width; c++) {
    double t = a[c];
    a[c] = b[c];
    b[c] = t;
  }
}

/* Whether record a is before b along coordinate c; equal ones by index, so that the tree is the
 * same for any order of the points. */
static bool is_before(const double *a, const double *b, size_t c, size_t p) {
  return a[c] < b[c] || (a[c] == b[c] && a[p] < b[p]);
}

/* Moves the records low .. high - 1 so that `at` has the one that sorting along c would put there,
 * with smaller ones before it. Hoare's selection, with the middle of three as the pivot. */
static void select_record(const scl_tree *tree, size_t low, size_t high, size_t at, size_t c) {
  size_t p = tree->p, width = p + 1;
  while (high - low > 1) {
    double *first = record_at(tree, low), *last = record_at(tree, high - 1);
    double *middle = record_at(tree, low + (high - low) / 2);
    if (is_before(middle, first, c, p)) swap_records(middle, first, width);
    if (is_before(last, middle, c, p)) swap_records(last, middle, width);
    if (is_before(middle, first, c, p)) swap_records(middle, first, width);
    if (high - low <= 3) return;
    double pivot_value = middle[c], pivot_index = middle[p];
    size_t i = low, j = high - 1;
    for (;;) {
      double *a = record_at(tree, i), *b = record_at(tree, j);
      while (a[c] < pivot_value || (a[c] == pivot_value && a[p] < pivot_index)) a += width, i++;
      while (b[c] > pivot_value || (b[c] == pivot_value && b[p] > pivot_index)) b -= width, j--;
      if (i >= j) break;
      swap_records(a, b, width);
      i++;
      j--;
    }
    /* low .. i - 1 are not above the pivot, i .. high - 1 not below it; it is at i or before */
    if (at < i) {
      high = i;
    } else {
      low = i;
    }
    if (i == j && at == i) return;
  }
}

/* The coordinate with the largest range in records low .. high - 1, judged by some of them. */
static int widest(const scl_tree *tree, size_t low, size_t high) {
  int best = 0;
  double most = -1;
  size_t step = (high - low) / 512 + 1;
  for (size_t c = 0; c < tree->p; c++) {
    double least = INFINITY, greatest = -INFINITY;
    for (size_t i = low; i < high; i += step) {
      double v = record_at(tree, i)[c];
      if (v < least) least = v;
      if (v > greatest) greatest = v;
    }
    if (greatest - least > most) most = greatest - least, best = (int)c;
  }
  return best;
}

/* Node `node` spans `count` leaves from `leaf` on. */
static void split_node(scl_tree *tree, size_t node, size_t leaf, size_t count) {
  size_t low = leaf_start(tree, leaf), high = leaf_start(tree, leaf + count);
  size_t middle = leaf_start(tree, leaf + count / 2);
  int c = widest(tree, low, high);
  select_record(tree, low, high, middle, (size_t)c);
  tree->dimension[node] = c;
  tree->split[node] = record_at(tree, middle)[c];
}

static void split_below(scl_tree *tree, size_t node, size_t leaf, size_t count) {
  if (count < 2) return;
  split_node(tree, node, leaf, count);
  split_below(tree, 2 * node + 1, leaf, count / 2);
  split_below(tree, 2 * node + 2, leaf + count / 2, count / 2);
}

/* The nodes of one level are split by threads: below that level, each thread splits whole
 * subtrees. */
typedef struct {
  scl_tree *tree;
  size_t nodes; /* of the level */
  bool below;
} split_work;

static void split_level(void *arg, int part, int parts) {
  split_work *work = arg;
  size_t count = work->tree->leaves / work->nodes;
  for (size_t k = (size_t)part; k < work->nodes; k += (size_t)parts) {
    size_t node = work->nodes - 1 + k;
    if (work->below) {
      split_below(work->tree, node, k * count, count);
    } else if (count > 1) {
      split_node(work->tree, node, k * count, count);
    }
  }
}

typedef struct {
  scl_tree *tree;
  const double *points;
} fill_work;

static void fill_records(void *arg, int part, int parts) {
  const fill_work *w = arg;
  size_t n = w->tree->n, p = w->tree->p, end = n * ((size_t)part + 1) / (size_t)parts;
  for (size_t i = n * (size_t)part / (size_t)parts; i < end; i++) {
    double *to = record_at(w->tree, i);
    memcpy(to, w->points + i * p, p * sizeof(double));
    to[p] = (double)i;
  }
}

scl_status scl_tree_create(const double *points, size_t n, size_t p, scl_team *team, int threads,
                           scl_tree **out) {
  scl_tree *tree = calloc(1, sizeof *tree);
  size_t leaves = 1, bytes = n * (p + 1) * sizeof(double);
  while (n / leaves > SCL_TREE_LEAF) leaves *= 2;
  if (tree != NULL) {
    *tree = (scl_tree){.n = n,
                       .p = p,
                       .leaves = leaves,
                       .record = malloc(bytes + 8),
                       .split = malloc(leaves * sizeof(double)),
                       .dimension = malloc(leaves * sizeof(int))};
  }
  if (tree == NULL || tree->record == NULL || tree->split == NULL || tree->dimension == NULL) {
    scl_tree_release(tree);
    return scl_fail_memory(bytes, 0, "a search tree");
  }
  scl_expect_writes(tree->record, bytes);
  fill_work fill = {tree, points};
  scl_team_run(team, fill_records, &fill);
  split_work work = {tree, 1, false};
  size_t wanted = threads > 1 ? 4 * (size_t)threads : 1;
  while (work.nodes < wanted && 2 * work.nodes <= leaves) {
    scl_team_run(team, split_level, &work);
    work.nodes *= 2;
  }
  work.below = true;
  scl_team_run(team, split_level, &work);
  *out = tree;
  return SCL_OK;
}

void scl_tree_release(scl_tree *tree) {
  if (tree == NULL) return;
  free(tree->record);
  free(tree->split);
  free(tree->dimension);
  free(tree);
}

/* ---- searching ------------------------------------------------------------------------------ */

static double square_distance(const double *a, const double *b, size_t p) {
  double sum = 0;
  for (size_t c = 0; c < p; c++) sum += (a[c] - b[c]) * (a[c] - b[c]);
  return sum;
}

/* Takes a point into the sorted results, of which it is one: those beyond it move up, and the last
 * of m is lost. */
static void insert(scl_tree_search *s, double distance, int32_t index) {
  double *apart = s->distance;
  int32_t *indices = s->index;
  if (s->found < s->m) s->found++;
  size_t k = s->found - 1;
  for (; k > 0 && apart[k - 1] >= distance; k--) {
    if (apart[k - 1] == distance && indices[k - 1] < index) break;
    apart[k] = apart[k - 1];
    indices[k] = indices[k - 1];
  }
  apart[k] = distance;
  indices[k] = index;
}

/* A leaf's points, `count` records of p coordinates. Compiled for each small p. */
static inline void search_records(scl_tree_search *s, const double *record, size_t count,
                                  size_t p) {
  double distance[SCL_TREE_LEAF + 1], limit = (double)s->limit;
  double worst = s->found == s->m ? s->distance[s->m - 1] : INFINITY;
  for (size_t i = 0; i < count; i++) {
    distance[i] = square_distance(record + i * (p + 1), s->at, p);
  }
  for (size_t i = 0; i < count; i++) {
    double index = record[i * (p + 1) + p];
    if (distance[i] > worst || index >= limit) continue;
    if (s->found == s->m) {
      if (distance[i] == worst && index > (double)s->index[s->m - 1]) continue;
    }
    insert(s, distance[i], (int32_t)index);
    if (s->found == s->m) worst = s->distance[s->m - 1];
  }
}

static void search_leaf(scl_tree_search *s, size_t leaf) {
  const scl_tree *tree = s->tree;
  size_t low = leaf_start(tree, leaf), count = leaf_start(tree, leaf + 1) - low;
  const double *record = record_at(tree, low);
  switch (tree->p) {
  case 1:
    search_records(s, record, count, 1);
    break;
  case 2:
    search_records(s, record, count, 2);
    break;
  case 3:
    search_records(s, record, count, 3);
    break;
  default:
    search_records(s, record, count, tree->p);
  }
}

/* `bound`: the square of the distance from the node's box, at least. */
static void search_node(scl_tree_search *s, size_t node, double bound) {
  const scl_tree *tree = s->tree;
  if (node + 1 >= tree->leaves) {
    search_leaf(s, node + 1 - tree->leaves);
    return;
  }
  int c = tree->dimension[node];
  double beyond = s->at[c] - tree->split[node], old = s->offset[c];
  size_t near = 2 * node + (beyond < 0 ? 1 : 2);
  search_node(s, near, bound);
  double farther = bound - old * old + beyond * beyond;
  if (s->found == s->m && farther * slack > s->distance[s->m - 1]) return;
  s->offset[c] = beyond;
  search_node(s, 4 * node + 3 - near, farther);
  s->offset[c] = old;
}

void scl_tree_nearest(scl_tree_search *s) {
  s->found = 0;
  if (s->m == 0) return;
  memset(s->offset, 0, s->tree->p * sizeof(double));
  search_node(s, 0, 0.0);
}

static void shrink_node(const scl_tree *tree, size_t node, double bound, const double *at,
                        double radius, double *offset, double *closest) {
  size_t p = tree->p;
  if (node + 1 >= tree->leaves) {
    size_t leaf = node + 1 - tree->leaves, high = leaf_start(tree, leaf + 1);
    for (size_t i = leaf_start(tree, leaf); i < high; i++) {
      const double *record = record_at(tree, i);
      double distance = square_distance(record, at, p);
      size_t index = (size_t)record[p];
      if (distance < closest[index]) closest[index] = distance;
    }
    return;
  }
  int c = tree->dimension[node];
  double beyond = at[c] - tree->split[node], old = offset[c];
  size_t near = 2 * node + (beyond < 0 ? 1 : 2);
  shrink_node(tree, near, bound, at, radius, offset, closest);
  double farther = bound - old * old + beyond * beyond;
  if (farther * slack > radius) return;
  offset[c] = beyond;
  shrink_node(tree, 4 * node + 3 - near, farther, at, radius, offset, closest);
  offset[c] = old;
}

void scl_tree_shrink(const scl_tree *tree, const double *at, double radius, double *offset,
                     double *closest) {
  shrink_node(tree, 0, 0.0, at, radius, offset, closest);
}
