/* Shapes of the batched kernels, each a program of its own. BATCH_SMALL(op, n, items): a work-item
 * for a matrix of order n, `items` of them a group. BATCH_TILE(op, n, p, q, matrices): p x q
 * work-items for a matrix of order up to n, `matrices` a group; p is a power of 2, q divides it,
 * and 2p divides n. Expanded into programs (engine/cl/runtime/kernels.def) and into the driver's
 * tables (engine/cl/batch/batch.c), which takes the first that is large enough.
 *
 * Elimination with pivoting takes one warp a group, or as few as the registers allow, so that many
 * groups hide the chain of a step; the others were chosen by measurement (bench/NOTES.md). */
#ifndef SCL_ENGINE_CL_BATCH_LAYOUTS_H
#define SCL_ENGINE_CL_BATCH_LAYOUTS_H

#define BATCH_SMALL_LAYOUTS(op)                                                                    \
  BATCH_SMALL(op, 1, 64)                                                                           \
  BATCH_SMALL(op, 2, 64)                                                                           \
  BATCH_SMALL(op, 3, 64)                                                                           \
  BATCH_SMALL(op, 4, 64)                                                                           \
  BATCH_SMALL(op, 5, 64)                                                                           \
  BATCH_SMALL(op, 6, 64)                                                                           \
  BATCH_SMALL(op, 7, 32)                                                                           \
  BATCH_SMALL(op, 8, 32)

/* Both have the same orders. */
#define BATCH_PIVOTED_LAYOUTS(op)                                                                  \
  BATCH_SMALL_LAYOUTS(op)                                                                          \
  BATCH_TILE(op, 12, 2, 2, 8)                                                                      \
  BATCH_TILE(op, 16, 4, 2, 4)                                                                      \
  BATCH_TILE(op, 24, 4, 2, 4)                                                                      \
  BATCH_TILE(op, 32, 8, 4, 1)                                                                      \
  BATCH_TILE(op, 48, 8, 4, 1)                                                                      \
  BATCH_TILE(op, 64, 16, 4, 1)                                                                     \
  BATCH_TILE(op, 96, 16, 8, 1)                                                                     \
  BATCH_TILE(op, 128, 16, 16, 1)

#define BATCH_TRIANGLE_LAYOUTS(op)                                                                 \
  BATCH_SMALL_LAYOUTS(op)                                                                          \
  BATCH_TILE(op, 12, 2, 2, 8)                                                                      \
  BATCH_TILE(op, 16, 4, 4, 2)                                                                      \
  BATCH_TILE(op, 24, 4, 4, 2)                                                                      \
  BATCH_TILE(op, 32, 4, 4, 2)                                                                      \
  BATCH_TILE(op, 48, 8, 4, 1)                                                                      \
  BATCH_TILE(op, 64, 8, 8, 1)                                                                      \
  BATCH_TILE(op, 96, 16, 16, 1)                                                                    \
  BATCH_TILE(op, 128, 16, 16, 1)

/* Solutions and determinants by panels (batch_solve_mma.cl), for orders at which they are faster
 * than batch_solve_tile.cl: the largest order and the warps of a group. */
#define BATCH_PANEL_LAYOUTS                                                                        \
  BATCH_PANEL(64, 2)                                                                               \
  BATCH_PANEL(96, 3)                                                                               \
  BATCH_PANEL(128, 8)

/* Products by groups (batch_matmul_mma_group.cl): strips of 16 rows, which are the warps of a
 * group, and stages of its ring, of 2 KB for each strip. One for each number of strips. */
#define BATCH_STRIPS_LAYOUTS                                                                       \
  BATCH_STRIPS(3, 4)                                                                               \
  BATCH_STRIPS(4, 4)                                                                               \
  BATCH_STRIPS(5, 3)                                                                               \
  BATCH_STRIPS(6, 3)

#endif
