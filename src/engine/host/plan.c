/* Plans of lazy arithmetic on the host: one step after another on blocks that stay in the cache.
 *
 * The elements are divided into tiles of rows and columns, which depend on the shape alone. One
 * thread computes a tile, column by column, in blocks of rows, or several short columns to a
 * block, one after another. The result of a step is a block of numbers, or one number for all of
 * them. Reductions give a number for each tile (or row or column of it), and these are combined in
 * the order of the tiles, so that results do not depend on the threads. */
#include "engine/host/plan.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"
#include "engine/host/thin.h"

enum {
  TILE = 16384,      /* elements of a tile */
  ACROSS_ROWS = 256, /* rows of a tile if an operand is read across columns */
  TALL = 65536,      /* rows of a tile of a reduction by columns, at most */
  WIDE_TILES = 16,   /* tiles side by side in a reduction by rows, at most */
  SMALL = 1024,      /* numbers in blocks that need no memory of their own, */
  FEW = 2            /* and of a reduction */
};

/* ---- the work ------------------------------------------------------------------------------- */

/* The state of a reduction: a number, and its index for which_max and which_min (0: none). */
typedef struct {
  double *number, *index;
} totals;

typedef struct {
  const scl_plan *plan;
  size_t rows, columns;         /* of a tile */
  size_t row_tiles, tiles;      /* tiles above each other, and in all */
  size_t stride;                /* from one block to the next: its numbers */
  size_t across;                /* columns of a block */
  int slots;                    /* blocks that a thread needs for steps */
  int16_t slot[SCL_PLAN_STEPS]; /* block of a step, or -1 */
  double *block;                /* those of all threads */
  totals total[SCL_PLAN_OUTPUTS];
  double few[SCL_PLAN_OUTPUTS][FEW]; /* their memory if they are short */
  size_t length; /* of each: a number for each tile, or row or column of a tile; X' r has more */
  _Atomic size_t next;
  _Atomic bool stop; /* the user asks to */
} job;

typedef struct {
  const job *j;
  double *block; /* this thread's */
  scl_run at[SCL_PLAN_STEPS];
  size_t i, n, column; /* rows i .. i + n - 1 of a column, */
  size_t columns;      /* or all rows of several columns: n numbers */
} thread;

static double *slot_of(const thread *t, int step) {
  return t->block + (size_t)t->j->slot[step] * t->j->stride;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void load_strided(const thread *t, const scl_leaf *l, const double *from, double *to) {
  for (size_t k = 0; k < t->n; k++) to[k] = from[(t->i + k) * l->step_i];
}

/* The part of this block's rows that lies in the rectangle, as first .. end. */
static void rows_inside(const thread *t, const scl_rectangle *r, size_t *first, size_t *end) {
  size_t a = r->i0 > t->i ? r->i0 - t->i : 0, b = r->i1 > t->i ? r->i1 - t->i : 0;
  if (b > t->n) b = t->n;
  if (t->column < r->j0 || t->column >= r->j1 || a >= b) a = b = 0;
  *first = a;
  *end = b;
}

/* Of several columns. */
static scl_run load_columns(const thread *t, const scl_leaf *l, const double *from, double *to) {
  const size_t m = t->j->plan->m;
  if (l->step_i == 0 && l->step_j == 0) return (scl_run){NULL, *from};
  if (l->step_i == 1 && l->step_j == m) return (scl_run){from, 0.0};
  for (size_t c = 0; c < t->columns; c++, from += l->step_j) {
    for (size_t k = 0; k < m; k++) to[c * m + k] = from[k * l->step_i];
  }
  return (scl_run){to, 0.0};
}

static scl_run load_leaf(const thread *t, const scl_leaf *l, double *to) {
  const double *from = ((const scl_host_buffer *)l->buffer)->data;
  size_t at = l->at + t->column * l->step_j;
  if (t->columns > 1) return load_columns(t, l, from + at, to);
  if (l->rectangle != 0) {
    size_t first, end;
    rows_inside(t, &t->j->plan->rectangle[l->rectangle - 1], &first, &end);
    memset(to, 0, t->n * sizeof *to);
    for (size_t k = first; k < end; k++) to[k] = from[at + (t->i + k) * l->step_i];
    return (scl_run){to, 0.0};
  }
  if (l->step_i == 0) return (scl_run){NULL, from[at]};
  if (l->step_i == 1) return (scl_run){from + at + t->i, 0.0};
  load_strided(t, l, from + at, to);
  return (scl_run){to, 0.0};
}

static scl_run matvec(const thread *t, const scl_leaf *x, const scl_leaf *b, double *to) {
  const double *matrix = ((const scl_host_buffer *)x->buffer)->data + x->at + t->i * x->step_i;
  const double *vector = ((const scl_host_buffer *)b->buffer)->data + b->at;
  memset(to, 0, t->n * sizeof *to);
  if (x->step_i == 1) {
    scl_host_add_columns(t->n, x->length, matrix, x->inner, vector, to);
    return (scl_run){to, 0.0};
  }
  for (size_t l = 0; l < x->length; l++) {
    const double *column = matrix + l * x->inner, weight = vector[l];
    for (size_t k = 0; k < t->n; k++) to[k] += column[k * x->step_i] * weight;
  }
  return (scl_run){to, 0.0};
}

static scl_run number_elements(const thread *t, bool columns, double first, double *to) {
  if (columns) return (scl_run){NULL, (double)t->column + first};
  for (size_t k = 0; k < t->n; k++) to[k] = (double)(t->i + k) + first;
  return (scl_run){to, 0.0};
}

static scl_run test_rectangle(const thread *t, const scl_rectangle *r, double *to) {
  size_t first, end;
  rows_inside(t, r, &first, &end);
  for (size_t k = 0; k < t->n; k++) to[k] = k >= first && k < end ? 1.0 : 0.0;
  return (scl_run){to, 0.0};
}

static scl_run apply_op(const scl_step *s, size_t n, const scl_run *at, double *to) {
  const int arity = scl_op_arity((scl_op)s->op);
  scl_run arg[3] = {{NULL, 0.0}, {NULL, 0.0}, {NULL, 0.0}};
  bool any = false;
  for (int k = 0; k < arity; k++) {
    arg[k] = at[s->arg[k]];
    any = any || arg[k].array != NULL;
  }
  if (!any) {
    const double result = scl_op_value((scl_op)s->op, arg[0].number, arg[1].number, arg[2].number);
    return (scl_run){NULL, result};
  }
  scl_run_op((scl_op)s->op, n, arg, to);
  return (scl_run){to, 0.0};
}

static void run_step(thread *t, int step, double *to) {
  const scl_plan *p = t->j->plan;
  const scl_step *s = &p->step[step];
  switch (s->kind) {
  case SCL_STEP_LOAD:
    t->at[step] = load_leaf(t, &p->leaf[s->arg[0]], to);
    break;
  case SCL_STEP_NUMBER:
    t->at[step] = (scl_run){NULL, p->number[s->arg[0]]};
    break;
  case SCL_STEP_INDEX:
    t->at[step] = number_elements(t, s->arg[0] == 1, p->number[s->arg[1]], to);
    break;
  case SCL_STEP_INSIDE:
    t->at[step] = test_rectangle(t, &p->rectangle[s->arg[0]], to);
    break;
  case SCL_STEP_MATVEC:
    t->at[step] = matvec(t, &p->leaf[s->arg[0]], &p->leaf[s->arg[1]], to);
    break;
  case SCL_STEP_APPLY:
    t->at[step] = apply_op(s, t->n, t->at, to);
    break;
  default:
    break;
  }
}

/* The block of a step as an array. */
static const double *array_of(thread *t, int step) {
  if (t->at[step].array == NULL) {
    double *to = slot_of(t, step);
    for (size_t k = 0; k < t->n; k++) to[k] = t->at[step].number;
    t->at[step].array = to;
  }
  return t->at[step].array;
}

/* ---- reductions ----------------------------------------------------------------------------- */

/* total[k] = combine(total[k], x[k]) by the caller's expression, on n numbers. */
static void combine_block(const thread *t, const scl_output *o, size_t n, double *total,
                          const double *x) {
  const scl_plan *p = t->j->plan;
  scl_run at[SCL_PLAN_STEPS];
  for (int s = o->first; s < o->last; s++) {
    const scl_step *step = &p->step[s];
    if (step->kind == SCL_STEP_ARGUMENT) {
      at[s] = (scl_run){step->arg[0] == 0 ? total : x, 0.0};
    } else if (step->kind == SCL_STEP_NUMBER) {
      at[s] = (scl_run){NULL, p->number[step->arg[0]]};
    } else {
      at[s] = apply_op(step, n, at, slot_of(t, s));
    }
  }
  const scl_run result = at[o->value];
  for (size_t k = 0; k < n; k++) total[k] = result.array ? result.array[k] : result.number;
}

static double combine_numbers(const thread *t, const scl_output *o, double u, double v) {
  if (o->op != SCL_REDUCE_COUNT) return scl_host_reductions[o->op].combine(u, v);
  combine_block(t, o, 1, &u, &v);
  return u;
}

/* A block to one number by halves. */
static double fold_block(const thread *t, const scl_output *o, const double *x) {
  double *to = t->block + (size_t)t->j->slots * t->j->stride; /* the last block is for this */
  memcpy(to, x, t->n * sizeof *x);
  for (size_t n = t->n; n > 1;) {
    const size_t half = (n + 1) / 2;
    combine_block(t, o, n - half, to, to + half);
    n = half;
  }
  return to[0];
}

/* Compares a number and its index with the best so far; the first of equal ones is kept. */
static void keep_extreme(unsigned op, double *best, double *best_index, double x, double at) {
  const bool better = op == SCL_REDUCE_WHICH_MAX ? x > *best : x < *best;
  if (x != x || at == 0.0) return;
  if (*best_index == 0.0 || better || (x == *best && at < *best_index)) {
    *best = x;
    *best_index = at;
  }
}

static void reduce_elements(const thread *t, const scl_output *o, totals to, const double *x) {
  const scl_plan *p = t->j->plan;
  for (size_t k = 0; k < t->n; k++) {
    const size_t i = t->i + k;
    const size_t r = p->margin == SCL_BY_ROW ? k : 0;
    const size_t at = p->margin == SCL_TOTAL    ? i + t->column * p->m
                      : p->margin == SCL_BY_ROW ? t->column
                                                : i;
    keep_extreme(o->op, &to.number[r], &to.index[r], x[k], (double)at + 1.0);
  }
}

/* Each of several columns. */
static void reduce_columns(const thread *t, const scl_output *o, double *to, const double *x) {
  const size_t m = t->j->plan->m;
  const scl_host_reduction *op = &scl_host_reductions[o->op];
  for (size_t c = 0; c < t->columns; c++, x += m) {
    if (t->j->plan->margin == SCL_BY_ROW) {
      op->each(m, to, x);
    } else {
      to[c] = op->combine(to[c], scl_run_reduction((scl_reduction)o->op, m, x));
    }
  }
}

/* Adds a block; `to` starts at this block's row, at this column, or at this tile. */
static void reduce_block(thread *t, const scl_output *o, totals to) {
  const double *x = array_of(t, o->step);
  if (t->columns > 1 && t->j->plan->margin != SCL_TOTAL) {
    reduce_columns(t, o, to.number, x);
  } else if (o->product) {
    scl_run_products(t->j->plan, o, t->i, t->n, x, to.number);
  } else if (scl_reduces_to_index(o->op)) {
    reduce_elements(t, o, to, x);
  } else if (t->j->plan->margin != SCL_BY_ROW) {
    const double next = o->op == SCL_REDUCE_COUNT
                            ? fold_block(t, o, x)
                            : scl_run_reduction((scl_reduction)o->op, t->n, x);
    to.number[0] = combine_numbers(t, o, to.number[0], next);
  } else if (o->op == SCL_REDUCE_COUNT) {
    combine_block(t, o, t->n, to.number, x);
  } else {
    scl_host_reductions[o->op].each(t->n, to.number, x);
  }
}

static double identity_of(const scl_plan *p, const scl_output *o) {
  return o->op == SCL_REDUCE_COUNT ? p->number[o->identity]
                                   : scl_reduction_identity((scl_reduction)o->op);
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* The memory to which a step that is an output can be written directly. */
static double *output_of(const scl_plan *p, const thread *t, int step) {
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    if (o->reduces || o->step != step) continue;
    return scl_host_at(o->dst) + t->i + t->column * o->dst.ld;
  }
  return NULL;
}

static void run_block(thread *t, size_t tile) {
  const job *j = t->j;
  const scl_plan *p = j->plan;
  for (int s = 0; s < p->body; s++) {
    double *direct = p->step[s].kind == SCL_STEP_APPLY ? output_of(p, t, s) : NULL;
    run_step(t, s, direct != NULL ? direct : slot_of(t, s));
  }
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    if (o->reduces) {
      const size_t column = tile / j->row_tiles, above = tile % j->row_tiles;
      const size_t r = p->margin == SCL_TOTAL    ? tile
                       : p->margin == SCL_BY_ROW ? column * p->m + t->i
                                                 : above * p->n + t->column;
      const totals all = j->total[k];
      const size_t at = r * scl_run_results(p, o);
      reduce_block(t, o, (totals){all.number + at, all.index != NULL ? all.index + r : NULL});
      continue;
    }
    double *to = scl_host_at(o->dst) + t->i + t->column * o->dst.ld;
    const scl_run v = t->at[o->step];
    if (v.array == NULL) {
      for (size_t i = 0; i < t->n; i++) to[i] = v.number;
    } else if (v.array != to) {
      memcpy(to, v.array, t->n * sizeof *to);
    }
  }
}

static void clear_rows(const scl_plan *p, size_t column, size_t from, size_t to) {
  for (int k = 0; k < p->outputs && from < to; k++) {
    const scl_output *o = &p->output[k];
    if (o->reduces) continue;
    memset(scl_host_at(o->dst) + from + column * o->dst.ld, 0, (to - from) * sizeof(double));
  }
}

static void run_tile(thread *t, size_t tile) {
  const job *j = t->j;
  const scl_plan *p = j->plan;
  const size_t i0 = tile % j->row_tiles * j->rows, i1 = scl_min(i0 + j->rows, p->m);
  const size_t j0 = tile / j->row_tiles * j->columns, j1 = scl_min(j0 + j->columns, p->n);
  for (t->column = j0; t->column < j1; t->column += t->columns) {
    if (j->across > 1) {
      t->i = i0;
      t->columns = scl_min(j->across, j1 - t->column);
      t->n = t->columns * p->m;
      run_block(t, tile);
      continue;
    }
    size_t from = i0, to = i1;
    if (p->triangle == SCL_LOWER && from < t->column) from = scl_min(t->column, i1);
    if (p->triangle == SCL_UPPER && to > t->column + 1)
      to = t->column + 1 > i0 ? t->column + 1 : i0;
    clear_rows(p, t->column, i0, from);
    clear_rows(p, t->column, to, i1);
    for (t->i = from; t->i < to; t->i += j->stride) {
      t->n = scl_min(j->stride, to - t->i);
      run_block(t, tile);
    }
  }
}

static void run_part(void *arg, int part, int parts) {
  job *j = arg;
  const size_t numbers = (size_t)(j->slots + 1) * j->stride;
  thread t;
  (void)parts;
  t.j = j;
  t.columns = 1;
  t.block = j->block + (size_t)part * numbers;
  for (;;) {
    const size_t tile = atomic_fetch_add(&j->next, 1);
    if (tile >= j->tiles || atomic_load(&j->stop)) return;
    run_tile(&t, tile);
    /* part 0 is the caller's thread, which alone may check for interrupts */
    if (part == 0 && j->tiles > 1 && scl_poll() != SCL_OK) atomic_store(&j->stop, true);
  }
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void cut_tiles(job *j) {
  const scl_plan *p = j->plan;
  size_t most_rows = scl_run_tile_rows(p);
  for (int k = 0; k < p->leaves; k++) {
    if (p->leaf[k].read == SCL_READ_ACROSS) most_rows = ACROSS_ROWS;
  }
  if (p->margin == SCL_BY_COLUMN && most_rows == TILE) most_rows = TALL;
  j->rows = scl_min(p->m, most_rows);
  j->columns = scl_ceil_div(TILE, j->rows);
  if (p->margin == SCL_BY_ROW && j->columns < scl_ceil_div(p->n, WIDE_TILES)) {
    j->columns = scl_ceil_div(p->n, WIDE_TILES);
  }
  j->columns = scl_min(j->columns, p->n);
  j->row_tiles = scl_ceil_div(p->m, j->rows);
  j->across = scl_min(scl_run_block_columns(p), j->columns);
  j->stride = j->across > 1 ? j->across * p->m : scl_min(j->rows, scl_run_block_rows(p));
  const size_t across = scl_ceil_div(p->n, j->columns);
  j->tiles = j->row_tiles * across;
  j->length = p->margin == SCL_TOTAL    ? j->tiles
              : p->margin == SCL_BY_ROW ? across * p->m
                                        : j->row_tiles * p->n;
}

static scl_status make_totals(job *j) {
  for (int k = 0; k < j->plan->outputs; k++) {
    const scl_output *o = &j->plan->output[k];
    if (!o->reduces) continue;
    const size_t parts = scl_reduces_to_index(o->op) ? 2 : 1;
    const size_t numbers = j->length * parts * scl_run_results(j->plan, o);
    j->total[k].number = numbers <= FEW ? j->few[k] : calloc(numbers, sizeof(double));
    if (j->total[k].number == NULL) {
      return scl_fail_memory(numbers * sizeof(double), 0, "a reduction");
    }
    if (parts == 2) j->total[k].index = j->total[k].number + j->length;
    const double identity = identity_of(j->plan, o);
    for (size_t r = 0; r < numbers / parts; r++) j->total[k].number[r] = identity;
  }
  return SCL_OK;
}

/* Combines the results of the tiles, in their order. */
static void finish_output(const job *j, int k) {
  const scl_output *o = &j->plan->output[k];
  const size_t results = o->dst.nrow;
  const size_t parts = j->length * scl_run_results(j->plan, o) / results;
  const bool index = scl_reduces_to_index(o->op);
  double *dst = scl_host_at(o->dst);
  thread t = {.j = j, .block = j->block};
  for (size_t r = 0; r < results; r++) {
    double number = j->total[k].number[r], at = index ? j->total[k].index[r] : 0.0;
    for (size_t q = 1; q < parts; q++) {
      const size_t next = q * results + r;
      if (index) {
        keep_extreme(o->op, &number, &at, j->total[k].number[next], j->total[k].index[next]);
      } else {
        number = combine_numbers(&t, o, number, j->total[k].number[next]);
      }
    }
    dst[r] = index ? at : number;
  }
}

static scl_team *start_team(const job *j, int *parts) {
  const double work = (double)j->plan->m * (double)j->plan->n * scl_run_work(j->plan);
  int threads = work < SCL_RUN_TEAM_WORK ? 1 : scl_copy_threads();
  if ((size_t)threads > j->tiles) threads = (int)j->tiles;
  *parts = threads;
  return threads > 1 ? scl_team_start(threads) : NULL;
}

scl_status scl_host_expr(scl_context *ctx, const scl_plan *plan) {
  (void)ctx;
  job j = {.plan = plan};
  scl_status status;
  scl_team *team = NULL;
  double small[SMALL];
  int parts;
  cut_tiles(&j);
  j.slots = scl_give_slots(plan, j.slot);
  SCL_GO(scl_poll());
  SCL_GO(make_totals(&j));
  team = start_team(&j, &parts);
  const size_t numbers = (size_t)parts * (size_t)(j.slots + 1) * j.stride;
  j.block = numbers <= SMALL ? small : malloc(numbers * sizeof *j.block);
  if (j.block == NULL) {
    SCL_GO(scl_fail_memory(numbers * sizeof *j.block, 0, "the blocks of an expression"));
  }
  scl_team_run(team, run_part, &j);
  if (j.stop) {
    status = SCL_E_INTERRUPT;
    goto done;
  }
  for (int k = 0; k < plan->outputs; k++) {
    if (plan->output[k].reduces) finish_output(&j, k);
  }
done:
  scl_team_stop(team);
  if (j.block != small) free(j.block);
  for (int k = 0; k < SCL_PLAN_OUTPUTS; k++) {
    if (j.total[k].number != j.few[k]) free(j.total[k].number);
  }
  return status;
}
