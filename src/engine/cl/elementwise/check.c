/* Checks of the device engine: reduce.cl. */
#include "engine/cl/runtime/launch.h"

#include <math.h>

#include "kernels/include/checks.h"

_Static_assert((int)SCL_CHECK_FINITE == CHECK_FINITE &&
                   (int)SCL_CHECK_SYMMETRIC == CHECK_SYMMETRIC && (int)SCL_LOWER == VIEW_LOWER &&
                   (int)SCL_UPPER == VIEW_UPPER && (int)SCL_SYMMETRIC == VIEW_SYMMETRIC,
               "checks and views are numbered alike in C and in the kernels");

enum {
  GROUP_GPU = 256, /* work-items of a group: a power of two */
  GROUP_CPU = 32,
  MOST_GROUPS = 256,  /* results of the first launch */
  ITEM_ELEMENTS = 16, /* elements that a work-item should at least have */
  ROWS = 16384        /* rows of a chunk, at most */
};

/* How the first launch is divided. It depends only on the shape and on the kind of device, so that
 * results have the same bits in every run. */
typedef struct {
  size_t m, n; /* rows and columns as the kernel sees them */
  size_t rows; /* of a chunk */
  size_t local, groups;
} split;

static split split_block(const scl_cl_context *cl, size_t m, size_t n) {
  split s = {.m = m, .n = n, .local = cl->cpu ? GROUP_CPU : GROUP_GPU};
  const size_t share = s.local * ITEM_ELEMENTS;
  s.groups = scl_ceil_div(m * n, share);
  if (s.groups > MOST_GROUPS) s.groups = MOST_GROUPS;
  size_t per_column = scl_ceil_div(m, ROWS), wanted = scl_ceil_div(s.groups, n);
  if (per_column < wanted) per_column = wanted; /* a chunk for every group at least */
  s.rows = scl_ceil_div(m, per_column);
  return s;
}

static bool is_dense(scl_block b) {
  return b.ncol == 1 || b.ld == b.nrow;
}

static scl_status launch_least(scl_cl_op *op, const split *s, scl_block partial, scl_block dst) {
  return scl_launch_reduce_least(op, scl_cl_range_1(s->local, s->local), (int)s->groups,
                                 scl_in(partial), scl_out(dst),
                                 scl_local(s->local * sizeof(double)));
}

scl_status scl_cl_check(scl_context *ctx, scl_check what, double tol, scl_view view, scl_block a,
                        scl_block dst) {
  size_t m = a.nrow, n = a.ncol;
  if (what == SCL_CHECK_DIAGONAL) {
    m = m < n ? m : n;
    n = m > 0;
  } else if (what == SCL_CHECK_FINITE && view == SCL_GENERAL && is_dense(a)) {
    m *= n;
    n = m > 0;
  }
  if (m == 0 || n == 0) return scl_cl_fill(ctx, INFINITY, dst);
  split s = split_block((scl_cl_context *)ctx, m, n);
  if (dst.nrow > 1) s.groups = dst.nrow; /* some may find nothing to do */
  const reduce_task task = {.tol = tol,
                            .m = (int64_t)s.m,
                            .n = (int64_t)s.n,
                            .rows = (int64_t)s.rows,
                            .what = (int)what,
                            .view = (int)view,
                            .stride = (int)a.ld + 1};
  scl_block partial = dst;
  scl_cl_op op;
  scl_status status;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, a.buffer);
  scl_cl_op_writes(&op, dst.buffer);
  SCL_GO(scl_cl_op_order(&op, -1));
  if (s.groups > dst.nrow) SCL_GO(scl_cl_temporary(&op, s.groups, 1, &partial));
  SCL_GO(scl_launch_reduce_check(&op, scl_cl_range_1(s.local * s.groups, s.local), &task, scl_in(a),
                                 scl_out(partial), scl_local(s.local * sizeof(double))));
  if (s.groups > dst.nrow) SCL_GO(launch_least(&op, &s, partial, dst));
done:
  if (partial.buffer != dst.buffer) scl_buffer_release(partial.buffer);
  return scl_cl_op_end(&op, status);
}
