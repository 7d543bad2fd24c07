/* Sizes of products with sparse matrices (portable/compressed.cl), known to the kernels, to their
 * driver (engine/cl/linalg/compressed.c) and to ops/compressed.c, which cuts rows into tiles, and
 * the tasks of launches. No code. */
#ifndef SCL_KERNEL_COMPRESSED_H
#define SCL_KERNEL_COMPRESSED_H

#define COMPRESSED_ITEMS 256 /* of a work-group, a power of two; rows of a tile at most */
#define COMPRESSED_EACH 4    /* stored elements of a tile for each of them */
#define COMPRESSED_WIDTH 8   /* columns of B at a time, a power of two */
#define COMPRESSED_TILE (COMPRESSED_ITEMS * COMPRESSED_EACH)

/* Whole numbers of a tile: its first row, its rows, its first stored element, and the piece that it
 * is of a row that has several tiles, or -1. */
#define COMPRESSED_RECORD 4

/* c has this many columns, and `pieces` are those of all cut rows. For more than one column b is
 * transposed. */
typedef struct {
  scl_long b_offset, c_offset;
  int b_ld, c_ld, columns, pieces;
} compressed_task;
SCL_SAME_LAYOUT(compressed_task, 32)

/* A' diag(w) A of n columns; those with more than `longest` stored elements are left out. The rows
 * of the result are cut into ranges of `width`. */
typedef struct {
  scl_long w_offset, c_offset;
  int c_ld, n, width, longest, weighted;
  int unused; /* fills the struct up */
} compressed_gram_task;
SCL_SAME_LAYOUT(compressed_gram_task, 40)

#endif
