/* Parameters of kernels that are set for each device while the program runs: the table tune.def. */
#ifndef SCL_ENGINE_CL_RUNTIME_TUNE_H
#define SCL_ENGINE_CL_RUNTIME_TUNE_H

#include "engine/cl/runtime/cl.h"

typedef enum {
#define SCL_CL_TUNABLE(name, ...) SCL_CL_TUNE_##name,
#include "engine/cl/runtime/tune.def"
#undef SCL_CL_TUNABLE
  SCL_CL_TUNABLES
} scl_cl_tunable;

/* The value in force on the device of this context: one of those permitted. */
int scl_cl_tuned(const scl_cl_context *cl, scl_cl_tunable which);

#endif
