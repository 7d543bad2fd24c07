/* Plans of lazy arithmetic on a device: the layout of work-items, and the arguments of the kernel
 * that engine/plan/source.c writes.
 *
 * Without reductions a work-item has one row and some columns, at a fixed stride. A reduction
 * leaves one number for each group (or, by rows and by columns, for each group and result), and a
 * second launch combines these in their order. Their number depends on the shape and on the device
 * alone, so that sums are the same bits in every run. */
#include "engine/cl/elementwise/plan.h"

#include "engine/cl/runtime/tune.h"

enum {
  ITEMS_GPU = 256, /* work-items of a group */
  ITEMS_CPU = 32,  /* of a reduction: fewer, as a barrier costs a loop over them */
  LINE_ROWS = 8,   /* rows of a line of memory */
  MAP_ROWS = 64,   /* rows of a group that has several columns, where nothing is reduced by rows */
  WARP_ROWS = 32,  /* the same, where it is */
  GROUPS_PAIRS =
      4,     /* groups a unit of products inside: a unit holds them with up to 64 registers */
  WAVES = 4, /* rounds of groups that share results */
  COLUMN_ROWS = 16,    /* rows of a column for a work-item of a reduction by columns */
  ITEM_ELEMENTS = 8,   /* elements that a work-item of a reduction has at least */
  MOST_COLUMNS = 16384 /* of the range; kernels walk over more with this stride */
};

typedef struct {
  size_t global[2], local[2];
  size_t parts; /* groups that share a result */
} layout;

/* The smallest power of two that is at least n, but at most `most`, a power of two. */
static size_t power_from(size_t n, size_t most) {
  size_t p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

/* ---- layouts -------------------------------------------------------------------------------- */

/* Work-items of a group: a power of two that the kernel takes. */
static size_t group_items(const scl_cl_context *cl, const scl_cl_launchable *k, bool reduces) {
  size_t items = reduces && cl->cpu ? ITEMS_CPU : ITEMS_GPU;
  while (items > k->items) items /= 2;
  return items > 0 ? items : 1;
}

static size_t most_groups(const scl_cl_context *cl) {
  size_t units = cl->info.units > 0 ? cl->info.units : 1;
  return units *
         (size_t)scl_cl_tuned(cl, cl->cpu ? SCL_CL_TUNE_sum_cpu_groups : SCL_CL_TUNE_sum_groups);
}

/* A group over rows, and over columns where they are short or few groups would do. */
static void share_items(layout *l, const scl_plan *p, size_t items) {
  l->local[0] = power_from(p->m, p->n == 1 ? items : scl_min(items, MAP_ROWS));
  l->local[1] = power_from(p->n, items / l->local[0]);
  l->local[0] = power_from(p->m, items / l->local[1]);
}

static layout map_layout(const scl_plan *p, size_t items) {
  layout l = {.parts = 1};
  share_items(&l, p, items);
  const size_t rows = p->pairs ? 2 : p->n > 1 ? 1 : SCL_PLAN_ELEMENTS; /* of a work-item */
  l.global[0] = scl_round_up(scl_ceil_div(p->m, rows), l.local[0]);
  l.global[1] = scl_round_up(scl_min(p->n, MOST_COLUMNS), l.local[1]);
  return l;
}

static layout tile_layout(const scl_cl_context *cl, const scl_plan *p) {
  layout l = {.parts = 1};
  l.local[0] = SCL_PLAN_TILE;
  l.local[1] = (size_t)scl_cl_expr_tile_rows(cl);
  l.global[0] = scl_round_up(p->m, SCL_PLAN_TILE);
  l.global[1] = scl_min(scl_ceil_div(p->n, SCL_PLAN_TILE), MOST_COLUMNS) * l.local[1];
  return l;
}

/* The number of groups that share a result, at most `worth`: the number that fills the device best
 * in at most WAVES rounds, because a last round of few groups leaves units idle. */
static size_t choose_parts(size_t groups, size_t worth, size_t resident) {
  size_t best = 1;
  double fill = 0.0;
  for (size_t parts = 1; parts <= worth && groups * parts <= WAVES * resident; parts++) {
    const size_t waves = scl_ceil_div(groups * parts, resident);
    const double filled = (double)(groups * parts) / (double)(waves * resident);
    if (filled > fill + 0.01) {
      best = parts;
      fill = filled;
    }
    if (fill > 0.98) break;
  }
  return best;
}

static bool has_products(const scl_plan *p) {
  for (int k = 0; k < p->leaves; k++) {
    if (p->leaf[k].length > 0) return true;
  }
  return false;
}

static layout total_layout(const scl_cl_context *cl, const scl_plan *p, size_t items, size_t most) {
  layout l;
  const bool products = has_products(p);
  share_items(&l, p, items);
  const size_t elements = p->pairs ? 2 : products ? 1 : ITEM_ELEMENTS; /* of a work-item */
  const size_t wanted = scl_ceil_div(p->m * p->n, items * elements);
  if (products)
    most = p->pairs && !cl->cpu ? scl_max(cl->info.units, 1) * GROUPS_PAIRS : WAVES * most;
  const size_t groups = scl_min(wanted, most);
  const size_t rows = scl_min(scl_ceil_div(p->m, l.local[0]), groups);
  const size_t columns = scl_min(scl_ceil_div(p->n, l.local[1]), groups / rows);
  l.global[0] = rows * l.local[0];
  l.global[1] = columns * l.local[1];
  l.parts = rows * columns;
  return l;
}

static layout column_layout(const scl_plan *p, size_t items, size_t most) {
  layout l;
  /* Eight adjacent rows are a line of memory; each item has some of them. */
  const size_t rows = power_from(scl_ceil_div(p->m, COLUMN_ROWS), items);
  l.local[0] = rows < LINE_ROWS ? LINE_ROWS : rows;
  if (l.local[0] > items) l.local[0] = items;
  l.local[1] = power_from(p->n, items / l.local[0]);
  l.local[0] = power_from(p->m, items / l.local[1]);
  const size_t groups = scl_ceil_div(p->n, l.local[1]);
  const size_t worth = scl_ceil_div(p->m, l.local[0] * ITEM_ELEMENTS);
  l.parts = choose_parts(groups, worth, most);
  l.global[0] = l.parts * l.local[0];
  l.global[1] = groups * l.local[1];
  return l;
}

static layout row_layout(const scl_plan *p, size_t items, size_t most) {
  layout l;
  const size_t rows = scl_ceil_div(p->m, items) >= most ? items : scl_min(items, WARP_ROWS);
  l.local[0] = power_from(p->m, rows);
  l.local[1] = power_from(p->n, items / l.local[0]);
  const size_t groups = scl_ceil_div(p->m, l.local[0]);
  const size_t worth = scl_ceil_div(p->n, l.local[1] * ITEM_ELEMENTS);
  l.parts = choose_parts(groups, worth, most);
  l.global[0] = groups * l.local[0];
  l.global[1] = l.parts * l.local[1];
  return l;
}

static layout choose_layout(const scl_cl_context *cl, const scl_plan *p,
                            const scl_cl_expr_kernels *k) {
  const bool reduces = scl_plan_reduces(p);
  size_t items = group_items(cl, &k->main, reduces);
  if (!reduces) return scl_plan_has_tiles(p) ? tile_layout(cl, p) : map_layout(p, items);
  items = scl_min(items, group_items(cl, &k->last, true));
  if (p->margin == SCL_BY_COLUMN) return column_layout(p, items, most_groups(cl));
  if (p->margin == SCL_BY_ROW) return row_layout(p, items, most_groups(cl));
  return total_layout(cl, p, items, most_groups(cl));
}

/* ---- arguments ------------------------------------------------------------------------------ */

/* Where the partial results of output k go: numbers, and after them their indices. */
typedef struct {
  scl_block block; /* all outputs' */
  size_t at[SCL_PLAN_OUTPUTS];
  size_t results;
  bool used; /* else groups write the results themselves */
} partials;

static size_t numbers_of(const scl_output *o) {
  return scl_reduces_to_index(o->op) ? 2 : 1;
}

static void set_main(scl_cl_arguments *a, const scl_plan *p, const partials *q, size_t items,
                     size_t parts) {
  scl_cl_argument_inputs(a, p);
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    if (!o->reduces) continue;
    scl_cl_argument_buffer(a, q->used ? q->block.buffer : o->dst.buffer);
    scl_cl_argument_long(a, q->used ? q->block.offset + q->at[k] : o->dst.offset);
    scl_cl_argument_long(a, q->results);
    if (numbers_of(o) > 1) scl_cl_argument_long(a, q->results * parts);
    scl_cl_argument_local(a, items * numbers_of(o) * sizeof(double));
  }
}

static void set_final(scl_cl_arguments *a, const scl_plan *p, const partials *q, size_t items,
                      size_t parts) {
  scl_cl_argument_long(a, q->results);
  scl_cl_argument_int(a, parts);
  scl_cl_argument_numbers(a, p);
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    if (!o->reduces) continue;
    scl_cl_argument_buffer(a, q->block.buffer);
    scl_cl_argument_long(a, q->block.offset + q->at[k]);
    scl_cl_argument_long(a, q->results);
    if (numbers_of(o) > 1) scl_cl_argument_long(a, q->results * parts);
    scl_cl_argument_buffer(a, o->dst.buffer);
    scl_cl_argument_long(a, o->dst.offset);
    scl_cl_argument_local(a, items * numbers_of(o) * sizeof(double));
  }
}

/* ---- launches ------------------------------------------------------------------------------- */

static scl_status make_partials(scl_cl_op *op, const scl_plan *p, size_t parts, partials *q) {
  size_t all = 0;
  q->results = p->margin == SCL_BY_ROW ? p->m : p->margin == SCL_BY_COLUMN ? p->n : 1;
  q->used = parts > 1;
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) continue;
    q->used = q->used || numbers_of(&p->output[k]) > 1;
    q->at[k] = all;
    all += q->results * parts * numbers_of(&p->output[k]);
  }
  if (!q->used || all == 0) return SCL_OK;
  return scl_cl_temporary(op, all, 1, &q->block);
}

static scl_status launch_final(scl_cl_op *op, const scl_plan *p, const scl_cl_expr_kernels *k,
                               const partials *q, size_t items, size_t parts) {
  const size_t along = power_from(parts, items), across = power_from(q->results, items / along);
  const size_t local[] = {along, across}, global[] = {along, scl_round_up(q->results, across)};
  scl_cl_arguments a = scl_cl_arguments_of(op->cl, &k->last, k->kept_last);
  set_final(&a, p, q, along * across, parts);
  if (a.code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, a.code, "expr_final");
  const scl_cl_range range = scl_cl_range_2(global, local);
  return scl_cl_enqueue(op, &k->last, &range, a.local_bytes);
}

scl_status scl_cl_expr(scl_context *ctx, const scl_plan *plan) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  const scl_cl_expr_kernels *k;
  partials q = {.used = false};
  scl_cl_op op;
  scl_status status;
  if (plan->pass != 0) return scl_cl_expr_pass(ctx, plan);
  scl_cl_op_begin(&op, ctx);
  SCL_GO(scl_poll());
  SCL_GO(scl_cl_op_needs(&op, scl_cl_expr_find(cl, plan, &k)));
  if (op.missing) goto done;
  {
    const layout l = choose_layout(cl, plan, k);
    const size_t items = l.local[0] * l.local[1];
    scl_cl_arguments a = scl_cl_arguments_of(cl, &k->main, k->kept_main);
    scl_cl_expr_declare(&op, plan);
    op.timing = SCL_CL_TIME_EACH;
    SCL_GO(scl_cl_op_order(&op, -1));
    SCL_GO(make_partials(&op, plan, l.parts, &q));
    set_main(&a, plan, &q, items, l.parts);
    if (a.code != CL_SUCCESS) SCL_GO(scl_cl_fail(ctx, a.code, "expr"));
    const scl_cl_range range = scl_cl_range_2(l.global, l.local);
    SCL_GO(scl_cl_enqueue(&op, &k->main, &range, a.local_bytes));
    if (q.used) SCL_GO(launch_final(&op, plan, k, &q, items, l.parts));
  }
done:
  scl_buffer_release(q.block.buffer);
  return scl_cl_op_end(&op, status);
}
