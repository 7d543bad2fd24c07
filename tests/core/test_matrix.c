#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static void check_shapes(scl_context *ctx) {
  scl_mat *a = NULL;
  REQUIRE_OK(scl_mat_create(ctx, 3, 5, SCL_GENERAL, &a));
  CHECK(scl_mat_nrow(a) == 3 && scl_mat_ncol(a) == 5);
  CHECK(scl_mat_view(a) == SCL_GENERAL);
  CHECK(scl_mat_context(a) == ctx);
  CHECK(scl_mat_bytes(a) == 120);
  CHECK(a->tag == SCL_MAT_TAG);
  scl_block part = scl_block_part(scl_mat_block(a), 1, 2, 2, 3);
  CHECK(part.buffer == a->buffer && part.offset == 1 + 2 * a->ld && part.ld == a->ld);
  CHECK(part.nrow == 2 && part.ncol == 3);
  CHECK(scl_mat_retain(a) == a);
  scl_mat_release(a);
  CHECK(a->refs == 1);
  RELEASE(a, NULL);

  size_t empty[][2] = {{0, 0}, {0, 7}, {7, 0}};
  for (int i = 0; i < 3; i++) {
    a = NULL;
    REQUIRE_OK(scl_mat_create(ctx, empty[i][0], empty[i][1], SCL_GENERAL, &a));
    CHECK(a->buffer == NULL && scl_mat_bytes(a) == 0);
    double untouched = 5;
    CHECK_OK(scl_mat_to_host(a, &untouched));
    CHECK(untouched == 5);
    scl_mat_release(a);
  }
}

static void check_ld(scl_context *ctx) {
  bool host = scl_context_is_host(ctx);
  CHECK(scl_mat_ld(ctx, 0, 3) == 1);
  CHECK(scl_mat_ld(ctx, 63, 3) == 63);
  CHECK(scl_mat_ld(ctx, 64, 3) == 64);
  CHECK(scl_mat_ld(ctx, 65, 3) == (host ? 65 : 80));
  CHECK(scl_mat_ld(ctx, 65, 1) == 65);
  CHECK(scl_mat_ld(ctx, INT_MAX, 2) == INT_MAX);
}

static void check_refusals(scl_context *ctx) {
  scl_mat *a = NULL;
  CHECK_FAULT(SCL_E_ARGUMENT, "nrow", scl_mat_create(ctx, (size_t)INT_MAX + 1, 1, SCL_GENERAL, &a));
  CHECK_FAULT(SCL_E_ARGUMENT, "ncol", scl_mat_create(ctx, 1, (size_t)INT_MAX + 1, SCL_GENERAL, &a));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_mat_create(ctx, 2, 3, SCL_SYMMETRIC, &a));
  CHECK_STATUS(SCL_E_MEMORY, scl_mat_create(ctx, INT_MAX, INT_MAX, SCL_GENERAL, &a));
  CHECK(a == NULL);
  double x = 1;
  CHECK_STATUS(SCL_E_ARGUMENT,
               scl_mat_wrap(scl_context_host(), &x, 1, (size_t)INT_MAX + 1, SCL_GENERAL, &a));
  CHECK(a == NULL);
}

/* What a matrix of `view` made from x holds at (i, j). */
static double expected(scl_view view, const double *x, size_t m, size_t i, size_t j) {
  if (view == SCL_LOWER && i < j) return 0;
  if (view == SCL_UPPER && i > j) return 0;
  if (view == SCL_SYMMETRIC && i < j) return x[j + i * m];
  return x[i + j * m];
}

static void check_round_trip(scl_context *ctx, size_t m, size_t n, scl_view view) {
  double *x = test_alloc(m * n * sizeof *x), *y = test_alloc(m * n * sizeof *y);
  test_fill(x, m * n);
  test_fill(y, m * n);
  scl_mat *a = NULL;
  scl_status status = scl_mat_from_host(ctx, x, m, n, view, &a);
  CHECK_OK(status);
  if (status == SCL_OK) {
    CHECK_OK(scl_mat_to_host(a, y));
    size_t wrong = 0;
    for (size_t j = 0; j < n; j++) {
      for (size_t i = 0; i < m; i++) wrong += y[i + j * m] != expected(view, x, m, i, j);
    }
    CHECK(wrong == 0);
  }
  scl_mat_release(a);
  FREE(x, y);
}

static void check_wrap(void) {
  double x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0};
  scl_mat *a = NULL;
  uint64_t live = scl_context_memory(scl_context_host()).live;
  REQUIRE_OK(scl_mat_wrap(scl_context_host(), x, 2, 3, SCL_GENERAL, &a));
  CHECK(scl_context_memory(scl_context_host()).live == live);
  CHECK_OK(scl_mat_to_host(a, y));
  CHECK(memcmp(x, y, sizeof x) == 0);
  scl_mat_release(a);
  CHECK(x[5] == 6);
  REQUIRE_OK(scl_mat_wrap(scl_context_host(), NULL, 0, 3, SCL_GENERAL, &a));
  scl_mat_release(a);
}

/* The next matrix of just that size is made in memory that was offered, and only the next. */
static void check_offer(void) {
  scl_context *host = scl_context_host();
  double x[6] = {0}, y[4] = {1, 2, 3, 4}, z[6] = {1, 2, 3, 4, 5, 6};
  scl_mat *small = NULL, *first = NULL, *second = NULL;
  host->engine->buffer_offer(host, x, sizeof x);
  REQUIRE_OK(scl_mat_from_host(host, y, 2, 2, SCL_GENERAL, &small));
  REQUIRE_OK(scl_mat_from_host(host, z, 2, 3, SCL_GENERAL, &first));
  REQUIRE_OK(scl_mat_from_host(host, y, 2, 2, SCL_GENERAL, &second));
  CHECK(memcmp(x, z, sizeof x) == 0);
  CHECK_OK(scl_mat_to_host(first, x));
  CHECK(memcmp(x, z, sizeof x) == 0);
  RELEASE(first, second);
  z[0] = 9;
  REQUIRE_OK(scl_mat_from_host(host, z, 2, 3, SCL_GENERAL, &first));
  CHECK(x[0] == 1);
  scl_mat_release(first);
  host->engine->buffer_offer(host, x, sizeof x);
  host->engine->buffer_offer(host, NULL, 0);
  REQUIRE_OK(scl_mat_from_host(host, z, 2, 3, SCL_GENERAL, &first));
  CHECK(x[0] == 1);
  RELEASE(first, small);
}

static void check_views(void) {
  CHECK(scl_view_is_lower(SCL_LOWER) && !scl_view_is_lower(SCL_SYMMETRIC));
  CHECK(scl_view_is_upper(SCL_UPPER) && !scl_view_is_upper(SCL_GENERAL));
  CHECK(scl_view_transposed(SCL_LOWER) == SCL_UPPER);
  CHECK(scl_view_transposed(SCL_UPPER) == SCL_LOWER);
  CHECK(scl_view_transposed(SCL_SYMMETRIC) == SCL_SYMMETRIC);
  CHECK(strcmp(scl_view_name(SCL_SYMMETRIC), "symmetric") == 0);
}

static void check_faults(scl_context *ctx) {
  double x[4] = {1, 2, 3, 4};
  scl_mat *a = NULL;
  scl_buffer_fail_after(1);
  CHECK_STATUS(SCL_E_MEMORY, scl_mat_from_host(ctx, x, 2, 2, SCL_GENERAL, &a));
  CHECK(a == NULL && scl_fault_last()->bytes == 32);
  scl_buffer_fail_after(-1);
  REQUIRE_OK(scl_mat_from_host(ctx, x, 2, 2, SCL_GENERAL, &a));
  scl_mat *b = NULL;
  REQUIRE_OK(scl_mat_wrap(scl_context_host(), x, 2, 2, SCL_GENERAL, &b));
  CHECK_OK(scl_mat_same_context(a, a));
  CHECK_STATUS(scl_context_is_host(ctx) ? SCL_OK : SCL_E_ARGUMENT, scl_mat_same_context(a, b));
  RELEASE(a, b);
}

void test_matrix(scl_context *ctx) {
  check_shapes(ctx);
  check_ld(ctx);
  check_refusals(ctx);
  check_wrap();
  check_offer();
  check_views();
  check_faults(ctx);
  size_t sizes[] = {1, 2, 3, 16, 17, 63, 64, 65, 130};
  for (size_t s = 0; s < LENGTH(sizes); s++) {
    size_t n = sizes[s];
    check_round_trip(ctx, n, n, SCL_SYMMETRIC);
    for (scl_view view = SCL_GENERAL; view <= SCL_UPPER; view++) {
      check_round_trip(ctx, n, n, view);
      check_round_trip(ctx, n, 2 * n + 1, view);
      check_round_trip(ctx, 2 * n + 1, n, view);
    }
  }
}
