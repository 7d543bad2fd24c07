#include "ops/sparse_root.h"

#include <math.h>
#include <stdlib.h>

/* at: for each row, where an element of the column in hand is. Row k has the elements
 * place[begin[k]], ..., left of its diagonal, of the columns `column`. */
typedef struct {
  size_t *at, *begin, *place, *column;
} rows;

static size_t from(scl_sparse_columns a, size_t j) {
  return (size_t)a.start[j];
}

static size_t row_of(scl_sparse_columns a, size_t k) {
  return (size_t)a.row[k];
}

bool scl_sparse_is_filled(scl_sparse_columns a) {
  for (size_t j = 0; j < a.n; j++) {
    const size_t first = from(a, j) + 1, end = from(a, j + 1);
    if (first >= end) continue;
    const size_t next = row_of(a, first);
    size_t there = from(a, next);
    for (size_t k = first; k < end; k++, there++) {
      while (there < from(a, next + 1) && a.row[there] < a.row[k]) there++;
      if (there == from(a, next + 1) || a.row[there] != a.row[k]) return false;
    }
  }
  return true;
}

static void release(rows *r) {
  free(r->at);
  free(r->begin);
  free(r->place);
  free(r->column);
}

static scl_status by_rows(scl_sparse_columns a, rows *r) {
  const size_t n = a.n, count = from(a, n);
  *r = (rows){malloc(n * sizeof *r->at), calloc(n + 2, sizeof *r->begin),
              malloc(count * sizeof *r->place), malloc(count * sizeof *r->column)};
  if (r->at == NULL || r->begin == NULL || r->place == NULL || r->column == NULL) {
    release(r);
    return scl_fail_memory(2 * count * sizeof *r->place, 0, "a sparse factor");
  }
  for (size_t k = 0; k < count; k++) r->begin[row_of(a, k) + 2]++;
  for (size_t j = 0; j < n; j++) r->begin[j + 2] += r->begin[j + 1] - 1; /* not the diagonal */
  for (size_t j = 0; j < n; j++) {
    for (size_t k = from(a, j) + 1; k < from(a, j + 1); k++) {
      const size_t to = r->begin[row_of(a, k) + 1]++;
      r->place[to] = k;
      r->column[to] = j;
    }
  }
  return SCL_OK;
}

static void hold_column(scl_sparse_columns a, size_t j, rows *r) {
  for (size_t k = from(a, j); k < from(a, j + 1); k++) r->at[row_of(a, k)] = k;
}

scl_status scl_sparse_root(scl_sparse_columns a, double *x) {
  rows r;
  bool found = true;
  SCL_TRY(by_rows(a, &r));
  for (size_t j = 0; j < a.n && found; j++) {
    hold_column(a, j, &r);
    for (size_t e = r.begin[j]; e < r.begin[j + 1]; e++) {
      const double f = x[r.place[e]];
      const size_t end = from(a, r.column[e] + 1);
      for (size_t k = r.place[e]; k < end; k++) x[r.at[row_of(a, k)]] -= f * x[k];
    }
    double *own = x + from(a, j);
    found = *own > 0.0;
    *own = sqrt(*own);
    for (size_t k = from(a, j) + 1; k < from(a, j + 1); k++) x[k] /= *own;
  }
  for (size_t k = 0; !found && k < from(a, a.n); k++) x[k] = NAN;
  release(&r);
  return SCL_OK;
}

/* The steps of scl_sparse_root() backwards. */
scl_status scl_sparse_root_adjoint(scl_sparse_columns a, const double *l, double *slope) {
  rows r;
  SCL_TRY(by_rows(a, &r));
  for (size_t j = a.n; j-- > 0;) {
    hold_column(a, j, &r);
    const double own = l[from(a, j)];
    double sum = slope[from(a, j)];
    for (size_t k = from(a, j) + 1; k < from(a, j + 1); k++) {
      slope[k] /= own;
      sum -= slope[k] * l[k];
    }
    slope[from(a, j)] = sum / (2.0 * own);
    for (size_t e = r.begin[j]; e < r.begin[j + 1]; e++) {
      const size_t first = r.place[e], end = from(a, r.column[e] + 1);
      sum = 0.0;
      for (size_t k = first; k < end; k++) {
        const double s = slope[r.at[row_of(a, k)]];
        slope[k] -= s * l[first];
        sum += s * l[k];
      }
      slope[first] -= sum;
    }
  }
  release(&r);
  return SCL_OK;
}
