/* OpenCL C of a pass (engine/plan/pass.h): the elementwise steps between the two halves of
 * inst/kernels/include/glm_tile.h.
 *
 *            columns 0 ..     p - 1      b
 *          +----+----+----+----+----+   A tile is GLM_ROWS rows of X and all of its columns. A grid
 *  tile 0  |    |    |    |    |    |   of groups that the device holds at once walks over them:
 *          +----+----+----+----+----+
 *  tile 1  | *  |    | *  |    | *  |     1  X, and the other operands, from memory to registers
 *          +----+----+----+----+----+     2  X b: sums of the lanes, through local memory
 *  tile 2  |    |    |    |    |    |     3  the steps, a work-item a row
 *          +----+----+----+----+----+     4  += X' slopes, from the same registers
 *
 * The partial results of the groups: number r of all results of group g is at part_at + r * groups
 * + g; totals come first, then the columns of each product. The second kernel adds them in the
 * order of the groups, a group of work-items for each result. */
#include <stdio.h>

#include "engine/plan/pass.h"
#include "engine/plan/source.h"

void scl_plan_pass_shape(const scl_plan *p, char *to, size_t room) {
  const scl_pass_layout l = scl_plan_pass_layout(p);
  if (p->pass_mma) {
    const int even = (l.predictors + 1) / 2 * 2;
    snprintf(to, room,
             "#define GLM_PREDICTORS %d\n#define GLM_LINKS %d\n#define GLM_STEPS %d\n"
             "#define GLM_ROWS 16\n#define GLM_CELLS (GLM_PREDICTORS * GLM_ROWS)\n",
             even, even / 2, l.eighths);
    return;
  }
  snprintf(to, room,
           "#define GLM_PREDICTORS %d\n#define GLM_ROW_LANES %d\n#define GLM_LANES %d\n"
           "#define GLM_COLUMNS %d\n#define GLM_WIDTH %d\n",
           l.predictors, l.row_lanes, l.lanes, l.columns, l.width);
}

bool scl_is_loaded(const scl_plan *p, int leaf) {
  for (int s = 0; s < p->body; s++) {
    if (p->step[s].kind == SCL_STEP_LOAD && p->step[s].arg[0] == leaf) return true;
  }
  return false;
}

bool scl_is_by_row(const scl_leaf *l) {
  return l->read != SCL_READ_ONE && l->read != SCL_READ_ROW;
}

/* Loads of leaves that change with the row, or of the others: a work-item has one vector. */
static void put_loads(scl_writer *w, const char *indent, bool by_row) {
  for (int k = 0; k < w->p->leaves; k++) {
    if (!scl_is_loaded(w->p, k) || scl_is_by_row(&w->p->leaf[k]) != by_row) continue;
    scl_put(w, "%sconst real y%d = ", indent, k);
    scl_put_load(w, k);
    scl_put(w, ";\n");
  }
}

/* The vectors of the products to local memory, 0 where there is none. */
static void put_weights(scl_writer *w) {
  const scl_plan *p = w->p;
  const int x = p->pass - 1;
  int product = 0;
  scl_put(w, "  for (int k = item; k < GLM_SLOTS * GLM_PREDICTORS; k += GLM_ITEMS) {\n"
             "    const int c = k / GLM_PREDICTORS, v = k %% GLM_PREDICTORS;\n"
             "    real b = 0.0;\n");
  for (int s = 0; s < p->body; s++) {
    const int b = p->step[s].arg[1];
    if (p->step[s].kind != SCL_STEP_MATVEC) continue;
    scl_put(w, "    if (v / n == %d && c < x%d_n) b = x%d[x%d_at + c", product++, x, b, b);
    scl_put(w, p->n > 1 ? " + v %% n * x%d_j];\n" : "];\n", b);
  }
  scl_put(w, "    weight[k] = b;\n  }\n"
             "  for (int k = item; k < GLM_CELLS; k += GLM_ITEMS) residual[k] = 0.0;\n");
}

static void put_begin(scl_writer *w) {
  const int x = w->p->pass - 1;
  scl_put(w, "  __local real pool[GLM_POOL] __attribute__((aligned(16)));\n"
             "  __local real residual[GLM_CELLS] __attribute__((aligned(16)));\n"
             "  __local real weight[GLM_SLOTS * GLM_PREDICTORS] __attribute__((aligned(32)));\n"
             "  const int item = get_local_id(0), group = get_group_id(0);\n"
             "  const int groups = get_num_groups(0);\n"
             "  const int row_lane = item %% GLM_ROW_LANES, lane = item / GLM_ROW_LANES;\n");
  scl_put(w,
          "  const int p = x%d_n, cell = item < n * GLM_ROWS ? item : 0;\n"
          "  const int row_of_tile = cell %% GLM_ROWS, j = cell / GLM_ROWS;\n"
          "  const uint end = m, stride = groups * GLM_ROWS, step = GLM_LANES * (uint)x%d_l;\n"
          "  const uint last = (end - 1) / GLM_WIDTH * GLM_WIDTH;\n"
          "  __global const real *x = x%d + x%d_at + lane * x%d_l;\n",
          x, x, x, x, x);
  scl_put(w, "  glm_pair kept[GLM_COLUMNS], eta[GLM_PREDICTORS], pair[GLM_PREDICTORS];\n"
             "  real sum[GLM_PREDICTORS][GLM_SUMS];\n"
             "  SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {\n"
             "    SCL_UNROLL for (int k = 0; k < GLM_SUMS; k++) sum[v][k] = 0.0;\n  }\n"
             "  SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) kept[k] = (glm_pair)(0.0);\n");
  scl_put_totals(w);
  put_weights(w);
  put_loads(w, "  ", false);
  scl_put(w, "  barrier(CLK_LOCAL_MEM_FENCE);\n");
}

/* Products to slopes, a work-item a row. */
static void put_rows(scl_writer *w) {
  const scl_plan *p = w->p;
  int product = 0;
  for (int k = 0; k < p->outputs; k++) {
    if (p->output[k].product) scl_put(w, "    real slope%d = 0.0;\n", k);
  }
  scl_put(w, "    if (item < n * GLM_ROWS && first + row_of_tile < end) {\n");
  scl_put_element(w, "      ");
  scl_put(w, "    }\n    if (item < n * GLM_ROWS) {\n");
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].product) continue;
    scl_put(w, "      residual[%d * n * GLM_ROWS + cell] = slope%d;\n", product++, k);
  }
  scl_put(w, "    }\n");
}

static void put_tiles(scl_writer *w) {
  scl_put(w, "  for (uint first = group * GLM_ROWS; first < end; first += stride) {\n"
             "    const uint row = first + GLM_WIDTH * row_lane;\n"
             "    const int i = min(first + row_of_tile, end - 1);\n"
             "    glm_load(kept, x + min(row, last), step, lane, p);\n");
  put_loads(w, "    ", true);
  scl_put(w, "    if (first + GLM_ROWS > end) glm_clear(kept, row, end);\n"
             "    glm_predict(kept, weight, lane, eta);\n"
             "    SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {\n"
             "      *(__local glm_pair *)(pool + (lane * GLM_PREDICTORS + v) * GLM_ROWS +\n"
             "                            GLM_WIDTH * row_lane) = eta[v];\n    }\n"
             "    barrier(CLK_LOCAL_MEM_FENCE);\n");
  put_rows(w);
  scl_put(w, "    barrier(CLK_LOCAL_MEM_FENCE);\n"
             "    SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {\n"
             "      pair[v] = *(__local const glm_pair *)(residual + v * GLM_ROWS +\n"
             "                                            GLM_WIDTH * row_lane);\n    }\n"
             "    glm_add_gradient(kept, pair, sum);\n  }\n");
}

static void put_sums(scl_writer *w) {
  const scl_plan *p = w->p;
  int totals = 0, products = 0;
  scl_put(w, "  __global real *mine = part + part_at + group;\n"
             "  const int sums_at = item < GLM_CELLS ? item : -1;\n");
  for (int k = 0; k < p->outputs; k++) {
    products += p->output[k].product;
    if (!p->output[k].reduces || p->output[k].product) continue;
    scl_put(w, "  glm_sum_cells(pool, item, sums_at, a%d, n, %d * n, mine, groups);\n", k,
            totals++);
  }
  scl_put(w, "  SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {\n"
             "    barrier(CLK_LOCAL_MEM_FENCE);\n");
  scl_put(w,
          "    const glm_rows rows = {-1, -1, -1, v < %d * n ? %d * n + v * p : -1};\n"
          "    glm_sum_rows(pool, item, sum[v], p, rows, mine, groups);\n  }\n",
          products, totals);
}

/* The destination of result `at` of the group. */
static void put_results(scl_writer *w, bool products) {
  const char *results = products ? "n * p" : "n";
  for (int k = 0; k < w->p->outputs; k++) {
    const scl_output *o = &w->p->output[k];
    if (!o->reduces || o->product != products) continue;
    scl_put(w, "    if (at >= 0 && at < %s) r%d[r%d_at + at] = s[0];\n", results, k, k);
    scl_put(w, "    at -= %s;\n", results);
  }
}

void scl_put_pass_sums(scl_writer *w) {
  const scl_plan *p = w->p;
  scl_put(w, "\n/* Adds the results of the groups, in their order, a group for each result. */\n"
             "__kernel void expr_final(const int groups, const int n, const int p,\n"
             "                         __global const real *restrict part, const long part_at");
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) continue;
    scl_put(w, ",\n                         __global real *restrict r%d, const long r%d_at", k, k);
  }
  scl_put(w, ",\n                         __local real *s) {\n"
             "  const int item = get_local_id(0), items = get_local_size(0);\n"
             "  int at = get_group_id(0);\n"
             "  __global const real *mine = part + part_at + (long)at * groups;\n"
             "  real sum = 0.0;\n"
             "  #pragma unroll 8\n"
             "  for (int g = item; g < groups; g += items) sum += mine[g];\n"
             "  s[item] = sum;\n"
             "  barrier(CLK_LOCAL_MEM_FENCE);\n"
             "  for (int reach = items / 2; reach > 0; reach /= 2) {\n"
             "    if (item < reach) s[item] += s[item + reach];\n"
             "    barrier(CLK_LOCAL_MEM_FENCE);\n  }\n"
             "  if (item == 0) {\n");
  put_results(w, false);
  put_results(w, true);
  scl_put(w, "  }\n}\n");
}

void scl_put_pass(scl_writer *w) {
  scl_put(w, "__attribute__((reqd_work_group_size(GLM_ITEMS, 1, 1))) __kernel void\nexpr(");
  scl_put_inputs(w);
  scl_put(w, ",\n                   __global real *restrict part, const long part_at) {\n");
  put_begin(w);
  put_tiles(w);
  put_sums(w);
  scl_put(w, "}\n");
}
