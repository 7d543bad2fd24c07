/* Vecchia's approximation on the device (vecchia.cl). Groups take points in turn; their results are
 * added on the host, in their order. */
#include "engine/pass/vecchia.h"

#include <stdlib.h>
#include <string.h>

#include "engine/cl/covariance/plan.h"
#include "engine/cl/runtime/launch.h"

enum {
  MOST_GROUPS_GPU = 8192, /* several times what a large GPU holds at once */
  MOST_GROUPS_CPU = 64
};

/* The plan, then `combine` and `factor`, or `group`; release out->buffer. */
static scl_status upload_numbers(scl_context *ctx, const struct scl_vecchia_pass *pass,
                                 scl_block *out) {
  size_t plan = scl_cl_covariance_plan_size(pass->kernel), more = pass->columns * pass->combined;
  size_t groups = pass->parameters > 0 ? (size_t)scl_covariance_count(pass->kernel) : 0;
  size_t count = plan + more + pass->combined + groups;
  double *numbers = malloc(count * sizeof *numbers);
  if (numbers == NULL) return scl_fail_memory(count * sizeof *numbers, 0, "a description");
  scl_cl_covariance_plan(pass->kernel, numbers);
  if (pass->combined > 0) {
    memcpy(numbers + plan, pass->combine, more * sizeof *numbers);
    memcpy(numbers + plan + more, pass->factor, pass->combined * sizeof *numbers);
  }
  for (size_t i = 0; i < groups; i++) numbers[plan + i] = pass->group[i];
  scl_block block = {0};
  scl_status status = scl_block_create(ctx, count, 1, &block);
  if (status == SCL_OK) {
    status = ctx->engine->upload(ctx, SCL_GENERAL, numbers, count, block);
    if (status != SCL_OK) scl_buffer_release(block.buffer);
  }
  free(numbers);
  if (status == SCL_OK) *out = block;
  return status;
}

static vecchia_task describe(const struct scl_vecchia_pass *pass, scl_block numbers,
                             scl_block partial) {
  const scl_covariance *kernel = pass->kernel;
  size_t plan = scl_cl_covariance_plan_size(kernel);
  return (vecchia_task){.records_offset = (int64_t)pass->records.offset,
                        .neighbours_offset = (int64_t)pass->neighbours.offset,
                        .plan_offset = (int64_t)numbers.offset,
                        .combine_offset = (int64_t)(numbers.offset + plan),
                        .partial_offset = (int64_t)partial.offset,
                        .noise2 = kernel->noise * kernel->noise,
                        .logs = pass->logs,
                        .n = (int)pass->n,
                        .p = (int)pass->p,
                        .columns = (int)pass->columns,
                        .m = (int)pass->m,
                        .records_ld = (int)pass->records.ld,
                        .neighbours_ld = (int)pass->neighbours.ld,
                        .spread = pass->spread,
                        .terms = kernel->terms,
                        .entries = kernel->entries,
                        .products = kernel->factors == NULL ? kernel->terms : kernel->products,
                        .combined = (int)pass->combined,
                        .results = (int)scl_vecchia_results(pass),
                        .parameters = (int)pass->parameters};
}

typedef struct {
  scl_cl_program program;
  const scl_kernel_vecchia *kernel;
  size_t rows;
} version;

static version choose(const struct scl_vecchia_pass *pass) {
  bool small = pass->m < 32, sums = pass->what == SCL_VECCHIA_SUMS;
  version v = {SCL_CL_PROGRAM_vecchia_derivatives_64, &scl_k_vecchia_derivatives_64, 64};
  if (small && sums) v = (version){SCL_CL_PROGRAM_vecchia_sums_32, &scl_k_vecchia_sums_32, 32};
  if (small && !sums) {
    v = (version){SCL_CL_PROGRAM_vecchia_derivatives_32, &scl_k_vecchia_derivatives_32, 32};
  }
  if (pass->what == SCL_VECCHIA_INFORMATION) {
    v = (version){SCL_CL_PROGRAM_vecchia_information_64, &scl_k_vecchia_information_64, 64};
    if (!small) return v;
    return (version){SCL_CL_PROGRAM_vecchia_information_32, &scl_k_vecchia_information_32, 32};
  }
  if (!small && sums) v = (version){SCL_CL_PROGRAM_vecchia_sums_64, &scl_k_vecchia_sums_64, 64};
  return v;
}

/* Numbers of each row in the local memory that the launch adds: coordinates, or columns of z. */
static size_t row_width(const struct scl_vecchia_pass *pass, size_t rows) {
  return pass->p * rows < pass->columns ? scl_ceil_div(pass->columns, rows) : pass->p;
}

static bool fits(const scl_cl_context *cl, const struct scl_vecchia_pass *pass) {
  if (pass->grouped) return false;
  const size_t rows = choose(pass).rows;
  const size_t moved =
      pass->parameters + pass->columns + (size_t)scl_covariance_count(pass->kernel);
  if (pass->what == SCL_VECCHIA_INFORMATION && moved > rows + 1) return false;
  /* the covariances, five vectors, the sums, and what the launch adds */
  const size_t numbers = rows + 1 + 5 + scl_vecchia_results(pass) + row_width(pass, rows);
  return rows * numbers * sizeof(double) <= cl->info.local_memory;
}

static scl_status launch(scl_context *ctx, const struct scl_vecchia_pass *pass, scl_block numbers,
                         scl_block partial) {
  version v = choose(pass);
  size_t results = partial.nrow, p = row_width(pass, v.rows);
  const vecchia_task task = describe(pass, numbers, partial);
  scl_cl_op op;
  scl_cl_covariance_select(ctx, v.program, pass->kernel);
  scl_cl_op_begin(&op, ctx);
  return scl_cl_op_end(
      &op, scl_launch_vecchia(&op, v.kernel, scl_cl_range_1(partial.ncol * v.rows, v.rows),
                              scl_in_buffer(pass->records.buffer),
                              scl_in_buffer(pass->neighbours.buffer), scl_in_buffer(numbers.buffer),
                              scl_out_buffer(partial.buffer), &task,
                              scl_local(results * v.rows * sizeof(double)),
                              scl_local(p * v.rows * sizeof(double))));
}

scl_status scl_cl_vecchia(scl_context *ctx, const struct scl_vecchia_pass *pass) {
  size_t results = scl_vecchia_results(pass);
  size_t groups = ((scl_cl_context *)ctx)->cpu ? MOST_GROUPS_CPU : MOST_GROUPS_GPU;
  if (!fits((scl_cl_context *)ctx, pass)) {
    pass->out[0] = -1;
    return SCL_OK;
  }
  if (groups > pass->n) groups = pass->n;
  scl_block numbers = {0}, partial = {0};
  scl_status status;
  double *found = malloc(results * groups * sizeof *found);
  if (found == NULL) return scl_fail_memory(results * groups * sizeof *found, 0, "results");
  SCL_GO(upload_numbers(ctx, pass, &numbers));
  SCL_GO(scl_block_create(ctx, results, groups, &partial));
  partial.ld = results; /* without gaps, as the kernel writes it */
  SCL_GO(launch(ctx, pass, numbers, partial));
  SCL_GO(ctx->engine->download(ctx, SCL_GENERAL, partial, SCL_WAIT_WRITES, found, results));
  for (size_t r = 0; r < results; r++) pass->out[r] = 0;
  for (size_t g = 0; g < groups; g++) {
    const double *of = found + g * results;
    if (of[0] != 0 && (pass->out[0] == 0 || of[0] < pass->out[0])) pass->out[0] = of[0];
    for (size_t r = 1; r < results; r++) pass->out[r] += of[r];
  }
done:
  scl_buffer_release(numbers.buffer);
  scl_buffer_release(partial.buffer);
  free(found);
  return status;
}
