/* The double-precision matrix instructions of NVIDIA devices, and the other features of a warp that
 * the kernels of this folder use: c + a b for 16 x 8 results, with sums over 4 or 8; exchange
 * within a warp; asynchronous copies to local memory; barriers of some warps. The parts that differ
 * between devices are in mma_ptx.h, as inline assembly, and in mma_emulated.h, in plain OpenCL C,
 * which runs anywhere (SCL_MMA_EMULATED=1). Exactly one of the two comes before this file.
 *
 * Of compute capability 9.0 on there is one instruction for each product; 8.0 has 8 x 8 x 4 alone
 * (SCL_MMA_8), of which two or four make up the larger ones: their registers are the same.
 *
 * A lane stands in quad lane / 4 as member lane % 4. It holds
 *
 *                 B  member     member + 4              quad    columns 2 member, 2 member + 1
 *            quad    b0         b1              row   C
 *   row   A          member     member + 4        quad        c[0], c[1]
 *     quad           a0         a2                quad + 8    c[2], c[3]
 *     quad + 8       a1         a3
 *
 * where A is 16 x 8, B is 8 x 8 and stands by its columns, C is 16 x 8. The product over 4 has
 * neither a2, a3 nor b1. */

#ifdef SCL_MMA_8

MMA_COLLECTIVE void mma_4_to(const mma_lane lane, double to[4], const double from[4],
                             const double a0, const double a1, const double b0) {
  mma_8_8_4(lane, &to[0], &from[0], a0, b0);
  mma_8_8_4(lane, &to[2], &from[2], a1, b0);
}

/* to = from + a b, by which a block can move along at no cost. */
MMA_COLLECTIVE void mma_8_to(const mma_lane lane, double to[4], const double from[4],
                             const double a0, const double a1, const double a2, const double a3,
                             const double b0, const double b1) {
  mma_4_to(lane, to, from, a0, a1, b0);
  mma_4_to(lane, to, to, a2, a3, b1);
}

#endif

/* c += a b, with sums over 4 and over 8. */
MMA_COLLECTIVE void mma_4(const mma_lane lane, double c[4], const double a0, const double a1,
                          const double b0) {
  mma_4_to(lane, c, c, a0, a1, b0);
}

MMA_COLLECTIVE void mma_8(const mma_lane lane, double c[4], const double a0, const double a1,
                          const double a2, const double a3, const double b0, const double b1) {
  mma_8_to(lane, c, c, a0, a1, a2, a3, b0, b1);
}

/* 1 / d and 1 / sqrt(d) to about one unit in the last place: hardware seeds, which flush subnormal
 * numbers, and one third-order step. The root is NaN or infinite where d fails as a pivot. */
MMA_INLINE double mma_reciprocal(const double d) {
  const double seed = mma_reciprocal_seed(d), error = fma(-d, seed, 1.0);
  return fma(seed, fma(error, error, error), seed);
}

MMA_INLINE double mma_inverse_root(const double d) {
  const double seed = mma_inverse_root_seed(d), error = fma(-d * seed, seed, 1.0);
  return fma(seed * error, fma(0.375, error, 0.5), seed);
}
