/* Stands in for the device engine in a build without the OpenCL headers. */
#include "base/device.h"
#include "base/user_kernel.h"

static const char reason[] =
    "statcl was installed without OpenCL headers: install them (Debian: ocl-icd-opencl-dev), "
    "then install statcl again";

bool scl_device_built(void) {
  return false;
}

void scl_device_set_kernels(const char *folder) {
  (void)folder;
}
scl_status scl_device_set_packed_kernels(const char *text) {
  (void)text;
  return SCL_OK;
}
void scl_device_set_cache(const char *folder) {
  (void)folder;
}

void scl_device_set_store(const char *folder) {
  (void)folder;
}

scl_status scl_device_list(const scl_device_info **out, size_t *count) {
  *out = NULL;
  *count = 0;
  return SCL_OK;
}

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

const char *scl_device_variant(scl_context *ctx) {
  (void)ctx;
  return "";
}
bool scl_device_trial_next(const scl_context *ctx, int *at, scl_device_trial *out) {
  (void)ctx, (void)at, (void)out;
  return false;
}

double scl_device_build_seconds(void) {
  return 0.0;
}
const char *scl_device_build_name(void) {
  return "";
}
bool scl_device_build_at(size_t k, scl_device_build *out) {
  (void)k, (void)out;
  return false;
}

bool scl_device_beside_begin(bool on) {
  (void)on;
  return false;
}
void scl_device_beside_end(bool before) {
  (void)before;
}
int scl_device_beside_count(void) {
  return 0;
}
void scl_device_beside_stop(void) {}

const scl_device_info *scl_device_of(const scl_context *ctx) {
  (void)ctx;
  return NULL;
}

void scl_device_profiling(bool on) {
  (void)on;
}

/* Not reachable: there is no device context. */
scl_status scl_device_profile_begin(scl_context *ctx) {
  (void)ctx;
  return scl_fail(SCL_E_NO_DEVICE, "%s", reason);
}

scl_status scl_device_profile_end(scl_context *ctx, double *milliseconds) {
  (void)ctx;
  (void)milliseconds;
  return scl_fail(SCL_E_NO_DEVICE, "%s", reason);
}

bool scl_device_tunable_at(size_t k, scl_device_tunable *out) {
  (void)k, (void)out;
  return false;
}
scl_status scl_device_tune(size_t index, const char *name, int value) {
  (void)index, (void)name, (void)value;
  return scl_fail(SCL_E_NO_DEVICE, "%s", reason);
}

void scl_device_trim(scl_context *ctx) {
  (void)ctx;
}

scl_status scl_kernel_create(scl_context *ctx, const char *source, const char *name,
                             scl_kernel **out) {
  (void)ctx, (void)source, (void)name, (void)out;
  return scl_fail(SCL_E_NO_DEVICE, "%s", reason);
}

/* Not reachable: there is no kernel. */
void scl_kernel_release(scl_kernel *kernel) {
  (void)kernel;
}
scl_context *scl_kernel_context(const scl_kernel *kernel) {
  (void)kernel;
  return scl_context_host();
}
int scl_kernel_arguments(const scl_kernel *kernel) {
  (void)kernel;
  return 0;
}
scl_status scl_kernel_run(scl_kernel *kernel, int count, const scl_kernel_argument *args, int dims,
                          const size_t *global, const size_t *local) {
  (void)kernel, (void)count, (void)args, (void)dims, (void)global, (void)local;
  return scl_fail(SCL_E_NO_DEVICE, "%s", reason);
}
