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
#define INTEGERS_SAMPLES 64 /* rows that integers_profile looks at */
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
  int first, term; /* row and term of op(X) that the first ones are */
  int triangle;    /* 1: elements of terms after their row are zero; 2: before */
  int unused;
} integers_operand;
SCL_SAME_LAYOUT(integers_operand, 80)

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

/* The moduli: large numbers up to 253 of which no two have a common factor, and 256. 255 would need
 * more care in single precision (integers_residue_of()). */
#define INTEGERS_MODULI_TABLE                                                                      \
  256, 253, 251, 249, 247, 245, 241, 239, 233, 229, 227, 223, 211, 199, 197, 193

/* 2^26 / modulus. */
#define INTEGERS_SHARE_TABLE                                                                       \
  262144, 265252, 267366, 269514, 271696, 273914, 278460, 280790, 288021, 293052, 295634,          \
  300937, 318051, 337230, 340654, 347714

/* For each number of moduli, with their product P: the inverses of P / modulus by the modulus; the
 * P / modulus in four parts of 30 bits, the least first; P likewise. */
#define INTEGERS_INVERSE_TABLE                                                                     \
  {-81, 31, 81, -91, -121, 32, -20, 80, -79, -33, -5, 79, 26, 74}, {-29, 13, 124, 64, 37, 81,      \
  110, 55, -69, -92, 38, 57, -32, -37, -48}, {-93, 4, -106, 70, -51, 22, 68, 4, -74, 28, 79,       \
  65, -92, -27, 12, 72}

#define INTEGERS_WEIGHT_TABLE                                                                      \
  {{649024847, 213532606, 302669643, 5049}, {402078464, 975747564, 166205329, 5109},               \
  {555007232, 508680443, 928988020, 5149}, {736265984, 1008671088, 246495185, 5191},               \
  {1016097024, 538653847, 283268161, 5233}, {29537024, 65345476, 1056921620, 5275}, {12205824,     \
  1002055704, 593284978, 5363}, {254910720, 1023919038, 467963041, 5408}, {1040283392,             \
  981161041, 761121966, 5547}, {486417152, 660703543, 657195950, 5644}, {547464448, 311764205,     \
  369717531, 5694}, {956928256, 668850348, 520798808, 5796}, {690754816, 1073284545,               \
  153489440, 6126}, {9386240, 927573407, 599795777, 6495}}, {{82617803, 189992365, 570119390,      \
  994708}, {826304256, 22483685, 530195272, 1006503}, {888500480, 352057740, 474529953,            \
  1014523}, {89252608, 65967031, 241169550, 1022672}, {455134464, 888109293, 1042994791,           \
  1030952}, {450084608, 1061898713, 981387119, 1039368}, {257063680, 910219898, 913023857,         \
  1056619}, {825287936, 922329444, 920664224, 1065461}, {924881664, 15196947, 690913946,           \
  1092898}, {261156608, 235837356, 618583391, 1111988}, {476313856, 214264517, 893651456,          \
  1121785}, {610047232, 767016203, 591892018, 1141907}, {787228928, 983657987, 172648804,          \
  1206850}, {775347456, 195851100, 48167599, 1279625}, {794119936, 977256090, 174017330,           \
  1292616}}, {{912850443, 161304443, 511376256, 191978746}, {562931456, 44384057, 322214220,       \
  194255174}, {755642624, 301409067, 316225952, 195803024}, {45884160, 920476935, 374824729,       \
  197375739}, {867863808, 680143614, 508273734, 198973923}, {966983424, 935505129, 429153133,      \
  200598200}, {221166336, 652523048, 119945428, 203927631}, {366781696, 842181880, 520794437,      \
  205634138}, {261018368, 785527289, 202405404, 210929438}, {1011101440, 419453146, 201252041,     \
  214613795}, {660519168, 550862554, 676039206, 216504665}, {701256960, 931497400, 418526267,      \
  220388157}, {537585920, 867430608, 35222804, 232922081}, {391945472, 218298599, 706412050,       \
  246967633}, {793808640, 705606312, 299348321, 249474919}, {749062912, 319663379, 995417645,      \
  254645383}}

#define INTEGERS_PRODUCT_TABLE                                                                     \
  {794119936, 977256090, 174017330, 1292616}, {749062912, 319663379, 995417645, 254645383},        \
  {687737600, 491748313, 989560870, 49146559097}

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
