/* Work-groups and tiles of the covariance kernels (covariance*.cl), known to their driver
 * (engine/cl/covariance/covariance.c). No code. */
#ifndef SCL_KERNEL_COVARIANCE_GROUPS_H
#define SCL_KERNEL_COVARIANCE_GROUPS_H

/* Matrices: a group of LANES x LANES work-items has a tile, each of them PART x PART elements. */
#ifndef COVARIANCE_LANES
#define COVARIANCE_LANES 16 /* work-items along each side of a tile: 8 or 16 */
#endif
#ifndef COVARIANCE_PART
#define COVARIANCE_PART 4 /* rows, and columns, of a work-item: 1 to 6; registers grow with it */
#endif
#define COVARIANCE_TILE (COVARIANCE_LANES * COVARIANCE_PART)
#define COVARIANCE_ITEMS (COVARIANCE_PART * COVARIANCE_PART)

/* The adjoint: LANES_I x LANES_J work-items have a square tile, each PART_I x PART_J elements. So
 * LANES_I PART_I = LANES_J PART_J; LANES_I work-items read neighbours in memory; registers grow
 * with the parts, local memory with the work-items. */
#ifndef ADJOINT_LANES_I
#define ADJOINT_LANES_I 16
#define ADJOINT_LANES_J 4
#define ADJOINT_PART_I 2
#define ADJOINT_PART_J 8
#endif
#define ADJOINT_PART (ADJOINT_PART_I * ADJOINT_PART_J)
#define ADJOINT_TILE (ADJOINT_LANES_I * ADJOINT_PART_I)
#define ADJOINT_GROUP (ADJOINT_LANES_I * ADJOINT_LANES_J)
#define ADJOINT_STRIDE (ADJOINT_GROUP + 1) /* of the sums in local memory: odd, no bank conflicts */

/* The adjoint with respect to the points: rows of a group, and work-items that share a row. */
#ifndef INPUTS_ROWS
#define INPUTS_ROWS 32 /* work-items side by side in memory: 16, 32 or 64 */
#endif
#ifndef INPUTS_LANES
#define INPUTS_LANES 8 /* 1 to 16 */
#endif

#endif
