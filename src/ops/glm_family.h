/* The families of generalised linear models on the host: names, checks of the data and of the
 * auxiliary parameter, and the parts of the log density that do not depend on the linear
 * predictor. */
#ifndef SCL_OPS_GLM_FAMILY_H
#define SCL_OPS_GLM_FAMILY_H

#include "ops/glm.h"

/* SCL_E_ARGUMENT naming `y` (or `trials`), with the index of the first value outside the family's
 * support, or `weights`. For n rows; datum is NULL where the family has none. */
scl_status scl_glm_check_data(scl_glm_family family, const scl_glm_data *data, size_t n);

/* The data of a likelihood in addition to X and y. */
typedef struct {
  double constant; /* of the log density */
  double most;     /* the largest y */
  size_t distinct; /* values of y, and their weights; only if the family needs them */
  double *value, *count;
} scl_glm_summary;

/* Over n rows. SCL_E_MEMORY. Free with scl_glm_summary_free(). */
scl_status scl_glm_summarise(scl_glm_family family, const scl_glm_data *data, size_t n,
                             scl_glm_summary *out);
void scl_glm_summary_free(scl_glm_summary *summary);

/* Name of the auxiliary parameter of the family as the user knows it; NULL if it has none. */
const char *scl_glm_aux_name(scl_glm_family family);

/* SCL_E_ARGUMENT or SCL_E_NONFINITE naming the auxiliary parameter: not positive, or cuts that do
 * not increase. `numbers` for one vector. */
scl_status scl_glm_check_aux(scl_glm_family family, const double *aux, size_t numbers);

/* Adds the terms that depend only on y and the auxiliary parameter of one vector (`numbers` of it).
 * d_aux may be NULL. */
void scl_glm_add_values(scl_glm_family family, const scl_glm_summary *summary, const double *aux,
                        size_t numbers, double *value, double *d_aux);

/* The same for phi by row, for the y and weights (which may be NULL) of n rows. */
void scl_glm_add_row_values(scl_glm_family family, const scl_glm_data *rows, const double *aux,
                            size_t n, double *value, double *d_aux);

#endif
