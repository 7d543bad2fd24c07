#include "scl_packed.h"

#include <string.h>

#include "../inst/kernels/port.h"
#include "../inst/kernels/packed.h"

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

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}
static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
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
  size_t row = larger(first, span->next_row);
  span->cols = 1;
  span->count = smaller(capacity, end - row);
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

/* Part `part` of `parts` of begin .. end - 1. */
static void share(size_t begin, size_t end, int part, int parts, size_t *first, size_t *last) {
  size_t n = end - begin, each = n / (size_t)parts, rest = n % (size_t)parts, p = (size_t)part;
  *first = begin + p * each + smaller(p, rest);
  *last = *first + each + (p < rest ? 1 : 0);
}

/* The columns of a part, and its rows in each of them: columns are dealt out where there are enough
 * of them, else rows. */
typedef struct {
  size_t col, last_col;
  int part, parts;
} portion;

static portion portion_of(const scl_packed_span *span, int part, int parts) {
  portion p = {span->col, span->col + span->cols, part, parts};
  if (span->cols >= 4 * (size_t)parts) {
    share(span->col, span->col + span->cols, part, parts, &p.col, &p.last_col);
    p.part = 0;
    p.parts = 1;
  }
  return p;
}

/* Stored rows of column j within the span. */
static void stored_rows(const scl_packed *s, const scl_packed_span *span, size_t j, size_t *first,
                        size_t *last) {
  *first = larger(first_row(s, j), span->from);
  *last = smaller(end_row(s, j), span->to);
}

/* Place in the span's staging memory of element (i, j). */
static size_t place(const scl_packed *s, const scl_packed_span *span, size_t i, size_t j) {
  return before(s, j) + i - first_row(s, j) - span->base;
}

/* Without gaps on the host a span is one run of memory. */
static bool is_run(const scl_packed *s, size_t ld) {
  return s->kind == PACKED_FULL && s->stride == s->nrow && ld == s->nrow;
}

void scl_packed_gather(const scl_packed *shape, const scl_packed_span *span, const double *x,
                       size_t ld, double *packed, int part, int parts) {
  if (is_run(shape, ld)) {
    size_t first, last;
    share(0, span->count, part, parts, &first, &last);
    memcpy(packed + first, x + span->base + first, (last - first) * sizeof *x);
    return;
  }
  portion p = portion_of(span, part, parts);
  for (size_t j = p.col; j < p.last_col; j++) {
    size_t first, last;
    stored_rows(shape, span, j, &first, &last);
    if (first >= last) continue;
    share(first, last, p.part, p.parts, &first, &last);
    memcpy(packed + place(shape, span, first, j), x + first + j * ld, (last - first) * sizeof *x);
  }
}

static void fill_zero(double *x, size_t from, size_t to) {
  if (from < to) memset(x + from, 0, (to - from) * sizeof *x);
}

static void scatter_columns(const scl_packed *s, const scl_packed_span *span, const double *packed,
                            double *x, size_t ld, portion p) {
  for (size_t j = p.col; j < p.last_col; j++) {
    size_t first, last, begin, end;
    stored_rows(s, span, j, &first, &last);
    if (first < last) {
      share(first, last, p.part, p.parts, &begin, &end);
      memcpy(x + begin + j * ld, packed + place(s, span, begin, j), (end - begin) * sizeof *x);
    }
    if (s->mirrored || p.part != 0) continue;
    fill_zero(x + j * ld, span->from, smaller(first, span->to));
    fill_zero(x + j * ld, larger(last, span->from), span->to);
  }
}

/* Rows of the lower triangle become columns of the upper one. A few rows at a time, so that each
 * cache line of the packed form is read once. */
static void scatter_mirror(const scl_packed *s, const scl_packed_span *span, const double *packed,
                           double *x, size_t ld, int part, int parts) {
  enum { ROWS = 8 };
  size_t first, last;
  share(span->from, span->to, part, parts, &first, &last);
  for (size_t row = first; row < last; row += ROWS) {
    size_t stop = smaller(row + ROWS, last);
    size_t last_col = smaller(span->col + span->cols, stop);
    for (size_t j = span->col; j < last_col; j++) {
      const double *from = packed + place(s, span, larger(row, j), j);
      for (size_t i = larger(row, j); i < stop; i++) x[j + i * ld] = *from++;
    }
  }
}

void scl_packed_scatter(const scl_packed *shape, const scl_packed_span *span, const double *packed,
                        double *x, size_t ld, int part, int parts) {
  if (is_run(shape, ld)) {
    size_t first, last;
    share(0, span->count, part, parts, &first, &last);
    memcpy(x + span->base + first, packed + first, (last - first) * sizeof *x);
    return;
  }
  scatter_columns(shape, span, packed, x, ld, portion_of(span, part, parts));
  if (shape->mirrored) scatter_mirror(shape, span, packed, x, ld, part, parts);
}
