#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local scl_fault last_fault;

const scl_fault *scl_fault_last(void) {
  return &last_fault;
}

scl_fault *scl_fault_edit(void) {
  return &last_fault;
}

static void begin_fault(scl_status status, const char *format, va_list args) {
  char message[sizeof last_fault.message];
  vsnprintf(message, sizeof message, format, args); /* first: args may point into the record */
  memset(&last_fault, 0, sizeof last_fault);
  memcpy(last_fault.message, message, sizeof message);
  last_fault.status = status;
}

scl_status scl_fail(scl_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  begin_fault(status, format, args);
  va_end(args);
  return status;
}

scl_status scl_fail_argument(const char *argument, const char *format, ...) {
  va_list args;
  va_start(args, format);
  begin_fault(SCL_E_ARGUMENT, format, args);
  va_end(args);
  snprintf(last_fault.argument, sizeof last_fault.argument, "%s", argument);
  return SCL_E_ARGUMENT;
}

scl_status scl_fail_index(scl_status status, int64_t index, const char *format, ...) {
  va_list args;
  va_start(args, format);
  begin_fault(status, format, args);
  va_end(args);
  last_fault.index = index;
  return status;
}

scl_status scl_fail_memory(uint64_t bytes, uint64_t limit, const char *what) {
  if (limit != 0) {
    scl_fail(SCL_E_MEMORY, "cannot allocate %.1f MiB for %s (limit %.1f MiB)",
             (double)bytes / 1048576.0, what, (double)limit / 1048576.0);
  } else {
    scl_fail(SCL_E_MEMORY, "cannot allocate %.1f MiB for %s", (double)bytes / 1048576.0, what);
  }
  last_fault.bytes = bytes;
  last_fault.limit = limit;
  return SCL_E_MEMORY;
}
