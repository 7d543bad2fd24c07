/* Covariance matrices and their reverse mode on the device: covariance.cl. */
#include "scl_cl.h"
#include "scl_covariance.h"

#include <stdlib.h>

enum {
  LANES = 16, /* COVARIANCE_LANES */
  TILE = 64,  /* COVARIANCE_TILE */
  ADJOINT_LANES_I = 16,
  ADJOINT_LANES_J = 4,
  ADJOINT_TILE = 32,
  ADJOINT_GROUP = 64,
  ADJOINT_STRIDE = 65,
  MOST_GROUPS_GPU = 2048, /* of the adjoint: what a large GPU holds at once */
  MOST_GROUPS_CPU = 64,
  MOST_SUMS = 40 /* derivatives of one launch: 20 kB of local memory */
};

/* The kernel in the form that covariance.cl reads; release out->buffer. */
static scl_status upload_plan(scl_context *ctx, const scl_covariance *kernel, scl_block *out) {
  size_t count = 3 * (size_t)kernel->terms + 2 * (size_t)kernel->entries;
  double *plan = malloc(count * sizeof *plan), *p = plan;
  if (plan == NULL) return scl_fail_memory(count * sizeof *plan, 0, "the kernel's description");
  for (int t = 0; t < kernel->terms; t++) {
    *p++ = (double)kernel->term[t].type;
    *p++ = (double)kernel->term[t].entries;
    *p++ = kernel->term[t].sd * kernel->term[t].sd;
  }
  for (int e = 0; e < kernel->entries; e++) {
    *p++ = (double)kernel->column[e];
    *p++ = 1.0 / kernel->lengthscale[e];
  }
  scl_block block = {0};
  scl_status status = scl_block_create(ctx, count, 1, &block);
  if (status == SCL_OK) {
    status = ctx->engine->upload(ctx, SCL_GENERAL, plan, count, block);
    if (status != SCL_OK) scl_buffer_release(block.buffer);
  }
  free(plan);
  if (status == SCL_OK) *out = block;
  return status;
}

/* Tiles that cover the matrix, or its lower triangle. */
static size_t count_tiles(const struct scl_covariance_pass *pass, size_t tile) {
  size_t rows = (pass->x1.nrow + tile - 1) / tile, columns = (pass->x2.nrow + tile - 1) / tile;
  return pass->symmetric ? rows * (rows + 1) / 2 : rows * columns;
}

static void begin_op(scl_cl_op *op, scl_context *ctx, const struct scl_covariance_pass *pass,
                     scl_block plan) {
  scl_cl_op_begin(op, ctx);
  scl_cl_op_reads(op, pass->x1.buffer);
  scl_cl_op_reads(op, pass->x2.buffer);
  scl_cl_op_reads(op, plan.buffer);
}

scl_status scl_cl_covariance(scl_context *ctx, const struct scl_covariance_pass *pass) {
  const scl_covariance *kernel = pass->kernel;
  const size_t local[2] = {LANES, LANES};
  const size_t global[2] = {count_tiles(pass, TILE) * LANES, LANES};
  const int region = !pass->symmetric ? 0 : pass->region == SCL_LOWER_HALF ? 1 : 2;
  scl_block plan;
  SCL_TRY(upload_plan(ctx, kernel, &plan));
  scl_cl_op op;
  scl_status status;
  begin_op(&op, ctx, pass, plan);
  scl_cl_op_writes(&op, pass->k.buffer);
  SCL_GO(scl_cl_op_order(&op, -1));
  SCL_GO(scl_cl_launch(&op, SCL_K_covariance_build, 2, global, local, "bbbbiiiid", pass->x1,
                       pass->x2, plan, pass->k, (int)pass->x1.nrow, (int)pass->x2.nrow,
                       kernel->terms, region, kernel->noise * kernel->noise));
done:
  status = scl_cl_op_end(&op, status);
  scl_buffer_release(plan.buffer);
  return status;
}

/* Derivatives `first` .. `first` + `count` - 1; partial is count x groups. */
static scl_status launch_adjoint(scl_cl_op *op, const struct scl_covariance_pass *pass,
                                 scl_block plan, scl_block partial, size_t first) {
  const scl_covariance *kernel = pass->kernel;
  const size_t count = partial.nrow, groups = partial.ncol;
  const size_t local[2] = {ADJOINT_LANES_I, ADJOINT_LANES_J};
  const size_t global[2] = {groups * ADJOINT_LANES_I, ADJOINT_LANES_J};
  const scl_block alpha = pass->a.buffer != NULL ? pass->a : pass->x1; /* not read if outer is 0 */
  const double outer = pass->a.buffer != NULL ? pass->outer : 0.0;
  SCL_TRY(scl_cl_launch(op, SCL_K_covariance_adjoint, 2, global, local, "bbbbbbiiiiiiidddls",
                        pass->x1, pass->x2, plan, pass->weights, alpha, partial, (int)pass->x1.nrow,
                        (int)pass->x2.nrow, kernel->terms, kernel->entries, (int)pass->symmetric,
                        (int)first, (int)count, outer, pass->inner, kernel->noise * kernel->noise,
                        (long long)count_tiles(pass, ADJOINT_TILE),
                        count * ADJOINT_STRIDE * sizeof(double)));
  const size_t sum_local = ADJOINT_GROUP, sum_global = count * ADJOINT_GROUP;
  return scl_cl_launch(op, SCL_K_covariance_sum, 1, &sum_global, &sum_local, "bbi", partial,
                       scl_block_part(pass->out, first, 0, count, 1), (int)groups);
}

scl_status scl_cl_covariance_adjoint(scl_context *ctx, const struct scl_covariance_pass *pass) {
  const size_t all = (size_t)scl_covariance_count(pass->kernel);
  const size_t most = ((scl_cl_context *)ctx)->cpu ? MOST_GROUPS_CPU : MOST_GROUPS_GPU;
  size_t groups = count_tiles(pass, ADJOINT_TILE);
  if (groups > most) groups = most;
  scl_block plan, partial = {0};
  SCL_TRY(upload_plan(ctx, pass->kernel, &plan));
  scl_cl_op op;
  scl_status status;
  begin_op(&op, ctx, pass, plan);
  scl_cl_op_reads(&op, pass->weights.buffer);
  scl_cl_op_reads(&op, pass->a.buffer);
  scl_cl_op_writes(&op, pass->out.buffer);
  SCL_GO(scl_cl_op_order(&op, -1));
  SCL_GO(scl_cl_temporary(&op, all < MOST_SUMS ? all : MOST_SUMS, groups, &partial));
  for (size_t first = 0; first < all; first += MOST_SUMS) {
    size_t count = all - first < MOST_SUMS ? all - first : MOST_SUMS;
    SCL_GO(launch_adjoint(&op, pass, plan, scl_block_part(partial, 0, 0, count, groups), first));
  }
done:
  status = scl_cl_op_end(&op, status);
  scl_buffer_release(partial.buffer);
  scl_buffer_release(plan.buffer);
  return status;
}
