#include "sample/target.h"

static scl_status run_program(void *self, const double *x, double *to) {
  return scl_program_run(self, x, true, to);
}

static scl_status run_evaluator(void *self, const double *x, double *to) {
  return scl_evaluator_run(self, x, to);
}

scl_target scl_target_evaluator(scl_evaluator *e, size_t dimension) {
  return (scl_target){dimension, run_evaluator, e};
}

scl_target scl_target_program(scl_program *p) {
  return (scl_target){scl_program_about(p).parameters, run_program, p};
}
