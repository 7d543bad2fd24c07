/* .Call entries of models with random effects: the Schur complement of a block of effects whose
 * levels each occur with few columns, and quadratic forms in its inverse and products with it. A
 * row of `rows` is a level of that block: list(start: where it begins, and the end; column: from 0
 * on; value). */
#include "r/entries.h"
#include "r/glue.h"

typedef struct {
  const int *start, *column;
  const double *value;
  size_t count, columns;
} sparse_rows;

/* Raises unless rows fit a square matrix of `columns` columns, or some are to the right of it and
 * may be. */
static sparse_rows read_rows(SEXP rows, size_t columns, SEXP square, bool partly) {
  sparse_rows r = {0};
  bool fits = TYPEOF(rows) == VECSXP && XLENGTH(rows) == 3 &&
              TYPEOF(VECTOR_ELT(rows, 0)) == INTSXP && XLENGTH(VECTOR_ELT(rows, 0)) > 0 &&
              TYPEOF(VECTOR_ELT(rows, 1)) == INTSXP && TYPEOF(VECTOR_ELT(rows, 2)) == REALSXP &&
              XLENGTH(VECTOR_ELT(rows, 1)) == XLENGTH(VECTOR_ELT(rows, 2)) &&
              r_is_double(square, columns * columns);
  if (fits) {
    r = (sparse_rows){.start = INTEGER_RO(VECTOR_ELT(rows, 0)),
                      .column = INTEGER_RO(VECTOR_ELT(rows, 1)),
                      .value = REAL_RO(VECTOR_ELT(rows, 2)),
                      .count = (size_t)XLENGTH(VECTOR_ELT(rows, 0)) - 1,
                      .columns = columns};
    const R_xlen_t all = XLENGTH(VECTOR_ELT(rows, 1));
    fits = r.start[0] == 0 && r.start[r.count] == all;
    for (size_t k = 0; k < r.count; k++) fits = fits && r.start[k] <= r.start[k + 1];
    for (R_xlen_t e = 0; e < all; e++)
      fits = fits && r.column[e] >= 0 && (partly || (size_t)r.column[e] < r.columns);
  }
  if (!fits) {
    scl_fail_argument("rows", "internal: 'rows' does not fit the matrix");
    r_throw();
  }
  return r;
}

static size_t scale_length(SEXP scale) {
  return TYPEOF(scale) == REALSXP ? (size_t)XLENGTH(scale) : 0;
}

/* S (rest - sum of weight c c' over the rows c) S + E, for S = diag(scale) and E with ones in the
 * first `own` elements of the diagonal. Columns of a row increase. */
SEXP r_schur(SEXP rows, SEXP weight, SEXP rest, SEXP scale, SEXP own) {
  const sparse_rows r = read_rows(rows, scale_length(scale), rest, false);
  const size_t m = r.columns, ones = (size_t)Rf_asReal(own);
  if (!r_is_double(weight, r.count) || ones > m) {
    scl_fail_argument("weight", "internal: a weight for each row is needed");
    r_throw();
  }
  SEXP result = PROTECT(Rf_allocMatrix(REALSXP, (int)m, (int)m));
  double *s = REAL(result);
  const double *w = REAL_RO(weight), *from = REAL_RO(rest), *size = REAL_RO(scale);
  for (size_t j = 0; j < m; j++)
    for (size_t i = 0; i <= j; i++) s[j * m + i] = from[j * m + i];
  for (size_t k = 0; k < r.count; k++)
    for (int e = r.start[k]; e < r.start[k + 1]; e++) {
      const double v = w[k] * r.value[e];
      double *to = s + (size_t)r.column[e] * m;
      for (int d = r.start[k]; d <= e; d++) to[r.column[d]] -= v * r.value[d];
    }
  for (size_t j = 0; j < m; j++) {
    for (size_t i = 0; i <= j; i++) s[j * m + i] *= size[i] * size[j];
    if (j < ones) s[j * m + j] += 1.0;
  }
  enum { TILE = 32 };
  for (size_t b = 0; b < m; b += TILE)
    for (size_t j = 0; j < m; j++)
      for (size_t i = b; i < b + TILE && i < j; i++) s[i * m + j] = s[j * m + i];
  UNPROTECT(1);
  return result;
}

/* (S c)' G (S c) for each row c, as far as G has columns, and a symmetric G. */
SEXP r_row_forms(SEXP rows, SEXP g, SEXP scale) {
  const sparse_rows r = read_rows(rows, scale_length(scale), g, true);
  const double *inverse = REAL_RO(g), *size = REAL_RO(scale);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)r.count));
  for (size_t k = 0; k < r.count; k++) {
    double sum = 0.0;
    for (int e = r.start[k]; e < r.start[k + 1] && (size_t)r.column[e] < r.columns; e++) {
      const double *column = inverse + (size_t)r.column[e] * r.columns;
      double half = 0.0;
      for (int d = r.start[k]; d < e; d++) {
        half += column[r.column[d]] * size[r.column[d]] * r.value[d];
      }
      const double v = size[r.column[e]] * r.value[e];
      sum += v * (2.0 * half + v * column[r.column[e]]);
    }
    REAL(result)[k] = sum;
  }
  UNPROTECT(1);
  return result;
}

/* For each pair of a row c and a column j of G, both from 1 on, element j of G c; NA where one of
 * them is. */
SEXP r_row_products(SEXP rows, SEXP g, SEXP row, SEXP column) {
  const size_t columns = (size_t)Rf_ncols(g);
  const sparse_rows r = read_rows(rows, columns, g, false);
  const R_xlen_t count = XLENGTH(row);
  bool fits = TYPEOF(row) == INTSXP && TYPEOF(column) == INTSXP && XLENGTH(column) == count;
  for (R_xlen_t k = 0; fits && k < count; k++) {
    const int i = INTEGER_RO(row)[k], j = INTEGER_RO(column)[k];
    fits = (i == NA_INTEGER || (i > 0 && (size_t)i <= r.count)) &&
           (j == NA_INTEGER || (j > 0 && (size_t)j <= columns));
  }
  if (!fits) {
    scl_fail_argument("row", "internal: pairs of rows and columns are needed");
    r_throw();
  }
  SEXP result = PROTECT(Rf_allocVector(REALSXP, count));
  for (R_xlen_t k = 0; k < count; k++) {
    const int i = INTEGER_RO(row)[k], j = INTEGER_RO(column)[k];
    if (i == NA_INTEGER || j == NA_INTEGER) {
      REAL(result)[k] = NA_REAL;
      continue;
    }
    const double *to = REAL_RO(g) + (size_t)(j - 1) * columns;
    double sum = 0.0;
    for (int e = r.start[i - 1]; e < r.start[i]; e++) sum += r.value[e] * to[r.column[e]];
    REAL(result)[k] = sum;
  }
  UNPROTECT(1);
  return result;
}
