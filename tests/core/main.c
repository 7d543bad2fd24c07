/* Runs the suites named on the command line (all of them by default) on the host, or, with
 * STATCL_TEST_DEVICE=1, on the device STATCL_DEVICE or else the first one. With STATCL_TEST_FIRST=1
 * the first failure ends the run. STATCL_TEST_TURN, the number of a day, has the suites that take
 * the longest take turns: each runs every third day on the host, every seventh on a device, where
 * some of its cases take turns too (test_turn()). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/device.h"
#include "test.h"

static struct { long passed, failed, skipped; } total;
static const char *suite_name;
static uint64_t state;

static bool is_set(const char *name) {
  const char *value = getenv(name);
  return value != NULL && *value != '\0' && strcmp(value, "0") != 0;
}

static void fault_line(const char *text, const char *file, int line) {
  total.failed++;
  printf("FAILED %s: %s (%s:%d)\n", suite_name, text, file, line);
  fflush(stdout);
  if (is_set("STATCL_TEST_FIRST")) _Exit(1);
}

void test_check(bool ok, const char *text, const char *file, int line) {
  if (ok) {
    total.passed++;
  } else {
    fault_line(text, file, line);
  }
}

void test_check_status(scl_status got, scl_status want, const char *text, const char *file,
                       int line) {
  if (got == want) {
    total.passed++;
    return;
  }
  fault_line(text, file, line);
  printf("       status %d, not %d; last fault: %s\n%s", got, want, scl_fault_last()->message,
         scl_fault_last()->log);
}

void test_check_near(double got, double want, double tol, const char *text, const char *file,
                     int line) {
  double scale = fabs(want) > 1 ? fabs(want) : 1;
  bool same = got == want || (isnan(got) && isnan(want));
  if (same || fabs(got - want) <= tol * scale) {
    total.passed++;
    return;
  }
  fault_line(text, file, line);
  printf("       %.17g, not %.17g\n", got, want);
}

void test_skip(const char *why) {
  total.skipped++;
  printf("SKIPPED %s: %s\n", suite_name, why);
}

double test_random(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(state ^ (state >> 33)) / 9223372036854775808.0;
}

void test_seed(uint64_t seed) {
  state = seed;
  for (int k = 0; k < 8; k++) test_random(); /* near seeds begin alike */
}

void test_fill(double *x, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = test_random();
}

void *test_alloc(size_t bytes) {
  void *p = malloc(bytes > 0 ? bytes : 1);
  if (p == NULL) {
    printf("no memory for a test\n");
    exit(2);
  }
  return p;
}

void test_free(const void *const *x, size_t count) {
  for (size_t i = 0; i < count; i++) free((void *)x[i]);
}

void test_release(scl_mat *const *x, size_t count) {
  for (size_t i = 0; i < count; i++) scl_mat_release(x[i]);
}

bool test_small(void) {
  return is_set("STATCL_TEST_SMALL");
}

bool test_quick(void) {
  return is_set("STATCL_TEST_QUICK");
}

static const struct {
  const char *name;
  void (*run)(scl_context *ctx);
} suites[] = {
#define TEST(name) {#name, test_##name},
#include "tests.def"
#undef TEST
};

/* The suites of the days, which take about the same time. */
enum { MOST_OF_DAY = 10 };
static const char *const host_days[][MOST_OF_DAY] = {
    {"blocks"},
    {"batch", "gp", "program", "program_vectors", "vecchia"},
    {"covariance", "sample", "vecchia_order", "chol_adjoint", "program_random"}};
static const char *const device_days[][MOST_OF_DAY] = {
    {"program", "mma_gemm"},
    {"program_vectors", "cholesky", "trial", "mma_gram"},
    {"arith", "gemm", "triangular", "operations", "mma_chol"},
    {"batch", "expr_programs", "mma_batch", "batch_product"},
    {"glm", "covariance", "program_faults", "scan", "mma_glm", "glm_walk"},
    {"vecchia", "gp", "program_pass", "fault_paths"},
    {"expr", "program_random", "sample", "chol_adjoint"}};

static bool is_day(const char *name, const char *const *day) {
  for (size_t i = 0; i < MOST_OF_DAY && day[i] != NULL; i++) {
    if (strcmp(day[i], name) == 0) return true;
  }
  return false;
}

enum { HOST_DAYS = LENGTH(host_days), DEVICE_DAYS = LENGTH(device_days) };

/* The number of the day, if there is one. */
static bool find_turn(size_t *day) {
  const char *number = getenv("STATCL_TEST_TURN");
  if (number == NULL || *number == '\0') return false;
  *day = strtoul(number, NULL, 10);
  return true;
}

static bool is_turn(const char *name, bool on_device) {
  const size_t days = on_device ? DEVICE_DAYS : HOST_DAYS;
  const char *const(*list)[MOST_OF_DAY] = on_device ? device_days : host_days;
  size_t today;
  if (!find_turn(&today)) return true;
  if (strcmp(name, "mma_launched") == 0) return false; /* it sees what all suites have launched */
  for (size_t day = 0; day < days; day++) {
    if (is_day(name, list[day])) return day == today % days;
  }
  return true;
}

bool test_turn(const scl_context *ctx, size_t item, size_t rounds) {
  size_t today;
  test_seed(item + 1); /* the numbers of a case are the same on each day */
  if (scl_context_is_host(ctx) || !find_turn(&today)) return true;
  return (item + today / DEVICE_DAYS) % rounds == 0;
}

const char *test_kernels(void) {
  const char *folder = getenv("STATCL_KERNELS");
  return folder != NULL ? folder : "../../inst/kernels";
}

static scl_context *open_device(void) {
  scl_device_set_kernels(test_kernels());
  const scl_device_info *list;
  size_t count;
  suite_name = "device";
  CHECK_OK(scl_device_list(&list, &count));
  if (count == 0) {
    CHECK(!"a device is there");
    printf("       %s\n", scl_device_reason());
    return NULL;
  }
  size_t index = 0;
  const char *id = getenv("STATCL_DEVICE");
  for (size_t i = 0; id != NULL && i < count; i++) {
    if (strcmp(list[i].id, id) == 0) index = i;
  }
  scl_context *ctx = NULL;
  CHECK_OK(scl_device_open(index, &ctx));
  return ctx;
}

int main(int argc, char **argv) {
  bool on_device = is_set("STATCL_TEST_DEVICE");
  test_set_blas();
  scl_context *ctx = on_device ? open_device() : scl_context_host();
  if (ctx != NULL) printf("engine %s: %s\n", ctx->engine->name, scl_context_name(ctx));
  for (size_t s = 0; ctx != NULL && s < LENGTH(suites); s++) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; i++) wanted = wanted || strcmp(argv[i], suites[s].name) == 0;
    if (!wanted) continue;
    if (!is_turn(suites[s].name, on_device)) {
      printf("%-15s another day\n", suites[s].name);
      continue;
    }
    long before = total.passed, failed_before = total.failed;
    clock_t start = clock();
    suite_name = suites[s].name;
    state = 1;
    suites[s].run(ctx);
    CHECK(scl_context_memory(ctx).live == 0);
    CHECK(scl_context_memory(ctx).buffers == 0);
    CHECK(ctx->refs == 1);
    printf("%-15s %7ld passed, %ld failed, %6.1f s of processor time\n", suite_name,
           total.passed - before, total.failed - failed_before,
           (double)(clock() - start) / CLOCKS_PER_SEC);
    fflush(stdout);
  }
  if (on_device) scl_context_release(ctx);
  printf("%ld passed, %ld failed, %ld skipped\n", total.passed, total.failed, total.skipped);
  return total.failed > 0;
}
