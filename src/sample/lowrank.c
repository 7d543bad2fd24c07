#include "sample/lowrank.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "sample/metric.h"
#include "sample/sums.h"

enum { ROUNDS = 6, POWER_ROUNDS = 20, SWEEPS = 30, USUAL_SPACE = 32 };
enum { FEWEST_CHOSEN = 16, FEWEST_LOOKED_AT = 16, FEW = 4 };
static const double CUTOFF = 2.0, WORTH = 0.8, ABOVE_NOISE = 1.3;

static double *take(double **from, size_t n) {
  double *const part = *from;
  *from += n;
  return part;
}

/* ---- the metric ----------------------------------------------------------------------------- */

size_t scl_lowrank_room(size_t d, size_t most) {
  return 1 + 3 * most + 2 * d * most;
}

scl_lowrank scl_lowrank_at(size_t d, size_t most, double *scale, double *room) {
  scl_lowrank m = {.d = d, .most = most, .scale = scale};
  m.rank = take(&room, 1);
  m.value = take(&room, most);
  m.weight = take(&room, most);
  m.product = take(&room, most);
  m.vector = take(&room, d * most);
  m.transpose = take(&room, d * most);
  return m;
}

static void transpose(size_t rows, size_t columns, const double *a, double *to) {
  for (size_t j = 0; j < columns; j++) {
    for (size_t i = 0; i < rows; i++) to[i * columns + j] = a[j * rows + i];
  }
}

void scl_lowrank_set(const scl_lowrank *m, size_t rank, const double *values,
                     const double *vectors) {
  *m->rank = (double)rank;
  for (size_t k = 0; k < rank; k++) {
    m->value[k] = values[k];
    m->weight[k] = sqrt(values[k]) - 1.0;
  }
  if (rank == 0) return;
  memcpy(m->vector, vectors, m->d * rank * sizeof *vectors);
  transpose(m->d, rank, m->vector, m->transpose);
}

/* t <- U' x. Few sums stay in registers; the order of operations is the same for all. */
static void project(const scl_lowrank *m, size_t rank, const double *restrict x,
                    double *restrict t) {
  for (size_t i = 0; i < rank && rank <= FEW; i++) {
    const double *column = m->vector + i * m->d;
    double sum = 0.0;
    for (size_t k = 0; k < m->d; k++) sum += column[k] * x[k];
    t[i] = sum;
  }
  if (rank <= FEW) return;
  for (size_t i = 0; i < rank; i++) t[i] = 0.0;
  for (size_t k = 0; k < m->d; k++) {
    const double *row = m->transpose + k * rank;
    for (size_t i = 0; i < rank; i++) t[i] += row[i] * x[k];
  }
}

void scl_lowrank_times(const scl_lowrank *m, bool transposed, const double *restrict x,
                       double *restrict to) {
  const size_t d = m->d, rank = (size_t)*m->rank;
  double *restrict const t = m->product;
  for (size_t k = 0; k < d; k++) to[k] = transposed ? m->scale[k] * x[k] : x[k];
  project(m, rank, to, t);
  for (size_t i = 0; i < rank; i++) {
    const double *column = m->vector + i * d;
    const double factor = m->weight[i] * t[i];
    for (size_t k = 0; k < d; k++) to[k] += column[k] * factor;
  }
  for (size_t k = 0; k < d && !transposed; k++) to[k] *= m->scale[k];
}

/* ---- small matrices, by column; the order of operations is fixed, for equal bits --------------
 */

/* to <- a b', for m x d and n x d. */
static void times(size_t m, size_t n, size_t d, const double *a, const double *b, double *to) {
  memset(to, 0, m * n * sizeof *to);
  for (size_t k = 0; k < d; k++) {
    for (size_t j = 0; j < n; j++) {
      const double factor = b[k * n + j];
      for (size_t i = 0; i < m; i++) to[j * m + i] += a[k * m + i] * factor;
    }
  }
}

static double product_of(size_t d, const double *x, const double *y) {
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  size_t k = 0;
  for (; k + 4 <= d; k += 4) {
    for (size_t i = 0; i < 4; i++) sum[i] += x[k + i] * y[k + i];
  }
  for (; k < d; k++) sum[0] += x[k] * y[k];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Orthonormalises columns, each in two rounds, and drops dependent ones; returns their number.
 */
static size_t orthonormal(size_t d, size_t columns, double *v) {
  size_t kept = 0;
  for (size_t j = 0; j < columns; j++) {
    double *own = v + j * d, *to = v + kept * d;
    const double before = sqrt(scl_sum_of_products(d, own, own));
    for (size_t i = 0; i < 2 * kept; i++) {
      const double *other = v + i % kept * d;
      const double share = scl_sum_of_products(d, own, other);
      for (size_t k = 0; k < d; k++) own[k] -= share * other[k];
    }
    const double size = sqrt(scl_sum_of_products(d, own, own));
    if (!(size > 1e-8 * before)) continue;
    for (size_t k = 0; k < d; k++) to[k] = own[k] / size;
    kept++;
  }
  return kept;
}

static void rotate(size_t n, double *x, double *y, size_t step, double c, double s) {
  for (size_t i = 0; i < n; i++) {
    const double a = x[i * step], b = y[i * step];
    x[i * step] = c * a - s * b;
    y[i * step] = s * a + c * b;
  }
}

/* Jacobi's method for a positive definite matrix: eigenvalues on its diagonal, vectors in v. */
static void diagonalise(size_t n, double *a, double *v) {
  for (size_t k = 0; k < n * n; k++) v[k] = k % (n + 1) == 0;
  bool again = true;
  for (int sweep = 0; sweep < SWEEPS && again; sweep++) {
    again = false;
    for (size_t q = 1; q < n; q++) {
      for (size_t p = 0; p < q; p++) {
        const double pp = a[p * n + p], qq = a[q * n + q], pq = a[q * n + p];
        if (!(fabs(pq) > 1e-15 * sqrt(pp * qq))) continue;
        const double angle = (qq - pp) / (2.0 * pq);
        const double size = 1.0 / (fabs(angle) + sqrt(1.0 + angle * angle));
        const double tangent = angle < 0.0 ? -size : size;
        const double c = 1.0 / sqrt(1.0 + tangent * tangent), s = tangent * c;
        rotate(n, a + p * n, a + q * n, 1, c, s);
        rotate(n, a + p, a + q, n, c, s);
        rotate(n, v + p * n, v + q * n, 1, c, s);
        again = true;
      }
    }
  }
}

/* The positive definite S with S b S = a, from b = R R' and R' a R = W E W':
 * S = T T', T = R'^-1 W E^1/4. False if b is not positive definite. `room`: 5 k^2. */
static bool mean_of(size_t k, const double *a, double *b, double *s, double *room) {
  double *const upper = take(&room, k * k), *const m = take(&room, k * k);
  double *const w = take(&room, k * k), *const t = take(&room, k * k);
  if (!scl_metric_factor(k, b)) return false;
  for (size_t j = 0; j < k; j++) {
    for (size_t i = 0; i < k; i++) upper[j * k + i] = i <= j ? b[j * k + i] : 0.0;
  }
  times(k, k, k, upper, a, t);
  times(k, k, k, t, upper, m);
  diagonalise(k, m, w);
  for (size_t j = 0; j < k; j++) {
    const double root = sqrt(sqrt(m[j * (k + 1)]));
    double *x = t + j * k;
    for (size_t i = 0; i < k; i++) x[i] = w[j * k + i] * root;
    for (size_t i = k; i-- > 0;) {
      for (size_t l = i + 1; l < k; l++) x[i] -= upper[l * k + i] * x[l];
      x[i] /= upper[i * (k + 1)];
    }
  }
  times(k, k, k, t, t, s);
  return true;
}

/* ---- the estimate --------------------------------------------------------------------------- */

/* The number of eigenvectors computed of each matrix, whatever the largest rank. */
static size_t space(size_t d, size_t n, size_t most) {
  return scl_min(scl_min(most > USUAL_SPACE ? most : USUAL_SPACE, d), n / 4);
}

size_t scl_lowrank_work(size_t d, size_t n, size_t most) {
  const size_t k = 2 * space(d, n, most);
  return 3 * d * n + 2 * d + k * n + 3 * d * k + 8 * k * k;
}

static double shrunk(double variance, size_t n) {
  return ((double)n * variance + 5e-3) / ((double)n + 5.0);
}

/* Subtracts the means; the variances. */
static void centre(size_t d, size_t n, double *x, double *mean, double *variance) {
  for (size_t k = 0; k < d; k++) mean[k] = variance[k] = 0.0;
  for (size_t j = 0; j < n; j++) {
    for (size_t k = 0; k < d; k++) mean[k] += x[j * d + k];
  }
  for (size_t k = 0; k < d; k++) mean[k] /= (double)n;
  for (size_t j = 0; j < n; j++) {
    for (size_t k = 0; k < d; k++) {
      x[j * d + k] -= mean[k];
      variance[k] += x[j * d + k] * x[j * d + k];
    }
  }
  for (size_t k = 0; k < d; k++) variance[k] /= (double)n - 1.0;
}

/* Centres positions and gradients and divides by their scales, which are inverse to each other.
 * Where the gradient or the position does not change, the variance of the positions holds, shrunk
 * towards 1e-3, and the gradient counts as that of a normal distribution. */
static void standardise(const scl_lowrank *m, size_t n, double *x, double *g, double *work) {
  const size_t d = m->d;
  double *const mean = take(&work, d), *const spread = take(&work, d);
  centre(d, n, x, mean, m->scale);
  centre(d, n, g, mean, spread);
  for (size_t k = 0; k < d; k++) {
    const double plain = shrunk(m->scale[k], n);
    const double value = sqrt(m->scale[k] / spread[k]);
    spread[k] = value > 0.0 && value < 1e8 * plain;
    m->scale[k] = sqrt(spread[k] != 0.0 ? value : plain);
  }
  for (size_t j = 0; j < n; j++) {
    for (size_t k = 0; k < d; k++) {
      x[j * d + k] /= m->scale[k];
      g[j * d + k] = spread[k] != 0.0 ? g[j * d + k] * m->scale[k] : -x[j * d + k];
    }
  }
}

/* Moves the columns that are longer than `least` to the front; their number. */
static size_t keep_longer(size_t d, size_t columns, double least, double *v) {
  size_t kept = 0;
  for (size_t j = 0; j < columns; j++) {
    if (!(product_of(d, v + j * d, v + j * d) > least * least)) continue;
    memmove(v + kept++ * d, v + j * d, d * sizeof *v);
  }
  return kept;
}

/* Orthonormal vectors near the leading eigenvectors of x x', those with eigenvalues above `least`,
 * by subspace iteration from `columns` of x; their number. */
static size_t leading(size_t d, size_t n, size_t columns, double least, const double *x, double *to,
                      double *work) {
  double *const by_row = take(&work, n * d), *const product = take(&work, n * columns);
  double *const across = take(&work, d * columns);
  for (size_t j = 0; j < columns; j++) {
    memcpy(to + j * d, x + j * n / columns * d, d * sizeof *x);
  }
  transpose(d, n, x, by_row);
  columns = orthonormal(d, columns, to);
  for (int round = 0; round < ROUNDS; round++) {
    transpose(d, columns, to, across);
    times(columns, n, d, across, by_row, product);
    times(d, columns, n, x, product, to);
    if (round >= ROUNDS / 2) columns = keep_longer(d, columns, least, to);
    columns = orthonormal(d, columns, to);
  }
  return columns;
}

/* The covariance matrix of the columns of x, multiplied by `across` if it is not NULL, shrunk
 * slightly towards 1e-3. */
static void inside(size_t d, size_t n, size_t k, const double *x, const double *across, double *to,
                   double *work) {
  double *const by_row = take(&work, n * d), *const product = take(&work, n * k);
  const double count = (double)n;
  if (across != NULL) {
    transpose(d, n, x, by_row);
    times(k, n, d, across, by_row, product);
    x = product;
  }
  times(k, k, n, x, x, to);
  for (size_t i = 0; i < k * k; i++) {
    const double ridge = i % (k + 1) == 0 ? 5e-3 : 0.0;
    to[i] = (count * (to[i] / (count - 1.0)) + ridge) / (count + 5.0);
  }
}

static bool counts(double value) {
  return value > CUTOFF || (value > 0.0 && value < 1.0 / CUTOFF);
}

/* The eigenpairs to use, with eigenvalues (on the diagonal of s) furthest from 1 first. */
static size_t choose(size_t k, const double *s, const double *z, size_t most, double *value,
                     double *across) {
  size_t kept = 0;
  double last = INFINITY;
  size_t last_at = 0;
  while (kept < most) {
    double best = -1.0;
    size_t at = 0;
    for (size_t j = 0; j < k; j++) {
      const double size = fabs(log(s[j * (k + 1)]));
      const bool behind = size < last || (size == last && j > last_at);
      if (!counts(s[j * (k + 1)]) || !behind || !(size > best)) continue;
      best = size;
      at = j;
    }
    if (best < 0.0) break;
    value[kept] = s[at * (k + 1)];
    memcpy(across + kept * k, z + at * k, k * sizeof *z);
    last = best;
    last_at = at;
    kept++;
  }
  return kept;
}

/* About the largest eigenvalue of x x', by iteration from the column of the largest norm. */
static double largest(size_t d, size_t n, const double *x, double *v, double *next) {
  double most = -1.0, value = 0.0;
  for (size_t j = 0; j < n; j++) {
    const double size = product_of(d, x + j * d, x + j * d);
    if (!(size > most)) continue;
    most = size;
    memcpy(v, x + j * d, d * sizeof *v);
  }
  for (int round = 0; round < POWER_ROUNDS; round++) {
    const double size = sqrt(product_of(d, v, v));
    if (!(size > 0.0)) return round == 0 ? 0.0 : value;
    if (round > 1 && size < 1.005 * value) return size;
    value = round == 0 ? most : size;
    for (size_t k = 0; k < d; k++) {
      v[k] /= size;
      next[k] = 0.0;
    }
    for (size_t j = 0; j < n; j++) {
      const double share = product_of(d, x + j * d, v);
      for (size_t k = 0; k < d; k++) next[k] += share * x[j * d + k];
    }
    memcpy(v, next, d * sizeof *v);
  }
  return value;
}

/* About the largest eigenvalue of x x' for independent numbers of equal variance. */
static double noise_of(size_t d, size_t n, const double *x) {
  const double edge = 1.0 + sqrt((double)d / (double)n);
  return edge * edge * product_of(d * n, x, x) / (double)d;
}

/* An orthonormal basis of the leading eigenvectors of both; its number of vectors. */
static size_t basis_of(const scl_lowrank *m, size_t n, const double *least, const double *positions,
                       const double *gradients, double *basis, double *work) {
  const size_t d = m->d, columns = space(d, n, m->most);
  const size_t first = leading(d, n, columns, least[0], positions, basis, work);
  const size_t second = leading(d, n, columns, least[1], gradients, basis + first * d, work);
  return orthonormal(d, first + second, basis);
}

/* The directions. With `looks` only those that stand out from noise, which takes less time. Where
 * few dimensions leave the basis nothing to choose, it is that of the coordinates. */
static void fit(const scl_lowrank *m, size_t n, double *positions, double *gradients, bool looks,
                double *work) {
  const size_t d = m->d, room = 2 * space(d, n, m->most);
  standardise(m, n, positions, gradients, work);
  *m->rank = 0.0;
  double *const basis = take(&work, d * room), *const across = take(&work, d * room);
  double *const a = take(&work, room * room), *const b = take(&work, room * room);
  double *const s = take(&work, room * room);
  double least[2] = {0.0, 0.0};
  if (looks && d >= FEWEST_LOOKED_AT) {
    least[0] = noise_of(d, n, positions);
    least[1] = noise_of(d, n, gradients);
    if (!(largest(d, n, positions, work, work + d) > ABOVE_NOISE * least[0]) &&
        !(largest(d, n, gradients, work, work + d) > ABOVE_NOISE * least[1]))
      return;
  }
  const bool whole = d <= room && least[0] == 0.0 && least[1] == 0.0;
  const size_t k = whole ? d : basis_of(m, n, least, positions, gradients, basis, work);
  if (!whole) transpose(d, k, basis, across);
  inside(d, n, k, positions, whole ? NULL : across, a, work);
  inside(d, n, k, gradients, whole ? NULL : across, b, work);
  if (k == 0 || !mean_of(k, a, b, s, work)) return;
  diagonalise(k, s, a);
  double *const chosen = take(&work, k * k), *const turned = take(&work, k * k);
  const size_t rank = choose(k, s, a, m->most, m->value, chosen);
  if (!whole) {
    transpose(k, rank, chosen, turned);
    times(d, rank, k, basis, turned, across);
  }
  scl_lowrank_set(m, rank, m->value, whole ? chosen : across);
}

void scl_lowrank_fit(const scl_lowrank *m, size_t n, double *positions, double *gradients,
                     double *work) {
  fit(m, n, positions, gradients, false, work);
}

/* ---- whether it pays ------------------------------------------------------------------------ */

/* The usual diagonal metric. `work`: a vector. */
static void set_diagonal(const scl_lowrank *m, size_t n, const double *positions, double *work) {
  double *const mean = work, *const variance = m->scale;
  for (size_t k = 0; k < m->d; k++) mean[k] = variance[k] = 0.0;
  for (size_t j = 0; j < n; j++) {
    for (size_t k = 0; k < m->d; k++) {
      const double off = positions[j * m->d + k] - mean[k];
      mean[k] += off / (double)(j + 1);
      variance[k] += off * (positions[j * m->d + k] - mean[k]);
    }
  }
  for (size_t k = 0; k < m->d; k++) m->scale[k] = sqrt(shrunk(variance[k] / ((double)n - 1.0), n));
  *m->rank = 0.0;
}

/* to <- L^-1 x */
static void divide(const scl_lowrank *m, const double *restrict x, double *restrict to) {
  for (size_t k = 0; k < m->d; k++) to[k] = x[k] / m->scale[k];
  for (size_t i = 0; i < (size_t)*m->rank; i++) {
    const double *column = m->vector + i * m->d;
    const double factor = 1.0 / sqrt(m->value[i]) - 1.0;
    const double share = factor * scl_sum_of_products(m->d, column, to);
    for (size_t k = 0; k < m->d; k++) to[k] += share * column[k];
  }
}

/* How many steps a trajectory across the distribution takes, up to a factor: the largest standard
 * deviation of L^-1 q, times that of L' gradient, whose inverse limits the step size. */
static double steps(const scl_lowrank *m, size_t n, const double *positions,
                    const double *gradients, double *work) {
  const size_t d = m->d;
  double *const x = take(&work, d * n), *const v = take(&work, d), *const next = take(&work, d);
  for (size_t j = 0; j < n; j++) divide(m, positions + j * d, x + j * d);
  centre(d, n, x, v, next);
  const double wide = largest(d, n, x, v, next);
  for (size_t j = 0; j < n; j++) scl_lowrank_times(m, true, gradients + j * d, x + j * d);
  centre(d, n, x, v, next);
  return sqrt(wide) * sqrt(largest(d, n, x, v, next));
}

/* Whether the scale and the usual diagonal metric are so far apart that the number of steps may
 * differ. */
static bool differs(const scl_lowrank *m, size_t n, const double *positions, double *work) {
  double *const scale = take(&work, m->d), least = INFINITY, most = 0.0;
  memcpy(scale, m->scale, m->d * sizeof *scale);
  set_diagonal(m, n, positions, work);
  for (size_t k = 0; k < m->d; k++) {
    const double ratio = scale[k] / m->scale[k];
    if (ratio < least) least = ratio;
    if (ratio > most) most = ratio;
    m->scale[k] = scale[k];
  }
  return WORTH * most > least;
}

/* Whether the metric of one half saves steps on the other one. */
static bool saves(const scl_lowrank *m, size_t n, bool second, const double *positions,
                  const double *gradients, double *work) {
  const size_t d = m->d, half = n / 2, here = second ? n - half : half, there = n - here;
  const size_t from = second ? d * half : 0, to = second ? 0 : d * half;
  double *const x = work, *const g = work + d * here;
  memcpy(x, positions + from, d * here * sizeof *x);
  memcpy(g, gradients + from, d * here * sizeof *g);
  fit(m, here, x, g, true, work + 2 * d * here);
  if (*m->rank == 0.0 && !differs(m, here, positions + from, work)) return false;
  const double few = steps(m, there, positions + to, gradients + to, work);
  set_diagonal(m, here, positions + from, work);
  return few < WORTH * steps(m, there, positions + to, gradients + to, work);
}

bool scl_lowrank_choose(const scl_lowrank *m, size_t n, double *positions, double *gradients,
                        double *work) {
  const bool pays = n >= FEWEST_CHOSEN && saves(m, n, false, positions, gradients, work) &&
                    saves(m, n, true, positions, gradients, work);
  *m->rank = 0.0;
  if (pays) fit(m, n, positions, gradients, true, work);
  return pays;
}
