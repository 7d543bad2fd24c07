/* Shared by covariance*.cl: the covariance function in the form that they read, the points of a
 * work-item, and the order of tiles.
 *
 * The plan describes the covariance function (scl_covariance) in numbers, whole ones included, in
 * this order:
 *   5 for each term: type, number of entries, its first entry, variance (sd^2), extra;
 *   3 for each entry: column of x, 1 / lengthscale, center;
 *   for each product: number of factors, then the terms that are its factors.
 * All work-items read the same element of it at the same time. */
#define TERM_TYPE(plan, term) ((int)(plan)[5 * (term)])
#define TERM_ENTRIES(plan, term) ((int)(plan)[5 * (term) + 1])
#define TERM_FIRST(plan, term) ((int)(plan)[5 * (term) + 2])
#define TERM_VARIANCE(plan, term) ((plan)[5 * (term) + 3])
#define TERM_EXTRA(plan, term) ((plan)[5 * (term) + 4])
#define ENTRY_COLUMN(plan, terms, entry) ((long)(plan)[5 * (terms) + 3 * (entry)])
#define ENTRY_INVERSE(plan, terms, entry) ((plan)[5 * (terms) + 3 * (entry) + 1])
#define ENTRY_CENTER(plan, terms, entry) ((plan)[5 * (terms) + 3 * (entry) + 2])
#define PRODUCTS_AT(terms, entries) (5 * (terms) + 3 * (entries))

/* The points of a work-item: rows of x1 from `row` on, rows of x2 from `column` on, which are a row
 * and a column of the covariance matrix. Its further points lie a fixed distance apart; those
 * beyond the edge are replaced by the last one, and their results are not used. */
typedef struct {
  __global const real *x1, *x2, *plan;
  int x1_ld, x2_ld;
  int row, column;
  int m, n;  /* rows of x1, of x2 */
  int terms; /* of the plan */
  int same;  /* x1 is x2, and row == column is one observation: it has white noise */
} covariance_points;

/* Row and column of tile `index` of a lower triangle of tiles, counted row by row:
 * index = i (i + 1) / 2 + j with j <= i. */
SCL_INLINE int2 lower_tile(const long index) {
  int row = (int)((sqrt(8.0 * (real)index + 1.0) - 1.0) * 0.5);
  while ((long)row * (row + 1) / 2 > index) row--;
  while ((long)(row + 1) * (row + 2) / 2 <= index) row++;
  return (int2)(row, (int)(index - (long)row * (row + 1) / 2));
}

/* Row and column of tile `index` of a matrix whose columns have `rows` tiles, column by column. */
SCL_INLINE int2 whole_tile(const long index, const int rows) {
  const int column = (int)(index / rows);
  return (int2)((int)(index - (long)column * rows), column);
}

/* The weights dF/dK of reverse mode: inner W + outer u v', where u and v have `rank` columns; of a
 * symmetric matrix outer (u v' + v u') / 2 if `two`, else u is v. rank may be 0; with inner = 0, W
 * is any matrix of the shape or, with w_ld = 0, one column. */
typedef struct {
  __global const real *w, *u, *v;
  int w_ld, u_ld, v_ld;
  int rank, two;
  real outer, inner;
} covariance_weights;
