/* Products in double precision by 8-bit integers (inst/kernels/portable/integers.cl): Ozaki's
 * scheme II, with Chinese remainders. Four programs have the steps: in plain arithmetic, with
 * OpenCL's function for products of four bytes, and with NVIDIA's matrix instructions, of a warp
 * and of four.
 *
 * A row of op(A) and a column of op(B) are multiplied by powers of two, so that their norms become
 * at most 2^limit, and rounded. By Cauchy and Schwarz an element of their product is then at most
 * 4^limit, less than half the product of the moduli. The error of an element is about 2^-limit
 * times both norms, always: that of the native product, or less, unless what is large in a row
 * meets what is small in a column. Whether it does is looked at on average only (moduli_for()). */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/threads.h"
#include "engine/cl/linalg/linalg.h"
#include "engine/cl/runtime/tune.h"

#include "kernels/include/gemm.h"
#include "kernels/include/integers.h"

/* Most rows, columns and terms of a block, whose workspaces an H200 keeps in its pool of buffers
 * (engine/cl/runtime/memory.c): a first use of new memory takes longer than to write it. Terms of a
 * part of a norm; parts of a device's memory that workspaces may take one of. */
enum { MOST_ROWS = 16384, MOST_COLUMNS = 8192, MOST_TERMS = 8192, PART = 512, SHARE = 4 };
enum { LANES = 16 }; /* that share the terms of a row, where these are neighbours in memory */

typedef struct {
  scl_cl_op *op;
  const scl_cl_product *p;
  scl_cl_integers_form form;
  size_t m, n, k;
  size_t rows, columns, terms; /* of a block, padded */
  scl_block norms[2];          /* of the rows of op(A), of the columns of op(B) */
  scl_block a, b, c;           /* residues of a block */
} work;

/* The logarithm of the greatest norm: half that of P / 2, less what rounding, sums of norms in
 * single precision and the quotient by P take. */
static double limit_of(int moduli) {
  static const int modulus[] = {INTEGERS_MODULI_TABLE};
  double bits = 0.0;
  for (int i = 0; i < moduli; i++) bits += log2((double)modulus[i]);
  return 0.5 * (bits - 1.0) - 0.01;
}

/* Of a single product, which is the last one of its batch. */
static size_t terms_of(const scl_cl_product *p) {
  if (p->k_last > 0) return p->k_last;
  return p->trans_a == SCL_TRANS ? p->a.nrow : p->a.ncol;
}

static size_t stages_of(size_t terms) {
  return scl_ceil_div(terms, INTEGERS_DEPTH);
}

/* Rows of op(A), or columns of op(B), as the sum sees them, from (row, term) on. */
static integers_operand operand_of(const work *w, bool left, size_t row, size_t rows, size_t term,
                                   size_t terms) {
  const scl_block x = left ? w->p->a : w->p->b;
  const bool down = left ? w->p->trans_a == SCL_TRANS : w->p->trans_b == SCL_NO_TRANS;
  const size_t row_step = down ? x.ld : 1, depth_step = down ? 1 : x.ld;
  const int triangle = left ? scl_cl_view_flag(w->p->view_a, w->p->trans_a, 1, 2)
                            : scl_cl_view_flag(w->p->view_b, w->p->trans_b, 2, 1);
  return (integers_operand){.offset = (scl_long)(x.offset + row * row_step + term * depth_step),
                            .row_step = (scl_long)row_step,
                            .depth_step = (scl_long)depth_step,
                            .modulus_step = (scl_long)((left ? w->rows : w->columns) * w->terms),
                            .rows = (int)rows,
                            .depth = (int)terms,
                            .stages = (int)stages_of(terms),
                            .moduli = w->form.moduli,
                            .left = left,
                            .part = PART,
                            .lanes = down ? LANES : 1,
                            .first = (int)row,
                            .term = (int)term,
                            .triangle = triangle,
                            .limit = limit_of(w->form.moduli)};
}

static scl_arg_in_buffer source_of(const work *w, bool left) {
  return scl_in_buffer(left ? w->p->a.buffer : w->p->b.buffer);
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* Where the rows of an operand are large, by some of them. */
static scl_status profile_of(const work *w, bool left, scl_block norms, scl_block profile) {
  const size_t rows = left ? w->m : w->n, samples = scl_min(rows, INTEGERS_SAMPLES);
  const integers_operand operand = operand_of(w, left, 0, rows, 0, w->k);
  SCL_TRY(scl_launch_integers_sample(
      w->op, scl_cl_range_1(samples * INTEGERS_MEASURERS, INTEGERS_MEASURERS), source_of(w, left),
      scl_out_buffer(norms.buffer), &operand));
  return scl_launch_integers_profile(w->op, scl_cl_range_1(scl_round_up(w->k, 64), 64),
                                     source_of(w, left), scl_in_buffer(norms.buffer),
                                     scl_out_buffer(profile.buffer), &operand);
}

static scl_status measure(const work *w, bool left, scl_block profile, scl_block parts) {
  const size_t rows = left ? w->m : w->n, count = scl_ceil_div(w->k, PART);
  const integers_operand operand = operand_of(w, left, 0, rows, 0, w->k);
  const size_t local[2] = {INTEGERS_MEASURERS, 1};
  const size_t global[2] = {scl_round_up(rows * (size_t)operand.lanes, INTEGERS_MEASURERS), count};
  SCL_TRY(scl_launch_integers_measure(w->op, scl_cl_range_2(global, local), source_of(w, left),
                                      scl_in_buffer(profile.buffer), scl_out_buffer(parts.buffer),
                                      &operand));
  return scl_launch_integers_combine(w->op, scl_cl_range_1(scl_round_up(rows, 64), 64),
                                     scl_in_buffer(parts.buffer),
                                     scl_out_buffer(w->norms[!left].buffer), (int)count, &operand);
}

static scl_status measure_both(work *w) {
  const size_t words = 3 * scl_max(w->m, w->n); /* of a part */
  scl_block parts = {0}, norms = {0}, profile = {0};
  scl_status status;
  SCL_GO(scl_cl_temporary(w->op, scl_ceil_div(words, 2), scl_ceil_div(w->k, PART), &parts));
  SCL_GO(scl_cl_temporary(w->op, INTEGERS_SAMPLES / 2, 1, &norms));
  SCL_GO(scl_cl_temporary(w->op, scl_ceil_div(w->k, 2), 1, &profile));
  SCL_GO(scl_cl_temporary(w->op, w->m, 1, &w->norms[0]));
  SCL_GO(scl_cl_temporary(w->op, w->n, 1, &w->norms[1]));
  for (int left = 0; left < 2; left++) {
    SCL_GO(profile_of(w, !left, norms, profile));
    SCL_GO(measure(w, left, profile, parts));
  }
done:
  scl_buffer_release(parts.buffer);
  scl_buffer_release(norms.buffer);
  scl_buffer_release(profile.buffer);
  return status;
}

static scl_status read_norms(scl_cl_op *op, scl_block norms, size_t rows, float *to) {
  scl_cl_context *cl = op->cl;
  cl_event own = NULL, *event = scl_cl_op_event(op, &own);
  if (op->missing) { /* the likely answer: integers will do */
    for (size_t i = 0; i < rows; i++) to[i] = 1.0f;
    return SCL_OK;
  }
  SCL_CL_TRY(cl,
             scl_cl.clEnqueueReadBuffer(
                 cl->queue[op->queue], ((scl_cl_buffer *)norms.buffer)->memory, CL_FALSE, 0,
                 rows * sizeof *to, to, op->waits, op->waits > 0 ? op->wait : NULL, event),
             "clEnqueueReadBuffer");
  scl_cl_op_took(op, own);
  return SCL_OK;
}

/* The fewest moduli for which the error is within 4 times the native product's on average over a
 * row or a column, by the smallest mean cosine between magnitudes; 0: none. Measured with matrices
 * of random numbers, whose cosine is about 3/4: half of it with the fewest moduli
 * (bench/integers.c). A native product's error falls with the cosine; here it does not. A mean says
 * nothing of one pair, but a test of each pair is a product of its own, and would refuse most
 * covariance matrices, in which some pairs always have next to nothing in common. */
static int moduli_for(float overlap) {
  const double enough = 0.1;
  for (int moduli = INTEGERS_FEWEST; moduli <= INTEGERS_MOST; moduli++) {
    if (overlap >= enough * exp2(limit_of(INTEGERS_FEWEST) - limit_of(moduli))) return moduli;
  }
  return 0;
}

/* Waits for the norms; the number of moduli that do, 0 if none or if an element is not finite. */
static scl_status look_at_norms(const work *w, int *moduli) {
  scl_cl_op *op = w->op;
  const size_t rows = w->m + w->n;
  float *norms = malloc(2 * rows * sizeof *norms), overlap = 1.0f;
  scl_status status;
  if (norms == NULL) return scl_fail_memory(2 * rows * sizeof *norms, 0, "norms");
  SCL_GO(read_norms(op, w->norms[0], 2 * w->m, norms));
  SCL_GO(read_norms(op, w->norms[1], 2 * w->n, norms + 2 * w->m));
  SCL_GO(scl_cl_reach(op->cl, op->queue, op->cl->enqueued[op->queue]));
  for (size_t i = 0; i < rows; i++) {
    const float *norm = i < w->m ? norms + i : norms + w->m + i;
    const float own = norm[i < w->m ? w->m : w->n];
    if (norm[0] == INFINITY || !(own >= 0.0f)) overlap = -1.0f;
    if (own < overlap) overlap = own;
  }
  *moduli = overlap < 0.0f ? 0 : w->form.moduli > 0 ? w->form.moduli : moduli_for(overlap);
done:
  if (status != SCL_OK) scl_cl_drain(op->cl, op->queue); /* the driver may still write */
  free(norms);
  return status;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static const struct {
  scl_cl_program program;
  const scl_kernel_integers_split *split;
  const scl_kernel_integers_multiply *multiply;
  const scl_kernel_integers_join *join;
} programs[] = {
#define PROGRAM(name)                                                                              \
  { SCL_CL_PROGRAM_##name, &scl_k_##name##_split, &scl_k_##name##_multiply, &scl_k_##name##_join }
    PROGRAM(integers_plain), PROGRAM(integers_dot), PROGRAM(integers_mma), PROGRAM(integers_wgmma)
#undef PROGRAM
};

scl_cl_program scl_cl_integers_program(scl_cl_integers_kind kind) {
  return programs[kind].program;
}

/* A part of the product: rows, columns and terms from the first ones on. */
typedef struct {
  size_t row, column, term, m, n, k;
} range;

static scl_status split(const work *w, bool left, size_t row, size_t rows, size_t term,
                        size_t terms) {
  const integers_operand operand = operand_of(w, left, row, rows, term, terms);
  const size_t tile = left ? INTEGERS_TILE_M : INTEGERS_PANEL;
  const size_t items = scl_round_up(rows, tile) * (size_t)operand.stages;
  return scl_launch_integers_split(w->op, programs[w->form.kind].split,
                                   scl_cl_range_1(items, INTEGERS_PANEL), source_of(w, left),
                                   scl_in_buffer(w->norms[!left].buffer),
                                   scl_out_buffer(left ? w->a.buffer : w->b.buffer), &operand);
}

static int region_code(scl_region region) {
  if (region == SCL_MIRRORED) return GEMM_MIRRORED;
  return region == SCL_LOWER_HALF ? GEMM_LOWER_HALF : GEMM_ALL;
}

/* The matrix that is multiplied by beta: after the first terms C itself. */
static scl_block read_from(const work *w, size_t term) {
  return term == 0 && w->p->from.buffer != NULL ? w->p->from : w->p->c;
}

static integers_product product_of(const work *w, const range *r) {
  const scl_cl_product *p = w->p;
  const scl_block from = read_from(w, r->term);
  const bool whole = r->m == w->m && r->n == w->n && r->k == w->k;
  const int views = scl_cl_view_flag(p->view_a, p->trans_a, GEMM_A_LOWER, GEMM_A_UPPER) |
                    scl_cl_view_flag(p->view_b, p->trans_b, GEMM_B_LOWER, GEMM_B_UPPER);
  return (integers_product){
      .a_step = (scl_long)(w->rows * w->terms),
      .b_step = (scl_long)(w->columns * w->terms),
      .c_step = (scl_long)(w->rows * w->columns),
      .c_offset = (scl_long)(p->c.offset + r->row + r->column * p->c.ld),
      .from_offset = (scl_long)(from.offset + r->row + r->column * from.ld),
      .mirror_offset = (scl_long)(p->c.offset + r->column + r->row * p->c.ld),
      .alpha = p->alpha,
      .beta = r->term == 0 ? p->beta : 1.0,
      .limit = limit_of(w->form.moduli),
      .m = (int)r->m,
      .n = (int)r->n,
      .stages = (int)stages_of(r->k),
      .moduli = w->form.moduli,
      .views = whole ? views : 0, /* they hold for whole matrices, not for their parts */
      .region = region_code(p->region),
      .first_row = (int)r->row,
      .first_column = (int)r->column,
      .rows = (int)w->rows,
      .c_ld = (int)p->c.ld,
      .from_ld = (int)from.ld};
}

static scl_status multiply(const work *w, const integers_product *product) {
  const size_t m = scl_ceil_div((size_t)product->m, INTEGERS_TILE_M);
  const size_t n = scl_ceil_div((size_t)product->n, INTEGERS_TILE_N);
  const size_t moduli = (size_t)product->moduli;
  const size_t local[3] = {INTEGERS_TILE_M / INTEGERS_ROWS, 8, 1};
  const size_t global[3] = {m * local[0], scl_round_up((size_t)product->n, INTEGERS_PANEL), moduli};
  const bool tiles = w->form.kind >= SCL_CL_INTEGERS_MMA;
  return scl_launch_integers_multiply(
      w->op, programs[w->form.kind].multiply,
      tiles ? scl_cl_range_1(m * n * moduli * INTEGERS_ITEMS, INTEGERS_ITEMS)
            : scl_cl_range_3(global, local),
      scl_in_buffer(w->a.buffer), scl_in_buffer(w->b.buffer), scl_out_buffer(w->c.buffer), product);
}

static scl_status join(const work *w, const range *r, const integers_product *product) {
  const size_t local[2] = {INTEGERS_JOINERS, 1};
  const size_t global[2] = {scl_round_up(scl_ceil_div(r->m, INTEGERS_JOINED), INTEGERS_JOINERS),
                            r->n};
  return scl_launch_integers_join(
      w->op, programs[w->form.kind].join, scl_cl_range_2(global, local), scl_in_buffer(w->c.buffer),
      scl_in_buffer(w->norms[0].buffer), scl_in_buffer(w->norms[1].buffer),
      scl_in_buffer(read_from(w, r->term).buffer), scl_inout_buffer(w->p->c.buffer), product);
}

static scl_status multiply_columns(const work *w, range r) {
  for (r.column = 0; r.column < w->n; r.column += w->columns) {
    r.n = scl_min(w->columns, w->n - r.column);
    if (w->p->region != SCL_ALL && r.row + r.m <= r.column) break; /* above the diagonal */
    const integers_product product = product_of(w, &r);
    SCL_TRY(split(w, false, r.column, r.n, r.term, r.k));
    if (w->form.last == SCL_CL_INTEGERS_SPLIT) continue;
    SCL_TRY(multiply(w, &product));
    if (w->form.last == SCL_CL_INTEGERS_MULTIPLY) continue;
    SCL_TRY(join(w, &r, &product));
  }
  return SCL_OK;
}

static scl_status multiply_blocks(const work *w) {
  range r;
  for (r.term = 0; r.term < w->k; r.term += w->terms) {
    r.k = scl_min(w->terms, w->k - r.term);
    for (r.row = 0; r.row < w->m; r.row += w->rows) {
      r.m = scl_min(w->rows, w->m - r.row);
      SCL_TRY(split(w, true, r.row, r.m, r.term, r.k));
      SCL_TRY(multiply_columns(w, r));
    }
  }
  return SCL_OK;
}

/* ---- workspaces ------------------------------------------------------------------------------ */

static double bytes_of(const work *w) {
  const double m = (double)w->rows, n = (double)w->columns, k = (double)w->terms;
  return w->form.moduli * (m * k + k * n + m * n);
}

/* Blocks whose residues take a part of the device's memory, each operand's in one buffer. */
static void choose_blocks(work *w) {
  const scl_device_info *info = &w->op->cl->info;
  const double room = fmin((double)info->memory / SHARE, (double)info->largest);
  w->rows = scl_round_up(scl_min(w->m, MOST_ROWS), INTEGERS_TILE_M);
  w->columns = scl_round_up(scl_min(w->n, MOST_COLUMNS), INTEGERS_PANEL);
  w->terms = scl_round_up(scl_min(w->k, MOST_TERMS), INTEGERS_DEPTH);
  while (bytes_of(w) > room) {
    size_t *most = w->rows > w->columns ? &w->rows : &w->columns;
    if (w->terms > *most) most = &w->terms;
    if (*most <= INTEGERS_TILE_M) break;
    *most = scl_round_up(*most / 2, INTEGERS_TILE_M);
  }
}

/* `bytes` bytes a modulus. */
static scl_status create_residues(work *w, size_t bytes, scl_block *out) {
  return scl_cl_temporary(w->op, bytes / sizeof(double), (size_t)w->form.moduli, out);
}

static scl_status run_steps(work *w, bool *done) {
  int moduli = 0;
  scl_status status;
  SCL_GO(measure_both(w));
  SCL_GO(look_at_norms(w, &moduli));
  if (moduli == 0 || w->form.last == SCL_CL_INTEGERS_MEASURE) goto done;
  w->form.moduli = moduli;
  choose_blocks(w);
  SCL_GO(create_residues(w, w->rows * w->terms, &w->a));
  SCL_GO(create_residues(w, w->columns * w->terms, &w->b));
  SCL_GO(create_residues(w, w->rows * w->columns, &w->c));
  *done = true;
  SCL_GO(multiply_blocks(w));
done:
  scl_buffer_release(w->norms[0].buffer);
  scl_buffer_release(w->norms[1].buffer);
  scl_buffer_release(w->a.buffer);
  scl_buffer_release(w->b.buffer);
  scl_buffer_release(w->c.buffer);
  return status;
}

scl_status scl_cl_integers_steps_in(scl_cl_op *op, const scl_cl_product *p,
                                    scl_cl_integers_form form, bool *done) {
  work w = {.op = op, .p = p, .form = form};
  w.m = p->m_last > 0 ? p->m_last : p->c.nrow;
  w.n = p->n_last > 0 ? p->n_last : p->c.ncol;
  w.k = terms_of(p);
  *done = false;
  const scl_status status = run_steps(&w, done);
  return status == SCL_E_MEMORY && !*done ? SCL_OK : status;
}

/* ---- when ------------------------------------------------------------------------------------ */

/* The last argument of scl_device_emulate(). */
static int emulate = -1;

void scl_device_emulate(int mode) {
  emulate = mode;
}

/* Estimated microseconds: the launches and the look at the norms; what the steps but the product
 * of residues take by element of an operand or the result; and that product. As bench/integers.c
 * fits them to an H200, of 132 units, at orders 1024 to 16384 (bench/results.md, section integers),
 * the steps within 31%. Without matrix instructions: four products a lane and clock, with 128 lanes
 * a unit and 1.8 GHz. */
static double expected_time(const scl_cl_op *op, const double size[3], double share,
                            scl_cl_integers_kind kind) {
  static const double rates[] = {2.0 * 4 * 128 * 1800, 2.0 * 4 * 128 * 1800, 7.58e6, 9.75e6};
  const double units = (double)op->cl->info.units, m = size[0], n = size[1], k = size[2];
  const double steps = 430.0, element = 0.0019, work = 2.0 * INTEGERS_FEWEST / rates[kind];
  return steps + (element * (m * k + n * k + share * m * n) + share * work * m * n * k) / units;
}

/* Microseconds of the product in double precision, `by_tiles` of matrix instructions, or 0. Other
 * devices are taken to do two operations a lane and clock, with 128 lanes a unit and 1.8 GHz, in
 * single precision, and one of STATCL_FP64_RATIO of that in double; if that is set, any device. */
static double native_time(const scl_cl_op *op, double operations, double by_tiles) {
  const char *set = scl_env("STATCL_FP64_RATIO");
  const double ratio = set != NULL ? atof(set) : 64.0, single = 2.0 * 128 * 1800;
  if (set == NULL && by_tiles > 0.0) return by_tiles;
  return operations * ratio / (single * (double)op->cl->info.units);
}

static bool is_wanted(const scl_cl_op *op, const scl_cl_product *p, double by_tiles,
                      scl_cl_integers_kind kind) {
  const double size[3] = {(double)(p->m_last > 0 ? p->m_last : p->c.nrow),
                          (double)(p->n_last > 0 ? p->n_last : p->c.ncol), (double)terms_of(p)};
  const double m = size[0], n = size[1], below = m > n ? 1.0 - 0.5 * n / m : 0.5 * m / n;
  const double share = p->region == SCL_ALL ? 1.0 : below; /* of the elements */
  if (p->batch != 1 || p->transposed.buffer != NULL || p->alpha == 0.0) return false;
  if (size[2] == 0.0 || fmax(fmax(size[0], size[1]), size[2]) > INT_MAX / 2) return false;
  if (emulate >= 0) return emulate > 0;
  if (scl_cl_tuned(op->cl, SCL_CL_TUNE_integer_products) == 0) return false;
  return expected_time(op, size, share, kind) <
         native_time(op, 2.0 * share * size[0] * size[1] * size[2], by_tiles);
}

scl_status scl_cl_integers_in(scl_cl_op *op, const scl_cl_product *p, double by_tiles, bool *done) {
  scl_cl_integers_form form = {.kind = SCL_CL_INTEGERS_KINDS, .last = SCL_CL_INTEGERS_JOIN};
  bool usable = false;
  *done = false;
  while (!usable) {
    form.kind--;
    if (!is_wanted(op, p, by_tiles, form.kind)) return SCL_OK;
    if (form.kind == SCL_CL_INTEGERS_PLAIN) {
      if (emulate <= 0) return SCL_OK;
      break;
    }
    SCL_TRY(scl_cl_try_program(op->cl, programs[form.kind].program, &usable));
  }
  return scl_cl_integers_steps_in(op, p, form, done);
}
