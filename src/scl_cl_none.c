/* Stands in for the device engine in a build without the OpenCL headers. */
#include "scl_device.h"

static const char reason[] =
    "statcl was installed without OpenCL headers: install them (Debian: ocl-icd-opencl-dev), "
    "then install statcl again";

bool scl_device_built(void) {
  return false;
}

void scl_device_set_kernels(const char *folder) {
  (void)folder;
}
void scl_device_set_cache(const char *folder) {
  (void)folder;
}

scl_status scl_device_list(const scl_device_info **out, size_t *count) {
  *out = NULL;
  *count = 0;
  return SCL_OK;
}

void scl_device_refresh(void) {}
const char *scl_device_loader(void) {
  return "";
}
const char *scl_device_reason(void) {
  return reason;
}

scl_status scl_device_open(size_t index, scl_context **out) {
  (void)index;
  (void)out;
  return scl_fail(SCL_E_NO_DEVICE, "%s", reason);
}

const scl_device_info *scl_device_of(const scl_context *ctx) {
  (void)ctx;
  return NULL;
}

void scl_device_profiling(bool on) {
  (void)on;
}

/* There is no device context that could get here. */
scl_status scl_device_profile_begin(scl_context *ctx) {
  (void)ctx;
  return scl_fail(SCL_E_NO_DEVICE, "%s", reason);
}

scl_status scl_device_profile_end(scl_context *ctx, double *milliseconds) {
  (void)ctx;
  (void)milliseconds;
  return scl_fail(SCL_E_NO_DEVICE, "%s", reason);
}

void scl_device_trim(scl_context *ctx) {
  (void)ctx;
}
