/* The twin of mma_ptx.h in plain OpenCL C, for devices and simulators without these instructions:
 * slow, and exact. Built with SCL_MMA_EMULATED=1.
 *
 * Lanes of a warp run in lockstep on the device. Here each instruction is: the lanes store their
 * fragments in local memory; barrier; each computes its results from them; barrier. OpenCL's
 * barriers are for the whole group, and all its work-items must reach them at the same points.
 * Therefore all warps execute code that is meant for only some of them (MMA_IF): the lanes of the
 * others are then not `active`; they neither store nor read, and keep their values.
 *
 * The device's instructions do not order the stores of lanes. Nor do they here for a simulator that
 * looks for races (SCL_MMA_CHECKED=1, for oclgrind): their barriers have no fence for local memory,
 * and exchanged values go through atomic operations. A missing mma_warp_sync() or barrier is
 * therefore still found as a race.
 *
 * Copies arrive as late as possible, when they are waited for. Until then their destination
 * contains NaN, so that reading an old value there is found too. */

#ifdef SCL_MMA_EMULATED

/* Functions, and those in which all lanes of a warp take part, with barriers: POCL 3.1 runs them
 * wrongly unless they are inlined. The others are not inlined, because POCL keeps the stack of a
 * function for each work-item of a group and for each place where it is inlined. */
#define MMA_INLINE static __attribute__((noinline))
#define MMA_COLLECTIVE static inline __attribute__((always_inline))

/* Loops are not unrolled: each instruction would be a barrier more to compile. */
#undef SCL_UNROLL
#define SCL_UNROLL

/* The numbers that a warp exchanges: 16 x 8 numbers of A by rows, 8 x 8 of B by columns; or one of
 * each lane.
 */
#define MMA_EXCHANGE_B 128
#define MMA_EXCHANGE 192

typedef struct {
  int lane, quad, member; /* 0 to 31; lane / 4; lane % 4 */
  bool active;
  __local double *exchange; /* of the warp */
} mma_lane;

#define MMA_LANE(name, warps)                                                                      \
  __local double name##_exchange[MMA_EXCHANGE * (warps)];                                          \
  const mma_lane name = mma_lane_of((int)get_local_id(0), name##_exchange);                        \
  MMA_CLEAR_EXCHANGE(name)

MMA_INLINE mma_lane mma_lane_of(const int item, __local double *exchange) {
  const mma_lane lane = {item & 31, (item & 31) >> 2, item & 3, true,
                         exchange + MMA_EXCHANGE * (item >> 5)};
  return lane;
}

#define MMA_IF(taken) if (true)
#define mma_is_active(lane) ((lane).active)
#define MMA_ROLES_TOGETHER true

MMA_INLINE mma_lane mma_only(mma_lane lane, const bool taken) {
  lane.active = lane.active && taken;
  return lane;
}

#ifdef SCL_MMA_CHECKED

#define MMA_LOCKSTEP() barrier(0)
/* Memory must be initialised before an atomic operation reads it. */
#define MMA_CLEAR_EXCHANGE(name)                                                                   \
  for (int i = name.lane; i < MMA_EXCHANGE; i += 32) name.exchange[i] = 0.0;                       \
  barrier(CLK_LOCAL_MEM_FENCE)

MMA_INLINE void mma_put(const mma_lane lane, const int at, const double value) {
  __local volatile uint *to = (__local volatile uint *)(lane.exchange + at);
  const ulong bits = as_ulong(value);
  if (!lane.active) return;
  atomic_xchg(to, (uint)bits);
  atomic_xchg(to + 1, (uint)(bits >> 32));
}

MMA_INLINE double mma_get(const mma_lane lane, const int at) {
  __local volatile uint *from = (__local volatile uint *)(lane.exchange + at);
  if (!lane.active) return 0.0;
  const ulong low = atomic_or(from, 0u), high = atomic_or(from + 1, 0u);
  return as_double(high << 32 | low);
}

#else

#define MMA_LOCKSTEP() barrier(CLK_LOCAL_MEM_FENCE)
#define MMA_CLEAR_EXCHANGE(name)

MMA_INLINE void mma_put(const mma_lane lane, const int at, const double value) {
  if (lane.active) lane.exchange[at] = value;
}

MMA_INLINE double mma_get(const mma_lane lane, const int at) {
  return lane.active ? lane.exchange[at] : 0.0;
}

#endif

/* ---- products -------------------------------------------------------------------------------- */

/* Two neighbours of row `row` and columns 2 member and 2 member + 1 of from + A B, where `depth`
 * numbers of each row of A and column of B have been exchanged. */
MMA_INLINE void mma_sum(const mma_lane lane, double to[2], const double from[2], const int row,
                        const int depth) {
  if (!lane.active) return;
  for (int q = 0; q < 2; q++) {
    double sum = from[q];
    for (int k = 0; k < depth; k++) {
      const double b = mma_get(lane, MMA_EXCHANGE_B + 8 * (2 * lane.member + q) + k);
      sum = fma(mma_get(lane, 8 * row + k), b, sum);
    }
    to[q] = sum;
  }
}

#ifdef SCL_MMA_8

MMA_INLINE void mma_put_4(const mma_lane lane, const double a, const double b) {
  mma_put(lane, 8 * lane.quad + lane.member, a);
  mma_put(lane, MMA_EXCHANGE_B + 8 * lane.quad + lane.member, b);
}

MMA_COLLECTIVE void mma_8_8_4(const mma_lane lane, double to[2], const double from[2],
                              const double a, const double b) {
  mma_put_4(lane, a, b);
  MMA_LOCKSTEP();
  mma_sum(lane, to, from, lane.quad, 4);
  MMA_LOCKSTEP();
}

#else

/* A lane's numbers of A and B, from number `first` of the sum on. */
MMA_INLINE void mma_put_4(const mma_lane lane, const int first, const double a0, const double a1,
                          const double b0) {
  mma_put(lane, 8 * lane.quad + first + lane.member, a0);
  mma_put(lane, 8 * (lane.quad + 8) + first + lane.member, a1);
  mma_put(lane, MMA_EXCHANGE_B + 8 * lane.quad + first + lane.member, b0);
}

MMA_COLLECTIVE void mma_4_to(const mma_lane lane, double to[4], const double from[4],
                             const double a0, const double a1, const double b0) {
  mma_put_4(lane, 0, a0, a1, b0);
  MMA_LOCKSTEP();
  mma_sum(lane, &to[0], &from[0], lane.quad, 4);
  mma_sum(lane, &to[2], &from[2], lane.quad + 8, 4);
  MMA_LOCKSTEP();
}

MMA_COLLECTIVE void mma_8_to(const mma_lane lane, double to[4], const double from[4],
                             const double a0, const double a1, const double a2, const double a3,
                             const double b0, const double b1) {
  mma_put_4(lane, 0, a0, a1, b0);
  mma_put_4(lane, 4, a2, a3, b1);
  MMA_LOCKSTEP();
  mma_sum(lane, &to[0], &from[0], lane.quad, 8);
  mma_sum(lane, &to[2], &from[2], lane.quad + 8, 8);
  MMA_LOCKSTEP();
}

#endif

/* Word `word` of 8, each of four k, of a row of A or, with 2 as `from`, a column of B. */
MMA_INLINE uint mma_word(const mma_lane lane, const int row, const int word, const int from) {
  const int upper = word >> 2;
  const double pair = mma_get(lane, 3 * (4 * (row & 7) + (word & 3)) + (from == 2 ? 2 : upper));
  const uint2 words = as_uint2(pair);
  return (from == 2 ? upper : row >> 3) ? words.y : words.x;
}

MMA_INLINE int mma_dot(const uint x, const uint y, const int sum) {
  const int4 each = convert_int4(as_char4(x)) * convert_int4(as_char4(y));
  return sum + each.x + each.y + each.z + each.w;
}

MMA_INLINE uint mma_pack(const uint x0, const uint x1, const uint x2, const uint x3) {
  return (x0 & 255) | (x1 & 255) << 8 | (x2 & 255) << 16 | x3 << 24;
}

MMA_INLINE int mma_sum_bytes(const mma_lane lane, int sum, const int row, const int column) {
  for (int word = 0; word < 8 && lane.active; word++)
    sum = mma_dot(mma_word(lane, row, word, 0), mma_word(lane, column, word, 2), sum);
  return sum;
}

MMA_COLLECTIVE void mma_bytes(const mma_lane lane, int c[4], const uint a[4], const uint b[2]) {
  mma_put(lane, 3 * lane.lane, as_double((uint2)(a[0], a[1])));
  mma_put(lane, 3 * lane.lane + 1, as_double((uint2)(a[2], a[3])));
  mma_put(lane, 3 * lane.lane + 2, as_double((uint2)(b[0], b[1])));
  MMA_LOCKSTEP();
  for (int q = 0; q < 4; q++)
    c[q] = mma_sum_bytes(lane, c[q], lane.quad + (q >> 1) * 8, 2 * lane.member + (q & 1));
  MMA_LOCKSTEP();
}

MMA_COLLECTIVE void mma_load_rows(const mma_lane lane, uint to[4], __local const real *base,
                                  const int bytes) {
  mma_put(lane, lane.lane, (double)bytes);
  MMA_LOCKSTEP();
  for (int i = 0; i < 4; i++) {
    const int row = (int)mma_get(lane, 8 * i + lane.quad);
    to[i] = lane.active ? ((__local const uint *)base)[row / 4 + lane.member] : 0;
  }
  MMA_LOCKSTEP();
}

/* ---- products of a warpgroup ----------------------------------------------------------------- */

/* At once: nothing is left to wait for. */
#define mma_group_see_copies()
#define mma_group_begin()
#define mma_group_commit()
#define MMA_GROUP_WAIT(latest)

MMA_INLINE uint mma_group_word(__local const real *rows, const int step, const int row,
                               const int word) {
  return ((__local const uint *)rows)[(word >> 2) * (step / 4) + 4 * row + (word & 3)];
}

MMA_COLLECTIVE void mma_group_bytes(const mma_lane lane, const int warp, int c[32][4],
                                    __local const real *a, const int a_step,
                                    __local const real *b, const int b_step) {
  for (int e = 0; e < 128 && lane.active; e++) {
    const int row = 16 * (warp & 3) + lane.quad + 8 * (e >> 1 & 1);
    const int column = 8 * (e >> 2) + 2 * lane.member + (e & 1);
    int *sum = &c[e >> 2][e & 3];
    for (int word = 0; word < 8; word++)
      *sum = mma_dot(mma_group_word(a, a_step, row, word),
                     mma_group_word(b, b_step, column, word), *sum);
  }
}

/* ---- exchange within a warp ------------------------------------------------------------------ */

MMA_COLLECTIVE void mma_warp_sync(const mma_lane lane) {
  barrier(CLK_LOCAL_MEM_FENCE);
}

MMA_COLLECTIVE double mma_value_of(const mma_lane lane, const double value, const int from) {
  mma_put(lane, lane.lane, value);
  MMA_LOCKSTEP();
  const double other = mma_get(lane, from & 31);
  MMA_LOCKSTEP();
  return other;
}

MMA_COLLECTIVE double mma_value_across(const mma_lane lane, const double value) {
  return mma_value_of(lane, value, lane.lane ^ 16);
}

MMA_COLLECTIVE int mma_int_across(const mma_lane lane, const int value) {
  return (int)mma_value_across(lane, (double)value);
}

MMA_COLLECTIVE uint mma_warp_max(const mma_lane lane, const uint value) {
  double most = 0.0;
  mma_put(lane, lane.lane, (double)value);
  MMA_LOCKSTEP();
  for (int i = 0; i < 32; i++) most = fmax(most, mma_get(lane, i));
  MMA_LOCKSTEP();
  return (uint)most;
}

/* ---- asynchronous copies --------------------------------------------------------------------- */

#define MMA_COPIES_MOST 64 /* on their way at a time: a power of two */

/* A ring: copy i of group number `group`, with its number of doubles. */
typedef struct {
  int started, arrived, groups;
  int group[MMA_COPIES_MOST];
  int size[MMA_COPIES_MOST], numbers[MMA_COPIES_MOST];
  __local double *to[MMA_COPIES_MOST];
  __global const double *from[MMA_COPIES_MOST];
} mma_copies;
#define MMA_NO_COPIES                                                                              \
  { 0, 0, 0 }

MMA_INLINE void mma_start_copy(mma_copies *copies, __local double *to, __global const double *from,
                               const int size, const int numbers) {
  const int at = copies->started++ % MMA_COPIES_MOST;
  copies->group[at] = copies->groups;
  copies->size[at] = size;
  copies->numbers[at] = numbers;
  copies->to[at] = to;
  copies->from[at] = from;
  for (int i = 0; i < size; i++) to[i] = NAN;
}

MMA_INLINE void mma_copy_16(mma_copies *copies, __local double *to, __global const double *from,
                            const int bytes) {
  mma_start_copy(copies, to, from, 2, bytes / 8);
}

MMA_INLINE void mma_copy_8(mma_copies *copies, __local double *to, __global const double *from,
                           const int bytes) {
  mma_start_copy(copies, to, from, 1, bytes / 8);
}

MMA_INLINE void mma_commit(mma_copies *copies) {
  copies->groups++;
}

MMA_INLINE void mma_wait(mma_copies *copies, const int latest) {
  while (copies->arrived < copies->started) {
    const int at = copies->arrived % MMA_COPIES_MOST;
    if (copies->group[at] >= copies->groups - latest) break;
    for (int i = 0; i < copies->size[at]; i++)
      copies->to[at][i] = i < copies->numbers[at] ? copies->from[at][i] : 0.0;
    copies->arrived++;
  }
}
#define MMA_WAIT(copies, latest) mma_wait(copies, latest)

/* ---- barriers of some warps ------------------------------------------------------------------ */

/* All warps meet at the points where some wait for others. */
#define MMA_MEET(id, warps) barrier(CLK_LOCAL_MEM_FENCE)
#define MMA_MEET_FIRST(id, warps)

/* ---- seeds ----------------------------------------------------------------------------------- */

/* The device gives the upper half of the number. */
MMA_INLINE double mma_upper_half(const double d) {
  return as_double(as_ulong(d) & 0xffffffff00000000UL);
}

MMA_INLINE double mma_reciprocal_seed(const double d) {
  return mma_upper_half(1.0 / (fabs(d) < 0x1p-1022 ? copysign(0.0, d) : d));
}

MMA_INLINE double mma_inverse_root_seed(const double d) {
  return mma_upper_half(1.0 / sqrt(fabs(d) < 0x1p-1022 ? copysign(0.0, d) : d));
}

#endif
