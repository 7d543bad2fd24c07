/* Transfers of blocks with any view between host memory and an engine, and the order of work that
 * touches the same buffers. */
#include <stdlib.h>
#include <string.h>

#include "engine/transfer/pinned.h"
#include "test.h"

/* What a block uploaded with `view` from x (leading dimension ld) holds at (i, j). */
static double expected(scl_view view, const double *x, size_t ld, size_t i, size_t j) {
  if (view == SCL_LOWER && i < j) return 0;
  if (view == SCL_UPPER && i > j) return 0;
  if (view == SCL_SYMMETRIC && i < j) return x[j + i * ld];
  return x[i + j * ld];
}

static size_t count_wrong(scl_view view, const double *x, size_t ld_x, const double *y, size_t ld_y,
                          size_t m, size_t n) {
  size_t wrong = 0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) wrong += y[i + j * ld_y] != expected(view, x, ld_x, i, j);
  }
  return wrong;
}

/* Elements of a host array outside its m x n block that are not `mark`. */
static size_t count_outside(const double *y, size_t ld, size_t m, size_t n, double mark) {
  size_t wrong = 0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = m; i < ld; i++) wrong += y[i + j * ld] != mark;
  }
  return wrong;
}

static void set_all(double *x, size_t n, double value) {
  for (size_t i = 0; i < n; i++) x[i] = value;
}

/* An m x n block with the given view up, and down again with that view and as a general one. The
 * block lies `at` rows and columns inside a larger matrix; the host arrays have `gap` spare rows.
 */
static void check_trip(scl_context *ctx, scl_view view, size_t m, size_t n, size_t at, size_t gap) {
  size_t ld = m + gap, rows = m + 2 * at, cols = n + 2 * at;
  double *x = test_alloc(ld * n * sizeof *x), *y = test_alloc(ld * n * sizeof *y);
  double *all = test_alloc(rows * cols * sizeof *all);
  scl_block big = {.buffer = NULL};
  test_fill(x, ld * n);
  set_all(y, ld * n, 7);
  set_all(all, rows * cols, 9);
  scl_status status = scl_block_create(ctx, rows, cols, &big);
  CHECK_OK(status);
  if (status == SCL_OK) {
    scl_block part = scl_block_part(big, at, at, m, n);
    CHECK_OK(ctx->engine->upload(ctx, SCL_GENERAL, all, rows, big));
    CHECK_OK(ctx->engine->upload(ctx, view, x, ld, part));
    CHECK_OK(ctx->engine->download(ctx, view, part, SCL_WAIT_WRITES, y, ld));
    CHECK(count_wrong(view, x, ld, y, ld, m, n) == 0);
    CHECK(count_outside(y, ld, m, n, 7) == 0);
    /* The block itself is canonical, and nothing around it was touched. */
    CHECK_OK(ctx->engine->download(ctx, SCL_GENERAL, big, SCL_WAIT_WRITES, all, rows));
    CHECK(count_wrong(view, x, ld, all + at + at * rows, rows, m, n) == 0);
    size_t touched = 0;
    for (size_t j = 0; j < cols; j++) {
      for (size_t i = 0; i < rows; i++) {
        bool inside = i >= at && i < at + m && j >= at && j < at + n;
        touched += !inside && all[i + j * rows] != 9;
      }
    }
    CHECK(touched == 0);
  }
  scl_buffer_release(big.buffer);
  FREE(x, y, all);
}

static void check_views(scl_context *ctx) {
  static const size_t shapes[][2] = {
      {1, 1},  {1, 5},   {5, 1},   {2, 2},     {15, 15}, {16, 16}, {17, 17},   {3, 40},
      {40, 3}, {64, 64}, {65, 65}, {130, 130}, {33, 71}, {71, 33}, {257, 257}, {300, 311}};
  for (size_t s = 0; s < LENGTH(shapes); s++) {
    size_t m = shapes[s][0], n = shapes[s][1];
    /* A simulator may take what a rectangular write has left for undefined: no padded columns. */
    if (test_small() && m > 57) continue;
    for (scl_view view = SCL_GENERAL; view <= SCL_SYMMETRIC; view++) {
      if (view == SCL_SYMMETRIC && m != n) continue;
      check_trip(ctx, view, m, n, 0, 0);
      check_trip(ctx, view, m, n, 3, 2);
      check_trip(ctx, view, m, n, 0, 1);
    }
  }
}

/* Large enough for several rounds of the staging ring and for the copying threads, with columns
 * that are longer than a span. */
static void check_large(scl_context *ctx) {
  static const size_t shapes[][2] = {{1100, 1100}, {700000, 2}, {300001, 3}, {2, 400000}};
  for (size_t s = 0; s < LENGTH(shapes); s++) {
    for (scl_view view = SCL_GENERAL; view <= SCL_SYMMETRIC; view++) {
      if (view == SCL_SYMMETRIC && shapes[s][0] != shapes[s][1]) continue;
      check_trip(ctx, view, shapes[s][0], shapes[s][1], 0, 0);
      check_trip(ctx, view, shapes[s][0], shapes[s][1], 1, 3);
    }
  }
}

/* The spans of a shape cover each element once, in order, and each column's rows once. */
static void check_spans(void) {
  static const size_t shapes[][2] = {{7, 7}, {1, 9}, {9, 1}, {4, 11}, {11, 4}, {40, 40}};
  for (size_t s = 0; s < LENGTH(shapes); s++) {
    size_t m = shapes[s][0], n = shapes[s][1];
    for (scl_view view = SCL_GENERAL; view <= SCL_SYMMETRIC; view++) {
      if (view == SCL_SYMMETRIC && m != n) continue;
      scl_packed shape = scl_packed_shape(view, m, n);
      for (size_t capacity = 1; capacity < 50; capacity += 3) {
        scl_packed_span span = {0};
        size_t next = 0, rows = 0, bad = 0;
        while (scl_packed_next(&shape, capacity, &span)) {
          bad += span.count > capacity || span.base != next || span.to < span.from;
          next += span.count;
          rows += (span.to - span.from) * span.cols;
        }
        CHECK(bad == 0 && next == scl_packed_count(&shape));
        CHECK(view == SCL_SYMMETRIC || rows == m * n);
      }
    }
  }
}

/* ---- the host's half, without a device ------------------------------------------------------- */
typedef struct {
  scl_pinned_copy copy;
  double *packed; /* all of the packed form: what a device would have */
  size_t opened, moved;
  scl_packed_span span;
  bool more;
} mover;

static void begin_mover(mover *w, scl_view view, size_t m, size_t n, size_t capacity,
                        double *ring) {
  memset(w, 0, sizeof *w);
  w->copy.shape = scl_packed_shape(view, m, n);
  w->copy.capacity = capacity;
  w->copy.ld = m;
  w->more = true;
  for (int p = 0; p < SCL_PINNED_PIECES; p++) w->copy.piece[p] = ring + (size_t)p * capacity;
}

/* The next span between its piece and the packed form; false after the last. */
static bool move_span(mover *w, bool up) {
  w->more = scl_packed_next(&w->copy.shape, w->copy.capacity, &w->span);
  if (!w->more) return false;
  double *piece = w->copy.piece[w->moved++ % SCL_PINNED_PIECES];
  double *packed = w->packed + w->span.base;
  memcpy(up ? packed : piece, up ? piece : packed, w->span.count * sizeof *piece);
  return true;
}

/* As uploads do: spans are opened while there are pieces, and moved when they are full. */
static void copy_up(mover *w, const double *x) {
  w->copy.from = x;
  scl_pinned_begin(&w->copy);
  scl_pinned_start_threads(&w->copy);
  size_t total = 0;
  for (scl_packed_span s = {0}; scl_packed_next(&w->copy.shape, w->copy.capacity, &s);) total++;
  while (w->moved < total) {
    if (w->opened < total && w->opened - w->moved < SCL_PINNED_PIECES) {
      scl_pinned_open(&w->copy);
      w->opened++;
    } else if (scl_pinned_copied(&w->copy, w->moved)) {
      move_span(w, true);
    } else {
      scl_pinned_help(&w->copy);
    }
  }
  scl_pinned_end(&w->copy);
}

/* As downloads do: spans arrive one by one, and are opened then. */
static void copy_down(mover *w, double *y) {
  w->copy.to = y;
  scl_pinned_begin(&w->copy);
  scl_pinned_start_threads(&w->copy);
  size_t copied = 0;
  while (w->more || copied < w->moved) {
    if (w->more && w->moved - copied < SCL_PINNED_PIECES) {
      if (move_span(w, false)) scl_pinned_open(&w->copy);
    } else if (scl_pinned_copied(&w->copy, copied)) {
      copied++;
    } else {
      scl_pinned_help(&w->copy);
    }
  }
  scl_pinned_end(&w->copy);
}

static void check_pinned_copy(size_t m, size_t n, size_t capacity) {
  double *x = test_alloc(m * n * sizeof *x), *y = test_alloc(m * n * sizeof *y);
  double *packed = test_alloc(m * n * sizeof *packed);
  double *ring = test_alloc(SCL_PINNED_PIECES * capacity * sizeof *ring);
  test_fill(x, m * n);
  for (scl_view view = SCL_GENERAL; view <= SCL_UPPER; view++) {
    mover w;
    begin_mover(&w, view, m, n, capacity, ring);
    w.packed = packed;
    copy_up(&w, x);
    begin_mover(&w, view, m, n, capacity, ring);
    w.packed = packed;
    set_all(y, m * n, 7);
    copy_down(&w, y);
    CHECK(count_wrong(view, x, m, y, m, m, n) == 0);
  }
  FREE(x, y, packed, ring);
}

/* Ended in the middle, with threads that wait: they end too. */
static void check_stopped_copy(void) {
  enum { N = 1100, CAPACITY = 4096 };
  double *y = test_alloc(N * N * sizeof *y);
  double *ring = test_alloc(SCL_PINNED_PIECES * CAPACITY * sizeof *ring);
  set_all(ring, SCL_PINNED_PIECES * CAPACITY, 1);
  mover w;
  begin_mover(&w, SCL_GENERAL, N, N, CAPACITY, ring);
  w.copy.to = y;
  scl_pinned_begin(&w.copy);
  scl_pinned_start_threads(&w.copy);
  scl_pinned_open(&w.copy);
  while (!scl_pinned_copied(&w.copy, 0)) scl_pinned_help(&w.copy);
  CHECK(!scl_pinned_help(&w.copy) && y[0] == 1);
  scl_pinned_end(&w.copy);
  CHECK(w.copy.team == NULL);
  FREE(y, ring);
}

/* A small matrix after a big one, many times: pieces of the ring in all states. */
static void check_sequence(scl_context *ctx) {
  enum { COUNT = 24, N = 200 };
  double *x = test_alloc(N * N * sizeof *x), *y = test_alloc(N * N * sizeof *y);
  scl_mat *a[COUNT] = {NULL};
  for (int i = 0; i < COUNT; i++) {
    size_t n = i % 3 == 0 ? N : (size_t)i;
    set_all(x, n * n, i + 1);
    CHECK_OK(scl_mat_from_host(ctx, x, n, n, i % 2 ? SCL_SYMMETRIC : SCL_GENERAL, &a[i]));
  }
  for (int i = COUNT - 1; i >= 0; i--) {
    size_t n = i % 3 == 0 ? N : (size_t)i, wrong = 0;
    if (a[i] == NULL) continue;
    CHECK_OK(scl_mat_to_host(a[i], y));
    for (size_t k = 0; k < n * n; k++) wrong += y[k] != i + 1;
    CHECK(wrong == 0);
    scl_mat_release(a[i]);
  }
  FREE(x, y);
}

/* A large triangle into fresh memory, where all of it is downloaded, and into the same memory
 * again. */
static void check_fresh(scl_context *ctx, scl_view view) {
  size_t n = 2920; /* 68 MB */
  double *x = test_alloc(n * n * sizeof *x), *y = malloc(n * n * sizeof *y);
  scl_mat *a = NULL;
  REQUIRE_OK(y != NULL ? SCL_OK : SCL_E_MEMORY);
  test_fill(x, n * n);
  REQUIRE_OK(scl_mat_from_host(ctx, x, n, n, view, &a));
  for (int again = 0; again < 2; again++) {
    CHECK_OK(scl_mat_to_host(a, y));
    CHECK(count_wrong(view, x, n, y, n, n, n) == 0);
    set_all(y, n * n, 7);
  }
  scl_mat_release(a);
  FREE(x, y);
}

void test_transfer(scl_context *ctx) {
  check_spans();
  check_pinned_copy(7, 5, 3);
  check_pinned_copy(40, 40, 100);
  check_pinned_copy(1000, 700, 9000);
  check_pinned_copy(700000, 1, 50000);
  check_pinned_copy(3, 200001, 8192);
  check_stopped_copy();
  check_views(ctx);
  if (!test_small()) check_large(ctx);
  if (!test_small()) check_sequence(ctx);
  if (!test_small()) check_fresh(ctx, SCL_LOWER);
  if (!test_small()) check_fresh(ctx, SCL_UPPER);
}
