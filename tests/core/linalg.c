#include "linalg.h"

#include <stdio.h>

#include "base/device.h"

size_t test_frame = 1;

size_t test_frames(const scl_context *ctx) {
  const scl_device_info *info = scl_context_is_host(ctx) ? NULL : scl_device_of(ctx);
  return info != NULL && info->type == SCL_DEVICE_GPU ? 2 : 1;
}

bool test_few(const scl_context *ctx) {
  return test_quick() && !scl_context_is_host(ctx) && test_frames(ctx) == 1;
}

test_framed test_put(scl_context *ctx, size_t m, size_t n, const double *data) {
  test_framed a;
  size_t f = test_frame, rows = m + f + 2, columns = n + f + 1;
  double *frame = test_alloc(rows * columns * sizeof *frame);
  for (size_t e = 0; e < rows * columns; e++) frame[e] = NAN;
  for (size_t j = 0; j < n && data != NULL; j++)
    memcpy(frame + f + (j + f) * rows, data + j * m, m * sizeof *data);
  if (scl_mat_from_host(ctx, frame, rows, columns, SCL_GENERAL, &a.mat) != SCL_OK) {
    printf("no matrix for a test: %s\n", scl_fault_last()->message);
    exit(2);
  }
  a.block = scl_block_part(scl_mat_block(a.mat), f, f, m, n);
  free(frame);
  return a;
}

void test_get(test_framed a, double *data) {
  size_t m = a.block.nrow, n = a.block.ncol, f = test_frame, spoilt = 0;
  size_t rows = m + f + 2, columns = n + f + 1;
  double *frame = test_alloc(rows * columns * sizeof *frame);
  CHECK_OK(scl_mat_to_host(a.mat, frame));
  for (size_t j = 0; j < columns; j++) {
    for (size_t i = 0; i < rows; i++) {
      bool inside = i >= f && i < m + f && j >= f && j < n + f;
      if (inside) data[i - f + (j - f) * m] = frame[i + j * rows];
      if (!inside && !isnan(frame[i + j * rows])) spoilt++;
    }
  }
  CHECK(spoilt == 0);
  free(frame);
  scl_mat_release(a.mat);
}

void test_drop(test_framed a) {
  scl_mat_release(a.mat);
}

void test_set_triangle(double *x, size_t m, size_t n, bool upper, double value) {
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      if (upper ? i < j : i > j) x[i + j * m] = value;
    }
  }
}

double test_norm1(const double *x, size_t m, size_t n) {
  double norm = 0;
  for (size_t j = 0; j < n; j++) {
    double sum = 0;
    for (size_t i = 0; i < m; i++) sum += fabs(x[i + j * m]);
    if (!(sum <= norm)) norm = sum; /* NaN stays */
  }
  return norm;
}

size_t test_next_column(size_t j, size_t n) {
  if (n <= 160) return j + 1;
  size_t step = n / 6;
  if (j + 1 == n) return n;
  if (j % 64 < 1 && j / 64 % 8 == 0) return j + 1; /* first two columns of some blocks */
  size_t next = (j / step + 1) * step, block = (j / 512 + 1) * 512;
  if (block < next) next = block;
  return next < n ? next : n - 1;
}
