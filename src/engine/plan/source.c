/* OpenCL C of a plan. The text depends on the structure of the plan only (scl_plan_key()):
 * matrices, numbers and sizes are arguments of the kernel, in the order of
 * engine/cl/elementwise/plan.c. It contains no text of the user, and only small integers as
 * numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/plan/source.h"

/* ---- what a kernel is made of --------------------------------------------------------------- */

static void put_parameters(scl_writer *w) {
  const scl_plan *p = w->p;
  const char *alone = p->in_place ? "" : "restrict ";
  const char *gap = "\n                   ";
  scl_put_inputs(w);
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) continue;
    scl_put(w, ",%s__global real *%sp%d, const long p%d_at, const long p%d_part,", gap, alone, k, k,
            k);
    if (scl_reduces_to_index(p->output[k].op)) scl_put(w, "%sconst long p%d_place,", gap, k);
    scl_put(w, "%s__local real *s%d", gap, k);
  }
}
/* ---- kernels -------------------------------------------------------------------------------- */

static void put_map_body(scl_writer *w) {
  if (w->p->pairs) {
    scl_put_pairs(w);
    return;
  }
  if (w->p->n > 1) {
    scl_put(w, "  const long i = get_global_id(0);\n  if (i >= m) return;\n");
    scl_put_columns_loop(w, "  ");
    scl_put_element(w, "    ");
    scl_put(w, "  }\n");
    return;
  }
  scl_put(w, "  const long first = get_group_id(0) * (get_local_size(0) * %d) + get_local_id(0);\n",
          SCL_PLAN_ELEMENTS);
  scl_put(w, "  %s\n  for (int e = 0; e < %d; e++) {\n", scl_unrolled(w->p), SCL_PLAN_ELEMENTS);
  scl_put(w, "    const long i = first + e * get_local_size(0);\n    if (i < m) {\n");
  scl_put_element(w, "      ");
  scl_put(w, "    }\n  }\n");
}

static void put_tile_loop(scl_writer *w) {
  scl_put(w, "    %s\n    for (int s = 0; s < %d / TILE_ROWS; s++) {\n", scl_unrolled(w->p),
          SCL_PLAN_TILE);
  scl_put(w, "      const int c = y + s * TILE_ROWS;\n");
}

/* Transposed operands go through local memory, so that both they and the results are accessed along
 * their columns. */
static void put_tiled_body(scl_writer *w) {
  const scl_plan *p = w->p;
  for (int k = 0; k < p->leaves; k++) {
    if (scl_plan_is_tiled(p, k)) {
      scl_put(w, "  __local real tile%d[%d][%d]; /* one more: no bank conflicts */\n", k,
              SCL_PLAN_TILE, SCL_PLAN_TILE + 1);
    }
  }
  scl_put(w, "  const int x = get_local_id(0), y = get_local_id(1);\n");
  scl_put(w, "  const long i0 = get_group_id(0) * (long)%d;\n", SCL_PLAN_TILE);
  scl_put(
      w,
      "  for (long j0 = get_group_id(1) * (long)%d; j0 < n; j0 += get_num_groups(1) * (long)%d) "
      "{\n",
      SCL_PLAN_TILE, SCL_PLAN_TILE);
  scl_put(w,
          "    barrier(CLK_LOCAL_MEM_FENCE); /* the tiles of the round before have been read */\n");
  put_tile_loop(w);
  scl_put(w, "      const long i = i0 + c, j = j0 + x;\n      if (i < m && j < n) {\n");
  scl_put_rectangles(w, "        ");
  for (int k = 0; k < p->leaves; k++) {
    if (!scl_plan_is_tiled(p, k)) continue;
    scl_put(w, "        tile%d[c][x] = ", k);
    scl_put_load(w, k);
    scl_put(w, ";\n");
  }
  scl_put(w, "      }\n    }\n    barrier(CLK_LOCAL_MEM_FENCE);\n");
  put_tile_loop(w);
  scl_put(w, "      const long i = i0 + x, j = j0 + c;\n      if (i < m && j < n) {\n");
  scl_put_element(w, "        ");
  scl_put(w, "      }\n    }\n  }\n");
}

static bool has_products(const scl_plan *p) {
  for (int s = 0; s < p->body; s++) {
    if (p->step[s].kind == SCL_STEP_MATVEC) return true;
  }
  return false;
}

static void put_head(scl_writer *w) {
  const scl_plan *p = w->p;
  scl_put(w,
          "/* Generated from an expression over matrices.\n"
          " *\n"
          " * Elements: i < m, j < n, by rows along dimension 0%s. Of each operand x the\n"
          " * element at x_at + i * x_i + j * x_j is read (steps of 0 and 1 are not named); c are "
          "the numbers of the expression; r are\n"
          " * the results%s. */\n",
          p->n > 1 ? ", by columns along dimension 1" : "; there is one column",
          scl_plan_reduces(p) ? ", p the partial results of the groups" : "");
  scl_put(w, "#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n"
             "#pragma OPENCL FP_CONTRACT OFF /* the same bits, in one kernel or in several */\n\n");
  if (scl_plan_is_special(p)) {
    scl_put(w, "/* special_...: port.h, special_functions.h and special_normal.h of the package "
               "come first. */\n\n");
  }
  if (scl_plan_is_incomplete(p)) {
    scl_put(w, "/* incomplete_...: incomplete_functions.h of the package, after these. */\n\n");
  }
  if (scl_plan_is_bessel(p)) {
    scl_put(w, "/* bessel_...: bessel_functions.h of the package, after these. */\n\n");
  }
  if (has_products(p) && p->pass == 0) {
    scl_put(w,
            "#ifdef SCL_CPU /* columns of a product at a time */\n#define BATCH 1\n#else\n"
            "#define BATCH %d\n#endif\n\n",
            SCL_PUT_BATCH);
  }
  if (scl_plan_has_tiles(p)) {
    scl_put(w,
            "#ifndef TILE_ROWS /* work-items of a group along dimension 1; %d along 0 */\n"
            "#define TILE_ROWS %d\n#endif\n\n",
            SCL_PLAN_TILE, SCL_PLAN_TILE_ROWS);
  }
  scl_put_op_functions(w);
  scl_put_combine_functions(w);
  if (p->pass != 0) return;
  scl_put(w, "__kernel void expr(");
  put_parameters(w);
  scl_put(w, ") {\n");
  if (p->n == 1 && p->rectangles > 0 && (!scl_plan_reduces(p) || p->margin == SCL_TOTAL)) {
    scl_put(w, "  const long j = 0;\n");
  }
}

static void put_kernels(scl_writer *w) {
  const scl_plan *p = w->p;
  put_head(w);
  if (p->pass != 0) {
    p->pass_mma ? scl_put_pass_mma(w) : scl_put_pass(w);
    scl_put_pass_sums(w);
    return;
  }
  if (!scl_plan_reduces(p)) {
    if (scl_plan_has_tiles(p)) {
      put_tiled_body(w);
    } else {
      put_map_body(w);
    }
  } else if (p->margin == SCL_TOTAL) {
    scl_put_total_body(w);
  } else if (p->margin == SCL_BY_COLUMN) {
    scl_put_column_body(w);
  } else {
    scl_put_row_body(w);
  }
  scl_put(w, "}\n");
  if (scl_plan_reduces(p)) scl_put_final(w);
}

scl_status scl_plan_source(const scl_plan *plan, char **out) {
  scl_writer w = {.room = 4096, .p = plan};
  w.text = calloc(1, w.room);
  if (w.text != NULL) put_kernels(&w);
  if (w.text == NULL || w.failed) {
    free(w.text);
    return scl_fail_memory(w.room, 0, "a kernel source");
  }
  *out = w.text;
  return SCL_OK;
}
