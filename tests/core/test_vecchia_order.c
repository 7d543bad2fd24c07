/* The order and the neighbours of Vecchia's approximation, against all points. */
#include "ops/vecchia_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "test.h"

static double square_apart(const double *a, const double *b, size_t p) {
  double sum = 0;
  for (size_t c = 0; c < p; c++) sum += (a[c] - b[c]) * (a[c] - b[c]);
  return sum;
}

/* `kind`: 0 random, 1 a grid (ties everywhere), 2 on a line, 3 each point several times. */
static double *new_points(size_t n, size_t p, int kind) {
  double *x = test_alloc(n * p * sizeof *x);
  test_fill(x, n * p);
  for (size_t i = 0; i < n; i++) {
    for (size_t c = 0; c < p; c++) {
      if (kind == 1) x[i * p + c] = (double)(c == 0 ? i % 9 : i / 9 % 5);
      if (kind == 2 && c > 0) x[i * p + c] = 2 * x[i * p];
      if (kind == 3) x[i * p + c] = x[i % (n / 3 + 1) * p + c];
    }
  }
  return x;
}

static void check_permutation(const int32_t *order, size_t n) {
  bool *seen = calloc(n, sizeof *seen);
  for (size_t k = 0; seen != NULL && k < n; k++) {
    CHECK(order[k] >= 0 && (size_t)order[k] < n && !seen[order[k]]);
    seen[order[k]] = true;
  }
  free(seen);
}

/* Each point is as far from those before it as any that is left. */
static void check_order(size_t n, size_t p, int kind) {
  double *x = new_points(n, p, kind), *closest = test_alloc(n * sizeof *closest);
  int32_t *order = test_alloc(n * sizeof *order);
  REQUIRE_OK(scl_vecchia_order(x, n, p, order));
  check_permutation(order, n);
  for (size_t i = 0; i < n; i++) closest[i] = INFINITY;
  for (size_t k = 0; k < n; k++) {
    const double *at = x + (size_t)order[k] * p;
    for (size_t i = k; i < n; i++) CHECK(closest[order[k]] >= closest[order[i]]);
    for (size_t i = 0; i < n; i++) closest[i] = fmin(closest[i], square_apart(x + i * p, at, p));
  }
  FREE(x, closest, order);
}

/* `near` are m of the points 0 .. limit - 1, or all of them, nearest first, and no others nearer.
 */
static void check_nearest(const double *x, size_t p, size_t limit, const double *at,
                          const int32_t *near, size_t m) {
  double last = 0;
  size_t found = 0, closer = 0;
  for (; found < m && near[found] >= 0; found++) {
    CHECK((size_t)near[found] < limit);
    double apart = square_apart(x + (size_t)near[found] * p, at, p);
    CHECK(apart >= last);
    if (apart == last && found > 0) CHECK(near[found] > near[found - 1]);
    last = apart;
  }
  CHECK(found == (m < limit ? m : limit));
  for (size_t k = found; k < m; k++) CHECK(near[k] == -1);
  for (size_t j = 0; j < limit; j++) closer += square_apart(x + j * p, at, p) < last;
  CHECK(closer < found || found == 0);
}

static void check_neighbours(size_t n, size_t p, size_t m, int kind) {
  size_t stride = m + 1, count = 23;
  double *x = new_points(n, p, kind), *at = new_points(count, p, 0);
  int32_t *near = test_alloc((n + count) * stride * sizeof *near);
  REQUIRE_OK(scl_vecchia_neighbours(x, n, p, m, stride, near));
  for (size_t i = 0; i < n; i++) {
    check_nearest(x, p, i, x + i * p, near + i * stride, m);
    CHECK(near[i * stride + m] == -1);
  }
  REQUIRE_OK(scl_vecchia_nearest(x, n, p, at, count, m, stride, near));
  for (size_t i = 0; i < count; i++) check_nearest(x, p, n, at + i * p, near + i * stride, m);
  FREE(x, at, near);
}

/* Beyond the exact order: all points, and the first ones farther apart than others. */
static void check_levels(void) {
  size_t p = 4, n = scl_vecchia_exact_order(p) + 1, count = 80;
  double *x = new_points(n, p, 0), least[2] = {INFINITY, INFINITY};
  int32_t *order = test_alloc(n * sizeof *order);
  REQUIRE_OK(scl_vecchia_order(x, n, p, order));
  check_permutation(order, n);
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < i; j++) {
      const double *a = x + (size_t)order[i] * p, *b = x + (size_t)order[j] * p;
      least[0] = fmin(least[0], square_apart(a, b, p));
      least[1] = fmin(least[1], square_apart(x + i * p, x + j * p, p));
    }
  }
  CHECK(least[0] > 2 * least[1]);
  FREE(x, order);
}

/* The same order and neighbours with any number of threads. */
static void check_threads(size_t p, int kind) {
  size_t n = scl_vecchia_exact_order(p) + 101, m = 6;
  double *x = new_points(n, p, kind);
  int32_t *order = test_alloc(2 * n * sizeof *order), *near = test_alloc(2 * n * m * sizeof *near);
  for (int threads = 1; threads < 14; threads += 3) {
    int32_t *own_order = order + (threads == 1 ? 0 : n), *own = near + (threads == 1 ? 0 : n * m);
    scl_thread_share(threads);
    REQUIRE_OK(scl_vecchia_order(x, n, p, own_order));
    check_permutation(own_order, n);
    REQUIRE_OK(scl_vecchia_neighbours(x, n, p, m, m, own));
    CHECK(memcmp(order, own_order, n * sizeof *order) == 0);
    CHECK(memcmp(near, own, n * m * sizeof *near) == 0);
  }
  scl_thread_share(0);
  FREE(x, order, near);
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* Blocks by the rule of scl_vecchia_group(), one row after the other, in the order of their first
 * members: `most` rows each. */
typedef struct {
  size_t most, count;
  int32_t *rows, *size, *of;
} plain_blocks;

static size_t rows_with(const plain_blocks *b, size_t at, const int32_t *near, size_t count) {
  size_t all = (size_t)b->size[at] + 1;
  for (size_t k = 0; k < count; k++) {
    bool has = false;
    for (int32_t r = 0; r < b->size[at]; r++) has = has || b->rows[at * b->most + r] / 2 == near[k];
    all += !has;
  }
  return all;
}

static void join_plainly(plain_blocks *b, const int32_t *near, size_t count, size_t i) {
  double most = -1;
  size_t best = b->count;
  for (size_t k = 0; k < count; k++) {
    size_t at = (size_t)b->of[near[k]], all = rows_with(b, at, near, count);
    double old = b->size[at], own = (double)(count + 1), square = (double)(all * all);
    if (all > b->most || old * old + own * own - square <= most) continue;
    most = old * old + own * own - square;
    best = at;
  }
  int32_t *rows = b->rows + best * b->most, *size = b->size + best;
  if (best == b->count) b->count++;
  for (size_t k = 0; k < count; k++) {
    bool has = false;
    for (int32_t r = 0; r < *size; r++) has = has || rows[r] / 2 == near[k];
    if (!has) rows[(*size)++] = 2 * near[k];
  }
  rows[(*size)++] = 2 * (int32_t)i + 1;
  b->of[i] = (int32_t)best;
}

/* Each block of the result is the plain one of its first member, in the order of rows; and the
 * blocks are sorted by rows and members. */
static void check_sorted(const plain_blocks *b, const int32_t *blocks) {
  size_t last_size = b->most, last_members = b->most, last_first = 0;
  for (size_t k = 0; k < b->count; k++) {
    const int32_t *rows = blocks + k * b->most;
    size_t size = 0, members = 0, first = 0, found = 0;
    for (; size < b->most && rows[size] >= 0; size++) {
      if (rows[size] % 2 == 1 && members++ == 0) first = (size_t)rows[size] / 2;
      CHECK(size == 0 || rows[size] > rows[size - 1]);
    }
    for (size_t r = size; r < b->most; r++) CHECK(rows[r] == -1);
    size_t at = (size_t)b->of[first];
    CHECK(members > 0 && (size_t)b->size[at] == size);
    for (size_t r = 0; r < size; r++) {
      for (size_t q = 0; q < (size_t)b->size[at]; q++)
        found += rows[r] == b->rows[at * b->most + q];
    }
    CHECK(found == size);
    bool same = size == last_size && members == last_members;
    CHECK(size < last_size || (size == last_size && members < last_members) ||
          (same && (k == 0 || first > last_first)));
    last_size = size;
    last_members = members;
    last_first = first;
  }
}

static void check_blocks(size_t n, size_t p, size_t m, int kind) {
  double *x = new_points(n, p, kind);
  plain_blocks b = {.most = scl_vecchia_block_rows(m)};
  int32_t *near = test_alloc(n * m * sizeof *near);
  b.rows = test_alloc(n * b.most * sizeof *b.rows);
  b.size = test_alloc(2 * n * sizeof *b.size);
  b.of = b.size + n;
  memset(b.size, 0, n * sizeof *b.size);
  REQUIRE_OK(scl_vecchia_neighbours(x, n, p, m, m, near));
  for (size_t i = 0; i < n; i++) join_plainly(&b, near + i * m, i < m ? i : m, i);
  for (int threads = 1; threads < 6; threads += 2) {
    int32_t *blocks = NULL;
    size_t count = 0;
    scl_thread_share(threads);
    REQUIRE_OK(scl_vecchia_group(near, n, m, m, &blocks, &count));
    CHECK(count == b.count);
    if (count == b.count) check_sorted(&b, blocks);
    free(blocks);
  }
  scl_thread_share(0);
  FREE(x, near, b.rows, b.size);
}

void test_vecchia_order(scl_context *ctx) {
  if (!scl_context_is_host(ctx)) return; /* the same there */
  for (int kind = 0; kind < 4; kind++) {
    for (size_t p = 1; p < 4; p++) check_order(90 + 13 * p, p, kind);
    check_neighbours(1200, 2, 5, kind);
    check_neighbours(70, 6, 9, kind);
    check_order(1, 2, kind);
    check_neighbours(1, 2, 3, kind);
  }
  check_levels();
  check_threads(7, 0);
  check_threads(8, 3);
  for (int kind = 0; kind < 4; kind++) check_blocks(400, 2, 7, kind);
  check_blocks(1, 1, 1, 0);
  check_blocks(900, 3, 21, 0);
  check_blocks(500, 2, 120, 0);
  check_blocks(66500, 2, 6, 0); /* batches that threads share */
}
