/* Substitution by strips on matrix instructions: launches of triangular_mma.cl. */
#include "scl_cl_linalg.h"

static cl_mem memory_of(scl_block b) {
  return ((scl_cl_buffer *)b.buffer)->memory;
}

scl_status scl_cl_strips_room(scl_context *ctx, size_t blocks, scl_block *out) {
  return scl_block_create(ctx, STRIPS_ORDER * STRIPS_ORDER, blocks, out);
}

scl_status scl_cl_strips_pack_in(scl_cl_op *op, bool transposed, bool reversed, scl_block t,
                                 scl_block packed) {
  size_t n = t.nrow, blocks = (n + STRIPS_ORDER - 1) / STRIPS_ORDER;
  size_t last = n - (blocks - 1) * STRIPS_ORDER;
  size_t items = 2 * STRIPS_ORDER; /* one warp to 16 rows */
  size_t local[2] = {items, 1}, global[2] = {items, blocks};
  return scl_cl_launch(op, SCL_K_triangular_mma_pack, 2, global, local, "iibliim", STRIPS_ORDER,
                       (int)last, t, (long long)(STRIPS_ORDER * (t.ld + 1)), (int)transposed,
                       (int)reversed, memory_of(packed));
}

scl_status scl_cl_strips_solve_in(scl_cl_op *op, const scl_cl_strips *s) {
  size_t local[2] = {32 * STRIPS_WARPS, 1};
  size_t global[2] = {scl_round_up(s->rhs, 16 * STRIPS_WARPS) * 2, s->batch};
  if (s->rhs == 0) return SCL_OK;
  return scl_cl_launch(op, SCL_K_triangular_mma_solve, 2, global, local,
                       "iiiimllllim"
                       "l",
                       (int)s->n, (int)s->n_last, (int)s->rhs, (int)s->rhs_last, memory_of(s->b),
                       (long long)s->b.offset, (long long)(s->right ? s->b.ld : 1),
                       (long long)(s->right ? 1 : s->b.ld), (long long)s->step_b, (int)s->reversed,
                       memory_of(s->packed),
                       (long long)(s->packed.offset + s->first * STRIPS_ORDER * STRIPS_ORDER));
}
