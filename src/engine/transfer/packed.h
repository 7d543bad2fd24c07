/* The packed form of a matrix (inst/kernels/include/packed.h) cut into spans that fit a piece of
 * staging memory, and the host's copies between a span and a matrix. */
#ifndef SCL_ENGINE_TRANSFER_PACKED_H
#define SCL_ENGINE_TRANSFER_PACKED_H

#include "base/matrix.h"

typedef struct {
  size_t nrow, ncol;
  int kind;      /* PACKED_... */
  bool mirrored; /* symmetric: the lower triangle is transferred, both halves are written */
  size_t stride; /* PACKED_FULL: from one column to the next; beyond nrow it carries padding */
} scl_packed;

scl_packed scl_packed_shape(scl_view view, size_t nrow, size_t ncol);

/* Number of elements, including padding. */
size_t scl_packed_count(const scl_packed *shape);

/* Whole columns, or a part of one column. */
typedef struct {
  size_t col, cols;
  size_t from, to; /* rows that it covers in each column: its elements and zeros */
  size_t base;     /* packed index of its first element */
  size_t count;    /* elements; may be 0 */
  size_t next_col, next_row;
} scl_packed_span;

/* Advances to the next span of at most `capacity` (> 0) elements; false after the last one. Starts
 * from a span of zeros. All columns belong to a span, also those that hold no element. */
bool scl_packed_next(const scl_packed *shape, size_t capacity, scl_packed_span *span);

/* Between the packed elements of a span and the matrix x, for elements at .. end - 1 of the matrix,
 * counted column by column with nrow to a column, all of which belong to the span. gather: packed =
 * x. scatter: x = packed, with zeros in the other triangle; not for mirrored shapes; if `stream`,
 * past the caches (engine/transfer/stream.h). */
void scl_packed_gather(const scl_packed *shape, const scl_packed_span *span, const double *x,
                       size_t ld, double *packed, size_t at, size_t end);
void scl_packed_scatter(const scl_packed *shape, const scl_packed_span *span, const double *packed,
                        double *x, size_t ld, size_t at, size_t end, bool stream);

#endif
