/* Plans: from a graph of nodes to steps for each element. */
#include <string.h>

#include "graph/graph.h"
#include "ops/operation.h"

/* The index of an element (i, j) of the plan that determines the row or column of a node. */
typedef enum { FROM_NOTHING = 0, FROM_I, FROM_J } origin;

/* The node's element for element (i, j): its row is `row` (i, j or 0) + row_at, its column
 * likewise. Index functions only change this frame; none of them is a step. */
typedef struct {
  size_t row_at, column_at;
  uint8_t row, column;
  uint8_t rectangle; /* 1 + the only one in which the node is defined, or 0 */
} frame;

/* Steps are looked up by node and frame, so that a shared node is visited once. A step without a
 * place among TRIES is visited again, and found equal to the earlier one: that costs time only. */
enum { MEMO = 1024, TRIES = 8 };

typedef struct {
  const scl_node *node;
  frame at;
  uint64_t stamp; /* of the walk that made the entry */
  uint16_t step;
} memo_entry;

/* Kept between walks: clearing it would take longer than a small walk. */
static memo_entry memo[MEMO];

typedef struct {
  scl_plan *plan;
  uint16_t first; /* steps before this one belong to another part */
  uint64_t stamp;
} walker;

enum { NO_STEP = SCL_PLAN_FULL };

static int add_step(walker *w, scl_step_kind kind, unsigned op, int a, int b, int c) {
  return scl_plan_add_step(w->plan, w->first, kind, op, a, b, c);
}

/* ---- frames --------------------------------------------------------------------------------- */

static size_t step_of(frame f, origin from, size_t row_step, size_t column_step) {
  return (f.row == from ? row_step : 0) + (f.column == from ? column_step : 0);
}

static frame transposed(frame f) {
  return (frame){f.column_at, f.row_at, f.column, f.row, f.rectangle};
}

static frame broadcast(frame f, const scl_node *to) {
  if (to->nrow == 1) {
    f.row = FROM_NOTHING;
    f.row_at = 0;
  }
  if (to->ncol == 1) {
    f.column = FROM_NOTHING;
    f.column_at = 0;
  }
  return f;
}

/* The elements whose row (or column) of a node lies in from .. from + count - 1, as an interval of
 * i or j: reduces [*first, *end). An offset of a frame may be negative, stored modulo 2^64. */
static void clip_interval(size_t source_at, size_t from, size_t count, size_t *first, size_t *end) {
  const int64_t least = (int64_t)(from - source_at), most = least + (int64_t)count;
  if (least > (int64_t)*first) *first = (size_t)least;
  if (most < (int64_t)*end) *end = most > 0 ? (size_t)most : 0;
}

static void clip(origin source, size_t source_at, size_t from, size_t count, scl_rectangle *r) {
  size_t first = 0, end = 1;
  if (source == FROM_I) clip_interval(source_at, from, count, &r->i0, &r->i1);
  if (source == FROM_J) clip_interval(source_at, from, count, &r->j0, &r->j1);
  if (source != FROM_NOTHING) return;
  clip_interval(source_at, from, count, &first, &end);
  if (end <= first) r->i1 = r->i0; /* nowhere */
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static int walk(walker *w, const scl_node *node, frame f);

static int walk_leaf(walker *w, const scl_node *node, frame f) {
  const scl_block b = node->block;
  scl_leaf leaf = {.buffer = b.buffer,
                   .at = b.offset + f.row_at + f.column_at * b.ld,
                   .step_i = step_of(f, FROM_I, 1, b.ld),
                   .step_j = step_of(f, FROM_J, 1, b.ld),
                   .rectangle = f.rectangle};
  if (scl_is_triangular(node->view) && f.row_at == f.column_at && w->plan->n > 1) {
    if (f.row == FROM_I && f.column == FROM_J) leaf.triangle = (uint8_t)node->view;
    if (f.row == FROM_J && f.column == FROM_I) {
      leaf.triangle = (uint8_t)scl_view_transposed(node->view);
    }
  }
  return scl_plan_load(w->plan, w->first, leaf);
}

static int walk_index(walker *w, const scl_node *node, frame f) {
  const bool rows = scl_node_margin(node) == SCL_BY_ROW;
  const double first = (double)(int64_t)(rows ? f.row_at : f.column_at) + 1.0;
  const origin from = rows ? f.row : f.column;
  if (from == FROM_NOTHING) return scl_plan_number(w->plan, w->first, first);
  int k = scl_plan_add_number(w->plan, first);
  return k == NO_STEP ? NO_STEP : add_step(w, SCL_STEP_INDEX, 0, from == FROM_J, k, 0);
}

static int walk_apply(walker *w, const scl_node *node, frame f) {
  int arg[3] = {0, 0, 0};
  for (int k = 0; k < 3 && node->arg[k] != NULL; k++) {
    arg[k] = walk(w, node->arg[k], f);
    if (arg[k] == NO_STEP) return NO_STEP;
  }
  return add_step(w, SCL_STEP_APPLY, node->op, arg[0], arg[1], arg[2]);
}

static int walk_with_part(walker *w, const scl_node *node, frame f) {
  const scl_node *x = node->arg[0], *value = node->arg[1];
  scl_rectangle r = {0, w->plan->m, 0, w->plan->n};
  if (f.rectangle != 0) r = w->plan->rectangle[f.rectangle - 1];
  clip((origin)f.row, f.row_at, scl_node_row(node), value->nrow, &r);
  clip((origin)f.column, f.column_at, scl_node_column(node), value->ncol, &r);
  int outside = walk(w, x, f);
  if (outside == NO_STEP || r.i1 <= r.i0 || r.j1 <= r.j0) return outside;
  int k = scl_plan_add_rectangle(w->plan, r);
  if (k == NO_STEP) return NO_STEP;
  /* These may wrap around outside the rectangle, where nothing is read. */
  frame g = {f.row_at - scl_node_row(node), f.column_at - scl_node_column(node), f.row, f.column,
             (uint8_t)(k + 1)};
  int inside = walk(w, value, g);
  int test = add_step(w, SCL_STEP_INSIDE, 0, k, 0, 0);
  if (inside == NO_STEP || test == NO_STEP) return NO_STEP;
  return add_step(w, SCL_STEP_APPLY, SCL_OP_IFELSE, test, inside, outside);
}

static int walk_matvec(walker *w, const scl_node *node, frame f) {
  /* Only if its rows are those of the plan; else it is computed beforehand (cut()). */
  if (f.row != FROM_I || f.row_at != 0 || f.rectangle != 0) return NO_STEP;
  return scl_plan_product(w->plan, w->first, node->arg[0]->block, node->arg[1]->block);
}

static int walk_kind(walker *w, const scl_node *node, frame f) {
  switch (node->kind) {
  case SCL_VALUE_DATA:
    return walk_leaf(w, node, f);
  case SCL_VALUE_NUMBER:
    return scl_plan_number(w->plan, w->first, node->attribute[0]);
  case SCL_VALUE_APPLY:
    return walk_apply(w, node, f);
  case SCL_VALUE_TRANSPOSE:
    return walk(w, node->arg[0], transposed(f));
  case SCL_VALUE_BROADCAST:
    return walk(w, node->arg[0], broadcast(f, node->arg[0]));
  case SCL_VALUE_PART:
    f.row_at += scl_node_row(node);
    f.column_at += scl_node_column(node);
    return walk(w, node->arg[0], f);
  case SCL_VALUE_WITH_PART:
    return walk_with_part(w, node, f);
  case SCL_VALUE_INDEX:
    return walk_index(w, node, f);
  case SCL_VALUE_MATVEC:
    return walk_matvec(w, node, f);
  case SCL_VALUE_PLACEHOLDER:
    return add_step(w, SCL_STEP_ARGUMENT, 0, node->op, 0, 0);
  default:
    return NO_STEP;
  }
}

static bool same_frame(frame a, frame b) {
  return a.row_at == b.row_at && a.column_at == b.column_at && a.row == b.row &&
         a.column == b.column && a.rectangle == b.rectangle;
}

static int walk(walker *w, const scl_node *node, frame f) {
  size_t hash = ((uintptr_t)node >> 4) * 31 + f.row_at * 7 + f.column_at * 13 + f.row;
  memo_entry *free_entry = NULL;
  for (size_t t = 0; t < TRIES && free_entry == NULL; t++) {
    memo_entry *e = &memo[(hash + t) % MEMO];
    if (e->stamp != w->stamp) {
      free_entry = e;
    } else if (e->node == node && same_frame(e->at, f)) {
      return e->step;
    }
  }
  int step = walk_kind(w, node, f);
  if (free_entry != NULL && free_entry->stamp != w->stamp && step != NO_STEP) {
    *free_entry = (memo_entry){node, f, w->stamp, (uint16_t)step};
  }
  return step;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static bool sums(const scl_output *o) {
  return o->reduces && (o->op == SCL_REDUCE_SUM || o->op == SCL_REDUCE_COUNT_TRUE);
}

/* The triangle outside which all outputs are known to be zero, or to have no terms. */
static uint8_t common_triangle(const scl_plan *p, scl_node *const *roots) {
  scl_view view = scl_node_domain(roots[0])->view;
  if (!scl_is_triangular(view) || p->n == 1) return 0;
  for (int k = 0; k < p->outputs; k++) {
    if (scl_node_domain(roots[k])->view != view) return 0;
    if (p->output[k].reduces && !sums(&p->output[k])) return 0;
  }
  return (uint8_t)view;
}

static bool plan_combine(walker *w, const scl_node *root, scl_output *o) {
  scl_plan *p = w->plan;
  if (!o->reduces || o->op != SCL_REDUCE_COUNT) return true;
  w->stamp = scl_node_stamp();
  w->first = p->steps;
  o->first = p->steps;
  int identity = scl_plan_add_number(p, scl_node_identity(root)),
      value = walk(w, root->arg[1], (frame){0});
  o->last = p->steps;
  o->identity = (uint16_t)identity;
  o->value = (uint16_t)value;
  return identity != NO_STEP && value != NO_STEP;
}

/* Plans the elements, or their transpose, in which rows and columns are exchanged. */
static bool make_plan(const scl_context *ctx, size_t count, scl_node *const *roots, bool swapped,
                      scl_plan *p) {
  const scl_node *domain = scl_node_domain(roots[0]);
  const origin rows = swapped ? FROM_J : FROM_I, columns = swapped ? FROM_I : FROM_J;
  /* The index of a single row or column is known. */
  const frame start = {.row = domain->nrow > 1 ? rows : FROM_NOTHING,
                       .column = domain->ncol > 1 ? columns : FROM_NOTHING};
  walker w = {.plan = p, .stamp = scl_node_stamp()};
  scl_plan_begin(p, swapped ? domain->ncol : domain->nrow, swapped ? domain->nrow : domain->ncol);
  for (size_t k = 0; k < count; k++) {
    scl_output o = {.reduces = roots[k]->kind == SCL_VALUE_REDUCE, .op = roots[k]->op};
    if (o.reduces) p->margin = (uint8_t)scl_node_margin(roots[k]);
    int step = walk(&w, scl_node_domain(roots[k]), start);
    if (step == NO_STEP) return false;
    o.step = (uint16_t)step;
    p->output[p->outputs++] = o;
  }
  if (swapped && p->margin != SCL_TOTAL) {
    p->margin = p->margin == SCL_BY_ROW ? SCL_BY_COLUMN : SCL_BY_ROW;
  }
  p->body = p->steps;
  for (size_t k = 0; k < count; k++) {
    if (!plan_combine(&w, roots[k], &p->output[k])) return false;
  }
  p->triangle = common_triangle(p, roots);
  if (swapped) p->triangle = (uint8_t)scl_view_transposed((scl_view)p->triangle);
  scl_plan_end(p, scl_mat_ld(ctx, p->m, p->n));
  return scl_plan_is_callable(p);
}

/* Whether all operands are better read with rows and columns exchanged, and may be: nothing is
 * stored, and no element is counted along the columns. */
static bool is_better_swapped(const scl_plan *p) {
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    if (!o->reduces || (p->margin == SCL_TOTAL && scl_reduces_to_index(o->op))) return false;
  }
  for (int k = 0; k < p->leaves; k++) {
    if (p->leaf[k].read == SCL_READ_MATRIX) return false;
  }
  return scl_plan_reads_across(p);
}

bool scl_plan_make(const scl_context *ctx, size_t count, scl_node *const *roots, scl_plan *p) {
  const scl_node *domain = scl_node_domain(roots[0]);
  /* A single row is processed as a column. */
  if (domain->nrow == 1 && domain->ncol > 1) return make_plan(ctx, count, roots, true, p);
  if (!make_plan(ctx, count, roots, false, p)) return false;
  return is_better_swapped(p) ? make_plan(ctx, count, roots, true, p) : true;
}
