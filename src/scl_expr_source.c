/* OpenCL C of a plan. The text depends on the structure of the plan only (scl_plan_key()):
 * matrices, numbers and sizes are arguments of the kernel, in the order that scl_cl_expr.c gives
 * them. Nothing that a user wrote is in it, and no number is printed but small whole ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scl_expr_writer.h"

/* ---- what a kernel is made of --------------------------------------------------------------- */

bool scl_plan_reduces(const scl_plan *p) {
  for (int k = 0; k < p->outputs; k++) {
    if (p->output[k].reduces) return true;
  }
  return false;
}

bool scl_plan_is_special(const scl_plan *p) {
  for (int s = 0; s < p->steps; s++) {
    const scl_step *step = &p->step[s];
    if (step->kind == SCL_STEP_APPLY && strstr(scl_ops[step->op].expression, "special_") != NULL) {
      return true;
    }
  }
  return false;
}

bool scl_plan_is_tiled(const scl_plan *p, int leaf) {
  int before = 0;
  if (p->leaf[leaf].read != SCL_READ_ACROSS || scl_plan_reduces(p)) return false;
  for (int k = 0; k < leaf; k++) before += p->leaf[k].read == SCL_READ_ACROSS;
  return before < SCL_PLAN_TILES;
}

bool scl_plan_has_tiles(const scl_plan *p) {
  for (int k = 0; k < p->leaves; k++) {
    if (scl_plan_is_tiled(p, k)) return true;
  }
  return false;
}

static void put_parameters(scl_writer *w) {
  const scl_plan *p = w->p;
  const char *alone = p->in_place ? "" : "restrict ";
  const char *gap = "\n                   ";
  scl_put(w, "const long m, const long n");
  for (int k = 0; k < p->leaves; k++) {
    const scl_leaf *l = &p->leaf[k];
    scl_put(w, ",%s__global const double *%sx%d, const long x%d_at", gap, alone, k, k);
    if (scl_leaf_takes_i(l)) scl_put(w, ", const long x%d_i", k);
    if (scl_leaf_takes_j(l, p->n > 1)) scl_put(w, ", const long x%d_j", k);
    if (scl_leaf_takes_terms(l)) scl_put(w, ",%sconst long x%d_l, const long x%d_n", gap, k, k);
  }
  for (int k = 0; k < p->numbers; k++) scl_put(w, ",%sconst double c%d", gap, k);
  for (int k = 0; k < p->rectangles; k++) {
    scl_put(w, ",%sconst long g%d_i0, const long g%d_i1, const long g%d_j0, const long g%d_j1", gap,
            k, k, k, k);
  }
  for (int k = 0; k < p->outputs; k++) {
    if (p->output[k].reduces) continue;
    scl_put(w, ",%s__global double *%sr%d, const long r%d_at", gap, alone, k, k);
    if (p->n > 1) scl_put(w, ", const long r%d_j", k);
  }
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) continue;
    scl_put(w, ",%s__global double *%sp%d, const long p%d_at, const long p%d_part,", gap, alone, k,
            k, k);
    if (scl_reduces_to_index(p->output[k].op)) scl_put(w, "%sconst long p%d_place,", gap, k);
    scl_put(w, "%s__local double *s%d", gap, k);
  }
}

/* The element of a leaf at (i, j), as an expression. */
static void put_element(scl_writer *w, int k) {
  const scl_leaf *l = &w->p->leaf[k];
  scl_put(w, "x%d[x%d_at", k, k);
  if (l->read == SCL_READ_COLUMN || l->read == SCL_READ_MATRIX) scl_put(w, " + i");
  if (scl_leaf_takes_i(l)) scl_put(w, " + i * x%d_i", k);
  if (l->read == SCL_READ_ACROSS) scl_put(w, " + j");
  if (scl_leaf_takes_j(l, w->p->n > 1)) scl_put(w, " + j * x%d_j", k);
  if (scl_leaf_takes_terms(l)) scl_put(w, " + l * x%d_l", k);
  scl_put(w, "]");
}

/* The same, zero where it is not to be read. */
static void put_load(scl_writer *w, int k) {
  const scl_leaf *l = &w->p->leaf[k];
  const char *triangle = l->triangle == SCL_LOWER   ? "i >= j"
                         : l->triangle == SCL_UPPER ? "i <= j"
                                                    : "";
  if (l->rectangle != 0 || l->triangle != 0) {
    scl_put(w, "(");
    if (l->rectangle != 0) scl_put(w, "g%d%s", l->rectangle - 1, l->triangle != 0 ? " && " : "");
    scl_put(w, "%s) ? ", triangle);
  }
  put_element(w, k);
  if (l->rectangle != 0 || l->triangle != 0) scl_put(w, " : 0.0");
}

static void put_matvec(scl_writer *w, const char *indent, int s, const scl_step *step) {
  const int x = step->arg[0], b = step->arg[1];
  scl_put(w, "%sdouble t%d = 0.0;\n", indent, s);
  scl_put(w, "#ifndef SCL_CPU\n%s#pragma unroll 8\n#endif\n", indent);
  scl_put(w, "%sfor (long l = 0; l < x%d_n; l++) {\n", indent, x);
  scl_put(w, "%s  t%d += ", indent, s);
  put_element(w, x);
  scl_put(w, " * x%d[x%d_at + l];\n%s}\n", b, b, indent);
}

/* One step as a line. */
static void put_step(scl_writer *w, const char *indent, int s) {
  const scl_step *step = &w->p->step[s];
  if (step->kind == SCL_STEP_MATVEC) {
    put_matvec(w, indent, s, step);
    return;
  }
  scl_put(w, "%sconst double t%d = ", indent, s);
  switch (step->kind) {
  case SCL_STEP_LOAD:
    if (scl_plan_is_tiled(w->p, step->arg[0])) {
      scl_put(w, "tile%d[x][c]", step->arg[0]);
    } else {
      put_load(w, step->arg[0]);
    }
    break;
  case SCL_STEP_NUMBER:
    scl_put(w, "c%d", step->arg[0]);
    break;
  case SCL_STEP_PLACE:
    scl_put(w, "(double)%s + c%d", step->arg[0] == 0 ? "i" : "j", step->arg[1]);
    break;
  case SCL_STEP_INSIDE:
    scl_put(w, "g%d ? 1.0 : 0.0", step->arg[0]);
    break;
  default:
    scl_put_apply(w, step);
  }
  scl_put(w, ";\n");
}

static void put_rectangles(scl_writer *w, const char *indent) {
  for (int k = 0; k < w->p->rectangles; k++) {
    scl_put(w, "%sconst int g%d = i >= g%d_i0 && i < g%d_i1 && j >= g%d_j0 && j < g%d_j1;\n",
            indent, k, k, k, k, k);
  }
}

static void put_store(scl_writer *w, const char *indent, int k, const char *value, int step) {
  scl_put(w, "%sr%d[r%d_at + i", indent, k, k);
  if (w->p->n > 1) scl_put(w, " + j * r%d_j", k);
  scl_put(w, step >= 0 ? "] = %s%d;\n" : "] = %s;\n", value, step);
}

/* What is done at one place. */
static void put_place(scl_writer *w, const char *indent) {
  const scl_plan *p = w->p;
  char deeper[24], number[24], total[16], at[16], place[48];
  snprintf(deeper, sizeof deeper, "%s%s", indent, p->triangle ? "  " : "");
  if (p->triangle) {
    scl_put(w, "%sif (%s) { /* all is zero elsewhere */\n", indent,
            p->triangle == SCL_LOWER ? "i >= j" : "i <= j");
  }
  put_rectangles(w, deeper);
  for (int s = 0; s < p->body; s++) put_step(w, deeper, s);
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    if (!o->reduces) {
      put_store(w, deeper, k, "t", o->step);
      continue;
    }
    const bool plain = o->op == SCL_REDUCE_COUNT || scl_reduces_to_index(o->op);
    snprintf(number, sizeof number, plain ? "t%d" : "map%d(t%d)", plain ? o->step : k, o->step);
    snprintf(total, sizeof total, "a%d", k);
    snprintf(at, sizeof at, "a%d_at", k);
    snprintf(place, sizeof place, "(double)(%s)",
             p->margin == SCL_BY_ROW              ? "j + 1"
             : p->margin == SCL_TOTAL && p->n > 1 ? "i + j * m + 1"
                                                  : "i + 1");
    scl_put_combine(w, deeper, k, total, number, at, place);
  }
  if (!p->triangle) return;
  scl_put(w, "%s} else {\n", indent);
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) put_store(w, deeper, k, "0.0", -1);
  }
  scl_put(w, "%s}\n", indent);
}

/* ---- reductions ----------------------------------------------------------------------------- */

static void put_totals(scl_writer *w) {
  for (int k = 0; k < w->p->outputs; k++) {
    const scl_output *o = &w->p->output[k];
    if (!o->reduces) continue;
    scl_put(w, "  double a%d = ", k);
    if (o->op == SCL_REDUCE_COUNT) {
      scl_put(w, "c%d;\n", o->identity);
    } else {
      scl_put(w, "%s;\n", scl_identity_text(o));
    }
    if (scl_reduces_to_index(o->op)) scl_put(w, "  double a%d_at = 0.0;\n", k);
  }
}

/* Tree in local memory over `count` items that lie `step` apart; item 0 of them has the result. */
static void put_tree(scl_writer *w) {
  const scl_plan *p = w->p;
  char u[32], v[32], u_at[48], v_at[48];
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) continue;
    scl_put(w, "  s%d[l] = a%d;\n", k, k);
    if (scl_reduces_to_index(p->output[k].op)) scl_put(w, "  s%d[items + l] = a%d_at;\n", k, k);
  }
  scl_put(w, "  barrier(CLK_LOCAL_MEM_FENCE);\n");
  scl_put(w, "  for (int reach = count / 2; reach > 0; reach /= 2) {\n    if (t < reach) {\n");
  scl_put(w, "      const int other = l + reach * step;\n");
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) continue;
    snprintf(u, sizeof u, "s%d[l]", k);
    snprintf(v, sizeof v, "s%d[other]", k);
    snprintf(u_at, sizeof u_at, "s%d[items + l]", k);
    snprintf(v_at, sizeof v_at, "s%d[items + other]", k);
    scl_put_combine(w, "      ", k, u, v, u_at, v_at);
  }
  scl_put(w, "    }\n    barrier(CLK_LOCAL_MEM_FENCE);\n  }\n");
}

static void put_items(scl_writer *w, const char *t, const char *count, const char *step) {
  scl_put(w, "  const int l = get_local_id(1) * get_local_size(0) + get_local_id(0);\n");
  scl_put(w, "  const int items = get_local_size(0) * get_local_size(1);\n");
  scl_put(w, "  const int t = %s, count = %s, step = %s;\n", t, count, step);
}

/* The partial results of this group, of which `result` says which they are. */
static void put_partials(scl_writer *w, const char *condition, const char *result,
                         const char *part) {
  scl_put(w, "  if (t == 0%s) {\n", condition);
  for (int k = 0; k < w->p->outputs; k++) {
    const scl_output *o = &w->p->output[k];
    if (!o->reduces) continue;
    scl_put(w, "    const long q%d = p%d_at + %s + %s * p%d_part;\n", k, k, result, part, k);
    scl_put(w, "    p%d[q%d] = s%d[l];\n", k, k, k);
    if (scl_reduces_to_index(o->op))
      scl_put(w, "    p%d[q%d + p%d_place] = s%d[items + l];\n", k, k, k, k);
  }
  scl_put(w, "  }\n");
}

static void put_rows_loop(scl_writer *w, const char *indent) {
  scl_put(w, "%sfor (long i = get_global_id(0); i < m; i += get_global_size(0)) {\n", indent);
}

static void put_columns_loop(scl_writer *w, const char *indent) {
  scl_put(w, "%sfor (long j = get_global_id(1); j < n; j += get_global_size(1)) {\n", indent);
}

static void put_total_body(scl_writer *w) {
  const bool wide = w->p->n > 1;
  put_items(w, "l", "items", "1");
  put_totals(w);
  if (wide) put_columns_loop(w, "  ");
  put_rows_loop(w, wide ? "    " : "  ");
  put_place(w, wide ? "      " : "    ");
  scl_put(w, "%s  }\n%s", wide ? "  " : "", wide ? "  }\n" : "");
  put_tree(w);
  put_partials(w, "", "0", "(get_group_id(1) * get_num_groups(0) + get_group_id(0))");
}

/* A group has some columns; its items share their rows. */
static void put_column_body(scl_writer *w) {
  put_items(w, "get_local_id(0)", "get_local_size(0)", "1");
  scl_put(w, "  const long j = get_global_id(1);\n");
  put_totals(w);
  scl_put(w, "  if (j < n) {\n");
  put_rows_loop(w, "    ");
  put_place(w, "      ");
  scl_put(w, "    }\n  }\n");
  put_tree(w);
  put_partials(w, " && j < n", "j", "get_group_id(0)");
}

/* A group has some rows; its items, and other groups, share their columns. */
static void put_row_body(scl_writer *w) {
  put_items(w, "get_local_id(1)", "get_local_size(1)", "get_local_size(0)");
  scl_put(w, "  const long i = get_global_id(0);\n");
  put_totals(w);
  scl_put(w, "  if (i < m) {\n");
  put_columns_loop(w, "    ");
  put_place(w, "      ");
  scl_put(w, "    }\n  }\n");
  put_tree(w);
  put_partials(w, " && i < m", "i", "get_group_id(1)");
}

static void put_final(scl_writer *w) {
  const scl_plan *p = w->p;
  char total[16], at[16], number[32], number_at[48];
  scl_put(
      w,
      "\n/* Combines what the groups left, in their order: `parts` numbers for each of `results`.\n"
      " * Items along dimension 0 share a result. */\n"
      "__kernel void expr_final(const long results, const long parts");
  for (int k = 0; k < p->numbers; k++) scl_put(w, ", const double c%d", k);
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) continue;
    scl_put(w,
            ",\n                         __global const double *restrict p%d, const long p%d_at,",
            k, k);
    scl_put(w, "\n                         const long p%d_part,", k);
    if (scl_reduces_to_index(p->output[k].op)) scl_put(w, " const long p%d_place,", k);
    scl_put(w, "\n                         __global double *restrict r%d,", k);
    scl_put(w, "\n                         const long r%d_at, __local double *s%d", k, k);
  }
  scl_put(w, ") {\n");
  put_items(w, "get_local_id(0)", "get_local_size(0)", "1");
  scl_put(w, "  const long r = get_global_id(1);\n");
  put_totals(w);
  /* Its time is that of waiting for memory, one number after the other if nothing is done. */
  scl_put(w, "  if (r < results) {\n#ifndef SCL_CPU\n    #pragma unroll 8\n#endif\n");
  scl_put(w, "    for (long q = t; q < parts; q += count) {\n");
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) continue;
    snprintf(total, sizeof total, "a%d", k);
    snprintf(at, sizeof at, "a%d_at", k);
    snprintf(number, sizeof number, "v%d", k);
    snprintf(number_at, sizeof number_at, "v%d_at", k);
    scl_put(w, "      const double v%d = p%d[p%d_at + r + q * p%d_part];\n", k, k, k, k);
    if (scl_reduces_to_index(p->output[k].op)) {
      scl_put(w, "      const double v%d_at = p%d[p%d_at + p%d_place + r + q * p%d_part];\n", k, k,
              k, k, k);
    }
    scl_put_combine(w, "      ", k, total, number, at, number_at);
  }
  scl_put(w, "    }\n  }\n");
  put_tree(w);
  scl_put(w, "  if (t == 0 && r < results) {\n");
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    if (!o->reduces) continue;
    scl_put(w, "    r%d[r%d_at + r] = s%d[%sl];\n", k, k, k,
            scl_reduces_to_index(o->op) ? "items + " : "");
  }
  scl_put(w, "  }\n}\n");
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* Special functions are long: copies of them would gain nothing and take long to compile. */
static const char *unrolled(const scl_plan *p) {
  return scl_plan_is_special(p) ? "#pragma unroll 1" : "#pragma unroll";
}

static void put_map_body(scl_writer *w) {
  if (w->p->n > 1) {
    scl_put(w, "  const long i = get_global_id(0);\n  if (i >= m) return;\n");
    put_columns_loop(w, "  ");
    put_place(w, "    ");
    scl_put(w, "  }\n");
    return;
  }
  scl_put(w, "  const long first = get_group_id(0) * (get_local_size(0) * %d) + get_local_id(0);\n",
          SCL_PLAN_ELEMENTS);
  scl_put(w, "  %s\n  for (int e = 0; e < %d; e++) {\n", unrolled(w->p), SCL_PLAN_ELEMENTS);
  scl_put(w, "    const long i = first + e * get_local_size(0);\n    if (i < m) {\n");
  put_place(w, "      ");
  scl_put(w, "    }\n  }\n");
}

static void put_tile_loop(scl_writer *w) {
  scl_put(w, "    %s\n    for (int s = 0; s < %d / TILE_ROWS; s++) {\n", unrolled(w->p),
          SCL_PLAN_TILE);
  scl_put(w, "      const int c = y + s * TILE_ROWS;\n");
}

/* Transposed operands come through local memory, so that both they and the results are accessed
 * along their columns. */
static void put_tiled_body(scl_writer *w) {
  const scl_plan *p = w->p;
  for (int k = 0; k < p->leaves; k++) {
    if (scl_plan_is_tiled(p, k)) {
      scl_put(w, "  __local double tile%d[%d][%d]; /* one more: no bank conflicts */\n", k,
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
  put_rectangles(w, "        ");
  for (int k = 0; k < p->leaves; k++) {
    if (!scl_plan_is_tiled(p, k)) continue;
    scl_put(w, "        tile%d[c][x] = ", k);
    put_load(w, k);
    scl_put(w, ";\n");
  }
  scl_put(w, "      }\n    }\n    barrier(CLK_LOCAL_MEM_FENCE);\n");
  put_tile_loop(w);
  scl_put(w, "      const long i = i0 + x, j = j0 + c;\n      if (i < m && j < n) {\n");
  put_place(w, "        ");
  scl_put(w, "      }\n    }\n  }\n");
}

static void put_head(scl_writer *w) {
  const scl_plan *p = w->p;
  scl_put(w,
          "/* Generated from an expression over matrices.\n"
          " *\n"
          " * Places: i < m, j < n, by rows along dimension 0%s. Of each operand x the\n"
          " * element at x_at + i * x_i + j * x_j is read (steps of 0 and 1 are not named); c are "
          "the numbers of the expression; r are\n"
          " * the results%s. */\n",
          p->n > 1 ? ", by columns along dimension 1" : "; there is one column",
          scl_plan_reduces(p) ? ", p what each group leaves of a reduction" : "");
  scl_put(w, "#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n"
             "#pragma OPENCL FP_CONTRACT OFF /* the same bits, in one kernel or in several */\n\n");
  if (scl_plan_is_special(p)) {
    scl_put(w, "/* special_...: port.h and special_functions.h of the package come first. */\n\n");
  }
  if (scl_plan_has_tiles(p)) {
    scl_put(w,
            "#ifndef TILE_ROWS /* work-items of a group along dimension 1; %d along 0 */\n"
            "#define TILE_ROWS %d\n#endif\n\n",
            SCL_PLAN_TILE, SCL_PLAN_TILE_ROWS);
  }
  scl_put_op_functions(w);
  scl_put_combine_functions(w);
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
  if (!scl_plan_reduces(p)) {
    if (scl_plan_has_tiles(p)) {
      put_tiled_body(w);
    } else {
      put_map_body(w);
    }
  } else if (p->margin == SCL_TOTAL) {
    put_total_body(w);
  } else if (p->margin == SCL_BY_COLUMN) {
    put_column_body(w);
  } else {
    put_row_body(w);
  }
  scl_put(w, "}\n");
  if (scl_plan_reduces(p)) put_final(w);
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
