/* Substitution with a triangular block of order n <= PANEL_ORDER and many right-hand sides, in
 * place, on the double-precision matrix instructions of NVIDIA devices (mma.h): the twin of
 * triangular.cl, over panels_mma.h, used under the same conditions as gemm_mma.cl.
 *
 * The eight forms are reduced to "L x = b" with a lower L as in triangular.cl: unknown p has the
 * index r(p) = p, or n-1-p if `reversed`; L(p, q) is T(r(p), r(q)), or T(r(q), r(p)) if
 * `transposed`. triangular_mma_pack writes L in packed form, triangular_mma_solve substitutes with
 * it, 16 unknowns at a time.
 *
 * Both take a batch in dimension 1, of which the last may be of order n_last. From n on L is
 * continued by the identity. */

#if defined(TRIANGULAR_MMA_PACK) || defined(TRIANGULAR_MMA_PACK_AND_COPY)

/* Inverse of a lower 16 x 16 block, one warp: lane i < 16 has row i of L in l, and gets row i of
 * the transposed inverse in x. */
MMA_COLLECTIVE void invert16(const mma_lane lane, real x[16], const real l[16]) {
  real own = 1.0; /* of the diagonal */
  SCL_UNROLL
  for (int j = 0; j < 16; j++) own = lane.lane == j ? l[j] : own;
  own = 1.0 / own;
  SCL_UNROLL
  for (int j = 0; j < 16; j++) x[j] = lane.lane == j ? 1.0 : 0.0;
  SCL_UNROLL
  for (int j = 0; j < 16; j++) {
    x[j] *= mma_value_of(lane, own, j);
    SCL_UNROLL
    for (int c = j + 1; c < 16; c++) x[c] = fma(-x[j], mma_value_of(lane, l[j], c), x[c]);
  }
}

SCL_INLINE real triangular_entry(__global const real *T, const int ld, const int n, const int p,
                                 const int q, const int transposed, const int reversed) {
  if (p >= n || q >= n) return p == q ? 1.0 : 0.0;
  const int r = reversed ? n - 1 - p : p, s = reversed ? n - 1 - q : q;
  return T[transposed ? s + (long)r * ld : r + (long)s * ld];
}

/* Packs block column p of a block of T; a group of PANEL_BLOCKS warps. */
MMA_COLLECTIVE void triangular_pack(const mma_lane warp_lane, __global const real *T, const int ld,
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
                 ? triangular_entry(T, ld, order, 16 * p + row, 16 * p + k, transposed, reversed)
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
  /* the rows below, work-items along what is contiguous in T */
  const int rows = PANEL_ORDER - 16 * (p + 1);
  for (int e = item; e < 16 * rows; e += 32 * PANEL_BLOCKS) {
    const int row = 16 + (transposed ? e / 16 : e % rows), k = transposed ? e % 16 : e / rows;
    packed[PANEL_INVERSE + PANEL_AT(row, k)] =
        -triangular_entry(T, ld, order, 16 * p + row, 16 * p + k, transposed, reversed);
  }
}

#endif

#ifdef TRIANGULAR_MMA_PACK

/* Dimension 0 counts the block columns of a block of T. */
__kernel __attribute__((reqd_work_group_size(32 * PANEL_BLOCKS, 1, 1))) void
triangular_mma_pack(const int n, const int n_last, __global const real *T, const long offset_t,
                    const int ld, const long step_t, const int transposed, const int reversed,
                    __global real *packed) {
  MMA_LANE(lane, PANEL_BLOCKS);
  const int which = get_group_id(1), last = which == (int)get_num_groups(1) - 1;
  triangular_pack(lane, T + offset_t + which * step_t, ld, last ? n_last : n, get_group_id(0),
                  transposed, reversed, packed + (long)which * PANEL_PACKED, get_local_id(0));
}

#endif

#ifdef TRIANGULAR_MMA_PACK_AND_COPY

/* The same for the diagonal blocks of a matrix of order n; besides, the lower triangles of its
 * diagonal blocks of order `block` go from X to Y, with zeros above. Dimension 1 counts blocks of
 * PANEL_ORDER rows; in dimension 0 the first PANEL_BLOCKS groups pack one, the others copy its
 * rows, TRIANGULAR_COPY columns each. */
__kernel __attribute__((reqd_work_group_size(32 * PANEL_BLOCKS, 1, 1))) void
triangular_mma_pack_and_copy(__global const real *T, const long offset_t, const int ld,
                             __global real *packed, __global const real *X, const long offset_x,
                             const int ld_x, __global real *Y, const long offset_y, const int ld_y,
                             const triangular_packing packing) {
  MMA_LANE(lane, PANEL_BLOCKS);
  const int n = packing.n, block = packing.block;
  const int item = get_local_id(0), p = get_group_id(0), which = get_group_id(1);
  const int first = which * PANEL_ORDER, order = min(PANEL_ORDER, n - first);
  if (p < PANEL_BLOCKS) {
    triangular_pack(lane, T + offset_t + first * ((long)ld + 1), ld, order, p, packing.transposed,
                    packing.reversed, packed + (long)which * PANEL_PACKED, item);
    return;
  }
  enum { STEP = 32 * PANEL_BLOCKS / PANEL_ORDER, STEPS = TRIANGULAR_COPY / STEP };
  const int row = first + item % PANEL_ORDER, from = first / block * block;
  const int column = from + (p - PANEL_BLOCKS) * TRIANGULAR_COPY + item / PANEL_ORDER;
  const int end = min(n, from + block);
  if (row >= n) return;
  X += offset_x + row;
  Y += offset_y + row;
  real value[STEPS]; /* all under way at once */
  SCL_UNROLL
  for (int i = 0; i < STEPS; i++) value[i] = X[(long)min(column + i * STEP, end - 1) * ld_x];
  SCL_UNROLL
  for (int i = 0; i < STEPS; i++) {
    const int to = column + i * STEP;
    if (to < end) Y[(long)to * ld_y] = to <= row ? value[i] : 0.0;
  }
}

#endif

#ifdef TRIANGULAR_MMA_SOLVE

/* One of unknown_step and side_step is 1. With `identity` B is not read: its element is 1 where
 * r(p) = s, else 0. 16 right-hand
 * sides a warp, PANEL_WARPS warps a group; packed block columns arrive by asynchronous copies,
 * two ahead. */
__kernel __attribute__((reqd_work_group_size(32 * PANEL_WARPS, 1, 1))) void
triangular_mma_solve(__global real *B, const long offset_b, __global const real *packed,
                     const long offset_packed, const triangular_task task) {
  /* three block columns, each smaller than the one before */
  __local real ring[PANEL_START(3)] __attribute__((aligned(128)));
  MMA_LANE(lane, PANEL_WARPS);
  mma_copies copies = MMA_NO_COPIES;
  const int item = get_local_id(0), t = lane.member;
  const int which = get_group_id(1), last = which == (int)get_num_groups(1) - 1;
  const int order = last ? task.n_last : task.n;
  const int reversed = task.reversed, identity = task.identity;
  const long step = task.unknown_step, next = task.side_step;
  const int first = 16 * (PANEL_WARPS * (int)get_group_id(0) + (item >> 5)) + 2 * lane.quad;
  const int mine = clamp((last ? task.rhs_last : task.rhs) - first, 0, 2); /* of this lane's two */
  B += offset_b + which * task.b_step + first * next;
  packed += offset_packed + which * task.t_step;
#define TRIANGULAR_SLOT(p) (ring + PANEL_START((p) % 3))
#define TRIANGULAR_GET(p)                                                                          \
  do {                                                                                             \
    for (int i = 2 * item; (p) < PANEL_BLOCKS && i < PANEL_COLUMN(p); i += 64 * PANEL_WARPS)       \
      mma_copy_16(&copies, TRIANGULAR_SLOT(p) + i, packed + PANEL_START(p) + i, 16);               \
    mma_commit(&copies);                                                                           \
  } while (0)
  /* B points at the lane's first unknown; `along` leads to the next in the order of solving. */
  const int along = reversed ? -(int)step : (int)step;
  if (reversed) B += (order - 1) * step;
  B += 2 * t * (long)along;
  TRIANGULAR_GET(0);
  TRIANGULAR_GET(1);

  real head[2][4], tail[PANEL_TAIL][2][4];
#define TRIANGULAR_FETCH(block, q)                                                                 \
  SCL_UNROLL                                                                                       \
  for (int h = 0; h < 2; h++) {                                                                    \
    SCL_UNROLL                                                                                     \
    for (int e = 0; e < 2; e++) {                                                                  \
      const int place = 16 * (q) + 8 * h + e; /* of lanes with t = 0 */                            \
      real2 pair = 0.0;                                                                            \
      if (identity) {                                                                              \
        const int r = reversed ? order - 1 - place - 2 * t : place + 2 * t;                        \
        pair = (real2)(r == first ? 1.0 : 0.0, r == first + 1 ? 1.0 : 0.0);                        \
      } else if (place + 2 * t < order) {                                                          \
        __global const real *from = B + (long)place * along;                                       \
        if (next == 1 && mine == 2) {                                                              \
          pair = *(__global const real2 *)from;                                                    \
        } else {                                                                                   \
          if (mine > 0) pair.x = from[0];                                                          \
          if (mine > 1) pair.y = from[next];                                                       \
        }                                                                                          \
      }                                                                                            \
      block[h][e] = pair.x;                                                                        \
      block[h][2 + e] = pair.y;                                                                    \
    }                                                                                              \
  }
  TRIANGULAR_FETCH(head, 0)
  SCL_UNROLL
  for (int s = 0; s < PANEL_TAIL; s++) {
    TRIANGULAR_FETCH(tail[s], s + 1)
  }

  /* Unrolled: guards of a looped body would end the overlap of the chains. */
  SCL_UNROLL
  for (int p = 0; p < PANEL_BLOCKS; p++) {
    MMA_WAIT(&copies, 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    TRIANGULAR_GET(p + 2); /* past the last block column: an empty group */
    __local const real *c = TRIANGULAR_SLOT(p), *below = c + PANEL_INVERSE;
    real solved[2][4];
    solve16(lane, solved, head, c);
    SCL_UNROLL
    for (int h = 0; h < 2; h++) {
      SCL_UNROLL
      for (int e = 0; e < 2; e++) {
        const int place = 16 * p + 8 * h + e;
        if (place + 2 * t < order) {
          __global real *to = B + (long)place * along;
          if (next == 1 && mine == 2) {
            *(__global real2 *)to = (real2)(solved[h][e], solved[h][2 + e]);
          } else {
            if (mine > 0) to[0] = solved[h][e];
            if (mine > 1) to[next] = solved[h][2 + e];
          }
        }
      }
    }
    if (p + 1 < PANEL_BLOCKS) times16(lane, head, tail[0], solved, below, 16);
    SCL_UNROLL
    for (int s = 1; s < PANEL_TAIL; s++) {
      if (p + 1 + s < PANEL_BLOCKS)
        times16(lane, tail[s - 1], tail[s], solved, below, 16 * (1 + s));
    }
  }
}

#endif
