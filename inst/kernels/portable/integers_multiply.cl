/* Residues of a product by 8-bit arithmetic (integers.h), without matrix instructions: a work-item
 * computes INTEGERS_ROWS rows of a column of C by one modulus. Of the packed operands it reads
 * chunks of 16 terms of a row at once. */

/* The sum of 16 products. */
#ifdef INTEGERS_DOT
#define INTEGERS_SUM int
SCL_INLINE int integers_add_chunk(const int sum, const char16 x, const char16 y) {
  const uint4 of_x = as_uint4(x), of_y = as_uint4(y);
  return integers_dot(of_x.x, of_y.x,
                      integers_dot(of_x.y, of_y.y,
                                   integers_dot(of_x.z, of_y.z,
                                                integers_dot(of_x.w, of_y.w, sum))));
}

SCL_INLINE int integers_total(const int sum) {
  return sum;
}
#else
/* In four parts, for vector instructions. */
#define INTEGERS_SUM int4
SCL_INLINE int4 integers_add_chunk(const int4 sum, const char16 x, const char16 y) {
  const int16 each = convert_int16(x) * convert_int16(y);
  const int8 half_sum = each.lo + each.hi;
  return sum + half_sum.lo + half_sum.hi;
}

SCL_INLINE int integers_total(const int4 sum) {
  return sum.x + sum.y + sum.z + sum.w;
}
#endif

__kernel void INTEGERS_MULTIPLY(__global const real *a, __global const real *b, __global real *c,
                                const integers_product product) {
  const int row = (int)get_global_id(0) * INTEGERS_ROWS, column = (int)get_global_id(1);
  const int i = (int)get_global_id(2), modulus = integers_modulus[i];
  const int reciprocal = integers_reciprocal(modulus);
  const long panel = product.stages * (long)INTEGERS_PACKED;
  __global const char *rows = (__global const char *)a + i * product.a_step +
                              row / INTEGERS_PANEL * panel +
                              integers_position(row % INTEGERS_PANEL) * INTEGERS_CHUNK;
  __global const char *columns = (__global const char *)b + i * product.b_step +
                                 column / INTEGERS_PANEL * panel +
                                 column % INTEGERS_PANEL * INTEGERS_CHUNK;
  INTEGERS_SUM sums[INTEGERS_ROWS];
  char packed[INTEGERS_ROWS];
  SCL_UNROLL
  for (int r = 0; r < INTEGERS_ROWS; r++) sums[r] = 0;
  for (int chunk = 0; chunk < product.stages * (INTEGERS_DEPTH / INTEGERS_CHUNK); chunk++) {
    const long at = chunk * (long)(INTEGERS_PANEL * INTEGERS_CHUNK);
    const char16 y = vload16(0, columns + at);
    SCL_UNROLL
    for (int r = 0; r < INTEGERS_ROWS; r++)
      sums[r] = integers_add_chunk(sums[r], vload16(r / 2 * 8 + r % 2, rows + at), y);
  }
  SCL_UNROLL
  for (int r = 0; r < INTEGERS_ROWS; r++)
    packed[r] = (char)integers_residue(integers_total(sums[r]), modulus, reciprocal);
  vstore16(vload16(0, packed), 0,
           (__global char *)c + i * product.c_step + column * (long)product.rows + row);
}
