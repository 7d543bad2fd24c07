/* Batched small matrices on a device: picks the kernel made for the order, launches it, and reads
 * the statuses where they are asked for and one of them is not fine. */
#include "scl_batch.h"
#include "scl_cl.h"

#include <stdlib.h>
#include <string.h>

#include "../inst/kernels/batch.h"
#include "scl_cl_batch_layouts.h"

typedef struct {
  size_t n, items, matrices; /* largest order; work-items and matrices of a group */
  size_t columns;            /* right-hand sides of a group; 0: all */
} layout;

#define BATCH_SMALL(op, n, items) {n, items, items, 0},
#define BATCH_TILE(op, n, p, q, matrices) {n, (p) * (q) * (matrices), matrices, q},
static const layout layouts[] = {BATCH_LAYOUTS(any)};
#undef BATCH_SMALL
#undef BATCH_TILE

/* The kernels of an operation stand in the order of the layouts. */
static const scl_cl_kernel first_kernel[] = {
    [SCL_BATCH_INVERSE] = SCL_K_batch_inverse_1,
    [SCL_BATCH_CHOL] = SCL_K_batch_chol_1,
    [SCL_BATCH_CHOL_ADJOINT] = SCL_K_batch_chol_adjoint_1,
    [SCL_BATCH_SOLVE] = SCL_K_batch_solve_1,
    [SCL_BATCH_DET] = SCL_K_batch_solve_1,
    [SCL_BATCH_TRI_SOLVE] = SCL_K_batch_tri_solve_1,
    [SCL_BATCH_MVN] = SCL_K_batch_tri_solve_1,
};

static int flags_of(const scl_batch_pass *p) {
  return (p->upper ? BATCH_UPPER : 0) | (p->transpose ? BATCH_TRANSPOSE : 0) |
         (p->transpose_b ? BATCH_TRANSPOSE_B : 0) | (p->cofactors ? BATCH_COFACTORS : 0) |
         (p->logarithm ? BATCH_LOGARITHM : 0) | (p->c.buffer != NULL ? BATCH_MEAN : 0) |
         (p->op == SCL_BATCH_DET ? BATCH_DET : 0) | (p->op == SCL_BATCH_MVN ? BATCH_MVN : 0);
}

static scl_status launch_product(scl_cl_op *op, const scl_batch_pass *p) {
  size_t m = p->m, n = p->n;
  if (m * n < BATCH_TILED_FROM) {
    size_t local = 64, global = scl_round_up(p->batch * m * n, local);
    return scl_cl_launch(op, SCL_K_batch_matmul_small, 1, &global, &local, "iiiiibbb",
                         (int)p->batch, (int)m, (int)n, (int)p->k, flags_of(p), p->a, p->b, p->out);
  }
  size_t rows = (m + BATCH_PRODUCT_TILE - 1) / BATCH_PRODUCT_TILE;
  size_t columns = (n + BATCH_PRODUCT_TILE - 1) / BATCH_PRODUCT_TILE;
  size_t local[2] = {BATCH_PRODUCT_ITEMS, BATCH_PRODUCT_ITEMS};
  size_t global[2] = {p->batch * rows * BATCH_PRODUCT_ITEMS, columns * BATCH_PRODUCT_ITEMS};
  return scl_cl_launch(op, SCL_K_batch_matmul_tiled, 2, global, local, "iiiiibbb", (int)p->batch,
                       (int)m, (int)n, (int)p->k, flags_of(p), p->a, p->b, p->out);
}

static scl_status launch(scl_cl_op *op, const scl_batch_pass *p, scl_buffer *statuses) {
  if (p->op == SCL_BATCH_MATMUL) return launch_product(op, p);
  size_t at = 0;
  while (layouts[at].n < p->n) at++;
  const layout *l = &layouts[at];
  scl_cl_kernel kernel = (scl_cl_kernel)((size_t)first_kernel[p->op] + at);
  size_t parts = l->columns > 0 && p->k > 0 ? (p->k + l->columns - 1) / l->columns : 1;
  size_t local[2] = {l->items, 1};
  size_t global[2] = {(p->batch + l->matrices - 1) / l->matrices * l->items, parts};
  cl_mem flag = op->cl->batch_flag;
  int batch = (int)p->batch, n = (int)p->n, k = (int)p->k, flags = flags_of(p);
  switch (p->op) {
  case SCL_BATCH_INVERSE:
  case SCL_BATCH_CHOL:
    return scl_cl_launch(op, kernel, 2, global, local, "iiiibbmr", batch, n, k, flags, p->a, p->out,
                         statuses, flag);
  case SCL_BATCH_TRI_SOLVE:
  case SCL_BATCH_MVN:
    return scl_cl_launch(op, kernel, 2, global, local, "iiiibbbbmr", batch, n, k, flags, p->a, p->b,
                         p->c, p->out, statuses, flag);
  default:
    return scl_cl_launch(op, kernel, 2, global, local, "iiiibbbmr", batch, n, k, flags, p->a, p->b,
                         p->out, statuses, flag);
  }
}

/* The flag starts at 0 and goes back to it each time that it was seen set, so that a batch without
 * a fault costs no command for it. What a pass that asked for no status leaves set makes a later
 * one look at statuses that are all fine. */
static scl_status need_flag(scl_cl_context *cl) {
  if (cl->batch_flag != NULL) return SCL_OK;
  cl_int zero = 0, code = CL_SUCCESS;
  cl_mem flag = scl_cl.clCreateBuffer(cl->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                      sizeof zero, &zero, &code);
  if (flag == NULL) return scl_cl_fail(&cl->base, code, "clCreateBuffer");
  cl->batch_flag = flag;
  return SCL_OK;
}

static scl_status ask_flag(scl_cl_op *op) {
  cl_event event = NULL;
  cl_int code = scl_cl.clEnqueueReadBuffer(op->cl->queue[op->queue], op->cl->batch_flag, CL_FALSE,
                                           0, sizeof op->cl->batch_seen, &op->cl->batch_seen,
                                           op->waits, op->waits > 0 ? op->wait : NULL, &event);
  if (code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, code, "clEnqueueReadBuffer");
  scl_cl_op_took(op, event);
  return SCL_OK;
}

static scl_status clear_flag(scl_cl_op *op) {
  static const cl_int zero = 0;
  cl_event event = NULL;
  cl_int code =
      scl_cl.clEnqueueWriteBuffer(op->cl->queue[op->queue], op->cl->batch_flag, CL_FALSE, 0,
                                  sizeof zero, &zero, 0, NULL, scl_cl_op_event(op, &event));
  if (code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, code, "clEnqueueWriteBuffer");
  scl_cl_op_took(op, event);
  return SCL_OK;
}

/* Waits for the flag that was asked for; the statuses of a batch that is all fine stay where they
 * are. */
static scl_status read_statuses(scl_cl_op *op, const scl_batch_pass *p, scl_block statuses) {
  scl_cl_context *cl = op->cl;
  SCL_CL_TRY(cl, scl_cl.clFlush(cl->queue[op->queue]), "clFlush");
  SCL_TRY(scl_cl_reach(cl, op->queue, cl->enqueued[op->queue]));
  if (cl->batch_seen == 0) return SCL_OK;
  *p->told = true;
  SCL_TRY(clear_flag(op));
  size_t bytes = statuses.nrow * sizeof(double);
  double *copy = malloc(bytes);
  if (copy == NULL) return scl_fail_memory(bytes, 0, "the statuses of a batch");
  scl_status status = scl_cl_download(&cl->base, SCL_GENERAL, statuses, copy, statuses.nrow);
  if (status == SCL_OK) memcpy(p->status, copy, p->batch);
  free(copy);
  return status;
}

scl_status scl_cl_batch(scl_context *ctx, const scl_batch_pass *p) {
  scl_cl_op op;
  scl_block statuses;
  SCL_TRY(need_flag((scl_cl_context *)ctx));
  SCL_TRY(scl_block_create(ctx, (p->batch + 7) / 8, 1, &statuses));
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, p->a.buffer);
  scl_cl_op_reads(&op, p->b.buffer);
  scl_cl_op_reads(&op, p->c.buffer);
  scl_cl_op_writes(&op, p->out.buffer);
  scl_cl_op_writes(&op, statuses.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (p->status != NULL) op.timing = SCL_CL_TIME_EACH;
  if (status == SCL_OK) status = launch(&op, p, statuses.buffer);
  if (p->status != NULL) op.timing = SCL_CL_TIME_NONE;
  if (status == SCL_OK && p->status != NULL) status = ask_flag(&op);
  if (status == SCL_OK && p->status != NULL) status = read_statuses(&op, p, statuses);
  status = scl_cl_op_end(&op, status);
  scl_buffer_release(statuses.buffer);
  return status;
}
