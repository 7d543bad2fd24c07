/* Recursions: value, gradient and second derivatives against plain loops, at many shapes; memory
 * that runs out; steps that do not fit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "program/program.h"
#include "program/scan.h"
#include "program_reference.h"
#include "test.h"

/* A step on a state of two vectors, s of K numbers and u of one:
 *   s' = tanh(A s + x e + u),  u' = u c + x,  out = (sum(s s), s)
 * with x for each step, A and c shared by all sequences, e for each sequence. */
enum { K = 3, FIXED = K * K + 1 };

typedef struct {
  size_t steps, sequences, parameters;
  bool reverse, shared_x;
  size_t s, u, x, e, a, c; /* where they are among the parameters */
} scan_case;

static scan_case make_case(size_t steps, size_t sequences, bool reverse, bool shared_x) {
  scan_case w = {.steps = steps, .sequences = sequences, .reverse = reverse, .shared_x = shared_x};
  w.u = K * sequences;
  w.x = w.u + sequences;
  w.e = w.x + steps * (shared_x ? 1 : sequences);
  w.a = w.e + K * sequences;
  w.c = w.a + K * K;
  w.parameters = w.c + 1;
  return w;
}

static size_t results_of(const scan_case *w) {
  return (K + 1) * w->sequences + (1 + K) * w->steps * w->sequences;
}

/* ---- plain loops ----------------------------------------------------------------------------- */

static double weight(size_t i) {
  return cos(0.7 * (double)i);
}

static double sequence_value(const scan_case *w, const double *p, size_t b) {
  double s[K], u = p[w->u + b], total = 0.0;
  const size_t outs = (K + 1) * w->sequences, vectors = outs + w->steps * w->sequences;
  for (size_t i = 0; i < K; i++) s[i] = p[w->s + i + K * b];
  for (size_t k = 0; k < w->steps; k++) {
    const size_t t = w->reverse ? w->steps - 1 - k : k;
    const double x = p[w->x + t + (w->shared_x ? 0 : w->steps * b)];
    double next[K], squares = 0.0;
    for (size_t i = 0; i < K; i++) {
      next[i] = x * p[w->e + i + K * b] + u;
      for (size_t j = 0; j < K; j++) next[i] += p[w->a + i + K * j] * s[j];
      squares += s[i] * s[i];
      total += weight(vectors + t + w->steps * (i + K * b)) * s[i];
    }
    total += weight(outs + t + w->steps * b) * squares;
    for (size_t i = 0; i < K; i++) s[i] = tanh(next[i]);
    u = u * p[w->c] + x;
  }
  for (size_t i = 0; i < K; i++) total += weight(i + K * b) * s[i];
  return total + weight(K * w->sequences + b) * u;
}

static double case_value(const scan_case *w, const double *p) {
  double total = 0.0;
  for (size_t b = 0; b < w->sequences; b++) total += sequence_value(w, p, b);
  return total;
}

/* ---- the same as a program ------------------------------------------------------------------- */

static int parameter(scl_tape *t, size_t from, size_t length) {
  return scl_tape_add(t, SCL_VALUE_PARAMETER, 0, 0, NULL, AT(from, length), 0.0);
}

static scl_scan_body *make_body(bool shared_x) {
  static const scl_scan_port port[] = {{K, false},    {1, false}, {1, false}, {K, false},
                                       {K * K, true}, {1, true},  {1, false}, {K, false}};
  scl_scan_body *body = calloc(1, sizeof *body);
  if (body == NULL) return NULL;
  memcpy(body->shape.port, port, sizeof port);
  body->shape.port[2].shared = shared_x;
  memcpy(body->shape.ports, (const int[]){2, 1, 3, 0, 2}, sizeof body->shape.ports);
  body->of = -1;
  scl_tape *t = &body->tape;
  scl_tape_begin(t);
  const int s = parameter(t, 0, K), u = parameter(t, K, 1), x = parameter(t, K + 1, 1);
  const int e = parameter(t, K + 2, K), a = parameter(t, 2 * K + 2, K * K);
  const int c = parameter(t, 2 * K + 2 + K * K, 1);
  int next = scl_tape_matmul(t, a, s, K, K, 1, false, false);
  next = scl_tape_binary(t, SCL_OP_ADD, next, scl_tape_binary(t, SCL_OP_MUL, x, e));
  next = scl_tape_unary(t, SCL_OP_TANH, scl_tape_binary(t, SCL_OP_ADD, next, u));
  const int v = scl_tape_binary(t, SCL_OP_ADD, scl_tape_binary(t, SCL_OP_MUL, u, c), x);
  const int squares =
      scl_tape_reduce(t, SCL_REDUCE_SUM, scl_tape_unary(t, SCL_OP_SQUARE, s), K, 1, SCL_TOTAL);
  body->result = scl_tape_concat(t, 4, (const int[]){next, v, squares, s});
  return body;
}

static scl_status make_program(scl_context *ctx, const scan_case *w, const double *weights,
                               bool second, scl_program **out) {
  scl_tape t;
  scl_tape_begin(&t);
  const size_t b = w->sequences;
  const int body = scl_tape_add_body(&t, make_body(w->shared_x));
  const int given[] = {parameter(&t, w->s, K * b),
                       parameter(&t, w->u, b),
                       parameter(&t, w->x, w->steps * (w->shared_x ? 1 : b)),
                       parameter(&t, w->e, K * b),
                       parameter(&t, w->a, K * K),
                       parameter(&t, w->c, 1)};
  const int scan = scl_tape_add(&t, SCL_VALUE_SCAN, 0, 6, given,
                                AT((size_t)body, w->steps, b, w->reverse, 0), 0.0);
  const size_t n = results_of(w);
  const int data = scl_tape_data_value(&t, scl_tape_add_data(&t, weights, n));
  const int product = scl_tape_binary(&t, SCL_OP_MUL, scan, data);
  const int total = scl_tape_reduce(&t, SCL_REDUCE_SUM, product, n, 1, SCL_TOTAL);
  if (second) return scl_program_make_second(ctx, &t, total, w->parameters, 2, out);
  return scl_program_make(ctx, &t, total, w->parameters, out);
}

static double *make_weights(const scan_case *w) {
  double *weights = test_alloc(results_of(w) * sizeof *weights);
  for (size_t i = 0; i < results_of(w); i++) weights[i] = weight(i);
  return weights;
}

static double *make_point(const scan_case *w) {
  double *p = test_alloc(w->parameters * sizeof *p);
  for (size_t i = 0; i < w->parameters; i++) p[i] = 0.6 * sin(1.3 * (double)i + 0.4);
  return p;
}

/* Differences by every parameter where there are few, else by some. */
static void check_slopes(const scan_case *w, double *p, const double *got) {
  const double h = 1e-5;
  const size_t step = w->parameters / 40 + 1;
  for (size_t i = 0; i < w->parameters; i += step) {
    const double x = p[i];
    p[i] = x + h;
    const double above = case_value(w, p);
    p[i] = x - h;
    const double below = case_value(w, p);
    p[i] = x;
    CHECK_NEAR(got[i], (above - below) / (2 * h), 1e-6 * (1.0 + fabs(got[i])));
  }
}

/* An evaluator computes the same bits; of several sequences there is none. */
static scl_status check_evaluator(scl_program *program, const scan_case *w, const double *p,
                                  const double *want, double *got) {
  scl_evaluator *e;
  SCL_TRY(scl_evaluator_make(program, &e));
  const bool synchronous = scl_traits(scl_program_context(program))->synchronous;
  CHECK((e != NULL) == (synchronous && w->sequences == 1));
  scl_status status = e != NULL ? scl_evaluator_run(e, p, got) : SCL_OK;
  const size_t bytes = (w->parameters + 1) * sizeof *got;
  if (e != NULL && status == SCL_OK) CHECK(memcmp(got, want, bytes) == 0);
  scl_evaluator_release(e);
  return status;
}

static void check_case(scl_context *ctx, const scan_case *w) {
  double *weights = make_weights(w), *p = make_point(w);
  double *got = test_alloc((w->parameters + 1) * sizeof *got);
  double *again = test_alloc((w->parameters + 1) * sizeof *again);
  scl_program *program = NULL;
  CHECK_OK(make_program(ctx, w, weights, false, &program));
  if (program != NULL) {
    const double want = case_value(w, p);
    CHECK_OK(scl_program_run(program, p, false, got));
    CHECK_NEAR(got[0], want, 1e-11 * (1.0 + fabs(want)));
    CHECK_OK(scl_program_run(program, p, true, got));
    CHECK_NEAR(got[0], want, 1e-11 * (1.0 + fabs(want)));
    check_slopes(w, p, got + 1);
    CHECK_OK(check_evaluator(program, w, p, got, again));
  }
  scl_program_release(program);
  FREE(weights, p, got, again);
}

/* The Hessian against differences of the gradient. */
static void check_second(scl_context *ctx) {
  const scan_case w = make_case(4, 2, false, true);
  double *weights = make_weights(&w), *p = make_point(&w);
  const size_t n = w.parameters;
  double *h = test_alloc(n * n * sizeof *h), *up = test_alloc((n + 1) * sizeof *up);
  double *down = test_alloc((n + 1) * sizeof *down);
  scl_program *second = NULL, *first = NULL;
  CHECK_OK(make_program(ctx, &w, weights, true, &second));
  CHECK_OK(make_program(ctx, &w, weights, false, &first));
  if (first != NULL && second != NULL) {
    CHECK_OK(scl_program_hessian(second, p, h));
    for (size_t j = 0; j < n; j++) {
      const double x = p[j], d = 1e-5;
      p[j] = x + d;
      CHECK_OK(scl_program_run(first, p, true, up));
      p[j] = x - d;
      CHECK_OK(scl_program_run(first, p, true, down));
      p[j] = x;
      for (size_t i = 0; i < n; i++) {
        CHECK_NEAR(h[i + n * j], (up[i + 1] - down[i + 1]) / (2 * d), 1e-7);
      }
    }
  }
  scl_program_release(first);
  scl_program_release(second);
  FREE(weights, p, h, up, down);
}

/* ---- faults -----------------------------------------------------------------------------------
 */

enum { MOST_ALLOCATIONS = 20000 };

static void check_allocations(scl_context *ctx) {
  const scan_case w = make_case(3, 1, false, false);
  double *weights = make_weights(&w), *p = make_point(&w);
  const scl_memory before = scl_context_memory(ctx);
  double *got = test_alloc((w.parameters + 1) * sizeof *got);
  double *again = test_alloc((w.parameters + 1) * sizeof *again);
  bool fails = true;
  for (long n = 1; fails && n < MOST_ALLOCATIONS; n++) {
    scl_program *program = NULL;
    alloc_fail(n);
    scl_status status = make_program(ctx, &w, weights, false, &program);
    if (status == SCL_OK) status = scl_program_run(program, p, true, got);
    if (status == SCL_OK) status = check_evaluator(program, &w, p, got, again);
    fails = alloc_failed();
    alloc_fail(0);
    CHECK(status == SCL_OK || (status == SCL_E_MEMORY && fails));
    scl_program_release(program);
    CHECK(scl_context_memory(ctx).live == before.live);
    CHECK(scl_context_memory(ctx).buffers == before.buffers);
  }
  CHECK(!fails);
  FREE(weights, p, got, again);
}

/* Operands and attributes that do not fit the step's ports; a step that is too large. */
static void check_refused(void) {
  static const size_t wrong[][SCL_VALUE_ATTRIBUTES] = {{1, 2, 1, 0, 0}, {0, 3, 1, 0, 0},
                                                       {0, 2, 2, 0, 0}, {0, 2, 1, 2, 0},
                                                       {0, 2, 1, 0, 2}, {0, 0, 1, 0, 0}};
  for (size_t k = 0; k < LENGTH(wrong); k++) {
    const scan_case w = make_case(2, 1, false, false);
    scl_tape t;
    scl_tape_begin(&t);
    scl_tape_add_body(&t, make_body(false));
    const int given[] = {parameter(&t, w.s, K), parameter(&t, w.u, 1),     parameter(&t, w.x, 2),
                         parameter(&t, w.e, K), parameter(&t, w.a, K * K), parameter(&t, w.c, 1)};
    CHECK_OK(t.status);
    scl_tape_add(&t, SCL_VALUE_SCAN, 0, 6, given, wrong[k], 0.0);
    CHECK_STATUS(SCL_E_ARGUMENT, t.status);
    scl_tape_end(&t);
  }
  scl_scan_body *body = make_body(false);
  CHECK_OK(scl_scan_check(body));
  const int wide = parameter(&body->tape, 0, K + 1);
  CHECK(wide > 0);
  CHECK_STATUS(SCL_E_ARGUMENT, scl_scan_check(body));
  scl_tape_end(&body->tape);
  free(body);
}

static void check_size(scl_context *ctx) {
  enum { N = 40 };
  scl_tape t;
  scl_program *program = NULL;
  scl_scan_body *body = calloc(1, sizeof *body);
  scl_tape_begin(&body->tape);
  body->of = -1;
  body->shape.port[0].length = N * N;
  body->shape.ports[0] = 1;
  const int s = parameter(&body->tape, 0, N * N);
  body->result = scl_tape_matmul(&body->tape, s, s, N, N, N, false, false);
  scl_tape_begin(&t);
  const int at = scl_tape_add_body(&t, body), x = parameter(&t, 0, N * N);
  const int scan = scl_tape_add(&t, SCL_VALUE_SCAN, 0, 1, &x, AT((size_t)at, 2, 1, 0, 0), 0.0);
  const int total = scl_tape_reduce(&t, SCL_REDUCE_SUM, scan, N * N, 1, SCL_TOTAL);
  CHECK_STATUS(SCL_E_ARGUMENT, scl_program_make(ctx, &t, total, N * N, &program));
  CHECK(program == NULL);
}

void test_scan(scl_context *ctx) {
  static const size_t steps[] = {1, 2, 17, 600}, sequences[] = {1, 3, 65};
  for (size_t i = 0; i < 4; i++) {
    for (size_t j = 0; j < 3; j++) {
      for (int flags = 0; flags < 4; flags++) {
        if (steps[i] == 600 && sequences[j] > 3) continue;
        const scan_case w = make_case(steps[i], sequences[j], flags & 1, flags & 2);
        check_case(ctx, &w);
      }
    }
  }
  check_second(ctx);
  check_allocations(ctx);
  check_refused();
  check_size(ctx);
}
