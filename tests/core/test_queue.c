/* Order of work: results of long random mixtures of operations over a few buffers, and, on a
 * device, which queue an operation uses and what it waits for. */
#include <stdlib.h>
#include <string.h>

#include "ops/operation.h"
#include "test.h"

enum { BLOCKS = 6, ROWS = 67, COLS = 31, SIZE = ROWS * COLS };

/* Each step is done by the engine and by plain loops; a download in the middle must give the same
 * bits as its twin. */
static void check_mixture(scl_context *ctx, int steps) {
  const scl_engine *e = ctx->engine;
  scl_block b[BLOCKS] = {{0}};
  double *x[BLOCKS], *y = test_alloc(SIZE * sizeof *y);
  for (int k = 0; k < BLOCKS; k++) {
    x[k] = test_alloc(SIZE * sizeof(double));
    test_fill(x[k], SIZE);
    CHECK_OK(scl_block_create(ctx, ROWS, COLS, &b[k]));
    CHECK_OK(e->upload(ctx, SCL_GENERAL, x[k], ROWS, b[k]));
  }
  long wrong = 0, failed = 0;
  for (int step = 0; step < steps; step++) {
    int to = (int)((test_random() + 1) * 0.5 * BLOCKS) % BLOCKS;
    int from = (int)((test_random() + 1) * 0.5 * BLOCKS) % BLOCKS;
    int other = (int)((test_random() + 1) * 0.5 * BLOCKS) % BLOCKS;
    scl_operand a = {b[from], 0}, c = {b[other], 0};
    double value = test_random();
    scl_status status = SCL_OK;
    switch ((int)((test_random() + 1) * 4) % 8) {
    case 0:
      status = e->fill(ctx, value, b[to]);
      for (int i = 0; i < SIZE; i++) x[to][i] = value;
      break;
    case 1:
      test_fill(x[to], SIZE);
      status = e->upload(ctx, SCL_GENERAL, x[to], ROWS, b[to]);
      break;
    case 2:
      status = e->download(ctx, SCL_GENERAL, b[from], SCL_WAIT_WRITES, y, ROWS);
      wrong += memcmp(x[from], y, SIZE * sizeof *y) != 0;
      break;
    case 3:
      if (to == from) break;
      status = e->copy(ctx, SCL_COPY, b[from], b[to]);
      memcpy(x[to], x[from], SIZE * sizeof *y);
      break;
    case 4:
      status = scl_apply_blocks(ctx, SCL_OP_SUB, a, (scl_operand){.scalar = value}, b[to]);
      for (int i = 0; i < SIZE; i++) x[to][i] = x[from][i] - value;
      break;
    default:
      status = scl_apply_blocks(ctx, SCL_OP_ADD, a, c, b[to]);
      for (int i = 0; i < SIZE; i++) x[to][i] = x[from][i] + x[other][i];
    }
    failed += status != SCL_OK;
  }
  for (int k = 0; k < BLOCKS; k++) {
    failed += e->download(ctx, SCL_GENERAL, b[k], SCL_WAIT_WRITES, y, ROWS) != SCL_OK;
    wrong += memcmp(x[k], y, SIZE * sizeof *y) != 0;
    scl_buffer_release(b[k].buffer);
    free(x[k]);
  }
  free(y);
  CHECK(wrong == 0);
  CHECK(failed == 0);
}

#include "engine/cl/runtime/launch.h"
#include "kernels/include/packed.h"
#include "driver.h"

/* One operation that reads `in` (if any), writes `out`, and reports its queue and its waits. */
static scl_status probe(scl_context *ctx, scl_block in, scl_block out, int queue, int *took,
                        unsigned *waits) {
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, in.buffer);
  scl_cl_op_writes(&op, out.buffer);
  scl_status status = scl_cl_op_order(&op, queue);
  *took = op.queue;
  *waits = op.waits;
  scl_cl_range range = {.dims = 2, .global = {out.nrow, out.ncol}};
  if (status == SCL_OK) {
    status =
        scl_launch_elementwise_fill(&op, range, (int)out.nrow, (int)out.ncol, 1.0, scl_out(out));
  }
  return scl_cl_op_end(&op, status);
}

static void check_queues(scl_context *ctx) {
  scl_block a[5], none = {0};
  int first, second, queue;
  unsigned waits;
  for (int k = 0; k < 5; k++) REQUIRE_OK(scl_block_create(ctx, 3, 3, &a[k]));
  driver_install();
  driver_pretend(CL_RUNNING);

  /* Two chains that share nothing take two queues and wait for nothing. */
  CHECK_OK(probe(ctx, none, a[0], -1, &first, &waits));
  CHECK(waits == 0 && first <= SCL_CL_COMPUTE_1);
  CHECK_OK(probe(ctx, none, a[1], -1, &second, &waits));
  CHECK(waits == 0 && second != first);
  CHECK_OK(probe(ctx, a[0], a[2], -1, &queue, &waits));
  CHECK(queue == first && waits == 0);
  CHECK_OK(probe(ctx, a[1], a[3], -1, &queue, &waits));
  CHECK(queue == second && waits == 0);
  CHECK_OK(probe(ctx, a[2], a[2], -1, &queue, &waits));
  CHECK(queue == first && waits == 0);

  /* A write waits for the write and the reads of other queues, once each. */
  CHECK_OK(probe(ctx, a[2], a[3], -1, &queue, &waits));
  CHECK(queue == first && waits == 1);
  CHECK_OK(probe(ctx, a[3], a[4], SCL_CL_UPLOAD, &queue, &waits));
  CHECK(queue == SCL_CL_UPLOAD && waits == 1);
  CHECK_OK(probe(ctx, none, a[3], second, &queue, &waits));
  CHECK(waits == 2);
  CHECK_OK(probe(ctx, a[3], a[3], second, &queue, &waits));
  CHECK(waits == 0);

  driver_pretend(0);
  CHECK_OK(scl_context_finish(ctx));
  /* Completed work is not waited for. */
  CHECK_OK(probe(ctx, a[3], a[4], -1, &queue, &waits));
  CHECK(waits == 0);
  for (int k = 0; k < 5; k++) scl_buffer_release(a[k].buffer);
  driver_remove();
}

static bool stop;
static bool stopped(void) {
  return stop;
}

/* Waiting sees an interrupt; a failed command ends the context. */
static void check_waiting(scl_context *ctx) {
  double x[4] = {1, 2, 3, 4};
  scl_mat *a = NULL;
  REQUIRE_OK(scl_mat_from_host(ctx, x, 2, 2, SCL_GENERAL, &a));
  driver_install();
  driver_pretend(CL_RUNNING);
  scl_hooks_set(&(scl_hooks){.interrupted = stopped});
  stop = true;
  CHECK_STATUS(SCL_E_INTERRUPT, scl_mat_to_host(a, x));
  stop = false;
  scl_hooks_set(&(scl_hooks){0});
  const int ends[] = {-5, -14, -34, -36, -9999};
  for (int k = 0; k < 5; k++) {
    driver_pretend(ends[k]);
    CHECK_STATUS(SCL_E_LOST, scl_mat_to_host(a, x));
    CHECK(ctx->lost && scl_fault_last()->cl_code == ends[k]);
    CHECK_STATUS(SCL_E_LOST, scl_context_check(ctx));
    ctx->lost = false;
  }
  driver_pretend(0);
  driver_remove();
  CHECK_OK(scl_mat_to_host(a, x));
  CHECK(x[3] == 4);
  scl_mat_release(a);
}

/* Limits for which some drivers end the process are checked before the launch. */
static void check_limits(scl_context *ctx) {
  scl_block a;
  REQUIRE_OK(scl_block_create(ctx, 3, 3, &a));
  scl_cl_context *cl = (scl_cl_context *)ctx;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_writes(&op, a.buffer);
  CHECK_OK(scl_cl_op_order(&op, -1));
  scl_cl_range large = {2, {1 << 20, 1}, {1 << 20, 1}}, empty = {.dims = 2, .global = {0, 1}};
  CHECK_STATUS(SCL_E_OPENCL, scl_launch_elementwise_fill(&op, large, 3, 3, 0.0, scl_out(a)));
  CHECK_OK(scl_launch_elementwise_fill(&op, empty, 3, 3, 0.0, scl_out(a)));
  CHECK(cl->enqueued[op.queue] == op.start);
  /* Not every driver counts the variables of a kernel in local memory before it is launched. */
  cl_kernel kernel;
  REQUIRE_OK(scl_cl_kernel_get(cl, SCL_K_transfer_unpack, &kernel));
  const uint64_t had = cl->kernel_local[SCL_K_transfer_unpack], most = cl->info.local_memory;
  const int capability = cl->info.capability;
  cl->info.local_memory = 48 << 10;
  for (int k = 0; k < 4; k++) { /* capability 9.0 has 227 KiB, whatever the driver reports */
    static const struct {
      int capability, kib;
      scl_status status;
    } t[] = {{80, 49, SCL_E_OPENCL},
             {90, 227, SCL_OK},
             {90, 228, SCL_E_OPENCL},
             {100, 227, SCL_E_OPENCL}};
    cl->info.capability = t[k].capability;
    cl->kernel_local[SCL_K_transfer_unpack] = (uint64_t)t[k].kib << 10;
    scl_cl_range tile = {2, {TRANSFER_TILE, TRANSFER_TILE}, {TRANSFER_TILE, TRANSFER_TILE}};
    CHECK_STATUS(t[k].status,
                 scl_launch_transfer_unpack(&op, tile, scl_out(a),
                                            scl_in_memory(((scl_cl_buffer *)a.buffer)->memory), 3,
                                            0, 0, 3, 0, 3, 0, 0));
  }
  cl->info.local_memory = most;
  cl->info.capability = capability;
  cl->kernel_local[SCL_K_transfer_unpack] = had;
  CHECK_OK(scl_cl_op_end(&op, SCL_OK));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_cl_op_end(&op, SCL_E_ARGUMENT));
  scl_buffer_release(a.buffer);
}

static void check_device(scl_context *ctx) {
  check_queues(ctx);
  check_waiting(ctx);
  check_limits(ctx);
}

void test_queue(scl_context *ctx) {
  check_mixture(ctx, test_small() ? 100 : 3000);
  if (!scl_context_is_host(ctx)) check_device(ctx);
}
