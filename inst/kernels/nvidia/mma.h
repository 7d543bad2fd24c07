/* The double-precision matrix instructions of NVIDIA devices, in inline assembly: c + a b for 16 x
 * 8 results, with sums over 4 or 8. Of compute capability 9.0 on there is one instruction for each;
 * 8.0 has 8 x 8 x 4 alone (SCL_MMA_8), of which two or four make up the larger ones: their
 * registers are the same.
 *
 * Lane l, with g = l / 4 and t = l % 4, holds a(g, t) in a0, a(g + 8, t) in a1, b(t, g) in b0, the
 * same 4 further along the sum in a2, a3 and b1, and c(g, 2t), c(g, 2t + 1), c(g + 8, 2t), c(g + 8,
 * 2t + 1) in c[0] to c[3]. MMA_MOVE_8 takes c from one array and gives c + a b to another: moving
 * a block along costs nothing then. */

#ifdef SCL_MMA_8

#define MMA_8_8_4(to0, to1, from0, from1, a, b)                                                    \
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};"   \
               : "=d"(to0), "=d"(to1)                                                              \
               : "d"(a), "d"(b), "d"(from0), "d"(from1))

#define MMA_MOVE_4(to, from, a0, a1, b0)                                                           \
  do {                                                                                             \
    MMA_8_8_4(to[0], to[1], from[0], from[1], a0, b0);                                             \
    MMA_8_8_4(to[2], to[3], from[2], from[3], a1, b0);                                             \
  } while (0)

#define MMA_MOVE_8(to, from, a0, a1, a2, a3, b0, b1)                                               \
  do {                                                                                             \
    MMA_MOVE_4(to, from, a0, a1, b0);                                                              \
    MMA_MOVE_4(to, to, a2, a3, b1);                                                                \
  } while (0)
#define MMA_4(c, a0, a1, b0) MMA_MOVE_4(c, c, a0, a1, b0)
#define MMA_8(c, a0, a1, a2, a3, b0, b1) MMA_MOVE_8(c, c, a0, a1, a2, a3, b0, b1)

#else

#define MMA_MOVE_8(to, from, a0, a1, a2, a3, b0, b1)                                               \
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "                                 \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"               \
               : "=d"(to[0]), "=d"(to[1]), "=d"(to[2]), "=d"(to[3])                                \
               : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(b0), "d"(b1), "d"(from[0]),               \
                 "d"(from[1]), "d"(from[2]), "d"(from[3]))
#define MMA_4(c, a0, a1, b0)                                                                       \
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "                                 \
               "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                               \
               : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])                                    \
               : "d"(a0), "d"(a1), "d"(b0))
#define MMA_8(c, a0, a1, a2, a3, b0, b1)                                                           \
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "                                 \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                   \
               : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])                                    \
               : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(b0), "d"(b1))

#endif

/* Starts to copy 16 bytes of global memory to local memory, of which those past `bytes` become 0;
 * what a work-item has started so far is one group of copies to wait for. */
#define MMA_COPY16(to, from, bytes)                                                                \
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint)(ulong)(to)),           \
               "l"(from), "r"(bytes)                                                               \
               : "memory")
#define MMA_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
