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
/* Rows and columns of C that a group computes, and its work-items. */
#ifndef INTEGERS_TILE_M
#define INTEGERS_TILE_M 256
#endif
#ifndef INTEGERS_TILE_N
#define INTEGERS_TILE_N 128
#endif
#define INTEGERS_ITEMS (INTEGERS_TILE_M / 64 * (INTEGERS_TILE_N / 64) * 32)
#ifndef INTEGERS_DEPTH
#define INTEGERS_DEPTH 32 /* terms of a stage: packed operands have a multiple of it */
#endif
#define INTEGERS_ROWS 16 /* of C, of a work-item of the plain product */
#define INTEGERS_JOINED 4 /* of C, of a work-item of integers_join */
#define INTEGERS_SPLIT 128 /* work-items of a group of integers_split */

#define INTEGERS_FEWEST 14 /* moduli */
#define INTEGERS_MOST 16
#define INTEGERS_TERMS 65536 /* most terms of a sum of 8-bit products */

/* An operand as the sum sees it: element (row, k) lies row * row_step + k * depth_step from the
 * first. It is packed as residues, a panel after the other, and in a panel chunks of 16 terms: of
 * each row of the panel in turn the 16 residues. `left`: op(A), whose rows are in the order of
 * integers_position(), and whose residues have been multiplied by the inverses below. */
typedef struct {
  scl_long offset, row_step, depth_step;
  scl_long modulus_step; /* bytes from the residues by one modulus to those by the next */
  real limit;            /* logarithm of the most that a row's norm becomes; base 2 */
  int rows, depth;
  int chunks; /* of a packed row */
  int moduli;
  int left;
  int part;  /* terms of a part of the sums of integers_measure */
  int first; /* the row of op(X) that the first one is */
  int unused;
} integers_operand;
SCL_SAME_LAYOUT(integers_operand, 72)

/* C = alpha op(A) op(B) + beta F. */
typedef struct {
  scl_long a_step, b_step, c_step; /* from one modulus to the next, bytes */
  scl_long c_offset, from_offset, mirror_offset;
  real alpha, beta, limit;
  int m, n, chunks, moduli, views, region;
  int first_row, first_column; /* of the whole product, that those of this block are */
  int rows;                    /* leading dimension of the residues of C */
  int c_ld, from_ld;
  int unused;
} integers_product;
SCL_SAME_LAYOUT(integers_product, 120)

/* The moduli, the largest numbers up to 256 of which no two have a common factor. */
#define INTEGERS_MODULI_TABLE                                                                      \
  256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197, 193

/* 2^26 / modulus. */
#define INTEGERS_SHARE_TABLE                                                                       \
  262144, 263172, 265252, 267366, 271696, 278460, 280790, 288021, 293052, 295634, 300937,          \
  309257, 318051, 337230, 340654, 347714

/* For each number of moduli, with their product P: the inverses of P / modulus by the modulus; the
 * P / modulus in four parts of 30 bits, the least first; P likewise. */
#define INTEGERS_INVERSE_TABLE                                                                     \
  {37, -41, -70, 15, -72, -44, 95, -84, -19, -74, -17, -81, -39, -57}, {-31, -118, -62, -70,       \
  120, 1, -99, 80, 65, 63, 95, 80, 48, -71, 91}, {33, -31, -58, -94, -112, 5, -55, -2, 30,         \
  -102, 34, 69, -73, 45, -72, -77}

#define INTEGERS_WEIGHT_TABLE                                                                      \
  {{141463981, 82800644, 1058129837, 4579}, {314659584, 95757609, 1015961091, 4597},               \
  {155873536, 478478081, 315237919, 4634}, {298284800, 858741972, 236470513, 4671},                \
  {385710848, 455323967, 931494125, 4746}, {266108160, 676061766, 50246716, 4865}, {111092480,     \
  865917575, 814416605, 4905}, {888153344, 925082553, 93446931, 5032}, {115943680, 495802453,      \
  1056289122, 5119}, {746073856, 12966316, 100647035, 5165}, {335737600, 133573540, 795810312,     \
  5257}, {43185408, 260969793, 125077623, 5403}, {395542272, 339634268, 815625547, 5556},          \
  {1045293824, 333136288, 902578810, 5891}}, {{1024858657, 205599533, 145664048, 902257},          \
  {784654080, 610638022, 428355680, 905795}, {642315520, 844643297, 898586162, 912955},            \
  {780047104, 594702170, 413792786, 920230}, {823109376, 578250177, 968232628, 935132},            \
  {883699968, 40181774, 234926760, 958414}, {410382080, 934554103, 452539567, 966434},             \
  {1020033280, 778894847, 155434568, 991321}, {292326656, 1036319102, 856785092, 1008636},         \
  {947661568, 406880740, 500113065, 1017523}, {642055936, 544183665, 8325184, 1035775},            \
  {991332608, 945183500, 1017971650, 1064413}, {612416256, 335957780, 690701045, 1094681},         \
  {838194944, 129597663, 640624671, 1160692}, {781298944, 795870241, 298298643, 1172476}},         \
  {{229225185, 1026004389, 195873876, 174135627}, {40640256, 815279571, 1068267725,                \
  174818511}, {486585600, 881141012, 554695753, 176200476}, {225235712, 960885606, 405112828,      \
  177604464}, {1020061440, 1006876436, 37819931, 180480650}, {902885632, 238889772, 243708079,     \
  184973944}, {820588288, 1054057344, 367048854, 186521843}, {371669248, 2850294, 1007842516,      \
  191324980}, {584469760, 293607474, 3282046, 194666902}, {362572544, 144829838, 958799282,        \
  196382028}, {436485888, 874490532, 533018785, 199904576}, {201148672, 958047422, 1047516651,     \
  205431891}, {84736768, 415342210, 161315569, 211273557}, {710350592, 316287157, 160251766,       \
  224013671}, {466840832, 57875821, 663321570, 226287921}, {370811136, 20131316, 782774321,        \
  230977826}}

#define INTEGERS_PRODUCT_TABLE                                                                     \
  {781298944, 795870241, 298298643, 1172476}, {370811136, 20131316, 782774321, 230977826},         \
  {699588864, 664118582, 751588596, 44578720558}

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

#endif

#endif
