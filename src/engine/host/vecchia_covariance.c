/* The covariances of a block, and their derivatives (engine/host/vecchia.h). */
#include "engine/host/vecchia.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef SCL_WIDE
#include <immintrin.h>
#endif

static const lanes zero = {0};

/* First pair of column j. */
INLINED size_t column_start(size_t rows, size_t j) {
  return j * rows - j * (j - 1) / 2;
}

/* ---- covariances ---------------------------------------------------------------------------- */

/* sum += the part of a column of squares. */
INLINED void add_squares(const block *v, size_t column, double inverse) {
  const lanes *x = v->x + column * v->rows;
  lanes *s = v->sum;
  for (size_t j = 0; j < v->rows; j++) {
    for (size_t i = j; i < v->rows; i++, s++) {
      lanes u = (x[i] - x[j]) * inverse;
      *s += u * u;
    }
  }
}

/* Entry e of a term, for rows i and j of lane w. */
static double part_of(const block *v, const scl_covariance_term *term, int e, size_t i, size_t j,
                      int w) {
  const scl_covariance *kernel = v->pass->kernel;
  lanes *x = v->x + (size_t)kernel->column[e] * v->rows;
  return covariance_part(covariance_metric(term->type), *scl_lane(x, i, w), *scl_lane(x, j, w),
                         kernel->center == NULL ? 0.0 : kernel->center[e],
                         1.0 / kernel->lengthscale[e], term->extra);
}

static void add_parts(const block *v, const scl_covariance_term *term, int e) {
  lanes *s = v->sum;
  for (size_t j = 0; j < v->rows; j++) {
    for (size_t i = j; i < v->rows; i++, s++) {
      for (int w = 0; w < SCL_LANES; w++) *scl_lane(s, 0, w) += part_of(v, term, e, i, j, w);
    }
  }
}

static void exponentials(const block *v, lanes *x) {
  size_t n = v->pairs * SCL_LANES;
  double *at = (double *)x;
  if (v->exponential != NULL) {
    v->exponential(n, at, at);
    return;
  }
  for (size_t i = 0; i < n; i++) at[i] = exp(at[i]);
}

/* to = factor sqrt(from), n vectors. */
static void roots_plain(size_t n, double factor, const lanes *from, lanes *to) {
  const double *a = (const double *)from;
  double *b = (double *)to;
  for (size_t i = 0; i < n * SCL_LANES; i++) b[i] = factor * sqrt(a[i]);
}

#ifdef SCL_WIDE
SCL_WIDE static void roots_wide(size_t n, double factor, const lanes *from, lanes *to) {
  for (size_t i = 0; i < n; i++) to[i] = factor * (lanes)_mm256_sqrt_pd((__m256d)from[i]);
}
#else
#define roots_wide roots_plain
#endif

/* The basic types by vectors: value and slope from sum, which is finite. */
INLINED void evaluate_basic(const block *v, scl_covariance_type type, double variance, lanes *value,
                            lanes *slope, bool wide) {
  size_t n = v->pairs;
  const lanes *s = v->sum;
  lanes *u = v->by; /* the exponent without its sign */
  double factor = type == SCL_COVARIANCE_MATERN32   ? SCL_SQRT3
                  : type == SCL_COVARIANCE_MATERN52 ? SCL_SQRT5
                                                    : 1.0;
  if (type == SCL_COVARIANCE_EXP_QUAD) {
    for (size_t i = 0; i < n; i++) u[i] = 0.5 * s[i];
  } else {
    (wide ? roots_wide : roots_plain)(n, factor, s, u);
  }
  for (size_t i = 0; i < n; i++) value[i] = -u[i];
  exponentials(v, value);
  for (size_t i = 0; i < n; i++) {
    lanes e = variance * value[i];
    switch (type) {
    case SCL_COVARIANCE_MATERN32:
      value[i] = (1.0 + u[i]) * e;
      slope[i] = 3.0 * e;
      break;
    case SCL_COVARIANCE_MATERN52:
      value[i] = (1.0 + u[i] + (5.0 / 3.0) * s[i]) * e;
      slope[i] = (5.0 / 3.0) * (1.0 + u[i]) * e;
      break;
    case SCL_COVARIANCE_EXPONENTIAL: /* at distance 0 the slope's factor is 0 */
      value[i] = e;
      slope[i] = e / (u[i] + 1e-150);
      break;
    default:
      value[i] = slope[i] = e;
    }
  }
}

static void evaluate_any(const block *v, const scl_covariance_term *term, double variance,
                         lanes *value, lanes *slope, lanes *bend) {
  double *s = (double *)v->sum, *f = (double *)value, *g = (double *)slope, *h = (double *)bend;
  for (size_t i = 0; i < v->pairs * SCL_LANES; i++) {
    covariance_point p = covariance_any(term->type, s[i], term->extra);
    f[i] = variance * p.value;
    g[i] = variance * p.slope;
    h[i] = variance * p.bend;
  }
}

/* Off the diagonal white terms are 0; on it 1, except at quiet points. */
static void white_sums(const block *v) {
  size_t rows = v->rows;
  for (size_t i = 0; i < v->pairs; i++) v->sum[i] = zero + 1.0;
  for (size_t j = 0; j < rows; j++) v->sum[column_start(rows, j)] = v->quiet[j];
}

/* Term t, whose entries start at `first`. */
INLINED void evaluate_term(block *v, int t, int first, bool wide) {
  const scl_covariance *kernel = v->pass->kernel;
  const scl_covariance_term *term = &kernel->term[t];
  size_t n = v->pairs;
  lanes *value = v->value + (size_t)t * n, *slope = v->slope + (size_t)t * n;
  double variance = term->sd * term->sd;
  if (term->type == SCL_COVARIANCE_WHITE) {
    white_sums(v);
  } else {
    memset(v->sum, 0, n * sizeof(lanes));
  }
  for (int e = first; e < first + term->entries; e++) {
    if (covariance_metric(term->type) == SCL_COVARIANCE_SQUARES) {
      add_squares(v, (size_t)kernel->column[e], 1.0 / kernel->lengthscale[e]);
    } else {
      add_parts(v, term, e);
    }
  }
  lanes all = zero;
  for (size_t i = 0; i < n; i++) all += v->sum[i];
  bool finite = true;
  for (int w = 0; w < SCL_LANES; w++) finite = finite && *scl_lane(&all, 0, w) < 1e300;
  if (!finite) v->far = true;
  if (finite && term->type == SCL_COVARIANCE_MATERN32) {
    evaluate_basic(v, SCL_COVARIANCE_MATERN32, variance, value, slope, wide);
  } else if (finite && term->type == SCL_COVARIANCE_MATERN52) {
    evaluate_basic(v, SCL_COVARIANCE_MATERN52, variance, value, slope, wide);
  } else if (finite && term->type == SCL_COVARIANCE_EXP_QUAD) {
    evaluate_basic(v, SCL_COVARIANCE_EXP_QUAD, variance, value, slope, wide);
  } else if (finite && term->type == SCL_COVARIANCE_EXPONENTIAL) {
    evaluate_basic(v, SCL_COVARIANCE_EXPONENTIAL, variance, value, slope, wide);
  } else {
    evaluate_any(v, term, variance, value, slope, v->bend + (size_t)t * n);
    return;
  }
  memset(v->bend + (size_t)t * n, 0, n * sizeof(lanes));
}

/* sum = the strip of covariances without noise. */
INLINED void add_products(const block *v) {
  const scl_covariance *kernel = v->pass->kernel;
  const int *next = kernel->factors;
  size_t n = v->pairs;
  memset(v->sum, 0, n * sizeof(lanes));
  for (int t = 0; next == NULL && t < kernel->terms; t++) {
    for (size_t i = 0; i < n; i++) v->sum[i] += v->value[(size_t)t * n + i];
  }
  for (int g = 0; next != NULL && g < kernel->products; g++) {
    int count = *next++;
    memcpy(v->by, v->value + (size_t)next[0] * n, n * sizeof(lanes));
    for (int f = 1; f < count; f++) {
      for (size_t i = 0; i < n; i++) v->by[i] *= v->value[(size_t)next[f] * n + i];
    }
    for (size_t i = 0; i < n; i++) v->sum[i] += v->by[i];
    next += count;
  }
}

INLINED void build(block *v, bool wide) {
  const scl_covariance *kernel = v->pass->kernel;
  size_t rows = v->rows;
  v->far = false;
  for (int t = 0, first = 0; t < kernel->terms; first += kernel->term[t++].entries) {
    evaluate_term(v, t, first, wide);
  }
  add_products(v);
  const lanes *s = v->sum;
  for (size_t j = 0; j < rows; j++) {
    lanes *column = v->k + j * rows;
    for (size_t i = j; i < rows; i++) column[i] = *s++ * v->real[i] * v->real[j];
    column[j] += v->noise[j] + (1.0 - v->real[j]);
  }
}

/* ---- derivatives ---------------------------------------------------------------------------- */

/* by = dF / d value of term t: weight times the other factors of the products that it is in. */
INLINED void weigh_term(const block *v, int t) {
  const scl_covariance *kernel = v->pass->kernel;
  size_t n = v->pairs;
  const int *next = kernel->factors;
  if (next == NULL) {
    memcpy(v->by, v->weight, n * sizeof(lanes));
    return;
  }
  memset(v->by, 0, n * sizeof(lanes));
  for (int g = 0; g < kernel->products; g++) {
    int count = *next++;
    for (int f = 0; f < count; f++) {
      if (next[f] != t) continue;
      memcpy(v->sum, v->weight, n * sizeof(lanes));
      for (int other = 0; other < count; other++) {
        const lanes *value = v->value + (size_t)next[other] * n;
        for (size_t i = 0; other != f && i < n; i++) v->sum[i] *= value[i];
      }
      for (size_t i = 0; i < n; i++) v->by[i] += v->sum[i];
    }
    next += count;
  }
}

/* out += sum of by times the part of a column of squares; by is weight times slope. */
INLINED void sum_squares(const block *v, size_t column, double inverse, lanes *out) {
  const lanes *x = v->x + column * v->rows, *by = v->by;
  lanes sum = zero;
  for (size_t j = 0; j < v->rows; j++) {
    for (size_t i = j; i < v->rows; i++, by++) {
      lanes u = (x[i] - x[j]) * inverse;
      sum += u * u * *by;
    }
  }
  *out += sum;
}

/* The same for other parts, and for squares that overflow. */
static void sum_parts(const block *v, const scl_covariance_term *term, int e, lanes *out,
                      lanes *extra) {
  const scl_covariance *kernel = v->pass->kernel;
  int metric = covariance_metric(term->type);
  lanes sum = zero, *by = v->by, *x = v->x + (size_t)kernel->column[e] * v->rows;
  for (size_t j = 0; j < v->rows; j++) {
    for (size_t i = j; i < v->rows; i++, by++) {
      for (int w = 0; w < SCL_LANES; w++) {
        double at = *scl_lane(by, 0, w);
        *scl_lane(&sum, 0, w) += covariance_times(at, part_of(v, term, e, i, j, w));
        if (metric != SCL_COVARIANCE_SINES) continue;
        *scl_lane(extra, 0, w) -= covariance_times(
            0.5 * at, covariance_part_extra(metric, *scl_lane(x, i, w), *scl_lane(x, j, w),
                                            1.0 / kernel->lengthscale[e], term->extra));
      }
    }
  }
  *out += sum;
}

/* Term t, whose entries start at `first`. */
INLINED void add_term(const block *v, int t, int first, lanes *total) {
  const scl_covariance *kernel = v->pass->kernel;
  const scl_covariance_term *term = &kernel->term[t];
  size_t n = v->pairs;
  const lanes *value = v->value + (size_t)t * n, *slope = v->slope + (size_t)t * n;
  const lanes *bend = v->bend + (size_t)t * n;
  lanes sum = zero, extra = zero;
  weigh_term(v, t);
  for (size_t i = 0; i < n; i++) sum += v->by[i] * value[i];
  total[t] += 2.0 * sum;
  for (size_t i = 0; i < n; i++) extra += v->by[i] * bend[i];
  for (size_t i = 0; i < n; i++) v->by[i] *= slope[i];
  for (int e = first; e < first + term->entries; e++) {
    bool plain = covariance_metric(term->type) == SCL_COVARIANCE_SQUARES && !v->far;
    lanes *to = total + kernel->terms + e;
    if (plain) {
      sum_squares(v, (size_t)kernel->column[e], 1.0 / kernel->lengthscale[e], to);
    } else {
      sum_parts(v, term, e, to, &extra);
    }
  }
  total[kernel->terms + kernel->entries + t] += extra;
}

/* moved of parameter `group` += D w for the lower triangle D in sum. */
INLINED void add_moved(block *v, int group) {
  size_t rows = v->rows;
  double factor = group > 0 ? 1.0 : -1.0;
  for (size_t q = 0; q < v->width; q++) {
    lanes *to = v->moved + ((size_t)(abs(group) - 1) * v->width + q) * rows;
    const lanes *strip = v->sum, *at = v->moving + q * rows;
    size_t last = v->last[q];
    for (size_t j = 0; j <= last; strip += rows - j++) {
      lanes w = at[j] * factor, sum = strip[0] * at[j];
      for (size_t i = j + 1; i <= last; i++) {
        sum += strip[i - j] * at[i];
        to[i] += strip[i - j] * w;
      }
      to[j] += sum * factor;
    }
  }
}

/* sum += by times the part of an entry. */
INLINED void add_weighed_squares(const block *v, size_t column, double inverse) {
  const lanes *x = v->x + column * v->rows, *by = v->by;
  lanes *s = v->sum;
  for (size_t j = 0; j < v->rows; j++) {
    for (size_t i = j; i < v->rows; i++, s++, by++) {
      lanes u = (x[i] - x[j]) * inverse;
      *s += u * u * *by;
    }
  }
}

/* The same for other parts, and for squares that overflow; with `extra` what an entry of sines adds
 * to the derivative by the period. */
static void add_weighed_parts(const block *v, const scl_covariance_term *term, int e, bool extra) {
  const scl_covariance *kernel = v->pass->kernel;
  int metric = covariance_metric(term->type);
  lanes *x = v->x + (size_t)kernel->column[e] * v->rows, *s = v->sum, *by = v->by;
  for (size_t j = 0; j < v->rows; j++) {
    for (size_t i = j; i < v->rows; i++, s++, by++) {
      for (int w = 0; w < SCL_LANES; w++) {
        double at = *scl_lane(by, 0, w);
        *scl_lane(s, 0, w) +=
            extra ? -covariance_times(0.5 * at, covariance_part_extra(
                                                    metric, *scl_lane(x, i, w), *scl_lane(x, j, w),
                                                    1.0 / kernel->lengthscale[e], term->extra))
                  : covariance_times(at, part_of(v, term, e, i, j, w));
      }
    }
  }
}

/* The sd and the extra parameter of term t; by becomes the weight of its entries' parts. */
INLINED void move_whole(block *v, int t, int first) {
  const scl_covariance *kernel = v->pass->kernel;
  const scl_covariance_term *term = &kernel->term[t];
  size_t n = v->pairs;
  const lanes *value = v->value + (size_t)t * n, *slope = v->slope + (size_t)t * n;
  const lanes *bend = v->bend + (size_t)t * n;
  int sd = v->pass->group[t], extra = v->pass->group[kernel->terms + kernel->entries + t];
  if (sd != 0) {
    for (size_t i = 0; i < n; i++) v->sum[i] = 2.0 * v->by[i] * value[i];
    add_moved(v, sd);
  }
  if (extra != 0) {
    for (size_t i = 0; i < n; i++) v->sum[i] = v->by[i] * bend[i];
  }
  for (size_t i = 0; i < n; i++) v->by[i] *= slope[i];
  if (extra == 0) return;
  for (int e = first; e < first + term->entries; e++) {
    if (covariance_metric(term->type) == SCL_COVARIANCE_SINES) add_weighed_parts(v, term, e, true);
  }
  add_moved(v, extra);
}

/* Term t, whose entries start at `first`: those of one parameter together. */
INLINED void move_term(block *v, int t, int first) {
  const scl_covariance *kernel = v->pass->kernel;
  const scl_covariance_term *term = &kernel->term[t];
  const int *group = v->pass->group + kernel->terms;
  bool plain = covariance_metric(term->type) == SCL_COVARIANCE_SQUARES && !v->far;
  weigh_term(v, t);
  move_whole(v, t, first);
  for (int e = first; e < first + term->entries; e++) {
    bool before = group[e] == 0;
    for (int other = first; other < e; other++) before = before || group[other] == group[e];
    if (before) continue;
    memset(v->sum, 0, v->pairs * sizeof(lanes));
    for (int other = e; other < first + term->entries; other++) {
      if (group[other] != group[e]) continue;
      if (plain) {
        add_weighed_squares(v, (size_t)kernel->column[other], 1.0 / kernel->lengthscale[other]);
      } else {
        add_weighed_parts(v, term, other, false);
      }
    }
    add_moved(v, group[e]);
  }
}

INLINED void move(block *v) {
  const scl_covariance *kernel = v->pass->kernel;
  size_t rows = v->rows, count = v->pass->parameters;
  int noise = v->pass->group[scl_covariance_count(kernel) - 1];
  for (size_t i = 0; i < v->pairs; i++) v->weight[i] = zero + 1.0;
  memset(v->moved, 0, count * v->width * rows * sizeof(lanes));
  for (int t = 0, first = 0; t < kernel->terms; first += kernel->term[t++].entries) {
    move_term(v, t, first);
  }
  for (size_t r = 0; r < count * v->width; r++) {
    for (size_t i = 0; i < rows; i++) v->moved[r * rows + i] *= v->real[i];
  }
  if (noise == 0) return;
  lanes *to = v->moved + (size_t)(abs(noise) - 1) * v->width * rows;
  double sign = noise > 0 ? 1.0 : -1.0;
  for (size_t q = 0; q < v->width; q++) {
    for (size_t i = 0; i < rows; i++) {
      to[q * rows + i] += v->by_noise[i] * v->moving[q * rows + i] * sign;
    }
  }
}

INLINED void differentiate(const block *v, lanes *total) {
  const scl_covariance *kernel = v->pass->kernel;
  for (int t = 0, first = 0; t < kernel->terms; first += kernel->term[t++].entries) {
    add_term(v, t, first, total);
  }
  lanes sum = zero;
  for (size_t j = 0; j < v->rows; j++) {
    sum += v->weight[column_start(v->rows, j)] * v->by_noise[j];
  }
  total[scl_covariance_count(kernel) - 1] += sum;
}

#ifdef SCL_WIDE
SCL_WIDE static void build_wide(block *v) {
  build(v, true);
}
#endif

void scl_vecchia_build(block *v) {
#ifdef SCL_WIDE
  if (scl_host_has_wide()) {
    build_wide(v);
    return;
  }
#endif
  build(v, false);
}

SCL_BY_WIDTH(extern, scl_vecchia_differentiate, differentiate, (block * v, lanes *total),
             (v, total))

SCL_BY_WIDTH(static, move_all, move, (block * v), (v))

void scl_vecchia_move(block *v, const lanes *w) {
  v->moving = w;
  move_all(v);
}
