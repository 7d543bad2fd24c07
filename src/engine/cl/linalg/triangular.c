/* Triangular solves on a device. T is split in halves down to blocks that one launch solves by
 * substitution. Between the two halves comes a product with the off-diagonal block, so that
 * products with long sums do nearly all of the work. Also copies of triangles. */
#include "engine/cl/linalg/linalg.h"

/* ---- solve ---------------------------------------------------------------------------------- */
/* "M x = b" for the columns (rows, if right) of B, with M = T or T'. */
typedef struct {
  bool right, transposed; /* M = T' */
  bool lower;             /* T */
  bool reversed;          /* M is upper: the last unknown comes first */
  size_t leaf;            /* order of the blocks that one launch solves */
  scl_block packed;       /* all of them, for matrix instructions; no buffer: portable kernels */
} solve_form;

static solve_form form_of(scl_side side, scl_view view, scl_trans trans) {
  solve_form form = {.right = side == SCL_RIGHT, .lower = view == SCL_LOWER};
  form.transposed = (trans == SCL_TRANS) != form.right;
  form.reversed = form.lower == form.transposed;
  form.leaf = TRIANGULAR_LEAF;
  return form;
}

scl_status scl_cl_use_packed(scl_cl_op *op, size_t n, bool right, scl_block b, bool *out) {
  static const scl_cl_program list[] = {SCL_CL_PROGRAM_triangular_mma_pack,
                                        SCL_CL_PROGRAM_triangular_mma_solve};
  *out = false;
  if (n <= TRIANGULAR_LEAF / 2 || (right && !scl_cl_aligned(b))) return SCL_OK;
  if (!scl_cl_may_try_mma(op->cl)) return SCL_OK;
  SCL_TRY(scl_cl_programs_prepare(op->cl, 2, list));
  SCL_TRY(scl_cl_try_program(op->cl, list[0], out));
  return *out ? scl_cl_try_program(op->cl, list[1], out) : SCL_OK;
}

scl_status scl_cl_substitute_in(scl_cl_op *op, const scl_cl_substitution *s) {
  const scl_kernel_substitute *kernel =
      op->cl->cpu ? &scl_k_triangular_cpu_substitute : &scl_k_triangular_substitute;
  size_t local[2] = {op->cl->cpu ? 1 : TRIANGULAR_ITEMS, 1};
  size_t groups = scl_ceil_div(s->rhs, TRIANGULAR_ITEMS);
  size_t global[2] = {groups * local[0], s->batch};
  const triangular_task task = {.unknown_step = s->right ? s->b.ld : 1,
                                .side_step = s->right ? 1 : s->b.ld,
                                .t_step = s->step_t,
                                .b_step = s->step_b,
                                .n = (int)s->n,
                                .n_last = (int)s->n_last,
                                .rhs = (int)s->rhs,
                                .rhs_last = (int)s->rhs_last,
                                .transposed = s->transposed,
                                .reversed = s->reversed};
  return scl_launch_substitute(op, kernel, scl_cl_range_2(global, local), scl_in(s->t),
                               scl_inout_at(s->b), &task);
}

static scl_status substitute_block(scl_cl_op *op, const solve_form *form, size_t at, scl_block t,
                                   scl_block b) {
  size_t n = t.nrow, rhs = form->right ? b.nrow : b.ncol;
  if (form->packed.buffer != NULL) {
    return scl_cl_packed_solve_in(op, &(scl_cl_packed_solve){.right = form->right,
                                                             .reversed = form->reversed,
                                                             .n = n,
                                                             .n_last = n,
                                                             .rhs = rhs,
                                                             .rhs_last = rhs,
                                                             .batch = 1,
                                                             .first = at / form->leaf,
                                                             .b = b,
                                                             .packed = form->packed});
  }
  return scl_cl_substitute_in(op, &(scl_cl_substitution){.right = form->right,
                                                         .transposed = form->transposed,
                                                         .reversed = form->reversed,
                                                         .n = n,
                                                         .n_last = n,
                                                         .rhs = rhs,
                                                         .rhs_last = rhs,
                                                         .batch = 1,
                                                         .t = t,
                                                         .b = b});
}

/* b2 -= M21 b1: `known` are the solved unknowns, `off` the block of T between the two. */
static scl_status eliminate_known(scl_cl_op *op, const solve_form *form, scl_block off,
                                  scl_block known, scl_block rest) {
  scl_trans flip = form->transposed ? SCL_TRANS : SCL_NO_TRANS;
  if (!form->right)
    return scl_cl_gemm_in(op, -1.0, flip, off, SCL_GENERAL, SCL_NO_TRANS, known, SCL_GENERAL, 1.0,
                          rest, SCL_ALL);
  flip = form->transposed ? SCL_NO_TRANS : SCL_TRANS;
  return scl_cl_gemm_in(op, -1.0, SCL_NO_TRANS, known, SCL_GENERAL, flip, off, SCL_GENERAL, 1.0,
                        rest, SCL_ALL);
}

/* `t` starts at row `at` of the whole triangular matrix. */
static scl_status solve_blocks(scl_cl_op *op, const solve_form *form, size_t at, scl_block t,
                               scl_block b) {
  size_t n = t.nrow, leaf = form->leaf;
  if (n <= leaf) return substitute_block(op, form, at, t, b);
  size_t h = scl_ceil_div(n, leaf) / 2 * leaf, rest = n - h;
  scl_block t1 = scl_block_part(t, 0, 0, h, h), t2 = scl_block_part(t, h, h, rest, rest);
  scl_block off = form->lower ? scl_block_part(t, h, 0, rest, h) : scl_block_part(t, 0, h, h, rest);
  scl_block b1 =
      form->right ? scl_block_part(b, 0, 0, b.nrow, h) : scl_block_part(b, 0, 0, h, b.ncol);
  scl_block b2 =
      form->right ? scl_block_part(b, 0, h, b.nrow, rest) : scl_block_part(b, h, 0, rest, b.ncol);
  if (form->reversed) {
    SCL_TRY(solve_blocks(op, form, at + h, t2, b2));
    SCL_TRY(eliminate_known(op, form, off, b2, b1));
    return solve_blocks(op, form, at, t1, b1);
  }
  SCL_TRY(solve_blocks(op, form, at, t1, b1));
  SCL_TRY(eliminate_known(op, form, off, b1, b2));
  return solve_blocks(op, form, at + h, t2, b2);
}

scl_status scl_cl_trsm_in(scl_cl_op *op, scl_side side, scl_view view, scl_trans trans, scl_block t,
                          scl_block b) {
  if (b.nrow == 0 || b.ncol == 0) return SCL_OK;
  solve_form form = form_of(side, view, trans);
  size_t rhs = form.right ? b.nrow : b.ncol;
  if (scl_cl_trsv_pays(op, t.nrow, rhs)) {
    return scl_cl_trsv_in(op, &(scl_cl_vectors){.lower = form.lower,
                                                .transposed = form.transposed,
                                                .rhs = rhs,
                                                .step = form.right ? b.ld : 1,
                                                .next = form.right ? 1 : b.ld,
                                                .t = t,
                                                .b = b});
  }
  bool by_mma;
  SCL_TRY(scl_cl_use_packed(op, t.nrow, form.right, b, &by_mma));
  if (!by_mma) return solve_blocks(op, &form, 0, t, b);
  form.leaf = PANEL_ORDER;
  SCL_TRY(scl_cl_packed_create(op, scl_ceil_div(t.nrow, PANEL_ORDER), &form.packed));
  scl_status status = scl_cl_pack_in(op, form.transposed, form.reversed, t, form.packed);
  if (status == SCL_OK) status = solve_blocks(op, &form, 0, t, b);
  scl_buffer_release(form.packed.buffer);
  return status;
}

scl_status scl_cl_trsm(scl_context *ctx, scl_side side, scl_view view, scl_trans trans, scl_block t,
                       scl_block b) {
  scl_cl_op op;
  if (b.nrow == 0 || b.ncol == 0) return SCL_OK;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, t.buffer);
  scl_cl_op_writes(&op, b.buffer);
  SCL_TRY(scl_cl_op_order(&op, -1));
  return scl_cl_op_end(&op, scl_cl_trsm_in(&op, side, view, trans, t, b));
}
