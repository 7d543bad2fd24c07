/* Which plans are a pass, and the shape of its tiles. */
#include "engine/plan/pass.h"

#include "base/sizes.h"

enum { NONE = -1 };

/* Work-items of a group, and columns of one, as in the layouts of likelihoods
 * (engine/cl/glm/layouts.h): 13 with two rows each, and their sums, are 78 of 168 registers. */
enum { ITEMS = 128, MOST_COLUMNS = 13 };

/* Columns from which matrix instructions are faster, and their group and tile. */
enum { MATRIX_LEAST = 11, WARP_ITEMS = 32, WARP_ROWS = 16 };

/* The one leaf that all products are of, or NONE; the larger number of products on one side. */
static int find_matrix(const scl_plan *p, size_t *predictors) {
  size_t before = 0, after = 0;
  int matrix = NONE;
  for (int s = 0; s < p->body; s++) {
    if (p->step[s].kind != SCL_STEP_MATVEC) continue;
    if (before++ > 0 && p->step[s].arg[0] != matrix) return NONE;
    matrix = p->step[s].arg[0];
  }
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces || !p->output[k].product) continue;
    if (p->output[k].first != matrix) return NONE;
    after++;
  }
  *predictors = (before > after ? before : after) * p->n;
  return after > 0 ? matrix : NONE;
}

static bool is_sum(const scl_output *o) {
  return o->op == SCL_REDUCE_SUM || o->op == SCL_REDUCE_SUM_LOG || o->op == SCL_REDUCE_COUNT_NAN ||
         o->op == SCL_REDUCE_COUNT_TRUE;
}

/* Two rows are read at a time. */
static bool has_pairs(const scl_plan *p, const scl_leaf *x) {
  return p->m % 2 == 0 && x->at % 2 == 0;
}

bool scl_plan_wants_mma(const scl_plan *p) {
  size_t predictors;
  const int matrix = find_matrix(p, &predictors);
  return matrix != NONE && p->n > 1 && predictors <= SCL_PASS_MMA_PREDICTORS &&
         p->leaf[matrix].length >= MATRIX_LEAST && p->leaf[matrix].length <= SCL_PASS_MMA_COLUMNS &&
         has_pairs(p, &p->leaf[matrix]);
}

static scl_pass_layout layout_of(const scl_plan *p, size_t columns, size_t predictors) {
  scl_pass_layout l = {.predictors = (uint8_t)predictors, .width = p->m % 2 == 0 ? 2 : 1};
  if (p->pass_mma) {
    l.eighths = (uint8_t)scl_ceil_div(columns, 8);
    return l;
  }
  size_t lanes = 2;
  while (columns > lanes * MOST_COLUMNS ||
         predictors * l.width * (ITEMS / lanes) > ITEMS) { /* a work-item has one predictor */
    lanes *= 2;
  }
  l.lanes = (uint8_t)lanes;
  l.row_lanes = (uint8_t)(ITEMS / lanes);
  l.columns = (uint8_t)scl_ceil_div(columns, lanes);
  return l;
}

scl_pass_layout scl_plan_pass_layout(const scl_plan *p) {
  size_t predictors;
  const int matrix = find_matrix(p, &predictors);
  return layout_of(p, p->leaf[matrix].length, predictors);
}

size_t scl_pass_items(const scl_pass_layout *l) {
  return l->eighths > 0 ? WARP_ITEMS : (size_t)l->row_lanes * l->lanes;
}

size_t scl_pass_rows(const scl_pass_layout *l) {
  return l->eighths > 0 ? WARP_ROWS : (size_t)l->width * l->row_lanes;
}

/* Columns begin at even offsets, or their number of rows is odd. */
static bool may_be_kernel(const scl_plan *p, const scl_leaf *x, size_t predictors) {
  if (predictors > (p->pass_mma ? SCL_PASS_MMA_PREDICTORS : SCL_PASS_PREDICTORS)) return false;
  if (x->length > SCL_PASS_COLUMNS || x->inner != p->m) return false;
  /* 32-bit indices */
  if (p->m * p->n > INT32_MAX / 2 || p->m * (x->length + 1) > UINT32_MAX) return false;
  if (p->m % 2 == 0 && x->at % 2 != 0) return false;
  for (int k = 0; k < p->outputs; k++) {
    if (p->output[k].reduces && !is_sum(&p->output[k])) return false;
  }
  return true;
}

bool scl_plan_become_pass(scl_plan *p, bool kernel, bool mma) {
  size_t predictors;
  const int matrix = find_matrix(p, &predictors);
  p->pass_mma = mma && scl_plan_wants_mma(p);
  if (matrix == NONE) return false;
  const scl_leaf *x = &p->leaf[matrix];
  if (p->margin != (p->n == 1 ? SCL_TOTAL : SCL_BY_COLUMN)) return false;
  if (p->rectangles > 0 || p->triangle || x->length == 0 || x->step_i != 1) return false;
  if (kernel && !may_be_kernel(p, x, predictors)) return false;
  p->pass = (uint8_t)(1 + matrix);
  return true;
}

size_t scl_pass_results(const scl_plan *p, int k) {
  const scl_output *o = &p->output[k];
  return !o->reduces ? 0 : p->n * (o->product ? p->leaf[o->first].length : 1);
}
