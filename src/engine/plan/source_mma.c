/* OpenCL C of a pass of several vectors by matrix instructions (engine/plan/pass.h): the
 * elementwise steps between the two products of inst/kernels/nvidia/glm_mma_tile.h. Work is split
 * as in glm_mma.cl: a group is a warp, which walks over tiles of 16 rows, and copies the next one
 * while it works. Between the products a work-item has one row of the tile, for every second
 * vector:
 *
 *   X b of the tile -> cells -> the steps, for row lane % 16 and vectors lane / 16, + 2, ...
 *                      cells <- slopes                                  -> += X' slopes
 *
 * The cell of vector j of product q is number q * n + j. Rows past the end are computed like the
 * last one, with cells of 0, and do not count. */
#include <stdio.h>

#include "engine/plan/pass.h"
#include "engine/plan/source.h"

/* Vectors of a work-item. */
static int vectors_of(const scl_plan *p) {
  return (int)((p->n + 1) / 2);
}

static void put_vectors_loop(scl_writer *w, const char *indent, const char *unrolled) {
  scl_put(w, "%s%s\n%sfor (int e = 0; e < %d; e++) {\n", indent, unrolled, indent,
          vectors_of(w->p));
}

/* Loads of leaves that change with the row, or of the others, to arrays by vector. */
static void put_loads(scl_writer *w, const char *indent, bool by_row) {
  int loads = 0;
  for (int k = 0; k < w->p->leaves; k++) {
    if (!scl_is_loaded(w->p, k) || scl_is_by_row(&w->p->leaf[k]) != by_row) continue;
    scl_put(w, "%sreal of%d[%d];\n", indent, k, vectors_of(w->p));
    loads++;
  }
  if (loads == 0) return;
  put_vectors_loop(w, indent, "SCL_UNROLL");
  scl_put(w, "%s  const int j = min(GLM_PREDICTOR(e, lane), n - 1);\n", indent);
  for (int k = 0; k < w->p->leaves; k++) {
    if (!scl_is_loaded(w->p, k) || scl_is_by_row(&w->p->leaf[k]) != by_row) continue;
    scl_put(w, "%s  of%d[e] = ", indent, k);
    scl_put_load(w, k);
    scl_put(w, ";\n");
  }
  scl_put(w, "%s}\n", indent);
}

/* The vectors of the products as the instruction's operand. */
static void put_weights(scl_writer *w) {
  const scl_plan *p = w->p;
  const int n = (int)p->n;
  int product = 0;
  scl_put(w, "  real weight[GLM_STEPS][2], sum[GLM_BLOCKS][4];\n"
             "  SCL_UNROLL for (int s = 0; s < GLM_STEPS; s++) {\n"
             "    SCL_UNROLL for (int h = 0; h < 2; h++) {\n"
             "      const int c = 8 * s + 4 * h + self.member, v = self.quad;\n"
             "      real b = 0.0;\n");
  for (int s = 0; s < p->body; s++) {
    const int b = p->step[s].arg[1], first = product * n;
    if (p->step[s].kind != SCL_STEP_MATVEC) continue;
    scl_put(w, "      if (v >= %d && v < %d && c < p) b = x%d[x%d_at + c + (v - %d) * x%d_j];\n",
            first, first + n, b, b, first, b);
    product++;
  }
  scl_put(w, "      weight[s][h] = b;\n    }\n  }\n"
             "  SCL_UNROLL for (int i = 0; i < GLM_BLOCKS; i++) {\n"
             "    SCL_UNROLL for (int k = 0; k < 4; k++) sum[i][k] = 0.0;\n  }\n");
}

static void put_totals(scl_writer *w) {
  for (int k = 0; k < w->p->outputs; k++) {
    if (!w->p->output[k].reduces || w->p->output[k].product) continue;
    scl_put(w,
            "  real total%d[GLM_LINKS];\n"
            "  SCL_UNROLL for (int e = 0; e < GLM_LINKS; e++) total%d[e] = 0.0;\n",
            k, k);
  }
}

static void put_begin(scl_writer *w) {
  const int x = w->p->pass - 1;
  scl_put(w, "  __local real ring[2 * GLM_STAGE] __attribute__((aligned(128)));\n"
             "  __local real cells[GLM_CELLS] __attribute__((aligned(128)));\n"
             "  const int group = get_group_id(0), groups = get_num_groups(0);\n"
             "  MMA_LANE(self, 1);\n"
             "  mma_copies copies = MMA_NO_COPIES;\n");
  scl_put(w,
          "  const int lane = self.lane, cell_row = lane & 15, p = x%d_n;\n"
          "  const uint end = m, stride = groups * GLM_ROWS, ld = x%d_l;\n"
          "  __global const real *x = x%d + x%d_at;\n"
          "  uint first = group * GLM_ROWS;\n"
          "  glm_fetch(&copies, ring, x, ld, first, end, p, lane);\n"
          "  for (int i = p * GLM_ROWS + lane; i < GLM_STAGE; i += 32) {\n"
          "    ring[i] = ring[GLM_STAGE + i] = 0.0;\n  }\n",
          x, x, x, x);
  put_weights(w);
  put_totals(w);
  put_loads(w, "  ", false);
}

/* The steps, with the names of scl_put_element(); then their results. */
static void put_vector(scl_writer *w) {
  const scl_plan *p = w->p;
  bool stores = false;
  scl_put(w,
          "      const int v = GLM_PREDICTOR(e, lane), j = min(v, %d);\n"
          "      const bool valid = first + cell_row < end && v < %d;\n",
          (int)p->n - 1, (int)p->n);
  for (int k = 0; k < p->leaves; k++) {
    if (scl_is_loaded(p, k)) scl_put(w, "      const real y%d = of%d[e];\n", k, k);
  }
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    stores = stores || !o->reduces;
    if (o->product) scl_put(w, "      real slope%d = 0.0;\n", k);
    if (o->reduces && !o->product) scl_put(w, "      real a%d = total%d[e];\n", k, k);
  }
  scl_put(w, "      %s{\n", stores ? "if (valid) " : "");
  scl_put_element(w, "        ");
  scl_put(w, "      }\n");
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    if (o->product) scl_put(w, "      slopes%d[e] = valid ? slope%d : 0.0;\n", k, k);
    if (o->reduces && !o->product)
      scl_put(w, "      total%d[e] = valid ? a%d : total%d[e];\n", k, k, k);
  }
}

static void put_rows(scl_writer *w) {
  const scl_plan *p = w->p;
  int product = 0;
  for (int k = 0; k < p->outputs; k++) {
    if (p->output[k].product) scl_put(w, "    real slopes%d[%d];\n", k, vectors_of(p));
  }
  put_vectors_loop(w, "    ", scl_unrolled(p));
  put_vector(w);
  scl_put(w, "    }\n    mma_warp_sync(self);\n");
  put_vectors_loop(w, "    ", "SCL_UNROLL");
  scl_put(w, "      const int v = GLM_PREDICTOR(e, lane);\n");
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].product) continue;
    scl_put(w, "      if (v < %d) cells[glm_cell(%d + v, cell_row)] = slopes%d[e];\n", (int)p->n,
            product++ * (int)p->n, k);
  }
  scl_put(w, "    }\n");
}

static void put_tiles(scl_writer *w) {
  scl_put(w, "  for (int turn = 0; first < end; first += stride, turn ^= 1) {\n"
             "    __local real *stage = ring + turn * GLM_STAGE;\n"
             "    const int i = min(first + cell_row, end - 1);\n");
  put_loads(w, "    ", true);
  scl_put(w,
          "    glm_fetch(&copies, ring + (turn ^ 1) * GLM_STAGE, x, ld, first + stride, end, p,\n"
          "              lane);\n"
          "    MMA_WAIT(&copies, 1); /* all but the latest */\n"
          "    mma_warp_sync(self);\n"
          "    glm_predict(self, stage, weight, cells);\n"
          "    mma_warp_sync(self);\n");
  put_rows(w);
  scl_put(w, "    mma_warp_sync(self);\n"
             "    glm_add_gradient(self, stage, cells, sum);\n"
             "    mma_warp_sync(self);\n  }\n");
}

static void put_sums(scl_writer *w) {
  const scl_plan *p = w->p;
  const int n = (int)p->n;
  int totals = 0, products = 0;
  scl_put(w, "  __global real *mine = part + part_at + group;\n");
  for (int k = 0; k < p->outputs; k++) {
    products += p->output[k].product;
    if (!p->output[k].reduces || p->output[k].product) continue;
    scl_put(w, "  glm_sum_cells(ring, total%d, %d, %d, mine, groups, self);\n", k, n, totals++ * n);
  }
  scl_put(w, "  glm_write_gradient(sum, mine + (long)%d * groups, groups, p, %d, self);\n",
          totals * n, products * n);
}

void scl_put_pass_mma(scl_writer *w) {
  scl_put(w, "__attribute__((reqd_work_group_size(32, 1, 1))) __kernel void\nexpr(");
  scl_put_inputs(w);
  scl_put(w, ",\n                   __global real *restrict part, const long part_at) {\n");
  put_begin(w);
  put_tiles(w);
  put_sums(w);
  scl_put(w, "}\n");
}
