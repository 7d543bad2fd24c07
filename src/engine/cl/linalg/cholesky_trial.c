/* Trial of the Cholesky factor by matrix instructions: a matrix of a known, well-conditioned
 * factor, and one that is not positive definite. */
#include <stdlib.h>

#include "engine/cl/linalg/linalg.h"
#include "engine/cl/runtime/trial.h"

/* A panel and rows below it; the order whose leading minor fails. */
enum { ORDER = PANEL_ORDER + 37, FAILING = 23 };

static double factor_entry(size_t i, size_t j) {
  if (i == j) return 8.0;
  return i > j && (5 * i + 11 * j) % 17 == 0 ? 1.0 - 2.0 * (double)(j % 2) : 0.0;
}

/* A = L L', in full; to make a minor fail, one diagonal element is reduced to what the columns
 * before it subtract. */
static void make_matrix(const double *l, double *a, bool fails) {
  for (size_t j = 0; j < ORDER; j++) {
    for (size_t i = 0; i < ORDER; i++) {
      double sum = 0.0;
      const size_t end = i < j ? i : j;
      for (size_t k = 0; k <= end; k++) sum += l[i + k * ORDER] * l[j + k * ORDER];
      a[i + j * ORDER] = sum;
    }
  }
  if (fails) a[(FAILING - 1) * (ORDER + 1)] -= 65.0;
}

static scl_status factor(scl_cl_context *cl, const double *a, double *l, double *info) {
  scl_block from = {0}, to = {0}, failed = {0};
  scl_status status;
  SCL_GO(scl_cl_trial_upload(cl, a, ORDER, ORDER, &from));
  SCL_GO(scl_block_create(&cl->base, ORDER, ORDER, &to));
  SCL_GO(scl_block_create(&cl->base, 1, 1, &failed));
  SCL_GO(scl_cl_potrf_copy(&cl->base, from, to, failed));
  SCL_GO(scl_cl_trial_download(cl, to, l, ORDER));
  SCL_GO(scl_cl_trial_download(cl, failed, info, 1));
done:
  scl_buffer_release(from.buffer);
  scl_buffer_release(to.buffer);
  scl_buffer_release(failed.buffer);
  return status;
}

scl_status scl_cl_trial_cholesky(scl_cl_context *cl, scl_cl_program which, bool *right) {
  const size_t square = (size_t)ORDER * ORDER;
  double *l = malloc(3 * square * sizeof *l), *a = l + square, *result = a + square, info = -1.0;
  scl_status status;
  (void)which;
  if (l == NULL) return scl_fail_memory(3 * square * sizeof *l, 0, "the trial of a kernel");
  for (size_t i = 0; i < square; i++) l[i] = factor_entry(i % ORDER, i / ORDER);
  make_matrix(l, a, false);
  SCL_GO(factor(cl, a, result, &info));
  *right = info == 0.0 && scl_cl_trial_is_near(result, l, square, 1e-11);
  if (*right) {
    make_matrix(l, a, true);
    SCL_GO(factor(cl, a, result, &info));
    *right = info == FAILING;
  }
done:
  free(l);
  return status;
}
