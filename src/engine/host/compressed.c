/* Products with sparse matrices on the host: threads share the rows, so that about as many elements
 * fall to each. */
#include "engine/pass/compressed.h"

#include "base/sizes.h"
#include "base/threads.h"
#include "engine/host/host.h"

enum { WORTH_A_TEAM = 500000 }; /* products */

/* Compressed rows as plain memory. */
typedef struct {
  const int32_t *start, *column;
  const double *value;
} rows_view;

static rows_view view_of(const struct scl_compressed_rows *a) {
  return (rows_view){(const int32_t *)scl_host_at(a->start),
                     (const int32_t *)scl_host_at(a->column), scl_host_at(a->value)};
}

/* The first row of part `part` of `parts` equal ones. */
static size_t first_row(const int32_t *start, size_t m, int part, int parts) {
  if (part == parts) return m;
  const double before = (double)start[m] * part / parts;
  size_t low = 0, high = m;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (start[middle] < before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

typedef struct {
  const struct scl_compressed_rows *a;
  scl_block b, dst;
} product;

static void multiply_part(void *arg, int part, int parts) {
  const product *p = arg;
  const rows_view a = view_of(p->a);
  const size_t first = first_row(a.start, p->a->m, part, parts);
  const size_t end = first_row(a.start, p->a->m, part + 1, parts);
  for (size_t j = 0; j < p->dst.ncol; j++) {
    const double *b = p->b.buffer != NULL ? scl_host_at(p->b) + j * p->b.ld : NULL;
    double *c = scl_host_at(p->dst) + j * p->dst.ld;
    for (size_t i = first; i < end; i++) {
      double sum = 0.0;
      for (int32_t t = a.start[i]; t < a.start[i + 1]; t++) sum += a.value[t] * b[a.column[t]];
      c[i] = sum;
    }
  }
}

static void run(double work, scl_team_work part, void *arg) {
  scl_team *team = work < WORTH_A_TEAM ? NULL : scl_team_start(scl_copy_threads());
  scl_team_run(team, part, arg);
  scl_team_stop(team);
}

scl_status scl_host_compressed_multiply(scl_context *ctx, const struct scl_compressed_rows *a,
                                        scl_block b, scl_block dst) {
  (void)ctx;
  product p = {a, b, dst};
  if (dst.nrow > 0) run((double)a->count * (double)dst.ncol, multiply_part, &p);
  return SCL_OK;
}

typedef struct {
  const struct scl_compressed_pair *a;
  scl_block w, dst;
} gram;

/* Columns of the lower triangle: part after part, so that all threads have some of each length. */
static void gram_part(void *arg, int part, int parts) {
  const gram *g = arg;
  const rows_view rows = view_of(&g->a->rows), columns = view_of(&g->a->columns);
  const double *w = g->w.buffer != NULL ? scl_host_at(g->w) : NULL;
  const int32_t n = (int32_t)g->dst.nrow;
  for (int32_t j = part; j < n; j += parts) {
    double *c = scl_host_at(g->dst) + (size_t)j * g->dst.ld;
    for (int32_t k = j; k < n; k++) c[k] = 0.0;
    for (int32_t e = columns.start[j]; e < columns.start[j + 1]; e++) {
      const int32_t i = columns.column[e];
      const double factor = w != NULL ? columns.value[e] * w[i] : columns.value[e];
      for (int32_t t = rows.start[i + 1] - 1; t >= rows.start[i] && rows.column[t] >= j; t--) {
        c[rows.column[t]] += factor * rows.value[t];
      }
    }
  }
}

scl_status scl_host_compressed_gram(scl_context *ctx, const struct scl_compressed_pair *a,
                                    scl_block w, scl_block dst) {
  (void)ctx;
  gram g = {a, w, dst};
  if (dst.nrow == 0) return SCL_OK;
  run((double)a->rows.count * (double)a->rows.count / (double)scl_max(a->rows.m, 1), gram_part, &g);
  scl_host_mirror(dst);
  return SCL_OK;
}
