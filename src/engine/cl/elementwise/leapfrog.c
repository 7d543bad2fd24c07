/* Steps of chains whose points stay on a device. */
#include "base/sizes.h"
#include "engine/cl/runtime/launch.h"

enum { ITEMS = 64 };

scl_status scl_cl_leapfrog_in(scl_cl_op *op, scl_block result, scl_block step, scl_block position,
                              scl_block momentum, scl_block record) {
  const size_t d = position.nrow;
  return scl_launch_leapfrog_step(op, scl_cl_range_1(scl_round_up(d, ITEMS), ITEMS), (int)d,
                                  scl_in_at(result), scl_in_at(step), scl_inout_at(position),
                                  scl_inout_at(momentum), scl_out_at(record));
}
