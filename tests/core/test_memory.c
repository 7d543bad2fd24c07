/* Memory of the host's matrices: what is released is reused, within limits, and freed on request.
 */
#include <stdint.h>
#include <string.h>

#include "test.h"

#include "engine/host/memory.h"

enum { MIB = 1 << 20 };

static void check_sizes(void) {
  /* Around each class: all bytes can be written (a sanitizer watches), at a cache line. */
  for (size_t base = 1024; base <= 16 * MIB; base *= 2) {
    for (size_t quarter = 4; quarter < 8; quarter++) {
      for (int off = -1; off <= 1; off++) {
        const size_t bytes = base / 4 * quarter + (size_t)off;
        double *at = scl_host_memory_get(bytes);
        CHECK((uintptr_t)at % 64 == 0);
        memset(at, 1, bytes);
        scl_host_memory_return(at, bytes);
      }
    }
  }
  CHECK(scl_host_memory_get(SIZE_MAX - 10) == NULL);
  scl_host_memory_return(NULL, 5000);
}

static void check_reuse(void) {
  scl_host_memory_limit(4 * MIB);
  CHECK(scl_host_memory_kept() == 0);
  double *a = scl_host_memory_get(80000), *b = scl_host_memory_get(80000);
  memset(a, 7, 80000);
  scl_host_memory_return(a, 80000);
  scl_host_memory_return(b, 80000);
  const size_t kept = scl_host_memory_kept();
  CHECK(kept >= 160000 && kept <= 200000);
  CHECK(scl_host_memory_get(79999) == b); /* the last one first */
  double *other = scl_host_memory_get(160000);
  CHECK(other != a);
  CHECK(scl_host_memory_get(80001) == a && scl_host_memory_kept() == 0);
  scl_host_memory_return(other, 160000);
  scl_host_memory_return(a, 80001);
  scl_host_memory_return(b, 80000);
  CHECK(scl_host_memory_kept() > 0);
  scl_host_memory_clear();
  CHECK(scl_host_memory_kept() == 0);
}

static void check_limits(void) {
  double *many[8];
  scl_host_memory_limit(3 * MIB);
  for (int k = 0; k < 8; k++) many[k] = scl_host_memory_get(MIB);
  for (int k = 0; k < 8; k++) scl_host_memory_return(many[k], MIB);
  CHECK(scl_host_memory_kept() == 3 * MIB);
  double *large = scl_host_memory_get(4 * MIB), *small = scl_host_memory_get(100);
  scl_host_memory_return(large, 4 * MIB);
  scl_host_memory_return(small, 100);
  CHECK(scl_host_memory_kept() == 3 * MIB);
  scl_host_memory_limit(0);
  CHECK(scl_host_memory_kept() == 0);
}

void test_memory(scl_context *ctx) {
  (void)ctx;
  check_sizes();
  check_reuse();
  check_limits();
}
