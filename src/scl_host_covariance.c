/* Covariance matrices on the host: column by column, in strips of rows that stay in cache. The
 * functions themselves are those of the device (inst/kernels/covariance_functions.h). */
#include "scl_covariance.h"
#include "scl_host.h"

#include <stdlib.h>

#define STRIP 256 /* rows at a time */

/* A strip of one column: rows i .. i+m-1 of x1 against row j of x2. */
typedef struct {
  const struct scl_covariance_pass *pass;
  size_t i, j, m;
} strip;

/* The first strip of column j, and the next; false when the column is done. */
static strip first_strip(const struct scl_covariance_pass *pass, size_t j) {
  return (strip){.pass = pass, .i = pass->symmetric ? j : 0, .j = j, .m = 0};
}

static bool next_strip(strip *s) {
  s->i += s->m;
  size_t left = s->pass->x1.nrow - s->i;
  s->m = left < STRIP ? left : STRIP;
  return s->m > 0;
}

/* d[i] = ((x1_i - x2_j) / lengthscale)^2 in the entry's column. */
static void square_differences(const strip *s, int entry, double *d) {
  const scl_covariance *kernel = s->pass->kernel;
  size_t column = (size_t)kernel->column[entry];
  const double *x1 = scl_host_at(s->pass->x1) + column * s->pass->x1.ld + s->i;
  double x2 = scl_host_at(s->pass->x2)[column * s->pass->x2.ld + s->j];
  double inverse = 1.0 / kernel->lengthscale[entry];
  for (size_t i = 0; i < s->m; i++) {
    double u = (x1[i] - x2) * inverse;
    d[i] = u * u;
  }
}

/* r2[i] = sum of these over the term whose entries start at `first`. */
static void square_distances(const strip *s, int term, int first, double *r2) {
  double d[STRIP];
  square_differences(s, first, r2);
  for (int e = 1; e < s->pass->kernel->term[term].entries; e++) {
    square_differences(s, first + e, d);
    for (size_t i = 0; i < s->m; i++) r2[i] += d[i];
  }
}

static void fill_strip(const strip *s, double *k) {
  const scl_covariance *kernel = s->pass->kernel;
  double r2[STRIP], slope;
  for (size_t i = 0; i < s->m; i++) k[i] = 0;
  for (int t = 0, first = 0; t < kernel->terms; first += kernel->term[t++].entries) {
    double variance = kernel->term[t].sd * kernel->term[t].sd;
    square_distances(s, t, first, r2);
    for (size_t i = 0; i < s->m; i++) {
      k[i] += variance * covariance_value(kernel->term[t].type, r2[i], &slope);
    }
  }
  if (s->pass->symmetric && s->i == s->j) k[0] += kernel->noise * kernel->noise;
}

scl_status scl_host_covariance(scl_context *ctx, const struct scl_covariance_pass *pass) {
  double *k = scl_host_at(pass->k);
  for (size_t j = 0; j < pass->x2.nrow; j++) {
    if (j % 64 == 0) SCL_TRY(scl_poll());
    strip s = first_strip(pass, j);
    while (next_strip(&s)) fill_strip(&s, k + s.i + j * pass->k.ld);
  }
  if (pass->region != SCL_MIRRORED) return SCL_OK;
  return scl_host_copy(ctx, SCL_COPY_MIRROR_LOWER, pass->k, pass->k);
}

/* w[i] = dF/dk_ij of the strip; elements off the diagonal of a symmetric matrix count twice. */
static void load_weights(const strip *s, double *w) {
  const struct scl_covariance_pass *pass = s->pass;
  const double *weights = scl_host_at(pass->weights) + s->i + s->j * pass->weights.ld;
  const double *a = scl_host_at(pass->a);
  double outer = a == NULL ? 0 : pass->outer * a[s->j];
  double twice = pass->symmetric ? 2 : 1;
  for (size_t i = 0; i < s->m; i++) {
    w[i] = twice * (pass->inner * weights[i] + (a == NULL ? 0 : outer * a[s->i + i]));
  }
  if (pass->symmetric && s->i == s->j) w[0] *= 0.5;
}

/* Adds the strip's part to sums, in the order of scl_covariance.h. */
static void add_strip(const strip *s, double *sums) {
  const scl_covariance *kernel = s->pass->kernel;
  double w[STRIP], r2[STRIP], d[STRIP];
  load_weights(s, w);
  for (int t = 0, first = 0; t < kernel->terms; first += kernel->term[t++].entries) {
    double variance = kernel->term[t].sd * kernel->term[t].sd, sum = 0;
    square_distances(s, t, first, r2);
    for (size_t i = 0; i < s->m; i++) {
      double slope;
      sum += w[i] * covariance_value(kernel->term[t].type, r2[i], &slope);
      r2[i] = w[i] * slope;
    }
    sums[t] += 2 * variance * sum;
    for (int e = first; e < first + kernel->term[t].entries; e++) {
      square_differences(s, e, d);
      sum = 0;
      for (size_t i = 0; i < s->m; i++) sum += r2[i] * d[i];
      sums[kernel->terms + e] += variance * sum;
    }
  }
  if (s->pass->symmetric && s->i == s->j) {
    sums[kernel->terms + kernel->entries] += 2 * kernel->noise * kernel->noise * w[0];
  }
}

scl_status scl_host_covariance_adjoint(scl_context *ctx, const struct scl_covariance_pass *pass) {
  (void)ctx;
  size_t count = (size_t)scl_covariance_count(pass->kernel);
  double *out = scl_host_at(pass->out);
  double *sums = malloc(count * sizeof *sums); /* of one column, so that rounding stays small */
  if (sums == NULL) return scl_fail_memory(count * sizeof *sums, 0, "sums of derivatives");
  scl_status status = SCL_OK;
  for (size_t q = 0; q < count; q++) out[q] = 0;
  for (size_t j = 0; j < pass->x2.nrow; j++) {
    if (j % 64 == 0) SCL_GO(scl_poll());
    for (size_t q = 0; q < count; q++) sums[q] = 0;
    strip s = first_strip(pass, j);
    while (next_strip(&s)) add_strip(&s, sums);
    for (size_t q = 0; q < count; q++) out[q] += sums[q];
  }
done:
  free(sums);
  return status;
}
