/* Blocks of observations that are conditioned together (Guinness, 2018). */
#include "ops/vecchia_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/sizes.h"

enum { POLL = 1 << 16 }; /* points between two polls */

typedef struct {
  size_t most, count, room; /* rows of a block; blocks, and for how many there is memory */
  int32_t *rows;            /* most x room: twice the position, and 1 for members */
  int32_t *size;            /* of each block */
  int32_t *of;              /* the block of each point */
  int32_t *mark;            /* of each point: the last one, from 1, that has it in its set */
} grouping;

/* 32 rows for few neighbours: GPUs have kernels for 32 and for 64. */
size_t scl_vecchia_block_rows(size_t m) {
  if (m < 16) return 32;
  return m < 48 ? 64 : 2 * (m + 1);
}

static bool has_room(grouping *g) {
  if (g->count < g->room) return true;
  size_t room = g->room + g->room / 2 + 64;
  int32_t *rows = realloc(g->rows, room * g->most * sizeof *rows);
  if (rows == NULL) return false;
  g->rows = rows;
  int32_t *size = realloc(g->size, room * sizeof *size);
  if (size == NULL) return false;
  g->size = size;
  g->room = room;
  return true;
}

/* The block, of those of the neighbours, for which joining saves the most: the sum of the squares
 * of the sizes apart less the square of the union's size, which must not be negative. Of equal ones
 * that of the nearest neighbour; the number of blocks if there is none. The points of the set are
 * marked with `mark`. */
static size_t best_block(const grouping *g, const int32_t *near, size_t count, int32_t mark) {
  size_t best = g->count, size = count + 1;
  double most = -1;
  for (size_t k = 0; k < count; k++) {
    size_t at = (size_t)g->of[near[k]], old = (size_t)g->size[at], common = 0;
    bool seen = false;
    for (size_t other = 0; other < k && !seen; other++) {
      seen = (size_t)g->of[near[other]] == at;
    }
    if (seen) continue;
    const int32_t *rows = g->rows + at * g->most;
    for (size_t r = 0; r < old; r++) common += g->mark[rows[r] / 2] == mark;
    size_t all = old + size - common;
    if (all > g->most) continue;
    double saved = (double)(old * old + size * size) - (double)(all * all);
    if (saved > most) most = saved, best = at;
  }
  return best;
}

/* Adds point i and its neighbours to a block. */
static void join(grouping *g, size_t at, const int32_t *near, size_t count, size_t i) {
  int32_t *rows = g->rows + at * g->most, *size = g->size + at, mark = (int32_t)i + 1;
  for (int32_t r = 0; r < *size; r++) {
    if (g->mark[rows[r] / 2] == mark) g->mark[rows[r] / 2] = 0;
  }
  for (size_t k = 0; k < count; k++) {
    if (g->mark[near[k]] == mark) rows[(*size)++] = 2 * near[k];
  }
  rows[(*size)++] = 2 * (int32_t)i + 1;
  g->of[i] = (int32_t)at;
}

static int compare(const void *a, const void *b) {
  int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
  return (left > right) - (left < right);
}

/* The place of a block's size and members among all pairs of them. */
static size_t rank_of(const grouping *g, size_t b) {
  const int32_t *rows = g->rows + b * g->most;
  size_t size = (size_t)g->size[b], members = 0;
  for (size_t r = 0; r < size; r++) members += (size_t)rows[r] % 2;
  return (g->most - size) * g->most + g->most - members;
}

/* The blocks, those with most rows and, of these, most members first, else in the order of their
 * first members: engines take several at the same time. */
static scl_status sort_blocks(const grouping *g, int32_t **blocks) {
  size_t ranks = g->most * g->most;
  size_t *start = calloc(ranks + 1, sizeof *start);
  int32_t *sorted = malloc(g->count * g->most * sizeof *sorted);
  if (start == NULL || sorted == NULL) {
    free(start);
    free(sorted);
    return scl_fail_memory(g->count * g->most * sizeof *sorted, 0, "blocks of observations");
  }
  for (size_t b = 0; b < g->count; b++) start[rank_of(g, b) + 1]++;
  for (size_t s = 1; s <= ranks; s++) start[s] += start[s - 1];
  for (size_t b = 0; b < g->count; b++) {
    size_t size = (size_t)g->size[b], to = start[rank_of(g, b)]++;
    int32_t *rows = sorted + to * g->most;
    memcpy(rows, g->rows + b * g->most, size * sizeof *rows);
    qsort(rows, size, sizeof *rows, compare);
    for (size_t r = size; r < g->most; r++) rows[r] = -1;
  }
  free(start);
  *blocks = sorted;
  return SCL_OK;
}

scl_status scl_vecchia_group(const int32_t *neighbours, size_t n, size_t m, size_t stride,
                             int32_t **blocks, size_t *count) {
  grouping g = {.most = scl_vecchia_block_rows(m)};
  scl_status status = SCL_OK;
  g.of = malloc(n * sizeof *g.of);
  g.mark = calloc(n, sizeof *g.mark);
  for (size_t i = 0; i < n; i++) {
    const int32_t *near = neighbours + i * stride;
    size_t size = 0;
    if (g.of == NULL || g.mark == NULL || !has_room(&g)) {
      status = scl_fail_memory(n * sizeof *g.of, 0, "blocks of observations");
      goto done;
    }
    if (i % POLL == 0) SCL_GO(scl_poll());
    for (; size < m && near[size] >= 0; size++) g.mark[near[size]] = (int32_t)i + 1;
    size_t at = best_block(&g, near, size, (int32_t)i + 1);
    if (at == g.count) g.size[g.count++] = 0;
    join(&g, at, near, size, i);
  }
  status = sort_blocks(&g, blocks);
  if (status == SCL_OK) *count = g.count;
done:
  free(g.rows);
  free(g.size);
  free(g.of);
  free(g.mark);
  return status;
}
