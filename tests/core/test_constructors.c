/* Making, copying, selecting and binding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/constructors.h"
#include "graph/expr.h"
#include "ops/table.h"
#include "matrices.h"

/* The result holds `want`, is canonical, and has this view. Releases it. */
static void check_is(scl_mat *r, const double *want, scl_view view) {
  double *got = mat_stored(r);
  CHECK(r->view == view);
  CHECK(mat_distance(got, want, r->nrow * r->ncol) == 0.0);
  CHECK(mat_is_canonical(got, r->nrow, r->ncol, view));
  free(got);
  scl_mat_release(r);
}

static void check_copies(scl_context *ctx, size_t m, size_t n) {
  scl_mat *a = mat_random(ctx, m, n, SCL_GENERAL), *r;
  double *x = mat_stored(a), *want = test_alloc(m * n * sizeof *want);
  for (int kind = SCL_COPY; kind <= SCL_COPY_MIRROR_UPPER; kind++) {
    if (kind >= SCL_COPY_MIRROR_LOWER && m != n) {
      CHECK_STATUS(SCL_E_ARGUMENT, scl_copy_as((scl_copy)kind, a, &r));
      continue;
    }
    size_t rows = kind == SCL_COPY_TRANSPOSED ? n : m, columns = rows == m ? n : m;
    if (kind == SCL_COPY_TRANSPOSED) columns = m;
    for (size_t j = 0; j < columns; j++) {
      for (size_t i = 0; i < rows; i++)
        want[i + j * rows] = test_copied((scl_copy)kind, x, m, i, j);
    }
    static const scl_view views[] = {SCL_GENERAL, SCL_GENERAL,   SCL_LOWER,
                                     SCL_UPPER,   SCL_SYMMETRIC, SCL_SYMMETRIC};
    REQUIRE_OK(scl_copy_as((scl_copy)kind, a, &r));
    CHECK(r->nrow == rows && r->ncol == columns);
    check_is(r, want, m == n ? views[kind] : SCL_GENERAL);
  }
  FREE(x, want);
  scl_mat_release(a);
}

/* In place, with junk in the other triangle. */
static void check_clearing(scl_context *ctx, size_t n) {
  for (int lower = 0; lower < 2; lower++) {
    double *x = test_alloc(n * n * sizeof *x);
    test_fill(x, n * n);
    if (n > 1) x[lower ? n : 1] = NAN;
    scl_mat *a = mat_make(ctx, x, n, n, SCL_GENERAL);
    scl_copy kind = lower ? SCL_COPY_LOWER : SCL_COPY_UPPER;
    REQUIRE_OK(ctx->engine->copy(ctx, kind, scl_mat_block(a), scl_mat_block(a)));
    for (size_t j = 0; j < n; j++) {
      for (size_t i = 0; i < n; i++) {
        if (lower ? i < j : i > j) x[i + j * n] = 0.0;
      }
    }
    check_is(a, x, SCL_GENERAL);
    free(x);
  }
}

static void check_parts(scl_context *ctx) {
  scl_mat *a = mat_random(ctx, 70, 70, SCL_LOWER), *r;
  double *x = mat_stored(a), *want = test_alloc(70 * 70 * sizeof *want);
  static const size_t part[][4] = {{0, 0, 70, 70}, {3, 3, 65, 65}, {3, 4, 65, 65},
                                   {69, 0, 1, 70}, {5, 9, 0, 3},   {70, 70, 0, 0}};
  for (size_t k = 0; k < LENGTH(part); k++) {
    size_t i0 = part[k][0], j0 = part[k][1], m = part[k][2], n = part[k][3];
    for (size_t j = 0; j < n; j++) {
      for (size_t i = 0; i < m; i++) want[i + j * m] = x[i0 + i + (j0 + j) * 70];
    }
    REQUIRE_OK(scl_part(a, i0, j0, m, n, &r));
    CHECK(r->nrow == m && r->ncol == n);
    check_is(r, want, i0 == j0 && m == n ? SCL_LOWER : SCL_GENERAL);
  }
  CHECK_STATUS(SCL_E_ARGUMENT, scl_part(a, 1, 0, 70, 1, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_part(a, 0, 71, 1, 0, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_part(a, 0, SIZE_MAX, 1, 2, &r));
  FREE(x, want);
  scl_mat_release(a);
}

static void check_selection(scl_context *ctx) {
  static const size_t rows[] = {4, 5, 6, 0, 0, 66, 65}, columns[] = {2, 1, 0, 2, 3};
  scl_mat *a = mat_random(ctx, 67, 4, SCL_GENERAL), *r;
  double *x = mat_stored(a), *want = test_alloc(67 * 7 * sizeof *want);
  for (int which = 0; which < 4; which++) {
    bool all_rows = which & 1, all_columns = which & 2;
    size_t m = all_rows ? 67 : 7, n = all_columns ? 4 : 5;
    for (size_t j = 0; j < n; j++) {
      for (size_t i = 0; i < m; i++) {
        want[i + j * m] = x[(all_rows ? i : rows[i]) + (all_columns ? j : columns[j]) * 67];
      }
    }
    REQUIRE_OK(scl_select(a, all_rows ? NULL : rows, 7, all_columns ? NULL : columns, 5, &r));
    CHECK(r->nrow == m && r->ncol == n);
    check_is(r, want, SCL_GENERAL);
  }
  REQUIRE_OK(scl_select(a, rows, 0, NULL, 0, &r));
  CHECK(r->nrow == 0 && r->ncol == 4);
  scl_mat_release(r);
  size_t outside = 4;
  CHECK_FAULT(SCL_E_ARGUMENT, "j", scl_select(a, NULL, 0, &outside, 1, &r));
  outside = 67;
  CHECK_FAULT(SCL_E_ARGUMENT, "i", scl_select(a, &outside, 1, NULL, 0, &r));
  FREE(x, want);
  scl_mat_release(a);
}

static void check_diagonals(scl_context *ctx, size_t m, size_t n) {
  scl_mat *a = mat_random(ctx, m, n, SCL_GENERAL), *d;
  size_t length = m < n ? m : n;
  double *x = mat_stored(a), *want = test_alloc((length + 1) * sizeof *want);
  for (size_t i = 0; i < length; i++) want[i] = x[i * (m + 1)];
  REQUIRE_OK(scl_compute(NULL, SCL_OPERATION_DIAGONAL, 1, &(scl_term){a, 0}, 0, NULL, &d));
  CHECK(d->nrow == length && d->ncol == 1);
  check_is(d, want, SCL_GENERAL);
  FREE(x, want);
  scl_mat_release(a);
}

static scl_status bind(bool columns, scl_mat *x, scl_mat *y, scl_mat **out) {
  const scl_term operand[] = {{x, 0.0}, {y, 0.0}};
  return scl_compute(NULL, SCL_OPERATION_BIND, 2, operand, 1, &(double){columns}, out);
}

static void check_binding(scl_context *ctx, bool columns, const size_t widths[2]) {
  scl_mat *part[2], *r;
  double want[5 * 70];
  const size_t total = widths[0] + widths[1];
  for (size_t k = 0, at = 0; k < 2; at += widths[k++]) {
    part[k] = columns ? mat_random(ctx, 5, widths[k], SCL_GENERAL)
                      : mat_random(ctx, widths[k], 5, SCL_GENERAL);
    double *x = mat_stored(part[k]);
    for (size_t j = 0; j < part[k]->ncol; j++) {
      for (size_t i = 0; i < part[k]->nrow; i++) {
        want[columns ? i + (at + j) * 5 : at + i + j * total] = x[i + j * part[k]->nrow];
      }
    }
    free(x);
  }
  REQUIRE_OK(bind(columns, part[0], part[1], &r));
  CHECK(r->nrow == (columns ? 5 : total) && r->ncol == (columns ? total : 5));
  check_is(r, want, SCL_GENERAL);
  CHECK_STATUS(SCL_E_ARGUMENT, bind(!columns, part[0], part[1], &r));
  RELEASE(part[0], part[1]);
}

static void check_made(scl_context *ctx) {
  scl_mat *r;
  double want[65 * 3];
  for (size_t i = 0; i < 65 * 3; i++) want[i] = 1.5;
  REQUIRE_OK(scl_constant(ctx, 1.5, 65, 3, &r));
  check_is(r, want, SCL_GENERAL);
  REQUIRE_OK(scl_constant(ctx, 0.0, 0, 3, &r));
  CHECK(r->nrow == 0 && r->ncol == 3);
  scl_mat_release(r);
  for (size_t i = 0; i < 4 * 12; i++) want[i] = i / 4 % 4 == i % 4;
  REQUIRE_OK(scl_identity(ctx, 4, 3, &r));
  CHECK(r->nrow == 4 && r->ncol == 12);
  check_is(r, want, SCL_GENERAL);
  REQUIRE_OK(scl_identity(ctx, 4, 1, &r));
  check_is(r, want, SCL_SYMMETRIC);
  REQUIRE_OK(scl_identity(ctx, 0, 1, &r));
  CHECK(r->nrow == 0);
  scl_mat_release(r);
  CHECK_STATUS(SCL_E_ARGUMENT, scl_identity(ctx, 4, SIZE_MAX, &r));
}

void test_constructors(scl_context *ctx) {
  static const size_t shape[][2] = {{1, 1}, {5, 3}, {3, 5}, {0, 4}, {4, 0}, {65, 65}, {33, 70}};
  for (size_t s = 0; s < LENGTH(shape); s++) {
    check_copies(ctx, shape[s][0], shape[s][1]);
    check_diagonals(ctx, shape[s][0], shape[s][1]);
  }
  check_clearing(ctx, 1);
  check_clearing(ctx, 66);
  check_parts(ctx);
  check_selection(ctx);
  static const size_t widths[][2] = {{3, 66}, {0, 7}, {6, 0}};
  for (int k = 0; k < 3; k++) {
    check_binding(ctx, true, widths[k]);
    check_binding(ctx, false, widths[k]);
  }
  check_made(ctx);
}
