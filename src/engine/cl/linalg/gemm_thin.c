/* Products with few columns: launches of gemm_thin.cl. */
#include "engine/cl/linalg/linalg.h"

#include "kernels/include/gemm.h"

scl_cl_thin_product scl_cl_thin_view(const scl_cl_product *p, size_t k, bool columns) {
  scl_cl_thin_product t = {.k = k, .y = p->c};
  bool along = columns ? p->trans_b == SCL_NO_TRANS : p->trans_a == SCL_TRANS;
  t.trans = columns ? p->trans_a : (p->trans_b == SCL_TRANS ? SCL_NO_TRANS : SCL_TRANS);
  t.view = columns ? p->view_a : p->view_b;
  t.a = columns ? p->a : p->b;
  t.x = columns ? p->b : p->a;
  t.m = columns ? p->c.nrow : p->c.ncol;
  t.n = columns ? p->c.ncol : p->c.nrow;
  t.step_x = along ? 1 : t.x.ld;
  t.next_x = along ? t.x.ld : 1;
  t.step_y = columns ? 1 : p->c.ld;
  t.next_y = columns ? p->c.ld : 1;
  return t;
}

static size_t groups_of_rows(const scl_cl_thin_product *t) {
  return scl_ceil_div(t->m, t->trans == SCL_TRANS ? GEMM_THIN_ROWS : GEMM_THIN_LANES);
}

static size_t groups_of_columns(const scl_cl_thin_product *t) {
  return scl_ceil_div(t->n, t->n == 1 ? 1 : GEMM_THIN_COLUMNS);
}

size_t scl_cl_thin_groups(const scl_cl_thin_product *t) {
  return groups_of_rows(t) * groups_of_columns(t);
}

int scl_cl_view_flag(scl_view view, scl_trans trans, int lower, int upper) {
  if (trans == SCL_TRANS) view = scl_view_transposed(view);
  if (scl_view_is_lower(view)) return lower;
  return scl_view_is_upper(view) ? upper : 0;
}

scl_status scl_cl_thin_in(scl_cl_op *op, const scl_cl_thin_product *t, double alpha, double beta,
                          size_t parts, size_t k_part, size_t y_part) {
  static const scl_kernel_gemm_thin *const kernels[2][2] = {
      {&scl_k_gemm_thin_n, &scl_k_gemm_thin_t}, {&scl_k_gemm_vector_n, &scl_k_gemm_vector_t}};
  size_t local[3] = {GEMM_THIN_LANES, GEMM_THIN_ROWS, 1};
  size_t global[3] = {groups_of_rows(t) * GEMM_THIN_LANES, groups_of_columns(t) * GEMM_THIN_ROWS,
                      parts};
  int views = scl_cl_view_flag(t->view, t->trans, GEMM_A_LOWER, GEMM_A_UPPER);
  const gemm_thin_task task = {.x_row = t->step_x,
                               .x_column = t->next_x,
                               .y_row = t->step_y,
                               .y_column = t->next_y,
                               .y_part = y_part,
                               .alpha = alpha,
                               .beta = beta,
                               .m = (int)t->m,
                               .n = (int)t->n,
                               .k = (int)t->k,
                               .k_part = (int)k_part,
                               .views = views};
  return scl_launch_gemm_thin(op, kernels[t->n == 1][t->trans == SCL_TRANS],
                              scl_cl_range_3(global, local), scl_in(t->a), scl_in_at(t->x),
                              scl_inout_at(t->y), &task);
}
