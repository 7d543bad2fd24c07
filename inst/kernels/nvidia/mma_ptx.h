/* The functions that mma.h needs from a device, in the assembly language of NVIDIA devices. Every
 * function here has its twin in mma_emulated.h; a kernel that uses only these runs on both. */

#ifndef SCL_MMA_EMULATED

/* Functions, and those in which all lanes of a warp take part. Everything must end up in one
 * kernel, as arrays passed by pointer live in registers only then. */
#define MMA_INLINE static inline __attribute__((always_inline))
#define MMA_COLLECTIVE MMA_INLINE

/* The position of a work-item in its warp. */
typedef struct {
  int lane, quad, member; /* 0 to 31; lane / 4; lane % 4 */
} mma_lane;

/* Declares `name` in a kernel whose groups have `warps` warps. */
#define MMA_LANE(name, warps) const mma_lane name = mma_lane_of((int)get_local_id(0))

MMA_INLINE mma_lane mma_lane_of(const int item) {
  return (mma_lane){item & 31, (item & 31) >> 2, item & 3};
}

/* Only some warps of the group run the statement. Functions in it get the lane of mma_only(), and
 * check mma_is_active() before they store, or read what others may store. */
#define MMA_IF(taken) if (taken)
#define mma_only(lane, taken) (lane)
#define mma_is_active(lane) true

/* Whether a warp has to execute the parts of all warps: a constant. */
#define MMA_ROLES_TOGETHER false

/* ---- products -------------------------------------------------------------------------------- */

#ifdef SCL_MMA_8

MMA_COLLECTIVE void mma_8_8_4(const mma_lane lane, double to[2], const double from[2],
                              const double a, const double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};"
               : "=d"(to[0]), "=d"(to[1])
               : "d"(a), "d"(b), "d"(from[0]), "d"(from[1]));
}

#else

MMA_COLLECTIVE void mma_4_to(const mma_lane lane, double to[4], const double from[4],
                             const double a0, const double a1, const double b0) {
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
               "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
               : "=d"(to[0]), "=d"(to[1]), "=d"(to[2]), "=d"(to[3])
               : "d"(a0), "d"(a1), "d"(b0), "d"(from[0]), "d"(from[1]), "d"(from[2]), "d"(from[3]));
}

/* to = from + a b, by which a block can move along at no cost. */
MMA_COLLECTIVE void mma_8_to(const mma_lane lane, double to[4], const double from[4],
                             const double a0, const double a1, const double a2, const double a3,
                             const double b0, const double b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
               : "=d"(to[0]), "=d"(to[1]), "=d"(to[2]), "=d"(to[3])
               : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(b0), "d"(b1), "d"(from[0]), "d"(from[1]),
                 "d"(from[2]), "d"(from[3]));
}

#endif

/* c += a b for 8-bit integers: A is 16 x 32, B 32 x 8. Words 0 and 1 of A are rows quad and
 * quad + 8 at k = 4 member to 4 member + 3, words 2 and 3 the same 16 further on; B's likewise, at
 * column quad. C as that of the products above. */
MMA_COLLECTIVE void mma_bytes(const mma_lane lane, int c[4], const uint a[4], const uint b[2]) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* sum + the products of the signed bytes of two words. */
MMA_INLINE int mma_dot(const uint x, const uint y, const int sum) {
  int to;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(to) : "r"(x), "r"(y), "r"(sum));
  return to;
}

/* The low bytes of four words. */
MMA_INLINE uint mma_pack(const uint x0, const uint x1, const uint x2, const uint x3) {
  uint low, high, all;
  asm("prmt.b32 %0, %1, %2, 0x0040;" : "=r"(low) : "r"(x0), "r"(x1));
  asm("prmt.b32 %0, %1, %2, 0x0040;" : "=r"(high) : "r"(x2), "r"(x3));
  asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(all) : "r"(low), "r"(high));
  return all;
}

/* Four blocks of 8 rows of 16 bytes: lane 8 i + r says where row r of block i starts, and gets word
 * `member` of row `quad` of each block. */
MMA_COLLECTIVE void mma_load_rows(const mma_lane lane, uint to[4], __local const real *base,
                                  const int bytes) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"((uint)(ulong)base + (uint)bytes)
               : "memory");
}

/* ---- products of a warpgroup ----------------------------------------------------------------- */

/* Four warps, the first of them a multiple of 4, multiply together and go on while the product is
 * computed. These instructions are of compute capability 9.0 alone, for which a driver of OpenCL
 * does not compile: MMA_90 makes them comments, and the engine takes the mark out of the driver's
 * assembly (src/engine/cl/runtime/assembly.c). */
#define MMA_90 "/" "/sm_90a " /* in two, as comments are left out of the installed sources */

/* This work-item's copies, once they have arrived, can be read by products. */
MMA_INLINE void mma_group_see_copies(void) {
  asm volatile(MMA_90 "fence.proxy.async.shared::cta;" ::: "memory");
}

/* Before the first product, and after other statements have changed its sums. */
MMA_INLINE void mma_group_begin(void) {
  asm volatile(MMA_90 "wgmma.fence.sync.aligned;" ::: "memory");
}

/* The products since the last call form a group to wait for. */
MMA_INLINE void mma_group_commit(void) {
  asm volatile(MMA_90 "wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* All groups of products are done but the `latest` ones, a constant. */
#define MMA_GROUP_WAIT(latest)                                                                     \
  asm volatile(MMA_90 "wgmma.wait_group.sync.aligned %0;" ::"n"(latest) : "memory")

/* Where the instruction finds rows of 32 bytes: 8 rows of 16 bytes are neighbours, the second half
 * of each lies `step` bytes on. */
MMA_INLINE ulong mma_group_rows(__local const real *rows, const int step) {
  const uint neighbours = 8 * 16;
  return ((ulong)rows & 0x3ffff) >> 4 | (ulong)(step >> 4) << 16 | (ulong)(neighbours >> 4) << 32;
}

#define MMA_4_OF(c, i) "+r"((c)[i][0]), "+r"((c)[i][1]), "+r"((c)[i][2]), "+r"((c)[i][3])
#define MMA_16_OF(c, i)                                                                            \
  MMA_4_OF(c, i), MMA_4_OF(c, (i) + 1), MMA_4_OF(c, (i) + 2), MMA_4_OF(c, (i) + 3)

/* c += a b for 8-bit integers: A is 64 x 32, B 32 x 256, A by rows and B by columns. Number `warp`
 * of the group's warps has the 16 rows of A from 16 (warp % 4) on, and of all columns of B by eight
 * what it has of C by mma_bytes(). */
MMA_COLLECTIVE void mma_group_bytes(const mma_lane lane, const int warp, int c[32][4],
                                    __local const real *a, const int a_step,
                                    __local const real *b, const int b_step) {
  asm volatile(MMA_90 "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
               "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "
               "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, "
               "%39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "
               "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, "
               "%65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "
               "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, "
               "%91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, "
               "%104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, "
               "%117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, 1;"
               : MMA_16_OF(c, 0), MMA_16_OF(c, 4), MMA_16_OF(c, 8), MMA_16_OF(c, 12),
                 MMA_16_OF(c, 16), MMA_16_OF(c, 20), MMA_16_OF(c, 24), MMA_16_OF(c, 28)
               : "l"(mma_group_rows(a, a_step)), "l"(mma_group_rows(b, b_step))
               : "memory");
}

/* ---- exchange within a warp ------------------------------------------------------------------ */

/* Makes the stores of the lanes of a warp visible to the others. */
MMA_COLLECTIVE void mma_warp_sync(const mma_lane lane) {
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

/* The value that lane `from` has. */
MMA_COLLECTIVE double mma_value_of(const mma_lane lane, const double value, const int from) {
  const uint2 bits = as_uint2(value);
  uint2 other;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;"
               : "=r"(other.x)
               : "r"(bits.x), "r"(from));
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;"
               : "=r"(other.y)
               : "r"(bits.y), "r"(from));
  return as_double(other);
}

/* The value that lane (lane ^ 16) has. */
MMA_COLLECTIVE int mma_int_across(const mma_lane lane, const int value) {
  int other;
  asm volatile("shfl.sync.bfly.b32 %0, %1, 16, 31, 0xffffffff;" : "=r"(other) : "r"(value));
  return other;
}

MMA_COLLECTIVE double mma_value_across(const mma_lane lane, const double value) {
  const int2 bits = as_int2(value);
  return as_double((int2)(mma_int_across(lane, bits.x), mma_int_across(lane, bits.y)));
}

/* The largest of the lanes' values. */
MMA_COLLECTIVE uint mma_warp_max(const mma_lane lane, const uint value) {
  uint most;
  asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(value));
  return most;
}

/* ---- asynchronous copies --------------------------------------------------------------------- */

/* The copies that a work-item has started. */
typedef int mma_copies;
#define MMA_NO_COPIES 0

/* Start to copy 16 (8) bytes of global memory to local memory, of which those past `bytes` become
 * 0. */
MMA_INLINE void mma_copy_16(mma_copies *copies, __local double *to, __global const double *from,
                            const int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint)(ulong)to), "l"(from),
               "r"(bytes)
               : "memory");
}

MMA_INLINE void mma_copy_8(mma_copies *copies, __local double *to, __global const double *from,
                           const int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"((uint)(ulong)to), "l"(from),
               "r"(bytes)
               : "memory");
}

/* The copies that a work-item has started since the last call form a group to wait for. */
MMA_INLINE void mma_commit(mma_copies *copies) {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/* All groups of copies of this work-item have arrived but the `latest` ones, a constant. */
#define MMA_WAIT(copies, latest) asm volatile("cp.async.wait_group %0;" ::"n"(latest) : "memory")

/* ---- barriers of some warps ------------------------------------------------------------------ */

/* A barrier, number `id` of 16, of `warps` warps of the group; both constants. MMA_MEET_FIRST is
 * the same, of a warp for which others wait with MMA_MEET. */
#define MMA_MEET(id, warps) asm volatile("bar.sync %0, %1;" ::"n"(id), "n"(32 * (warps)) : "memory")
#define MMA_MEET_FIRST(id, warps) MMA_MEET(id, warps)

/* ---- seeds ----------------------------------------------------------------------------------- */

/* About 1 / d and 1 / sqrt(d), to 20 bits; subnormal numbers count as 0. */
MMA_INLINE double mma_reciprocal_seed(const double d) {
  double seed;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(seed) : "d"(d));
  return seed;
}

MMA_INLINE double mma_inverse_root_seed(const double d) {
  double seed;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(seed) : "d"(d));
  return seed;
}

#endif
