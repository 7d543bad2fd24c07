/* Products: chooses between tiles and thin kernels, and splits a long sum between several groups.
 */
#include "engine/cl/linalg/linalg.h"
#include "engine/cl/runtime/tune.h"

#include <limits.h>
#include <math.h>

#include "kernels/include/gemm.h"

static int region_code(scl_region region) {
  if (region == SCL_MIRRORED) return GEMM_MIRRORED;
  return region == SCL_LOWER_HALF ? GEMM_LOWER_HALF : GEMM_ALL;
}

/* Kernels by kind of tile, op(A) and op(B). */
#define ROW(name, a)                                                                               \
  { &scl_k_##name##_##a##n, &scl_k_##name##_##a##t }
#define FORMS(name)                                                                                \
  { ROW(name, n), ROW(name, t) }
static const scl_kernel_gemm_tile *const tile_kernels[SCL_CL_TILES][2][2] = {
    [SCL_CL_TILE_PORTABLE] = FORMS(gemm),
    [SCL_CL_TILE_PORTABLE_LARGE] = FORMS(gemm_large),
    [SCL_CL_TILE_CPU] = FORMS(gemm_cpu),
};
static const scl_kernel_gemm_mma *const mma_kernels[SCL_CL_TILES][2][2] = {
    [SCL_CL_TILE_MMA_TINY] = FORMS(gemm_mma_tiny),
    [SCL_CL_TILE_MMA_SMALL] = FORMS(gemm_mma_small),
    [SCL_CL_TILE_MMA_LARGE] = {ROW(gemm_mma_large, n), {NULL, NULL}},
    [SCL_CL_TILE_MMA_HUGE] = {{NULL, &scl_k_gemm_mma_huge_nt}, {NULL, NULL}},
};
#undef FORMS
#undef ROW

scl_cl_program scl_cl_product_program(scl_cl_tile tile, scl_trans trans_a, scl_trans trans_b) {
  return scl_cl_program_of(mma_kernels[tile][trans_a == SCL_TRANS][trans_b == SCL_TRANS]->id);
}

/* Rows, columns and work-items of a tile. */
typedef struct {
  size_t m, n, items;
} tile_shape;

/* The largest tile of gemm_cpu.cl that leaves each compute unit several tiles. */
static size_t cpu_tile(const scl_cl_op *op, const scl_cl_product *p) {
  size_t tile = GEMM_CPU_TILE, wanted = op->cl->info.units;
  wanted *= (size_t)scl_cl_tuned(op->cl, SCL_CL_TUNE_gemm_cpu_tiles);
  for (; tile > GEMM_CPU_STEP; tile /= 2) {
    size_t tiles = scl_ceil_div(p->c.nrow, tile) * scl_ceil_div(p->c.ncol, tile) * p->batch;
    if ((p->region == SCL_ALL ? tiles : scl_ceil_div(tiles, 2)) >= wanted) break;
  }
  return tile;
}

static tile_shape shape_of(const scl_cl_op *op, const scl_cl_product *p, scl_cl_tile tile) {
  size_t cpu = tile == SCL_CL_TILE_CPU ? cpu_tile(op, p) : 0;
  switch (tile) {
  case SCL_CL_TILE_CPU:
    return (tile_shape){cpu, cpu, 1};
  case SCL_CL_TILE_PORTABLE_LARGE:
    return (tile_shape){GEMM_GPU_LARGE_M, GEMM_GPU_TILE_N, GEMM_GPU_ITEMS};
  case SCL_CL_TILE_MMA_TINY:
    return (tile_shape){GEMM_MMA_TINY_M, GEMM_MMA_TINY_N, GEMM_MMA_ITEMS};
  case SCL_CL_TILE_MMA_SMALL:
    return (tile_shape){GEMM_MMA_SMALL_M, GEMM_MMA_SMALL_N, GEMM_MMA_ITEMS};
  case SCL_CL_TILE_MMA_LARGE:
    return (tile_shape){GEMM_MMA_LARGE_M, GEMM_MMA_LARGE_N, GEMM_MMA_ITEMS};
  case SCL_CL_TILE_MMA_HUGE:
    return (tile_shape){GEMM_MMA_HUGE_M, GEMM_MMA_HUGE_N, GEMM_MMA_HUGE_ITEMS};
  default:
    return (tile_shape){GEMM_GPU_TILE_M, GEMM_GPU_TILE_N, GEMM_GPU_ITEMS};
  }
}

static size_t inner_dimension(const scl_cl_product *p) {
  return p->trans_a == SCL_TRANS ? p->a.nrow : p->a.ncol;
}

/* The sizes of a product, as its kernel takes them. */
typedef struct {
  int m, n, k, views, m_last, n_last, k_last;
  tile_shape shape;
  size_t tiles;
} tile_plan;

static tile_plan plan_tiles(const scl_cl_op *op, const scl_cl_product *p, scl_cl_tile tile) {
  size_t m = p->c.nrow, n = p->c.ncol, k = inner_dimension(p);
  if (p->alpha == 0.0) k = 0; /* as in BLAS: A and B are then not read */
  tile_plan t = {.m = (int)m, .n = (int)n, .k = (int)k, .shape = shape_of(op, p, tile)};
  t.views = scl_cl_view_flag(p->view_a, p->trans_a, GEMM_A_LOWER, GEMM_A_UPPER) |
            scl_cl_view_flag(p->view_b, p->trans_b, GEMM_B_LOWER, GEMM_B_UPPER);
  t.m_last = (int)(p->m_last != 0 ? p->m_last : m);
  t.n_last = (int)(p->n_last != 0 ? p->n_last : n);
  t.k_last = (int)(p->k_last != 0 ? scl_min(k, p->k_last) : k);
  size_t tiles_n = scl_ceil_div(n, t.shape.n);
  t.tiles = scl_ceil_div(m, t.shape.m) * tiles_n;
  if (tile == SCL_CL_TILE_CPU && p->region != SCL_ALL) t.tiles -= tiles_n * (tiles_n - 1) / 2;
  return t;
}

/* The matrix that is multiplied by beta. */
static scl_block read_from(const scl_cl_product *p) {
  return p->from.buffer != NULL ? p->from : p->c;
}

static gemm_task task_of(const tile_plan *t, const scl_cl_product *p) {
  const scl_block from = read_from(p);
  return (gemm_task){.a_offset = p->a.offset,
                     .b_offset = p->b.offset,
                     .c_offset = p->c.offset,
                     .from_offset = from.offset,
                     .transposed_offset = p->transposed.offset,
                     .a_step = p->step_a,
                     .b_step = p->step_b,
                     .c_step = p->step_c,
                     .alpha = p->alpha,
                     .beta = p->beta,
                     .a_ld = (int)p->a.ld,
                     .b_ld = (int)p->b.ld,
                     .c_ld = (int)p->c.ld,
                     .from_ld = (int)from.ld,
                     .transposed_ld = (int)p->transposed.ld,
                     .m = t->m,
                     .n = t->n,
                     .k = t->k,
                     .m_last = t->m_last,
                     .n_last = t->n_last,
                     .k_last = t->k_last,
                     .views = t->views,
                     .region = p->transposed.buffer != NULL ? GEMM_AND_TRANSPOSED
                                                            : region_code(p->region),
                     .tiles = (int)t->tiles,
                     .batch = (int)p->batch,
                     .cpu_tile = (int)t->shape.m};
}

scl_status scl_cl_product_tiled_in(scl_cl_op *op, const scl_cl_product *p, scl_cl_tile tile) {
  const tile_plan t = plan_tiles(op, p, tile);
  gemm_task task = task_of(&t, p);
  const bool ta = p->trans_a == SCL_TRANS, tb = p->trans_b == SCL_TRANS;
  const size_t local[2] = {t.shape.items, 1}, global[2] = {t.tiles * local[0], p->batch};
  const scl_cl_range range = scl_cl_range_2(global, local);
  const scl_arg_in_buffer a = scl_in_buffer(p->a.buffer), b = scl_in_buffer(p->b.buffer);
  const scl_arg_inout_buffer c = scl_inout_buffer(p->c.buffer);
  if (tile >= SCL_CL_TILE_MMA_TINY)
    return scl_launch_gemm_mma(op, mma_kernels[tile][ta][tb], range, a, b, c,
                               scl_in_buffer(read_from(p).buffer),
                               scl_out_buffer(p->transposed.buffer), &task);
  task.region = region_code(p->region);
  return scl_launch_gemm_tile(op, tile_kernels[tile][ta][tb], range, a, b, c, &task);
}

scl_status scl_cl_product_pair_in(scl_cl_op *op, const scl_cl_product *p, const scl_cl_product *q) {
  bool usable;
  SCL_TRY(scl_cl_try_program(op->cl, SCL_CL_PROGRAM_gemm_mma_tiny_pair, &usable));
  if (!usable) {
    SCL_TRY(scl_cl_product_in(op, p));
    return scl_cl_product_in(op, q);
  }
  const tile_plan t = plan_tiles(op, p, SCL_CL_TILE_MMA_TINY);
  const tile_plan u = plan_tiles(op, q, SCL_CL_TILE_MMA_TINY);
  const gemm_task first = task_of(&t, p), second = task_of(&u, q);
  size_t groups = t.tiles * p->batch + u.tiles * q->batch;
  return scl_launch_gemm_mma_tiny_pair(
      op, scl_cl_range_1(groups * t.shape.items, t.shape.items), scl_in_buffer(p->a.buffer),
      scl_in_buffer(p->b.buffer), scl_inout_buffer(p->c.buffer), scl_in_buffer(read_from(p).buffer),
      scl_out_buffer(p->transposed.buffer), &first, scl_in_buffer(q->a.buffer),
      scl_in_buffer(q->b.buffer), scl_inout_buffer(q->c.buffer), scl_in_buffer(read_from(q).buffer),
      scl_out_buffer(q->transposed.buffer), &second);
}

scl_cl_product_form scl_cl_product_form_of(scl_cl_program which) {
  scl_cl_product_form form = {0};
  for (int tile = SCL_CL_TILE_MMA_TINY; tile < SCL_CL_TILES; tile++) {
    for (int t = 0; t < 4; t++) {
      const scl_trans trans_a = t & 2 ? SCL_TRANS : SCL_NO_TRANS;
      const scl_trans trans_b = t & 1 ? SCL_TRANS : SCL_NO_TRANS;
      const tile_shape shape = shape_of(NULL, NULL, (scl_cl_tile)tile);
      const scl_kernel_gemm_mma *kernel = mma_kernels[tile][t >> 1][t & 1];
      if (kernel != NULL && scl_cl_program_of(kernel->id) == which)
        form = (scl_cl_product_form){(scl_cl_tile)tile, shape.m, shape.n, trans_a, trans_b};
    }
  }
  return form;
}

/* The number of large tiles that keeps every unit of a large device busy for several rounds; the
 * number of huge ones for which a product is so long that the device reaches its power limit. */
enum { MANY_TILES = 800, HUGE_TILES = 2000 };

static size_t count_tiles(const scl_cl_op *op, const scl_cl_product *p, scl_cl_tile tile) {
  tile_shape shape = shape_of(op, p, tile);
  size_t rows = scl_ceil_div(p->c.nrow, shape.m), columns = scl_ceil_div(p->c.ncol, shape.n);
  size_t above = 0; /* the diagonal: not computed */
  for (size_t j = 0; j < columns && p->region != SCL_ALL; j++)
    above += scl_min(rows, j * shape.n / shape.m);
  return (rows * columns - above) * p->batch;
}

/* The large tile needs enough local memory, and two groups on each unit to keep it busy. */
static scl_cl_tile choose_portable(scl_cl_op *op, const scl_cl_product *p) {
  size_t groups = (size_t)scl_cl_tuned(op->cl, SCL_CL_TUNE_gemm_large_groups);
  bool large = !op->cl->cpu && op->cl->info.local_memory >= GEMM_GPU_LARGE_BYTES &&
               count_tiles(op, p, SCL_CL_TILE_PORTABLE_LARGE) >= groups * op->cl->info.units;
  return large ? SCL_CL_TILE_PORTABLE_LARGE : SCL_CL_TILE_PORTABLE;
}

/* Estimated microseconds of a product with these tiles: a constant for the launch and, for each
 * step along k, a latency and the work of the unit that has the most tiles, which depends on
 * whether B is transposed. A step of an m x n tile is 2 m n flops, and a unit of an H200 does
 * 0.51e6 flops in a microsecond (67e12 / 132 units): `work` is 57% of that rate for the tiny tile,
 * 83 and 92% for the small one, 92 and 95% for the large one and 95% for the huge one. All were
 * fitted to times on an H200; bench/gemm_tiles.c repeats the measurement. */
static double expected_time(const scl_cl_op *op, const scl_cl_product *p, scl_cl_tile tile) {
  static const struct {
    double launch, latency, work[2];
  } cost[] = {{7.5, 0.004, {0.0071, 0.0071}},
              {10.5, 0.004, {0.0195, 0.0175}},
              {12.0, 0.008, {0.0350, 0.0340}},
              {14.0, 0.008, {0.0680, INFINITY}}};
  int of = tile - SCL_CL_TILE_MMA_TINY;
  double most = (double)scl_ceil_div(count_tiles(op, p, tile), op->cl->info.units);
  double work = cost[of].work[p->trans_b == SCL_NO_TRANS];
  double percent = 100.0;
  if (tile == SCL_CL_TILE_MMA_SMALL) percent = scl_cl_tuned(op->cl, SCL_CL_TUNE_gemm_small_cost);
  if (tile == SCL_CL_TILE_MMA_LARGE) percent = scl_cl_tuned(op->cl, SCL_CL_TUNE_gemm_large_cost);
  double time = cost[of].launch + (double)inner_dimension(p) * (cost[of].latency + work * most);
  return 0.01 * percent * time;
}

/* Whether a product may have these tiles. With a transposed A the large ones would need more
 * registers than a work-item has. With a triangular operand tiles take different times, which only
 * evens out over many tiles. */
static bool may_take(const scl_cl_op *op, const scl_cl_product *p, scl_cl_tile tile) {
  if (tile < SCL_CL_TILE_MMA_LARGE) return true;
  if (p->trans_a == SCL_TRANS) return false;
  if (tile == SCL_CL_TILE_MMA_HUGE)
    return p->trans_b == SCL_TRANS && count_tiles(op, p, tile) >= HUGE_TILES;
  int triangles =
      scl_cl_view_flag(p->view_a, p->trans_a, 1, 1) + scl_cl_view_flag(p->view_b, p->trans_b, 1, 1);
  return triangles == 0 || count_tiles(op, p, tile) >= MANY_TILES;
}

/* Within a tile the matrix-instruction kernels index an operand by ints: over up to 64 columns if
 * it is contiguous along k, over 8 if not. */
static bool fits_ints(scl_block x, bool deep) {
  return scl_min(x.ncol, deep ? 64 : 8) * x.ld + GEMM_MMA_HUGE_M <= INT_MAX;
}

/* The tile of matrix instructions that is expected to be the fastest of those that have not been
 * refused; portable ones if there is none. Nothing is built. */
static scl_cl_tile preferred_tile(scl_cl_op *op, const scl_cl_product *p) {
  if (op->cl->cpu && op->cl->info.local_memory >= GEMM_CPU_BYTES) return SCL_CL_TILE_CPU;
  bool aligned = scl_cl_aligned(p->a) && scl_cl_aligned(p->b) && scl_cl_aligned(p->c) &&
                 (p->step_a | p->step_b | p->step_c) % 2 == 0;
  bool fits = fits_ints(p->a, p->trans_a == SCL_TRANS) && fits_ints(p->b, p->trans_b != SCL_TRANS);
  scl_cl_tile best = choose_portable(op, p);
  if (!aligned || !fits || !scl_cl_may_try_mma(op->cl)) return best;
  double least = INFINITY;
  for (int t = SCL_CL_TILE_MMA_TINY; t < SCL_CL_TILES; t++) {
    const scl_cl_tile tile = (scl_cl_tile)t;
    if (!may_take(op, p, tile)) continue;
    if (scl_cl_is_refused(op->cl, scl_cl_product_program(tile, p->trans_a, p->trans_b))) continue;
    double time = expected_time(op, p, tile);
    if (time < least) {
      least = time;
      best = tile;
    }
  }
  return best;
}

/* The same, after its trial on this device. */
static scl_status choose_tile(scl_cl_op *op, const scl_cl_product *p, scl_cl_tile *out) {
  for (;;) {
    const scl_cl_tile tile = preferred_tile(op, p);
    bool usable = true;
    if (tile >= SCL_CL_TILE_MMA_TINY) {
      const scl_cl_program program = scl_cl_product_program(tile, p->trans_a, p->trans_b);
      SCL_TRY(scl_cl_try_program(op->cl, program, &usable));
      if (!usable && !scl_cl_is_refused(op->cl, program)) { /* no memory for the trial */
        *out = choose_portable(op, p);
        return SCL_OK;
      }
    }
    if (usable) {
      *out = tile;
      return SCL_OK;
    }
  }
}

scl_cl_program scl_cl_product_choice(scl_cl_context *cl, const scl_cl_product *p) {
  scl_cl_op op = {.cl = cl};
  const bool ta = p->trans_a == SCL_TRANS, tb = p->trans_b == SCL_TRANS;
  const scl_cl_tile tile = preferred_tile(&op, p);
  return scl_cl_program_of(tile >= SCL_CL_TILE_MMA_TINY ? mma_kernels[tile][ta][tb]->id
                                                        : tile_kernels[tile][ta][tb]->id);
}

/* C = F, in the region that is computed. */
static scl_status copy_from(scl_cl_op *op, const scl_cl_product *p) {
  const scl_block f = p->from, c = p->c;
  const size_t m = c.nrow, n = c.ncol;
  if (f.buffer == c.buffer && f.offset == c.offset) return SCL_OK;
  if (p->region == SCL_ALL) return scl_cl_copy_in(op, SCL_COPY, f, c);
  SCL_TRY(scl_cl_lower_in(op, scl_block_part(f, 0, 0, n, n), scl_block_part(c, 0, 0, n, n)));
  if (m == n) return SCL_OK;
  return scl_cl_copy_in(op, SCL_COPY, scl_block_part(f, n, 0, m - n, n),
                        scl_block_part(c, n, 0, m - n, n));
}

/* Only the tiles of matrix instructions read C from another matrix and also write it transposed;
 * for the others it is copied. */
static scl_status product_by_tiles(scl_cl_op *op, const scl_cl_product *p) {
  scl_cl_tile tile;
  SCL_TRY(choose_tile(op, p, &tile));
  if (tile >= SCL_CL_TILE_MMA_TINY) return scl_cl_product_tiled_in(op, p, tile);
  if (p->from.buffer != NULL && p->beta != 0.0) SCL_TRY(copy_from(op, p));
  SCL_TRY(scl_cl_product_tiled_in(op, p, tile));
  if (p->transposed.buffer == NULL) return SCL_OK;
  return scl_cl_copy_in(op, SCL_COPY_TRANSPOSED, p->c, p->transposed);
}

/* p with a transposed copy of X (A or B) in place of X, and of B too if that is the same matrix.
 */
static scl_status product_of_transposed(scl_cl_op *op, const scl_cl_product *p, bool of_a) {
  scl_cl_product q = *p;
  scl_block x = of_a ? p->a : p->b, transposed;
  bool same = of_a && p->trans_b == SCL_NO_TRANS && p->a.buffer == p->b.buffer &&
              p->a.offset == p->b.offset && p->a.ld == p->b.ld && p->a.ncol == p->b.ncol;
  if (scl_cl_temporary(op, x.ncol, x.nrow, &transposed) != SCL_OK) return product_by_tiles(op, p);
  if (of_a) {
    q.a = transposed;
    q.trans_a = SCL_NO_TRANS;
    q.view_a = scl_view_transposed(p->view_a);
  }
  if (!of_a || same) {
    q.b = transposed;
    q.trans_b = SCL_TRANS;
    q.view_b = scl_view_transposed(p->view_b);
  }
  scl_status status = scl_cl_copy_in(op, SCL_COPY_TRANSPOSED, x, transposed);
  if (status == SCL_OK) status = scl_cl_product_in(op, &q);
  scl_buffer_release(transposed.buffer);
  return status;
}

/* Whether to transpose B first, as the huge tile only takes B': a copy runs at 2.6 TB/s. Reading B
 * untransposed, in runs of 64 bytes far apart, takes longer than estimated. */
static bool pays_to_transpose_b(scl_cl_op *op, const scl_cl_product *p) {
  const double as_it_is = 1.06, microseconds = 16.0 / 2.6e6; /* of an element's copy */
  if (p->trans_a == SCL_TRANS || p->trans_b == SCL_TRANS || p->batch != 1) return false;
  scl_cl_tile now = preferred_tile(op, p);
  scl_cl_product q = *p;
  q.trans_b = SCL_TRANS;
  if (scl_cl_is_refused(op->cl, SCL_CL_PROGRAM_gemm_mma_huge_nt)) return false;
  if (now < SCL_CL_TILE_MMA_SMALL || !may_take(op, &q, SCL_CL_TILE_MMA_HUGE)) return false;
  double copy = microseconds * (double)p->b.nrow * (double)p->b.ncol;
  return expected_time(op, &q, SCL_CL_TILE_MMA_HUGE) + copy < as_it_is * expected_time(op, p, now);
}

scl_status scl_cl_product_in(scl_cl_op *op, const scl_cl_product *p) {
  const scl_cl_tile tile = preferred_tile(op, p);
  bool done;
  SCL_TRY(scl_cl_integers_in(op, p, tile >= SCL_CL_TILE_MMA_TINY ? expected_time(op, p, tile) : 0.0,
                             &done));
  if (done) return SCL_OK;
  if (pays_to_transpose_b(op, p)) return product_of_transposed(op, p, false);
  return product_by_tiles(op, p);
}

/* The number of parts of the sum over k: enough to give each unit of the device `each` groups, but
 * no part so short that the second pass costs more than it saves. More are worth while for a thin
 * product, which only reads: several groups have their loads in flight. */
static size_t choose_parts(const scl_cl_op *op, size_t groups, scl_cl_tunable of, size_t k) {
  size_t units = op->cl->info.units, each = (size_t)scl_cl_tuned(op->cl, of);
  if (groups >= units || k < 2 * GEMM_SPLIT) return 1;
  return scl_min(scl_ceil_div(each * units, groups), k / GEMM_SPLIT);
}

/* Computes the sum over k in parts. Each is written to a matrix of its own in a workspace; gemm_sum
 * adds them in order. */
static scl_status product_in_parts(scl_cl_op *op, const scl_cl_product *p, size_t k, size_t parts,
                                   const scl_cl_thin_product *thin) {
  size_t m = p->c.nrow, n = p->c.ncol;
  size_t piece = scl_round_up(scl_ceil_div(k, parts), 32);
  scl_block partial;
  parts = scl_ceil_div(k, piece);
  SCL_TRY(scl_cl_temporary(op, m * n, parts, &partial));

  scl_status status;
  if (thin != NULL) {
    scl_cl_thin_product t = *thin;
    t.y = partial;
    t.step_y = thin->step_y == 1 ? 1 : m;
    t.next_y = thin->step_y == 1 ? m : 1;
    status = scl_cl_thin_in(op, &t, 1.0, 0.0, parts, piece, m * n);
  } else {
    scl_cl_product q = *p;
    bool down_a = p->trans_a == SCL_TRANS, down_b = p->trans_b == SCL_NO_TRANS;
    q.alpha = 1.0;
    q.beta = 0.0;
    q.view_a = q.view_b = SCL_GENERAL; /* the views hold for whole matrices, not for their parts */
    q.a = down_a ? scl_block_part(p->a, 0, 0, piece, m) : scl_block_part(p->a, 0, 0, m, piece);
    q.b = down_b ? scl_block_part(p->b, 0, 0, piece, n) : scl_block_part(p->b, 0, 0, n, piece);
    q.c = (scl_block){.buffer = partial.buffer, .ld = m, .nrow = m, .ncol = n};
    q.region = p->region == SCL_ALL ? SCL_ALL : SCL_LOWER_HALF;
    q.batch = parts;
    q.step_a = down_a ? piece : piece * p->a.ld;
    q.step_b = down_b ? piece : piece * p->b.ld;
    q.step_c = m * n;
    q.k_last = k - (parts - 1) * piece;
    status = scl_cl_product_in(op, &q);
  }
  if (status == SCL_OK) {
    size_t local[2] = {scl_round_up(scl_min(m, 32), 8), 1};
    size_t global[2] = {scl_round_up(m, local[0]), n};
    status =
        scl_launch_gemm_sum(op, scl_cl_range_2(global, local), (int)m, (int)n, (int)parts, p->alpha,
                            scl_in_at(partial), p->beta, scl_inout(p->c), region_code(p->region));
  }
  scl_buffer_release(partial.buffer);
  return status;
}

/* Whether to transpose A first, as the large tiles of matrix instructions do not take A': the copy
 * takes a few per cent of the time that they save. */
static bool pays_to_transpose_a(scl_cl_op *op, const scl_cl_product *p) {
  return p->trans_a == SCL_TRANS && preferred_tile(op, p) == SCL_CL_TILE_MMA_SMALL &&
         count_tiles(op, p, SCL_CL_TILE_MMA_LARGE) >= MANY_TILES;
}

scl_status scl_cl_gemm_in(scl_cl_op *op, double alpha, scl_trans trans_a, scl_block a,
                          scl_view view_a, scl_trans trans_b, scl_block b, scl_view view_b,
                          double beta, scl_block c, scl_region region) {
  scl_cl_product p = {.alpha = alpha,
                      .beta = beta,
                      .trans_a = trans_a,
                      .trans_b = trans_b,
                      .view_a = view_a,
                      .view_b = view_b,
                      .region = region,
                      .a = a,
                      .b = b,
                      .c = c,
                      .batch = 1};
  size_t m = c.nrow, n = c.ncol, k = trans_a == SCL_TRANS ? a.nrow : a.ncol;
  if (m == 0 || n == 0) return SCL_OK;
  if (k == 0 || alpha == 0.0) { /* beta C: the tile kernel reads neither A nor B */
    p.alpha = 0.0;
    if (a.buffer == NULL) p.a = c;
    if (b.buffer == NULL) p.b = c;
    return scl_cl_product_in(op, &p);
  }
  if (trans_a == SCL_TRANS && trans_b == SCL_NO_TRANS && region != SCL_ALL && beta == 0.0 &&
      a.buffer == b.buffer && a.offset == b.offset && a.ld == b.ld && a.ncol == b.ncol) {
    bool done;
    SCL_TRY(scl_cl_gram_in(op, alpha, a, (scl_block){0}, c, &done));
    if (done) return SCL_OK;
  }
  bool columns = n <= m;
  if ((columns ? n : m) <= GEMM_THIN) {
    scl_cl_thin_product t = scl_cl_thin_view(&p, k, columns);
    size_t parts = choose_parts(op, scl_cl_thin_groups(&t), SCL_CL_TUNE_gemm_thin_groups, k);
    if (parts > 1) return product_in_parts(op, &p, k, parts, &t);
    /* only gemm_sum and the tiles can mirror */
    if (region == SCL_ALL) return scl_cl_thin_in(op, &t, alpha, beta, 1, k, 0);
  }
  size_t step = op->cl->cpu ? GEMM_CPU_STEP : GEMM_GPU_TILE_M;
  size_t groups = scl_ceil_div(m, step) * scl_ceil_div(n, step);
  if (region != SCL_ALL) groups = scl_ceil_div(groups, 2);
  /* The sum of the parts costs about as much as half of the tiles' work. */
  size_t parts = 2 * groups <= op->cl->info.units
                     ? choose_parts(op, groups, SCL_CL_TUNE_gemm_split_groups, k)
                     : 1;
  if (parts > 1) return product_in_parts(op, &p, k, parts, NULL);
  return pays_to_transpose_a(op, &p) ? product_of_transposed(op, &p, true)
                                     : scl_cl_product_in(op, &p);
}

scl_status scl_cl_gemm(scl_context *ctx, double alpha, scl_trans trans_a, scl_block a,
                       scl_view view_a, scl_trans trans_b, scl_block b, scl_view view_b,
                       double beta, scl_block c, scl_region region) {
  scl_cl_op op;
  if (c.nrow == 0 || c.ncol == 0) return SCL_OK;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, a.buffer);
  scl_cl_op_reads(&op, b.buffer);
  scl_cl_op_writes(&op, c.buffer);
  SCL_TRY(scl_cl_op_order(&op, -1));
  return scl_cl_op_end(
      &op, scl_cl_gemm_in(&op, alpha, trans_a, a, view_a, trans_b, b, view_b, beta, c, region));
}
