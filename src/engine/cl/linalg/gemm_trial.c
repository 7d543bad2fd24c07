/* Trials of the product by matrix instructions: one for each tile and each form. Whole numbers, for
 * which every order of summation is exact. */
#include <stdlib.h>

#include "engine/cl/linalg/linalg.h"
#include "engine/cl/runtime/trial.h"

/* More stages than the ring of any tile holds, and a part of one. */
enum { DEPTH = 83 };

/* C = alpha op(A) op(B) + beta F, and further results. A and B are parts of one square X of order
 * `order`, F of its transpose. */
typedef struct {
  size_t m, n, order;
  bool trans_a, trans_b;
  double alpha, beta;
  scl_region region;
  bool transposed; /* C' is written too */
} trial_case;

/* The squares of one trial. */
typedef struct {
  scl_block x, f, c, transposed;
  double *host; /* x, f, c and `transposed` again */
} trial_blocks;

static double expected(const trial_case *t, const double *x, size_t i, size_t j) {
  const size_t step_a = t->trans_a ? 1 : t->order, step_b = t->trans_b ? t->order : 1;
  const double *a = x + (t->trans_a ? i * t->order : i), *b = x + (t->trans_b ? j : j * t->order);
  double sum = 0.0;
  for (size_t k = 0; k < DEPTH; k++) sum += a[k * step_a] * b[k * step_b];
  return t->alpha * sum + t->beta * x[j + i * t->order];
}

static bool is_right(const trial_case *t, const double *x, const double *c,
                     const double *transposed) {
  for (size_t j = 0; j < t->n; j++) {
    for (size_t i = 0; i < t->m; i++) {
      const bool swap = t->region == SCL_MIRRORED && i < j;
      const double value = swap ? expected(t, x, j, i) : expected(t, x, i, j);
      if (!(c[i + j * t->order] == value)) return false;
      if (t->transposed && !(transposed[j + i * t->order] == value)) return false;
    }
  }
  return true;
}

static scl_cl_product product_of(const trial_case *t, const trial_blocks *b) {
  scl_cl_product p = {
      .alpha = t->alpha,
      .beta = t->beta,
      .trans_a = t->trans_a ? SCL_TRANS : SCL_NO_TRANS,
      .trans_b = t->trans_b ? SCL_TRANS : SCL_NO_TRANS,
      .region = t->region,
      .a = scl_block_part(b->x, 0, 0, t->trans_a ? DEPTH : t->m, t->trans_a ? t->m : DEPTH),
      .b = scl_block_part(b->x, 0, 0, t->trans_b ? t->n : DEPTH, t->trans_b ? DEPTH : t->n),
      .c = scl_block_part(b->c, 0, 0, t->m, t->n),
      .batch = 1};
  if (t->beta != 0.0) p.from = scl_block_part(b->f, 0, 0, t->m, t->n);
  if (t->transposed) p.transposed = scl_block_part(b->transposed, 0, 0, t->n, t->m);
  return p;
}

static void begin_operation(scl_cl_op *op, scl_cl_context *cl, const trial_blocks *b) {
  scl_cl_op_begin(op, &cl->base);
  scl_cl_op_reads(op, b->x.buffer);
  scl_cl_op_reads(op, b->f.buffer);
  scl_cl_op_writes(op, b->c.buffer);
  scl_cl_op_writes(op, b->transposed.buffer);
}

static scl_status compare_blocks(scl_cl_context *cl, const trial_case *t, const trial_blocks *b,
                                 bool *right) {
  const size_t square = t->order * t->order;
  double *c = b->host + 2 * square, *transposed = c + square;
  SCL_TRY(scl_cl_trial_download(cl, b->c, c, t->order));
  if (t->transposed) SCL_TRY(scl_cl_trial_download(cl, b->transposed, transposed, t->order));
  *right = is_right(t, b->host, c, transposed);
  return SCL_OK;
}

static scl_status try_case(scl_cl_context *cl, const trial_case *t, scl_cl_tile tile,
                           const trial_blocks *b, bool *right) {
  scl_cl_op op;
  const scl_cl_product p = product_of(t, b);
  begin_operation(&op, cl, b);
  SCL_TRY(scl_cl_op_order(&op, -1));
  SCL_TRY(scl_cl_op_end(&op, scl_cl_product_tiled_in(&op, &p, tile)));
  return compare_blocks(cl, t, b, right);
}

/* The blocks of squares of this order. */
static scl_status create_blocks(scl_cl_context *cl, size_t order, trial_blocks *b) {
  const size_t numbers = 4 * order * order;
  double *x = b->host = malloc(numbers * sizeof *b->host), *f = x + order * order;
  if (x == NULL) return scl_fail_memory(numbers * sizeof *x, 0, "the trial of a kernel");
  for (size_t j = 0; j < order; j++) {
    for (size_t i = 0; i < order; i++) {
      x[i + j * order] = scl_cl_trial_number(i, j);
      f[i + j * order] = scl_cl_trial_number(j, i);
    }
  }
  SCL_TRY(scl_cl_trial_upload(cl, x, order, order, &b->x));
  SCL_TRY(scl_cl_trial_upload(cl, f, order, order, &b->f));
  SCL_TRY(scl_block_create(&cl->base, order, order, &b->c));
  return scl_block_create(&cl->base, order, order, &b->transposed);
}

static void release_blocks(trial_blocks *b) {
  scl_buffer_release(b->x.buffer);
  scl_buffer_release(b->f.buffer);
  scl_buffer_release(b->c.buffer);
  scl_buffer_release(b->transposed.buffer);
  free(b->host);
}

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

scl_status scl_cl_trial_gemm(scl_cl_context *cl, scl_cl_program which, bool *right) {
  scl_cl_product_form form = scl_cl_product_form_of(which);
  trial_case plain = {.m = form.m + 11, .n = form.n + 5, .alpha = 1.0};
  plain.trans_a = form.trans_a == SCL_TRANS;
  plain.trans_b = form.trans_b == SCL_TRANS;
  plain.order = scl_round_up(larger(larger(plain.m, plain.n), DEPTH), 16);
  trial_case full = plain, half = plain;
  full.alpha = -2.0;
  full.beta = 3.0;
  full.transposed = true;
  half.n = half.m;
  half.region = SCL_MIRRORED;
  trial_blocks blocks = {0};
  scl_status status;
  SCL_GO(create_blocks(cl, plain.order, &blocks));
  SCL_GO(try_case(cl, &plain, form.tile, &blocks, right));
  if (*right) SCL_GO(try_case(cl, &full, form.tile, &blocks, right));
  if (*right) SCL_GO(try_case(cl, &half, form.tile, &blocks, right));
done:
  release_blocks(&blocks);
  return status;
}

/* A' B to C and A B to `transposed`, each with two tiles and part of a third. */
scl_status scl_cl_trial_gemm_pair(scl_cl_context *cl, scl_cl_program which, bool *right) {
  const trial_case first = {.m = 75, .n = 37, .order = 96, .trans_a = true, .alpha = 1.0};
  const trial_case second = {.m = 37, .n = 75, .order = 96, .alpha = -1.0};
  trial_blocks blocks = {0};
  scl_cl_op op;
  scl_status status;
  (void)which;
  SCL_GO(create_blocks(cl, first.order, &blocks));
  scl_cl_product p = product_of(&first, &blocks), q = product_of(&second, &blocks);
  q.c = scl_block_part(blocks.transposed, 0, 0, second.m, second.n);
  begin_operation(&op, cl, &blocks);
  SCL_GO(scl_cl_op_order(&op, -1));
  SCL_GO(scl_cl_op_end(&op, scl_cl_product_pair_in(&op, &p, &q)));
  SCL_GO(compare_blocks(cl, &first, &blocks, right));
  trial_blocks other = blocks;
  other.c = blocks.transposed;
  if (*right) SCL_GO(compare_blocks(cl, &second, &other, right));
done:
  release_blocks(&blocks);
  return status;
}
