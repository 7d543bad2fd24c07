#include "ops/glm_rows.h"

#include <math.h>
#include <string.h>

/* The auxiliary parameter of observation i. */
static glm_aux aux_of(const scl_glm_rows *at, size_t i) {
  if (GLM_FAMILY_AUX(at->family) == SCL_GLM_CUTS)
    return glm_aux_cuts(at->aux, (int)at->aux_count, at->y[i]);
  return at->aux_count == 0 ? glm_aux_none() : glm_aux_number(at->aux[at->aux_count > 1 ? i : 0]);
}

static void fill_coupled(const scl_glm_rows *at) {
  double *slopes = at->column[SCL_GLM_SCORE];
  memcpy(slopes, at->eta, at->n * at->classes * sizeof *slopes);
  for (size_t i = 0; i < at->n; i++) {
    at->column[SCL_GLM_VALUE][i] =
        glm_classes(at->y[i], slopes + i, (scl_long)at->n, (int)at->classes) + at->constant[i];
  }
}

void scl_glm_constants(scl_glm_family family, const double *y, const double *datum, size_t n,
                       double *out) {
  for (size_t i = 0; i < n; i++)
    out[i] = glm_family_constant((int)family, y[i], datum != NULL ? datum[i] : 0.0);
}

void scl_glm_fill_rows(const scl_glm_rows *at) {
  const int family = (int)at->family;
  if (GLM_FAMILY_COUPLED(at->family)) {
    fill_coupled(at);
    return;
  }
  for (size_t i = 0; i < at->n; i++) {
    const double y = at->y[i], datum = at->datum != NULL ? at->datum[i] : 0.0, eta = at->eta[i];
    const glm_aux aux = aux_of(at, i);
    const glm_term term = glm_family_term(family, y, datum, eta, aux);
    const glm_term more = glm_family_value(family, y, aux);
    at->column[SCL_GLM_VALUE][i] = glm_term_value(family, term) + more.value + at->constant[i];
    if (at->columns <= SCL_GLM_SCORE) continue;
    const glm_curve curve = glm_family_curve(family, y, datum, eta, aux);
    const double number[SCL_GLM_COLUMNS] = {
        [SCL_GLM_SCORE] = term.d_eta,
        [SCL_GLM_WEIGHT] = curve.weight,
        [SCL_GLM_D_WEIGHT] = curve.d_weight,
        [SCL_GLM_VALUE_AUX] = term.d_aux + more.d_aux,
        [SCL_GLM_SCORE_AUX] = curve.score_aux,
        [SCL_GLM_WEIGHT_AUX] = curve.weight_aux,
        [SCL_GLM_VALUE_LOW] = term.d_low + more.d_low,
        [SCL_GLM_SCORE_LOW] = curve.score_low,
        [SCL_GLM_WEIGHT_LOW] = curve.weight_low,
    };
    for (int k = SCL_GLM_SCORE; k < at->columns; k++) at->column[k][i] = number[k];
  }
}
