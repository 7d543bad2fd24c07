/* Parts of the passes of a GLM likelihood (glm_pass.cl, glm_mma.cl): from the linear predictors of
 * observations to their terms, and the sums of a work-item. */
#ifndef GLM_PASS /* name of the kernel */
#define GLM_PASS glm_pass
#endif
#ifndef GLM_FAMILY
#define GLM_FAMILY BERNOULLI_LOGIT
#endif
#ifndef GLM_PREDICTORS /* of a row, at most: parameter vectors, or classes */
#define GLM_PREDICTORS 1
#endif
#ifndef GLM_ROWS /* rows of a tile */
#define GLM_ROWS 16
#endif
#ifndef GLM_LINKS /* vectors for which a work-item adds up terms */
#define GLM_LINKS 1
#endif
#ifndef GLM_GATHER /* one logarithm for many terms */
#define GLM_GATHER 1
#endif
#ifndef GLM_PARTIAL /* the memory of a group's sums */
#define GLM_PARTIAL __global
#endif
#define GLM_CELLS (GLM_PREDICTORS * GLM_ROWS) /* predictors of a tile */

#define GLM_JOIN_(a, b) a##b
#define GLM_JOIN(a, b) GLM_JOIN_(a, b)
#define GLM_ID GLM_JOIN(SCL_GLM_, GLM_FAMILY)

enum {
  GLM_COUPLED = GLM_FAMILY_COUPLED(GLM_ID),
  GLM_HAS_DATUM = GLM_FAMILY_DATUM(GLM_ID),
  GLM_AUX = GLM_FAMILY_AUX(GLM_ID),
  GLM_PRODUCT = (GLM_COUPLED || GLM_FAMILY_ODDS(GLM_ID)) && GLM_GATHER
};

/* Shared by all work-items: arrays, sizes, and the destination of derivatives by row
 * (glm_task.h). */
typedef struct {
  __global const real *y, *aux, *alpha, *row_aux;
  __global real *work;
  __local const real *intercept; /* alpha, unless it is by row */
  __local real *by_cut;
  int y_ld;
  uint n;
  int p, predictors, aux_count, aux_sums, flags;
  int value, d_aux, d_alpha, d_beta; /* rows of the results where each begins (glm_task.h) */
  long residuals, slopes;
} glm_data;

/* Sums of a work-item over the terms that it makes. */
typedef struct {
  real value, d_alpha, d_aux;
  glm_odds_product odds;
} glm_totals;

/* An observation with its predictor; of a coupled family `eta` is that of its class, less the
 * largest, and `rest` as in glm_shares. */
#define GLM_NO_ROW 0xffffffffu
typedef struct {
  uint row;
  real y, datum, eta, rest;
} glm_seen;

SCL_INLINE glm_totals glm_no_totals(void) {
  glm_totals total = {0.0, 0.0, 0.0, {1.0, 0.0}};
  return total;
}

/* The data of a row; beyond the last row that of the last. */
SCL_INLINE glm_seen glm_observe(const glm_data *t, uint row) {
  const uint known = min(row, t->n - 1);
  glm_seen seen = {row, t->y[known], 0.0, 0.0, 0.0};
  if (GLM_HAS_DATUM) seen.datum = t->y[t->y_ld + known];
  return seen;
}

SCL_INLINE real glm_intercept(const glm_data *t, int v, uint row) {
  return t->flags & GLM_ROW_ALPHA ? t->alpha[(long)v * t->n + row] : t->intercept[v];
}

/* The classes of an observation of a coupled family, in registers: exponentials of the predictors
 * less the largest; the observed class's predictor less the largest; the sums of the exponentials
 * without the largest, and without the observed class's; 1 / (1 + rest). */
typedef struct {
  real e[GLM_PREDICTORS];
  real mine, rest, others, inverse;
} glm_shares;

SCL_INLINE glm_shares glm_share(real y, const real *eta, int classes) {
  const int observed = (int)y - 1;
  glm_shares s;
  real most = eta[0], check = 0.0;
  int top = 0;
  s.mine = eta[0];
  SCL_UNROLL for (int c = 0; c < GLM_PREDICTORS; c++) {
    if (c >= classes) continue;
    if (eta[c] > most) top = c;
    most = fmax(most, eta[c]);
    if (c == observed) s.mine = eta[c];
    check += GLM_NAN_IF_INFINITE(eta[c]);
  }
  s.mine += check - most;
  s.rest = s.others = 0.0;
  SCL_UNROLL for (int c = 0; c < GLM_PREDICTORS; c++) {
    s.e[c] = c < classes ? glm_exp_minus(most - eta[c]) : 0.0;
    if (c != top) s.rest += s.e[c];
    if (c != observed) s.others += s.e[c];
  }
  s.inverse = glm_inverse(1.0 + s.rest);
  return s;
}

/* The derivative of the log density with respect to predictor v. */
SCL_INLINE real glm_share_slope(const glm_shares *s, real y, int v) {
  real e = 0.0;
  SCL_UNROLL for (int c = 0; c < GLM_PREDICTORS; c++) {
    if (c == v) e = s->e[c];
  }
  return ((int)y - 1 == v ? s->others : -e) * s->inverse;
}

/* The auxiliary parameter for row `row` of predictor v; `given` is that of all rows. */
SCL_INLINE glm_aux glm_aux_here(const glm_data *t, glm_aux given, int v, uint row, real y) {
  if (GLM_AUX == SCL_GLM_CUTS) return glm_aux_cuts(t->aux + v * t->aux_count, t->aux_count, y);
  if (GLM_AUX == SCL_GLM_SIGMA && t->flags & GLM_ROW_AUX)
    return glm_aux_number(t->row_aux[(long)v * t->n + row]);
  return given;
}

/* Adds value - log(1 + odds). */
SCL_INLINE void glm_add_odds(glm_totals *total, real value, real odds) {
  if (GLM_PRODUCT) {
    total->value += value;
    total->value -= glm_multiply_odds(&total->odds, odds);
  } else {
    total->value += value - log1p(odds);
  }
}

/* Adds the value of a term, or of several whose odds make up one. */
SCL_INLINE void glm_add_term_value(glm_totals *total, real value, real odds) {
  if (GLM_FAMILY_ODDS(GLM_ID)) {
    glm_add_odds(total, value, odds);
  } else {
    total->value += value;
  }
}

/* Adds the derivatives by the auxiliary parameter; `cell` is the predictor's index in the
 * tile. */
SCL_INLINE void glm_add_term_aux(const glm_data *t, glm_totals *total, glm_term term, real y,
                                 int v, uint row, int cell) {
  if (GLM_AUX == SCL_GLM_CUTS) {
    const int above = (int)y - 1;
    if (above < t->aux_sums) t->by_cut[above * GLM_CELLS + cell] += term.d_aux;
    if (above > 0 && t->aux_sums > 0) t->by_cut[(above - 1) * GLM_CELLS + cell] += term.d_low;
  } else if (GLM_AUX != SCL_GLM_NONE) {
    total->d_aux += term.d_aux;
  }
  if (GLM_AUX == SCL_GLM_SIGMA && t->slopes >= 0)
    t->work[t->slopes + (long)v * t->n + row] = term.d_aux;
}

SCL_INLINE void glm_add_term(const glm_data *t, glm_totals *total, glm_term term, real y, int v,
                             uint row, int cell) {
  glm_add_term_value(total, term.value, term.odds);
  glm_add_term_aux(t, total, term, y, v, row, cell);
}

SCL_INLINE void glm_add_slope(const glm_data *t, glm_totals *total, real slope, int v, uint row) {
  total->d_alpha += slope;
  if (t->residuals >= 0) t->work[t->residuals + (long)v * t->n + row] = slope;
}

/* ---- after the tiles ------------------------------------------------------------------------- */

/* Adds the logarithms of the products of odds to the values. */
SCL_INLINE void glm_end_products(glm_totals *total) {
  SCL_UNROLL for (int i = 0; i < GLM_LINKS && GLM_PRODUCT; i++) {
    total[i].value -= log(total[i].odds.product) + total[i].odds.error / total[i].odds.product;
  }
}

/* The sums by cut, of which each row of the tile has its own; `items` work-items share them. */
SCL_INLINE void glm_write_cuts(const glm_data *t, int vectors, int item, int items,
                               GLM_PARTIAL real *partial, long groups) {
  const int sums = t->aux_sums;
  for (int i = item; i < vectors * sums; i += items) {
    __local const real *mine = t->by_cut + i % sums * GLM_CELLS + i / sums * GLM_ROWS;
    real sum = 0.0;
    for (int r = 0; r < GLM_ROWS; r++) sum += mine[r];
    partial[(long)(t->d_aux + i) * groups] = sum;
  }
}
