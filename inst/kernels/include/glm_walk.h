/* The end of a pass that adds the groups' sums itself (GLM_FINISH), and the steps to the next point
 * of a walk (leapfrog.h). All sums have a fixed order. Writes of one group must be visible to
 * another within a kernel (glm_meet.h).
 *
 * A launch evaluates one point, and the last group to finish adds all groups' sums and makes the
 * steps; or it evaluates all points of a walk:
 *
 *   group 0   tiles | sums -> partials | meet | all sums | steps | tiles | sums -> partials | ..
 *   group 1   tiles | sums -> partials | meet | all sums | steps | tiles | sums -> partials | ..
 *      :
 *
 * Every group adds the sums of all groups and makes the same steps, in its local memory; group 0
 * writes the records. Two sets of partials alternate: once all groups have met, all have read the
 * set of the point before, which may then be overwritten. Both ways give the same bits. */

/* The numbers of a walk in local memory: results, a record, and what leapfrog.h lists from q on.
 * Other families have no walks, and may need the memory for sums by cut. */
#define GLM_WALKS (GLM_AUX == SCL_GLM_NONE && !GLM_COUPLED)
#define GLM_NEAR                                                                                   \
  (GLM_WALKS ? GLM_PREDICTORS * LEAPFROG_NUMBERS(1 + GLM_SLOTS, 1 + GLM_SLOTS) : 1)

/* Loads a tile of X and asks the second-level cache to keep it for the next point (`stays`) or to
 * evict it first; GLM_KEEP_NONE: asks nothing. If nothing were asked, the rest of X would evict
 * each tile before it is needed again. */
SCL_INLINE void glm_load_kept(glm_pair *kept, __global const real *x, uint step, int lane, int p,
                              int keep, int stays) {
#ifdef SCL_CACHE_HINTS
  ulong hint;
  if (keep == GLM_KEEP_NONE) {
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(hint));
  } else if (stays) {
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(hint));
  } else {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(hint));
  }
  SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
    if (k * GLM_LANES + lane >= p) continue;
#if GLM_WIDTH == 2
    asm volatile("ld.global.L2::cache_hint.v2.f64 {%0, %1}, [%2], %3;"
                 : "=d"(kept[k].x), "=d"(kept[k].y)
                 : "l"(x + k * step), "l"(hint));
#else
    asm volatile("ld.global.L2::cache_hint.f64 %0, [%1], %2;"
                 : "=d"(kept[k])
                 : "l"(x + k * step), "l"(hint));
#endif
  }
#else
  glm_load(kept, x, step, lane, p);
#endif
}

SCL_INLINE leapfrog_walk glm_walk_of(const glm_task *task, __local real *near) {
  const int vectors = task->predictors, numbers = vectors * (1 + task->p);
  __local real *record = near + vectors + numbers;
  const leapfrog_walk walk = {vectors, task->p, task->point, task->directions, near,
                              record + vectors + 2 * numbers, record};
  return walk;
}

/* The numbers of the walk, to local memory. */
SCL_INLINE void glm_walk_read(const glm_task *task, const leapfrog_walk *w, int item,
                              __global const real *work) {
  const int d = 1 + w->count, metric = LEAPFROG_METRIC(d, w->directions);
  const int numbers = 6 * w->vectors * d + w->vectors * (1 + metric) + 3 * d;
  for (int i = item; i < numbers; i += GLM_ITEMS) w->q[i] = work[task->at.alpha + i];
}

/* The sums over the groups: GLM_SHARE work-items a row, each of which has GLM_LOADS loads in
 * flight. They go to `near` if `is_near`, else to `result`. */
#define GLM_SHARE (GLM_ITEMS / 16)
#ifndef GLM_LOADS
#define GLM_LOADS 10
#endif
SCL_INLINE_BARRIER void glm_finish(__local real *pool, int item,
                                   volatile __global const real *partial, int rows, int groups,
                                   int is_near, __local real *near, __global real *result) {
  for (int first = 0; first < rows; first += GLM_ITEMS / GLM_SHARE) {
    const int row = first + item / GLM_SHARE;
    real sum = 0.0;
    if (row < rows) {
      volatile __global const real *of_row = partial + (long)row * groups;
      for (int g = item % GLM_SHARE; g < groups; g += GLM_SHARE * GLM_LOADS) {
        volatile __global const real *from = of_row + g; /* one address for all of them */
        real part[GLM_LOADS], sums[2] = {0.0, 0.0};
        SCL_UNROLL for (int i = 0; i < GLM_LOADS; i++) {
          part[i] = i * GLM_SHARE < groups - g ? from[i * GLM_SHARE] : 0.0;
        }
        SCL_UNROLL for (int i = 0; i < GLM_LOADS; i++) sums[i & 1] += part[i];
        sum += sums[0] + sums[1];
      }
    }
    pool[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < GLM_ITEMS / GLM_SHARE && first + item < rows) {
      sum = 0.0;
      SCL_UNROLL for (int i = 0; i < GLM_SHARE; i++) sum += pool[item * GLM_SHARE + i];
      if (is_near) {
        near[first + item] = sum;
      } else {
        result[first + item] = sum;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

/* After a group has written its sums: adds the sums of all groups and makes the steps to the next
 * point. In a walk of one launch every group does so, else only the last to finish. Returns whether
 * this group goes on to the next point. */
SCL_INLINE_BARRIER int glm_step(const glm_task *task, leapfrog_walk *walk, int point,
                                __local int *flag, __local real *pool, __local real *near, int item,
                                __global real *work, __global const real *partials) {
  const int groups = get_num_groups(0), group = get_group_id(0), alone = task->points == 1;
  const int is_last = point == task->points, waits = !alone && (!is_last || group == 0);
  const int numbers = walk->vectors * (1 + walk->count), record = walk->vectors + 2 * numbers;
  glm_meeting meeting = glm_meeting_at(work, 0);
  glm_arrive(&meeting, item, 1);
  const int together = glm_await(&meeting, flag, item, waits, groups * point);
  const int writes = together && (alone || group == 0);
  const int steps = together && (alone ? task->record >= 0 : !is_last);
  glm_finish(pool, item, partials, steps || writes ? (int)task->at.results : 0, groups, steps, near,
             work + task->results);
  walk->point = alone ? task->point : point;
  const int share = GLM_ITEMS / walk->vectors; /* work-items of a chain */
  leapfrog(walk, steps ? item / share : walk->vectors, item % share, share);
  barrier(CLK_LOCAL_MEM_FENCE);
  __global real *to = work + task->record + (point - 1) * (long)record;
  for (int i = item; i < record && steps && writes; i += GLM_ITEMS) to[i] = walk->record[i];
  for (int i = item; i < 3 * numbers && steps && alone; i += GLM_ITEMS)
    work[task->at.alpha + i] = walk->q[i];
  if (item == 0 && writes && is_last) {
    if (!alone) work[glm_mark(task)] = 1.0;
    *(volatile __global int *)work = 0;
  }
  return together && !is_last;
}
