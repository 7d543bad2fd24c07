/* The trial of products by 8-bit integers: whole numbers, for which they are exact. */
#include <stdlib.h>

#include "engine/cl/linalg/linalg.h"
#include "engine/cl/runtime/trial.h"

#include "kernels/include/integers.h"

/* Two tiles each way, one of them in part. */
enum { ROWS = INTEGERS_TILE_M + 11, COLUMNS = INTEGERS_TILE_N + 5 };

/* Stages for every place of the ring and then some again, the last one in part. */
static size_t depth_of(const scl_cl_context *cl) {
  const size_t ring = cl->emulated_mma ? INTEGERS_RING_EMULATED : INTEGERS_RING_MOST;
  return (ring + 3) * INTEGERS_DEPTH - 21;
}

static bool is_right(const double *x, size_t depth, const double *c) {
  for (size_t j = 0; j < COLUMNS; j++) {
    double sum[ROWS] = {0.0};
    for (size_t k = 0; k < depth; k++)
      for (size_t i = 0; i < ROWS; i++) sum[i] += x[i + k * ROWS] * x[j + k * ROWS];
    for (size_t i = 0; i < ROWS; i++)
      if (!(c[i + j * ROWS] == -2.0 * sum[i])) return false;
  }
  return true;
}

static scl_status multiply(scl_cl_context *cl, scl_cl_integers_kind kind, scl_block x, scl_block c,
                           bool *done) {
  const scl_cl_integers_form form = {
      .moduli = INTEGERS_FEWEST, .kind = kind, .last = SCL_CL_INTEGERS_JOIN};
  const scl_cl_product p = {.alpha = -2.0,
                            .trans_b = SCL_TRANS,
                            .a = x,
                            .b = scl_block_part(x, 0, 0, COLUMNS, x.ncol),
                            .c = c,
                            .batch = 1};
  scl_cl_op op;
  scl_cl_op_begin(&op, &cl->base);
  scl_cl_op_reads(&op, x.buffer);
  scl_cl_op_writes(&op, c.buffer);
  SCL_TRY(scl_cl_op_order(&op, -1));
  return scl_cl_op_end(&op, scl_cl_integers_steps_in(&op, &p, form, done));
}

scl_status scl_cl_trial_integers(scl_cl_context *cl, scl_cl_program which, bool *right) {
  const size_t depth = depth_of(cl), count = ROWS * (depth + COLUMNS);
  double *x = malloc(count * sizeof *x), *c = x + ROWS * depth;
  scl_block dx = {0}, dc = {0};
  scl_cl_integers_kind kind = SCL_CL_INTEGERS_DOT;
  bool done = false;
  scl_status status;
  while (scl_cl_integers_program(kind) != which) kind++;
  if (x == NULL) return scl_fail_memory(count * sizeof *x, 0, "a trial");
  for (size_t k = 0; k < depth; k++)
    for (size_t i = 0; i < ROWS; i++) x[i + k * ROWS] = scl_cl_trial_number(i, k);
  SCL_GO(scl_cl_trial_upload(cl, x, ROWS, depth, &dx));
  SCL_GO(scl_block_create(&cl->base, ROWS, COLUMNS, &dc));
  SCL_GO(multiply(cl, kind, dx, dc, &done));
  SCL_GO(scl_cl_trial_download(cl, dc, c, ROWS));
  *right = done && is_right(x, depth, c);
done:
  scl_buffer_release(dx.buffer);
  scl_buffer_release(dc.buffer);
  free(x);
  return status;
}
