/* One evaluation of a likelihood (ops/glm.h) as an engine sees it; the engine's function waits.
 *
 * Of M parameter vectors each has C predictors a row (C classes of a coupled family, else 1): there
 * are P = M C predictors, the columns of alpha and beta, C after C. */
#ifndef SCL_ENGINE_PASS_GLM_H
#define SCL_ENGINE_PASS_GLM_H

#include "base/matrix.h"
#include "kernels/include/port.h"
#include "kernels/include/glm_families.h" /* scl_glm_family */
#include "kernels/include/glm_task.h"

/* The state of an engine between the evaluations of a likelihood, and how the last one ended. */
typedef struct {
  scl_block work; /* made by the engine when it has no buffer or is too small; the likelihood
                     releases it */
  bool abandoned; /* after an error, a device may still use the host memory of the pass: it must
                     never be freed */
  struct {        /* an evaluation that has begun: */
    const double *from; /* where its results will be; NULL: already with the caller */
    size_t numbers;
    int queue;
    uint64_t count; /* 0: complete */
    bool quick;
    bool at_once; /* a walk in one launch: its last number is 1 if that was possible, else 0 */
  } pending;
} scl_glm_state;

typedef struct scl_glm_pass {
  scl_glm_family family;
  scl_block x, y; /* n x p; y, the datum where the family has one, the weight if weighted */
  size_t vectors, classes;    /* M, C >= 1 */
  size_t aux_count, aux_sums; /* numbers of the auxiliary parameter, and of sums of its derivatives,
                            each for one vector */
  bool row_alpha, row_aux;    /* one for each row and predictor, or row and vector */
  bool gradient;              /* the derivatives by beta are wanted */
  bool weighted;              /* each observation's terms are multiplied by its weight */
  /* 0; or, for vectors with one alpha each and no auxiliary parameter, the number of evaluations,
   * each but the first a leapfrog step after the previous one (kernels/include/leapfrog.h). Alpha
   * and beta are the positions, behind them are the other numbers of the walk. The results are
   * those of the last evaluation; behind them are the records of the others, and one number more.
   * With `directions` each vector has a metric of as many columns at most, else all metrics are
   * diagonal. */
  size_t points, directions;
  const double *parameters; /* in host memory, laid out as scl_glm_layout says */
  double *results;          /* likewise; d_beta undefined unless wanted */
  double *d_alpha_rows;     /* NULL, or n P */
  double *d_aux_rows;       /* NULL, or n M; only with row_aux */
  scl_block d_x;            /* n x p, or no buffer: not wanted */
  scl_glm_state *state;
} scl_glm_pass;

/* Where the parts of parameters and results begin, and how many numbers there are (drawn in
 * kernels/include/glm_task.h). Where the auxiliary parameter is by row, `aux_count` is 0; d_alpha
 * are sums also where alpha is by row. */
typedef glm_layout scl_glm_layout;

static inline scl_glm_layout scl_glm_layout_of(const scl_glm_pass *pass) {
  const int64_t n = (int64_t)pass->x.nrow, p = (int64_t)pass->x.ncol;
  const int64_t vectors = (int64_t)pass->vectors, predictors = vectors * (int64_t)pass->classes;
  scl_glm_layout at = {.aux = pass->points > 0 ? 1 + GLM_COUNTERS : 1};
  at.alpha = at.aux + (int64_t)pass->aux_count * vectors;
  at.beta = at.alpha + (pass->row_alpha ? n : 1) * predictors;
  at.row_aux = at.beta + p * predictors;
  at.parameters = at.row_aux + (pass->row_aux ? n * vectors : 0);
  at.d_aux = at.value + vectors;
  at.d_alpha = at.d_aux + (int64_t)pass->aux_sums * vectors;
  at.d_beta = at.d_alpha + predictors;
  at.results = at.d_beta + p * predictors;
  return at;
}

/* Of a walk, in numbers: one metric; all that is given behind the parameters; room behind that, on
 * a device; a record; all records, behind the results, with the number behind them. */
static inline size_t scl_glm_metric_size(const scl_glm_pass *pass) {
  const size_t d = 1 + pass->x.ncol;
  return pass->directions > 0 ? 3 + d + pass->directions * (1 + d) : 0;
}
static inline size_t scl_glm_walk_numbers(const scl_glm_pass *pass) {
  const size_t d = 1 + pass->x.ncol;
  if (pass->points == 0) return 0;
  return pass->vectors * (5 * d + 1 + scl_glm_metric_size(pass)) + 3 * d;
}
static inline size_t scl_glm_walk_room(const scl_glm_pass *pass) {
  return pass->directions > 0 ? pass->vectors * (1 + pass->x.ncol + pass->directions) : 0;
}
static inline size_t scl_glm_record_size(const scl_glm_pass *pass) {
  return pass->vectors * (2 * (1 + pass->x.ncol) + 1);
}
static inline size_t scl_glm_record_numbers(const scl_glm_pass *pass) {
  return pass->points > 0 ? (pass->points - 1) * scl_glm_record_size(pass) + 1 : 0;
}

#endif
