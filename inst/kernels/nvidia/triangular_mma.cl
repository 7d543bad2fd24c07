/* Substitution with a triangular block of order n <= PANEL_ORDER and many right-hand sides, in
 * place, on the double-precision matrix instructions of NVIDIA devices (mma.h): the twin of
 * triangular.cl, over panels_mma.h, tried on the device before it is used
 * (engine/cl/linalg/triangular_trial.c).
 *
 *   T  --pack-->  packed block columns 0 1 2 ..      (triangular_mma_pack: a group each)
 *                        | asynchronous copies, two block columns ahead
 *                        v
 *                 ring of three in local memory, shared by PANEL_WARPS warps
 *                        |
 *                        v                           (triangular_mma_solve)
 *   B' =  | x0 | x1 | x2 | .. |  warp 0: 16 right-hand sides, all unknowns in registers. Step p
 *         | x0 | x1 | x2 | .. |  warp 1  solves for the 16 unknowns x_p, writes them, and subtracts
 *         | ..                |          their products with block column p from the later ones.
 *
 * The eight forms are reduced to "L x = b" with a lower L as in triangular.cl: unknown p has the
 * index r(p) = p, or n-1-p if `reversed`; L(p, q) is T(r(p), r(q)), or T(r(q), r(p)) if
 * `transposed`.
 *
 * All take a batch in dimension 1, of which the last may be of order n_last. From n on L is
 * continued by the identity. */

#if defined(TRIANGULAR_MMA_PACK) || defined(TRIANGULAR_MMA_PACK_AND_COPY)

/* Inverse of a lower 16 x 16 block, one warp: lane i < 16 has row i of L in l, and gets row i of
 * the transposed inverse in x. */
MMA_COLLECTIVE void invert16(const mma_lane lane, real x[16], const real l[16]) {
  real reciprocal = 1.0; /* of the element on the diagonal */
  SCL_UNROLL
  for (int j = 0; j < 16; j++) reciprocal = lane.lane == j ? l[j] : reciprocal;
  reciprocal = 1.0 / reciprocal;
  SCL_UNROLL
  for (int j = 0; j < 16; j++) x[j] = lane.lane == j ? 1.0 : 0.0;
  SCL_UNROLL
  for (int j = 0; j < 16; j++) {
    x[j] *= mma_value_of(lane, reciprocal, j);
    SCL_UNROLL
    for (int c = j + 1; c < 16; c++) x[c] = fma(-x[j], mma_value_of(lane, l[j], c), x[c]);
  }
}

/* L(row, column). */
SCL_INLINE real triangular_entry(__global const real *t, const int ld, const int n, const int row,
                                 const int column, const int transposed, const int reversed) {
  if (row >= n || column >= n) return row == column ? 1.0 : 0.0;
  const int i = reversed ? n - 1 - row : row, j = reversed ? n - 1 - column : column;
  return t[transposed ? j + (long)i * ld : i + (long)j * ld];
}

/* Packs block column p of a block of T; a group of PANEL_BLOCKS warps. */
MMA_COLLECTIVE void triangular_pack(const mma_lane warp_lane, __global const real *t, const int ld,
                                    const int order, const int p, const int transposed,
                                    const int reversed, __global real *packed, const int item) {
  const bool inverts = item < 32;
  const mma_lane lane = mma_only(warp_lane, inverts);
  packed += PANEL_START(p);
  MMA_IF(inverts) {
    real l[16], x[16];
    SCL_UNROLL
    for (int k = 0; k < 16; k++) {
      const int row = lane.lane & 15;
      l[k] = k <= row
                 ? triangular_entry(t, ld, order, 16 * p + row, 16 * p + k, transposed, reversed)
                 : 0.0;
    }
    invert16(lane, x, l);
    if (mma_is_active(lane) && lane.lane < 16) {
      SCL_UNROLL
      for (int k = 0; k < 16; k++) {
        packed[PANEL_AT(lane.lane, k)] = -l[k];
        packed[PANEL_INVERSE + PANEL_AT(k, lane.lane)] = x[k];
      }
    }
  }
  /* the rows below, work-items run along the contiguous direction of T */
  const int rows = PANEL_ORDER - 16 * (p + 1);
  for (int e = item; e < 16 * rows; e += 32 * PANEL_BLOCKS) {
    const int row = 16 + (transposed ? e / 16 : e % rows), k = transposed ? e % 16 : e / rows;
    packed[PANEL_INVERSE + PANEL_AT(row, k)] =
        -triangular_entry(t, ld, order, 16 * p + row, 16 * p + k, transposed, reversed);
  }
}

#endif

#ifdef TRIANGULAR_MMA_PACK

/* Dimension 0 counts the block columns of a block of T. */
__kernel __attribute__((reqd_work_group_size(32 * PANEL_BLOCKS, 1, 1))) void
triangular_mma_pack(const int n, const int n_last, __global const real *t, const long t_offset,
                    const int ld, const long step_t, const int transposed, const int reversed,
                    __global real *packed) {
  MMA_LANE(lane, PANEL_BLOCKS);
  const int which = get_group_id(1), last = which == (int)get_num_groups(1) - 1;
  triangular_pack(lane, t + t_offset + which * step_t, ld, last ? n_last : n, get_group_id(0),
                  transposed, reversed, packed + (long)which * PANEL_PACKED, get_local_id(0));
}

#endif

#ifdef TRIANGULAR_MMA_PACK_AND_COPY

/* The same for the diagonal blocks of a matrix of order n; also, the lower triangles of the
 * diagonal blocks of order `block` of another are copied from `src` to `copy`, with zeros above.
 * Dimension 1 counts blocks of PANEL_ORDER rows; in dimension 0 the first PANEL_BLOCKS groups pack
 * one, the others copy its rows, TRIANGULAR_COPY columns each. */
__kernel __attribute__((reqd_work_group_size(32 * PANEL_BLOCKS, 1, 1))) void
triangular_mma_pack_and_copy(__global const real *t, const long t_offset, const int ld,
                             __global real *packed, __global const real *src, const long src_offset,
                             const int src_ld, __global real *copy, const long copy_offset,
                             const int copy_ld, const triangular_packing packing) {
  MMA_LANE(lane, PANEL_BLOCKS);
  const int n = packing.n, block = packing.block;
  const int item = get_local_id(0), p = get_group_id(0), which = get_group_id(1);
  const int first = which * PANEL_ORDER, order = min(PANEL_ORDER, n - first);
  if (p < PANEL_BLOCKS) {
    triangular_pack(lane, t + t_offset + first * ((long)ld + 1), ld, order, p, packing.transposed,
                    packing.reversed, packed + (long)which * PANEL_PACKED, item);
    return;
  }
  enum { STEP = 32 * PANEL_BLOCKS / PANEL_ORDER, STEPS = TRIANGULAR_COPY / STEP };
  const int row = first + item % PANEL_ORDER, from = first / block * block;
  const int column = from + (p - PANEL_BLOCKS) * TRIANGULAR_COPY + item / PANEL_ORDER;
  const int end = min(n, from + block);
  if (row >= n) return;
  src += src_offset + row;
  copy += copy_offset + row;
  real value[STEPS]; /* so that all loads overlap */
  SCL_UNROLL
  for (int i = 0; i < STEPS; i++) value[i] = src[(long)min(column + i * STEP, end - 1) * src_ld];
  SCL_UNROLL
  for (int i = 0; i < STEPS; i++) {
    const int to = column + i * STEP;
    if (to < end) copy[(long)to * copy_ld] = to <= row ? value[i] : 0.0;
  }
}

#endif

#ifdef TRIANGULAR_MMA_SOLVE

/* The two right-hand sides of a lane. */
typedef struct {
  __global real *b;  /* the first of this lane's unknowns */
  int order, stride; /* stride: to the next unknown in the order of solving */
  long next;         /* from the first right-hand side to the second */
  int first, count;  /* number of the first; how many of the two exist */
  int identity, reversed;
} triangular_sides;

/* Reads 16 unknowns from number `unknown` on, 4 by this lane, as a block of panels_mma.h. */
MMA_INLINE void sides_read(const triangular_sides *sides, const int unknown, const int member,
                           real block[2][4]) {
  SCL_UNROLL
  for (int h = 0; h < 2; h++) {
    SCL_UNROLL
    for (int e = 0; e < 2; e++) {
      const int offset = unknown + 8 * h + e, position = offset + 2 * member;
      real2 pair = 0.0;
      if (sides->identity) {
        const int index = sides->reversed ? sides->order - 1 - position : position;
        pair.x = index == sides->first ? 1.0 : 0.0;
        pair.y = index == sides->first + 1 ? 1.0 : 0.0;
      } else if (position < sides->order) {
        __global const real *from = sides->b + (long)offset * sides->stride;
        if (sides->next == 1 && sides->count == 2) {
          pair = *(__global const real2 *)from;
        } else {
          if (sides->count > 0) pair.x = from[0];
          if (sides->count > 1) pair.y = from[sides->next];
        }
      }
      block[h][e] = pair.x;
      block[h][2 + e] = pair.y;
    }
  }
}

/* Writes them, once solved. */
MMA_INLINE void sides_write(const triangular_sides *sides, const int unknown, const int member,
                            real solved[2][4]) {
  SCL_UNROLL
  for (int h = 0; h < 2; h++) {
    SCL_UNROLL
    for (int e = 0; e < 2; e++) {
      const int offset = unknown + 8 * h + e;
      if (offset + 2 * member < sides->order) {
        __global real *to = sides->b + (long)offset * sides->stride;
        if (sides->next == 1 && sides->count == 2) {
          *(__global real2 *)to = (real2)(solved[h][e], solved[h][2 + e]);
        } else {
          if (sides->count > 0) to[0] = solved[h][e];
          if (sides->count > 1) to[sides->next] = solved[h][2 + e];
        }
      }
    }
  }
}

/* Starts the copies of packed block column p to the ring; past the last one an empty group. */
MMA_INLINE void column_copy(mma_copies *copies, __local real *ring, __global const real *packed,
                            const int p, const int item) {
  for (int i = 2 * item; p < PANEL_BLOCKS && i < PANEL_COLUMN(p); i += 64 * PANEL_WARPS)
    mma_copy_16(copies, ring + PANEL_START(p % 3) + i, packed + PANEL_START(p) + i, 16);
  mma_commit(copies);
}

/* One of unknown_step and side_step is 1. With `identity` B is not read: its element is 1 where
 * r(p) is the number of the right-hand side, else 0. */
__kernel __attribute__((reqd_work_group_size(32 * PANEL_WARPS, 1, 1))) void
triangular_mma_solve(__global real *b, const long b_offset, __global const real *packed,
                     const long packed_offset, const triangular_task task) {
  /* three block columns, each smaller than the one before */
  __local real ring[PANEL_START(3)] __attribute__((aligned(128)));
  MMA_LANE(lane, PANEL_WARPS);
  mma_copies copies = MMA_NO_COPIES;
  const int item = get_local_id(0), member = lane.member;
  const int which = get_group_id(1), last = which == (int)get_num_groups(1) - 1;
  const int order = last ? task.n_last : task.n, reversed = task.reversed;
  const long step = task.unknown_step, next = task.side_step;
  const int first = 16 * (PANEL_WARPS * (int)get_group_id(0) + (item >> 5)) + 2 * lane.quad;
  const int stride = reversed ? -(int)step : (int)step;
  b += b_offset + which * task.b_step + first * next;
  packed += packed_offset + which * task.t_step;
  if (reversed) b += (order - 1) * step;
  const triangular_sides sides = {.b = b + 2 * member * (long)stride,
                                  .order = order,
                                  .stride = stride,
                                  .next = next,
                                  .first = first,
                                  .count = clamp((last ? task.rhs_last : task.rhs) - first, 0, 2),
                                  .identity = task.identity,
                                  .reversed = reversed};
  column_copy(&copies, ring, packed, 0, item);
  column_copy(&copies, ring, packed, 1, item);

  real head[2][4], tail[PANEL_TAIL][2][4];
  sides_read(&sides, 0, member, head);
  SCL_UNROLL
  for (int s = 0; s < PANEL_TAIL; s++) sides_read(&sides, 16 * (s + 1), member, tail[s]);

  /* Unrolled: guards of a looped body would end the overlap of the chains. */
  SCL_UNROLL
  for (int p = 0; p < PANEL_BLOCKS; p++) {
    MMA_WAIT(&copies, 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    column_copy(&copies, ring, packed, p + 2, item);
    __local const real *column = ring + PANEL_START(p % 3), *below = column + PANEL_INVERSE;
    real solved[2][4];
    solve16(lane, solved, head, column);
    sides_write(&sides, 16 * p, member, solved);
    if (p + 1 < PANEL_BLOCKS) times16(lane, head, tail[0], solved, below, 16);
    SCL_UNROLL
    for (int s = 1; s < PANEL_TAIL; s++) {
      if (p + 1 + s < PANEL_BLOCKS)
        times16(lane, tail[s - 1], tail[s], solved, below, 16 * (1 + s));
    }
  }
}

#endif
