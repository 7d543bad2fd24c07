#include "engine/cl/runtime/tune.h"

#include <string.h>

static const scl_device_tunable tunables[] = {
#define SCL_CL_TUNABLE(name, standard, kinds, meaning, ...)                                        \
  {#name, meaning, standard, kinds, sizeof((int[]){__VA_ARGS__}) / sizeof(int), {__VA_ARGS__}},
#include "engine/cl/runtime/tune.def"
#undef SCL_CL_TUNABLE
};

/* By device and parameter, as differences from the defaults. */
enum { MOST_DEVICES = 64 };
static int change[MOST_DEVICES][SCL_CL_TUNABLES];

int scl_cl_tuned(const scl_cl_context *cl, scl_cl_tunable which) {
  return tunables[which].standard + (cl->index < MOST_DEVICES ? change[cl->index][which] : 0);
}

bool scl_device_tunable_at(size_t k, scl_device_tunable *out) {
  if (k >= SCL_CL_TUNABLES) return false;
  *out = tunables[k];
  return true;
}

scl_status scl_device_tune(size_t index, const char *name, int value) {
  for (int k = 0; k < SCL_CL_TUNABLES; k++) {
    const scl_device_tunable *t = &tunables[k];
    if (strcmp(name, t->name) != 0) continue;
    for (size_t i = 0; i < t->count; i++) {
      if (t->permitted[i] != value || index >= MOST_DEVICES) continue;
      change[index][k] = value - t->standard;
      return SCL_OK;
    }
  }
  return scl_fail_argument("value", "%d is no value of '%s'", value, name);
}
