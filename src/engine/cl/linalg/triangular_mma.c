/* Substitution by matrix instructions: launches of triangular_mma.cl. */
#include "engine/cl/linalg/linalg.h"

scl_status scl_cl_packed_create(scl_cl_op *op, size_t blocks, scl_block *out) {
  return scl_cl_temporary(op, PANEL_PACKED * blocks, 1, out);
}

scl_status scl_cl_pack_in(scl_cl_op *op, bool transposed, bool reversed, scl_block t,
                          scl_block packed) {
  size_t n = t.nrow, blocks = scl_ceil_div(n, PANEL_ORDER);
  size_t last = n - (blocks - 1) * PANEL_ORDER;
  size_t items = 2 * PANEL_ORDER;
  size_t local[2] = {items, 1}, global[2] = {items * (PANEL_ORDER / 16), blocks};
  return scl_launch_triangular_mma_pack(op, scl_cl_range_2(global, local), PANEL_ORDER, (int)last,
                                        scl_in(t), PANEL_ORDER * (t.ld + 1), transposed, reversed,
                                        scl_out_buffer(packed.buffer));
}

scl_status scl_cl_pack_and_copy_in(scl_cl_op *op, bool transposed, bool reversed, scl_block t,
                                   scl_block packed, size_t block, scl_block src, scl_block copy) {
  size_t n = t.nrow, items = 2 * PANEL_ORDER;
  size_t columns = n < block ? n : block;
  size_t parts = PANEL_ORDER / 16 + scl_ceil_div(columns, TRIANGULAR_COPY);
  size_t local[2] = {items, 1};
  size_t global[2] = {items * parts, scl_ceil_div(n, PANEL_ORDER)};
  const triangular_packing packing = {(int)n, (int)block, transposed, reversed};
  return scl_launch_triangular_mma_pack_and_copy(op, scl_cl_range_2(global, local), scl_in(t),
                                                 scl_out_buffer(packed.buffer), scl_in(src),
                                                 scl_out(copy), &packing);
}

scl_status scl_cl_packed_solve_in(scl_cl_op *op, const scl_cl_packed_solve *s) {
  size_t local[2] = {32 * PANEL_WARPS, 1};
  size_t global[2] = {scl_round_up(s->rhs, 16 * PANEL_WARPS) * 2, s->batch};
  if (s->rhs == 0) return SCL_OK;
  scl_block packed = s->packed;
  packed.offset += s->first * PANEL_PACKED;
  const triangular_task task = {.unknown_step = s->right ? s->b.ld : 1,
                                .side_step = s->right ? 1 : s->b.ld,
                                .t_step = PANEL_PACKED,
                                .b_step = s->step_b,
                                .n = (int)s->n,
                                .n_last = (int)s->n_last,
                                .rhs = (int)s->rhs,
                                .rhs_last = (int)s->rhs_last,
                                .reversed = s->reversed,
                                .identity = s->identity};
  return scl_launch_triangular_mma_solve(op, scl_cl_range_2(global, local), scl_inout_at(s->b),
                                         scl_in_at(packed), &task);
}

/* ---- inverses -------------------------------------------------------------------------------- */
/* Solves X T = I. Only rows that can differ from zero are computed: from the first row solved so
 * far on (lower), or up to the last one (upper). */
typedef struct {
  scl_cl_op *op;
  bool lower;
  scl_block t, x, packed;
} inversion;

static scl_status invert_leaf(const inversion *v, size_t at, size_t n) {
  size_t row = v->lower ? at : 0, rows = v->lower ? v->t.nrow - at : at + n;
  return scl_cl_packed_solve_in(v->op,
                                &(scl_cl_packed_solve){.right = true,
                                                       .reversed = v->lower,
                                                       .n = n,
                                                       .n_last = n,
                                                       .rhs = rows,
                                                       .rhs_last = rows,
                                                       .batch = 1,
                                                       .first = at / PANEL_ORDER,
                                                       .b = scl_block_part(v->x, row, at, rows, n),
                                                       .packed = v->packed});
}

/* Columns [to, to + n) -= X(:, [from, from + k)) T(from.., to..). */
static scl_status invert_eliminate(const inversion *v, size_t from, size_t k, size_t to, size_t n) {
  size_t row = v->lower ? from : 0, rows = v->lower ? v->t.nrow - from : from + k;
  return scl_cl_product_in(v->op, &(scl_cl_product){.alpha = -1.0,
                                                    .beta = 1.0,
                                                    .view_a = v->lower ? SCL_LOWER : SCL_GENERAL,
                                                    .a = scl_block_part(v->x, row, from, rows, k),
                                                    .b = scl_block_part(v->t, from, to, k, n),
                                                    .c = scl_block_part(v->x, row, to, rows, n),
                                                    .batch = 1});
}

static scl_status invert_range(const inversion *v, size_t at, size_t n) {
  if (n <= PANEL_ORDER) return invert_leaf(v, at, n);
  size_t h = scl_ceil_div(n, PANEL_ORDER) / 2 * PANEL_ORDER, rest = n - h;
  if (v->lower) {
    SCL_TRY(invert_range(v, at + h, rest));
    SCL_TRY(invert_eliminate(v, at + h, rest, at, h));
    return invert_range(v, at, h);
  }
  SCL_TRY(invert_range(v, at, h));
  SCL_TRY(invert_eliminate(v, at, h, at + h, rest));
  return invert_range(v, at + h, rest);
}

scl_status scl_cl_packed_invert_in(scl_cl_op *op, bool lower, scl_block t, scl_block dst) {
  inversion v = {.op = op, .lower = lower, .t = t, .x = dst};
  size_t blocks = scl_ceil_div(t.nrow, PANEL_ORDER);
  SCL_TRY(scl_cl_packed_create(op, blocks, &v.packed));
  /* X T = I has T' on the left: transposed, and for a lower T in reversed order. */
  scl_status status = scl_cl_pack_in(op, true, lower, t, v.packed);
  if (status == SCL_OK) status = invert_range(&v, 0, t.nrow);
  scl_buffer_release(v.packed.buffer);
  return status;
}
