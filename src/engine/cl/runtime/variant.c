/* Programs made for one kind of device: matrix instructions in inline assembly, which another
 * driver may refuse or read differently (inst/kernels/nvidia/).
 *
 * Whether a device may try them is decided once per context, from the properties that it reports.
 * Then each program has its own trial (trials.def), run when the program is first used: integers
 * for which every order of summation is exact, or results with a bound on the error. A program that
 * fails is refused for the life of the context, with the reason, and its callers use the portable
 * kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "engine/cl/runtime/private.h"
#include "engine/cl/runtime/trial.h"

static scl_cl_trial_function *const trials[SCL_CL_PROGRAMS] = {
#define SCL_CL_TRIAL(program, function) [SCL_CL_PROGRAM_##program] = scl_cl_trial_##function,
#include "engine/cl/runtime/trials.def"
#undef SCL_CL_TRIAL
};

/* ---- the device ------------------------------------------------------------------------------ */
static bool is_set(const char *name, const char *value) {
  const char *text = scl_env(name);
  return text != NULL && strcmp(text, value) == 0;
}

/* Why this device does not try them, or "". */
static const char *reason_against(scl_cl_context *cl) {
  if (is_set("STATCL_VARIANT", "portable")) return "STATCL_VARIANT=portable";
  cl->small_mma = cl->info.capability == 80 || is_set("STATCL_VARIANT", "m8n8k4");
  if (cl->emulated_mma) return "";
  /* Devices between 8.0 and 9.0 have them, but hardly faster than plain arithmetic. */
  if (cl->info.capability != 80 && cl->info.capability < 90)
    return "the device has no matrix instructions for double precision";
  return "";
}

bool scl_cl_may_try_mma(scl_cl_context *cl) {
  if (cl->variant == SCL_CL_VARIANT_UNKNOWN) {
    cl->variant_reason = reason_against(cl);
    cl->variant = cl->variant_reason[0] == '\0' ? SCL_CL_VARIANT_MMA : SCL_CL_VARIANT_PORTABLE;
  }
  return cl->variant == SCL_CL_VARIANT_MMA;
}

bool scl_cl_may_try_large_mma(scl_cl_context *cl) {
  return cl->info.capability < 120 && scl_cl_may_try_mma(cl) && !cl->small_mma;
}

bool scl_cl_may_try_bytes(scl_cl_context *cl) {
  return !is_set("STATCL_VARIANT", "portable") && (cl->emulated_mma || cl->info.capability >= 80);
}

bool scl_cl_may_try_warpgroups(scl_cl_context *cl) {
  return scl_cl_may_try_bytes(cl) && (cl->emulated_mma || cl->info.capability == 90);
}

/* Some drivers list it and do not compile it: then the trial refuses it. */
static bool may_try_dots(scl_cl_context *cl) {
  return !is_set("STATCL_VARIANT", "portable") && (cl->emulated_mma || cl->info.integer_dot);
}

static bool may_try(scl_cl_context *cl, scl_cl_program which) {
  if (which == SCL_CL_PROGRAM_integers_dot) return may_try_dots(cl);
  if (which == SCL_CL_PROGRAM_integers_wgmma) return scl_cl_may_try_warpgroups(cl);
  return which == SCL_CL_PROGRAM_integers_mma ? scl_cl_may_try_bytes(cl) : scl_cl_may_try_mma(cl);
}

/* ---- trials ---------------------------------------------------------------------------------- */
static scl_status refuse(scl_cl_trial *trial, const char *reason) {
  const size_t bytes = strlen(reason) + 1;
  trial->state = SCL_CL_REFUSED;
  trial->reason = malloc(bytes);
  if (trial->reason != NULL) memcpy(trial->reason, reason, bytes);
  return SCL_OK;
}

static scl_status run_trial(scl_cl_context *cl, scl_cl_program which) {
  scl_cl_trial *trial = &cl->trial[which];
  const bool profiling = cl->profiling;
  bool right = false;
  cl->profiling = false; /* its commands are not what is measured */
  trial->state = SCL_CL_TRYING;
  const bool lacked = scl_cl_set_lacks(false); /* it runs even where the call only asks */
  scl_status status = scl_cl_program_need(cl, which);
  /* Built in the background, for a whole call: the trial's other kernels are requested too. */
  if (status == SCL_OK || (status == SCL_E_BUILDING && scl_cl_goes_on()))
    status = trials[which](cl, which, &right);
  if (scl_cl_set_lacks(lacked) && status != SCL_E_INTERRUPT && status != SCL_E_LOST)
    status = scl_cl_building();
  cl->profiling = profiling;
  if (scl_cl_trial_fault(which, scl_cl_program_name(which)) == SCL_CL_FAULT_RESULT) right = false;
  trial->state = status == SCL_OK && right ? SCL_CL_PASSED : SCL_CL_UNTRIED;
  if (status == SCL_OK && !scl_cl_program_has_run(cl, which))
    return refuse(trial, "its trial did without it");
  if (status == SCL_OK) return right ? SCL_OK : refuse(trial, "its trial gave a wrong result");
  if (status == SCL_E_BUILD || status == SCL_E_OPENCL)
    return refuse(trial, scl_fault_last()->message);
  return status == SCL_E_MEMORY ? SCL_OK : status;
}

scl_status scl_cl_try_program(scl_cl_context *cl, scl_cl_program which, bool *usable) {
  const scl_cl_trial *trial = &cl->trial[which];
  *usable = false;
  if (!may_try(cl, which)) return SCL_OK;
  if (trial->state == SCL_CL_UNTRIED) {
    const scl_status status = run_trial(cl, which);
    *usable = status == SCL_E_BUILDING; /* the likely answer: its other kernels are asked for too */
    if (*usable) return SCL_OK;
    SCL_TRY(status);
  }
  *usable = trial->state == SCL_CL_PASSED || trial->state == SCL_CL_TRYING;
  return SCL_OK;
}

/* ---- matrices of trials ---------------------------------------------------------------------- */
double scl_cl_trial_number(size_t i, size_t j) {
  return (double)((i * 37 + j * 101 + i * j) % 23) - 11.0;
}

scl_status scl_cl_trial_upload(scl_cl_context *cl, const double *data, size_t m, size_t n,
                               scl_block *out) {
  SCL_TRY(scl_block_create(&cl->base, m, n, out));
  return scl_cl_upload(&cl->base, SCL_GENERAL, data, m, *out);
}

scl_status scl_cl_trial_download(scl_cl_context *cl, scl_block block, double *data, size_t ld) {
  return scl_cl_download(&cl->base, SCL_GENERAL, block, SCL_WAIT_WRITES, data, ld);
}

bool scl_cl_trial_is_near(const double *x, const double *y, size_t count, double tolerance) {
  for (size_t i = 0; i < count; i++) {
    const double size = y[i] < 0.0 ? -y[i] : y[i], error = x[i] < y[i] ? y[i] - x[i] : x[i] - y[i];
    if (!(error <= tolerance * (1.0 + size))) return false; /* nor is NaN near */
  }
  return true;
}
