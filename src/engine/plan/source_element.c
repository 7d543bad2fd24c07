/* The parts of generated OpenCL C that loop over elements, and the statements for each. */
#include <stdio.h>

#include "engine/plan/source.h"

/* Rows and columns are counted by the smallest type that is large enough: with 64-bit indices the
 * compiler does not unroll a loop, and too few loads are in flight. */
static const char *index_type(const scl_plan *p) {
  return p->wide ? "long" : "int";
}

void scl_put_inputs(scl_writer *w) {
  const scl_plan *p = w->p;
  const char *alone = p->in_place ? "" : "restrict ";
  const char *gap = "\n                   ";
  scl_put(w, "const %s m, const %s n", index_type(p), index_type(p));
  for (int k = 0; k < p->leaves; k++) {
    const scl_leaf *l = &p->leaf[k];
    scl_put(w, ",%s__global const real *%sx%d, const long x%d_at", gap, alone, k, k);
    if (scl_leaf_takes_i(l)) scl_put(w, ", const long x%d_i", k);
    if (scl_leaf_takes_j(l, p->n > 1)) scl_put(w, ", const long x%d_j", k);
    if (scl_leaf_takes_terms(l)) scl_put(w, ",%sconst long x%d_l, const int x%d_n", gap, k, k);
  }
  for (int k = 0; k < p->numbers; k++) scl_put(w, ",%sconst real c%d", gap, k);
  for (int k = 0; k < p->rectangles; k++) {
    scl_put(w, ",%sconst long g%d_i0, const long g%d_i1, const long g%d_j0, const long g%d_j1", gap,
            k, k, k, k);
  }
  for (int k = 0; k < p->outputs; k++) {
    if (p->output[k].reduces) continue;
    scl_put(w, ",%s__global real *%sr%d, const long r%d_at", gap, alone, k, k);
    if (p->n > 1) scl_put(w, ", const long r%d_j", k);
  }
}

/* The element of a leaf at (i, j), as an expression; of a product that in column `column`. */
static void put_element(scl_writer *w, int k, const char *column) {
  const scl_leaf *l = &w->p->leaf[k];
  scl_put(w, "x%d[x%d_at", k, k);
  if (l->read == SCL_READ_COLUMN || l->read == SCL_READ_MATRIX) scl_put(w, " + i");
  if (scl_leaf_takes_i(l)) scl_put(w, " + i * x%d_i", k);
  if (l->read == SCL_READ_ACROSS) scl_put(w, " + j");
  if (scl_leaf_takes_j(l, w->p->n > 1)) scl_put(w, " + j * x%d_j", k);
  if (scl_leaf_takes_terms(l)) scl_put(w, " + %s * x%d_l", column, k);
  scl_put(w, "]");
}

/* The same, zero where it must not be read. */
void scl_put_load(scl_writer *w, int k) {
  const scl_leaf *l = &w->p->leaf[k];
  const char *triangle = l->triangle == SCL_LOWER   ? "i >= j"
                         : l->triangle == SCL_UPPER ? "i <= j"
                                                    : "";
  if (l->rectangle != 0 || l->triangle != 0) {
    scl_put(w, "(");
    if (l->rectangle != 0) scl_put(w, "g%d%s", l->rectangle - 1, l->triangle != 0 ? " && " : "");
    scl_put(w, "%s) ? ", triangle);
  }
  put_element(w, k, "");
  if (l->rectangle != 0 || l->triangle != 0) scl_put(w, " : 0.0");
}

/* Rows i and i + 1 of a leaf; of a product in column `column`. */
static void put_pair(scl_writer *w, int k, const char *column) {
  scl_put(w, "*(__global const real2 *)(x%d + x%d_at + i", k, k);
  if (scl_leaf_takes_terms(&w->p->leaf[k])) scl_put(w, " + %s * x%d_l", column, k);
  scl_put(w, ")");
}

static void put_term(scl_writer *w, int x, const char *column) {
  if (w->p->pairs) {
    put_pair(w, x, column);
  } else {
    put_element(w, x, column);
  }
}

/* A product inside a kernel: several columns at a time, so that their loads are in flight
 * together. */
static void put_matvec(scl_writer *w, const char *indent, int s) {
  const scl_step *step = &w->p->step[s];
  const int x = step->arg[0], b = step->arg[1];
  const char *type = w->p->pairs ? "real2" : "real", *name = w->p->pairs ? "u" : "t";
  scl_put(w, "%s%s %s%d = 0.0;\n%sint l%d = 0;\n", indent, type, name, s, indent, s);
  scl_put(w, "%sfor (; l%d + BATCH <= x%d_n; l%d += BATCH) {\n", indent, s, x, s);
  scl_put(w, "%s  %s v[BATCH];\n", indent, type);
  char column[32];
  snprintf(column, sizeof column, "(l%d + e)", s);
  scl_put(w, "%s  #pragma unroll\n%s  for (int e = 0; e < BATCH; e++) v[e] = ", indent, indent);
  put_term(w, x, column);
  scl_put(w, ";\n%s  #pragma unroll\n%s  for (int e = 0; e < BATCH; e++) %s%d += v[e] * ", indent,
          indent, name, s);
  scl_put(w, "x%d[x%d_at + l%d + e];\n%s}\n", b, b, s, indent);
  snprintf(column, sizeof column, "l%d", s);
  scl_put(w, "%sfor (; l%d < x%d_n; l%d++) %s%d += ", indent, s, x, s, name, s);
  put_term(w, x, column);
  scl_put(w, " * x%d[x%d_at + l%d];\n", b, b, s);
}

/* Which of the products this step is. */
static int product_number(const scl_plan *p, int step) {
  int number = 0;
  for (int s = 0; s < step; s++) number += p->step[s].kind == SCL_STEP_MATVEC;
  return number;
}

/* One step as a line. */
static void put_step(scl_writer *w, const char *indent, int s) {
  const scl_step *step = &w->p->step[s];
  if (step->kind == SCL_STEP_MATVEC && !w->p->pairs && w->p->pass == 0) {
    put_matvec(w, indent, s);
    return;
  }
  scl_put(w, "%sconst real t%d = ", indent, s);
  switch (step->kind) {
  case SCL_STEP_LOAD:
    if (w->p->pass != 0) {
      scl_put(w, "y%d", step->arg[0]);
    } else if (w->p->leaf[step->arg[0]].paired) {
      scl_put(w, "row == 0 ? y%d.x : y%d.y", step->arg[0], step->arg[0]);
    } else if (scl_plan_is_tiled(w->p, step->arg[0])) {
      scl_put(w, "tile%d[x][c]", step->arg[0]);
    } else {
      scl_put_load(w, step->arg[0]);
    }
    break;
  case SCL_STEP_NUMBER:
    scl_put(w, "c%d", step->arg[0]);
    break;
  case SCL_STEP_INDEX:
    scl_put(w, "(real)%s + c%d", step->arg[0] == 0 ? "i" : "j", step->arg[1]);
    break;
  case SCL_STEP_INSIDE:
    scl_put(w, "g%d ? 1.0 : 0.0", step->arg[0]);
    break;
  case SCL_STEP_MATVEC:
    if (w->p->pass_mma) {
      scl_put(w, "cells[glm_cell(%d + j, cell_row)]", product_number(w->p, s) * (int)w->p->n);
    } else if (w->p->pass != 0) {
      scl_put(w, "glm_sum_lanes(pool, %d * n * GLM_ROWS + cell)", product_number(w->p, s));
    } else {
      scl_put(w, "row == 0 ? u%d.x : u%d.y", s, s);
    }
    break;
  default:
    scl_put_apply(w, step);
  }
  scl_put(w, ";\n");
}

void scl_put_rectangles(scl_writer *w, const char *indent) {
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

/* The statements for one element. */
void scl_put_element(scl_writer *w, const char *indent) {
  const scl_plan *p = w->p;
  char deeper[24], number[24], total[16], at[16], index[48];
  snprintf(deeper, sizeof deeper, "%s%s", indent, p->triangle ? "  " : "");
  if (p->triangle) {
    scl_put(w, "%sif (%s) { /* all is zero elsewhere */\n", indent,
            p->triangle == SCL_LOWER ? "i >= j" : "i <= j");
  }
  scl_put_rectangles(w, deeper);
  for (int s = 0; s < p->body; s++) put_step(w, deeper, s);
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    if (!o->reduces) {
      put_store(w, deeper, k, "t", o->step);
      continue;
    }
    if (o->product) {
      scl_put(w, "%sslope%d = t%d;\n", deeper, k, o->step);
      continue;
    }
    const bool plain = o->op == SCL_REDUCE_COUNT || scl_reduces_to_index(o->op);
    snprintf(number, sizeof number, plain ? "t%d" : "map%d(t%d)", plain ? o->step : k, o->step);
    snprintf(total, sizeof total, "a%d", k);
    snprintf(at, sizeof at, "a%d_at", k);
    snprintf(index, sizeof index, "(real)(%s)",
             p->margin == SCL_BY_ROW              ? "j + 1"
             : p->margin == SCL_TOTAL && p->n > 1 ? "i + j * (long)m + 1"
                                                  : "i + 1");
    scl_put_combine(w, deeper, k, total, number, at, index);
  }
  if (!p->triangle) return;
  scl_put(w, "%s} else {\n", indent);
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) put_store(w, deeper, k, "0.0", -1);
  }
  scl_put(w, "%s}\n", indent);
}

/* ---- loops ---------------------------------------------------------------------------------- */

/* Special functions are long: further copies would not be faster and would take long to compile. */
const char *scl_unrolled(const scl_plan *p) {
  return scl_plan_is_special(p) ? "#pragma unroll 1" : "#pragma unroll";
}

static void put_special(scl_writer *w, const char *indent) {
  if (scl_plan_is_special(w->p)) scl_put(w, "%s%s\n", indent, scl_unrolled(w->p));
}

void scl_put_rows_loop(scl_writer *w, const char *indent) {
  const char *type = index_type(w->p);
  put_special(w, indent);
  scl_put(w, "%sfor (%s i = get_global_id(0); i < m; i += (%s)get_global_size(0)) {\n", indent,
          type, type);
}

void scl_put_columns_loop(scl_writer *w, const char *indent) {
  const char *type = index_type(w->p);
  put_special(w, indent);
  scl_put(w, "%sfor (%s j = get_global_id(1); j < n; j += (%s)get_global_size(1)) {\n", indent,
          type, type);
}

/* All rows of one column, in pairs; first everything else that is read for both rows at once, then
 * the products of both. */
void scl_put_pairs(scl_writer *w) {
  const scl_plan *p = w->p;
  scl_put(w, "  const int pairs = get_global_size(0);\n"
             "  for (int i = 2 * get_global_id(0); i < m; i += 2 * pairs) {\n");
  for (int k = 0; k < p->leaves; k++) {
    if (!p->leaf[k].paired || p->leaf[k].length > 0) continue;
    scl_put(w, "    const real2 y%d = ", k);
    put_pair(w, k, "");
    scl_put(w, ";\n");
  }
  for (int s = 0; s < p->body; s++) {
    if (p->step[s].kind == SCL_STEP_MATVEC) put_matvec(w, "    ", s);
  }
  scl_put(w, "    const int first = i;\n    %s\n", scl_unrolled(p));
  scl_put(w, "    for (int row = 0; row < 2; row++) {\n      const int i = first + row;\n"
             "      if (i < m) {\n");
  scl_put_element(w, "        ");
  scl_put(w, "      }\n    }\n  }\n");
}
