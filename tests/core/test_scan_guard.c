/* Recursions with a guard: a step where it is 0 is not run, and values and gradients are those of
 * the recursion without a guard. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/program.h"
#include "program/scan.h"
#include "program_reference.h"
#include "test.h"

/* A step on one number s, with x and the guard g for each step, c shared:
 *   s' = g ? tanh(s) + c sqrt(x) : s,  out = g s sqrt(x)
 * In idle steps x may be negative: then only a step that is not run has numbers. */
typedef struct {
  size_t steps, sequences;
  bool reverse;
  bool same;     /* all sequences have the same idle steps */
  bool computed; /* the guard is x > 1/2 instead of an input */
  bool negative; /* x of idle steps */
} guard_case;

static bool is_idle(const guard_case *w, size_t t, size_t b) {
  return (t + (w->same ? 0 : b)) % 5 < 2 || (t >= 20 && t < 60);
}

/* The parameters: s of each sequence, x of each step and sequence, c. */
static size_t x_at(const guard_case *w, size_t t, size_t b) {
  return w->sequences + t + w->steps * b;
}

static size_t parameters_of(const guard_case *w) {
  return w->sequences * (1 + w->steps) + 1;
}

static double guard_value(const guard_case *w, const double *p) {
  const double c = p[parameters_of(w) - 1];
  double total = 0.0;
  for (size_t b = 0; b < w->sequences; b++) {
    double s = p[b];
    for (size_t k = 0; k < w->steps; k++) {
      const size_t t = w->reverse ? w->steps - 1 - k : k;
      if (is_idle(w, t, b)) continue;
      const double root = sqrt(p[x_at(w, t, b)]);
      total += s * root * cos((double)t);
      s = tanh(s) + c * root;
    }
    total += s;
  }
  return total;
}

static int parameter(scl_tape *t, size_t from, size_t length) {
  return scl_tape_add(t, SCL_VALUE_PARAMETER, 0, 0, NULL, AT(from, length), 0.0);
}

static scl_scan_body *make_body(const guard_case *w, bool guarded) {
  static const scl_scan_port port[] = {{1, false}, {1, false}, {1, false}, {1, true}, {1, false}};
  scl_scan_body *body = calloc(1, sizeof *body);
  if (body == NULL) return NULL;
  memcpy(body->shape.port, port, sizeof port);
  memcpy(body->shape.ports, (const int[]){1, 2, 1, 0, 1}, sizeof body->shape.ports);
  body->of = -1;
  scl_tape *t = &body->tape;
  scl_tape_begin(t);
  const int s = parameter(t, 0, 1), x = parameter(t, 1, 1), c = parameter(t, 3, 1);
  const int g =
      w->computed ? scl_tape_binary(t, SCL_OP_GT, x, scl_tape_number(t, 0.5)) : parameter(t, 2, 1);
  const int root = scl_tape_unary(t, SCL_OP_SQRT, x);
  const int moved = scl_tape_binary(t, SCL_OP_ADD, scl_tape_unary(t, SCL_OP_TANH, s),
                                    scl_tape_binary(t, SCL_OP_MUL, c, root));
  const int out = scl_tape_binary(t, SCL_OP_MUL, g, scl_tape_binary(t, SCL_OP_MUL, s, root));
  body->result = scl_tape_concat(t, 2, (const int[]){scl_tape_ifelse(t, g, moved, s), out});
  body->guard = guarded ? g + 1 : 0;
  return body;
}

static scl_status make_program(scl_context *ctx, const guard_case *w, bool guarded,
                               scl_program **out) {
  const size_t b = w->sequences, n = b * w->steps;
  double *g = test_alloc(n * sizeof *g), *weights = test_alloc((b + n) * sizeof *weights);
  for (size_t i = 0; i < b; i++) weights[i] = 1.0;
  for (size_t i = 0; i < n; i++) {
    g[i] = !is_idle(w, i % w->steps, i / w->steps);
    weights[b + i] = cos((double)(i % w->steps));
  }
  scl_tape t;
  scl_tape_begin(&t);
  const int body = scl_tape_add_body(&t, make_body(w, guarded));
  const int given[] = {parameter(&t, 0, b), parameter(&t, b, n),
                       scl_tape_data_value(&t, scl_tape_add_data(&t, g, n)),
                       parameter(&t, b + n, 1)};
  const int scan = scl_tape_add(&t, SCL_VALUE_SCAN, 0, 4, given,
                                AT((size_t)body, w->steps, b, w->reverse, 0), 0.0);
  const int data = scl_tape_data_value(&t, scl_tape_add_data(&t, weights, b + n));
  const int total = scl_tape_reduce(&t, SCL_REDUCE_SUM, scl_tape_binary(&t, SCL_OP_MUL, scan, data),
                                    b + n, 1, SCL_TOTAL);
  const scl_status status = scl_program_make(ctx, &t, total, parameters_of(w), out);
  FREE(g, weights);
  return status;
}

static void run(scl_context *ctx, const guard_case *w, bool guarded, const double *p,
                double *result) {
  scl_program *program = NULL;
  REQUIRE_OK(make_program(ctx, w, guarded, &program));
  CHECK_OK(scl_program_run(program, p, true, result));
  scl_program_release(program);
}

static void check_guard(scl_context *ctx, const guard_case *w) {
  const size_t n = parameters_of(w);
  double *p = test_alloc(n * sizeof *p), *got = test_alloc((n + 1) * sizeof *got);
  double *plain = test_alloc((n + 1) * sizeof *plain);
  for (size_t i = 0; i < n; i++) p[i] = 0.9 + 0.3 * sin(1.3 * (double)i);
  for (size_t b = 0; b < w->sequences; b++) {
    for (size_t t = 0; t < w->steps; t++) {
      if (is_idle(w, t, b)) p[x_at(w, t, b)] = w->negative ? -1.0 : 0.3;
    }
  }
  const double want = guard_value(w, p);
  run(ctx, w, true, p, got);
  CHECK_NEAR(got[0], want, 1e-12 * (1.0 + fabs(want)));
  if (w->negative) {
    run(ctx, w, false, p, plain);
    CHECK(isnan(plain[0])); /* the steps are run */
  } else {
    run(ctx, w, false, p, plain);
    for (size_t i = 0; i <= n; i++) CHECK_NEAR(got[i], plain[i], 1e-13 * (1.0 + fabs(plain[i])));
  }
  for (size_t i = 0; i < n; i++) {
    const double keep = p[i], h = 1e-5;
    if (keep < 0) {
      CHECK(got[1 + i] == 0.0); /* x of a step that is not run */
      continue;
    }
    p[i] = keep + h;
    const double above = guard_value(w, p);
    p[i] = keep - h;
    const double below = guard_value(w, p);
    p[i] = keep;
    CHECK_NEAR(got[1 + i], (above - below) / (2 * h), 1e-7 * (1.0 + fabs(got[1 + i])));
  }
  FREE(p, got, plain);
}

void test_scan_guard(scl_context *ctx) {
  static const size_t steps[] = {1, 4, 75}, sequences[] = {1, 3, 9};
  for (size_t i = 0; i < 3; i++) {
    for (size_t j = 0; j < 3; j++) {
      for (int flags = 0; flags < 16; flags++) {
        const guard_case w = {steps[i], sequences[j], flags & 1, flags & 2, flags & 4, flags & 8};
        if (w.negative && (w.computed || !w.same)) continue;
        check_guard(ctx, &w);
      }
    }
  }
}
