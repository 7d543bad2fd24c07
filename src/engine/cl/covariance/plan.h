/* Covariance functions as kernels read them; shared by covariance.c and vecchia.c. */
#ifndef SCL_CL_COVARIANCE_PLAN_H
#define SCL_CL_COVARIANCE_PLAN_H

#include "engine/cl/runtime/cl.h"
#include "engine/pass/covariance.h"

/* In the format of kernels/include/covariance_plan.h; returns how many numbers that takes. */
size_t scl_cl_covariance_plan_size(const scl_covariance *kernel);
void scl_cl_covariance_plan(const scl_covariance *kernel, double *plan);

/* The program's build for the types of this function. */
void scl_cl_covariance_select(scl_context *ctx, scl_cl_program which, const scl_covariance *kernel);

#endif
