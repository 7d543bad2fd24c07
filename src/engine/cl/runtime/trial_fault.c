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

scl_cl_fault scl_cl_trial_fault(scl_cl_program which, const char *name) {
  static const char *const kinds[] = {"", "build:", "result:"};
  const char *at = has_trial[which] ? scl_env("STATCL_TRIAL_FAULT") : NULL;
  while (at != NULL && *at != '\0') {
    const size_t length = strcspn(at, ",");
    for (int kind = SCL_CL_FAULT_BUILD; kind <= SCL_CL_FAULT_RESULT; kind++) {
      const size_t prefix = strlen(kinds[kind]);
      if (length > prefix && strncmp(at, kinds[kind], prefix) == 0 &&
          is_meant(at + prefix, length - prefix, name))
        return (scl_cl_fault)kind;
    }
    at += length;
    at += strspn(at, ",");
  }
  return SCL_CL_FAULT_NONE;
}
