/* Copies of triangles, with zeros in the other half: triangular.cl. */
#include "engine/cl/linalg/linalg.h"

scl_status scl_cl_triangles_in(scl_cl_op *op, bool lower, scl_block src, scl_block dst,
                               size_t batch, size_t step_src, size_t step_dst, size_t last) {
  size_t local[3] = {32, op->cl->cpu ? 1 : 8, 1};
  size_t global[3] = {scl_round_up(src.nrow, local[0]), scl_round_up(src.ncol, local[1]), batch};
  return scl_launch_triangular_copy(op, scl_cl_range_3(global, local), (int)src.nrow, !lower,
                                    scl_in(src), scl_out(dst), step_src, step_dst, (int)last);
}

scl_status scl_cl_lower_in(scl_cl_op *op, scl_block src, scl_block dst) {
  return scl_cl_triangles_in(op, true, src, dst, 1, 0, 0, src.nrow);
}
