/* Shared by elementwise.cl and its driver (engine/cl/elementwise/copy.c). */
#ifndef SCL_KERNEL_COPIES_H
#define SCL_KERNEL_COPIES_H

/* Side of the square tiles of elementwise_transpose. */
#ifndef ELEMENTWISE_TILE
#define ELEMENTWISE_TILE 32
#endif

/* Kinds of copies: the values of scl_copy (base/engine.h). */
#define COPY_TRANSPOSED 1
#define COPY_LOWER 2
#define COPY_UPPER 3
#define COPY_MIRROR_LOWER 4
#define COPY_MIRROR_UPPER 5

/* The task of elementwise_gather: m x n elements; with `all_rows` (`all_columns`) the indices of
 * rows (of columns) are not read, and count as 0, 1, ... */
typedef struct {
  int m, n, all_rows, all_columns;
} elementwise_selection;
SCL_SAME_LAYOUT(elementwise_selection, 16)

#endif
