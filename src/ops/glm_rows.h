/* Log densities of observations one by one, with their derivatives by the linear predictor and by
 * the auxiliary parameter. On the host. */
#ifndef SCL_OPS_GLM_ROWS_H
#define SCL_OPS_GLM_ROWS_H

#include "ops/glm.h"

/* Numbers of each observation: the log density with all constants; its derivative by eta; the
 * weight, minus the second one; that one's derivative; derivatives of the density, of the score and
 * of the weight by sigma, phi or the cut above the class, and by the cut below it. */
enum {
  SCL_GLM_VALUE,
  SCL_GLM_SCORE,
  SCL_GLM_WEIGHT,
  SCL_GLM_D_WEIGHT,
  SCL_GLM_VALUE_AUX,
  SCL_GLM_SCORE_AUX,
  SCL_GLM_WEIGHT_AUX,
  SCL_GLM_VALUE_LOW,
  SCL_GLM_SCORE_LOW,
  SCL_GLM_WEIGHT_LOW,
  SCL_GLM_COLUMNS
};

typedef struct {
  scl_glm_family family;
  size_t n, classes;       /* rows; predictors of a row: classes of a coupled family, else 1 */
  const double *y, *datum; /* n; datum is NULL where the family has none */
  const double *eta;       /* n x classes */
  const double *aux;       /* cuts; or sigma or phi, for all or one for each row */
  size_t aux_count;
  const double *constant;          /* n: from scl_glm_constants() */
  int columns;                     /* how many are wanted: 1 or more; of a coupled family 2 */
  double *column[SCL_GLM_COLUMNS]; /* n each; the score of a coupled family is n x classes */
} scl_glm_rows;

/* The part of each log density that depends on the data only. */
void scl_glm_constants(scl_glm_family family, const double *y, const double *datum, size_t n,
                       double *out);
void scl_glm_fill_rows(const scl_glm_rows *at);

#endif
