/* The list of devices and its errors, forks, and the driver's objects: none is left, even if any
 * call of the driver fails. */
#ifndef _WIN32
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cl/runtime/cl.h"
#include "base/device.h"
#include "test.h"

#ifndef _WIN32
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a check in a child, which returns its number of failures; a child that hangs is ended. */
static int in_child(int (*check)(void *arg), void *arg) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(120); /* far more than a busy machine needs */
    _exit(check(arg));
  }
  int state = 0;
  if (child < 0 || waitpid(child, &state, 0) != child || !WIFEXITED(state)) return 99;
  return WEXITSTATUS(state);
}

/* The list is empty, with a reason; opening fails with an error. */
static int check_empty_list(void) {
  const scl_device_info *list = NULL;
  size_t count = 9;
  scl_context *ctx = NULL;
  int faults = scl_device_list(&list, &count) != SCL_OK;
  faults += count != 0;
  faults += strlen(scl_device_reason()) == 0;
  faults += scl_device_open(0, &ctx) != SCL_E_NO_DEVICE;
  faults += ctx != NULL || strlen(scl_fault_last()->message) == 0;
  return faults;
}

static int without_loader(void *arg) {
  (void)arg;
  setenv("STATCL_LOADER", "libno-such-loader.so.9", 1);
  int faults = check_empty_list();
  faults += strstr(scl_device_reason(), "libno-such-loader") == NULL;
  faults += strlen(scl_device_loader()) != 0;
  unsetenv("STATCL_LOADER");
  return faults;
}

/* A library that is no OpenCL loader. */
static int wrong_loader(void *arg) {
  (void)arg;
  setenv("STATCL_LOADER", "libm.so.6", 1);
  return check_empty_list();
}

static int without_platform(void *arg) {
  (void)arg;
  setenv("OCL_ICD_VENDORS", "/nonexistent/", 1);
  return check_empty_list() + (strlen(scl_device_loader()) == 0);
}

/* A loader that reads its list of drivers destructively, which leaves only the first one. */
static cl_int CL_API_CALL cut_list(cl_uint most, cl_platform_id *platform, cl_uint *count) {
  char *colon = strchr(getenv("OCL_ICD_FILENAMES"), ':');
  (void)most;
  (void)platform;
  *count = 0;
  if (colon != NULL) *colon = '\0';
  return CL_SUCCESS;
}

/* Child processes see the list that the user has set. */
static int keeps_environment(void *arg) {
  const char *names = "libfirst.so.1:libsecond.so.1";
  (void)arg;
  if (!scl_cl_load()) return 0;
  setenv("OCL_ICD_FILENAMES", names, 1);
  scl_cl.clGetPlatformIDs = cut_list;
  return check_empty_list() + (strcmp(getenv("OCL_ICD_FILENAMES"), names) != 0);
}

static int open_parents_first(void *arg) {
  (void)arg;
  scl_context *ctx = NULL;
  int faults = scl_device_open(0, &ctx) != SCL_E_FORK;
  return faults + (ctx != NULL);
}

/* A driver may start threads when its devices are listed. */
static int fork_after_listing(void *arg) {
  const scl_device_info *list = NULL;
  size_t count = 0;
  (void)arg;
  if (scl_device_list(&list, &count) != SCL_OK) return 1;
  return count == 0 ? 0 : in_child(open_parents_first, NULL);
}

/* Only in a process that has not opened the loader yet: it is opened once. */
static void check_absence(void) {
  CHECK(in_child(without_loader, NULL) == 0);
  CHECK(in_child(wrong_loader, NULL) == 0);
  CHECK(in_child(without_platform, NULL) == 0);
  CHECK(in_child(fork_after_listing, NULL) == 0);
  CHECK(in_child(keeps_environment, NULL) == 0);
}

static int use_parents_device(void *arg) {
  scl_mat *a = arg, *b = NULL;
  scl_context *ctx = scl_mat_context(a), *other = NULL;
  double x[4];
  int faults = scl_mat_to_host(a, x) != SCL_E_FORK;
  faults += scl_mat_create(ctx, 2, 2, SCL_GENERAL, &b) != SCL_E_FORK;
  faults += scl_context_finish(ctx) != SCL_E_FORK;
  faults += scl_device_open(0, &other) != SCL_E_FORK;
  scl_mat_release(a);
  return faults;
}

static void check_fork(scl_context *ctx) {
  double x[4] = {1, 2, 3, 4}, y[4] = {0};
  scl_mat *a = NULL;
  REQUIRE_OK(scl_mat_from_host(ctx, x, 2, 2, SCL_GENERAL, &a));
  CHECK(in_child(use_parents_device, a) == 0);
  CHECK_OK(scl_mat_to_host(a, y));
  CHECK(memcmp(x, y, sizeof x) == 0);
  scl_mat_release(a);
}

static void check_memory_limit(size_t index) {
  setenv("STATCL_MEMORY_LIMIT", "1e6", 1);
  scl_context *ctx = NULL;
  scl_mat *a = NULL, *b = NULL;
  CHECK_OK(scl_device_open(index, &ctx));
  unsetenv("STATCL_MEMORY_LIMIT");
  CHECK(scl_context_memory(ctx).limit == 1000000);
  CHECK_OK(scl_mat_create(ctx, 1000, 100, SCL_GENERAL, &a));
  CHECK_STATUS(SCL_E_MEMORY, scl_mat_create(ctx, 1000, 100, SCL_GENERAL, &b));
  CHECK(scl_fault_last()->limit == 1000000);
  scl_mat_release(a);
  CHECK_OK(scl_mat_create(ctx, 1000, 100, SCL_GENERAL, &b));
  scl_mat_release(b);
  scl_context_release(ctx);
}

/* Writes a file into one of the folders that a kernel folder has. */
static void write_text(const char *folder, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%.*s", folder, (int)strcspn(name, "/"), name);
  mkdir(path, 0700);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *stream = fopen(path, "w");
  CHECK(stream != NULL && fputs(text, stream) >= 0);
  if (stream != NULL) fclose(stream);
}

/* Sources that are missing or wrong: the error has the log, without the folders of files. */
static void check_build_faults(size_t index, const char *kernels) {
  char folder[128];
  const char *temporary = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/statcl-XXXXXX", temporary != NULL ? temporary : P_tmpdir);
  CHECK(mkdtemp(folder) != NULL);
  scl_context *ctx = NULL;
  scl_mat *a = NULL;
  double x[4] = {1, 2, 3, 4};
  CHECK_OK(scl_device_open(index, &ctx));
  scl_device_set_kernels(folder);
  CHECK_STATUS(SCL_E_BUILD, scl_mat_from_host(ctx, x, 2, 2, SCL_LOWER, &a));
  CHECK(strstr(scl_fault_last()->message, "include/port.h") != NULL);
  write_text(folder, "include/port.h", "/* */");
  write_text(folder, "include/packed.h", "/* */");
  write_text(folder, "portable/transfer.cl", "#error planted \"/secret/folder/file.h\"\n");
  CHECK_STATUS(SCL_E_BUILD, scl_mat_from_host(ctx, x, 2, 2, SCL_LOWER, &a));
  const scl_fault *fault = scl_fault_last();
  CHECK(fault->cl_code == -11 && strstr(fault->message, "transfer") != NULL);
  CHECK(strstr(fault->log, "planted") != NULL && strstr(fault->log, "file.h") != NULL);
  CHECK(strstr(fault->log, "secret") == NULL);
  CHECK(strcmp(fault->device, scl_context_name(ctx)) == 0);
  CHECK(a == NULL && scl_context_memory(ctx).live == 0);
  scl_device_set_kernels(kernels);
  CHECK_OK(scl_mat_from_host(ctx, x, 2, 2, SCL_LOWER, &a));
  scl_mat_release(a);
  scl_context_release(ctx);
  const char *names[] = {"include/port.h", "include/packed.h", "portable/transfer.cl", "include",
                         "portable"};
  for (int i = 0; i < 5; i++) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    remove(path);
  }
  rmdir(folder);
}

#else
static void check_absence(void) {}
static void check_fork(scl_context *ctx) {
  (void)ctx;
}
static void check_memory_limit(size_t index) {
  (void)index;
}
static void check_build_faults(size_t index, const char *kernels) {
  (void)index, (void)kernels;
}
#endif

static void check_list(const scl_context *ctx) {
  const scl_device_info *list = NULL, *info = scl_device_of(ctx);
  size_t count = 0;
  CHECK_OK(scl_device_list(&list, &count));
  CHECK(count > 0 && strlen(scl_device_reason()) == 0 && strlen(scl_device_loader()) > 0);
  for (size_t i = 0; i < count; i++) {
    CHECK(strchr(list[i].id, ':') != NULL && strlen(list[i].name) > 0);
    CHECK(list[i].units > 0 && list[i].memory >= list[i].largest && list[i].largest > 0);
    CHECK(list[i].work_group > 0 && list[i].local_memory > 0);
  }
  CHECK(info != NULL && strcmp(info->name, scl_context_name(ctx)) == 0);
  CHECK(scl_device_of(scl_context_host()) == NULL);
  scl_context *none = NULL;
  CHECK_STATUS(SCL_E_NO_DEVICE, scl_device_open(count, &none));
  CHECK(none == NULL);
}

static void check_profile(scl_context *ctx, size_t index) {
  double ms = -1;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_device_profile_begin(ctx));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_device_profile_begin(scl_context_host()));
  scl_context *timed = NULL;
  scl_block a;
  scl_device_profiling(true);
  CHECK_OK(scl_device_open(index, &timed));
  scl_device_profiling(false);
  REQUIRE_OK(scl_block_create(timed, 500, 500, &a));
  CHECK_OK(timed->engine->fill(timed, 1.0, a));
  CHECK_OK(scl_device_profile_begin(timed));
  CHECK_OK(scl_device_profile_end(timed, &ms));
  CHECK(ms == 0);
  CHECK_OK(scl_device_profile_begin(timed));
  for (int i = 0; i < 3; i++) CHECK_OK(timed->engine->fill(timed, i, a));
  CHECK_OK(scl_device_profile_end(timed, &ms));
  CHECK(ms > 0 && ms < 10000);
  scl_buffer_release(a.buffer);
  scl_context_release(timed);
}

static void check_large(scl_context *ctx) {
  scl_mat *a = NULL;
  CHECK_STATUS(SCL_E_MEMORY, scl_mat_create(ctx, 1 << 30, 1 << 20, SCL_GENERAL, &a));
  CHECK(a == NULL && scl_fault_last()->bytes == (uint64_t)1 << 53);
  CHECK(scl_fault_last()->limit == scl_context_memory(ctx).largest);
}

/* ---- the driver's objects -------------------------------------------------------------------- */

#include "engine/cl/runtime/cl.h"
#include "driver.h"

/* Transfers of all kinds and a launch; the first error ends it. */
static scl_status work(scl_context *ctx, size_t n, bool *right) {
  double *x = test_alloc(n * n * sizeof *x), *y = test_alloc(n * n * sizeof *y);
  for (size_t i = 0; i < n * n; i++) x[i] = y[i] = 1.0 + (double)(i % 7);
  scl_mat *a = NULL, *b = NULL;
  scl_status status;
  SCL_GO(scl_mat_from_host(ctx, x, n, n, SCL_LOWER, &a));
  SCL_GO(scl_mat_from_host(ctx, x, n, n, SCL_GENERAL, &b));
  SCL_GO(ctx->engine->upload(ctx, SCL_GENERAL, x, n,
                             scl_block_part(scl_mat_block(b), 0, 0, n - 1, n)));
  SCL_GO(ctx->engine->fill(ctx, 3.0, scl_mat_block(b)));
  SCL_GO(scl_mat_to_host(a, y));
  *right = y[0] == 1 && y[1] == 2 && y[n] == 0;
  SCL_GO(scl_mat_to_host(b, y));
  *right = *right && y[0] == 3 && y[n * n - 1] == 3;
done:
  RELEASE(a, b);
  FREE(x, y);
  scl_memory memory = scl_context_memory(ctx);
  if (memory.live != 0 || memory.buffers != 0) *right = false;
  return status;
}

static bool is_fault_of(scl_status status, int code) {
  if (status == SCL_E_BUILD) return true;
  if (code == -4) return status == SCL_E_MEMORY;
  return status == (code == -34 ? SCL_E_LOST : SCL_E_OPENCL);
}

static struct { long calls, bad, unclean, silent; } runs;

/* What must hold after a run in which the driver returned `code`. The engine recovers from a few
 * errors: without memory for large staging pieces it uses small ones. */
static void count_run(scl_status status, int code, bool right, driver_counts before) {
  if (status == SCL_OK) {
    runs.silent++;
  } else {
    runs.bad += !is_fault_of(status, code);
  }
  runs.bad += !right;
  runs.unclean += !driver_is_clean(before);
}

static const int codes[] = {-4, -34, -59};

/* Opening, building and closing: slow, so one code for each call. */
static scl_status live(size_t index, bool *right) {
  scl_context *ctx = NULL;
  SCL_TRY(scl_device_open(index, &ctx));
  scl_status status = work(ctx, 17, right);
  scl_context_release(ctx);
  return status;
}

static void fail_lives(size_t index, driver_counts before, long most) {
  for (long n = 1; n <= most; n++) {
    bool right = true;
    driver_fail(n, codes[n % 3], n % 2 == 1);
    scl_status status = live(index, &right);
    driver_fail(0, 0, false);
    count_run(status, codes[n % 3], right, before);
    runs.calls++;
  }
}

/* The same context again and again; each run allocates its staging memory. */
static void fail_works(scl_context *ctx, driver_counts before) {
  bool right = true;
  scl_cl_context *cl = (scl_cl_context *)ctx;
  long first = driver_counted().calls;
  CHECK_OK(work(ctx, 40, &right));
  CHECK_OK(scl_context_finish(ctx));
  scl_cl_staging_free(cl);
  scl_device_trim(ctx);
  CHECK(right && driver_is_clean(before));
  long calls = driver_counted().calls - first;
  for (long n = 1; n <= calls; n++) {
    for (int c = 0; c < 6; c++) {
      right = true;
      driver_fail(n, codes[c / 2], c % 2 == 1);
      scl_status status = work(ctx, 40, &right);
      driver_fail(0, 0, false);
      ctx->lost = false;
      CHECK_OK(scl_context_finish(ctx));
      scl_cl_staging_free(cl);
      scl_device_trim(ctx);
      count_run(status, codes[c / 2], right, before);
      runs.calls++;
    }
  }
  right = false;
  CHECK_OK(work(ctx, 300, &right));
  CHECK(right);
}

static void check_driver_faults(size_t index) {
  bool right = false;
  scl_context *ctx = NULL;
  driver_install();
  driver_counts before = driver_counted();
  CHECK_OK(live(index, &right));
  CHECK(right && driver_is_clean(before));
  fail_lives(index, before, 45);
  REQUIRE_OK(scl_device_open(index, &ctx));
  CHECK_OK(work(ctx, 40, &right));
  CHECK_OK(scl_context_finish(ctx)); /* keeps no mark */
  scl_cl_staging_free((scl_cl_context *)ctx);
  scl_device_trim(ctx);
  fail_works(ctx, driver_counted());
  scl_context_release(ctx);
  CHECK(driver_is_clean(before));
  CHECK(runs.bad == 0);
  CHECK(runs.unclean == 0);
  printf("       %ld faults of the driver, %ld of them made good\n", runs.calls, runs.silent);
  CHECK(runs.calls > 200 && runs.silent < runs.calls / 3);
  driver_remove();
}

static size_t index_of(const scl_context *ctx) {
  const scl_device_info *list = NULL;
  size_t count = 0, i = 0;
  CHECK_OK(scl_device_list(&list, &count));
  while (i + 1 < count && strcmp(list[i].id, scl_device_of(ctx)->id) != 0) i++;
  return i;
}

void test_device(scl_context *ctx) {
  if (scl_context_is_host(ctx)) {
    check_absence();
    return;
  }
  check_list(ctx);
  check_large(ctx);
  check_fork(ctx);
  size_t index = index_of(ctx);
  check_profile(ctx, index);
  check_memory_limit(index);
  check_build_faults(index, test_kernels());
  check_driver_faults(index);
}
