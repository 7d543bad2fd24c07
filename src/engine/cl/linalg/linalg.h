/* Functions that the linear algebra of the device engine shares, and copies
 * (engine/cl/elementwise/copy.c). Each belongs to an operation whose buffers have been declared. */
#ifndef SCL_ENGINE_CL_LINALG_LINALG_H
#define SCL_ENGINE_CL_LINALG_LINALG_H

#include "engine/cl/runtime/cl.h"
#include "engine/cl/runtime/launch.h"

#include "kernels/include/triangular.h"

/* A batch of products C = alpha op(A) op(B) + beta C of one shape, by tiles, in one launch. The
 * blocks are those of the first product; the others follow `step_*` elements apart. In the last one
 * C is m_last x n_last with a sum over k_last; 0 stands for "as the others". A single product may
 * read the C that beta multiplies from `from`, which for a region other than SCL_ALL has at least
 * as many rows as columns, and may also write C' to `transposed`; without these buffers it reads C
 * and writes nothing else.
 */
typedef struct {
  double alpha, beta;
  scl_trans trans_a, trans_b;
  scl_view view_a, view_b;
  scl_region region;
  scl_block a, b, c, from, transposed;
  size_t batch, step_a, step_b, step_c;
  size_t m_last, n_last, k_last;
} scl_cl_product;

scl_status scl_cl_product_in(scl_cl_op *op, const scl_cl_product *product);

/* Kinds of tiles. The matrix-instruction kernels need scl_cl_aligned() operands; those for CPUs run
 * groups of one work-item with GEMM_CPU_BYTES of local memory. */
typedef enum {
  SCL_CL_TILE_PORTABLE = 0,
  SCL_CL_TILE_PORTABLE_LARGE,
  SCL_CL_TILE_CPU,
  SCL_CL_TILE_MMA_TINY,
  SCL_CL_TILE_MMA_SMALL,
  SCL_CL_TILE_MMA_LARGE, /* only A B and A B' */
  SCL_CL_TILE_MMA_HUGE,  /* only A B' */
  SCL_CL_TILES
} scl_cl_tile;

scl_status scl_cl_product_tiled_in(scl_cl_op *op, const scl_cl_product *product, scl_cl_tile tile);

/* The product that a program of matrix instructions computes (engine/cl/linalg/gemm.c). */
typedef struct {
  scl_cl_tile tile;
  size_t m, n; /* of the tile */
  scl_trans trans_a, trans_b;
} scl_cl_product_form;

scl_cl_product_form scl_cl_product_form_of(scl_cl_program which);
/* The program of a tile of matrix instructions. */
scl_cl_program scl_cl_product_program(scl_cl_tile tile, scl_trans trans_a, scl_trans trans_b);

/* The program that a product without a batch would take, by its shapes. Nothing is built. */
scl_cl_program scl_cl_product_choice(scl_cl_context *cl, const scl_cl_product *product);

/* Two batches that do not need each other's results, A' B and A B, for aligned operands: in one
 * launch by small tiles where matrix instructions can be used. */
scl_status scl_cl_product_pair_in(scl_cl_op *op, const scl_cl_product *first,
                                  const scl_cl_product *second);

/* The flag of the only nonzero triangle of op(A), `lower` or `upper`; 0: neither. */
int scl_cl_view_flag(scl_view view, scl_trans trans, int lower, int upper);

/* A product with few columns, Y = op(A) X (engine/cl/linalg/gemm_thin.c). Element (i, c) of X is
 * step_x i + next_x c elements from its start; Y likewise. */
typedef struct {
  scl_trans trans;
  scl_view view;
  size_t m, n, k;
  scl_block a, x, y;
  size_t step_x, next_x, step_y, next_y;
} scl_cl_thin_product;

/* C = op(A) op(B) if C has few columns (`columns`), otherwise its transpose, op(B)' op(A)'. */
scl_cl_thin_product scl_cl_thin_view(const scl_cl_product *p, size_t k, bool columns);
/* Groups of work-items that it takes, for one part of the sum. */
size_t scl_cl_thin_groups(const scl_cl_thin_product *t);
/* Y = alpha op(A) X + beta Y, or each part of the sum, of k_part terms, to its own Y, y_part
 * elements further on. */
scl_status scl_cl_thin_in(scl_cl_op *op, const scl_cl_thin_product *t, double alpha, double beta,
                          size_t parts, size_t k_part, size_t y_part);

/* c = alpha X' W X, both halves, in one pass over a tall X (engine/cl/linalg/gram.c), if *done. W
 * is diagonal, given as a column; without a buffer it is the identity. */
scl_status scl_cl_gram_in(scl_cl_op *op, double alpha, scl_block x, scl_block w, scl_block c,
                          bool *done);
/* The same by the layout for the columns of x, at most GRAM_MOST, without its trial; and how many
 * columns the layout of a program holds. */
scl_status scl_cl_gram_launch(scl_cl_op *op, double alpha, scl_block x, scl_block w, scl_block c);
size_t scl_cl_gram_columns(scl_cl_program which);

/* A product by 8-bit integers (engine/cl/linalg/integers.c), where that is wanted or expected to be
 * faster; `by_tiles`: the microseconds by tiles of matrix instructions, or 0. If not *done, nothing
 * has been written: an element of an operand is not finite, the errors of a row or a column would
 * on average be more than 4 times the native product's, or there is no memory. */
scl_status scl_cl_integers_in(scl_cl_op *op, const scl_cl_product *product, double by_tiles,
                              bool *done);
/* The same with this number of moduli and by one of the programs, up to a step: for tests and for
 * the time that each step takes. */
typedef enum {
  SCL_CL_INTEGERS_MEASURE = 0,
  SCL_CL_INTEGERS_SPLIT,
  SCL_CL_INTEGERS_MULTIPLY,
  SCL_CL_INTEGERS_JOIN
} scl_cl_integers_step;
typedef enum {
  SCL_CL_INTEGERS_PLAIN = 0,
  SCL_CL_INTEGERS_DOT,   /* products of four bytes */
  SCL_CL_INTEGERS_MMA,   /* matrix instructions */
  SCL_CL_INTEGERS_WGMMA, /* those of four warps */
  SCL_CL_INTEGERS_KINDS
} scl_cl_integers_kind; /* the fastest last */
typedef struct {
  int moduli; /* 0: as many as the operands need */
  scl_cl_integers_kind kind;
  scl_cl_integers_step last;
} scl_cl_integers_form;
/* The program of a kind. */
scl_cl_program scl_cl_integers_program(scl_cl_integers_kind kind);
scl_status scl_cl_integers_steps_in(scl_cl_op *op, const scl_cl_product *product,
                                    scl_cl_integers_form form, bool *done);

/* Whether pairs of neighbours in a column lie on 16-byte boundaries. */
static inline bool scl_cl_aligned(scl_block b) {
  return b.offset % 2 == 0 && b.ld % 2 == 0;
}

/* ---- substitution by matrix instructions, blocks of PANEL_ORDER ------------------------------ */
/* engine/cl/linalg/triangular_mma.c */
/* A temporary for `count` packed blocks. */
scl_status scl_cl_packed_create(scl_cl_op *op, size_t blocks, scl_block *out);

/* Packs all diagonal blocks of a triangular t, for triangular_mma.cl. */
scl_status scl_cl_pack_in(scl_cl_op *op, bool transposed, bool reversed, scl_block t,
                          scl_block packed);

/* The same, and copies the lower triangles of the diagonal blocks of order `block` of `src` to
 * those of `copy`, with zeros above: both have the order of t. */
scl_status scl_cl_pack_and_copy_in(scl_cl_op *op, bool transposed, bool reversed, scl_block t,
                                   scl_block packed, size_t block, scl_block src, scl_block copy);

/* A batch of solves with packed blocks first, first + 1, ...: unknowns down the columns of b, or
 * along its rows if `right`. In the last the orders are n_last and rhs_last. */
typedef struct {
  bool right, reversed;
  bool identity; /* solves with the identity, whatever b contains */
  size_t n, n_last, rhs, rhs_last, batch, step_b, first;
  scl_block b, packed;
} scl_cl_packed_solve;

scl_status scl_cl_packed_solve_in(scl_cl_op *op, const scl_cl_packed_solve *solve);

/* scl_cl_trsm inside an operation. */
scl_status scl_cl_trsm_in(scl_cl_op *op, scl_side side, scl_view view, scl_trans trans, scl_block t,
                          scl_block b);

/* dst = inverse of a triangular t, by substitution, from the identity in dst. */
scl_status scl_cl_packed_invert_in(scl_cl_op *op, bool lower, scl_block t, scl_block dst);

/* Whether matrix instructions can solve with a T of order n and these right-hand sides; `right`:
 * B T^-1. Rows of B are read in pairs, columns one by one. */
scl_status scl_cl_use_packed(scl_cl_op *op, size_t n, bool right, scl_block b, bool *out);

/* ---- substitution by the portable kernels ---------------------------------------------------- */
/* engine/cl/linalg/triangular.c */
/* A batch of solves with triangular blocks t of order n, step_t and step_b elements apart: unknowns
 * down the columns of b, or along its rows if `right`. In the last the orders are n_last and
 * rhs_last. */
typedef struct {
  bool right, transposed, reversed; /* reversed: the last unknown comes first */
  size_t n, n_last, rhs, rhs_last, batch, step_t, step_b;
  scl_block t, b;
} scl_cl_substitution;

scl_status scl_cl_substitute_in(scl_cl_op *op, const scl_cl_substitution *substitution);

/* ---- inverses -------------------------------------------------------------------------------- */
/* engine/cl/linalg/triangular_inverse.c */
/* The inverses of the diagonal blocks of order `block`, PANEL_ORDER times a power of two, of a
 * lower t, by products: the residual grows with the condition of the blocks. In dst they lie as
 * they do on the diagonal of a matrix; above the diagonal only blocks of order PANEL_ORDER are
 * written. Needs matrix instructions. The same launches copy the lower triangles of the diagonal
 * blocks of `src`, a matrix of the same order, to those of `copy`, with zeros above, and then
 * compute `also`, a product with a transposed A. */
scl_status scl_cl_quick_inverses_in(scl_cl_op *op, size_t block, scl_block t, scl_block dst,
                                    scl_block src, scl_block copy, const scl_cl_product *also);

/* A solve as scl_cl_trsm_in for few right-hand sides (engine/cl/linalg/triangular_vector.c): M x =
 * b, with M = T or T', for the `rhs` right-hand sides of b, whose unknowns lie `step` apart, one
 * side `next` after another. */
typedef struct {
  bool lower, transposed; /* T; M = T' */
  size_t rhs, step, next;
  scl_block t, b;
} scl_cl_vectors;

bool scl_cl_trsv_pays(const scl_cl_op *op, size_t n, size_t rhs);
scl_status scl_cl_trsv_in(scl_cl_op *op, const scl_cl_vectors *v);

/* Programs of the factor of a matrix of order n and, with `inverse`, of the inverse of that factor
 * and the inverse's product with its transpose, for scl_cl_programs_prepare(): at most
 * SCL_CL_FACTOR_PROGRAMS of them at `list`. Returns their number. */
enum { SCL_CL_FACTOR_PROGRAMS = 9 };
int scl_cl_factor_programs(scl_cl_context *cl, size_t n, bool inverse, scl_cl_program *list);

/* scl_cl_identity inside an operation. */
scl_status scl_cl_identity_in(scl_cl_op *op, double value, size_t batch, scl_block dst);

/* scl_cl_copy inside an operation. */
scl_status scl_cl_copy_in(scl_cl_op *op, scl_copy kind, scl_block src, scl_block dst);

/* scl_cl_trtri inside an operation. The residual X T - I is small row by row. */
scl_status scl_cl_trtri_in(scl_cl_op *op, scl_view view, scl_block t, scl_block dst);

/* dst = one triangle of src, zeros in the other, for a batch of square blocks, the last of order
 * `last`. */
scl_status scl_cl_triangles_in(scl_cl_op *op, bool lower, scl_block src, scl_block dst,
                               size_t batch, size_t step_src, size_t step_dst, size_t last);
/* dst = lower triangle of src, zeros above it. Square blocks. */
scl_status scl_cl_lower_in(scl_cl_op *op, scl_block src, scl_block dst);

#endif
