/* Covariance matrices and their reverse mode on the device: covariance.cl, covariance_adjoint.cl,
 * covariance_inputs.cl. They are built for the types of the covariance function at hand: that takes
 * an NVIDIA driver a third to half of the time that all types take, and the kernels need fewer
 * registers. On a CPU device only four sets of types are distinguished. */
#include "engine/cl/covariance/plan.h"
#include "engine/cl/linalg/linalg.h"
#include "engine/cl/runtime/launch.h"
#include "engine/pass/covariance.h"

#include <stdlib.h>

#include "kernels/include/covariance_groups.h"

enum {
  MOST_GROUPS_GPU = 2048, /* of the adjoint: as many as a large GPU runs at once */
  MOST_GROUPS_CPU = 64,
  MOST_SUMS = 40 /* derivatives of one launch: 20 kB of local memory */
};

static int count_products(const scl_covariance *kernel) {
  return kernel->factors == NULL ? kernel->terms : kernel->products;
}

/* The number of integers that the products take in the plan. */
static size_t count_factors(const scl_covariance *kernel) {
  if (kernel->factors == NULL) return 2 * (size_t)kernel->terms;
  size_t at = 0;
  for (int g = 0; g < kernel->products; g++) at += 1 + (size_t)kernel->factors[at];
  return at;
}

size_t scl_cl_covariance_plan_size(const scl_covariance *kernel) {
  return 5 * (size_t)kernel->terms + 3 * (size_t)kernel->entries + count_factors(kernel);
}

void scl_cl_covariance_plan(const scl_covariance *kernel, double *p) {
  for (int t = 0, first = 0; t < kernel->terms; first += kernel->term[t++].entries) {
    *p++ = (double)kernel->term[t].type;
    *p++ = (double)kernel->term[t].entries;
    *p++ = (double)first;
    *p++ = kernel->term[t].sd * kernel->term[t].sd;
    *p++ = kernel->term[t].extra;
  }
  for (int e = 0; e < kernel->entries; e++) {
    *p++ = (double)kernel->column[e];
    *p++ = 1.0 / kernel->lengthscale[e];
    *p++ = kernel->center == NULL ? 0.0 : kernel->center[e];
  }
  size_t factors = count_factors(kernel);
  for (size_t q = 0; q < factors; q++) {
    *p++ = kernel->factors != NULL ? kernel->factors[q] : q % 2 == 0 ? 1.0 : (double)(q / 2);
  }
}

/* The kernel in the form that covariance*.cl read; release out->buffer. */
static scl_status upload_plan(scl_context *ctx, const scl_covariance *kernel, scl_block *out) {
  size_t count = scl_cl_covariance_plan_size(kernel);
  double *plan = malloc(count * sizeof *plan);
  if (plan == NULL) return scl_fail_memory(count * sizeof *plan, 0, "the kernel's description");
  scl_cl_covariance_plan(kernel, plan);
  const scl_status status = scl_block_upload(ctx, plan, count, SCL_RESULT, out);
  free(plan);
  return status;
}

/* A block that a kernel does not read unless its leading dimension is positive. */
static scl_block or_unread(scl_block b, scl_block other) {
  if (b.buffer != NULL) return b;
  other.ld = 0;
  return other;
}

/* Tiles that cover the matrix, or its lower triangle. */
static size_t count_tiles(const struct scl_covariance_pass *pass, size_t tile) {
  size_t rows = scl_ceil_div(pass->x1.nrow, tile), columns = scl_ceil_div(pass->x2.nrow, tile);
  return pass->symmetric ? rows * (rows + 1) / 2 : rows * columns;
}

void scl_cl_covariance_select(scl_context *ctx, scl_cl_program which,
                              const scl_covariance *kernel) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  scl_cl_program_select(
      cl, which, cl->cpu ? scl_covariance_kinds_rounded(kernel) : scl_covariance_kinds(kernel));
}

/* Products with the columns of y are thin; solves without an inverse have a kernel of their own. */
scl_status scl_cl_gp_prepare(scl_context *ctx, const struct scl_covariance_pass *pass,
                             bool gradient) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  scl_cl_program list[4 + SCL_CL_FACTOR_PROGRAMS];
  int count = 0;
  if (cl->cpu) return SCL_OK; /* its driver compiles later, on its own threads */
  if (gradient) {
    scl_cl_covariance_select(ctx, SCL_CL_PROGRAM_covariance_adjoint, pass->kernel);
    list[count++] = SCL_CL_PROGRAM_covariance_adjoint;
  }
  scl_cl_covariance_select(ctx, SCL_CL_PROGRAM_covariance, pass->kernel);
  list[count++] = SCL_CL_PROGRAM_covariance;
  count += scl_cl_factor_programs(cl, pass->x1.nrow, gradient, list + count);
  list[count++] = gradient ? SCL_CL_PROGRAM_gemm_thin : SCL_CL_PROGRAM_triangular_vector;
  list[count++] = SCL_CL_PROGRAM_elementwise;
  return scl_cl_programs_prepare(cl, count, list);
}

static double noise2(const struct scl_covariance_pass *pass) {
  return pass->quiet ? 0.0 : pass->kernel->noise * pass->kernel->noise;
}

/* The constants of all covariance kernels; `spread` is read if its leading dimension is positive.
 */
static covariance_task describe_task(const struct scl_covariance_pass *pass, scl_block plan,
                                     scl_block spread, scl_block out) {
  const scl_covariance *kernel = pass->kernel;
  int region = pass->region == SCL_LOWER_HALF ? COVARIANCE_LOWER : COVARIANCE_MIRRORED;
  return (covariance_task){.x1_offset = (int64_t)pass->x1.offset,
                           .x2_offset = (int64_t)pass->x2.offset,
                           .plan_offset = (int64_t)plan.offset,
                           .spread_offset = (int64_t)spread.offset,
                           .out_offset = (int64_t)out.offset,
                           .noise2 = noise2(pass),
                           .x1_ld = (int)pass->x1.ld,
                           .x2_ld = (int)pass->x2.ld,
                           .spread_ld = (int)spread.ld,
                           .out_ld = (int)out.ld,
                           .m = (int)pass->x1.nrow,
                           .n = (int)pass->x2.nrow,
                           .terms = kernel->terms,
                           .entries = kernel->entries,
                           .products = count_products(kernel),
                           .region = pass->symmetric ? region : COVARIANCE_ALL,
                           .symmetric = pass->symmetric,
                           .quiet = pass->quiet};
}

scl_status scl_cl_covariance(scl_context *ctx, const struct scl_covariance_pass *pass) {
  const scl_covariance *kernel = pass->kernel;
  const size_t local[2] = {COVARIANCE_LANES, COVARIANCE_LANES};
  const size_t global[2] = {count_tiles(pass, COVARIANCE_TILE) * COVARIANCE_LANES,
                            COVARIANCE_LANES};
  const scl_block spread = or_unread(pass->spread, pass->x1);
  scl_block plan;
  SCL_TRY(upload_plan(ctx, kernel, &plan));
  const covariance_task task = describe_task(pass, plan, spread, pass->k);
  scl_cl_op op;
  scl_cl_covariance_select(ctx, SCL_CL_PROGRAM_covariance, kernel);
  scl_cl_op_begin(&op, ctx);
  scl_status status =
      scl_cl_op_end(&op, scl_launch_covariance_build(
                             &op, scl_cl_range_2(global, local), scl_in_buffer(pass->x1.buffer),
                             scl_in_buffer(pass->x2.buffer), scl_in_buffer(plan.buffer),
                             scl_in_buffer(spread.buffer), scl_out_buffer(pass->k.buffer), &task));
  scl_buffer_release(plan.buffer);
  return status;
}

/* The weights as both reverse kernels take them. */
typedef struct {
  const scl_buffer *w, *u, *v;
  covariance_weighting how;
} weighting;

static weighting read_weights(const struct scl_covariance_pass *pass) {
  const scl_block w = or_unread(pass->weights, pass->x1), u = or_unread(pass->u, pass->x1),
                  v = or_unread(pass->v, pass->x1);
  const bool two = pass->u.buffer != pass->v.buffer || pass->u.offset != pass->v.offset;
  weighting g = {.w = w.buffer, .u = u.buffer, .v = v.buffer};
  g.how = (covariance_weighting){.w_offset = (int64_t)w.offset,
                                 .u_offset = (int64_t)u.offset,
                                 .v_offset = (int64_t)v.offset,
                                 .outer = pass->outer,
                                 .inner = pass->weights.buffer != NULL ? pass->inner : 0.0,
                                 .w_ld = (int)w.ld,
                                 .u_ld = (int)u.ld,
                                 .v_ld = (int)v.ld,
                                 .rank = pass->u.buffer != NULL ? (int)pass->u.ncol : 0,
                                 .two = pass->symmetric && two};
  return g;
}

static void declare_adjoint(scl_cl_op *op, const struct scl_covariance_pass *pass, scl_block plan) {
  scl_cl_op_reads(op, pass->x1.buffer);
  scl_cl_op_reads(op, pass->x2.buffer);
  scl_cl_op_reads(op, pass->spread.buffer);
  scl_cl_op_reads(op, plan.buffer);
  scl_cl_op_reads(op, pass->weights.buffer);
  scl_cl_op_reads(op, pass->u.buffer);
  scl_cl_op_reads(op, pass->v.buffer);
  scl_cl_op_writes(op, pass->out.buffer);
}

/* Derivatives `first` .. `first` + `count` - 1; partial is count x groups. */
static scl_status launch_adjoint(scl_cl_op *op, const struct scl_covariance_pass *pass,
                                 scl_block plan, scl_block partial, size_t first) {
  const size_t count = partial.nrow, groups = partial.ncol;
  const size_t local[2] = {ADJOINT_LANES_I, ADJOINT_LANES_J};
  const size_t global[2] = {groups * ADJOINT_LANES_I, ADJOINT_LANES_J};
  const scl_block spread = or_unread(pass->spread, pass->x1);
  const covariance_task task = describe_task(pass, plan, spread, partial);
  const weighting g = read_weights(pass);
  const covariance_range part = {(int64_t)count_tiles(pass, ADJOINT_TILE), (int)first, (int)count};
  SCL_TRY(scl_launch_covariance_adjoint(
      op, scl_cl_range_2(global, local), scl_in_buffer(pass->x1.buffer),
      scl_in_buffer(pass->x2.buffer), scl_in_buffer(plan.buffer), scl_in_buffer(spread.buffer),
      scl_in_buffer(g.w), scl_in_buffer(g.u), scl_in_buffer(g.v), scl_out_buffer(partial.buffer),
      &task, &g.how, &part, scl_local(count * ADJOINT_STRIDE * sizeof(double))));
  return scl_launch_covariance_sum(
      op, scl_cl_range_1(count * ADJOINT_GROUP, ADJOINT_GROUP), scl_in(partial),
      scl_out(scl_block_part(pass->out, first, 0, count, 1)), (int)groups);
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
  scl_cl_covariance_select(ctx, SCL_CL_PROGRAM_covariance_adjoint, pass->kernel);
  scl_cl_op_begin(&op, ctx);
  declare_adjoint(&op, pass, plan);
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

scl_status scl_cl_covariance_inputs(scl_context *ctx, const struct scl_covariance_pass *pass) {
  const scl_covariance *kernel = pass->kernel;
  const size_t local[3] = {INPUTS_ROWS, INPUTS_LANES, 1};
  const size_t global[3] = {scl_round_up(pass->x1.nrow, INPUTS_ROWS), INPUTS_LANES, pass->x1.ncol};
  const weighting g = read_weights(pass);
  scl_block plan;
  SCL_TRY(upload_plan(ctx, kernel, &plan));
  const covariance_task task =
      describe_task(pass, plan, or_unread(pass->spread, pass->x1), pass->out);
  scl_cl_op op;
  scl_cl_covariance_select(ctx, SCL_CL_PROGRAM_covariance_inputs, kernel);
  scl_cl_op_begin(&op, ctx);
  scl_status status =
      scl_cl_op_end(&op, scl_launch_covariance_inputs(
                             &op, scl_cl_range_3(global, local), scl_in_buffer(pass->x1.buffer),
                             scl_in_buffer(pass->x2.buffer), scl_in_buffer(plan.buffer),
                             scl_in_buffer(g.w), scl_in_buffer(g.u), scl_in_buffer(g.v),
                             scl_out_buffer(pass->out.buffer), &task, &g.how));
  scl_buffer_release(plan.buffer);
  return status;
}
