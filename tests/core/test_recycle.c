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
static scl_recycled *take(size_t bytes) {
  scl_recycled *block = scl_recycle_take(bytes);
  if (block == NULL) {
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    exit(1);
  }
  return block;
}

static void check_reuse(void) {
  scl_recycled *a = take(5 * MIB + 1);
  CHECK(a->bytes == 5 * MIB + 1 && a->size == 6 * MIB);
  CHECK((uintptr_t)a->memory % (2 * MIB) == 0);
  CHECK(scl_recycle_unused() == 0);
  memset(a->memory, 7, a->bytes);
  void *memory = a->memory;
  scl_recycle_give(a);
  CHECK(scl_recycle_unused() == 6 * MIB);
  CHECK(scl_recycle_fits(6 * MIB) && scl_recycle_fits(5 * MIB));
  CHECK(!scl_recycle_fits(6 * MIB + 1) && !scl_recycle_fits(4 * MIB));
  scl_recycled *b = take(12 * MIB); /* does not fit */
  CHECK(b->memory != memory);
  scl_recycled *c = take(2 * MIB); /* would waste most of it */
  CHECK(c->memory != memory && scl_recycle_unused() == 6 * MIB);
  a = take(6 * MIB);
  CHECK(a->memory == memory && a->bytes == 6 * MIB && scl_recycle_unused() == 0);
  memset(a->memory, 9, a->bytes);
  scl_recycle_give(c);
  scl_recycle_give(a);
  scl_recycle_give(b);
  CHECK(scl_recycle_unused() == 20 * MIB);
  b = take(10 * MIB); /* a sixth of it lies idle */
  CHECK(b->size == 12 * MIB && b->bytes == 10 * MIB);
  scl_recycle_give(b);
  scl_recycle_clear();
  CHECK(scl_recycle_unused() == 0);
}

/* The block returned first is freed when there are too many. */
static void check_bounds(void) {
  scl_recycled *block[SCL_RECYCLE_BLOCKS + 1];
  for (int i = 0; i <= SCL_RECYCLE_BLOCKS; i++) block[i] = take((i > 0 ? 4 : 2) * MIB);
  for (int i = 0; i <= SCL_RECYCLE_BLOCKS; i++) scl_recycle_give(block[i]);
  size_t all = (size_t)4 * SCL_RECYCLE_BLOCKS * MIB;
  if (scl_memory_limit() / 8 >= all) CHECK(scl_recycle_unused() == all);
  scl_recycle_clear();
  CHECK(scl_recycle_take(0) == NULL);
  CHECK(scl_recycle_take(SIZE_MAX - 10) == NULL);
  CHECK(scl_recycle_take(SIZE_MAX / 4) == NULL);
  /* more than an eighth of the memory is not kept: mapped, it takes none */
  scl_recycled *large = scl_recycle_take(scl_memory_limit() / 8 + 4 * MIB);
  if (large != NULL) scl_recycle_give(large);
  CHECK(scl_recycle_unused() == 0);
}

void test_recycle(scl_context *ctx) {
  if (!scl_context_is_host(ctx)) return;
  scl_recycled *probe = scl_recycle_take(1);
  if (probe == NULL) {
    SKIP("no recycled memory on this system");
    return;
  }
  scl_recycle_give(probe);
  bool kept = scl_recycle_unused() > 0;
  scl_recycle_clear();
  if (!kept) {
    SKIP("this system does not take memory back when it is short");
    return;
  }
  check_reuse();
  check_bounds();
}
