/* Runs of numbers of the host engine: between engine/host/plan_ops.c and its users. */
#ifndef SCL_ENGINE_HOST_PLAN_H
#define SCL_ENGINE_HOST_PLAN_H

#include "engine/plan/plan.h"
#include "engine/host/host.h"

/* Numbers, or one number for all of them (array == NULL). */
typedef struct {
  const double *array;
  double number;
} scl_run;

/* dst = op(arg[0], ...), n times; one of the arguments is an array. dst may be one of them. */
void scl_run_op(scl_op op, size_t n, const scl_run *arg, double *dst);

typedef struct {
  double (*run)(size_t n, const double *x);                 /* to one number */
  void (*beside)(size_t n, double *total, const double *x); /* each into its own total */
  double (*combine)(double u, double v);
} scl_host_reduction;

extern const scl_host_reduction scl_host_reductions[SCL_REDUCE_COUNT];

#endif
