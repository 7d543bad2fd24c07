/* Trials of the crossproducts of tall matrices: whole numbers, for which every order of summation
 * is exact, with and without weights of both signs. */
#include <stdlib.h>

#include "engine/cl/linalg/linalg.h"
#include "engine/cl/runtime/trial.h"

/* Two parts of more stages than a ring holds, the second without its last row. */
enum { ROWS = 159, COLUMNS_LESS = 3 };

static double expected(const double *x, const double *w, size_t i, size_t j) {
  double sum = 0.0;
  for (size_t r = 0; r < ROWS; r++)
    sum += x[r + i * ROWS] * x[r + j * ROWS] * (w == NULL ? 1.0 : w[r]);
  return -2.0 * sum;
}

static scl_status try_case(scl_cl_context *cl, scl_block x, scl_block w, scl_block c,
                           const double *host, bool *right) {
  const size_t p = x.ncol;
  const double *weights = w.buffer == NULL ? NULL : host + ROWS * p;
  double *got = malloc(p * p * sizeof *got);
  scl_cl_op op;
  scl_status status;
  if (got == NULL) return scl_fail_memory(p * p * sizeof *got, 0, "the trial of a kernel");
  scl_cl_op_begin(&op, &cl->base);
  scl_cl_op_reads(&op, x.buffer);
  scl_cl_op_reads(&op, w.buffer);
  scl_cl_op_writes(&op, c.buffer);
  SCL_GO(scl_cl_op_order(&op, -1));
  SCL_GO(scl_cl_op_end(&op, scl_cl_gram_launch(&op, -2.0, x, w, c)));
  SCL_GO(scl_cl_trial_download(cl, c, got, p));
  *right = true;
  for (size_t e = 0; e < p * p; e++)
    *right = *right && got[e] == expected(host, weights, e % p, e / p);
done:
  free(got);
  return status;
}

scl_status scl_cl_trial_gram(scl_cl_context *cl, scl_cl_program which, bool *right) {
  const size_t p = scl_cl_gram_columns(which) - COLUMNS_LESS, numbers = ROWS * (p + 1);
  scl_block x = {0}, w = {0}, c = {0};
  double *host = malloc(numbers * sizeof *host);
  scl_status status;
  if (host == NULL) return scl_fail_memory(numbers * sizeof *host, 0, "the trial of a kernel");
  for (size_t e = 0; e < numbers; e++) host[e] = scl_cl_trial_number(e % ROWS, e / ROWS);
  SCL_GO(scl_cl_trial_upload(cl, host, ROWS, p, &x));
  SCL_GO(scl_cl_trial_upload(cl, host + ROWS * p, ROWS, 1, &w));
  SCL_GO(scl_block_create(&cl->base, p, p, &c));
  SCL_GO(try_case(cl, x, (scl_block){0}, c, host, right));
  if (*right) SCL_GO(try_case(cl, x, w, c, host, right));
done:
  scl_buffer_release(x.buffer);
  scl_buffer_release(w.buffer);
  scl_buffer_release(c.buffer);
  free(host);
  return status;
}
