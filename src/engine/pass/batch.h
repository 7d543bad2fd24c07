/* Batches of small matrices (ops/batch.h) as an engine sees them. */
#ifndef SCL_ENGINE_PASS_BATCH_H
#define SCL_ENGINE_PASS_BATCH_H

#include "base/matrix.h"

/* The largest order of a square matrix; and the values of a status other than a pivot. */
enum { SCL_BATCH_ORDER = 128, SCL_BATCH_FINE = 0, SCL_BATCH_NONFINITE = 255 };

typedef enum {
  SCL_BATCH_INVERSE = 0,
  SCL_BATCH_CHOL,
  SCL_BATCH_CHOL_ADJOINT, /* a: factors, b: their adjoints */
  SCL_BATCH_SOLVE,
  SCL_BATCH_DET,
  SCL_BATCH_TRI_SOLVE,
  SCL_BATCH_MATMUL,
  SCL_BATCH_MVN /* a: factors, b: y, c: means (or no buffer) */
} scl_batch_op;

/* The matrices of an operand are `step` elements apart; if that is 0, all use one matrix. Each is
 * dense: its leading dimension is its number of rows. */
typedef struct {
  scl_block block;
  size_t step;
} scl_batch_operand;

/* One operation on a batch. batch > 0, and every dimension is positive. */
typedef struct scl_batch_pass {
  scl_batch_op op;
  size_t m, n, k, batch; /* square: n; right-hand sides: k; products: as above */
  scl_batch_operand a, b, c, out;
  bool upper, transpose; /* transpose: of the triangle; of a product's a */
  bool transpose_b, logarithm;
  bool cofactors;
  unsigned char *status; /* `batch` bytes; the engine then waits. Or NULL */
} scl_batch_pass;

#endif
