/* Generalised linear models by group: a work-group for a model, which may be one work-item
 * (include/glm_batch.h).
 *
 *   starts | 0     | 50      | 83  ...     rows of group k, in `order`, from starts[k] on
 *   work   | Q y w offset eta weight score | ...     of each group in use, as long as its rows */
__kernel void glm_batch_groups(const glm_batch_task task, __global const real *x,
                               const long x_offset, const int x_ld, __global const real *y,
                               const long y_offset, __global const real *w, const long w_offset,
                               __global const real *offset, const long offset_offset,
                               __global const real *order, const long order_offset,
                               __global const real *starts, const long starts_offset,
                               __global real *work, const long work_offset, __global real *eta,
                               const long eta_offset, __global real *out, const long out_offset,
                               __local real *values) {
  const int lane = get_local_id(0), lanes = get_local_size(0);
  glm_batch_data d;
  d.x = x + x_offset;
  d.y = y + y_offset;
  d.w = task.weighted ? w + w_offset : 0;
  d.offset = task.shifted ? offset + offset_offset : 0;
  d.order = task.ordered ? order + order_offset : 0;
  d.ld = x_ld;
  for (int k = get_group_id(0); k < task.groups; k += get_num_groups(0)) {
    const long first = (long)starts[starts_offset + k];
    const int n = (int)((long)starts[starts_offset + k + 1] - first);
    glm_batch b = glm_batch_place(work + work_offset + GLM_BATCH_ROW(task.p) * first, values, n,
                                  task.p, task.family, lane, lanes);
    GLM_BATCH_SYNC();
    glm_batch_fit(&b, &d, first, task.most, eta + eta_offset,
                  out + out_offset + (long)k * GLM_BATCH_RESULTS(task.p));
  }
}
