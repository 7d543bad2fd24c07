#include <stdatomic.h>
#include <stddef.h>

#include "alloc.h"

static atomic_long left; /* threads of the host engine allocate too */
static atomic_bool failed;

void alloc_fail(long n) {
  failed = false;
  left = n;
}

bool alloc_failed(void) {
  return failed;
}

#ifdef SCL_TEST_ALLOC

static bool now(void) {
  if (left == 0 || atomic_fetch_sub(&left, 1) != 1) return false;
  failed = true;
  return true;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t each);
void *__real_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes) {
  return now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t each) {
  return now() ? NULL : __real_calloc(count, each);
}

void *__wrap_realloc(void *memory, size_t bytes) {
  return now() ? NULL : __real_realloc(memory, bytes);
}

#endif
