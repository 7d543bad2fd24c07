/* Covariance matrices and their reverse mode on the device: covariance.cl, covariance_adjoint.cl,
 * covariance_inputs.cl. Each has a form for sums of basic types, which needs fewer registers. */
#include "engine/cl/runtime/cl.h"
#include "engine/pass/covariance.h"

#include <stdlib.h>

enum {
  LANES = 16, /* COVARIANCE_LANES */
  TILE = 64,  /* COVARIANCE_TILE */
  ADJOINT_LANES_I = 16,
  ADJOINT_LANES_J = 4,
  ADJOINT_TILE = 32,
  ADJOINT_GROUP = 64,
  ADJOINT_STRIDE = 65,
  INPUTS_ROWS = 32,
  INPUTS_LANES = 8,
  MOST_GROUPS_GPU = 2048, /* of the adjoint: what a large GPU holds at once */
  MOST_GROUPS_CPU = 64,
  MOST_SUMS = 40 /* derivatives of one launch: 20 kB of local memory */
};

static int count_products(const scl_covariance *kernel) {
  return kernel->factors == NULL ? kernel->terms : kernel->products;
}

/* Whole numbers that the products take in the plan. */
static size_t count_factors(const scl_covariance *kernel) {
  if (kernel->factors == NULL) return 2 * (size_t)kernel->terms;
  size_t at = 0;
  for (int g = 0; g < kernel->products; g++) at += 1 + (size_t)kernel->factors[at];
  return at;
}

/* As covariance_plan.h says. */
static void write_plan(const scl_covariance *kernel, double *p) {
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
  size_t count = 5 * (size_t)kernel->terms + 3 * (size_t)kernel->entries + count_factors(kernel);
  double *plan = malloc(count * sizeof *plan);
  if (plan == NULL) return scl_fail_memory(count * sizeof *plan, 0, "the kernel's description");
  write_plan(kernel, plan);
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

/* A block that a kernel does not read unless its leading dimension is positive. */
static scl_block or_unread(scl_block b, scl_block other) {
  if (b.buffer != NULL) return b;
  other.ld = 0;
  return other;
}

/* Tiles that cover the matrix, or its lower triangle. */
static size_t count_tiles(const struct scl_covariance_pass *pass, size_t tile) {
  size_t rows = (pass->x1.nrow + tile - 1) / tile, columns = (pass->x2.nrow + tile - 1) / tile;
  return pass->symmetric ? rows * (rows + 1) / 2 : rows * columns;
}

static double noise2(const struct scl_covariance_pass *pass) {
  return pass->quiet ? 0.0 : pass->kernel->noise * pass->kernel->noise;
}

static void begin_op(scl_cl_op *op, scl_context *ctx, const struct scl_covariance_pass *pass,
                     scl_block plan) {
  scl_cl_op_begin(op, ctx);
  scl_cl_op_reads(op, pass->x1.buffer);
  scl_cl_op_reads(op, pass->x2.buffer);
  scl_cl_op_reads(op, pass->spread.buffer);
  scl_cl_op_reads(op, plan.buffer);
}

scl_status scl_cl_covariance(scl_context *ctx, const struct scl_covariance_pass *pass) {
  const scl_covariance *kernel = pass->kernel;
  const size_t local[2] = {LANES, LANES};
  const size_t global[2] = {count_tiles(pass, TILE) * LANES, LANES};
  const int region = !pass->symmetric ? 0 : pass->region == SCL_LOWER_HALF ? 1 : 2;
  const scl_cl_kernel build =
      scl_covariance_is_basic(kernel) ? SCL_K_covariance_basic_build : SCL_K_covariance_build;
  scl_block plan;
  SCL_TRY(upload_plan(ctx, kernel, &plan));
  scl_cl_op op;
  scl_status status;
  begin_op(&op, ctx, pass, plan);
  scl_cl_op_writes(&op, pass->k.buffer);
  SCL_GO(scl_cl_op_order(&op, -1));
  SCL_GO(scl_cl_launch(&op, build, 2, global, local, "bbbbbiiiiiiid", pass->x1, pass->x2, plan,
                       or_unread(pass->spread, pass->x1), pass->k, (int)pass->x1.nrow,
                       (int)pass->x2.nrow, kernel->terms, kernel->entries, count_products(kernel),
                       region, (int)pass->quiet, noise2(pass)));
done:
  status = scl_cl_op_end(&op, status);
  scl_buffer_release(plan.buffer);
  return status;
}

/* The weights as both reverse kernels take them. */
typedef struct {
  scl_block w, u, v;
  int rank, two;
  double inner;
} weighting;

static weighting read_weights(const struct scl_covariance_pass *pass) {
  weighting g = {.w = or_unread(pass->weights, pass->x1),
                 .u = or_unread(pass->u, pass->x1),
                 .v = or_unread(pass->v, pass->x1)};
  g.rank = pass->u.buffer != NULL ? (int)pass->u.ncol : 0;
  g.two = pass->symmetric && (pass->u.buffer != pass->v.buffer || pass->u.offset != pass->v.offset);
  g.inner = pass->weights.buffer != NULL ? pass->inner : 0.0;
  return g;
}

static void declare_weights(scl_cl_op *op, const struct scl_covariance_pass *pass) {
  scl_cl_op_reads(op, pass->weights.buffer);
  scl_cl_op_reads(op, pass->u.buffer);
  scl_cl_op_reads(op, pass->v.buffer);
  scl_cl_op_writes(op, pass->out.buffer);
}

/* Derivatives `first` .. `first` + `count` - 1; partial is count x groups. */
static scl_status launch_adjoint(scl_cl_op *op, const struct scl_covariance_pass *pass,
                                 scl_block plan, scl_block partial, size_t first) {
  const scl_covariance *kernel = pass->kernel;
  const size_t count = partial.nrow, groups = partial.ncol;
  const size_t local[2] = {ADJOINT_LANES_I, ADJOINT_LANES_J};
  const size_t global[2] = {groups * ADJOINT_LANES_I, ADJOINT_LANES_J};
  const scl_cl_kernel adjoint =
      scl_covariance_is_basic(kernel) ? SCL_K_covariance_basic_adjoint : SCL_K_covariance_adjoint;
  const weighting g = read_weights(pass);
  SCL_TRY(scl_cl_launch(op, adjoint, 2, global, local, "bbbbbbbbiiiiiiiiiiidddls", pass->x1,
                        pass->x2, plan, or_unread(pass->spread, pass->x1), g.w, g.u, g.v, partial,
                        (int)pass->x1.nrow, (int)pass->x2.nrow, kernel->terms, kernel->entries,
                        count_products(kernel), (int)pass->symmetric, (int)pass->quiet, (int)first,
                        (int)count, g.rank, g.two, pass->outer, g.inner, noise2(pass),
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
  declare_weights(&op, pass);
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
  scl_cl_op op;
  scl_status status;
  begin_op(&op, ctx, pass, plan);
  declare_weights(&op, pass);
  SCL_GO(scl_cl_op_order(&op, -1));
  SCL_GO(scl_cl_launch(&op, SCL_K_covariance_inputs, 3, global, local, "bbbbbbbiiiiiiiiidd",
                       pass->x1, pass->x2, plan, g.w, g.u, g.v, pass->out, (int)pass->x1.nrow,
                       (int)pass->x2.nrow, kernel->terms, kernel->entries, count_products(kernel),
                       (int)pass->symmetric, (int)pass->quiet, g.rank, g.two, pass->outer,
                       g.inner));
done:
  status = scl_cl_op_end(&op, status);
  scl_buffer_release(plan.buffer);
  return status;
}
