/* What the programs of this folder share: the core on one device, and times on it. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <stdio.h>
#include <stdlib.h>

#include "engine/cl/runtime/cl.h"

static scl_context *ctx;

static void check(scl_status status) {
  if (status == SCL_OK) return;
  fprintf(stderr, "%s\n", scl_fault_last()->message);
  exit(1);
}

/* Opens the first device of a type, for event timing. */
static const scl_device_info *open_device(const char *kernels, scl_device_type type,
                                          const char *missing) {
  const scl_device_info *list;
  size_t count, at = 0;
  scl_device_set_kernels(kernels);
  scl_device_profiling(true);
  check(scl_device_list(&list, &count));
  while (at < count && list[at].type != type) at++;
  if (at == count) {
    fprintf(stderr, "%s\n", missing);
    exit(1);
  }
  check(scl_device_open(at, &ctx));
  return &list[at];
}

static inline int ascending(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

#endif
