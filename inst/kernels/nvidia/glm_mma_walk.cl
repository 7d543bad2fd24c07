/* All points of a walk (leapfrog.h) in one launch, by the matrix instructions of NVIDIA devices:
 * the tiles and sums of glm_mma.cl, by GLM_TOGETHER warps a group, and the steps of
 * leapfrog_chain.h.
 *
 *   all groups              tiles | sums -> partials | wait for the chains | tiles | ..
 *   group c, for chain c    tiles | sums -> partials | meet | all sums | steps | tiles | ..
 *
 * The chains are in parts of GLM_PREDICTORS, each of which has as many groups, side by side, that
 * share its tiles and never wait for another part: while one part's groups meet, those of others
 * use the unit. The next point's first tile is requested before the groups meet. They meet twice
 * (glm_meet.h), at the counter of the part, which is never set back: once all groups have been
 * counted, all partials are there; once the groups with chains have been counted again, all chains
 * are at the next point, and no group needs the partials any longer. A group with several chains
 * takes one after the other. The last group of the last part leaves the mark. A launch for each
 * point adds in the same order (GLM_TOGETHER). */

typedef char glm_group_of_warps[LEAPFROG_GROUP == 32 * GLM_TOGETHER ? 1 : -1];

/* The results of a chain at the last point. */
SCL_INLINE void glm_write_results(const glm_task *task, int chain, int item, int items,
                                  __local const real *near, __global real *work) {
  __global real *results = work + task->results;
  if (item == 0) results[task->at.value + chain] = near[0];
  if (item == 0) results[task->at.d_alpha + chain] = near[1];
  for (int i = item; i < task->p; i += items)
    results[task->at.d_beta + (long)chain * task->p + i] = near[2 + i];
}

SCL_INLINE leapfrog_sum_task glm_chain_task(const glm_task *task, int point, int members) {
  const long record = (long)task->predictors * (3 + 2 * task->p);
  const leapfrog_sum_task chain = {.partials = task->partials,
                                   .row_step = members,
                                   .group_step = 1,
                                   .q = task->at.alpha,
                                   .record = task->record + (point - 1) * record,
                                   .vectors = task->predictors,
                                   .p = task->p,
                                   .point = point,
                                   .directions = task->directions,
                                   .groups = members,
                                   .together = 1};
  return chain;
}

/* A part is done: the last one leaves the mark. */
SCL_INLINE void glm_leave(const glm_task *task, int parts, __global real *work) {
  volatile __global int *done = (volatile __global int *)work;
  if (atomic_inc(done) + 1 < parts) return;
  GLM_FENCE();
  work[glm_mark(task)] = 1.0;
  atomic_xchg(done, 0);
}

/* The numbers of a part, in local memory: values, then those by alpha, then those by beta. */
#define GLM_OWN ((2 + GLM_SLOTS) * GLM_PREDICTORS)

/* A warp's sums at this point. */
MMA_COLLECTIVE void glm_evaluate(const glm_data *data, const glm_tiles *tiles, mma_copies *copies,
                                 glm_seen *next, volatile __global const real *beta,
                                 __local real *sums, const mma_lane self) {
  const int lane = self.lane, predictors = data->predictors, p = data->p;
  __local real *pool = tiles->ring + ((tiles->half_ring ^ tiles->turns ^ 1) & 1) * GLM_STAGE;
  real weight[GLM_STEPS][2], sum[GLM_BLOCKS][4];
  glm_totals total[GLM_LINKS];
  glm_aux given[GLM_LINKS];
  volatile __global const real *alpha = data->alpha; /* groups of the part have written it */
  __local real *intercept = (__local real *)data->intercept;
  if (lane < GLM_PREDICTORS) intercept[lane] = lane < predictors ? alpha[lane] : 0.0;
  glm_begin_gradient(weight, sum, beta, p, predictors, self);
  SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
    total[i] = glm_no_totals();
    given[i] = glm_aux_none();
  }
  glm_add_tiles(data, tiles, copies, next, weight, given, total, sum, self);
  glm_write_totals(data, total, pool, sums, 1, self);
  glm_write_gradient(sum, sums + data->d_beta, 1, p, predictors, self);
  mma_warp_sync(self); /* no number stays where no copy of X goes: one may be infinite */
  for (int i = lane; i < GLM_CELLS + 4 * GLM_PREDICTORS; i += 32) pool[i] = 0.0;
}

/* The sums of the group's warps to the partials of the group, number `member` of the part's. */
SCL_INLINE void glm_write_own(const glm_task *task, int skip, int predictors, int member,
                              int members, int item, __local const real *sums,
                              __global real *partials) {
  const int by_beta = 2 * GLM_PREDICTORS;
  for (int i = item; i < by_beta + predictors * task->p; i += LEAPFROG_GROUP) {
    const int v = i % GLM_PREDICTORS;
    if (i < by_beta && v >= predictors) continue;
    const long row = i >= by_beta          ? task->at.d_beta + skip * task->p + i - by_beta
                     : i >= GLM_PREDICTORS ? task->at.d_alpha + skip + v
                                           : task->at.value + skip + v;
    partials[row * members + member] =
        sums[i] + sums[GLM_OWN + i] + (sums[2 * GLM_OWN + i] + sums[3 * GLM_OWN + i]);
  }
}

__attribute__((reqd_work_group_size(LEAPFROG_GROUP, 1, 1))) __kernel void
GLM_PASS(__global const real *x, const long x_offset, const int x_ld, __global const real *y,
         const long y_offset, const int y_ld, __global real *work, const glm_task task,
         __local real *by_cut) {
  __local real ring[GLM_TOGETHER * 2 * GLM_STAGE] __attribute__((aligned(128)));
  __local real cells[GLM_TOGETHER * GLM_CELLS] __attribute__((aligned(128)));
  __local real intercept[GLM_TOGETHER * GLM_PREDICTORS], pool[LEAPFROG_GROUP];
  __local real sums[GLM_TOGETHER * GLM_OWN], near[LEAPFROG_NUMBERS(1 + GLM_SLOTS, 1 + GLM_SLOTS)];
  __local int flag;
  const int groups = get_num_groups(0), group = get_group_id(0), item = get_local_id(0);
  MMA_LANE(self, GLM_TOGETHER);
  mma_copies copies = MMA_NO_COPIES;
  const int lane = self.lane, warp = item >> 5;
  const int parts = (task.predictors + GLM_PREDICTORS - 1) / GLM_PREDICTORS;
  const int members = groups / parts, part = group / members, member = group % members;
  const int skip = part * GLM_PREDICTORS;
  glm_data data = glm_part_from(skip, &task, work);
  const int vectors = data.predictors; /* of the part */
  data.y = y + y_offset;
  data.y_ld = y_ld;
  data.by_cut = by_cut;
  data.intercept = intercept + warp * GLM_PREDICTORS;
  data.flags = GLM_GRADIENT; /* constants: a walk has nothing by row */
  data.residuals = data.slopes = -1;
  data.value = 0;
  data.d_alpha = GLM_PREDICTORS;
  data.d_beta = 2 * GLM_PREDICTORS;
  const uint stride = members * GLM_TOGETHER * GLM_ROWS;
  const uint first = (member * GLM_TOGETHER + warp) * GLM_ROWS;
  glm_tiles tiles = {x + x_offset,
                     x_ld,
                     ring + warp * 2 * GLM_STAGE,
                     cells + warp * GLM_CELLS,
                     first,
                     stride,
                     first,
                     (int)((task.n + stride - 1) / stride),
                     0};
  /* columns past the last, and tiles past the end, of which nothing is copied */
  for (int i = lane; i < 2 * GLM_STAGE; i += 32) tiles.ring[i] = 0.0;
  mma_warp_sync(self);
  glm_fetch(&copies, tiles.ring, tiles.x, x_ld, first, task.n, task.p, lane);
  glm_seen next = glm_observe(&data, first + (lane & 15));
  if (group == 0 && item == 0) work[glm_mark(&task)] = 0.0;

  const int has = member < vectors, counted = members + min(members, vectors);
  int goes_on = 1;
  for (int point = 1; goes_on; point++) {
    const int last = point == task.points, before = (point - 1) * counted;
    const leapfrog_sum_task own = glm_chain_task(&task, point, members);
    const leapfrog_walk w = leapfrog_near(&own, near);
    glm_meeting meeting = glm_meeting_at(work, 1 + part);
    if (last) tiles.after = task.n;
    glm_evaluate(&data, &tiles, &copies, &next, work + task.at.beta + skip * task.p,
                 sums + warp * GLM_OWN, self);
    barrier(CLK_LOCAL_MEM_FENCE);
    glm_write_own(&task, skip, vectors, member, members, item, sums, work + task.partials);
    tiles.half_ring = (tiles.half_ring ^ tiles.turns) & 1;
    glm_arrive(&meeting, item, 1);
    if (has) leapfrog_fetch(&own, &w, skip + member, item, work);
    const int met = glm_await(&meeting, &flag, item, has, before + members) || !has;
    for (int v = member; v < vectors && met; v += members) {
      if (v != member) leapfrog_fetch(&own, &w, skip + v, item, work);
      leapfrog_add(&own, skip + v, item, pool, near, work);
      leapfrog(&w, last, item, LEAPFROG_GROUP);
      barrier(CLK_LOCAL_MEM_FENCE);
      if (last) {
        glm_write_results(&task, skip + v, item, LEAPFROG_GROUP, near, work);
      } else {
        leapfrog_store(&own, &w, skip + v, item, work);
      }
      barrier(CLK_LOCAL_MEM_FENCE); /* before the next chain's numbers come */
    }
    glm_arrive(&meeting, item, met && has);
    const int all = glm_await(&meeting, &flag, item, met && !last, before + counted);
    if (last && all && has && item == 0) glm_leave(&task, parts, work);
    goes_on = all && !last;
  }
}
