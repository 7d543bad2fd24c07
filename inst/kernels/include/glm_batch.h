/* Generalised linear models of groups of rows: one fit, by a work-group (portable/glm_batch.cl) or
 * by a thread of the host (`lanes` is 1). Single source: OpenCL C and C11, which defines the
 * barrier as nothing.
 *
 * The columns of a group are made orthonormal, X = Q R, as for glm(): a column whose rest is below
 * the tolerance is dropped. Newton's method then finds the coefficients theta of Q:
 *
 *   information = Q' W Q = L L',  step = L'^-1 L^-1 Q' score
 *
 * A step is halved while the slope at its end is more than half as steep, downwards, as at its
 * start; the likelihood is concave, so no value is needed. The distance from the mode is about
 * |L^-1 Q' score|, in standard errors. If it vanishes while some linear predictor still moves, the
 * likelihood has no maximum.
 *
 * Rows are shared out among lanes in turns; sums of the information are shared out by element. */
#ifndef GLM_BATCH_H
#define GLM_BATCH_H

/* The host defines these before. On a CPU device a group has one work-item. */
#ifdef __OPENCL_VERSION__
#ifdef SCL_CPU
#define GLM_BATCH_SYNC()
#else
#define GLM_BATCH_SYNC() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#endif
#define GLM_BATCH_EXP(x, n, lane, lanes)                                                           \
  for (int i = lane; i < n; i += lanes) x[i] = exp(x[i])
#endif

/* The data of all groups: a row of x and so on; NULL for weights 1, offset 0, rows in order. */
typedef struct {
  SCL_GLOBAL const real *x, *y, *w, *offset, *order;
  scl_long ld;
} glm_batch_data;

typedef struct {
  SCL_GLOBAL real *q, *y, *w, *offset, *eta, *weight, *score; /* n x p, and n each */
  SCL_LOCAL real *root, *info;                                /* R; information and L, lower */
  SCL_LOCAL real *theta, *gradient, *step, *size, *kept;      /* p; kept: column of X */
  SCL_LOCAL real *partial;                                    /* a number for each lane */
  int n, p, rank, family, lane, lanes;
} glm_batch;

SCL_INLINE glm_batch glm_batch_place(SCL_GLOBAL real *work, SCL_LOCAL real *values, int n, int p,
                                     int family, int lane, int lanes) {
  glm_batch b;
  b.q = work;
  b.y = work + (scl_long)n * p;
  b.w = b.y + n;
  b.offset = b.w + n;
  b.eta = b.offset + n;
  b.weight = b.eta + n;
  b.score = b.weight + n;
  b.root = values;
  b.info = b.root + p * p;
  b.theta = b.info + p * p;
  b.gradient = b.theta + p;
  b.step = b.gradient + p;
  b.size = b.step + p;
  b.kept = b.size + p;
  b.partial = b.kept + p;
  b.n = n, b.p = p, b.rank = 0;
  b.family = family, b.lane = lane, b.lanes = lanes;
  return b;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* The sum, or the largest, of a number of each lane; for all of them. */
SCL_INLINE_BARRIER real glm_batch_total(const glm_batch *b, real own, int largest) {
  real total;
  GLM_BATCH_SYNC();
  b->partial[b->lane] = own;
  GLM_BATCH_SYNC();
  total = b->partial[0];
  for (int k = 1; k < b->lanes; k++) {
    total = largest ? fmax(total, b->partial[k]) : total + b->partial[k];
  }
  return total;
}

/* The sum of a b over from, from + step, ... */
SCL_INLINE real glm_batch_dot(SCL_GLOBAL const real *a, SCL_GLOBAL const real *b, int n, int from,
                              int step) {
  real s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  int i = from;
  for (; i + 3 * step < n; i += 4 * step) {
    s0 += a[i] * b[i];
    s1 += a[i + step] * b[i + step];
    s2 += a[i + 2 * step] * b[i + 2 * step];
    s3 += a[i + 3 * step] * b[i + 3 * step];
  }
  for (; i < n; i += step) s0 += a[i] * b[i];
  return (s0 + s1) + (s2 + s3);
}

SCL_INLINE real glm_batch_dot3(SCL_GLOBAL const real *w, SCL_GLOBAL const real *a,
                               SCL_GLOBAL const real *b, int n) {
  real s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  int i = 0;
  for (; i + 3 < n; i += 4) {
    s0 += w[i] * a[i] * b[i];
    s1 += w[i + 1] * a[i + 1] * b[i + 1];
    s2 += w[i + 2] * a[i + 2] * b[i + 2];
    s3 += w[i + 3] * a[i + 3] * b[i + 3];
  }
  for (; i < n; i++) s0 += w[i] * a[i] * b[i];
  return (s0 + s1) + (s2 + s3);
}

SCL_INLINE_BARRIER real glm_batch_inner(const glm_batch *b, SCL_GLOBAL const real *x,
                                        SCL_GLOBAL const real *y) {
  return glm_batch_total(b, glm_batch_dot(x, y, b->n, b->lane, b->lanes), 0);
}

/* ---- the columns ----------------------------------------------------------------------------- */

/* Column j, which is in q after those that are kept, and has the length 1 or so: less its
 * projection, twice. Returns the length of the rest, divided by that before. */
SCL_INLINE_BARRIER real glm_batch_project(const glm_batch *b) {
  SCL_GLOBAL real *q = b->q + (scl_long)b->rank * b->n;
  SCL_LOCAL real *r = b->root + b->rank * b->p;
  const real before = sqrt(glm_batch_inner(b, q, q));
  for (int c = 0; c < 2 * b->rank; c++) {
    const int k = c < b->rank ? c : c - b->rank;
    SCL_GLOBAL const real *other = b->q + (scl_long)k * b->n;
    const real dot = glm_batch_inner(b, other, q);
    for (int i = b->lane; i < b->n; i += b->lanes) q[i] -= dot * other[i];
    if (b->lane == 0) r[k] = c < b->rank ? dot : r[k] + dot;
  }
  const real after = sqrt(glm_batch_inner(b, q, q));
  if (b->lane == 0) r[b->rank] = after;
  for (int i = b->lane; i < b->n; i += b->lanes) q[i] /= after;
  return after / before;
}

SCL_INLINE scl_long glm_batch_row(const glm_batch_data *d, scl_long i) {
  return d->order ? (scl_long)d->order[i] : i;
}

/* y, weights and offset of the group that begins at row `first`; returns the smallest weight. */
SCL_INLINE_BARRIER real glm_batch_load(const glm_batch *b, const glm_batch_data *d,
                                       scl_long first) {
  real least = 1.0;
  for (int i = b->lane; i < b->n; i += b->lanes) {
    const scl_long row = glm_batch_row(d, first + i);
    const real w = d->w ? d->w[row] : 1.0;
    b->y[i] = d->y[row];
    b->w[i] = w;
    b->offset[i] = d->offset ? d->offset[row] : 0.0;
    least = fmin(least, w);
  }
  return -glm_batch_total(b, -least, 1);
}

/* Makes Q of the columns of X, whose numbers become those of `kept`. */
SCL_INLINE_BARRIER void glm_batch_columns(glm_batch *b, const glm_batch_data *d, scl_long first) {
  for (int j = 0; j < b->p; j++) {
    SCL_GLOBAL real *q = b->q + (scl_long)b->rank * b->n;
    real size = 0.0;
    for (int i = b->lane; i < b->n; i += b->lanes) {
      q[i] = d->x[glm_batch_row(d, first + i) + j * d->ld];
      size = fmax(size, fabs(q[i]));
    }
    size = glm_batch_total(b, size, 1);
    for (int i = b->lane; i < b->n; i += b->lanes) q[i] /= size > 0.0 ? size : 1.0;
    if (b->lane == 0) {
      b->size[b->rank] = size;
      b->kept[b->rank] = j;
    }
    b->rank += glm_batch_project(b) > 1e-11; /* as glm(); NaN for zeros */
  }
}

/* ---- Newton's method ------------------------------------------------------------------------- */

/* Starting weights and scores of the weighted least squares fit to the link of y, as in glm(). */
SCL_INLINE void glm_batch_start(const glm_batch *b) {
  for (int i = b->lane; i < b->n; i += b->lanes) {
    const real y = b->y[i], w = b->w[i];
    real link = y, weight = w;
    if (b->family == GLM_BATCH_POISSON) {
      weight = w * (y + 0.1);
      link = log(y + 0.1);
    } else if (b->family == GLM_BATCH_LOGIT) {
      const real mean = (w * y + 0.5) / (w + 1.0);
      weight = w * mean * (1.0 - mean);
      link = log((w * y + 0.5) / (w * (1.0 - y) + 0.5));
    }
    b->weight[i] = weight;
    b->score[i] = weight * (link - b->offset[i]);
  }
}

/* Linear predictors, weights and scores. `weight` holds exp(-|eta|), or exp(eta), in between. */
SCL_INLINE void glm_batch_rows(const glm_batch *b) {
  for (int i = b->lane; i < b->n; i += b->lanes) {
    real eta = b->offset[i];
    for (int c = 0; c < b->rank; c++) eta += b->q[(scl_long)c * b->n + i] * b->theta[c];
    b->eta[i] = eta;
    b->weight[i] = b->family == GLM_BATCH_LOGIT ? -fabs(eta) : eta;
  }
  if (b->family != GLM_BATCH_NORMAL) GLM_BATCH_EXP(b->weight, b->n, b->lane, b->lanes);
  for (int i = b->lane; i < b->n; i += b->lanes) {
    const real y = b->y[i], w = b->w[i], e = b->weight[i];
    if (b->family == GLM_BATCH_LOGIT) {
      const real share = e / (1.0 + e); /* of the less probable outcome */
      b->score[i] = w * (b->eta[i] < 0.0 ? y - share : (y - 1.0) + share);
      b->weight[i] = w * share / (1.0 + e);
    } else {
      b->score[i] = w * (y - e);
      b->weight[i] = b->family == GLM_BATCH_POISSON ? w * e : w;
    }
  }
}

/* The information (lower triangle) and the gradient. */
SCL_INLINE_BARRIER void glm_batch_sums(const glm_batch *b) {
  const int r = b->rank;
  GLM_BATCH_SYNC();
  for (int e = b->lane; e < r * (r + 1) / 2; e += b->lanes) {
    int j = 0, k = e;
    while (k >= r - j) k -= r - j++;
    k += j;
    b->info[j * b->p + k] =
        glm_batch_dot3(b->weight, b->q + (scl_long)j * b->n, b->q + (scl_long)k * b->n, b->n);
  }
  for (int c = b->lane; c < r; c += b->lanes) {
    b->gradient[c] = glm_batch_dot(b->q + (scl_long)c * b->n, b->score, b->n, 0, 1);
  }
  GLM_BATCH_SYNC();
}

/* L in the place of the information; whether it is positive definite, for all lanes. */
SCL_INLINE_BARRIER int glm_batch_factor(const glm_batch *b) {
  SCL_LOCAL real *l = b->info;
  const int p = b->p;
  int fine = 1;
  for (int j = 0; j < b->rank; j++) {
    const real before = l[j * p + j];
    real pivot = before, root;
    for (int k = 0; k < j; k++) pivot -= l[k * p + j] * l[k * p + j];
    fine = fine && pivot > 1e-15 * before && pivot < INFINITY;
    root = sqrt(pivot);
    GLM_BATCH_SYNC();
    for (int i = j + b->lane; i < b->rank; i += b->lanes) {
      real sum = l[j * p + i];
      for (int k = 0; k < j; k++) sum -= l[k * p + i] * l[k * p + j];
      l[j * p + i] = i == j ? root : sum / root;
    }
    GLM_BATCH_SYNC();
  }
  return fine;
}

/* step = information^-1 gradient, if it is to be replaced; returns the square of the distance. */
SCL_INLINE_BARRIER real glm_batch_solve(const glm_batch *b, int replace) {
  SCL_LOCAL const real *l = b->info;
  SCL_LOCAL real *x = b->gradient;
  const int r = b->rank, p = b->p;
  real square = 0.0;
  for (int k = 0; k < r; k++) {
    GLM_BATCH_SYNC();
    const real z = x[k] / l[k * p + k];
    square += z * z;
    GLM_BATCH_SYNC();
    for (int i = k + b->lane; i < r; i += b->lanes) x[i] = i == k ? z : x[i] - l[k * p + i] * z;
  }
  for (int k = r - 1; k >= 0; k--) {
    GLM_BATCH_SYNC();
    const real z = x[k] / l[k * p + k];
    GLM_BATCH_SYNC();
    for (int i = b->lane; i <= k; i += b->lanes) x[i] = i == k ? z : x[i] - l[i * p + k] * z;
  }
  GLM_BATCH_SYNC();
  for (int i = b->lane; i < r && replace; i += b->lanes) b->step[i] = x[i];
  GLM_BATCH_SYNC();
  return square;
}

/* theta += size step. */
SCL_INLINE_BARRIER void glm_batch_move(const glm_batch *b, real size) {
  GLM_BATCH_SYNC();
  for (int c = b->lane; c < b->rank; c += b->lanes) b->theta[c] += size * b->step[c];
  GLM_BATCH_SYNC();
}

/* The largest change of a linear predictor by the step. */
SCL_INLINE_BARRIER real glm_batch_change(const glm_batch *b) {
  real most = 0.0;
  for (int i = b->lane; i < b->n; i += b->lanes) {
    real change = 0.0;
    for (int c = 0; c < b->rank; c++) change += b->q[(scl_long)c * b->n + i] * b->step[c];
    most = fmax(most, fabs(change));
  }
  return glm_batch_total(b, most, 1);
}

/* Whether the search ends with a step of this length, which changes linear predictors by up to
 * `change`; -1 if it continues. */
SCL_INLINE int glm_batch_ended(real length, real last, real unit, real change) {
  const int near = length <= 1e-6 * unit || (length < 1e-5 * unit && length > last / 2.0);
  if (near) return change > 0.1 ? GLM_BATCH_SEPARATED : GLM_BATCH_FINE;
  return length <= 1e-4 * unit && change > 0.5 ? GLM_BATCH_SEPARATED : -1;
}

/* Finds theta; `unit`: the root of the smallest weight, at most 1. Code with barriers is not in a
 * branch: POCL 3.1 would copy everything after it. */
SCL_INLINE_BARRIER int glm_batch_search(const glm_batch *b, real unit, int most, int *steps) {
  int state = -1;
  real last = INFINITY, size = 1.0, rise = INFINITY;
  glm_batch_start(b);
  for (int c = b->lane; c < b->rank; c += b->lanes) b->theta[c] = 0.0;
  for (*steps = -1; state < 0; *steps += 1) {
    real slope = 0.0;
    if (*steps >= 0) glm_batch_rows(b);
    glm_batch_sums(b);
    for (int c = 0; c < b->rank && *steps >= 0; c++) slope += b->gradient[c] * b->step[c];
    const int overshot =
        b->family != GLM_BATCH_NORMAL && !(slope >= -0.5 * rise && fabs(slope) < INFINITY);
    const int fine = glm_batch_factor(b);
    const real square = glm_batch_solve(b, !overshot);
    const real change = glm_batch_change(b);
    if (*steps >= most || (overshot && size < 1e-6) || (!overshot && !fine)) {
      state = GLM_BATCH_LOST;
    } else if (overshot) {
      size /= 2.0;
    } else {
      if (b->family == GLM_BATCH_NORMAL) {
        state = *steps == 1 ? GLM_BATCH_FINE : -1;
      } else if (*steps >= 0) {
        state = glm_batch_ended(sqrt(square), last, unit, change);
      }
      rise = *steps >= 0 ? square : INFINITY;
      last = sqrt(rise);
      size = 1.0;
    }
    glm_batch_move(b, overshot ? -size : 1.0);
  }
  return state;
}

/* ---- results --------------------------------------------------------------------------------- */

SCL_INLINE real glm_batch_row_deviance(const glm_batch *b, int i) {
  const real y = b->y[i], eta = b->eta[i];
  if (b->family == GLM_BATCH_NORMAL) return b->w[i] * (y - eta) * (y - eta);
  if (b->family == GLM_BATCH_POISSON) {
    const real mean = exp(eta);
    return 2.0 * b->w[i] * ((y > 0.0 ? y * (log(y) - eta) : 0.0) - (y - mean));
  }
  const real tail = log1p(exp(-fabs(eta)));
  real sum = y * (tail - fmin(eta, 0.0)) + (1.0 - y) * (tail + fmax(eta, 0.0));
  if (y > 0.0 && y < 1.0) sum += y * log(y) + (1.0 - y) * log1p(-y);
  return 2.0 * b->w[i] * sum;
}

/* Coefficients of X and their covariance M M', M = R^-1 L'^-1, where columns are kept. L is that
 * of the last information; `out` is NaN. */
SCL_INLINE_BARRIER void glm_batch_results(const glm_batch *b, SCL_GLOBAL real *out, int found) {
  const int r = b->rank, p = b->p;
  SCL_GLOBAL real *cov = out + p;
  for (int m = b->lane; m <= r; m += b->lanes) { /* the columns of M; then the coefficients */
    SCL_GLOBAL real *v = m < r ? b->q + (scl_long)m * r : out;
    for (int i = 0; i < r; i++) v[i] = m < r ? (real)(i == m) : b->theta[i];
    for (int k = r - 1; k >= 0 && m < r; k--) {
      v[k] /= b->info[k * p + k];
      for (int i = 0; i < k; i++) v[i] -= b->info[i * p + k] * v[k];
    }
    for (int k = r - 1; k >= 0; k--) {
      v[k] /= b->root[k * p + k];
      for (int i = 0; i < k; i++) v[i] -= b->root[k * p + i] * v[k];
    }
    for (int i = 0; i < r; i++) v[i] /= b->size[i];
  }
  GLM_BATCH_SYNC();
  for (int e = b->lane; e < r * r; e += b->lanes) {
    const int i = e % r, j = e / r;
    real sum = 0.0;
    for (int m = i > j ? i : j; m < r; m++) sum += b->q[m * r + i] * b->q[m * r + j];
    cov[(int)b->kept[j] * p + (int)b->kept[i]] = found ? sum : NAN;
  }
  if (b->lane == 0) {
    for (int c = p - 1, k = r - 1; c >= 0; c--) {
      const int is_kept = k >= 0 && (int)b->kept[k] == c;
      out[c] = is_kept && found ? out[k] : NAN;
      k -= is_kept;
    }
  }
}

/* Fits the group that begins at row `first`: its results, and linear predictors of its rows. */
SCL_INLINE_BARRIER void glm_batch_fit(glm_batch *b, const glm_batch_data *d, scl_long first,
                                      int most, SCL_GLOBAL real *eta, SCL_GLOBAL real *out) {
  const int p = b->p, end = p + p * p;
  int steps = 0, state;
  real deviance = 0.0;
  const real least = glm_batch_load(b, d, first);
  for (int e = b->lane; e < end; e += b->lanes) out[e] = NAN;
  glm_batch_columns(b, d, first);
  GLM_BATCH_SYNC();
  state = glm_batch_search(b, sqrt(least), most, &steps);
  glm_batch_rows(b);
  glm_batch_sums(b);
  if (!glm_batch_factor(b) && state == GLM_BATCH_FINE) state = GLM_BATCH_LOST;
  const int found = state == GLM_BATCH_FINE;
  for (int i = b->lane; i < b->n; i += b->lanes) {
    deviance += glm_batch_row_deviance(b, i);
    eta[glm_batch_row(d, first + i)] = found ? b->eta[i] : NAN;
  }
  deviance = glm_batch_total(b, deviance, 0);
  GLM_BATCH_SYNC();
  glm_batch_results(b, out, found);
  if (b->lane == 0) {
    out[end] = found ? deviance : NAN;
    out[end + 1] = b->rank;
    out[end + 2] = steps;
    out[end + 3] = found && b->rank < p ? GLM_BATCH_RANK : state;
  }
}

#endif
