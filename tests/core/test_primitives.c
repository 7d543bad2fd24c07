/* A device is tried before it is used: whatever it computes wrongly is found and named. A driver
 * that misreads one thing at a time stands for such devices. */
#ifndef _WIN32
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef _WIN32
#include <unistd.h>
#endif

#include "base/device.h"
#include "base/threads.h"
#include "driver.h"
#include "engine/cl/runtime/private.h"
#include "test.h"

static uint64_t primitives_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static double primitives_number(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
#include "kernels/include/port.h"
#include "kernels/include/primitives.h"

/* ---- the numbers ------------------------------------------------------------------------------
 */
static double value_of(int what, double a, double b, double c) {
  switch (what) {
#define PRIMITIVE(name, words, ulps, value)                                                        \
  case PRIMITIVE_##name:                                                                           \
    return value;
    PRIMITIVES(PRIMITIVE)
#undef PRIMITIVE
  }
  return NAN;
}

static void check_row(int what, double a, double b, double c, double expected) {
  const double value = value_of(what, a, b, c);
#ifdef _WIN32 /* mingw-w64's functions are not exact */
  if (what >= PRIMITIVE_fused && what <= PRIMITIVE_power) return;
#endif
  if (what == PRIMITIVE_contracted) {
    const volatile double product = a * b;
    CHECK(expected == fma(a, b, c) && (value == expected || value == product + c));
  } else if (what < PRIMITIVE_exponential || what > PRIMITIVE_power) {
    CHECK(value == expected || (isnan(value) && isnan(expected)));
  } else {
    CHECK_NEAR(value, expected, 5e-15); /* of the host's library */
  }
}

/* What Python has computed is what this processor does. */
static void check_numbers(void) {
  bool has[PRIMITIVE_COUNT] = {false};
#define ROW(name, ...)                                                                             \
  has[PRIMITIVE_##name] = true;                                                                    \
  check_row(PRIMITIVE_##name, __VA_ARGS__);
#include "engine/cl/runtime/primitives.def"
#undef ROW
  for (int k = 0; k < PRIMITIVE_COUNT; k++) CHECK(has[k]);
}

/* ---- misreadings ------------------------------------------------------------------------------
 */
static const struct {
  const char *from, *to, *words; /* of the message */
} misreadings[] = {
    {"\"addition\", 0, a + b", "\"\", 0, (a + b) * (1.0 + 0x1p-52)", "addition"},
    {"\"subtraction\", 0, a - b", "\"\", 0, (real)(float)(a - b)", "subtraction"},
    {"\"multiplication\", 0, a * b", "\"\", 0, a * b - a * b * 0x1p-52", "multiplication"},
    {"a / b", "a * (1.0 / b)", "division (relative error"},
    {"a / b", "(real)((float)a / (float)b)", "division"},
    {"sqrt(a)", "a * (1.0 / sqrt(a))", "square roots"},
    {"fma(a, b, c)", "fma(a, b, 0.0) + c", "fma()"},
    {"a * b + c", "as_double(as_ulong(a * b) & ~1ul) + c", "a * b + c"},
    {"(a - (a + b)) + b", "(a - a) + (b - b)", "the order of sums"},
    {"exp(a)", "exp(a) * (1.0 + 0x1p-49)", "exp()"},
    {"log(a)", "(real)log((float)a)", "log()"},
    {"pow(a, b)", "exp(b * log(a))", "pow()"},
    {"numbers\", 0, a * b", "\", 0, fabs(a * b) < 0x1p-1022 ? 0.0 : a * b", "subnormal numbers"},
    {"numbers\", 0, a - b", "\", 0, fabs(a - b) < 0x1p-1022 ? 0.0 : a - b", "subnormal numbers"},
    {"a == b ? 3.0 : 4.0", "3.0", "comparisons"},
    {"(real)(int)a", "rint(a)", "conversion to integers"},
    {"(real)(scl_long)a", "trunc((real)(float)a)", "conversion to 64-bit integers"},
    {"rint(a)", "floor(a + 0.5)", "rounding to whole numbers"},
    {"PRIMITIVES_BITS(a) * PRIMITIVES_BITS(b)", "(as_ulong(a) & 0xffffffff) * as_ulong(b)",
     "64-bit integers"},
    {"PRIMITIVES_BITS(a) / PRIMITIVES_BITS(b)", "(ulong)((real)as_ulong(a) / (real)as_ulong(b))",
     "64-bit integers"},
    {"PRIMITIVES_BITS(a) >> 21", "(ulong)((uint)as_ulong(a) >> 21)", "64-bit integers"},
    {"numbers[item] = number", "if (item % 9 > 0) numbers[item] = number",
     "local memory with barriers"},
    {"barrier(CLK_LOCAL_MEM_FENCE);", "", "local memory with barriers"}, /* seen on CPUs */
    {"atomic_inc(counters)", "counters[0] = 1", "atomic operations"},
    {"atomic_or(", "atomic_xchg(", "atomic operations"},
    {"atomic_min(", "atomic_max(", "atomic operations"},
};

static void check_refusal(size_t index, const char *words) {
  scl_context *ctx = NULL;
  CHECK_STATUS(SCL_E_REFUSED, scl_device_open(index, &ctx));
  const scl_fault *fault = scl_fault_last();
  const bool named = strstr(fault->message, words) != NULL;
  CHECK(ctx == NULL && named && strchr(fault->message, ',') != NULL);
  CHECK(strlen(fault->device) > 0);
  if (!named) printf("       %s: %s\n", words, fault->message);
}

static void check_misreadings(const scl_context *ctx, size_t index, driver_counts before) {
  for (size_t k = 0; k < LENGTH(misreadings); k++) {
    const bool chance = strstr(misreadings[k].from, "barrier") != NULL;
    if (!test_turn(ctx, k, 3) || (chance && scl_device_of(ctx)->type != SCL_DEVICE_CPU)) continue;
    scl_cl_primitives_forget();
    driver_rewrite(misreadings[k].from, misreadings[k].to);
    check_refusal(index, misreadings[k].words);
    CHECK(driver_rewritten() > 0 && driver_is_clean(before));
    driver_rewrite(NULL, NULL);
    check_refusal(index, misreadings[k].words); /* known: not tried again */
  }
  scl_cl_primitives_forget();
  driver_rewrite("primitives_try", "primitives_try(,)");
  check_refusal(index, "does not compile");
  CHECK(strlen(scl_fault_last()->log) > 0);
  driver_rewrite(NULL, NULL);
}

static void check_requests(size_t index) {
  setenv("STATCL_TRIAL_FAULT", "device:divide,device:atomics", 1);
  scl_cl_primitives_forget();
  check_refusal(index, "division, atomic operations");
  unsetenv("STATCL_TRIAL_FAULT");
}

/* ---- once -------------------------------------------------------------------------------------
 */
static long programs_of_opening(size_t index) {
  scl_context *ctx = NULL;
  const driver_counts before = driver_counted();
  CHECK_OK(scl_device_open(index, &ctx));
  const long programs = driver_counted().programs - before.programs;
  CHECK(scl_context_memory(ctx).live == 0 && scl_context_memory(ctx).peak == 0);
  scl_context_release(ctx);
  CHECK(driver_is_clean(before));
  return programs;
}

/* In a process, and where programs are kept. */
static void check_once(size_t index, const scl_cl_context *cl) {
  char folder[] = "statcl-trial-XXXXXX", command[64];
  scl_cl_primitives_forget();
  CHECK(programs_of_opening(index) == 1 && programs_of_opening(index) == 0);
  CHECK(mkdtemp(folder) != NULL);
  scl_device_set_store(folder);
  for (int k = 0; k < 3; k++) {
    scl_cl_primitives_forget();
    CHECK(programs_of_opening(index) == (k == 0));
  }
  char *kernels = scl_env_copy("STATCL_GPU_KERNELS");
  setenv("STATCL_GPU_KERNELS", cl->cpu ? "1" : "0", 1);
  CHECK(programs_of_opening(index) == !cl->emulated_mma); /* other options */
  scl_env_restore("STATCL_GPU_KERNELS", kernels);
  scl_device_set_store("");
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
}

static void check_driver_faults(size_t index, driver_counts before) {
  static const int codes[] = {-4, -34, -59};
  const long first = driver_counted().calls;
  scl_cl_primitives_forget();
  programs_of_opening(index);
  const long calls = driver_counted().calls - first;
  CHECK(calls > 10);
  for (long n = 1; n <= calls; n++) {
    scl_context *ctx = NULL;
    const long dropped = driver_counted().dropped;
    scl_cl_primitives_forget();
    driver_fail(n, codes[n % 3], n % 2 == 1);
    const scl_status status = scl_device_open(index, &ctx);
    driver_fail(0, 0, false);
    CHECK(status != SCL_E_REFUSED && (status == SCL_OK) == (ctx != NULL));
    scl_context_release(ctx);
    CHECK(driver_is_clean(before));
    CHECK(status == SCL_E_LOST || driver_counted().dropped == dropped);
  }
}

void test_primitives(scl_context *ctx) {
  if (scl_context_is_host(ctx)) {
    check_numbers();
    return;
  }
  const size_t index = driver_index(ctx);
  driver_install();
  const driver_counts before = driver_counted();
  check_misreadings(ctx, index, before);
  check_requests(index);
  check_once(index, (const scl_cl_context *)ctx);
  check_driver_faults(index, before);
  scl_cl_primitives_forget();
  driver_remove();
}
