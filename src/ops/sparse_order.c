/* An elimination order by minimum degree. Eliminated columns are kept as elements, lists of the
 * columns that they join; columns with the same neighbours are one; degrees are upper bounds.
 * P. R. Amestoy, T. A. Davis, I. S. Duff, "An approximate minimum degree ordering algorithm",
 * 1996. */
#include <stdlib.h>
#include <string.h>

#include "ops/sparse_parts.h"

#define NONE SCL_SPARSE_ROOT

typedef struct {
  size_t n;
  size_t *start; /* of each column's list: its elements, then other columns */
  uint32_t *list;
  uint32_t *elements, *others;
  uint32_t *weight; /* how many columns it stands for; 0: it is part of another, or done */
  uint32_t *degree;
  uint32_t *head, *next, *previous; /* columns by degree */
  uint32_t *last, *after;           /* columns that are ordered behind it; of each, the next one */
  uint32_t **joined;      /* of an element: the columns that it joins; NULL: it is no element */
  uint32_t *joins, *size; /* how many, and what they weigh */
  uint32_t *outside;      /* of an element: what it has outside the current one */
  uint32_t *mark, *stamp, *room, *bucket, *same;
  uint64_t *hash;
  uint32_t step, lowest;
} ordering;

static void end(ordering *o) {
  uint32_t *each[] = {o->list, o->elements, o->others,  o->weight, o->degree, o->head,
                      o->next, o->previous, o->last,    o->after,  o->joins,  o->size,
                      o->mark, o->stamp,    o->outside, o->room,   o->bucket, o->same};
  for (size_t k = 0; k < sizeof each / sizeof *each; k++) free(each[k]);
  for (size_t k = 0; o->joined != NULL && k < o->n; k++) free(o->joined[k]);
  free(o->joined);
  free(o->start);
  free(o->hash);
}

static scl_status begin(ordering *o, size_t count) {
  const size_t n = o->n + 2;
  uint32_t **each[] = {&o->elements, &o->others, &o->weight, &o->degree,  &o->head, &o->next,
                       &o->previous, &o->last,   &o->after,  &o->joins,   &o->size, &o->mark,
                       &o->stamp,    &o->room,   &o->bucket, &o->outside, &o->same};
  bool failed = false;
  for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
    *each[k] = calloc(n, sizeof **each[k]);
    failed = failed || *each[k] == NULL;
  }
  o->start = calloc(n, sizeof *o->start);
  o->hash = calloc(n, sizeof *o->hash);
  o->joined = calloc(n, sizeof *o->joined);
  o->list = malloc((2 * count + 1) * sizeof *o->list);
  failed = failed || o->start == NULL || o->hash == NULL || o->joined == NULL || o->list == NULL;
  return failed ? scl_fail_memory((n + count) * sizeof *o->start, 0, "a sparse factor") : SCL_OK;
}

/* Both triangles. */
static void list_neighbours(ordering *o, const size_t *start, const uint32_t *row) {
  for (int pass = 0; pass < 2; pass++) {
    for (size_t j = 0; j < o->n; j++) {
      for (size_t k = start[j]; k < start[j + 1]; k++) {
        if (row[k] == j) continue;
        if (pass == 0) {
          o->others[j]++;
          o->others[row[k]]++;
        } else {
          o->list[o->start[j] + o->others[j]++] = row[k];
          o->list[o->start[row[k]] + o->others[row[k]]++] = (uint32_t)j;
        }
      }
    }
    for (size_t j = 0; pass == 0 && j < o->n; j++) {
      o->start[j + 1] = o->start[j] + o->others[j];
      o->others[j] = 0;
    }
  }
}

/* ---- columns by degree ---------------------------------------------------------------------- */

static void put(ordering *o, uint32_t i) {
  uint32_t *head = &o->head[o->degree[i]];
  o->previous[i] = NONE;
  o->next[i] = *head;
  if (*head != NONE) o->previous[*head] = i;
  *head = i;
  if (o->degree[i] < o->lowest) o->lowest = o->degree[i];
}

static void take(ordering *o, uint32_t i) {
  if (o->next[i] != NONE) o->previous[o->next[i]] = o->previous[i];
  if (o->previous[i] != NONE) {
    o->next[o->previous[i]] = o->next[i];
  } else {
    o->head[o->degree[i]] = o->next[i];
  }
}

/* Column j, and those behind it, are ordered behind column i. */
static void put_behind(ordering *o, uint32_t i, uint32_t j) {
  o->after[o->last[i]] = j;
  o->last[i] = o->last[j];
  o->weight[i] += o->weight[j];
  o->weight[j] = 0;
}

/* ---- elimination ---------------------------------------------------------------------------- */

static void join(ordering *o, uint32_t i, uint32_t *joins) {
  if (o->weight[i] == 0 || o->mark[i] == o->step) return;
  o->mark[i] = o->step;
  o->room[(*joins)++] = i;
  take(o, i);
}

static void drop_element(ordering *o, uint32_t e) {
  free(o->joined[e]);
  o->joined[e] = NULL;
}

/* The element of column p: the columns that it joins, which are marked and out of the lists. */
static bool make_element(ordering *o, uint32_t p) {
  const uint32_t *list = o->list + o->start[p];
  uint32_t joins = 0;
  o->mark[p] = ++o->step;
  for (uint32_t k = 0; k < o->elements[p]; k++) {
    const uint32_t e = list[k];
    if (o->joined[e] == NULL) continue;
    for (uint32_t i = 0; i < o->joins[e]; i++) join(o, o->joined[e][i], &joins);
    drop_element(o, e);
  }
  for (uint32_t k = 0; k < o->others[p]; k++) join(o, list[o->elements[p] + k], &joins);
  o->joined[p] = malloc((joins + 1u) * sizeof **o->joined);
  if (o->joined[p] == NULL) return false;
  memcpy(o->joined[p], o->room, joins * sizeof *o->room);
  o->joins[p] = joins;
  o->size[p] = 0;
  for (uint32_t k = 0; k < joins; k++) o->size[p] += o->weight[o->room[k]];
  return true;
}

/* The weight of each other element outside of this one, in outside[]. */
static void find_outside(ordering *o, uint32_t p) {
  for (uint32_t k = 0; k < o->joins[p]; k++) {
    const uint32_t i = o->joined[p][k], *list = o->list + o->start[i];
    for (uint32_t l = 0; l < o->elements[i]; l++) {
      const uint32_t e = list[l];
      if (o->joined[e] == NULL) continue;
      if (o->stamp[e] != o->step) {
        o->stamp[e] = o->step;
        o->outside[e] = o->size[e];
      }
      o->outside[e] -= o->weight[i];
    }
  }
}

/* The lists of a column of element p: without what p has. Returns the bound of its degree outside
 * of p. */
static uint64_t shorten(ordering *o, uint32_t i, uint32_t p) {
  uint32_t *list = o->list + o->start[i], kept = 0;
  uint64_t degree = 0, hash = p;
  for (uint32_t l = 0; l < o->elements[i]; l++) {
    const uint32_t e = list[l];
    if (o->joined[e] == NULL) continue;
    if (o->outside[e] == 0) continue; /* within p */
    degree += o->outside[e];
    hash += e;
    o->room[kept++] = e;
  }
  const uint32_t elements = kept + 1;
  o->room[kept++] = p;
  for (uint32_t l = 0; l < o->others[i]; l++) {
    const uint32_t j = list[o->elements[i] + l];
    if (o->weight[j] == 0 || o->mark[j] == o->step) continue;
    degree += o->weight[j];
    hash += j;
    o->room[kept++] = j;
  }
  memcpy(list, o->room, kept * sizeof *list);
  o->elements[i] = elements;
  o->others[i] = kept - elements;
  o->hash[i] = hash;
  return degree;
}

/* Whether two columns of an element have the same neighbours; those of i are stamped. */
static bool is_same(const ordering *o, uint32_t i, uint32_t j, uint32_t stamp) {
  if (o->elements[i] != o->elements[j] || o->others[i] != o->others[j]) return false;
  const uint32_t *list = o->list + o->start[j];
  for (uint32_t k = 0; k < o->elements[j] + o->others[j]; k++) {
    if (o->same[list[k]] != stamp) return false;
  }
  return true;
}

/* Makes one column of those with the same neighbours. */
static void unite(ordering *o, uint32_t p, uint32_t *stamp) {
  const size_t n = o->n;
  for (uint32_t k = 0; k < o->joins[p]; k++) {
    const uint32_t i = o->joined[p][k];
    if (o->weight[i] == 0) continue;
    uint32_t *bucket = &o->bucket[o->hash[i] % n], *link = bucket, j;
    const uint32_t *list = o->list + o->start[i];
    ++*stamp;
    for (uint32_t l = 0; l < o->elements[i] + o->others[i]; l++) o->same[list[l]] = *stamp;
    for (j = *link; j != NONE; j = o->next[j]) {
      if (o->hash[j] == o->hash[i] && is_same(o, i, j, *stamp)) break;
    }
    if (j != NONE) {
      put_behind(o, j, i);
    } else {
      o->next[i] = *bucket;
      *bucket = i;
    }
  }
  for (uint32_t k = 0; k < o->joins[p]; k++) o->bucket[o->hash[o->joined[p][k]] % n] = NONE;
}

static bool eliminate(ordering *o, uint32_t p, uint32_t *left, uint32_t *stamp) {
  uint32_t kept = 0;
  if (!make_element(o, p)) return false;
  find_outside(o, p);
  *left -= o->weight[p];
  for (uint32_t k = 0; k < o->joins[p]; k++) {
    const uint32_t i = o->joined[p][k];
    const uint64_t outside = shorten(o, i, p), before = o->degree[i];
    if (outside == 0) { /* eliminated with p */
      *left -= o->weight[i];
      o->size[p] -= o->weight[i];
      put_behind(o, p, i);
      continue;
    }
    o->degree[i] = (uint32_t)(before < outside ? before : outside);
  }
  unite(o, p, stamp);
  o->weight[p] = 0;
  for (uint32_t k = 0; k < o->joins[p]; k++) {
    const uint32_t i = o->joined[p][k];
    if (o->weight[i] == 0) continue;
    o->joined[p][kept++] = i;
    const uint32_t most = *left - o->weight[i], bound = o->degree[i] + o->size[p] - o->weight[i];
    o->degree[i] = bound < most ? bound : most;
    put(o, i);
  }
  o->joins[p] = kept;
  if (kept == 0) drop_element(o, p);
  return true;
}

static scl_status find_order(ordering *o, uint32_t *order) {
  uint32_t left = (uint32_t)o->n, stamp = 0;
  size_t count = 0;
  for (uint32_t i = 0; i < o->n; i++) {
    o->weight[i] = 1;
    o->last[i] = i;
    o->head[i] = o->bucket[i] = o->after[i] = NONE;
  }
  o->lowest = 0;
  for (uint32_t i = 0; i < o->n; i++) {
    o->degree[i] = o->others[i];
    put(o, i);
  }
  while (left > 0) {
    while (o->head[o->lowest] == NONE) o->lowest++;
    const uint32_t p = o->head[o->lowest];
    take(o, p);
    if (!eliminate(o, p, &left, &stamp)) {
      return scl_fail_memory(o->n * sizeof *order, 0, "a sparse factor");
    }
    for (uint32_t i = p; i != NONE; i = o->after[i]) order[count++] = i;
  }
  return SCL_OK;
}

scl_status scl_sparse_order(size_t n, const size_t *start, const uint32_t *row, uint32_t *order) {
  ordering o = {.n = n};
  scl_status status = begin(&o, start[n]);
  if (status == SCL_OK) {
    list_neighbours(&o, start, row);
    status = find_order(&o, order);
  }
  end(&o);
  return status;
}
