/* Log densities that a sampler draws from. */
#ifndef SCL_SAMPLE_TARGET_H
#define SCL_SAMPLE_TARGET_H

#include "program/program.h"

typedef struct {
  size_t dimension;
  /* Writes the log density at `x` (unconstrained, with the Jacobian), and its gradient behind it.
   */
  scl_status (*run)(void *self, const double *x, double *to);
  void *self; /* borrowed */
} scl_target;

/* A compiled function of the whole vector; with memory of its own. */
scl_target scl_target_program(scl_program *p);
scl_target scl_target_evaluator(scl_evaluator *e, size_t dimension);

#endif
