#include "ops/glm_newton.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The search that R/glm-newton.R describes, without its rarely needed parts. */
typedef struct {
  scl_glm *glm;
  scl_glm_search *at;
  size_t n, p;
  double *weights, *weighted;      /* n: of the rows, and those times a column */
  double *first, *root;            /* p x p: the information at the start; lower factors */
  double *size, *step, *to, *next; /* p: scales, the step, a trial point, its gradient */
} search_state;

enum { RISE_SHARE_INVERSE = 10000 }; /* of the predicted gain that a step needs */
static const double vanished = 1e-6; /* of the first information: R's search takes over */

bool scl_glm_searches(scl_glm_family family) {
  return GLM_IS(CANONICAL, family);
}

/* Starting weight of a row, as in glm(); *link becomes its response on the scale of the link,
 * shrunk away from the boundary. */
static double start_weight(scl_glm_family family, double y, double datum, double *link) {
  if (!GLM_IS(BINARY, family) && !GLM_FAMILY_DATUM(family)) {
    *link = log(y + 0.1);
    return y + 0.1;
  }
  const double mean = (y + 0.5) / (datum + 1.0);
  *link = log((y + 0.5) / (datum - y + 0.5));
  return datum * mean * (1.0 - mean);
}

static double dot(const double *a, const double *b, size_t n) {
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (size_t k = 0; k < 4; k++) sum[k] += a[i + k] * b[i + k];
  for (; i < n; i++) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* information = X' W X, for the weights. */
static void multiply(search_state *s) {
  const scl_glm_search *at = s->at;
  const size_t n = s->n, p = s->p;
  for (size_t j = 0; j < p; j++) {
    for (size_t i = 0; i < n; i++) s->weighted[i] = s->weights[i] * at->x[j * n + i];
    for (size_t k = j; k < p; k++)
      at->information[j * p + k] = at->information[k * p + j] = dot(s->weighted, at->x + k * n, n);
  }
}

static double weight_of(const scl_glm_search *at, size_t i) {
  return at->weight != NULL ? at->weight[i] : 1.0;
}

static double datum_of(const scl_glm_search *at, size_t i) {
  return at->datum != NULL ? at->datum[i] : 1.0;
}

static void find_information(search_state *s) {
  const scl_glm_search *at = s->at;
  const size_t n = s->n, p = s->p;
  const int family = (int)scl_glm_family_of(s->glm);
  const glm_aux none = glm_aux_none();
  memset(s->weights, 0, n * sizeof *s->weights);
  for (size_t j = 0; j < p; j++)
    for (size_t i = 0; i < n; i++) s->weights[i] += at->x[j * n + i] * at->beta[j];
  for (size_t i = 0; i < n; i++)
    s->weights[i] = glm_family_curve(family, 0.0, datum_of(at, i), s->weights[i], none).weight *
                    weight_of(at, i);
  multiply(s);
}

/* The lower factor of (information - share first) / (size size'); false if there is none. */
static bool factor(search_state *s, double share) {
  const size_t p = s->p;
  for (size_t j = 0; j < p; j++) {
    for (size_t i = j; i < p; i++) {
      double sum =
          (s->at->information[j * p + i] - share * s->first[j * p + i]) / (s->size[i] * s->size[j]);
      for (size_t k = 0; k < j; k++) sum -= s->root[k * p + i] * s->root[k * p + j];
      if (i == j && !(sum > DBL_EPSILON)) return false;
      s->root[j * p + i] = i == j ? sqrt(sum) : sum / s->root[j * p + j];
    }
  }
  return true;
}

/* step = information^-1 gradient, and the decrement. */
static bool find_step(search_state *s) {
  const size_t p = s->p;
  for (size_t j = 0; j < p; j++) {
    s->size[j] = sqrt(s->at->information[j * p + j]);
    if (!(s->size[j] > 0.0 && s->size[j] < INFINITY)) return false;
  }
  if (!factor(s, 0.0)) return false;
  s->at->least = 1.0;
  for (size_t j = 0; j < p; j++) s->at->least = fmin(s->at->least, s->root[j * p + j]);
  for (size_t i = 0; i < p; i++) {
    double sum = s->at->gradient[i] / s->size[i];
    for (size_t k = 0; k < i; k++) sum -= s->root[k * p + i] * s->step[k];
    s->step[i] = sum / s->root[i * p + i];
  }
  for (size_t i = p; i-- > 0;) {
    double sum = s->step[i];
    for (size_t k = i + 1; k < p; k++) sum -= s->root[i * p + k] * s->step[k];
    s->step[i] = sum / s->root[i * p + i];
  }
  double square = 0.0;
  for (size_t i = 0; i < p; i++) {
    s->step[i] /= s->size[i];
    square += s->step[i] * s->at->gradient[i];
  }
  s->at->decrement = sqrt(square > 0.0 ? square : 0.0);
  return isfinite(square);
}

/* beta = the weighted least squares fit to the link of y. */
static bool find_start(search_state *s) {
  const scl_glm_search *at = s->at;
  double *link = s->weighted;
  for (size_t i = 0; i < s->n; i++)
    s->weights[i] = start_weight(scl_glm_family_of(s->glm), at->y[i], datum_of(at, i), &link[i]) *
                    weight_of(at, i);
  for (size_t i = 0; i < s->n; i++) link[i] *= s->weights[i];
  for (size_t j = 0; j < s->p; j++) at->gradient[j] = dot(link, at->x + j * s->n, s->n);
  multiply(s);
  if (!find_step(s)) return false;
  memcpy(at->beta, s->step, s->p * sizeof *at->beta);
  return true;
}

/* The value is -infinity where the density overflows. */
static scl_status evaluate(search_state *s, const double *beta, double *value, double *gradient) {
  double alpha = 0.0;
  const scl_glm_parameters point = {
      .vectors = 1, .alpha = &alpha, .beta = beta, .n_alpha = 1, .n_beta = s->p};
  const scl_glm_results results = {.value = value, .d_beta = gradient};
  scl_status status = scl_glm_evaluate(s->glm, &point, SCL_GLM_BETA, &results);
  if (status != SCL_E_NONFINITE) return status;
  *value = -INFINITY;
  return SCL_OK;
}

/* Halves the step until the value has risen sufficiently; *moved: whether it has. */
static scl_status move(search_state *s, bool *moved) {
  scl_glm_search *at = s->at;
  const double rise = at->decrement * at->decrement, slack = 1e-12 * (1.0 + fabs(at->value));
  for (double size = 1.0; size > 1e-6; size /= 2) {
    double value;
    for (size_t j = 0; j < s->p; j++) s->to[j] = at->beta[j] + size * s->step[j];
    SCL_TRY(evaluate(s, s->to, &value, s->next));
    *moved = isfinite(value) && value >= at->value + size * rise / RISE_SHARE_INVERSE - slack;
    if (!*moved) continue;
    at->value = value;
    memcpy(at->beta, s->to, s->p * sizeof *s->to);
    memcpy(at->gradient, s->next, s->p * sizeof *s->next);
    return SCL_OK;
  }
  return SCL_OK;
}

static scl_status search(search_state *s, bool *found) {
  scl_glm_search *at = s->at;
  double last = INFINITY;
  *found = false;
  if (!find_start(s)) return SCL_OK;
  SCL_TRY(evaluate(s, at->beta, &at->value, at->gradient));
  for (at->steps = 0; isfinite(at->value); at->steps++) {
    find_information(s);
    if (!find_step(s)) return SCL_OK;
    /* when the gradient is only rounding error, it does not get smaller */
    const bool at_rounding = at->decrement < 1e-5 && at->decrement > last / 2;
    if (at->decrement <= at->tolerance || at_rounding) {
      for (size_t j = 0; j < s->p && !at_rounding; j++) at->beta[j] += s->step[j];
      *found = true;
      return SCL_OK;
    }
    last = at->decrement;
    if (at->steps == 0) {
      memcpy(s->first, at->information, s->p * s->p * sizeof *s->first);
    } else if (!factor(s, vanished)) {
      return SCL_OK;
    }
    if (at->steps >= at->most) return SCL_OK;
    bool moved = false;
    SCL_TRY(move(s, &moved));
    if (!moved) return SCL_OK;
    SCL_TRY(scl_poll());
  }
  return SCL_OK;
}

scl_status scl_glm_newton(scl_glm *glm, scl_glm_search *at, bool *found) {
  const size_t n = scl_glm_nrow(glm), p = scl_glm_ncol(glm);
  const size_t numbers = 2 * n + 2 * p * p + 4 * p;
  double *memory = calloc(numbers + 1, sizeof *memory);
  if (memory == NULL) return scl_fail_memory(numbers * sizeof *memory, 0, "Newton's method");
  search_state s = {.glm = glm, .at = at, .n = n, .p = p, .weights = memory};
  s.weighted = s.weights + n;
  s.first = s.weighted + n;
  s.root = s.first + p * p;
  s.size = s.root + p * p;
  s.step = s.size + p;
  s.to = s.step + p;
  s.next = s.to + p;
  scl_status status = search(&s, found);
  free(memory);
  return status;
}
