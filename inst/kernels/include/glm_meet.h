/* Groups of a GLM kernel that meet, so that one launch can evaluate all points of a walk
 * (glm_walk.h, glm_mma_walk.cl). Writes of one group must then be visible to another, which
 * OpenCL 1.2 does not promise, so the driver uses this only on devices whose own fence ensures it
 * (GLM_FENCE).
 *
 * Groups can only meet if all of them run at the same time, which OpenCL does not promise either:
 * another program may hold a part of the device. A group that has waited for GLM_PATIENCE gives up,
 * and with it all others. Then the number behind the records stays 0, and the driver launches one
 * point at a time. */
#ifdef __NV_CL_C_VERSION
#define GLM_FENCE() asm volatile("membar.gl;" ::: "memory")
#define GLM_PATIENCE 100000000 /* nanoseconds */
/* Many groups that look at one counter keep others from it. */
SCL_INLINE void glm_nap(void) {
  asm volatile("nanosleep.u32 100;");
}
SCL_INLINE long glm_time(long before) {
  long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}
#else
#define GLM_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#define GLM_PATIENCE 100000 /* reads of the counter */
SCL_INLINE void glm_nap(void) {}
SCL_INLINE long glm_time(long before) {
  return before + 1;
}
#endif

/* The number behind all records. */
SCL_INLINE long glm_mark(const glm_task *task) {
  return task->record + (task->points - 1) * (long)task->predictors * (3 + 2 * task->p);
}

/* Groups arrive at a counter and wait for each other. All work-items of a group call both
 * functions; what they do between the two delays no other group. */
typedef struct {
  volatile __global int *count, *late;
  int came; /* counted when this group arrived; of work-item 0 */
} glm_meeting;

/* At the counter at `work`, or at another one behind it. */
SCL_INLINE glm_meeting glm_meeting_at(__global real *work, int counter) {
  volatile __global int *late = (volatile __global int *)work + 1;
  const glm_meeting at = {(volatile __global int *)(work + counter), late, 0};
  return at;
}

SCL_INLINE_BARRIER void glm_arrive(glm_meeting *at, int item, int counts) {
  barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    GLM_FENCE();
    at->came = counts ? atomic_inc(at->count) + 1 : *at->count;
  }
}

/* Whether `groups` have been counted: when this group arrived, or with `waits` after waiting. */
SCL_INLINE_BARRIER int glm_await(const glm_meeting *at, __local int *flag, int item, int waits,
                                 int groups) {
  if (item == 0) {
    int came = at->came;
    const long began = glm_time(0);
    long time = began;
    while (waits && came < groups && !*at->late && time - began < GLM_PATIENCE) {
      came = *at->count;
      if (came < groups) glm_nap();
      time = glm_time(time);
    }
    if (waits && came < groups) *at->late = 1;
    *flag = came >= groups;
    GLM_FENCE();
  }
  barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
  return *flag;
}
