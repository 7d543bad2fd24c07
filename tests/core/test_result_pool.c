/* Reused host memory: returned blocks are reused, within limits, and freed on request. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "base/result_pool.h"
#include "base/threads.h"

enum { MIB = 1 << 20 };

/* The machine that runs this has some memory left. */
static scl_result_block *get_block(size_t bytes) {
  scl_result_block *block = scl_result_pool_get(bytes);
  if (block == NULL) {
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    exit(1);
  }
  return block;
}

static void check_reuse(void) {
  scl_result_block *a = get_block(5 * MIB + 1);
  CHECK(a->bytes == 5 * MIB + 1 && a->size == 6 * MIB);
  CHECK((uintptr_t)a->memory % (2 * MIB) == 0);
  CHECK(scl_result_pool_unused() == 0);
  memset(a->memory, 7, a->bytes);
  void *memory = a->memory;
  scl_result_pool_return(a);
  CHECK(scl_result_pool_unused() == 6 * MIB);
  CHECK(scl_result_pool_fits(6 * MIB) && scl_result_pool_fits(5 * MIB));
  CHECK(!scl_result_pool_fits(6 * MIB + 1) && !scl_result_pool_fits(4 * MIB));
  scl_result_block *b = get_block(12 * MIB); /* does not fit */
  CHECK(b->memory != memory);
  scl_result_block *c = get_block(2 * MIB); /* would waste most of it */
  CHECK(c->memory != memory && scl_result_pool_unused() == 6 * MIB);
  a = get_block(6 * MIB);
  CHECK(a->memory == memory && a->bytes == 6 * MIB && scl_result_pool_unused() == 0);
  memset(a->memory, 9, a->bytes);
  scl_result_pool_return(c);
  scl_result_pool_return(a);
  scl_result_pool_return(b);
  CHECK(scl_result_pool_unused() == 20 * MIB);
  b = get_block(10 * MIB); /* a sixth of it lies idle */
  CHECK(b->size == 12 * MIB && b->bytes == 10 * MIB);
  scl_result_pool_return(b);
  scl_result_pool_clear();
  CHECK(scl_result_pool_unused() == 0);
}

/* The block returned first is freed when there are too many. */
static void check_bounds(void) {
  scl_result_block *block[SCL_RESULT_POOL_BLOCKS + 1];
  for (int i = 0; i <= SCL_RESULT_POOL_BLOCKS; i++) block[i] = get_block((i > 0 ? 4 : 2) * MIB);
  for (int i = 0; i <= SCL_RESULT_POOL_BLOCKS; i++) scl_result_pool_return(block[i]);
  size_t all = (size_t)4 * SCL_RESULT_POOL_BLOCKS * MIB;
  if (scl_memory_limit() / 8 >= all) CHECK(scl_result_pool_unused() == all);
  scl_result_pool_clear();
  CHECK(scl_result_pool_get(0) == NULL);
  CHECK(scl_result_pool_get(SIZE_MAX - 10) == NULL);
  CHECK(scl_result_pool_get(SIZE_MAX / 4) == NULL);
  /* more than an eighth of the memory is not kept: mapped, it takes none */
  scl_result_block *large = scl_result_pool_get(scl_memory_limit() / 8 + 4 * MIB);
  if (large != NULL) scl_result_pool_return(large);
  CHECK(scl_result_pool_unused() == 0);
}

void test_result_pool(scl_context *ctx) {
  if (!scl_context_is_host(ctx)) return;
  scl_result_block *probe = scl_result_pool_get(1);
  if (probe == NULL) {
    SKIP("no pool of results on this system");
    return;
  }
  scl_result_pool_return(probe);
  bool kept = scl_result_pool_unused() > 0;
  scl_result_pool_clear();
  if (!kept) {
    SKIP("this system does not take memory back when it is short");
    return;
  }
  check_reuse();
  check_bounds();
}
