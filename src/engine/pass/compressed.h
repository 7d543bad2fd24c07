/* Sparse matrices as an engine sees them: compressed rows. Blocks of whole numbers have two of 32
 * bits in each element. */
#ifndef SCL_ENGINE_PASS_COMPRESSED_H
#define SCL_ENGINE_PASS_COMPRESSED_H

#include "base/matrix.h"

struct scl_compressed_rows {
  size_t m, n, count; /* rows, columns, stored elements; each fits an int */
  scl_block start;    /* m + 1 whole numbers: the first element of each row, then count */
  scl_block column;   /* count whole numbers, increasing in each row */
  scl_block value;    /* count */
  /* How the elements are shared out (kernels/include/compressed.h). */
  size_t tile_count, cut_count, pieces;
  scl_block tiles; /* tile_count + 1 records */
  scl_block cuts;  /* for each row of several pieces, the row and its first piece; then the end */
};

/* A matrix and its transpose. starts: those of the transpose, in host memory. */
struct scl_compressed_pair {
  struct scl_compressed_rows rows, columns;
  const int32_t *starts;
};

#endif
