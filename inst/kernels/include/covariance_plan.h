/* What covariance*.cl share: the kernel as they read it, and tiles of a lower triangle.
 *
 * The plan, doubles with whole numbers among them, in this order:
 *   5 for each term: type, number of entries, its first entry, variance (sd^2), extra;
 *   3 for each entry: column of x, 1 / lengthscale, center;
 *   for each product: number of factors, their terms.
 * Its reads are the same for all work-items.
 *
 * COVARIANCE_BASIC=1: sums of basic types (covariance_functions.h); products are not read. */
#define TERM_TYPE(plan, t) ((int)(plan)[5 * (t)])
#define TERM_ENTRIES(plan, t) ((int)(plan)[5 * (t) + 1])
#define TERM_FIRST(plan, t) ((int)(plan)[5 * (t) + 2])
#define TERM_VARIANCE(plan, t) ((plan)[5 * (t) + 3])
#define TERM_EXTRA(plan, t) ((plan)[5 * (t) + 4])
#define ENTRY_COLUMN(plan, terms, e) ((long)(plan)[5 * (terms) + 3 * (e)])
#define ENTRY_INVERSE(plan, terms, e) ((plan)[5 * (terms) + 3 * (e) + 1])
#define ENTRY_CENTER(plan, terms, e) ((plan)[5 * (terms) + 3 * (e) + 2])
#define PRODUCTS_AT(terms, entries) (5 * (terms) + 3 * (entries))

#if COVARIANCE_BASIC
#define COVARIANCE_NAME(name) covariance_basic_##name
#define COVARIANCE_TYPES(ENTRY) SCL_COVARIANCE_BASIC(ENTRY)
#define TERM_METRIC(type) SCL_COVARIANCE_SQUARES
#else
#define COVARIANCE_NAME(name) covariance_##name
#define COVARIANCE_TYPES(ENTRY) SCL_COVARIANCE_TABLE(ENTRY)
#define TERM_METRIC(type) covariance_metric(type)
#endif

/* Tile number t of a lower triangle of tiles, row by row: t = i (i + 1) / 2 + j with j <= i. */
SCL_INLINE void lower_tile(long t, int *i, int *j) {
  int row = (int)((sqrt(8.0 * (real)t + 1.0) - 1.0) * 0.5);
  while ((long)row * (row + 1) / 2 > t) row--;
  while ((long)(row + 1) * (row + 2) / 2 <= t) row++;
  *i = row;
  *j = (int)(t - (long)row * (row + 1) / 2);
}
