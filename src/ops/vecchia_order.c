#include "ops/vecchia_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/sizes.h"
#include "ops/vecchia_tree.h"

enum {
  CHUNK = 2048,        /* points that a thread searches for at a time */
  ROUND = 1 << 20,     /* points between two polls */
  THREADS_FROM = 4096, /* points */
  MOST_THREADS = 64,
  CODE_BITS = 60,  /* of the number of a cell */
  MOST_USED = 10,  /* coordinates that make cells */
  PIECES = 256,    /* of the points, for threads */
  FIRST_TREE = 512 /* points of the smallest tree */
};

static int threads_for(size_t n) {
  return n < THREADS_FROM ? 1 : (int)scl_min((size_t)scl_copy_threads(), MOST_THREADS);
}

/* ---- exact order ---------------------------------------------------------------------------- */

/* A heap of points by an upper bound of their distance from the points chosen so far: bounds are
 * made exact only when a point comes to the top. */
typedef struct {
  double key;
  int32_t index;
} heap_entry;

static bool is_above(heap_entry a, heap_entry b) {
  return a.key > b.key || (a.key == b.key && a.index < b.index);
}

static void sift_down(heap_entry *heap, size_t n, size_t at) {
  heap_entry moved = heap[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= n) break;
    if (child + 1 < n && is_above(heap[child + 1], heap[child])) child++;
    if (!is_above(heap[child], moved)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

/* The point nearest to the mean. */
static size_t central_point(const double *points, size_t n, size_t p, double *mean) {
  size_t best = 0;
  double least = INFINITY;
  memset(mean, 0, p * sizeof *mean);
  for (size_t i = 0; i < n; i++) {
    for (size_t c = 0; c < p; c++) mean[c] += points[i * p + c] / (double)n;
  }
  for (size_t i = 0; i < n; i++) {
    double sum = 0;
    for (size_t c = 0; c < p; c++) {
      sum += (points[i * p + c] - mean[c]) * (points[i * p + c] - mean[c]);
    }
    if (sum < least) least = sum, best = i;
  }
  return best;
}

static scl_status order_exactly(const double *points, size_t n, size_t p, int32_t *order) {
  scl_tree *tree = NULL;
  double *closest = malloc((n + 2 * p) * sizeof *closest), *offset = NULL;
  heap_entry *heap = malloc(n * sizeof *heap);
  scl_status status = SCL_OK;
  if (closest == NULL || heap == NULL) {
    status = scl_fail_memory(n * sizeof *heap, 0, "an order of points");
    goto done;
  }
  SCL_GO(scl_tree_create(points, n, p, NULL, 1, &tree));
  offset = closest + n;
  size_t first = central_point(points, n, p, offset), left = n;
  memset(offset, 0, 2 * p * sizeof *offset);
  for (size_t i = 0; i < n; i++) {
    closest[i] = INFINITY;
    heap[i] = (heap_entry){INFINITY, (int32_t)i};
  }
  heap[0].index = (int32_t)first; /* all keys are equal: the first point is the top */
  heap[first].index = 0;
  for (size_t k = 0; k < n;) {
    size_t i = (size_t)heap[0].index;
    if (closest[i] < heap[0].key) {
      heap[0].key = closest[i];
      sift_down(heap, left, 0);
      continue;
    }
    if (k % 256 == 0) SCL_GO(scl_poll());
    order[k++] = (int32_t)i;
    scl_tree_shrink(tree, points + i * p, heap[0].key, offset, closest);
    heap[0] = heap[--left];
    sift_down(heap, left, 0);
  }
done:
  scl_tree_release(tree);
  free(closest);
  free(heap);
  return status;
}

/* ---- by levels of a grid -------------------------------------------------------------------- */

typedef struct {
  uint64_t key;
  int32_t index;
} keyed;

enum { BUCKETS = 1 << 12 }; /* the counters of a part, 32 KiB, stay in the first cache */

/* Elements that a team sorts by the bits of their keys above `shift`. Each part has a range of
 * them, and its own places in each bucket; parts of one step are those of the next. */
typedef struct {
  const keyed *from;
  keyed *to;
  size_t n, *start; /* of each bucket, and the end */
  size_t *next; /* for each part and bucket: the number of elements, then the next one's place */
  uint64_t bits[MOST_THREADS]; /* of all keys, for each part */
  int shift;
} buckets;

static size_t part_start(size_t n, int part, int parts) {
  return n * (size_t)part / (size_t)parts;
}

static void find_bits(void *arg, int part, int parts) {
  buckets *w = arg;
  uint64_t all = 0;
  size_t high = part_start(w->n, part + 1, parts);
  for (size_t i = part_start(w->n, part, parts); i < high; i++) all |= w->from[i].key;
  w->bits[part] = all;
}

static void count_buckets(void *arg, int part, int parts) {
  const buckets *w = arg;
  size_t *count = w->next + (size_t)part * BUCKETS, high = part_start(w->n, part + 1, parts);
  for (size_t i = part_start(w->n, part, parts); i < high; i++) {
    count[w->from[i].key >> w->shift]++;
  }
}

static void fill_buckets(void *arg, int part, int parts) {
  const buckets *w = arg;
  size_t *next = w->next + (size_t)part * BUCKETS, high = part_start(w->n, part + 1, parts);
  for (size_t i = part_start(w->n, part, parts); i < high; i++) {
    w->to[next[w->from[i].key >> w->shift]++] = w->from[i];
  }
}

static int compare_keyed(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

static void sort_buckets(void *arg, int part, int parts) {
  const buckets *w = arg;
  for (size_t k = (size_t)part; k < BUCKETS; k += (size_t)parts) {
    qsort(w->to + w->start[k], w->start[k + 1] - w->start[k], sizeof *w->to, compare_keyed);
  }
}

/* Sorts a by key into `sorted`: first into buckets, by the highest bits that keys have. */
static scl_status sort_keyed(const keyed *a, keyed *sorted, size_t n, scl_team *team, int threads) {
  size_t parts = (size_t)threads, count = (parts + 1) * BUCKETS + 1, at = 0;
  size_t *start = calloc(count, sizeof *start);
  if (start == NULL) return scl_fail_memory(count * sizeof *start, 0, "an order of points");
  buckets w = {.from = a, .to = sorted, .n = n, .start = start, .next = start + BUCKETS + 1};
  uint64_t all = 0;
  scl_team_run(team, find_bits, &w);
  for (size_t k = 0; k < parts; k++) all |= w.bits[k];
  while (all >> w.shift >= BUCKETS) w.shift++;
  scl_team_run(team, count_buckets, &w);
  for (size_t k = 0; k < BUCKETS; k++) {
    start[k] = at;
    for (size_t t = 0; t < parts; t++) {
      size_t elements = w.next[t * BUCKETS + k];
      w.next[t * BUCKETS + k] = at;
      at += elements;
    }
  }
  start[BUCKETS] = at;
  scl_team_run(team, fill_buckets, &w);
  scl_team_run(team, sort_buckets, &w);
  free(start);
  return SCL_OK;
}

/* A pseudo-random number, the same on every machine. */
static uint64_t scatter(uint64_t x) {
  x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

typedef struct {
  const double *points;
  size_t n, p;
  size_t used; /* coordinates that make cells: those of the largest range */
  int bits;    /* levels */
  int column[MOST_USED];
  double least[MOST_USED];
  double cells; /* along the largest range, per unit */
  keyed *unsorted, *sorted;
  unsigned char *level_of; /* of the points as sorted */
  int first, last;         /* levels */
  size_t *piece;           /* where parts of the sorted points start, between cells of `first` */
} grid;

static void measure(grid *g) {
  double range[MOST_USED + 1];
  g->used = 0;
  for (size_t c = 0; c < g->p; c++) {
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < g->n; i++) {
      double v = g->points[i * g->p + c];
      if (v < least) least = v;
      if (v > most) most = v;
    }
    if (g->used == MOST_USED && !(most - least > range[MOST_USED - 1])) continue;
    size_t at = g->used < MOST_USED ? g->used++ : MOST_USED - 1;
    for (; at > 0 && range[at - 1] < most - least; at--) {
      range[at] = range[at - 1];
      g->least[at] = g->least[at - 1];
      g->column[at] = g->column[at - 1];
    }
    range[at] = most - least;
    g->least[at] = least;
    g->column[at] = (int)c;
  }
  g->bits = CODE_BITS / (int)g->used;
  if (g->bits > 24) g->bits = 24;
  g->cells = range[0] > 0 ? ldexp(1.0 - 1e-9, g->bits) / range[0] : 0.0;
}

/* The cell of a point: a bit of each coordinate in turn, the highest ones first. */
static uint64_t cell_of(const grid *g, size_t i) {
  uint64_t code = 0, at[MOST_USED];
  for (size_t u = 0; u < g->used; u++) {
    at[u] = (uint64_t)((g->points[i * g->p + (size_t)g->column[u]] - g->least[u]) * g->cells);
  }
  for (int bit = g->bits; bit-- > 0;) {
    for (size_t u = 0; u < g->used; u++) code = code << 1 | (at[u] >> bit & 1);
  }
  return code;
}

static void find_cells(void *arg, int part, int parts) {
  grid *g = arg;
  size_t low = g->n * (size_t)part / (size_t)parts,
         high = g->n * ((size_t)part + 1) / (size_t)parts;
  for (size_t i = low; i < high; i++) g->unsorted[i] = (keyed){cell_of(g, i), (int32_t)i};
}

/* The point of the cell sorted[low .. high - 1] of a level that is nearest to its centre, judged by
 * the next five bits of each coordinate. */
static size_t nearest_centre(const grid *g, size_t low, size_t high, int level) {
  size_t best = low;
  int depth = g->bits - level < 5 ? g->bits - level : 5, used = (int)g->used, least = INT32_MAX;
  int shift = (g->bits - level - depth) * used;
  for (size_t i = low; i < high; i++) {
    uint64_t code = g->sorted[i].key >> shift;
    int sum = 0;
    for (int u = 0; u < used; u++) {
      int at = 0;
      for (int d = 0; d < depth; d++) at |= (int)(code >> (d * used + u) & 1) << d;
      at = 2 * at + 1 - (1 << depth);
      sum += at * at;
    }
    if (sum < least) least = sum, best = i;
  }
  return best;
}

/* Levels first .. last of the points low .. high - 1, which are whole cells of `first`. */
static void choose_levels(const grid *g, size_t begin, size_t end) {
  for (int level = g->first; level <= g->last; level++) {
    int shift = (g->bits - level) * (int)g->used;
    for (size_t low = begin, high; low < end; low = high) {
      bool chosen = false;
      uint64_t cell = g->sorted[low].key >> shift;
      for (high = low; high < end && g->sorted[high].key >> shift == cell; high++) {
        chosen = chosen || g->level_of[high] <= level;
      }
      if (!chosen) g->level_of[nearest_centre(g, low, high, level)] = (unsigned char)level;
    }
  }
}

static void choose_pieces(void *arg, int part, int parts) {
  const grid *g = arg;
  for (size_t k = (size_t)part; k < PIECES; k += (size_t)parts) {
    choose_levels(g, g->piece[k], g->piece[k + 1]);
  }
}

/* Early levels for all points, then by pieces that begin with a new cell. */
static void choose_all(grid *g, scl_team *team) {
  size_t piece[PIECES + 1] = {0};
  g->first = 0;
  g->last = g->used > 2 ? 1 : 2;
  if (g->last > g->bits) g->last = g->bits;
  choose_levels(g, 0, g->n);
  g->first = g->last + 1;
  g->last = g->bits;
  int shift = (g->bits - g->first) * (int)g->used;
  for (size_t k = 1; k <= PIECES; k++) {
    size_t at = g->n * k / PIECES;
    if (at < piece[k - 1]) at = piece[k - 1];
    while (at > 0 && at < g->n && shift >= 0 &&
           g->sorted[at].key >> shift == g->sorted[at - 1].key >> shift) {
      at++;
    }
    piece[k] = at;
  }
  g->piece = piece;
  if (g->first <= g->last) scl_team_run(team, choose_pieces, g);
  g->piece = NULL;
}

/* A level's points in no order: cells are in rows. */
static void find_keys(void *arg, int part, int parts) {
  grid *g = arg;
  size_t low = g->n * (size_t)part / (size_t)parts,
         high = g->n * ((size_t)part + 1) / (size_t)parts;
  for (size_t i = low; i < high; i++) {
    int32_t index = g->sorted[i].index;
    uint64_t key = (uint64_t)g->level_of[i] << 32 | scatter((uint64_t)index) >> 32;
    g->unsorted[i] = (keyed){key, index};
  }
}

static scl_status order_by_levels(const double *points, size_t n, size_t p, int32_t *order) {
  grid g = {.points = points, .n = n, .p = p};
  int threads = threads_for(n);
  scl_team *team = threads > 1 ? scl_team_start(threads) : NULL;
  scl_status status = SCL_OK;
  g.unsorted = malloc(2 * n * sizeof *g.sorted);
  g.level_of = malloc(n);
  if (g.unsorted == NULL || g.level_of == NULL) {
    status = scl_fail_memory(2 * n * sizeof *g.sorted, 0, "an order of points");
    goto done;
  }
  g.sorted = g.unsorted + n;
  scl_expect_writes(g.unsorted, 2 * n * sizeof *g.sorted);
  measure(&g);
  memset(g.level_of, g.bits + 1, n);
  scl_team_run(team, find_cells, &g);
  SCL_GO(sort_keyed(g.unsorted, g.sorted, n, team, threads));
  SCL_GO(scl_poll());
  choose_all(&g, team);
  SCL_GO(scl_poll());
  scl_team_run(team, find_keys, &g);
  SCL_GO(sort_keyed(g.unsorted, g.sorted, n, team, threads));
  for (size_t i = 0; i < n; i++) order[i] = g.sorted[i].index;
done:
  scl_team_stop(team);
  free(g.unsorted);
  free(g.level_of);
  return status;
}

/* In many dimensions the distance to the next point falls slowly, so that each step of the exact
 * order looks at a large part of all points. */
size_t scl_vecchia_exact_order(size_t p) {
  return p <= 3 ? 100000 : p <= 6 ? 20000 : 5000;
}

scl_status scl_vecchia_order(const double *points, size_t n, size_t p, int32_t *order) {
  if (n == 0) return SCL_OK;
  return n <= scl_vecchia_exact_order(p) ? order_exactly(points, n, p, order)
                                         : order_by_levels(points, n, p, order);
}

/* ---- neighbours ----------------------------------------------------------------------------- */

typedef struct {
  const scl_tree *tree;
  const double *at; /* NULL: the tree's own points from `least` on, each among those before */
  size_t from, to, least, p, m, stride;
  int32_t *neighbours;
  double *memory; /* 2 * p + m + 1 numbers for each part */
} search_work;

static void search_part(void *arg, int part, int parts) {
  const search_work *w = arg;
  double *memory = w->memory + (size_t)part * (2 * w->p + w->m + 1);
  scl_tree_search s = {.tree = w->tree, .m = w->m, .offset = memory, .distance = memory + 2 * w->p};
  for (size_t low = w->from + (size_t)part * CHUNK; low < w->to; low += (size_t)parts * CHUNK) {
    for (size_t k = low; k < scl_min(low + CHUNK, w->to); k++) {
      size_t i = k;
      s.at = w->at == NULL ? w->tree->record + k * (w->p + 1) : w->at + k * w->p;
      s.limit = INT32_MAX;
      if (w->at == NULL) {
        i = (size_t)s.at[w->p];
        if (i < w->least) continue;
        s.limit = (int64_t)i;
      }
      s.index = w->neighbours + i * w->stride;
      scl_tree_nearest(&s);
      for (size_t j = s.found; j < w->stride; j++) s.index[j] = -1;
    }
  }
}

/* All points of the work, in rounds. */
static scl_status search_all(search_work *w, size_t count, scl_team *team) {
  for (w->from = 0; w->from < count; w->from = w->to) {
    w->to = scl_min(w->from + ROUND, count);
    SCL_TRY(scl_poll());
    scl_team_run(team, search_part, w);
  }
  return SCL_OK;
}

static scl_status begin_search(search_work *w, int threads) {
  size_t count = (size_t)threads * (2 * w->p + w->m + 1);
  w->memory = malloc(count * sizeof(double));
  return w->memory == NULL ? scl_fail_memory(count * sizeof(double), 0, "a workspace") : SCL_OK;
}

/* A tree of the first points for each half of them, so that at least half of the points that a
 * search finds are valid. */
scl_status scl_vecchia_neighbours(const double *points, size_t n, size_t p, size_t m, size_t stride,
                                  int32_t *neighbours) {
  search_work w = {.p = p, .m = m, .stride = stride, .neighbours = neighbours};
  int threads = threads_for(n);
  scl_team *team = threads > 1 ? scl_team_start(threads) : NULL;
  scl_tree *tree = NULL;
  scl_status status;
  SCL_GO(begin_search(&w, threads));
  for (size_t size = n, next; size > 0; size = next) {
    next = size > FIRST_TREE ? size / 2 : 0;
    SCL_GO(scl_tree_create(points, size, p, team, threads, &tree));
    w.tree = tree;
    w.least = next;
    SCL_GO(search_all(&w, size, team));
    scl_tree_release(tree);
    tree = NULL;
  }
done:
  scl_team_stop(team);
  scl_tree_release(tree);
  free(w.memory);
  return status;
}

scl_status scl_vecchia_nearest(const double *points, size_t n, size_t p, const double *at,
                               size_t count, size_t m, size_t stride, int32_t *neighbours) {
  search_work w = {.at = at, .p = p, .m = m, .stride = stride, .neighbours = neighbours};
  int threads = threads_for(scl_max(n, count));
  scl_team *team = threads > 1 ? scl_team_start(threads) : NULL;
  scl_tree *tree = NULL;
  scl_status status;
  SCL_GO(begin_search(&w, threads));
  SCL_GO(scl_tree_create(points, n, p, team, threads, &tree));
  w.tree = tree;
  status = search_all(&w, count, team);
done:
  scl_team_stop(team);
  scl_tree_release(tree);
  free(w.memory);
  return status;
}
