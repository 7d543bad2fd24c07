/* Shared by glm.c and glm_walk.c. */
#ifndef SCL_OPS_GLM_PRIVATE_H
#define SCL_OPS_GLM_PRIVATE_H

#include "ops/glm.h"
#include "ops/glm_family.h"

/* An evaluation: parameters and results in the layout of the pass, and its request while it
 * runs. */
typedef struct {
  double *memory;
  size_t capacity;
  scl_glm_state state;
  scl_glm_pass pass;
} scl_glm_slot;

struct scl_glm {
  scl_glm_family family;
  scl_mat *x, *y; /* y: as in scl_glm_pass */
  bool weighted;
  scl_glm_summary summary;
  double *rows; /* y and the weights, made when phi is first given by row */
  scl_glm_slot slot[SCL_GLM_SLOTS];
};

/* The number of leading finite numbers. */
size_t scl_glm_count_finite(const double *v, size_t n);
scl_status scl_glm_reserve(scl_glm_slot *o, size_t needed);
/* After an error: the device may still write to the memory, which is leaked on purpose. */
void scl_glm_leave_abandoned(scl_glm_slot *o);

#endif
