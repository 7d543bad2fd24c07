/* Products in double precision by 8-bit integers (inst/kernels/portable/integers.cl): Ozaki's
 * scheme II, with Chinese remainders.
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

/* Most rows, columns and terms of a block; terms of a part of a norm; parts of a device's memory
 * that workspaces may take one of. */
enum { MOST_ROWS = 16384, MOST_COLUMNS = 8192, MOST_TERMS = 16384, PART = 512, SHARE = 4 };

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

/* Rows of op(A), or columns of op(B), as the sum sees them, from (row, term) on. */
static integers_operand operand_of(const work *w, bool left, size_t row, size_t rows, size_t term,
                                   size_t terms) {
  const scl_block x = left ? w->p->a : w->p->b;
  const bool down = left ? w->p->trans_a == SCL_TRANS : w->p->trans_b == SCL_NO_TRANS;
  const size_t row_step = down ? x.ld : 1, depth_step = down ? 1 : x.ld;
  const size_t padded = left ? w->rows : w->columns;
  const int triangle = left ? scl_cl_view_flag(w->p->view_a, w->p->trans_a, 1, 2)
                            : scl_cl_view_flag(w->p->view_b, w->p->trans_b, 2, 1);
  return (integers_operand){.offset = (scl_long)(x.offset + row * row_step + term * depth_step),
                            .row_step = (scl_long)row_step,
                            .depth_step = (scl_long)depth_step,
                            .modulus_step = (scl_long)(padded * w->terms),
                            .rows = (int)rows,
                            .depth = (int)terms,
                            .chunks = (int)(scl_round_up(terms, INTEGERS_DEPTH) / INTEGERS_CHUNK),
                            .moduli = w->form.moduli,
                            .left = left,
                            .part = PART,
                            .first = (int)row,
                            .term = (int)term,
                            .triangle = triangle,
                            .limit = limit_of(w->form.moduli)};
}

static scl_arg_in_buffer source_of(const work *w, bool left) {
  return scl_in_buffer(left ? w->p->a.buffer : w->p->b.buffer);
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* The sums over rows of an operand, in parts that are added up. */
typedef struct {
  integers_operand operand;
  size_t count; /* of parts */
  scl_cl_range rows, parts;
} sums;

static sums sums_of(const work *w, bool left) {
  const size_t rows = left ? w->m : w->n, count = scl_ceil_div(w->k, PART);
  const size_t local[2] = {64, 1}, global[2] = {scl_round_up(rows, 64), count};
  return (sums){operand_of(w, left, 0, rows, 0, w->k), count, scl_cl_range_1(global[0], 64),
                scl_cl_range_2(global, local)};
}

static scl_status measure(const work *w, bool left, scl_block parts) {
  const sums s = sums_of(w, left);
  SCL_TRY(scl_launch_integers_measure(w->op, s.parts, source_of(w, left),
                                      scl_out_buffer(parts.buffer), &s.operand));
  return scl_launch_integers_combine(w->op, s.rows, scl_in_buffer(parts.buffer),
                                     scl_out_buffer(w->norms[!left].buffer), (int)s.count,
                                     &s.operand);
}

/* Whether the rows of one operand are large where those of the other are. */
static scl_status compare(const work *w, bool left, scl_block profile, scl_block parts) {
  const sums s = sums_of(w, left), other = sums_of(w, !left);
  const scl_block norms = w->norms[!left];
  SCL_TRY(scl_launch_integers_profile(w->op, scl_cl_range_1(scl_round_up(w->k, 64), 64),
                                      source_of(w, !left), scl_in_buffer(w->norms[left].buffer),
                                      scl_out_buffer(profile.buffer), &other.operand));
  SCL_TRY(scl_launch_integers_overlap(w->op, s.parts, source_of(w, left),
                                      scl_in_buffer(norms.buffer), scl_in_buffer(profile.buffer),
                                      scl_out_buffer(parts.buffer), &s.operand));
  return scl_launch_integers_overlaps(w->op, s.rows, scl_in_buffer(parts.buffer),
                                      scl_inout_buffer(norms.buffer), (int)s.count, &s.operand);
}

static scl_status measure_both(work *w) {
  scl_block parts = {0}, profile = {0};
  scl_status status;
  SCL_GO(scl_cl_temporary(w->op, scl_max(w->m, w->n), scl_ceil_div(w->k, PART), &parts));
  SCL_GO(scl_cl_temporary(w->op, scl_ceil_div(w->k, 2), 1, &profile));
  SCL_GO(scl_cl_temporary(w->op, w->m, 1, &w->norms[0]));
  SCL_GO(scl_cl_temporary(w->op, w->n, 1, &w->norms[1]));
  SCL_GO(measure(w, true, parts));
  SCL_GO(measure(w, false, parts));
  SCL_GO(compare(w, true, profile, parts));
  SCL_GO(compare(w, false, profile, parts));
done:
  scl_buffer_release(parts.buffer);
  scl_buffer_release(profile.buffer);
  return status;
}

static scl_status read_norms(scl_cl_op *op, scl_block norms, size_t rows, float *to) {
  scl_cl_context *cl = op->cl;
  cl_event own = NULL, *event = scl_cl_op_event(op, &own);
  if (op->missing) return scl_cl_building();
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

/* A part of the product: rows, columns and terms from the first ones on. */
typedef struct {
  size_t row, column, term, m, n, k;
} range;

static scl_status split(const work *w, bool left, size_t row, size_t rows, size_t term,
                        size_t terms) {
  const integers_operand operand = operand_of(w, left, row, rows, term, terms);
  const size_t tile = left ? INTEGERS_TILE_M : INTEGERS_TILE_N, local[2] = {INTEGERS_SPLIT, 1};
  const size_t global[2] = {scl_round_up(rows, tile), (size_t)operand.chunks};
  return scl_launch_integers_split(w->op, scl_cl_range_2(global, local), source_of(w, left),
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
      .chunks = (int)(scl_round_up(r->k, INTEGERS_DEPTH) / INTEGERS_CHUNK),
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
  const size_t m = scl_round_up((size_t)product->m, INTEGERS_TILE_M);
  const size_t n = scl_round_up((size_t)product->n, INTEGERS_TILE_N);
  const size_t moduli = (size_t)product->moduli, tile = INTEGERS_TILE_M * INTEGERS_TILE_N;
  const scl_arg_in_buffer a = scl_in_buffer(w->a.buffer), b = scl_in_buffer(w->b.buffer);
  const scl_arg_out_buffer c = scl_out_buffer(w->c.buffer);
  if (w->form.plain) {
    const size_t local[3] = {INTEGERS_TILE_M / INTEGERS_ROWS, 8, 1};
    const size_t global[3] = {m / INTEGERS_ROWS, n, moduli};
    return scl_launch_integers_multiply(w->op, &scl_k_integers_multiply,
                                        scl_cl_range_3(global, local), a, b, c, product);
  }
  return scl_launch_integers_multiply(
      w->op, &scl_k_integers_mma_multiply,
      scl_cl_range_1(m * n / tile * moduli * INTEGERS_ITEMS, INTEGERS_ITEMS), a, b, c, product);
}

static scl_status join(const work *w, const range *r, const integers_product *product) {
  const size_t local[2] = {64, 1};
  const size_t global[2] = {scl_round_up(scl_ceil_div(r->m, INTEGERS_JOINED), 64), r->n};
  return scl_launch_integers_join(
      w->op, scl_cl_range_2(global, local), scl_in_buffer(w->c.buffer),
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
  w->columns = scl_round_up(scl_min(w->n, MOST_COLUMNS), INTEGERS_TILE_N);
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

/* What scl_device_emulate() was given. */
static int emulate = -1;

void scl_device_emulate(int mode) {
  emulate = mode;
}

/* Estimated microseconds: the launches and the look at the norms; what the steps but the product
 * of residues take by element of an operand or the result; and that product. Fitted to an H200, of
 * 132 units (bench/results.md, section integers): the first two to the sums of measure, split and
 * join at orders 1024 to 16384, the last to 991 TOP/s at 8192. Within 11% of these times. */
static double expected_time(const scl_cl_op *op, double m, double n, double k, double share) {
  const double units = (double)op->cl->info.units;
  const double steps = 500.0, element = 0.0033, work = 2.0 * INTEGERS_FEWEST / 7.5e6;
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

static bool is_wanted(const scl_cl_op *op, const scl_cl_product *p, size_t terms, double by_tiles) {
  const double share = p->region == SCL_ALL ? 1.0 : 0.5;
  const double m = (double)(p->m_last > 0 ? p->m_last : p->c.nrow);
  const double n = (double)(p->n_last > 0 ? p->n_last : p->c.ncol), k = (double)terms;
  if (p->batch != 1 || p->transposed.buffer != NULL || p->alpha == 0.0 || terms == 0) return false;
  if (fmax(fmax(m, n), k) > INT_MAX / 2) return false;
  if (emulate >= 0) return emulate > 0;
  if (scl_cl_tuned(op->cl, SCL_CL_TUNE_integer_products) == 0) return false;
  return expected_time(op, m, n, k, share) < native_time(op, 2.0 * share * m * n * k, by_tiles);
}

scl_status scl_cl_integers_in(scl_cl_op *op, const scl_cl_product *p, double by_tiles, bool *done) {
  scl_cl_integers_form form = {0, false, SCL_CL_INTEGERS_JOIN};
  bool usable;
  *done = false;
  if (!is_wanted(op, p, terms_of(p), by_tiles)) return SCL_OK;
  SCL_TRY(scl_cl_try_program(op->cl, SCL_CL_PROGRAM_integers_mma, &usable));
  form.plain = !usable;
  return usable || emulate > 0 ? scl_cl_integers_steps_in(op, p, form, done) : SCL_OK;
}
