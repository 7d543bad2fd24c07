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
  const scl_status status = scl_block_upload(ctx, numbers, count, SCL_RESULT, out);
  free(numbers);
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

/* rows: of the largest block. */
typedef struct {
  scl_cl_program program;
  const scl_kernel_vecchia *kernel;
  size_t rows;
} version;

enum { GROUPED_ITEMS = 32, MOST_TOGETHER = 8 };

#define VERSION(name, rows)                                                                        \
  { SCL_CL_PROGRAM_##name, &scl_k_##name, rows }

/* For blocks of at most 32 rows, or more. */
static version choose(const struct scl_vecchia_pass *pass, bool small) {
  static const version versions[2][3][2] = {
      {{VERSION(vecchia_sums_64, 64), VERSION(vecchia_sums_32, 32)},
       {VERSION(vecchia_derivatives_64, 64), VERSION(vecchia_derivatives_32, 32)},
       {VERSION(vecchia_information_64, 64), VERSION(vecchia_information_32, 32)}},
      {{VERSION(vecchia_grouped_sums_64, 64), VERSION(vecchia_grouped_sums_32, 32)},
       {VERSION(vecchia_grouped_derivatives_64, 64), VERSION(vecchia_grouped_derivatives_32, 32)},
       {VERSION(vecchia_grouped_information_64, 64), VERSION(vecchia_grouped_information_32, 32)}}};
  int what = pass->what == SCL_VECCHIA_SUMS ? 0 : pass->what == SCL_VECCHIA_DERIVATIVES ? 1 : 2;
  return versions[pass->grouped][what][small];
}

/* Local memory, in numbers: the kernel's declarations, its sums, and x, which holds coordinates,
 * later columns of z. Grouped kernels: coordinates, columns of z and the vectors of the
 * information. */
typedef struct {
  size_t items, declared, sums, x;
  size_t together; /* members whose information is computed at the same time */
} layout;

/* Whether the kernel's function has one term of squares of few columns, as vecchia_block.h says. */
static bool is_plain(const scl_covariance *kernel) {
  return kernel->terms == 1 && kernel->entries > 0 && kernel->entries <= 3 &&
         covariance_metric(kernel->term[0].type) == SCL_COVARIANCE_SQUARES;
}

/* Columns w and Y of `together` members, and dK w by each logarithm. */
static size_t moved_size(const struct scl_vecchia_pass *pass, size_t rows, size_t together) {
  size_t y_ld = (together * pass->parameters) | 1, w = rows * (together | 1), last = 32 * y_ld;
  size_t raw = GROUPED_ITEMS * (size_t)scl_covariance_count(pass->kernel);
  return (rows / 32 - 1) * 32 * y_ld + (w > last ? w : last) +
         (is_plain(pass->kernel) ? raw : together * raw);
}

static layout plan_grouped(const struct scl_vecchia_pass *pass, size_t rows, size_t most) {
  bool derivatives = pass->what == SCL_VECCHIA_DERIVATIVES;
  layout l = {.items = GROUPED_ITEMS, .sums = GROUPED_ITEMS * scl_vecchia_results(pass)};
  /* a tile, a panel, published values, four numbers for each row, columns w and b */
  l.declared = 32 * 33 + (rows > 32 ? 32 * 34 : 2) + 2 * 34 + 4 * rows;
  if (derivatives) l.declared += 32 * 18;
  l.x = rows * (pass->p + (derivatives ? pass->combined : pass->columns));
  if (pass->what != SCL_VECCHIA_INFORMATION) return l;
  size_t together = MOST_TOGETHER, used = l.declared + l.sums + l.x;
  while (together > 1 &&
         (together * pass->parameters > 32 || used + moved_size(pass, rows, together) > most)) {
    together /= 2;
  }
  l.together = together;
  l.x += moved_size(pass, rows, together);
  return l;
}

static layout plan_layout(const struct scl_vecchia_pass *pass, size_t rows, size_t most) {
  if (pass->grouped) return plan_grouped(pass, rows, most);
  size_t width = pass->p;
  if (pass->p * rows < pass->columns) width = scl_ceil_div(pass->columns, rows);
  /* the covariances and five vectors */
  return (layout){.items = rows,
                  .declared = rows * (rows + 1 + 5),
                  .sums = rows * scl_vecchia_results(pass),
                  .x = rows * width};
}

static size_t local_numbers(const scl_cl_context *cl) {
  return cl->info.local_memory / sizeof(double);
}

static bool fits(const scl_cl_context *cl, const struct scl_vecchia_pass *pass, bool small) {
  const size_t rows = choose(pass, small).rows, most = local_numbers(cl);
  const size_t moved =
      pass->parameters + pass->columns + (size_t)scl_covariance_count(pass->kernel);
  if (pass->what == SCL_VECCHIA_INFORMATION && !pass->grouped && moved > rows + 1) return false;
  const layout l = plan_layout(pass, rows, most);
  return l.declared + l.sums + l.x <= most;
}

/* Points or blocks `first` ... `end` - 1; adds their results to pass->out. */
static scl_status run(scl_context *ctx, const struct scl_vecchia_pass *pass, scl_block numbers,
                      bool small, size_t first, size_t end) {
  size_t results = scl_vecchia_results(pass), all = end - first;
  size_t most = ((scl_cl_context *)ctx)->cpu ? MOST_GROUPS_CPU : MOST_GROUPS_GPU;
  size_t groups = all < most ? all : most;
  if (all == 0) return SCL_OK;
  version v = choose(pass, small);
  layout l = plan_layout(pass, v.rows, local_numbers((scl_cl_context *)ctx));
  scl_block partial = {0};
  scl_status status;
  scl_cl_op op;
  double *found = malloc(results * groups * sizeof *found);
  if (found == NULL) return scl_fail_memory(results * groups * sizeof *found, 0, "results");
  SCL_GO(scl_block_create(ctx, results, groups, &partial));
  partial.ld = results; /* without gaps, as the kernel writes it */
  vecchia_task task = describe(pass, numbers, partial);
  task.first = (int)first;
  task.n = (int)end;
  task.together = (int)l.together;
  scl_cl_covariance_select(ctx, v.program, pass->kernel);
  scl_cl_op_begin(&op, ctx);
  SCL_GO(scl_cl_op_end(
      &op, scl_launch_vecchia(
               &op, v.kernel, scl_cl_range_1(groups * l.items, l.items),
               scl_in_buffer(pass->records.buffer), scl_in_buffer(pass->neighbours.buffer),
               scl_in_buffer(numbers.buffer), scl_out_buffer(partial.buffer), &task,
               scl_local(l.sums * sizeof(double)), scl_local(l.x * sizeof(double)))));
  SCL_GO(ctx->engine->download(ctx, SCL_GENERAL, partial, SCL_WAIT_WRITES, found, results));
  for (size_t g = 0; g < groups; g++) {
    const double *of = found + g * results;
    if (of[0] != 0 && (pass->out[0] == 0 || of[0] < pass->out[0])) pass->out[0] = of[0];
    for (size_t r = 1; r < results; r++) pass->out[r] += of[r];
  }
done:
  scl_buffer_release(partial.buffer);
  free(found);
  return status;
}

scl_status scl_cl_vecchia(scl_context *ctx, const struct scl_vecchia_pass *pass) {
  const scl_cl_context *cl = (scl_cl_context *)ctx;
  size_t tall = pass->grouped ? pass->tall : pass->m < 32 ? 0 : pass->n;
  if ((tall > 0 && !fits(cl, pass, false)) || (tall < pass->n && !fits(cl, pass, true))) {
    pass->out[0] = -1;
    return SCL_OK;
  }
  for (size_t r = 0; r < scl_vecchia_results(pass); r++) pass->out[r] = 0;
  scl_block numbers = {0};
  SCL_TRY(upload_numbers(ctx, pass, &numbers));
  scl_status status = run(ctx, pass, numbers, false, 0, tall);
  if (status == SCL_OK) status = run(ctx, pass, numbers, true, tall, pass->n);
  scl_buffer_release(numbers.buffer);
  return status;
}
