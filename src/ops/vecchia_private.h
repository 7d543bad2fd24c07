/* Shared by vecchia.c and vecchia_predict.c. */
#ifndef SCL_OPS_VECCHIA_PRIVATE_H
#define SCL_OPS_VECCHIA_PRIVATE_H

#include "engine/pass/vecchia.h"
#include "ops/vecchia.h"

/* The data that passes read, in one context. */
typedef struct {
  scl_context *ctx;
  scl_mat *records, *neighbours;
  scl_mat *blocks; /* or NULL; on a device instead of neighbours */
} scl_vecchia_copy;

struct scl_vecchia {
  size_t n, p, outputs, q;
  /* neighbours of an observation, of other points, and of drawn ones: n - 1 and n at most */
  size_t m, most, wanted;
  bool spread;
  size_t stride;   /* numbers of 32 bits for a point's neighbours: m, made even */
  double *records; /* those of the host's copy */
  int32_t *neighbours;
  int32_t *blocks;                      /* or NULL: rows x count numbers */
  size_t block_rows, block_count, tall; /* of tall ones, which come first: more than 32 rows */
  scl_vecchia_copy host, fast;          /* fast: for likelihoods on a device, else empty */
  int32_t *order;
  double *scale;
};

/* The copy that likelihoods use. */
const scl_vecchia_copy *scl_vecchia_fast_copy(const scl_vecchia *v);
/* Numbers of a record. */
size_t scl_vecchia_record_size(const scl_vecchia *v);
/* Numbers of 32 bits for m neighbours of a point: an even number. */
size_t scl_vecchia_stride(size_t m);
/* n x p points, as rows, in the units of distances; NULL without memory. */
double *scl_vecchia_points(const scl_vecchia *v, const double *x, size_t n);

/* Grouped if the copy has blocks, except for weights. */
struct scl_vecchia_pass scl_vecchia_begin_pass(const scl_vecchia *v, const scl_vecchia_copy *c,
                                               const scl_covariance *kernel, scl_vecchia_what what);
/* Runs the pass; an order that failed becomes an error. */
scl_status scl_vecchia_run(const scl_vecchia *v, scl_context *ctx,
                           const struct scl_vecchia_pass *pass);

/* Results of the columns y and H: A = R R' as R^-1 (q x q, lower), b, y' P y, log|A|. */
typedef struct {
  double *root_inverse, *b;
  double logs, square, log_det;
} scl_vecchia_solution;

/* Space for a solution, the columns of derivatives and the results of a pass. */
typedef struct {
  double *memory;
  scl_vecchia_solution s;
  double *columns, *factor, *out;
} scl_vecchia_space;

/* Checks the kernel and allocates; free(w->memory), which was NULL. */
scl_status scl_vecchia_begin(const scl_vecchia *v, const scl_covariance *kernel,
                             scl_vecchia_space *w);
/* The solution w->s, and the likelihood, from this copy. */
scl_status scl_vecchia_sums(const scl_vecchia *v, const scl_vecchia_copy *c,
                            const scl_covariance *kernel, scl_gp_trend trend, scl_vecchia_space *w,
                            double *value);

/* From the sums of a pass; the arrays of `out` have room for q x q and q x outputs numbers. */
scl_status scl_vecchia_solve(const scl_vecchia *v, const double *results,
                             scl_vecchia_solution *out);
double scl_vecchia_marginal(const scl_vecchia *v, scl_gp_trend trend,
                            const scl_vecchia_solution *s);
/* The columns whose squares make up the likelihood, and their factors: y - H b, and for an
 * integrated b those of H R^-T, whose sum of squares has the derivatives of log|A|. */
size_t scl_vecchia_combine(const scl_vecchia *v, scl_gp_trend trend, const scl_vecchia_solution *s,
                           double *columns, double *factor);

/* Weights of points of the process, one pass: their `records` (count) and neighbours among those of
 * `all`, of which the first pass->noisy have noise. `pass` has m, weights and out. */
scl_status scl_vecchia_weigh(const scl_vecchia *v, struct scl_vecchia_pass *pass, double *all,
                             size_t rows, double *records, int32_t *neighbours, size_t count);

/* Points `first` .. `first` + n - 1: weights of their v->most nearest observations, records and
 * neighbours, a column for each point. */
typedef struct {
  size_t first, n;
  const double *weights, *records;
  const int32_t *neighbours;
} scl_vecchia_round;
typedef scl_status scl_vecchia_each(void *arg, const scl_vecchia_round *round);

/* Calls `each` for all `count` points x (count x p), some at a time. `noisy`: whether observations
 * have noise; basis may be NULL. SCL_E_NONFINITE naming "newdata". */
scl_status scl_vecchia_rounds(const scl_vecchia *v, const scl_covariance *kernel, const double *x,
                              const double *basis, size_t count, bool noisy, scl_vecchia_each *each,
                              void *arg);

#endif
