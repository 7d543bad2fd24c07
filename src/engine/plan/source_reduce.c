/* The parts of generated OpenCL C that reduce: the sums of a group, and the second step. */
#include <stdio.h>

#include "engine/plan/source.h"

void scl_put_totals(scl_writer *w) {
  for (int k = 0; k < w->p->outputs; k++) {
    const scl_output *o = &w->p->output[k];
    if (!o->reduces || o->product) continue;
    scl_put(w, "  real a%d = ", k);
    if (o->op == SCL_REDUCE_COUNT) {
      scl_put(w, "c%d;\n", o->identity);
    } else {
      scl_put(w, "%s;\n", scl_identity_text(o));
    }
    if (scl_reduces_to_index(o->op)) scl_put(w, "  real a%d_at = 0.0;\n", k);
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

/* The partial results of this group, at index `result`. */
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
void scl_put_total_body(scl_writer *w) {
  const bool wide = w->p->n > 1;
  put_items(w, "l", "items", "1");
  scl_put_totals(w);
  if (w->p->pairs) {
    scl_put_pairs(w);
  } else {
    if (wide) scl_put_columns_loop(w, "  ");
    scl_put_rows_loop(w, wide ? "    " : "  ");
    scl_put_element(w, wide ? "      " : "    ");
    scl_put(w, "%s  }\n%s", wide ? "  " : "", wide ? "  }\n" : "");
  }
  put_tree(w);
  put_partials(w, "", "0", "(get_group_id(1) * get_num_groups(0) + get_group_id(0))");
}

/* A group has some columns; its items share their rows. */
void scl_put_column_body(scl_writer *w) {
  put_items(w, "get_local_id(0)", "get_local_size(0)", "1");
  scl_put(w, "  const long j = get_global_id(1);\n");
  scl_put_totals(w);
  scl_put(w, "  if (j < n) {\n");
  scl_put_rows_loop(w, "    ");
  scl_put_element(w, "      ");
  scl_put(w, "    }\n  }\n");
  put_tree(w);
  put_partials(w, " && j < n", "j", "get_group_id(0)");
}

/* A group has some rows; its items, and other groups, share their columns. */
void scl_put_row_body(scl_writer *w) {
  put_items(w, "get_local_id(1)", "get_local_size(1)", "get_local_size(0)");
  scl_put(w, "  const long i = get_global_id(0);\n");
  scl_put_totals(w);
  scl_put(w, "  if (i < m) {\n");
  scl_put_columns_loop(w, "    ");
  scl_put_element(w, "      ");
  scl_put(w, "    }\n  }\n");
  put_tree(w);
  put_partials(w, " && i < m", "i", "get_group_id(1)");
}

void scl_put_final(scl_writer *w) {
  const scl_plan *p = w->p;
  char total[16], at[16], number[32], number_at[48];
  scl_put(w, "\n/* Combines the results of the groups, in their order: `parts` numbers for each of "
             "`results`.\n"
             " * Items along dimension 0 share a result. */\n"
             "__kernel void expr_final(const long results, const int parts");
  for (int k = 0; k < p->numbers; k++) scl_put(w, ", const real c%d", k);
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) continue;
    scl_put(w, ",\n                         __global const real *restrict p%d, const long p%d_at,",
            k, k);
    scl_put(w, "\n                         const long p%d_part,", k);
    if (scl_reduces_to_index(p->output[k].op)) scl_put(w, " const long p%d_place,", k);
    scl_put(w, "\n                         __global real *restrict r%d,", k);
    scl_put(w, "\n                         const long r%d_at, __local real *s%d", k, k);
  }
  scl_put(w, ") {\n");
  put_items(w, "get_local_id(0)", "get_local_size(0)", "1");
  scl_put(w, "  const long r = get_global_id(1);\n");
  scl_put_totals(w);
  /* Limited by the latency of memory: without unrolling, numbers would be read one by one. */
  scl_put(w, "  if (r < results) {\n#ifndef SCL_CPU\n    #pragma unroll 8\n#endif\n");
  scl_put(w, "    for (int q = t; q < parts; q += count) {\n");
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces) continue;
    snprintf(total, sizeof total, "a%d", k);
    snprintf(at, sizeof at, "a%d_at", k);
    snprintf(number, sizeof number, "v%d", k);
    snprintf(number_at, sizeof number_at, "v%d_at", k);
    scl_put(w, "      const real v%d = p%d[p%d_at + r + q * p%d_part];\n", k, k, k, k);
    if (scl_reduces_to_index(p->output[k].op)) {
      scl_put(w, "      const real v%d_at = p%d[p%d_at + p%d_place + r + q * p%d_part];\n", k, k, k,
              k, k);
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
