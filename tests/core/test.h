/* A small harness for the core, without R. A suite is one function, listed in tests.def, that is
 * run with a context: the host's, or a device's. Failures are printed and counted; the run goes on.
 */
#ifndef TEST_H
#define TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/engine.h"

/* What the tests use of POSIX beyond its headers on Windows (mingw-w64). */
#ifdef _WIN32
#include <direct.h>
#include <io.h>
#include <stdlib.h>
static inline int setenv(const char *name, const char *value, int over) {
  return over || getenv(name) == NULL ? _putenv_s(name, value) : 0;
}
static inline int unsetenv(const char *name) {
  return _putenv_s(name, "");
}
static inline char *mkdtemp(char *folder) {
  return _mktemp(folder) != NULL && _mkdir(folder) == 0 ? folder : NULL;
}
#endif

void test_check(bool ok, const char *text, const char *file, int line);
void test_check_status(scl_status got, scl_status want, const char *text, const char *file,
                       int line);
void test_check_near(double got, double want, double tol, const char *text, const char *file,
                     int line);
void test_skip(const char *why);

#define CHECK(condition) test_check((condition), #condition, __FILE__, __LINE__)
/* A core call gives this status. */
#define CHECK_STATUS(want, call) test_check_status((call), (want), #call, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_STATUS(SCL_OK, call)
/* It gives this status, and its fault names the argument. */
#define CHECK_FAULT(want, named, call)                                                             \
  do {                                                                                             \
    CHECK_STATUS(want, call);                                                                      \
    CHECK(strcmp(scl_fault_last()->argument, named) == 0);                                         \
  } while (0)
/* |got - want| <= tol * max(1, |want|); NaN only equals NaN. */
#define CHECK_NEAR(got, want, tol)                                                                 \
  test_check_near((got), (want), (tol), #got " near " #want, __FILE__, __LINE__)
/* Leaves the suite if it cannot continue. */
#define REQUIRE_OK(call)                                                                           \
  do {                                                                                             \
    scl_status status_ = (call);                                                                   \
    test_check_status(status_, SCL_OK, #call, __FILE__, __LINE__);                                 \
    if (status_ != SCL_OK) return;                                                                 \
  } while (0)
#define SKIP(why) test_skip(why)
#define LENGTH(x) (sizeof(x) / sizeof *(x))

/* Reproducible numbers in (-1, 1); the suite starts at a fixed seed. */
double test_random(void);
void test_fill(double *x, size_t n);
void test_seed(uint64_t seed);  /* starts other numbers */
void *test_alloc(size_t bytes); /* malloc that ends the run when it fails */
/* Frees the memory of each pointer. */
#define FREE(...)                                                                                  \
  test_free((const void *const[]){__VA_ARGS__},                                                    \
            sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *))
void test_free(const void *const *x, size_t count);
/* Releases each matrix. */
#define RELEASE(...)                                                                               \
  test_release((scl_mat *const[]){__VA_ARGS__},                                                    \
               sizeof((scl_mat *const[]){__VA_ARGS__}) / sizeof(scl_mat *))
void test_release(scl_mat *const *x, size_t count);

/* Whether only small problems are to be run (STATCL_TEST_SMALL=1), as on a simulator. */
bool test_small(void);

/* Whether the longest tests take fewer cases (STATCL_TEST_QUICK=1), as for R's tests. */
bool test_quick(void);

/* Whether a case of a suite that takes turns is run today (STATCL_TEST_TURN): on a device one of
 * `rounds` each time that the suite has its turn; all of them on the host and without a turn. The
 * case has random numbers of its own; after a loop of such cases test_seed() does the same. */
bool test_turn(const scl_context *ctx, size_t item, size_t rounds);

/* Folder of the kernel sources: STATCL_KERNELS, else that of the source tree. */
const char *test_kernels(void);

/* BLAS and LAPACK for the host engine (blas.c). */
void test_set_blas(void);
/* LAPACK's Cholesky factor of a matrix of order n, in its lower triangle; 0 if it exists. */
int test_factor(double *a, size_t n);

#define TEST(name) void test_##name(scl_context *ctx);
#include "tests.def"
#undef TEST

#endif
