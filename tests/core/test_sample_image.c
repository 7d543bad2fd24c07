/* Images of chains: chains go on from them with the same draws; damaged ones are refused, and of
 * numbers that somebody has changed on purpose memory does not depend. */
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "sample_chains.h"
#include "test.h"

enum { DIGEST = 16, ITERATIONS = 60 };

static scl_chain_options kind_of(int kind) {
  static const double matrix[D * D] = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
  scl_chain_options o = options(40, ITERATIONS - 40);
  o.max_depth = 4;
  o.static_steps = kind == 1;
  o.dense = kind == 2;
  o.rank = kind == 3 ? 2 : 0;
  o.pools = kind == 4;
  o.save_warmup = kind % 2 == 1;
  if (o.dense) o.inverse_metric = matrix;
  return o;
}

/* To the end, or to the evaluation that is interrupted. */
static scl_status go_on(scl_chain *c, long evaluations) {
  gauss g = {.sd = {1.0, 2.0, 3.0}, .edge = INFINITY, .interrupt_at = evaluations};
  const scl_target target = {.dimension = D, .run = run_gauss, .self = &g};
  scl_chain_stop stop;
  do {
    SCL_TRY(scl_chain_run(c, &target, ITERATIONS, INFINITY, &stop));
    if (stop == SCL_CHAIN_WAITS) SCL_TRY(scl_chains_pool(&c, 1));
  } while (stop == SCL_CHAIN_WAITS);
  return SCL_OK;
}

static void sign(unsigned char *image, size_t bytes) {
  scl_digest digest = scl_digest_begin();
  scl_digest_add(&digest, image, bytes - DIGEST);
  memcpy(image + bytes - DIGEST, digest.word, DIGEST);
}

static size_t any(size_t n) {
  return (size_t)(0.5 * (test_random() + 1.0) * (double)n) % n;
}

/* A flipped bit is refused; with the right digest it may be taken, and is then harmless. */
static void check_flips(const scl_chain_options *o, const unsigned char *image, size_t bytes,
                        int flips) {
  unsigned char *const other = test_alloc(bytes);
  scl_chain *c;
  REQUIRE_OK(make(o, &c));
  for (int k = 0; k < flips; k++) {
    const size_t at = any(k % 2 == 0 && bytes > 600 ? 600 : bytes);
    memcpy(other, image, bytes);
    other[at] ^= (unsigned char)(1u << any(8));
    CHECK_STATUS(SCL_E_ARGUMENT, scl_chain_restore(c, other, bytes));
    sign(other, bytes);
    const scl_status status = scl_chain_restore(c, other, bytes);
    CHECK(status == SCL_OK || status == SCL_E_ARGUMENT);
    if (status == SCL_OK) (void)go_on(c, 2000);
  }
  for (size_t cut = 1; cut < bytes; cut += 1 + cut / 3) {
    memcpy(other, image, bytes - cut);
    if (bytes - cut > DIGEST) sign(other, bytes - cut);
    CHECK_STATUS(SCL_E_ARGUMENT, scl_chain_restore(c, other, bytes - cut));
  }
  free(other);
  scl_chain_free(c);
}

static void check_image(int kind, long evaluations, int flips) {
  scl_chain_options o = kind_of(kind);
  scl_chain *a, *b;
  REQUIRE_OK(make(&o, &a));
  REQUIRE_OK(make(&o, &b));
  const scl_status status = go_on(a, evaluations);
  CHECK(status == SCL_OK || status == SCL_E_INTERRUPT);
  const size_t bytes = scl_chain_image_size(a);
  unsigned char *const image = test_alloc(bytes);
  scl_chain_save(a, image);
  CHECK_OK(scl_chain_restore(b, image, bytes));
  CHECK_OK(go_on(a, 0));
  CHECK_OK(go_on(b, 0));
  CHECK(scl_chain_view_of(b).done == ITERATIONS && equal_draws(a, b));
  const double slope[D] = {1.0, 1.0, 1.0};
  scl_chain_stop stop;
  CHECK_OK(scl_chain_answer(b, 0.0, slope, &stop)); /* to a chain that has ended */
  CHECK(stop == SCL_CHAIN_ENDED && equal_draws(a, b));
  check_flips(&o, image, bytes, flips);
  o.adapt_delta = 0.9; /* the same size, other settings */
  scl_chain_free(b);
  REQUIRE_OK(make(&o, &b));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_chain_restore(b, image, bytes));
  free(image);
  scl_chain_free(a);
  scl_chain_free(b);
}

void test_sample_image(scl_context *ctx) {
  const long moments[] = {1, 3, 40, 300, 100000}; /* the first, in the search, ..., the end */
  if (ctx != scl_context_host()) return;
  for (int kind = 0; kind < 5; kind++) {
    for (int k = 0; k < 5; k++) check_image(kind, moments[k], test_quick() ? 12 : 400);
  }
}
