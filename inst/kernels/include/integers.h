/* Products in double precision by 8-bit integers (integers.cl, integers_mma.cl): what the kernels
 * and their driver (engine/cl/linalg/integers.c) share.
 *
 * Rows of op(A) and columns of op(B) are scaled by powers of two and rounded to whole numbers, so
 * that an element of their product is less than half the product of some moduli, which have no
 * factor in common: its residues by these, each computed by 8-bit numbers, are then the element
 * itself. */
#ifndef SCL_KERNEL_INTEGERS_H
#define SCL_KERNEL_INTEGERS_H

#define INTEGERS_CHUNK 16 /* terms of a sum that lie together */
#define INTEGERS_PANEL 128 /* rows of a packed panel */
#define INTEGERS_BLOCK 64 /* of these, that integers_mma.cl takes in another order */
#define INTEGERS_TILE_M 256 /* rows of C that a group computes */
#define INTEGERS_TILE_N 128 /* columns */
#define INTEGERS_ITEMS (INTEGERS_TILE_M / 64 * (INTEGERS_TILE_N / 64) * 32)
#define INTEGERS_DEPTH 32 /* terms of a stage: packed operands have a multiple of it */
#define INTEGERS_RING_MOST 16 /* stages in local memory (integers_mma.cl) */
#define INTEGERS_RING_EMULATED 6
#define INTEGERS_PACKED (INTEGERS_PANEL * INTEGERS_DEPTH) /* bytes of a stage of a panel */
#define INTEGERS_ROWS 16 /* of C, of a work-item of the plain product */
#define INTEGERS_JOINED 4 /* of C, of a work-item that joins residues */
#define INTEGERS_JOINERS 64 /* work-items of its group */
#define INTEGERS_SAMPLES 64 /* rows that integers_profile looks at */
#define INTEGERS_MEASURERS 64 /* work-items of a group of integers_measure */
#define INTEGERS_GROUPS (INTEGERS_MOST / 4) /* of moduli, four at a time */

#define INTEGERS_FEWEST 14 /* moduli */
#define INTEGERS_MOST 16

/* An operand as the sum sees it: element (row, k) lies row * row_step + k * depth_step from the
 * first. It is packed as residues, by one modulus after the other, of each one panel after the
 * other, in stages: INTEGERS_DEPTH terms of a panel, as chunks of 16 terms, of each row of the
 * panel in turn the 16 residues. `left`: op(A), whose rows are in the order of
 * integers_position(), and whose residues have been multiplied by the inverses below. */
typedef struct {
  scl_long offset, row_step, depth_step;
  scl_long modulus_step; /* bytes from the residues by one modulus to those by the next */
  real limit; /* logarithm of the most that a row's norm becomes; base 2 */
  int rows, depth;
  int stages; /* of a packed row */
  int moduli;
  int left;
  int part;        /* terms of a part of the sums of integers_measure */
  int lanes;       /* work-items of integers_measure that share a part */
  int first, term; /* row and term of op(X) that the first ones are */
  int triangle;    /* 1: elements of terms after their row are zero; 2: before */
} integers_operand;
SCL_SAME_LAYOUT(integers_operand, 80)

/* C = alpha op(A) op(B) + beta F. */
typedef struct {
  scl_long a_step, b_step, c_step; /* from one modulus to the next, bytes */
  scl_long c_offset, from_offset, mirror_offset;
  real alpha, beta, limit;
  int m, n, stages, moduli, views, region;
  int first_row, first_column; /* of the whole product, that those of this block are */
  int rows;                    /* leading dimension of the residues of C */
  int c_ld, from_ld;
  int unused;
} integers_product;
SCL_SAME_LAYOUT(integers_product, 120)

/* The moduli: large numbers up to 253 of which no two have a common factor, and 256. 255 would need
 * more care in single precision (integers_residue_of()). */
#define INTEGERS_MODULI_TABLE                                                                      \
  256, 253, 251, 249, 247, 245, 241, 239, 233, 229, 227, 223, 211, 199, 197, 193

/* For each number of moduli, with their product P: the inverses of P / modulus by the modulus; the
 * P / modulus as 16 digits of base 256 from -128 on, the least first, and of each those of four
 * moduli in a word; P as four digits of base 2^32. */
#define INTEGERS_INVERSE_TABLE                                                                     \
  {-81, 31, 81, -91, -121, 32, -20, 80, -79, -33, -5, 79, 26, 74}, {-29, 13, 124, 64, 37, 81,      \
  110, 55, -69, -92, 38, 57, -32, -37, -48}, {-93, 4, -106, 70, -51, 22, 68, 4, -74, 28, 79,       \
  65, -92, -27, 12, 72}

#define INTEGERS_WEIGHT_TABLE                                                                      \
  {{0x0000004f, 0x00000000, 0x00000000, 0x00000000},                                               \
   {0x87bd3b55, 0xa13fb369, 0x91a52377, 0x00003915},                                               \
   {0xe315f7af, 0x32bac390, 0x0aa2fe01, 0x00008f2c},                                               \
   {0x2ce118a7, 0x8f0102fd, 0x3961dd7e, 0x0000c169},                                               \
   {0x5c3f7bf0, 0xf006f126, 0x2b3b4e14, 0x00006870},                                               \
   {0xc6762e90, 0xf18a46cd, 0x764962d5, 0x00006941},                                               \
   {0x08948a2f, 0x42eff907, 0xf7a5d89f, 0x0000d2fe},                                               \
   {0x1f481fb3, 0x1f2f4118, 0x8ab5eaef, 0x00001e10},                                               \
   {0x7db779f5, 0xcaf78144, 0x26123bcb, 0x00008402},                                               \
   {0x13f481a6, 0x49cdf625, 0xac97c0dd, 0x00000361},                                               \
   {0xeb769f21, 0xbe36f00e, 0xf16173d6, 0x00003c92},                                               \
   {0x1d77d5e5, 0x82ce70c5, 0x92f932af, 0x00007eb9},                                               \
   {0x5150504f, 0x55545252, 0x5b595857, 0x00006560},                                               \
   {0},                                                                                            \
   {0},                                                                                            \
   {0}},                                                                                           \
  {{0x000000cb, 0x00000000, 0x00000000, 0x00000000},                                               \
   {0xe37167a6, 0xe57bbfcd, 0x95f9ef93, 0x004fdd29},                                               \
   {0x52f540ed, 0x3152d421, 0x5d649121, 0x005537ec},                                               \
   {0xc5357145, 0x318f5b5b, 0xe45c10f7, 0x00af2eef},                                               \
   {0xee63b96b, 0x599f763b, 0x43b1ebc5, 0x00a7d781},                                               \
   {0xa5fec5c3, 0x6837d2de, 0xef5ba6f9, 0x00f01d5c},                                               \
   {0xfc3f56d5, 0xbe90d33c, 0x6e31843a, 0x0090eba8},                                               \
   {0xe11580e3, 0x0e1e007d, 0x2b03f4a0, 0x002ff34f},                                               \
   {0x490a354e, 0x8a377766, 0xe3a0562a, 0x00b3ab96},                                               \
   {0xff8ca2b5, 0x04baecad, 0x7941ede8, 0x00f5f0a7},                                               \
   {0xe6c5fa20, 0x6e67a8e3, 0x34544e93, 0x00a62ea5},                                               \
   {0x41ee9e52, 0xd7af24a4, 0x4ee7d28b, 0x00212409},                                               \
   {0x6bec6fb6, 0x087e70ed, 0xb278dfb5, 0x00e51aa9},                                               \
   {0x3e3e3d3d, 0x41403f3f, 0x46444443, 0x004f4e4a},                                               \
   {0},                                                                                            \
   {0}},                                                                                           \
  {{0x0000000b, 0x00000000, 0x00000000, 0x00000000},                                               \
   {0x2331a7fe, 0xa5bbff8d, 0x55b92fd3, 0xcb8f9de9},                                               \
   {0xbc0a8e69, 0xdd2fa3bb, 0xcc5f448f, 0xa6515d0b},                                               \
   {0xc3ed62f6, 0x160d7ab4, 0x2aa7bc50, 0xed2fd720},                                               \
   {0x42cbcedf, 0x3e8a3ac0, 0x6eb7377e, 0x45aa3a34},                                               \
   {0x57c95054, 0xab2eab8b, 0x6160168c, 0x6badbefc},                                               \
   {0xb77ea967, 0x8db9f123, 0xe13540b5, 0xc38441ed},                                               \
   {0x9e04c102, 0x5d4ade6a, 0xbe6896cc, 0xd51b234d},                                               \
   {0xf29a95b8, 0x148db744, 0x44a2cd62, 0xe316e151},                                               \
   {0x76944ab0, 0xab6446ba, 0x23b9ee07, 0x4e7bb097},                                               \
   {0x652e33e8, 0xf17299e5, 0x8f85c0c1, 0xb51da222},                                               \
   {0xed4119ea, 0x6a3ce28e, 0xf6678d79, 0x209d4784},                                               \
   {0xdcde6574, 0xe9c18b68, 0x6d65fd1c, 0x52beb570},                                               \
   {0x0faf50c5, 0x079fd470, 0x8b9e2b4a, 0xb67be288},                                               \
   {0x2f2f2e2e, 0x3131302f, 0x35343332, 0x3d3b3b38},                                               \
   {0}}

#define INTEGERS_PRODUCT_TABLE                                                                     \
  {-1353363712, 781184935, 547746995, 20197}, {-324678912, -725390523, 531975651, 3978834},        \
  {1761479424, 1733549814, -407914494, 767914986}

/* 2^80 / P. */
#define INTEGERS_QUOTIENT_TABLE 0x1.9f5632p-31f, 0x1.0ddd0ap-38f, 0x1.65f41cp-46f

/* Where a row of op(A) stands in its panel: rows 16 t to 16 t + 15 of a block are those that lane t
 * of four holds of the results of the instruction, two of each eight. */
SCL_INLINE int integers_position(const int row) {
  return (row & ~(INTEGERS_BLOCK - 1)) | (row & 14) << 2 | (row & 48) >> 3 | (row & 1);
}

#ifdef __OPENCL_VERSION__

__constant int integers_modulus[] = {INTEGERS_MODULI_TABLE};

/* The residue of least magnitude of a number up to 2^30; reciprocal: 2^38 / modulus, rounded. */
SCL_INLINE int integers_residue(const int x, const int modulus, const int reciprocal) {
  return x - ((mul_hi(x, reciprocal) + 32) >> 6) * modulus;
}

SCL_INLINE int integers_reciprocal(const int modulus) {
  return (int)(((1L << 38) + modulus / 2) / modulus);
}

/* The terms of a row that count: from begin, if that is more, to end, if that is less. */
SCL_INLINE int integers_begin(const integers_operand *operand, const int row, const int begin) {
  const int diagonal = operand->first + row - operand->term;
  return operand->triangle == 2 ? max(begin, diagonal) : begin;
}

SCL_INLINE int integers_end(const integers_operand *operand, const int row, const int end) {
  const int diagonal = operand->first + row - operand->term;
  return operand->triangle == 1 ? min(end, diagonal + 1) : end;
}

#endif

#endif
