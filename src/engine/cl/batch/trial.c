/* Trials of batched products and solutions by matrix instructions: whole numbers; of solutions with
 * a bound on the error, as reciprocals of pivots are rounded. */
#include <math.h>
#include <stdlib.h>

#include "engine/cl/batch/layouts.h"
#include "engine/cl/runtime/trial.h"
#include "engine/pass/batch.h"

enum { BATCH = 3, DEPTH = 21, SIDES = 11 };

/* Runs a pass whose input is `a` and `b`, `size_a` and `size_b` numbers to a matrix. */
static scl_status run_pass(scl_cl_context *cl, scl_batch_pass *p, const double *a, size_t size_a,
                           const double *b, size_t size_b, double *out, size_t size_out) {
  bool written = false;
  scl_status status;
  SCL_GO(scl_cl_trial_upload(cl, a, size_a * BATCH, 1, &p->a.block));
  if (b != NULL) SCL_GO(scl_cl_trial_upload(cl, b, size_b * BATCH, 1, &p->b.block));
  SCL_GO(scl_block_create(&cl->base, size_out * BATCH, 1, &p->out.block));
  p->a.step = size_a;
  p->b.step = size_b;
  p->out.step = size_out;
  SCL_GO(scl_cl_batch(&cl->base, p, &written));
  SCL_GO(scl_cl_trial_download(cl, p->out.block, out, size_out * BATCH));
done:
  scl_buffer_release(p->a.block.buffer);
  scl_buffer_release(p->b.block.buffer);
  scl_buffer_release(p->out.block.buffer);
  return status;
}

/* ---- products -------------------------------------------------------------------------------- */
/* Sizes that only this program takes: odd ones do not use the tiles of single products. */
static size_t side_of(scl_cl_program which) {
  if (which == SCL_CL_PROGRAM_batch_matmul_mma_16) return 13;
  if (which == SCL_CL_PROGRAM_batch_matmul_mma_32) return 29;
#define BATCH_STRIPS(strips, stages)                                                               \
  if (which == SCL_CL_PROGRAM_batch_matmul_group_##strips) return 16 * (strips)-3;
  BATCH_STRIPS_LAYOUTS
#undef BATCH_STRIPS
  return 0;
}

static bool is_product(const scl_batch_pass *p, const double *a, const double *b, const double *c) {
  const size_t m = p->m, n = p->n, k = p->k;
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < n; j++) {
      double sum = 0.0;
      for (size_t l = 0; l < k; l++) {
        sum += a[p->transpose ? l + i * k : i + l * m] * b[p->transpose_b ? j + l * n : l + j * k];
      }
      if (!(c[i + j * m] == sum)) return false;
    }
  }
  return true;
}

scl_status scl_cl_trial_batch_matmul(scl_cl_context *cl, scl_cl_program which, bool *right) {
  const size_t m = side_of(which), n = m - 2, size_a = m * DEPTH, size_b = n * DEPTH;
  const size_t numbers = BATCH * (size_a + size_b + m * n);
  double *a = malloc(numbers * sizeof *a), *b = a + BATCH * size_a, *c = b + BATCH * size_b;
  scl_status status = SCL_OK;
  if (a == NULL) return scl_fail_memory(numbers * sizeof *a, 0, "the trial of a kernel");
  for (size_t i = 0; i < BATCH * (size_a + size_b); i++) a[i] = scl_cl_trial_number(i, i / 7);
  *right = true;
  for (int form = 0; form < 4 && *right; form++) {
    scl_batch_pass p = {.op = SCL_BATCH_MATMUL, .m = m, .n = n, .k = DEPTH, .batch = BATCH};
    p.transpose = (form & 1) != 0;
    p.transpose_b = (form & 2) != 0;
    SCL_GO(run_pass(cl, &p, a, size_a, b, size_b, c, m * n));
    for (size_t q = 0; q < BATCH && *right; q++)
      *right = is_product(&p, a + q * size_a, b + q * size_b, c + q * m * n);
  }
done:
  free(a);
  return status;
}

/* ---- solutions ------------------------------------------------------------------------------- */
static size_t order_of(scl_cl_program which) {
#define BATCH_PANEL(n, p)                                                                          \
  if (which == SCL_CL_PROGRAM_batch_solve_mma_##n) return (n)-5;
  BATCH_PANEL_LAYOUTS
#undef BATCH_PANEL
  return 0;
}

/* Rows of a matrix with a heavy diagonal, in another order, so that pivots must be searched for;
 * its first column has the heavy entry of matrix q in row q + 1. */
static void make_matrix(size_t n, size_t q, double *a) {
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < n; j++) {
      const bool heavy = i == (j + q + 1) % n;
      const bool other = (5 * i + 11 * j + q) % 17 == 0;
      a[i + j * n] = heavy ? 16.0 : other ? 1.0 - 2.0 * (double)(j % 2) : 0.0;
    }
  }
}

static void multiply(size_t n, const double *a, const double *x, double *b) {
  for (size_t s = 0; s < SIDES; s++) {
    for (size_t i = 0; i < n; i++) {
      double sum = 0.0;
      for (size_t k = 0; k < n; k++) sum += a[i + k * n] * x[k + s * n];
      b[i + s * n] = sum;
    }
  }
}

/* log |det a| by elimination without pivots, of the matrix with its rows put in order. */
static double log_determinant(size_t n, size_t q, const double *a, double *work) {
  double sum = 0.0;
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < n; j++) work[i + j * n] = a[(i + q + 1) % n + j * n];
  }
  for (size_t k = 0; k < n; k++) {
    sum += log(fabs(work[k * (n + 1)]));
    for (size_t i = k + 1; i < n; i++) {
      const double m = work[i + k * n] / work[k * (n + 1)];
      for (size_t j = k + 1; m != 0.0 && j < n; j++) work[i + j * n] -= m * work[k + j * n];
    }
  }
  return sum;
}

scl_status scl_cl_trial_batch_solve(scl_cl_context *cl, scl_cl_program which, bool *right) {
  const size_t n = order_of(which), square = n * n, sides = n * SIDES;
  const size_t numbers = BATCH * (2 * square + 3 * sides);
  double *a = malloc(numbers * sizeof *a), *work = a + BATCH * square, *x = work + BATCH * square;
  double *b = x + BATCH * sides, *result = b + BATCH * sides, determinant[2 * BATCH];
  scl_status status;
  if (a == NULL) return scl_fail_memory(numbers * sizeof *a, 0, "the trial of a kernel");
  for (size_t i = 0; i < BATCH * sides; i++) x[i] = scl_cl_trial_number(i, i / n);
  for (size_t q = 0; q < BATCH; q++) {
    make_matrix(n, q, a + q * square);
    multiply(n, a + q * square, x + q * sides, b + q * sides);
  }
  scl_batch_pass p = {.op = SCL_BATCH_SOLVE, .n = n, .k = SIDES, .batch = BATCH};
  SCL_GO(run_pass(cl, &p, a, square, b, sides, result, sides));
  *right = scl_cl_trial_is_near(result, x, BATCH * sides, 1e-11);
  if (*right) {
    scl_batch_pass d = {.op = SCL_BATCH_DET, .n = n, .batch = BATCH, .logarithm = true};
    SCL_GO(run_pass(cl, &d, a, square, NULL, 0, determinant, 2));
    for (size_t q = 0; q < BATCH && *right; q++) {
      const double expected = log_determinant(n, q, a + q * square, work);
      *right = scl_cl_trial_is_near(determinant + q, &expected, 1, 1e-11);
    }
  }
done:
  free(a);
  return status;
}
