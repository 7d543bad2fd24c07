/* C = alpha op(A) op(B) + beta F on the double-precision matrix instructions of NVIDIA devices
 * (mma.h): the kernels of gemm.cl again, with the same parameters, F, which may be C, and T, which
 * gets the transposed C too where the region is GEMM_TURNED.
 *
 * Assumptions beyond those of gemm.cl: offsets, leading dimensions and batch steps are even and
 * buffers aligned to 16 bytes. Compiled once for each tile size (gemm_mma_tiny.h and others). Only
 * used on devices on which a probe has built it and found its product exact
 * (engine/cl/runtime/variant.c).
 *
 * Work split. A group of 4 or 8 warps has a tile of MMA_TILE_M x MMA_TILE_N, each warp a part of
 * MMA_WARP_M x MMA_WARP_N of it in registers. It walks along k in stages of 8, with a barrier after
 * every MMA_TOGETHER of them: asynchronous copies fill a ring of MMA_STAGES stages in local memory
 * some stages ahead; fragments for the next instructions are loaded while the current ones run,
 * across the barrier too.
 *
 * Rows. An operand is called deep when it is contiguous along k (A transposed, B not), else flat.
 * In local memory a flat operand has 8 rows, one for each k, of TILE doubles; a deep one has TILE
 * rows of 8 doubles, as it lies in global memory. Exclusive-ors in mma_place() spread both over the
 * banks. All local loads are 16 bytes: two rows at one k of a flat operand, two k at one row of a
 * deep one.
 *
 * Relabelling. The instruction's lane l has g = l / 4 and t = l % 4. Its rows g and g + 8 stand for
 * the matrix rows 2g and 2g + 1, and in step s of a stage (s = 0, 1) its k = t stands for k = 2t +
 * s. The two instructions of 8 columns that cover 16 columns of a flat B take its even and its odd
 * columns. None of this changes a sum; it makes pairs of neighbours out of what a lane needs.
 *
 * Edges. Copies past the end of k fill in zeros, so that the number of stages suits the loop; rows
 * past the last one are read from the last one, and their results not written. */

#define MMA_DEPTH 8
#define MMA_ITEMS (MMA_TILE_M / MMA_WARP_M * (MMA_TILE_N / MMA_WARP_N) * 32)
#define MMA_ROWS16 (MMA_WARP_M / 16)    /* blocks of 16 rows in a warp's part */
#define MMA_COLUMNS16 (MMA_WARP_N / 16) /* blocks of 16 columns */
#define MMA_STAGE (MMA_DEPTH * (MMA_TILE_M + MMA_TILE_N))
#ifndef MMA_ORDER
#define MMA_ORDER 8 /* tile rows taken together, for reuse in the second-level cache */
#endif

/* Stages that may still be on their way when the next ones are read: each is a group of copies. */
#define MMA_LATEST (MMA_STAGES - 2 * MMA_TOGETHER)

/* ---- a stage in local memory
 * --------------------------------------------------------------------- */

/* Where (row r, depth d) of an operand lies. `swap` distinguishes A from B among deep operands: A
 * is read by rows 2g and 2g + 1, B by rows g and g + 8. */
MMA_INLINE int mma_place(const int deep, const int swap, const int tile, const int r, const int d) {
  if (!deep) return d * tile + (r ^ ((d >> 1 & 3) << 2));
  return (swap ? r ^ (r >> 1 & 1) : r) * MMA_DEPTH + d;
}

#define MMA_COPIES(tile) ((tile)*MMA_DEPTH / 2 / MMA_ITEMS) /* 16-byte copies of a work-item */

/* Row and depth, in a stage, of a work-item's i-th copy. */
#define MMA_COPY_PLACE(deep, tile, i, r, d)                                                        \
  const int pair_ = item + (i)*MMA_ITEMS;                                                          \
  const int r = (deep) ? pair_ / (MMA_DEPTH / 2) : pair_ % ((tile) / 2) * 2;                       \
  const int d = (deep) ? pair_ % (MMA_DEPTH / 2) * 2 : pair_ / ((tile) / 2)

/* Where a work-item's copies come from, counted from the first element of a stage. Rows past the
 * last are taken to be the last ones: what they give is never written. */
MMA_INLINE void mma_aim(const int deep, const int tile, int *from, const int ld, const int rows,
                        const int item) {
  SCL_UNROLL
  for (int i = 0; i < MMA_COPIES(tile); i++) {
    MMA_COPY_PLACE(deep, tile, i, r, d);
    from[i] = deep ? min(r, rows - 1) * ld + d : min(r, (rows - 1) & ~1) + d * ld;
  }
}

/* Starts the copies of one operand's stage; x points at its first element, `depth` depths exist. */
MMA_INLINE void mma_copy(mma_copies *copies, const int deep, const int swap, const int tile,
                         __local real *stage, __global const real *x, const int *from,
                         const int depth, const int item) {
  SCL_UNROLL
  for (int i = 0; i < MMA_COPIES(tile); i++) {
    MMA_COPY_PLACE(deep, tile, i, r, d);
    const int bytes = deep ? 8 * clamp(depth - d, 0, 2) : d < depth ? 16 : 0;
    mma_copy_16(copies, stage + mma_place(deep, swap, tile, r, d), x + from[i], bytes);
  }
}

/* ---- fragments
 * ------------------------------------------------------------------------------------ */

/* A lane's share of one block of 16 rows (of A) or columns (of B) in a stage: of a flat operand
 * x[s] holds two neighbours at step s; of a deep one x[h] holds both steps of neighbour h. */
MMA_INLINE real2 mma_fragment(const int deep, const int swap, const int tile,
                              __local const real *stage, const int first, const int which,
                              const mma_lane lane) {
  const int g = lane.quad, t = lane.member;
  int place;
  if (deep) {
    const int r = swap ? 2 * g + which : g + 8 * which;
    place = (first + (swap ? r ^ (g & 1) : r)) * MMA_DEPTH + 2 * t;
  } else {
    place = (2 * t + which) * tile + first + ((2 * g) ^ (4 * t));
  }
  return *(__local const real2 *)(stage + place);
}

/* ---- one tile
 * ------------------------------------------------------------------------------------- */

typedef struct {
  real2 a[MMA_ROWS16][2], b[MMA_COLUMNS16][2];
} mma_fragments;

/* Element of neighbour h at step s. */
#define MMA_PICK(deep, pair, h, s)                                                                 \
  ((deep) ? ((s) ? (pair)[h].y : (pair)[h].x) : ((h) ? (pair)[s].y : (pair)[s].x))

MMA_INLINE void mma_load(const int deep_a, const int deep_b, mma_fragments *f, const int which,
                         __local const real *stage, const int warp_row, const int warp_column,
                         const mma_lane lane) {
  SCL_UNROLL
  for (int i = 0; i < MMA_ROWS16; i++)
    f->a[i][which] = mma_fragment(deep_a, 1, MMA_TILE_M, stage, warp_row + 16 * i, which, lane);
  SCL_UNROLL
  for (int j = 0; j < MMA_COLUMNS16; j++)
    f->b[j][which] = mma_fragment(deep_b, 0, MMA_TILE_N, stage + MMA_DEPTH * MMA_TILE_M,
                                  warp_column + 16 * j, which, lane);
}

/* Both steps of a stage at once, by the deeper instruction. */
MMA_COLLECTIVE void mma_multiply_stage(const mma_lane lane, const int deep_a, const int deep_b,
                                       real c[MMA_ROWS16][2 * MMA_COLUMNS16][4],
                                       const mma_fragments *f) {
  SCL_UNROLL
  for (int i = 0; i < MMA_ROWS16; i++) {
    SCL_UNROLL
    for (int j = 0; j < MMA_COLUMNS16; j++) {
      SCL_UNROLL
      for (int h = 0; h < 2; h++)
        mma_8(lane, c[i][2 * j + h], MMA_PICK(deep_a, f->a[i], 0, 0),
              MMA_PICK(deep_a, f->a[i], 1, 0), MMA_PICK(deep_a, f->a[i], 0, 1),
              MMA_PICK(deep_a, f->a[i], 1, 1), MMA_PICK(deep_b, f->b[j], h, 0),
              MMA_PICK(deep_b, f->b[j], h, 1));
    }
  }
}

/* One step, for two flat operands: their fragments come step by step. */
MMA_COLLECTIVE void mma_multiply_step(const mma_lane lane, real c[MMA_ROWS16][2 * MMA_COLUMNS16][4],
                                      const mma_fragments *f, const int s) {
  SCL_UNROLL
  for (int i = 0; i < MMA_ROWS16; i++) {
    SCL_UNROLL
    for (int j = 0; j < MMA_COLUMNS16; j++) {
      mma_4(lane, c[i][2 * j], f->a[i][s].x, f->a[i][s].y, f->b[j][s].x);
      mma_4(lane, c[i][2 * j + 1], f->a[i][s].x, f->a[i][s].y, f->b[j][s].y);
    }
  }
}

/* The pair p of neighbouring columns that a lane holds within 16 columns starts here; its element
 * in row 2g + r and column q of the pair is this accumulator. */
#define MMA_COLUMN(deep_b, p) ((deep_b) ? 8 * (p) + 2 * t : 4 * t + 2 * (p))
#define MMA_ELEMENT(deep_b, i, j, r, p, q)                                                         \
  ((deep_b) ? c[i][2 * (j) + (p)][2 * (r) + (q)] : c[i][2 * (j) + (q)][2 * (r) + (p)])

/* Writes a lane's elements of a tile inside C and off its diagonal, transposed to T unless that is
 * NULL. F is read in batches before C is written: the compiler cannot know that the addresses
 * differ. */
MMA_INLINE void mma_write_inside(const int deep_b, real c[MMA_ROWS16][2 * MMA_COLUMNS16][4],
                                 const int row0, const int column0, const real alpha,
                                 const real beta, __global const real *F, const int ldf,
                                 __global real *C, const int ldc, __global real *T, const int ldt,
                                 const int t) {
  SCL_UNROLL
  for (int j = 0; j < MMA_COLUMNS16; j++) {
    SCL_UNROLL
    for (int p = 0; p < 2; p++) {
      const int column = column0 + 16 * j + MMA_COLUMN(deep_b, p);
      real2 v[2][MMA_ROWS16];
      SCL_UNROLL
      for (int q = 0; q < 2; q++) {
        SCL_UNROLL
        for (int i = 0; i < MMA_ROWS16; i++) {
          v[q][i] = alpha *
                    (real2)(MMA_ELEMENT(deep_b, i, j, 0, p, q), MMA_ELEMENT(deep_b, i, j, 1, p, q));
          if (beta != 0.0)
            v[q][i] +=
                beta * *(__global const real2 *)(F + row0 + 16 * i + (long)(column + q) * ldf);
        }
      }
      SCL_UNROLL
      for (int q = 0; q < 2; q++) {
        SCL_UNROLL
        for (int i = 0; i < MMA_ROWS16; i++)
          *(__global real2 *)(C + row0 + 16 * i + (long)(column + q) * ldc) = v[q][i];
      }
      if (T) {
        SCL_UNROLL
        for (int i = 0; i < MMA_ROWS16; i++) {
          __global real *to = T + column + (long)(row0 + 16 * i) * ldt;
          *(__global real2 *)to = (real2)(v[0][i].x, v[1][i].x);
          *(__global real2 *)(to + ldt) = (real2)(v[0][i].y, v[1][i].y);
        }
      }
    }
  }
}

/* The same, element by element, for tiles at the edge of C or on its diagonal. */
MMA_INLINE void mma_write_guarded(const int deep_b, real c[MMA_ROWS16][2 * MMA_COLUMNS16][4],
                                  const int row0, const int column0, const int m, const int n,
                                  const real alpha, const real beta, __global const real *F,
                                  const int ldf, __global real *C, const int ldc, __global real *T,
                                  const int ldt, const int whole, const int t) {
  SCL_UNROLL
  for (int i = 0; i < MMA_ROWS16; i++) {
    SCL_UNROLL
    for (int j = 0; j < MMA_COLUMNS16; j++) {
      SCL_UNROLL
      for (int x = 0; x < 8; x++) {
        const int r = x & 1, p = x >> 1 & 1, q = x >> 2;
        const int row = row0 + 16 * i + r, column = column0 + 16 * j + MMA_COLUMN(deep_b, p) + q;
        if (row < m && column < n && (whole || row >= column)) {
          __global real *to = C + row + (long)column * ldc;
          real value = alpha * MMA_ELEMENT(deep_b, i, j, r, p, q);
          if (beta != 0.0) value = fma(beta, F[row + (long)column * ldf], value);
          *to = value;
          if (T) T[column + (long)row * ldt] = value;
        }
      }
    }
  }
}

/* One product of a batch. */
typedef struct {
  __global const real *a, *b, *from;
  __global real *c, *transposed; /* NULL: C is not written transposed */
  int a_ld, b_ld, c_ld, from_ld, transposed_ld;
  int m, n, k;
  int views, whole; /* whole: also above the diagonal */
  real alpha, beta;
} mma_product;

/* `deep_a` and `deep_b` are constants at every call. */
MMA_COLLECTIVE void mma_tile(const int deep_a, const int deep_b, const mma_product *product,
                             const int row0, const int column0, __local real *ring,
                             const mma_lane lane) {
  __global const real *A = product->a, *B = product->b, *F = product->from;
  __global real *C = product->c, *T = product->transposed;
  const int lda = product->a_ld, ldb = product->b_ld, ldc = product->c_ld;
  const int ldf = product->from_ld, ldt = product->transposed_ld;
  const int m = product->m, n = product->n, k = product->k;
  const int views = product->views, whole = product->whole;
  const real alpha = product->alpha, beta = product->beta;
  const int item = get_local_id(0);
  const int warp = item >> 5, warps_m = MMA_TILE_M / MMA_WARP_M;
  const int warp_row = warp % warps_m * MMA_WARP_M, warp_column = warp / warps_m * MMA_WARP_N;

  int begin = 0, end = k;
  if (views & GEMM_A_LOWER) end = min(end, row0 + MMA_TILE_M);
  if (views & GEMM_A_UPPER) begin = max(begin, row0);
  if (views & GEMM_B_LOWER) begin = max(begin, column0);
  if (views & GEMM_B_UPPER) end = min(end, column0 + MMA_TILE_N);

  real c[MMA_ROWS16][2 * MMA_COLUMNS16][4];
  SCL_UNROLL
  for (int i = 0; i < MMA_ROWS16; i++) {
    SCL_UNROLL
    for (int j = 0; j < 2 * MMA_COLUMNS16; j++) {
      SCL_UNROLL
      for (int e = 0; e < 4; e++) c[i][j][e] = 0.0;
    }
  }

  A += deep_a ? begin + (long)row0 * lda : row0 + (long)begin * lda;
  B += deep_b ? begin + (long)column0 * ldb : column0 + (long)begin * ldb;
  const long advance_a = deep_a ? (long)MMA_DEPTH : (long)MMA_DEPTH * lda;
  const long advance_b = deep_b ? (long)MMA_DEPTH : (long)MMA_DEPTH * ldb;
  int from_a[MMA_COPIES(MMA_TILE_M)], from_b[MMA_COPIES(MMA_TILE_N)];
  mma_aim(deep_a, MMA_TILE_M, from_a, lda, m - row0, item);
  mma_aim(deep_b, MMA_TILE_N, from_b, ldb, n - column0, item);
  int left = end - begin;                        /* depths not yet on their way */
  const int turn = 2 * MMA_TOGETHER * MMA_DEPTH; /* of the loop below */
  const int stages = left > 0 ? (left + turn - 1) / turn * (2 * MMA_TOGETHER) : 0;
  mma_copies copies = MMA_NO_COPIES;
  int to = 0, from = 0; /* offsets of the stages to fill and to read */

#define MMA_NEXT(place) ((place) == (MMA_STAGES - 1) * MMA_STAGE ? 0 : (place) + MMA_STAGE)
#define MMA_FILL()                                                                                 \
  do {                                                                                             \
    mma_copy(&copies, deep_a, 1, MMA_TILE_M, ring + to, A, from_a, left, item);                    \
    mma_copy(&copies, deep_b, 0, MMA_TILE_N, ring + to + MMA_DEPTH * MMA_TILE_M, B, from_b, left,  \
             item);                                                                                \
    mma_commit(&copies);                                                                           \
    A += advance_a;                                                                                \
    B += advance_b;                                                                                \
    left -= MMA_DEPTH;                                                                             \
    to = MMA_NEXT(to);                                                                             \
  } while (0)
#define MMA_LOAD(f, which, stage)                                                                  \
  mma_load(deep_a, deep_b, f, which, ring + (stage), warp_row, warp_column, lane)
/* The next stages are there, for all: every work-item has waited for its own copies. */
#define MMA_ARRIVE()                                                                               \
  do {                                                                                             \
    MMA_WAIT(&copies, MMA_LATEST);                                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    from = from == (MMA_STAGES - MMA_TOGETHER) * MMA_STAGE ? 0 : from + MMA_TOGETHER * MMA_STAGE;  \
  } while (0)
#define MMA_LOAD_STAGES(f)                                                                         \
  do {                                                                                             \
    SCL_UNROLL                                                                                     \
    for (int i = 0; i < MMA_TOGETHER; i++) {                                                       \
      MMA_LOAD(f + i, 0, from + i * MMA_STAGE);                                                    \
      MMA_LOAD(f + i, 1, from + i * MMA_STAGE);                                                    \
    }                                                                                              \
  } while (0)
/* Refill the stages read before the last barrier, load the next ones, multiply these. */
#define MMA_ADVANCE(current, next)                                                                 \
  do {                                                                                             \
    SCL_UNROLL                                                                                     \
    for (int i = 0; i < MMA_TOGETHER; i++) MMA_FILL();                                             \
    MMA_ARRIVE();                                                                                  \
    MMA_LOAD_STAGES(next);                                                                         \
    SCL_UNROLL                                                                                     \
    for (int i = 0; i < MMA_TOGETHER; i++)                                                         \
      mma_multiply_stage(lane, deep_a, deep_b, c, current + i);                                    \
  } while (0)

  if (stages > 0) {
    for (int s = 0; s < MMA_STAGES - MMA_TOGETHER; s++) MMA_FILL();
    MMA_WAIT(&copies, MMA_LATEST);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (deep_a | deep_b | (MMA_TOGETHER > 1)) {
      mma_fragments even[MMA_TOGETHER], odd[MMA_TOGETHER];
      MMA_LOAD_STAGES(even);
      for (int s = 0; s < stages; s += 2 * MMA_TOGETHER) {
        MMA_ADVANCE(even, odd);
        MMA_ADVANCE(odd, even);
      }
    } else {
      mma_fragments f;
      MMA_LOAD(&f, 0, from);
      for (int s = 0; s < stages; s++) {
        MMA_LOAD(&f, 1, from);
        MMA_FILL();
        mma_multiply_step(lane, c, &f, 0);
        MMA_ARRIVE();
        MMA_LOAD(&f, 0, from);
        mma_multiply_step(lane, c, &f, 1);
      }
    }
  }

  const int row = row0 + warp_row + 2 * lane.quad, column = column0 + warp_column;
  const int inside = row0 + MMA_TILE_M <= m && column0 + MMA_TILE_N <= n &&
                     (whole || row0 >= column0 + MMA_TILE_N);
  if (inside)
    mma_write_inside(deep_b, c, row, column, alpha, beta, F, ldf, C, ldc, T, ldt, lane.member);
  else
    mma_write_guarded(deep_b, c, row, column, m, n, alpha, beta, F, ldf, C, ldc, T, ldt, whole,
                      lane.member);
}

/* The memory of a batch of products. */
typedef struct {
  __global const real *a, *b, *from;
  __global real *c, *transposed;
} mma_operands;

/* Tile number `tile` of product number `which`, the last one or not. */
MMA_COLLECTIVE void mma_product_tile(const int deep_a, const int deep_b, const int tile,
                                     const int which, const int last, __local real *ring,
                                     const mma_lane lane, const mma_operands *operands,
                                     const gemm_task *task) {
  const int m = task->m, n = task->n, region = task->region;
  const int tiles_m = (m + MMA_TILE_M - 1) / MMA_TILE_M;
  const int tiles_n = (n + MMA_TILE_N - 1) / MMA_TILE_N;
  const int band = tile / (MMA_ORDER * tiles_n), within = tile % (MMA_ORDER * tiles_n);
  const int rows = min(MMA_ORDER, tiles_m - band * MMA_ORDER);
  const int row0 = (band * MMA_ORDER + within % rows) * MMA_TILE_M;
  const int column0 = within / rows * MMA_TILE_N;
  const int m_here = last ? task->m_last : m, n_here = last ? task->n_last : n;
  if (row0 >= m_here || column0 >= n_here) return;
  const int whole = region == GEMM_ALL || region == GEMM_TURNED;
  if (!whole && row0 + MMA_TILE_M <= column0) return;
  __global real *c = operands->c + task->c_offset + which * task->c_step;
  __global real *transposed = region == GEMM_MIRRORED ? c
                              : region == GEMM_TURNED
                                  ? operands->transposed + task->transposed_offset
                                  : 0;
  const mma_product product = {
      .a = operands->a + task->a_offset + which * task->a_step,
      .b = operands->b + task->b_offset + which * task->b_step,
      .from = operands->from + task->from_offset + which * task->c_step,
      .c = c,
      .transposed = transposed,
      .a_ld = task->a_ld,
      .b_ld = task->b_ld,
      .c_ld = task->c_ld,
      .from_ld = task->from_ld,
      .transposed_ld = region == GEMM_MIRRORED ? task->c_ld : task->transposed_ld,
      .m = m_here,
      .n = n_here,
      .k = last ? task->k_last : task->k,
      .views = task->views,
      .whole = whole,
      .alpha = task->alpha,
      .beta = task->beta};
  mma_tile(deep_a, deep_b, &product, row0, column0, ring, lane);
}

#define MMA_RING(name) __local real name[MMA_STAGES * MMA_STAGE] __attribute__((aligned(128)))

#ifdef MMA_PAIR

/* Two products that do not need each other: the first groups do a batch of A' B, the others a batch
 * of A B. */
__kernel __attribute__((reqd_work_group_size(MMA_ITEMS, 1, 1))) void
MMA_PAIR(__global const real *a1, __global const real *b1, __global real *c1,
         __global const real *from1, __global real *transposed1, const gemm_task task1,
         __global const real *a2, __global const real *b2, __global real *c2,
         __global const real *from2, __global real *transposed2, const gemm_task task2) {
  MMA_RING(ring);
  MMA_LANE(lane, MMA_ITEMS / 32);
  const int group = get_group_id(0), other = group - task1.tiles * task1.batch;
  if (other < 0) {
    const mma_operands operands = {a1, b1, from1, c1, transposed1};
    const int tiles = task1.tiles, which = group / tiles;
    mma_product_tile(1, 1, group - which * tiles, which, which == task1.batch - 1, ring, lane,
                     &operands, &task1);
  } else {
    const mma_operands operands = {a2, b2, from2, c2, transposed2};
    const int tiles = task2.tiles, which = other / tiles;
    mma_product_tile(0, 1, other - which * tiles, which, which == task2.batch - 1, ring, lane,
                     &operands, &task2);
  }
}

#else

__kernel __attribute__((reqd_work_group_size(MMA_ITEMS, 1, 1))) void
MMA_NAME(__global const real *a, __global const real *b, __global real *c,
         __global const real *from, __global real *transposed, const gemm_task task) {
  MMA_RING(ring);
  MMA_LANE(lane, MMA_ITEMS / 32);
  const mma_operands operands = {a, b, from, c, transposed};
  const int which = get_group_id(1), last = which == (int)get_num_groups(1) - 1;
  mma_product_tile(MMA_DEEP_A, MMA_DEEP_B, get_group_id(0), which, last, ring, lane, &operands,
                   &task);
}

#endif
