#include "engine/transfer/packed.h"

#include <string.h>

#include "kernels/include/port.h"
#include "kernels/include/packed.h"
#include "base/sizes.h"
#include "engine/transfer/stream.h"

static size_t first_row(const scl_packed *s, size_t j) {
  return (size_t)packed_first((scl_long)s->nrow, (scl_long)j, s->kind);
}

static size_t end_row(const scl_packed *s, size_t j) {
  return (size_t)packed_end((scl_long)s->nrow, (scl_long)j, s->kind);
}

static size_t before(const scl_packed *s, size_t j) {
  if (s->kind == PACKED_FULL) return j * s->stride;
  return (size_t)packed_before((scl_long)s->nrow, (scl_long)j, s->kind);
}

scl_packed scl_packed_shape(scl_view view, size_t nrow, size_t ncol) {
  static const int kind[] = {[SCL_GENERAL] = PACKED_FULL,
                             [SCL_LOWER] = PACKED_LOWER,
                             [SCL_UPPER] = PACKED_UPPER,
                             [SCL_SYMMETRIC] = PACKED_LOWER};
  return (scl_packed){nrow, ncol, kind[view], view == SCL_SYMMETRIC, nrow};
}

size_t scl_packed_count(const scl_packed *shape) {
  return before(shape, shape->ncol);
}

/* A column longer than a span is cut; zeros go with its first or last piece. */
static void take_part(const scl_packed *s, size_t capacity, scl_packed_span *span) {
  size_t j = span->col, first = first_row(s, j), end = end_row(s, j);
  size_t row = scl_max(first, span->next_row);
  span->cols = 1;
  span->count = scl_min(capacity, end - row);
  span->base = before(s, j) + row - first;
  size_t stop = row + span->count;
  span->from = row > first || s->mirrored ? row : 0;
  span->to = stop < end ? stop : s->nrow;
  span->next_col = stop < end ? j : j + 1;
  span->next_row = stop < end ? stop : 0;
}

static void take_columns(const scl_packed *s, size_t capacity, scl_packed_span *span) {
  size_t j = span->col;
  span->base = before(s, j);
  while (j < s->ncol && before(s, j + 1) - span->base <= capacity) j++;
  span->cols = j - span->col;
  span->count = before(s, j) - span->base;
  span->from = s->mirrored ? span->col : 0;
  span->to = s->nrow;
  span->next_col = j;
  span->next_row = 0;
}

bool scl_packed_next(const scl_packed *shape, size_t capacity, scl_packed_span *span) {
  if (span->next_col >= shape->ncol) return false;
  size_t j = span->col = span->next_col;
  bool long_column = before(shape, j + 1) - before(shape, j) > capacity;
  if (long_column) {
    take_part(shape, capacity, span);
  } else {
    take_columns(shape, capacity, span);
  }
  return true;
}

/* ---- copies ---------------------------------------------------------------------------------- */
/* Rows of one column, of which first .. last are stored: from <= first <= last <= to. */
typedef struct {
  size_t from, first, last, to;
} rows;

/* The rows of column j among elements at .. end - 1. */
static rows rows_within(const scl_packed *s, size_t j, size_t at, size_t end) {
  size_t start = j * s->nrow;
  rows r = {.from = at > start ? at - start : 0, .to = scl_min(s->nrow, end - start)};
  r.first = scl_min(scl_max(first_row(s, j), r.from), r.to);
  r.last = scl_max(scl_min(end_row(s, j), r.to), r.first);
  return r;
}

/* Index of element (i, j) in the span's staging memory. */
static size_t packed_index(const scl_packed *s, const scl_packed_span *span, size_t i, size_t j) {
  return before(s, j) + i - first_row(s, j) - span->base;
}

/* Without gaps on the host a span is one run of memory. */
static bool is_run(const scl_packed *s, size_t ld) {
  return s->kind == PACKED_FULL && s->stride == s->nrow && ld == s->nrow;
}

void scl_packed_gather(const scl_packed *shape, const scl_packed_span *span, const double *x,
                       size_t ld, double *packed, size_t at, size_t end) {
  if (is_run(shape, ld)) {
    memcpy(packed + at - span->base, x + at, (end - at) * sizeof *x);
    return;
  }
  for (size_t j = at / shape->nrow; j * shape->nrow < end; j++) {
    rows r = rows_within(shape, j, at, end);
    if (r.first < r.last) {
      memcpy(packed + packed_index(shape, span, r.first, j), x + r.first + j * ld,
             (r.last - r.first) * sizeof *x);
    }
  }
}

static void write_run(double *to, const double *from, size_t n, bool stream) {
  if (stream) {
    scl_stream_copy(to, from, n);
  } else {
    memcpy(to, from, n * sizeof *to);
  }
}

static void write_zeros(double *to, size_t n, bool stream) {
  if (stream) {
    scl_stream_zero(to, n);
  } else {
    memset(to, 0, n * sizeof *to);
  }
}

void scl_packed_scatter(const scl_packed *shape, const scl_packed_span *span, const double *packed,
                        double *x, size_t ld, size_t at, size_t end, bool stream) {
  if (is_run(shape, ld)) {
    write_run(x + at, packed + at - span->base, end - at, stream);
  } else {
    for (size_t j = at / shape->nrow; j * shape->nrow < end; j++) {
      rows r = rows_within(shape, j, at, end);
      double *to = x + j * ld;
      write_zeros(to + r.from, r.first - r.from, stream);
      if (r.first < r.last) {
        write_run(to + r.first, packed + packed_index(shape, span, r.first, j), r.last - r.first,
                  stream);
      }
      write_zeros(to + r.last, r.to - r.last, stream);
    }
  }
  if (stream) scl_stream_end();
}
