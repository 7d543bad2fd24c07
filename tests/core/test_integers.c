/* Products by 8-bit integers (engine/cl/linalg/integers.c) against sums in long double: every
 * element within a bound by the norms of its row and column, for plain arithmetic and, where there
 * are any, matrix instructions. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/device.h"
#include "base/threads.h"
#include "driver.h"
#include "linalg.h"
#include "engine/cl/linalg/linalg.h"
#include "engine/cl/runtime/private.h"
#include "kernels/include/integers.h"

typedef struct {
  size_t m, n, k;
  double alpha, beta;
  bool trans_a, trans_b;
  scl_region region;
  int spread; /* rows and columns are multiplied by powers of two up to this one, and its inverse */
  scl_view view_a, view_b;
} integers_case;

static double *spread_rows(const integers_case *t, size_t rows, bool trans, size_t seed,
                           scl_view view) {
  double *x = test_alloc(rows * t->k * sizeof *x);
  for (size_t k = 0; k < t->k; k++) {
    for (size_t i = 0; i < rows; i++) {
      const int power =
          t->spread == 0 ? 0 : (int)((i * 37 + seed) % (2 * (size_t)t->spread + 1)) - t->spread;
      const bool zero = (scl_view_is_lower(view) && i < k) || (scl_view_is_upper(view) && i > k);
      x[trans ? k + i * t->k : i + k * rows] = zero ? 0.0 : ldexp(test_random(), power);
    }
  }
  return x;
}

typedef struct {
  long double sum, a, b; /* and both norms */
} element;

static element expected(const integers_case *t, const double *a, const double *b, size_t i,
                        size_t j) {
  element e = {0, 0, 0};
  for (size_t k = 0; k < t->k; k++) {
    const long double x = t->trans_a ? a[k + i * t->k] : a[i + k * t->m];
    const long double y = t->trans_b ? b[j + k * t->n] : b[k + j * t->k];
    e.sum += x * y;
    e.a += x * x;
    e.b += y * y;
  }
  e.a = sqrtl(e.a);
  e.b = sqrtl(e.b);
  return e;
}

/* Half a unit for each element of row and column, of which the other's sum of magnitudes is at most
 * sqrt(k) norms; scaled norms are at least half of the limit. Then the roundings of the result. */
static long double bound_of(const integers_case *t, int moduli, element e, double old) {
  static const int modulus[] = {INTEGERS_MODULI_TABLE};
  long double bits = 0, size = fabsl(t->alpha) * e.a * e.b;
  for (int i = 0; i < moduli; i++) bits += log2l(modulus[i]);
  return 2.1L * sqrtl(t->k) * powl(2, 0.5L - bits / 2) * size +
         4 * TEST_EPS * (fabsl(t->alpha * e.sum) + (t->beta != 0 ? fabsl(t->beta * old) : 0)) +
         t->k * 0x1p-63L * size + 0x1p-1074L;
}

static size_t count_wrong(const integers_case *t, int moduli, const double *a, const double *b,
                          const double *c, const double *got) {
  size_t wrong = 0;
  for (size_t j = 0; j < t->n; j++) {
    for (size_t i = 0; i < t->m; i++) {
      const size_t at = i + j * t->m;
      if (t->region == SCL_LOWER_HALF && i < j) {
        wrong += c[at] != got[at];
        continue;
      }
      const bool mirror = t->region == SCL_MIRRORED && i < j;
      const element e = expected(t, a, b, mirror ? j : i, mirror ? i : j);
      const double old = c[mirror ? j + i * t->m : at];
      const long double want = t->alpha * e.sum + (t->beta != 0 ? (long double)t->beta * old : 0);
      if (fabsl(e.sum) > 0x1.fp1023L) continue; /* beyond double precision */
      wrong += !(fabsl(got[at] - want) <= bound_of(t, moduli, e, old));
    }
  }
  return wrong;
}

static scl_cl_product product_of(const integers_case *t, scl_block a, scl_block b, scl_block c) {
  return (scl_cl_product){.alpha = t->alpha,
                          .beta = t->beta,
                          .trans_a = t->trans_a ? SCL_TRANS : SCL_NO_TRANS,
                          .trans_b = t->trans_b ? SCL_TRANS : SCL_NO_TRANS,
                          .view_a = t->trans_a ? scl_view_transposed(t->view_a) : t->view_a,
                          .view_b = t->trans_b ? scl_view_transposed(t->view_b) : t->view_b,
                          .region = t->region,
                          .a = a,
                          .b = b,
                          .c = c,
                          .batch = 1};
}

static bool multiply(scl_context *ctx, const scl_cl_product *p, scl_cl_integers_form form) {
  scl_cl_op op;
  bool done = false;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, p->a.buffer);
  scl_cl_op_reads(&op, p->b.buffer);
  scl_cl_op_writes(&op, p->c.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK) status = scl_cl_integers_steps_in(&op, p, form, &done);
  CHECK_OK(scl_cl_op_end(&op, status));
  return done;
}

static const char *const kind_name[] = {"plain", "dot", "instructions", "warpgroups"};

static void check_case(scl_context *ctx, const integers_case *t, scl_cl_integers_form form) {
  double *a = spread_rows(t, t->m, t->trans_a, 5, t->view_a);
  double *b = spread_rows(t, t->n, !t->trans_b, 11, scl_view_transposed(t->view_b));
  double *c = test_alloc(t->m * t->n * sizeof *c), *got = test_alloc(t->m * t->n * sizeof *got);
  test_fill(c, t->m * t->n);
  test_framed da = test_put(ctx, t->trans_a ? t->k : t->m, t->trans_a ? t->m : t->k, a);
  test_framed db = test_put(ctx, t->trans_b ? t->n : t->k, t->trans_b ? t->k : t->n, b);
  test_framed dc = test_put(ctx, t->m, t->n, c);
  const scl_cl_product p = product_of(t, da.block, db.block, dc.block);
  CHECK(multiply(ctx, &p, form));
  test_get(dc, got);
  test_drop(da), test_drop(db);
  const size_t wrong = count_wrong(t, form.moduli, a, b, c, got);
  CHECK(wrong == 0);
  if (wrong > 0)
    printf("       %zu x %zu x %zu, op %d %d, region %d, %d moduli, %s: %zu\n", t->m, t->n, t->k,
           t->trans_a, t->trans_b, (int)t->region, form.moduli, kind_name[form.kind], wrong);
  FREE(a, b, c, got);
}

static void check_shapes(scl_context *ctx, scl_cl_integers_form form) {
  static const size_t shapes[][3] = {{1, 1, 1},      {2, 3, 2},      {3, 17, 63},  {17, 2, 65},
                                     {63, 65, 127},  {65, 63, 3},    {129, 1, 17}, {1, 127, 129},
                                     {255, 129, 33}, {257, 130, 64}, {5, 7, 8230}, {16390, 3, 9},
                                     {4, 8200, 6}}; /* of several blocks */
  for (size_t s = 0; s < (test_small() ? 3 : LENGTH(shapes)); s++) {
    if (form.kind >= SCL_CL_INTEGERS_MMA && !test_turn(ctx, s, 2)) continue;
    if (((scl_cl_context *)ctx)->emulated_mma && s >= 10) break; /* minutes */
    integers_case t = {.m = shapes[s][0], .n = shapes[s][1], .k = shapes[s][2], .alpha = 1};
    form.moduli = INTEGERS_FEWEST + (int)s % 3;
    t.trans_a = s & 1;
    t.trans_b = s & 2;
    check_case(ctx, &t, form);
    t.trans_a = !t.trans_a;
    t.alpha = -0.7;
    t.beta = 1.3;
    t.spread = s % 3 == 2 ? 990 : 20;
    check_case(ctx, &t, form);
  }
}

static void check_regions(scl_context *ctx, scl_cl_integers_form form) {
  static const size_t shapes[][3] = {{5, 5, 9}, {300, 300, 40}, {290, 130, 33}};
  for (size_t s = 0; s < (test_small() ? 1 : LENGTH(shapes)); s++) {
    if (form.kind >= SCL_CL_INTEGERS_MMA && !test_turn(ctx, s, 3)) continue;
    integers_case t = {.m = shapes[s][0], .n = shapes[s][1], .k = shapes[s][2], .alpha = 1};
    t.region = SCL_LOWER_HALF;
    t.beta = -1;
    check_case(ctx, &t, form);
    if (t.m != t.n) continue;
    t.region = SCL_MIRRORED;
    check_case(ctx, &t, form);
    t.k = t.m;
    t.region = SCL_ALL;
    for (int v = 0; v < 4; v++) {
      t.view_a = v & 1 ? SCL_LOWER : SCL_UPPER;
      t.view_b = v & 2 ? SCL_LOWER : SCL_UPPER;
      t.trans_b = v == 3;
      check_case(ctx, &t, form);
    }
  }
}

/* Through the table of the engine, as all operations take it. With an element that is not finite
 * the product is the native one. */
static void check_operation(scl_context *ctx, double special) {
  enum { N = 40 };
  double *a = test_alloc(N * N * sizeof *a), *c[2];
  test_fill(a, N * N);
  a[N + 3] = special;
  for (int integers = 0; integers < 2; integers++) {
    c[integers] = test_alloc(N * N * sizeof **c);
    test_framed da = test_put(ctx, N, N, a), dc = test_put(ctx, N, N, NULL);
    scl_device_emulate(integers);
    CHECK_OK(ctx->engine->gemm(ctx, 1, SCL_NO_TRANS, da.block, SCL_GENERAL, SCL_TRANS, da.block,
                               SCL_GENERAL, 0, dc.block, SCL_ALL));
    scl_device_emulate(-1);
    test_get(dc, c[integers]);
    test_drop(da);
  }
  size_t same = 0;
  for (size_t e = 0; e < N * N; e++) {
    same += memcmp(&c[0][e], &c[1][e], sizeof **c) == 0;
    if (isfinite(special)) CHECK_NEAR(c[1][e], c[0][e], 64 * TEST_EPS);
  }
  CHECK(isfinite(special) ? same < N * N : same == N * N);
  FREE(a, c[0], c[1]);
}

/* op(A) = A D, op(B) = D^-1 A' with powers of two up to 2^power: what is large in rows of the one
 * is small in columns of the other, so that whole numbers would lose it. */
static void check_opposite(scl_context *ctx, int power) {
  enum { N = 60 };
  double *x[2], *c = test_alloc(N * N * sizeof *c), *got = test_alloc(N * N * sizeof *got);
  for (int b = 0; b < 2; b++) {
    x[b] = test_alloc(N * N * sizeof *x[b]);
    for (size_t e = 0; e < N * N; e++)
      x[b][e] =
          ldexp(0.1 + fabs(test_random()), (b ? 1 : -1) * ((int)(e / N) * 2 * power / N - power));
  }
  for (int integers = 0; integers < 2; integers++) {
    test_framed da = test_put(ctx, N, N, x[0]), db = test_put(ctx, N, N, x[1]);
    test_framed dc = test_put(ctx, N, N, NULL);
    scl_device_emulate(integers);
    CHECK_OK(ctx->engine->gemm(ctx, 1, SCL_NO_TRANS, da.block, SCL_GENERAL, SCL_TRANS, db.block,
                               SCL_GENERAL, 0, dc.block, SCL_ALL));
    scl_device_emulate(-1);
    test_get(dc, integers ? got : c);
    test_drop(da), test_drop(db);
  }
  size_t same = 0, far = 0;
  for (size_t e = 0; e < N * N; e++) {
    same += c[e] == got[e];
    far += !(fabs(c[e] - got[e]) <= (N + 4) * TEST_EPS * c[e]); /* all terms are positive */
  }
  CHECK(far == 0);
  CHECK((same == N * N) == (power > 20));
  FREE(x[0], x[1], c, got);
}

/* Rows and columns of two kinds, the last ones large in the second half of the terms, the others in
 * the first. On average all agree with some of the other operand, so these products are taken. The
 * elements of a row of one kind and a column of the other are tiny: their error is as small as the
 * norms say, which is all that ?cl_use promises, and not as their size. */
static void check_pairs(scl_context *ctx, size_t others) {
  integers_case t = {.m = 60, .n = 60, .k = 64, .alpha = 1};
  const scl_cl_integers_form form = {.last = SCL_CL_INTEGERS_JOIN};
  double *x[2], *c = test_alloc(t.m * t.n * sizeof *c);
  for (int b = 0; b < 2; b++) {
    x[b] = test_alloc(t.m * t.k * sizeof *x[b]);
    for (size_t e = 0; e < t.m * t.k; e++) {
      const size_t i = b ? e / t.k : e % t.m, k = b ? e % t.k : e / t.m;
      const bool second = k >= t.k / 2, other = i >= t.m - others;
      x[b][e] = ldexp(0.1 + fabs(test_random()), second == other ? 0 : -70);
    }
  }
  test_framed da = test_put(ctx, t.m, t.k, x[0]), db = test_put(ctx, t.k, t.n, x[1]);
  test_framed dc = test_put(ctx, t.m, t.n, NULL);
  const scl_cl_product p = product_of(&t, da.block, db.block, dc.block);
  CHECK(multiply(ctx, &p, form));
  test_get(dc, c);
  CHECK(count_wrong(&t, INTEGERS_FEWEST, x[0], x[1], c, c) == 0);
  test_drop(da), test_drop(db);
  FREE(x[0], x[1], c);
}

/* ---- OpenCL's function for products of four bytes -------------------------------------------- */
#define CALL "dot_4x8packed_ss_int(x, y)"
#define SIGNED(x, byte) "((int)((" #x ") << 8 * (3 - " #byte ")) >> 24)"
#define UNSIGNED(x, byte) "(int)((" #x ") >> 8 * " #byte " & 255)"
#define PART(TYPE, byte) TYPE(x, byte) " * " TYPE(y, byte)
#define SUM(TYPE) "(" PART(TYPE, 0) " + " PART(TYPE, 1) " + " PART(TYPE, 2) " + " PART(TYPE, 3) ")"

/* What stands for the call, as few drivers have it: what OpenCL says of it; or something else, and
 * then the reason against the program has these words. */
static const struct {
  const char *to, *refusal;
} readings[] = {{SUM(SIGNED), ""},
                {SUM(UNSIGNED), "wrong result"},
                {"clamp(" SUM(SIGNED) ", -32768, 32767)", "wrong result"}, /* sums of 16 bits */
                {"(" SUM(SIGNED) " & ~1)", "wrong result"},
                {"dot_4x8packed_ss_int(x)", "could not be compiled"}}; /* listed, not there */

/* Another context of the device, whose driver lists the extension. */
static void check_reading(size_t index, const char *to, const char *refusal) {
  scl_context *ctx = NULL;
  bool usable, refused = *refusal != '\0';
  driver_rewrite(CALL, to);
  REQUIRE_OK(scl_device_open(index, &ctx));
  scl_cl_context *cl = (scl_cl_context *)ctx;
  cl->info.integer_dot = true;
  CHECK_OK(scl_cl_try_program(cl, SCL_CL_PROGRAM_integers_dot, &usable));
  CHECK(usable == !refused && driver_rewritten() > 0);
  const char *reason = cl->trial[SCL_CL_PROGRAM_integers_dot].reason;
  CHECK(!refused || (reason != NULL && strstr(reason, refusal) != NULL));
  if (usable)
    check_shapes(ctx,
                 (scl_cl_integers_form){.kind = SCL_CL_INTEGERS_DOT, .last = SCL_CL_INTEGERS_JOIN});
  check_operation(ctx, 0.5);
  CHECK(scl_context_memory(ctx).live == 0);
  scl_context_release(ctx);
}

static void check_readings(const scl_context *ctx) {
  const size_t index = driver_index(ctx);
  driver_install();
  const driver_counts before = driver_counted();
  for (size_t k = 0; k < LENGTH(readings); k++)
    check_reading(index, readings[k].to, readings[k].refusal);
  driver_rewrite(NULL, NULL);
  CHECK(driver_is_clean(before));
  driver_remove();
}

/* The tables of integers.h, by remainders of their numbers: P has each modulus as a factor, the
 * weights are P / modulus. */
static void check_tables(void) {
  static const int modulus[] = {INTEGERS_MODULI_TABLE};
  static const int inverse[][INTEGERS_MOST] = {INTEGERS_INVERSE_TABLE};
  static const uint32_t weight[][16][INTEGERS_GROUPS] = {INTEGERS_WEIGHT_TABLE};
  static const int product[][4] = {INTEGERS_PRODUCT_TABLE};
  static const float quotient[] = {INTEGERS_QUOTIENT_TABLE};
  for (int s = INTEGERS_FEWEST; s <= INTEGERS_MOST; s++) {
    const int *of_p = product[s - INTEGERS_FEWEST];
    for (int i = 0; i < INTEGERS_MOST; i++) {
      int64_t rest = 0, digit[16];
      for (int d = 0; d < 16; d++) {
        digit[d] = (int8_t)(weight[s - INTEGERS_FEWEST][d][i / 4] >> i % 4 * 8);
        rest += i < s ? digit[d] * modulus[i] : digit[d];
        if (d % 4 == 0 && i < s) rest -= of_p[d / 4];
        CHECK(d == 15 ? rest == 0 : rest % 256 == 0);
        rest /= 256;
      }
      for (int j = 0; j < s && i < s; j++) {
        int64_t residue = 0;
        for (int d = 15; d >= 0; d--) residue = (residue * 256 + digit[d]) % modulus[j];
        residue *= inverse[s - INTEGERS_FEWEST][i];
        CHECK(i == j ? (residue - 1) % modulus[j] == 0 : residue % modulus[j] == 0);
      }
    }
    const double p = of_p[3] + 0x1p-32 * (of_p[2] + 0x1p-32 * of_p[1]); /* times 2^96 */
    CHECK_NEAR(quotient[s - INTEGERS_FEWEST] * p, 0x1p-16, 0x1p-39);
  }
}

/* ---- kinds and blocks ------------------------------------------------------------------------ */

/* Residues are whole numbers, so that a product has the same bits by every kind. With `small`
 * blocks have 256 rows, columns and terms, the last ones fewer, of which views do not hold. */
static void check_agreement(scl_context *ctx, integers_case t, bool small) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  const size_t count = t.m * t.n;
  const uint64_t memory = cl->info.memory;
  double *a = spread_rows(&t, t.m, t.trans_a, 5, t.view_a), *first = NULL;
  double *b = spread_rows(&t, t.n, !t.trans_b, 11, scl_view_transposed(t.view_b));
  double *c = test_alloc(count * sizeof *c), *got = test_alloc(count * sizeof *got);
  test_fill(c, count);
  for (int kind = 0; kind < SCL_CL_INTEGERS_KINDS; kind++) {
    const scl_cl_integers_form form = {.moduli = INTEGERS_FEWEST,
                                       .kind = (scl_cl_integers_kind)kind,
                                       .last = SCL_CL_INTEGERS_JOIN};
    bool usable = kind == SCL_CL_INTEGERS_PLAIN;
    if (!usable) CHECK_OK(scl_cl_try_program(cl, scl_cl_integers_program(form.kind), &usable));
    if (!usable) continue;
    test_framed da = test_put(ctx, t.trans_a ? t.k : t.m, t.trans_a ? t.m : t.k, a);
    test_framed db = test_put(ctx, t.trans_b ? t.n : t.k, t.trans_b ? t.k : t.n, b);
    test_framed dc = test_put(ctx, t.m, t.n, c);
    const scl_cl_product p = product_of(&t, da.block, db.block, dc.block);
    if (small) cl->info.memory = 1;
    CHECK(multiply(ctx, &p, form));
    cl->info.memory = memory;
    test_get(dc, got);
    test_drop(da), test_drop(db);
    if (first == NULL) {
      first = test_alloc(count * sizeof *first);
      memcpy(first, got, count * sizeof *got);
      CHECK(count_wrong(&t, form.moduli, a, b, c, got) == 0);
    }
    size_t differ = 0;
    for (size_t e = 0; e < count; e++) differ += memcmp(&first[e], &got[e], sizeof *got) != 0;
    CHECK(differ == 0);
    if (differ > 0)
      printf("       %zu x %zu x %zu, op %d %d, views %d %d, region %d, blocks %d, %s: %zu\n", t.m,
             t.n, t.k, t.trans_a, t.trans_b, (int)t.view_a, (int)t.view_b, (int)t.region, small,
             kind_name[kind], differ);
  }
  FREE(a, b, c, got, first);
}

static void check_agreements(scl_context *ctx) {
  static const integers_case cases[] = {
      {.m = 257, .n = 129, .k = 33, .alpha = -0.7, .beta = 1.3, .trans_a = true, .spread = 20},
      {.m = 290, .n = 290, .k = 300, .alpha = 2, .beta = -1, .region = SCL_MIRRORED},
      {.m = 300, .n = 300, .k = 300, .alpha = 1, .view_a = SCL_LOWER, .view_b = SCL_UPPER},
      {.m = 300, .n = 300, .k = 300, .alpha = 1, .view_a = SCL_UPPER, .view_b = SCL_LOWER}};
  for (size_t k = 0; k < (test_small() ? 1 : LENGTH(cases)); k++) {
    if (k < 2) check_agreement(ctx, cases[k], false);
    check_agreement(ctx, cases[k], true);
  }
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Where the instruction of four warps is refused, that of a warp is used. */
static void check_refused(size_t index, const char *fault) {
  scl_context *ctx = NULL;
  char *before = scl_env_copy("STATCL_TRIAL_FAULT");
  setenv("STATCL_TRIAL_FAULT", fault, 1);
  REQUIRE_OK(scl_device_open(index, &ctx));
  scl_cl_context *cl = (scl_cl_context *)ctx;
  check_operation(ctx, 0.5);
  CHECK(cl->trial[SCL_CL_PROGRAM_integers_wgmma].state == SCL_CL_REFUSED);
  CHECK(cl->trial[SCL_CL_PROGRAM_integers_mma].state == SCL_CL_PASSED);
  CHECK(scl_context_memory(ctx).live == 0);
  scl_context_release(ctx);
  scl_env_restore("STATCL_TRIAL_FAULT", before);
}

void test_integers(scl_context *ctx) {
  check_tables();
  if (scl_context_is_host(ctx)) return;
  /* Emulated instructions take long: only what runs on them is tested by them. */
  const bool emulated = ((scl_cl_context *)ctx)->emulated_mma;
  if (!emulated) {
    check_operation(ctx, 0.5);
    check_operation(ctx, NAN);
    check_operation(ctx, -INFINITY);
    check_opposite(ctx, 0);
    check_opposite(ctx, 6);
    check_opposite(ctx, 40);
    check_opposite(ctx, 500);
    check_pairs(ctx, 1);
    check_pairs(ctx, 30);
    check_readings(ctx);
  }
  if (!emulated && test_turn(ctx, 0, 2)) {
    scl_device_emulate(1);
    test_triangular(ctx);
    scl_device_emulate(-1);
  }
  for (int kind = emulated; kind < SCL_CL_INTEGERS_KINDS; kind++) {
    const scl_cl_integers_form form = {.moduli = INTEGERS_FEWEST,
                                       .kind = (scl_cl_integers_kind)kind,
                                       .last = SCL_CL_INTEGERS_JOIN};
    scl_cl_context *cl = (scl_cl_context *)ctx;
    const bool must = (kind == SCL_CL_INTEGERS_MMA && scl_cl_may_try_bytes(cl)) ||
                      (kind == SCL_CL_INTEGERS_WGMMA && scl_cl_may_try_warpgroups(cl));
    bool usable = kind == SCL_CL_INTEGERS_PLAIN;
    if (!usable) CHECK_OK(scl_cl_try_program(cl, scl_cl_integers_program(form.kind), &usable));
    CHECK(usable || !must);
    if (!usable && !must) continue;
    check_shapes(ctx, form);
    check_regions(ctx, form);
  }
  check_agreements(ctx);
  if (!test_small() && scl_cl_may_try_warpgroups((scl_cl_context *)ctx)) {
    check_refused(driver_index(ctx), "build:integers_wgmma");
    check_refused(driver_index(ctx), "result:integers_wgmma");
  }
}
