/* Sums over groups of elements, and cumulative sums, on the host. */
#include "engine/host/groups.h"

#include <string.h>

#include "engine/host/host.h"
#include "engine/host/wide.h"

scl_status scl_host_group_sums(scl_context *ctx, scl_block starts, scl_block order, size_t most,
                               scl_block src, scl_block dst) {
  const double *start = scl_host_at(starts), *s = scl_host_at(src);
  const double *element = order.buffer != NULL ? scl_host_at(order) : NULL;
  double *d = scl_host_at(dst);
  (void)ctx;
  (void)most;
  for (size_t k = 0; k < dst.nrow; k++) {
    const size_t end = (size_t)start[k + 1];
    double sum = 0.0;
    for (size_t t = (size_t)start[k]; t < end; t++) sum += s[(size_t)element[t]];
    d[k] = sum;
  }
  return SCL_OK;
}

scl_status scl_host_cumulate(scl_context *ctx, bool reverse, scl_block src, scl_block dst) {
  (void)ctx;
  for (size_t j = 0; j < dst.ncol; j++) {
    const double *s = scl_host_at(src) + j * src.ld;
    double *d = scl_host_at(dst) + j * dst.ld, sum = 0.0;
    for (size_t k = 0; k < dst.nrow; k++) {
      const size_t i = reverse ? dst.nrow - 1 - k : k;
      sum += s[i];
      d[i] = sum;
    }
  }
  return SCL_OK;
}

#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif

/* ---- by blocks of rows ---------------------------------------------------------------------- */

void scl_host_find_groups(scl_block starts, scl_block order, int32_t *group) {
  const double *start = scl_host_at(starts), *row = scl_host_at(order);
  for (size_t k = 0; k + 1 < starts.nrow; k++) {
    const size_t end = (size_t)start[k + 1];
    for (size_t i = (size_t)start[k]; i < end; i++) group[(size_t)row[i]] = (int32_t)k;
  }
}

size_t scl_host_count_runs(size_t rows, size_t block, const int32_t *group) {
  size_t runs = 0;
  for (size_t i = 0; i < rows; i++) runs += i % block == 0 || group[i] != group[i - 1];
  return runs;
}

void scl_host_list_runs(size_t rows, size_t block, const int32_t *group, int32_t *of_run,
                        int32_t *end) {
  size_t runs = 0;
  for (size_t i = 0; i < rows; i++) {
    if (i % block == 0 || group[i] != group[i - 1]) of_run[runs++] = group[i];
    end[runs - 1] = (int32_t)i + 1;
  }
}

void scl_host_groups_begin(scl_host_groups *g, double *to) {
  g->run = 0;
  if (g->turns == NULL) {
    memset(to, 0, g->groups * sizeof *to);
  } else {
    memset(g->turns, 0, SCL_GROUP_TURNS * g->groups * sizeof *to);
  }
}

INLINED double sum_run(size_t n, const double *x) {
  double lane[4] = {0.0};
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    for (size_t l = 0; l < 4; l++) lane[l] += x[k + l];
  }
  for (; k < n; k++) lane[0] += x[k];
  return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

INLINED void add_runs(scl_host_groups *g, size_t i, size_t n, const double *x, double *to) {
  size_t run = g->run;
  for (size_t k = 0; k < n; run++) {
    const size_t end = (size_t)g->end[run] - i;
    to[g->group[run]] += sum_run(end - k, x + k);
    k = end;
  }
  g->run = run;
}

SCL_BY_WIDTH(static, add_by_width, add_runs,
             (scl_host_groups * g, size_t i, size_t n, const double *x, double *to),
             (g, i, n, x, to))

void scl_host_groups_add(scl_host_groups *g, size_t i, size_t n, const double *x, double *to) {
  const int32_t *group = g->group + i;
  double *turns = g->turns;
  if (g->end != NULL) {
    add_by_width(g, i, n, x, to);
  } else if (turns == NULL) {
    for (size_t k = 0; k < n; k++) to[group[k]] += x[k];
  } else {
    size_t k = 0;
    for (; k + SCL_GROUP_TURNS <= n; k += SCL_GROUP_TURNS) {
      for (size_t t = 0; t < SCL_GROUP_TURNS; t++) {
        turns[SCL_GROUP_TURNS * (size_t)group[k + t] + t] += x[k + t];
      }
    }
    for (; k < n; k++) turns[SCL_GROUP_TURNS * (size_t)group[k]] += x[k];
  }
}

void scl_host_groups_end(const scl_host_groups *g, double *to) {
  for (size_t k = 0; k < g->groups && g->turns != NULL; k++) {
    const double *t = g->turns + SCL_GROUP_TURNS * k;
    to[k] = (t[0] + t[2]) + (t[1] + t[3]);
  }
}
