/* Covariance matrices on the host: column by column, in strips of rows that stay in cache. The
 * functions themselves are those of the device (inst/kernels/include/covariance_functions.h). */
#include "engine/pass/covariance.h"
#include "engine/host/host.h"

#include <stdlib.h>

#define STRIP 128 /* rows at a time */

/* A strip of one column: rows i .. i+m-1 of x1 against row j of x2. Term t has the elements [t *
 * STRIP, (t + 1) * STRIP) of the arrays. */
typedef struct {
  const struct scl_covariance_pass *pass;
  size_t i, j, m;
  double *memory;
  double *value, *slope, *bend; /* variance times those of covariance_point */
  double *weight;               /* dF/d value, of each term */
  double *w;                    /* dF/dk */
} strip;

static scl_status begin_strips(strip *s, const struct scl_covariance_pass *pass) {
  size_t each = (size_t)pass->kernel->terms * STRIP, all = 4 * each + STRIP;
  *s = (strip){.pass = pass, .memory = malloc(all * sizeof(double))};
  if (s->memory == NULL) return scl_fail_memory(all * sizeof(double), 0, "a panel of covariances");
  s->value = s->memory;
  s->slope = s->value + each;
  s->bend = s->slope + each;
  s->weight = s->bend + each;
  s->w = s->weight + each;
  return SCL_OK;
}

/* Before the first strip of column j, and the next one; false when the column is done. */
static void begin_column(strip *s, size_t j) {
  s->j = j;
  s->i = s->pass->symmetric ? j : 0;
  s->m = 0;
}

static bool next_strip(strip *s) {
  s->i += s->m;
  size_t left = s->pass->x1.nrow - s->i;
  s->m = left < STRIP ? left : STRIP;
  return s->m > 0;
}

/* Whether the first element of the strip is the covariance of an observation with itself. */
static bool on_diagonal(const strip *s) {
  return s->pass->symmetric && s->i == s->j;
}

/* The operands of a column's part of s. */
typedef struct {
  int metric;
  const double *x1;
  double x2, center, inverse, extra;
} entry;

static entry find_entry(const strip *s, int term, int e) {
  const scl_covariance *kernel = s->pass->kernel;
  size_t column = (size_t)kernel->column[e];
  return (entry){.metric = covariance_metric(kernel->term[term].type),
                 .x1 = scl_host_at(s->pass->x1) + column * s->pass->x1.ld + s->i,
                 .x2 = scl_host_at(s->pass->x2)[column * s->pass->x2.ld + s->j],
                 .center = kernel->center == NULL ? 0.0 : kernel->center[e],
                 .inverse = 1.0 / kernel->lengthscale[e],
                 .extra = kernel->term[term].extra};
}

static double entry_part(const entry *e, size_t i) {
  return covariance_part(e->metric, e->x1[i], e->x2, e->center, e->inverse, e->extra);
}

/* sum[i] += the column's part; a loop of its own for squares, which compilers turn into vectors. */
static void add_part(const strip *s, const entry *e, double *sum) {
  if (e->metric != SCL_COVARIANCE_SQUARES) {
    for (size_t i = 0; i < s->m; i++) sum[i] += entry_part(e, i);
    return;
  }
  for (size_t i = 0; i < s->m; i++) {
    double u = (e->x1[i] - e->x2) * e->inverse;
    sum[i] += u * u;
  }
}

/* Term t, whose entries start at `first`. */
static void evaluate_term(const strip *s, int t, int first) {
  const scl_covariance_term *term = &s->pass->kernel->term[t];
  double sum[STRIP], variance = term->sd * term->sd;
  double *value = s->value + t * STRIP, *slope = s->slope + t * STRIP, *bend = s->bend + t * STRIP;
  for (size_t i = 0; i < s->m; i++) sum[i] = term->type == SCL_COVARIANCE_WHITE ? 1.0 : 0.0;
  if (on_diagonal(s) && !s->pass->quiet) sum[0] = 0.0;
  for (int e = first; e < first + term->entries; e++) {
    entry of = find_entry(s, t, e);
    add_part(s, &of, sum);
  }
  for (size_t i = 0; i < s->m; i++) {
    covariance_point p = covariance_any(term->type, sum[i], term->extra);
    value[i] = variance * p.value;
    slope[i] = variance * p.slope;
    bend[i] = variance * p.bend;
  }
}

static void evaluate_terms(const strip *s) {
  const scl_covariance *kernel = s->pass->kernel;
  for (int t = 0, first = 0; t < kernel->terms; first += kernel->term[t++].entries) {
    evaluate_term(s, t, first);
  }
}

/* The noise of observation i; its derivative with respect to log noise. */
static double noise_at(const struct scl_covariance_pass *pass, size_t i, double *derivative) {
  double noise2 = pass->quiet ? 0.0 : pass->kernel->noise * pass->kernel->noise, known = 0.0;
  if (pass->spread.buffer != NULL) {
    noise2 *= scl_host_at(pass->spread)[i];
    known = pass->quiet ? 0.0 : scl_host_at(pass->spread)[i + pass->spread.ld];
  }
  *derivative = 2.0 * noise2;
  return noise2 + known;
}

static void fill_strip(const strip *s, double *k) {
  const scl_covariance *kernel = s->pass->kernel;
  const int *next = kernel->factors;
  double product[STRIP], derivative;
  evaluate_terms(s);
  for (size_t i = 0; i < s->m; i++) k[i] = 0;
  for (int t = 0; next == NULL && t < kernel->terms; t++) {
    for (size_t i = 0; i < s->m; i++) k[i] += s->value[t * STRIP + (int)i];
  }
  for (int g = 0; next != NULL && g < kernel->products; g++) {
    int count = *next++;
    for (size_t i = 0; i < s->m; i++) product[i] = s->value[*next * STRIP + (int)i];
    for (int f = 1; f < count; f++) {
      for (size_t i = 0; i < s->m; i++) product[i] *= s->value[next[f] * STRIP + (int)i];
    }
    for (size_t i = 0; i < s->m; i++) k[i] += product[i];
    next += count;
  }
  if (on_diagonal(s)) k[0] += noise_at(s->pass, s->i, &derivative);
}

scl_status scl_host_covariance(scl_context *ctx, const struct scl_covariance_pass *pass) {
  double *k = scl_host_at(pass->k);
  strip s;
  SCL_TRY(begin_strips(&s, pass));
  scl_status status = SCL_OK;
  for (size_t j = 0; j < pass->x2.nrow; j++) {
    if (j % 64 == 0) SCL_GO(scl_poll());
    begin_column(&s, j);
    while (next_strip(&s)) fill_strip(&s, k + s.i + j * pass->k.ld);
  }
  if (pass->region == SCL_MIRRORED) {
    status = scl_host_copy(ctx, SCL_COPY_MIRROR_LOWER, pass->k, pass->k);
  }
done:
  free(s.memory);
  return status;
}

/* ---- reverse -------------------------------------------------------------------------------- */

/* w[i] = dF/dk_ij of the strip; elements off the diagonal of a symmetric matrix count twice. */
static void load_weights(const strip *s) {
  const struct scl_covariance_pass *pass = s->pass;
  const double *weights = scl_host_at(pass->weights), *u = scl_host_at(pass->u);
  const double *v = scl_host_at(pass->v);
  for (size_t i = 0; i < s->m; i++) {
    s->w[i] = weights == NULL ? 0.0 : pass->inner * weights[s->i + i + s->j * pass->weights.ld];
  }
  for (size_t r = 0; u != NULL && r < pass->u.ncol; r++, u += pass->u.ld, v += pass->v.ld) {
    bool two = pass->symmetric && u != v;
    double at_v = pass->outer * (two ? 0.5 : 1.0) * v[s->j];
    double at_u = two ? 0.5 * pass->outer * u[s->j] : 0.0;
    for (size_t i = 0; i < s->m; i++) s->w[i] += at_v * u[s->i + i];
    for (size_t i = 0; two && i < s->m; i++) s->w[i] += at_u * v[s->i + i];
  }
  if (!pass->symmetric) return;
  for (size_t i = s->i == s->j ? 1 : 0; i < s->m; i++) s->w[i] *= 2.0;
}

/* weight of each term: w times the other factors of the products that it is in. */
static void spread_weights(const strip *s) {
  const scl_covariance *kernel = s->pass->kernel;
  const int *next = kernel->factors;
  for (int t = 0; t < kernel->terms; t++) {
    for (size_t i = 0; i < s->m; i++) s->weight[t * STRIP + (int)i] = next == NULL ? s->w[i] : 0.0;
  }
  for (int g = 0; next != NULL && g < kernel->products; g++) {
    int count = *next++;
    for (int f = 0; f < count; f++) {
      double product[STRIP];
      for (size_t i = 0; i < s->m; i++) product[i] = s->w[i];
      for (int other = 0; other < count; other++) {
        if (other == f) continue;
        for (size_t i = 0; i < s->m; i++) product[i] *= s->value[next[other] * STRIP + (int)i];
      }
      for (size_t i = 0; i < s->m; i++) s->weight[next[f] * STRIP + (int)i] += product[i];
    }
    next += count;
  }
}

/* Adds the strip's part to sums, in the order of ops/covariance.h. */
static void add_strip(const strip *s, double *sums) {
  const scl_covariance *kernel = s->pass->kernel;
  double *by_length = sums + kernel->terms, *by_extra = by_length + kernel->entries;
  load_weights(s);
  evaluate_terms(s);
  spread_weights(s);
  for (int t = 0, first = 0; t < kernel->terms; first += kernel->term[t++].entries) {
    const double *value = s->value + t * STRIP, *slope = s->slope + t * STRIP;
    const double *bend = s->bend + t * STRIP, *weight = s->weight + t * STRIP;
    double sum = 0, extra = 0;
    for (size_t i = 0; i < s->m; i++) sum += weight[i] * value[i];
    for (size_t i = 0; i < s->m; i++) extra += weight[i] * bend[i];
    sums[t] += 2 * sum;
    for (int e = first; e < first + kernel->term[t].entries; e++) {
      entry of = find_entry(s, t, e);
      sum = 0;
      for (size_t i = 0; i < s->m; i++) {
        sum += covariance_times(weight[i] * slope[i], entry_part(&of, i));
      }
      by_length[e] += sum;
      for (size_t i = 0; of.metric == SCL_COVARIANCE_SINES && i < s->m; i++) {
        extra -= covariance_times(
            0.5 * weight[i] * slope[i],
            covariance_part_extra(of.metric, of.x1[i], of.x2, of.inverse, of.extra));
      }
    }
    by_extra[t] += extra;
  }
  if (on_diagonal(s)) {
    double derivative;
    noise_at(s->pass, s->i, &derivative);
    by_extra[kernel->terms] += derivative * s->w[0];
  }
}

scl_status scl_host_covariance_adjoint(scl_context *ctx, const struct scl_covariance_pass *pass) {
  (void)ctx;
  size_t count = (size_t)scl_covariance_count(pass->kernel);
  double *out = scl_host_at(pass->out);
  double *sums = NULL;
  strip s = {0};
  scl_status status;
  SCL_GO(begin_strips(&s, pass));
  sums = malloc(count * sizeof *sums); /* of one column, so that rounding stays small */
  if (sums == NULL) {
    status = scl_fail_memory(count * sizeof *sums, 0, "sums of derivatives");
    goto done;
  }
  for (size_t q = 0; q < count; q++) out[q] = 0;
  for (size_t j = 0; j < pass->x2.nrow; j++) {
    if (j % 64 == 0) SCL_GO(scl_poll());
    for (size_t q = 0; q < count; q++) sums[q] = 0;
    begin_column(&s, j);
    while (next_strip(&s)) add_strip(&s, sums);
    for (size_t q = 0; q < count; q++) out[q] += sums[q];
  }
done:
  free(sums);
  free(s.memory);
  return status;
}

/* Adds the strip's part to the derivatives with respect to x1 and, for a symmetric matrix, x2. */
static void add_inputs(const strip *s) {
  const struct scl_covariance_pass *pass = s->pass;
  const scl_covariance *kernel = pass->kernel;
  load_weights(s);
  evaluate_terms(s);
  spread_weights(s);
  for (int t = 0, first = 0; t < kernel->terms; first += kernel->term[t++].entries) {
    const double *slope = s->slope + t * STRIP, *weight = s->weight + t * STRIP;
    for (int e = first; e < first + kernel->term[t].entries; e++) {
      entry of = find_entry(s, t, e);
      double *out = scl_host_at(pass->out) + (size_t)kernel->column[e] * pass->out.ld;
      double sum = 0;
      for (size_t i = 0; i < s->m; i++) {
        double by_s = -0.5 * weight[i] * slope[i];
        out[s->i + i] += covariance_times(
            by_s, covariance_part_x(of.metric, of.x1[i], of.x2, of.center, of.inverse, of.extra));
        if (!pass->symmetric) continue;
        sum += covariance_times(
            by_s, covariance_part_x(of.metric, of.x2, of.x1[i], of.center, of.inverse, of.extra));
      }
      if (pass->symmetric) out[s->j] += sum;
    }
  }
}

scl_status scl_host_covariance_inputs(scl_context *ctx, const struct scl_covariance_pass *pass) {
  strip s;
  SCL_TRY(begin_strips(&s, pass));
  scl_status status;
  SCL_GO(scl_host_fill(ctx, 0.0, pass->out));
  for (size_t j = 0; j < pass->x2.nrow; j++) {
    if (j % 64 == 0) SCL_GO(scl_poll());
    begin_column(&s, j);
    while (next_strip(&s)) add_inputs(&s);
  }
done:
  free(s.memory);
  return status;
}
