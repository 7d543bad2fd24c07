/* Blocks of observations that are conditioned together (Guinness, 2018). One after the other in the
 * order, points join the block of a neighbour or start one. Threads choose for a batch of points at
 * a time, from the blocks as they are before it; then one thread goes through the batch and chooses
 * again for those points of whose neighbours a block has changed meanwhile. So the blocks are those
 * of one thread. */
#include "ops/vecchia_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/sizes.h"
#include "base/threads.h"

enum {
  POLL = 1 << 16, /* points between two polls */
  TABLE_BITS = 12,
  TABLE = 1 << TABLE_BITS,
  SEEN = 64,
  MOST_THREADS = 16,
  THREADS_FROM = 32768, /* points before a batch */
  BATCH_SHARE = 512,    /* of the points before it: of larger ones, more are chosen again */
  MOST_BATCH = 2048
};

#ifdef __GNUC__
#define EXPECT_READ(at) __builtin_prefetch(at)
#else
#define EXPECT_READ(at) ((void)(at))
#endif

/* A point and its neighbours, to count those in a block: each is in its slot of a hash table, or in
 * a list if another one has the slot. */
typedef struct {
  int32_t table[TABLE]; /* -1: free */
  int32_t seen[SEEN];   /* blocks; one that was forgotten is examined again, without effect */
  int32_t *extra;
  size_t extras;
} point_set;

typedef struct {
  int32_t rows, members;
  int32_t changed; /* the number, from 1, of the point that joined last */
} block;

typedef struct {
  const int32_t *neighbours;
  size_t m, stride, most;
  size_t count, room; /* blocks, and for how many there is memory */
  block *blocks;
  int32_t *rows;   /* most x room: twice the position, and 1 for members */
  int32_t *of;     /* the block of each point, -1: none yet */
  point_set *sets; /* one for each thread */
  size_t from, to; /* points of the batch */
  int32_t *chosen; /* for each of them */
  size_t *place;   /* of each block among the sorted ones */
  int32_t *sorted;
} grouping;

/* 32 rows for few neighbours: GPUs have kernels for 32 and for 64. */
size_t scl_vecchia_block_rows(size_t m) {
  if (m < 16) return 32;
  return m < 48 ? 64 : 2 * (m + 1);
}

/* ---- sets of points ------------------------------------------------------------------------- */

static uint32_t place_of(int32_t point) {
  return (uint32_t)point * 2654435769u >> (32 - TABLE_BITS);
}

static void make_set(point_set *s, const int32_t *near, size_t count) {
  s->extras = 0;
  memset(s->seen, -1, sizeof s->seen);
  for (size_t k = 0; k < count; k++) {
    int32_t *place = s->table + place_of(near[k]);
    if (*place < 0) {
      *place = near[k];
    } else {
      s->extra[s->extras++] = near[k];
    }
  }
}

static void clear_set(point_set *s, const int32_t *near, size_t count) {
  for (size_t k = 0; k < count; k++) s->table[place_of(near[k])] = -1;
}

/* Removes the members of a block. */
static void remove_from_set(point_set *s, const int32_t *rows, size_t size) {
  for (size_t r = 0; r < size; r++) {
    int32_t point = rows[r] >> 1, *place = s->table + place_of(point);
    if (*place == point) *place = -1;
    for (size_t k = 0; k < s->extras; k++) {
      if (s->extra[k] == point) s->extra[k] = -1;
    }
  }
}

static size_t count_common(const point_set *s, const int32_t *rows, size_t size) {
  int common = 0;
  for (size_t r = 0; r < size; r++) {
    int32_t point = rows[r] >> 1;
    common += s->table[place_of(point)] == point;
  }
  for (size_t k = 0; k < s->extras; k++) {
    for (size_t r = 0; r < size; r++) common += rows[r] >> 1 == s->extra[k];
  }
  return (size_t)common;
}

/* ---- choosing and joining ------------------------------------------------------------------- */

static const int32_t *neighbours_of(const grouping *g, size_t i, size_t *count) {
  const int32_t *near = g->neighbours + i * g->stride;
  size_t size = g->m;
  while (size > 0 && near[size - 1] < 0) size--;
  *count = size;
  return near;
}

/* Prefetches the data that best_block() will read of point i, and their addresses for the next
 * point. Returns the number of blocks, because compilers drop calls of functions without result. */
static size_t expect(const grouping *g, size_t i, size_t end) {
  size_t count, known = 0;
  if (i + 1 < end) {
    const int32_t *later = neighbours_of(g, i + 1, &count);
    for (size_t k = 0; k < count; k++) EXPECT_READ(g->of + later[k]);
  }
  const int32_t *near = neighbours_of(g, i, &count);
  for (size_t k = 0; k < count; k++) {
    int32_t at = g->of[near[k]];
    if (at < 0) continue;
    const int32_t *rows = g->rows + (size_t)at * g->most;
    EXPECT_READ(g->blocks + at);
    for (size_t r = 0; r < g->most; r += 16) EXPECT_READ(rows + r);
    known++;
  }
  return known;
}

/* The neighbour's block for which joining saves the most: the sum of the squares of the sizes apart
 * less the square of the union's size, which must not be negative. Ties go to the nearest
 * neighbour; -1 if there is none. */
static int32_t best_block(const grouping *g, point_set *s, size_t i) {
  size_t count;
  const int32_t *near = neighbours_of(g, i, &count);
  int32_t best = -1;
  size_t size = count + 1;
  double most = -1;
  make_set(s, near, count);
  for (size_t k = 0; k < count; k++) {
    int32_t at = g->of[near[k]];
    if (at < 0 || s->seen[at % SEEN] == at) continue;
    s->seen[at % SEEN] = at;
    size_t old = (size_t)g->blocks[at].rows;
    size_t all = old + size - count_common(s, g->rows + (size_t)at * g->most, old);
    if (all > g->most) continue;
    double saved = (double)(old * old + size * size) - (double)(all * all);
    if (saved > most) most = saved, best = at;
  }
  clear_set(s, near, count);
  return best;
}

static void choose_part(void *arg, int part, int parts) {
  const grouping *g = arg;
  size_t count = g->to - g->from, low = count * (size_t)part / (size_t)parts;
  size_t high = count * ((size_t)part + 1) / (size_t)parts;
  for (size_t k = low, known = 1; k < high; k++) {
    size_t next = k + 1 < high ? expect(g, g->from + k + 1, g->from + high) : 0;
    g->chosen[k] = known > 0 ? best_block(g, g->sets + part, g->from + k) : -1;
    known = next;
  }
}

/* Whether all of the point's neighbours and their blocks are as before the batch. */
static bool is_current(const grouping *g, size_t i) {
  size_t count;
  const int32_t *near = neighbours_of(g, i, &count);
  for (size_t k = 0; k < count; k++) {
    int32_t at = g->of[near[k]];
    if ((size_t)near[k] >= g->from || (size_t)g->blocks[at].changed > g->from) return false;
  }
  return true;
}

static bool has_room(grouping *g) {
  if (g->count < g->room) return true;
  size_t room = g->room + g->room / 2 + 64;
  int32_t *rows = realloc(g->rows, room * g->most * sizeof *rows);
  if (rows == NULL) return false;
  g->rows = rows;
  block *blocks = realloc(g->blocks, room * sizeof *blocks);
  if (blocks == NULL) return false;
  g->blocks = blocks;
  scl_expect_writes(rows + g->room * g->most, (room - g->room) * g->most * sizeof *rows);
  g->room = room;
  return true;
}

/* Adds point i and its neighbours to block `at`, or to a new one. */
static bool join(grouping *g, int32_t at, size_t i) {
  size_t count;
  const int32_t *near = neighbours_of(g, i, &count);
  point_set *s = g->sets;
  if (at < 0) {
    if (!has_room(g)) return false;
    at = (int32_t)g->count++;
    g->blocks[at] = (block){0};
  }
  block *b = g->blocks + at;
  int32_t *rows = g->rows + (size_t)at * g->most;
  make_set(s, near, count);
  remove_from_set(s, rows, (size_t)b->rows);
  for (size_t k = 0; k < count; k++) {
    if (s->table[place_of(near[k])] == near[k]) rows[b->rows++] = 2 * near[k];
  }
  for (size_t k = 0; k < s->extras; k++) {
    if (s->extra[k] >= 0) rows[b->rows++] = 2 * s->extra[k];
  }
  clear_set(s, near, count);
  rows[b->rows++] = 2 * (int32_t)i + 1;
  b->members++;
  b->changed = (int32_t)i + 1;
  g->of[i] = at;
  return true;
}

/* Points from .. to - 1, of which threads have chosen the blocks if there is a team. */
static bool join_batch(grouping *g, scl_team *team) {
  scl_team_run(team, choose_part, g);
  for (size_t i = g->from; i < g->to; i++) {
    bool known = is_current(g, i);
    if (!join(g, known ? g->chosen[i - g->from] : best_block(g, g->sets, i), i)) return false;
  }
  return true;
}

/* ---- the result ----------------------------------------------------------------------------- */

/* Sorts rows, by parts of 1, 2, 4, ...; `other` has room for as many. */
static void sort_rows(int32_t *rows, size_t n, int32_t *other) {
  int32_t *from = rows, *to = other;
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t low = 0; low < n; low += 2 * width) {
      size_t middle = scl_min(low + width, n), high = scl_min(middle + width, n);
      size_t i = low, j = middle;
      for (size_t k = low; k < high; k++) {
        bool left = j == high || (i < middle && from[i] < from[j]);
        to[k] = left ? from[i++] : from[j++];
      }
    }
    int32_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != rows) memcpy(rows, from, n * sizeof *rows);
}

static void copy_part(void *arg, int part, int parts) {
  const grouping *g = arg;
  int32_t *other = g->sets[part].table; /* no longer needed: a block's rows fit it */
  size_t high = g->count * ((size_t)part + 1) / (size_t)parts;
  for (size_t b = g->count * (size_t)part / (size_t)parts; b < high; b++) {
    size_t size = (size_t)g->blocks[b].rows;
    int32_t *rows = g->sorted + g->place[b] * g->most;
    memcpy(rows, g->rows + b * g->most, size * sizeof *rows);
    sort_rows(rows, size, other);
    for (size_t r = size; r < g->most; r++) rows[r] = -1;
  }
}

/* A block's number of rows and members among all pairs of them. */
static size_t rank_of(const grouping *g, size_t b) {
  size_t size = (size_t)g->blocks[b].rows, members = (size_t)g->blocks[b].members;
  return (g->most - size) * g->most + g->most - members;
}

/* The blocks, those with most rows and, of these, most members first, else in the order of their
 * first members: engines take several at the same time. */
static scl_status sort_blocks(grouping *g, scl_team *team) {
  size_t ranks = g->most * g->most, bytes = g->count * g->most * sizeof *g->sorted;
  size_t *start = calloc(ranks + 1 + g->count, sizeof *start);
  g->sorted = malloc(bytes);
  if (start == NULL || g->sorted == NULL) {
    free(start);
    return scl_fail_memory(bytes, 0, "blocks of observations");
  }
  scl_expect_writes(g->sorted, bytes);
  g->place = start + ranks + 1;
  for (size_t b = 0; b < g->count; b++) start[rank_of(g, b) + 1]++;
  for (size_t s = 1; s <= ranks; s++) start[s] += start[s - 1];
  for (size_t b = 0; b < g->count; b++) g->place[b] = start[rank_of(g, b)]++;
  scl_team_run(team, copy_part, g);
  free(start);
  return SCL_OK;
}

/* Memory for n points; release() frees it, also if this fails. */
static scl_status begin(grouping *g, size_t n, int threads) {
  size_t parts = (size_t)threads;
  g->of = malloc(n * sizeof *g->of);
  g->chosen = malloc(MOST_BATCH * sizeof *g->chosen);
  g->sets = calloc(parts, sizeof *g->sets);
  int32_t *extra = malloc(parts * (g->m + 1) * sizeof *extra);
  if (g->sets != NULL) g->sets->extra = extra;
  if (g->of == NULL || g->chosen == NULL || g->sets == NULL || extra == NULL) {
    if (g->sets == NULL) free(extra);
    return scl_fail_memory(n * sizeof *g->of, 0, "blocks of observations");
  }
  scl_expect_writes(g->of, n * sizeof *g->of);
  memset(g->of, -1, n * sizeof *g->of);
  for (size_t t = 0; t < parts; t++) {
    memset(g->sets[t].table, -1, sizeof g->sets[t].table);
    g->sets[t].extra = extra + t * (g->m + 1);
  }
  return SCL_OK;
}

static void release(grouping *g) {
  if (g->sets != NULL) free(g->sets->extra);
  free(g->sets);
  free(g->chosen);
  free(g->of);
  free(g->rows);
  free(g->blocks);
  free(g->sorted);
}

scl_status scl_vecchia_group(const int32_t *neighbours, size_t n, size_t m, size_t stride,
                             int32_t **blocks, size_t *count) {
  grouping g = {
      .neighbours = neighbours, .m = m, .stride = stride, .most = scl_vecchia_block_rows(m)};
  int threads = n < 2 * THREADS_FROM ? 1 : (int)scl_min((size_t)scl_copy_threads(), MOST_THREADS);
  scl_team *team = threads > 1 ? scl_team_start(threads) : NULL;
  scl_status status;
  size_t polled = 0;
  SCL_GO(begin(&g, n, threads));
  for (; g.from < n; g.from = g.to) {
    if (g.from >= polled) {
      SCL_GO(scl_poll());
      polled = g.from + POLL;
    }
    size_t batch = scl_min(scl_max(g.from / BATCH_SHARE, 1), MOST_BATCH);
    g.to = scl_min(g.from + batch, n);
    if (!join_batch(&g, g.from < THREADS_FROM ? NULL : team)) {
      status = scl_fail_memory(g.room * g.most * sizeof *g.rows, 0, "blocks of observations");
      goto done;
    }
  }
  SCL_GO(sort_blocks(&g, team));
  *blocks = g.sorted;
  *count = g.count;
  g.sorted = NULL;
done:
  scl_team_stop(team);
  release(&g);
  return status;
}
