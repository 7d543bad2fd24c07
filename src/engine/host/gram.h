/* Sums of products of the columns of blocks of rows that stay in the cache. */
#ifndef SCL_ENGINE_HOST_GRAM_H
#define SCL_ENGINE_HOST_GRAM_H

#include <stddef.h>

enum {
  SCL_GRAM_LANES = 4,  /* rows of a block are padded with zeros to a multiple, columns too */
  SCL_GRAM_MOST = 256, /* columns for which this is no slower than BLAS */
  SCL_GRAM_PARTS = 16  /* parts of the rows, at most, whatever the number of threads */
};

static inline size_t scl_gram_padded(size_t n) {
  return (n + SCL_GRAM_LANES - 1) / SCL_GRAM_LANES * SCL_GRAM_LANES;
}

/* Rows of a block of q columns, a multiple of SCL_GRAM_LANES. */
size_t scl_gram_step(size_t q);

/* sum += B' B, both halves in tiles of four columns, for a block B of `rows` rows and q columns,
 * both padded; sum is q x q. */
void scl_gram_add(const double *b, size_t rows, size_t q, double *sum);

#endif
