/* Sizes of the triangular kernel, known to triangular.cl and to its driver
 * (engine/cl/linalg/triangular.c), and the task of a launch. No code. */
#ifndef SCL_KERNEL_TRIANGULAR_H
#define SCL_KERNEL_TRIANGULAR_H

/* triangular.cl, triangular_cpu.cl. */
#define TRIANGULAR_LEAF 64  /* largest block that one launch solves; larger ones are halved, with a
                               product between the halves */
#define TRIANGULAR_WIDTH 32 /* unknowns that a work-item holds in registers at a time; even */
#define TRIANGULAR_ITEMS 64 /* right-hand sides of a group */

/* Matrix instructions (panels_mma.h). */
#define PANEL_ORDER 128    /* of their blocks */
#define PANEL_WARPS 4      /* of a group of triangular_mma_solve, 16 right-hand sides each */
#define PANEL_PACKED 11264 /* doubles of a packed block: PANEL_START(PANEL_ORDER / 16) */
#define TRIANGULAR_COPY 32 /* columns that a group of triangular_mma_pack_and_copy copies */

/* Few right-hand sides (triangular_vector.cl). */
#define VECTOR_RHS 4     /* at most */
#define VECTOR_BLOCK 256 /* order of the blocks, and work-items of a group */
#define VECTOR_TILE 32   /* order of their tiles */
#define VECTOR_LANES 8   /* rows of T that a group reads side by side */
#define VECTOR_NEAR 1    /* how often a near group does so */
#define VECTOR_FAR 4     /* how often a far group does so */
#define VECTOR_TILES (VECTOR_BLOCK / VECTOR_TILE * (VECTOR_BLOCK / VECTOR_TILE + 1) / 2)
/* Doubles of a packed block: its tiles, and the inverses of those on the diagonal. */
#define VECTOR_PACKED ((VECTOR_TILES + VECTOR_BLOCK / VECTOR_TILE) * VECTOR_TILE * VECTOR_TILE)

/* A batch of solves with triangular blocks of order n, of which the last may be of order n_last
 * (triangular.cl explains the forms). Unknown p of right-hand side s lies unknown_step r(p) +
 * side_step s elements from the start of B. */
typedef struct {
  scl_long unknown_step, side_step;
  scl_long t_step, b_step; /* from a block of T to the next; likewise in B */
  int n, n_last, rhs, rhs_last;
  int transposed, reversed;
  int identity; /* solves with the identity, whatever B contains: triangular_mma_solve only */
  int unused;   /* fills the struct up */
} triangular_task;
SCL_SAME_LAYOUT(triangular_task, 64)

/* A matrix of order n whose diagonal blocks are packed, and the order of the diagonal blocks that
 * are copied. */
typedef struct {
  int n, block;
  int transposed, reversed;
} triangular_packing;
SCL_SAME_LAYOUT(triangular_packing, 16)

/* One launch of triangular_vector.cl, whose head explains it. */
typedef struct {
  scl_long row, column; /* steps in T from a row, a column of L to the next */
  scl_long unknown_step, side_step;
  int n, rhs;
  int at;          /* the block that is solved for */
  int near, tiles; /* near groups for each right-hand side; tiles to pack */
  int unused;      /* fills the struct up */
} triangular_vector_task;
SCL_SAME_LAYOUT(triangular_vector_task, 56)

#endif
