/* Batched products on the double-precision matrix instructions of NVIDIA devices (mma.h), for
 * results larger than a warp's tile of batch_matmul_mma.cl: same parameters, any offsets and steps,
 * m and n up to 16 BATCH_STRIPS; used under the same conditions.
 *
 *                 op(B), 8 rows a step
 *                 +------------------+
 *       k -->     |                  | =====> ring in local memory, BATCH_STAGES steps:
 *      +---+      +------------------+        | A | B | A | B | A | B | ..
 *      |   |      | warp 0: 16 rows  |          ^
 *      |   | ==>  | warp 1: 16 rows  |        op(A), 8 columns a step
 *      |   |      | ..      of C     |
 *      +---+      +------------------+
 *
 * Work split. A group of BATCH_STRIPS warps has one C, a strip of 16 rows to each warp, in
 * registers. It walks along k in steps of 8: asynchronous copies fill a ring of BATCH_STAGES stages
 * in local memory. Copies are of single numbers, so that nothing has to lie on 16 bytes; past the
 * end of k they fill in zeros; rows (of op(A); columns of op(B)) past the last are read from the
 * last one, and their results not written. Blocks of 16 columns beyond the edge are not
 * multiplied. That condition also keeps the compiler from reading all of a step ahead, which takes
 * so many registers that a processor holds one group less, and a third more time.
 *
 * Layout. A step of an operand that is contiguous along k (deep) has a row of 8 numbers for each
 * row, else (flat) one of all rows for each k, in which an exclusive-or spreads them over the
 * banks. The instruction's k = t stands for 2t, and t + 4 for 2t + 1: of a deep operand a lane
 * reads both at once.
 *
 * To define before: BATCH_KERNEL, BATCH_STRIPS, BATCH_STAGES. */
#define DEPTH 8
#define ITEMS (32 * BATCH_STRIPS)
#define SIDE (16 * BATCH_STRIPS)
#define COLUMNS8 (SIDE / 8)
#define PART (SIDE * DEPTH) /* of an operand in a stage */
#define RING (BATCH_STAGES * 2 * PART)

/* Where row r at depth d of an operand lies in its part of a stage. */
MMA_INLINE int stage_place(const bool deep, const int r, const int d) {
  return deep ? r * DEPTH + d : d * SIDE + (r ^ (d / 2 * 4));
}

/* A work-item's copies of one operand, depths q to q + 7. */
MMA_INLINE void stage_copy(mma_copies *copies, const bool deep, __local real *part,
                           __global const real *x, const int rows, const int k, const int q,
                           const int item) {
  SCL_UNROLL for (int i = 0; i < PART / ITEMS; i++) {
    const int e = item + i * ITEMS;
    const int r = deep ? e / DEPTH : e % SIDE, d = deep ? e % DEPTH : e / SIDE;
    const int row = min(r, rows - 1), depth = min(q + d, k - 1);
    mma_copy_8(copies, part + stage_place(deep, r, d),
               x + (deep ? row * k + depth : row + depth * rows), q + d < k ? 8 : 0);
  }
}

/* Row r at depths 2t and 2t + 1. */
MMA_INLINE real2 stage_pair(const bool deep, __local const real *part, const int r, const int t) {
  if (deep) return *(__local const real2 *)(part + stage_place(true, r, 2 * t));
  return (real2)(part[stage_place(false, r, 2 * t)], part[stage_place(false, r, 2 * t + 1)]);
}

/* The copies of both operands, as one group of copies, which is empty past the end of k. */
MMA_INLINE void stage_fill(mma_copies *copies, const bool deep_a, const bool deep_b,
                           __local real *stage, __global const real *a, const int m,
                           __global const real *b, const int n, const int k, const int q,
                           const int item) {
  if (q < k) {
    if (deep_a) {
      stage_copy(copies, true, stage, a, m, k, q, item);
    } else {
      stage_copy(copies, false, stage, a, m, k, q, item);
    }
    if (deep_b) {
      stage_copy(copies, true, stage + PART, b, n, k, q, item);
    } else {
      stage_copy(copies, false, stage + PART, b, n, k, q, item);
    }
  }
  mma_commit(copies);
}

/* The product of a step; deep_a and deep_b are constants. */
MMA_COLLECTIVE void stage_multiply_of(const mma_lane lane, const bool deep_a, const bool deep_b,
                                      real sums[COLUMNS8][4], __local const real *stage,
                                      const int row, const int columns) {
  const int g = lane.quad, t = lane.member;
  const real2 low = stage_pair(deep_a, stage, row + g, t);
  const real2 high = stage_pair(deep_a, stage, row + g + 8, t);
  SCL_UNROLL for (int j = 0; j < COLUMNS8; j += 2) {
    const bool wanted = 8 * j < columns;
    MMA_IF(wanted) {
      const mma_lane here = mma_only(lane, wanted);
      const real2 b = stage_pair(deep_b, stage + PART, 8 * j + g, t);
      const real2 c = stage_pair(deep_b, stage + PART, 8 * j + 8 + g, t);
      mma_8(here, sums[j], low.x, high.x, low.y, high.y, b.x, b.y);
      mma_8(here, sums[j + 1], low.x, high.x, low.y, high.y, c.x, c.y);
    }
  }
}

MMA_COLLECTIVE void stage_multiply(const mma_lane lane, const bool deep_a, const bool deep_b,
                                   real sums[COLUMNS8][4], __local const real *stage, const int row,
                                   const int columns) {
  if (deep_a && deep_b) {
    stage_multiply_of(lane, true, true, sums, stage, row, columns);
  } else if (deep_a) {
    stage_multiply_of(lane, true, false, sums, stage, row, columns);
  } else if (deep_b) {
    stage_multiply_of(lane, false, true, sums, stage, row, columns);
  } else {
    stage_multiply_of(lane, false, false, sums, stage, row, columns);
  }
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void
BATCH_KERNEL(__global const real *a, __global const real *b, __global real *c,
             const batch_product_task task) {
  const int m = task.m, n = task.n, k = task.k, flags = task.flags;
  const int step_a = task.a_step, step_b = task.b_step, step_c = task.c_step;
  const long a0 = task.a_offset, b0 = task.b_offset, c0 = task.c_offset;
  __local real ring[RING] __attribute__((aligned(16)));
  MMA_LANE(lane, BATCH_STRIPS);
  mma_copies copies = MMA_NO_COPIES;
  const int item = (int)get_local_id(0), g = lane.quad, t = lane.member;
  const int row = item / 32 * 16, columns = row < m ? n : 0; /* of the warp's strip */
  const bool deep_a = (flags & BATCH_TRANSPOSE) != 0, deep_b = (flags & BATCH_TRANSPOSE_B) == 0;
  const long matrix = (long)get_group_id(0);
  a += a0 + matrix * step_a;
  b += b0 + matrix * step_b;
  c += c0 + matrix * step_c;
  real sums[COLUMNS8][4];
  SCL_UNROLL for (int j = 0; j < COLUMNS8; j++) {
    SCL_UNROLL for (int e = 0; e < 4; e++) sums[j][e] = 0.0;
  }

  SCL_UNROLL for (int s = 0; s < BATCH_STAGES - 1; s++) {
    stage_fill(&copies, deep_a, deep_b, ring + s * 2 * PART, a, m, b, n, k, s * DEPTH, item);
  }
  int from = 0, to = RING - 2 * PART; /* the stages to read and to fill */
  for (int q = 0; q < k; q += DEPTH) {
    MMA_WAIT(&copies, BATCH_STAGES - 2);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int ahead = q + (BATCH_STAGES - 1) * DEPTH;
    stage_fill(&copies, deep_a, deep_b, ring + to, a, m, b, n, k, ahead, item);
    stage_multiply(lane, deep_a, deep_b, sums, ring + from, row, columns);
    to = from;
    from = from == RING - 2 * PART ? 0 : from + 2 * PART;
  }

  SCL_UNROLL for (int j = 0; j < COLUMNS8; j++) {
    SCL_UNROLL for (int e = 0; e < 4; e++) {
      const int i = row + 8 * (e / 2) + g, l = 8 * j + 2 * t + e % 2;
      if (i < m && l < n) c[i + l * m] = sums[j][e];
    }
  }
}
