/* Faults that tests plant in trials (STATCL_TRIAL_FAULT). */
#include <string.h>

#include "base/threads.h"
#include "engine/cl/runtime/private.h"

static const bool has_trial[SCL_CL_PROGRAMS] = {
#define SCL_CL_TRIAL(program, function) [SCL_CL_PROGRAM_##program] = true,
#include "engine/cl/runtime/trials.def"
#undef SCL_CL_TRIAL
};

/* Whether a pattern, `length` characters of `text`, means this name. */
static bool is_meant(const char *text, size_t length, const char *name) {
  if (length > 0 && text[length - 1] == '*') return strncmp(text, name, length - 1) == 0;
  return strlen(name) == length && strncmp(text, name, length) == 0;
}

/* Whether the variable has this kind of fault for this name. */
static bool is_requested(const char *kind, const char *name) {
  const char *at = scl_env("STATCL_TRIAL_FAULT");
  const size_t prefix = strlen(kind);
  while (at != NULL && *at != '\0') {
    const size_t length = strcspn(at, ",");
    if (length > prefix && strncmp(at, kind, prefix) == 0 &&
        is_meant(at + prefix, length - prefix, name))
      return true;
    at += length;
    at += strspn(at, ",");
  }
  return false;
}

scl_cl_fault scl_cl_trial_fault(scl_cl_program which, const char *name) {
  if (!has_trial[which]) return SCL_CL_FAULT_NONE;
  if (is_requested("build:", name)) return SCL_CL_FAULT_BUILD;
  return is_requested("result:", name) ? SCL_CL_FAULT_RESULT : SCL_CL_FAULT_NONE;
}

bool scl_cl_primitive_fault(const char *name) {
  return is_requested("device:", name);
}
