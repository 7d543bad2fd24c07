/* Sparse factors (ops/sparse.h) against dense ones; sparse Hessians of programs
 * (program/sparse_program.h) against products with the dense Hessian. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "ops/sparse.h"
#include "ops/sparse_root.h"
#include "program/sparse_program.h"
#include "program_check.h"
#include "test.h"

enum { MOST = 90 };

/* A symmetric matrix: dense, and the columns of its lower triangle. */
typedef struct {
  size_t n, start[MOST + 1];
  uint32_t row[MOST * MOST];
  double a[MOST * MOST], x[MOST * MOST];
} matrix;

static size_t pick(size_t n) {
  return (size_t)(fabs(test_random()) * (double)n) % n;
}

static void set(matrix *m, size_t i, size_t j, double x) {
  m->a[i + j * m->n] = m->a[j + i * m->n] = x;
}

static void compress(matrix *m) {
  size_t count = 0;
  for (size_t j = 0; j < m->n; j++) {
    m->start[j] = count;
    for (size_t i = j; i < m->n; i++) {
      if (i > j && m->a[i + j * m->n] == 0.0) continue;
      m->row[count] = (uint32_t)i;
      m->x[count++] = m->a[i + j * m->n];
    }
  }
  m->start[m->n] = count;
}

/* Patterns of different kinds; the diagonal is larger than the rest of its row. */
static void fill(matrix *m, int kind) {
  const size_t n = m->n = 1 + pick(kind == 5 ? 30 : MOST);
  memset(m->a, 0, n * n * sizeof *m->a);
  for (size_t j = 0; j < n; j++) {
    if (kind == 1 && j + 1 < n) set(m, j, j + 1, test_random());               /* chain */
    if (kind == 2 && j > 0) set(m, 0, j, test_random());                       /* hub */
    if (kind == 3 && j % 9 != 8 && j + 1 < n) set(m, j, j + 1, test_random()); /* grid */
    if (kind == 3 && j + 9 < n) set(m, j, j + 9, test_random());
    if (kind == 4 && j >= n / 3) set(m, j, pick(n / 3 + 1), test_random());  /* two parts */
    for (size_t i = 0; i < j && kind == 5; i++) set(m, i, j, test_random()); /* full */
  }
  const size_t more = kind == 0 ? pick(3 * n) : 0;
  for (size_t k = 0; k < more; k++) set(m, pick(n), pick(n), test_random());
  for (size_t j = 0; j < n; j++) {
    double sum = 0.1 + fabs(test_random());
    m->a[j * (n + 1)] = 0.0;
    for (size_t i = 0; i < n; i++) sum += fabs(m->a[i + j * n]);
    m->a[j * (n + 1)] = sum;
  }
  compress(m);
}

/* The inverse by elimination without pivots, and log(det). */
static double invert(const matrix *m, double shift, double *inverse) {
  static double a[MOST * MOST];
  const size_t n = m->n;
  double log_det = 0.0;
  for (size_t k = 0; k < n * n; k++) {
    const bool diagonal = k % (n + 1) == 0;
    a[k] = m->a[k] + (diagonal ? shift : 0.0);
    inverse[k] = diagonal;
  }
  for (size_t k = 0; k < n; k++) {
    const double pivot = a[k * (n + 1)];
    log_det += log(pivot);
    for (size_t j = 0; j < n; j++) {
      a[k + j * n] /= pivot;
      inverse[k + j * n] /= pivot;
    }
    for (size_t i = 0; i < n; i++) {
      const double by = a[i + k * n];
      for (size_t j = 0; i != k && j < n; j++) {
        a[i + j * n] -= by * a[k + j * n];
        inverse[i + j * n] -= by * inverse[k + j * n];
      }
    }
  }
  return log_det;
}

/* With M = P' L L' P of this inverse, W = P' L^-T has W W' = M^-1: products with W, W' and W^-1. */
static void check_half(const scl_sparse_factor *f, size_t n, const double *inverse) {
  static double w[MOST * MOST], forward[MOST * MOST];
  double x[MOST], back[MOST], room[MOST];
  for (size_t j = 0; j < n; j++) {
    double unit[MOST] = {0.0};
    unit[j] = 1.0;
    CHECK_OK(scl_sparse_apply_half(f, SCL_SPARSE_BACKWARD, unit, w + j * n, room));
    CHECK_OK(scl_sparse_apply_half(f, SCL_SPARSE_FORWARD, unit, forward + j * n, NULL));
  }
  for (size_t k = 0; k < n * n; k++) {
    const size_t i = k % n, j = k / n;
    double sum = 0.0;
    for (size_t l = 0; l < n; l++) sum += w[i + l * n] * w[j + l * n];
    CHECK_NEAR(sum, inverse[k], 1e-9);
    CHECK_NEAR(forward[k], w[j + i * n], 1e-12);
  }
  test_fill(x, n);
  CHECK_OK(scl_sparse_apply_half(f, SCL_SPARSE_BACKWARD, x, back, room));
  for (size_t i = 0; i < n; i++) {
    double sum = 0.0;
    for (size_t l = 0; l < n; l++) sum += w[i + l * n] * x[l];
    CHECK_NEAR(back[i], sum, 1e-9);
  }
  CHECK_OK(scl_sparse_apply_half(f, SCL_SPARSE_TIMES, back, room, NULL));
  for (size_t i = 0; i < n; i++) CHECK_NEAR(room[i], x[i], 1e-9);
}

static void check_factor(const matrix *m, const uint32_t *order, double shift) {
  static double inverse[MOST * MOST], some[MOST * MOST];
  const size_t n = m->n;
  double b[2 * MOST], x[2 * MOST], log_det = 0.0;
  scl_sparse_factor *f = NULL;
  const double want = invert(m, shift, inverse);
  REQUIRE_OK(scl_sparse_analyse(n, m->start, m->row, order, &f));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_sparse_log_det(f, &log_det));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_sparse_apply_half(f, SCL_SPARSE_TIMES, m->x, x, NULL));
  CHECK_OK(scl_sparse_factorize(f, m->x, shift));
  CHECK_OK(scl_sparse_log_det(f, &log_det));
  CHECK_NEAR(log_det, want, 1e-10);
  test_fill(b, 2 * n);
  memcpy(x, b, 2 * n * sizeof *x);
  CHECK_OK(scl_sparse_solve(f, x, 2));
  for (size_t i = 0; i < n; i++) {
    double sum[2] = {0.0, 0.0};
    for (size_t k = 0; k < 2 * n; k++) sum[k / n] += inverse[i + k % n * n] * b[k];
    CHECK_NEAR(x[i], sum[0], 1e-9);
    CHECK_NEAR(x[i + n], sum[1], 1e-9);
  }
  check_half(f, n, inverse);
  CHECK_OK(scl_sparse_inverse(f, some));
  for (size_t j = 0; j < n; j++) {
    for (size_t k = m->start[j]; k < m->start[j + 1]; k++) {
      CHECK_NEAR(some[k], inverse[m->row[k] + j * n], 1e-9);
    }
  }
  CHECK(scl_sparse_factor_size(f) >= (double)m->start[n]);
  scl_sparse_factor_release(f);
}

static void check_patterns(void) {
  static matrix m;
  uint32_t order[MOST];
  for (int k = 0; k < 200; k++) {
    fill(&m, k % 6);
    for (size_t i = 0; i < m.n; i++) order[i] = (uint32_t)i;
    for (size_t i = m.n; i-- > 1;) {
      const size_t j = pick(i + 1);
      const uint32_t x = order[i];
      order[i] = order[j];
      order[j] = x;
    }
    check_factor(&m, NULL, k % 3 == 0 ? 0.7 : 0.0);
    check_factor(&m, order, 0.0);
  }
}

/* The order keeps a chain, a star and a tree without new numbers. */
static void check_order(void) {
  static matrix m;
  for (int kind = 1; kind <= 3; kind++) {
    m.n = MOST;
    memset(m.a, 0, sizeof m.a);
    for (size_t j = 0; j < m.n; j++) {
      set(&m, j, j, 10.0);
      if (j > 0) set(&m, j, kind == 1 ? j - 1 : kind == 2 ? 0 : (j - 1) / 2, 0.5);
    }
    compress(&m);
    scl_sparse_factor *f = NULL;
    REQUIRE_OK(scl_sparse_analyse(m.n, m.start, m.row, NULL, &f));
    CHECK(scl_sparse_factor_size(f) <= 6.0 * MOST); /* supernodes have zeros */
    scl_sparse_factor_release(f);
  }
}

/* What fills in, and a factor in the given order and its derivative when memory fails. */
static void check_root(void) {
  static const double start[] = {0, 3, 4, 5}, row[] = {0, 1, 2, 1, 2};
  static const double filled_start[] = {0, 3, 5, 6}, filled_row[] = {0, 1, 2, 1, 2, 2};
  static const double factor[] = {2, 1, 1, 2, 1, 2},
                      by_last[] = {0.015625, 0.0625, -0.125, 0.0625, -0.25, 0.25};
  const scl_sparse_columns filled = {3, filled_start, filled_row};
  CHECK(scl_sparse_is_filled(filled));
  CHECK(!scl_sparse_is_filled((scl_sparse_columns){3, start, row}));
  bool fails = true;
  for (long n = 1; fails && n < 20; n++) {
    double x[] = {4, 2, 2, 5, 3, 6}, slope[] = {0, 0, 0, 0, 0, 1};
    alloc_fail(n);
    scl_status status = scl_sparse_root(filled, x);
    if (status == SCL_OK) status = scl_sparse_root_adjoint(filled, factor, slope);
    fails = alloc_failed();
    alloc_fail(0);
    CHECK(fails ? status == SCL_E_MEMORY : status == SCL_OK);
    for (size_t k = 0; k < 6 && !fails; k++) CHECK(x[k] == factor[k] && slope[k] == by_last[k]);
  }
  CHECK(!fails);
}

static void check_indefinite(void) {
  static matrix m;
  for (int k = 0; k < 20; k++) {
    fill(&m, k % 5);
    const size_t bad = pick(m.n);
    for (size_t e = m.start[bad]; e < m.start[bad + 1]; e++) m.x[e] *= m.row[e] == bad ? -1 : 1;
    scl_sparse_factor *f = NULL;
    double numbers[MOST] = {0.0};
    REQUIRE_OK(scl_sparse_analyse(m.n, m.start, m.row, NULL, &f));
    CHECK_STATUS(SCL_E_NOT_PD, scl_sparse_factorize(f, m.x, 0.0));
    CHECK(scl_fault_last()->index == (int64_t)bad + 1 || m.start[bad + 1] - m.start[bad] > 1 ||
          bad > 0);
    CHECK_STATUS(SCL_E_ARGUMENT, scl_sparse_solve(f, numbers, 1));
    CHECK_STATUS(SCL_E_ARGUMENT, scl_sparse_inverse(f, numbers));
    CHECK_OK(scl_sparse_factorize(f, m.x, 1000.0));
    m.x[0] = NAN;
    CHECK_STATUS(SCL_E_NOT_PD, scl_sparse_factorize(f, m.x, 0.0));
    scl_sparse_factor_release(f);
  }
}

static void check_memory(void) {
  static matrix m;
  static double some[MOST * MOST];
  fill(&m, 3);
  bool fails = true;
  for (long n = 1; fails && n < 200; n++) {
    scl_sparse_factor *f = NULL;
    alloc_fail(n);
    scl_status status = scl_sparse_analyse(m.n, m.start, m.row, NULL, &f);
    if (status == SCL_OK) status = scl_sparse_factorize(f, m.x, 0.0);
    if (status == SCL_OK) status = scl_sparse_inverse(f, some);
    fails = alloc_failed();
    alloc_fail(0);
    CHECK(fails ? status == SCL_E_MEMORY : status == SCL_OK);
    scl_sparse_factor_release(f);
  }
  CHECK(!fails);
}

/* ---- programs -------------------------------------------------------------------------------- */

enum { PARAMETERS = 14, FIRST = 2 }; /* those before FIRST are not chosen */

static const unsigned char chosen[PARAMETERS] = {0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static void check_program(scl_context *ctx, program_nodes *l, int output, size_t count,
                          const char *what) {
  CHECK(program_check_sparse(ctx, l, output, chosen, what) == count);
  program_end(l);
}

static void check_programs(scl_context *ctx) {
  enum { N = PARAMETERS - FIRST };
  program_nodes l;
  double d[N * N];
  /* a chain */
  program_begin(&l);
  int a = node_parameter(&l, 1), b = node_parameter(&l, 1), u = node_parameter(&l, N);
  const int after = node_one(&l, SCL_VALUE_PART, u, AT(N, 1, 0, N - 1, 1));
  const int before = node_one(&l, SCL_VALUE_PART, u, AT(N, 0, 0, N - 1, 1));
  int x = node_binary(&l, SCL_OP_SUB, after, node_binary(&l, SCL_OP_MUL, before, a));
  int sum = node_sum(&l, node_unary(&l, SCL_OP_SQUARE, x));
  x = node_binary(&l, SCL_OP_MUL, node_unary(&l, SCL_OP_EXP, u), b);
  check_program(ctx, &l, node_binary(&l, SCL_OP_ADD, sum, node_sum(&l, x)), 2 * N - 1, "chain");
  if (!scl_traits(ctx)->synchronous) return; /* a device compiles kernels for each */
  /* the same element several times; two parts */
  program_begin(&l);
  a = node_parameter(&l, 1), b = node_parameter(&l, 1), u = node_parameter(&l, N);
  const int left = node_one(&l, SCL_VALUE_GATHER, u, AT((size_t)node_indices(&l, 20, 4)));
  const int right = node_one(&l, SCL_VALUE_GATHER, u, AT((size_t)node_indices(&l, 20, N)));
  x = node_unary(&l, SCL_OP_SIN, node_binary(&l, SCL_OP_ADD, left, right));
  CHECK(program_check_sparse(ctx, &l, node_sum(&l, node_binary(&l, SCL_OP_MUL, x, b)), chosen,
                             "gathered") > N);
  /* spread again, and a product with data that has zeros */
  x = node_one(&l, SCL_VALUE_SCATTER, x, AT((size_t)node_indices(&l, 20, N), N));
  for (size_t k = 0; k < N * N; k++) d[k] = k % (N + 1) <= 1 ? test_random() : 0.0;
  x = node_binary(&l, SCL_OP_ADD, x,
                  node_matmul(&l, node_data(&l, d, N * N), u, N, N, 1, false, false));
  x = node_unary(&l, SCL_OP_TANH, node_binary(&l, SCL_OP_MUL, x, a));
  CHECK(program_check_sparse(ctx, &l, node_sum(&l, x), chosen, "scattered") > N);
  program_end(&l);
  /* each with each */
  program_begin(&l);
  a = node_parameter(&l, 1), b = node_parameter(&l, 1), u = node_parameter(&l, N);
  x = node_one(&l, SCL_VALUE_CUMSUM, u, AT(N, 1, 0));
  x = node_sum(&l, node_unary(&l, SCL_OP_SIN, node_binary(&l, SCL_OP_MUL, x, a)));
  check_program(ctx, &l, x, N * (N + 1) / 2, "all");
  /* nothing but the diagonal */
  program_begin(&l);
  a = node_parameter(&l, 1), b = node_parameter(&l, 1), u = node_parameter(&l, N);
  check_program(ctx, &l, node_sum(&l, node_binary(&l, SCL_OP_MUL, u, a)), N, "linear");
}

/* Products in which so many elements meet that dense matrices are multiplied. */
static void check_dense(scl_context *ctx) {
  enum { N = PARAMETERS - FIRST };
  program_nodes l;
  double d[N * N];
  /* one parameter meets no other: of the rest all pairs */
  for (size_t k = 0; k < N * N; k++) {
    d[k] = (k % N == 0) == (k / N == 0) ? test_random() / N : 0.0;
  }
  program_begin(&l);
  int a = node_parameter(&l, 1), b = node_parameter(&l, 1), u = node_parameter(&l, N);
  int x = node_matmul(&l, node_data(&l, d, N * N), u, N, N, 1, false, false);
  x = node_binary(&l, SCL_OP_MUL, node_unary(&l, SCL_OP_EXP, x), a);
  check_program(ctx, &l, node_sum(&l, node_binary(&l, SCL_OP_MUL, x, b)), 1 + (N - 1) * N / 2,
                "all but one");
  /* matrices on the left and on the right, transposed and not; their elements are mixed before */
  for (unsigned k = 0; k < 8; k++) {
    const bool left = k & 1, ta = k & 2, tb = k & 4;
    program_begin(&l);
    a = node_parameter(&l, 1), b = node_parameter(&l, 1), u = node_parameter(&l, N);
    x = node_matmul(&l, node_random_data(&l, N * N), u, N, N, 1, false, false);
    x = node_unary(&l, SCL_OP_SIN, node_binary(&l, SCL_OP_MUL, x, a));
    const int other = node_binary(&l, SCL_OP_MUL, node_random_data(&l, 28), b);
    x = left ? node_matmul(&l, x, other, 3, 4, 7, ta, tb)
             : node_matmul(&l, other, x, 7, 4, 3, ta, tb);
    check_program(ctx, &l, node_sum(&l, node_unary(&l, SCL_OP_TANH, x)), N * (N + 1) / 2,
                  "a product of matrices");
  }
}

/* Every allocation fails in turn: of making a Hessian, of its numbers, and of the gradient of their
 * weighted sum. */
static void check_program_memory(scl_context *ctx) {
  enum { N = PARAMETERS, MOST_ALLOCATIONS = 5000, MOST_ENTRIES = 100000 };
  const scl_memory before = scl_context_memory(ctx);
  double h[N * N], weights[N * N], got[N];
  program_nodes l;
  program_begin(&l);
  const int u = node_parameter(&l, N);
  int x = node_matmul(&l, node_random_data(&l, N * N), u, N, N, 1, false, false);
  x = node_binary(&l, SCL_OP_ADD, node_unary(&l, SCL_OP_TANH, x), node_unary(&l, SCL_OP_EXP, u));
  x = node_one(&l, SCL_VALUE_SCATTER, x, AT((size_t)node_indices(&l, N, N), N));
  x = node_sum(&l, node_unary(&l, SCL_OP_SIN, x));
  test_fill(weights, N * N);
  bool fails = true;
  for (long n = 1; fails && n < MOST_ALLOCATIONS; n++) {
    scl_sparse_program *p = NULL;
    scl_tape t;
    scl_tape_begin(&t);
    const int output = program_record(&l, &t, x);
    alloc_fail(n);
    scl_status status = scl_sparse_program_make(ctx, &t, output, N, chosen, MOST_ENTRIES, &p);
    if (status == SCL_OK) status = scl_sparse_program_run(p, l.x, h);
    if (status == SCL_OK) status = scl_sparse_program_adjoint(p, l.x, weights, got);
    fails = alloc_failed();
    alloc_fail(0);
    CHECK(status == SCL_OK || (status == SCL_E_MEMORY && fails));
    scl_sparse_program_release(p);
    CHECK(scl_context_memory(ctx).live == before.live);
  }
  CHECK(!fails);
  program_end(&l);
}

/* No Hessian: too many numbers, or a product of all elements. */
static void check_refused(scl_context *ctx) {
  enum { N = PARAMETERS };
  program_nodes l;
  program_begin(&l);
  const int u = node_parameter(&l, N);
  const int outputs[] = {node_reduce(&l, SCL_REDUCE_PROD, u, N, 1, SCL_TOTAL),
                         node_sum(&l, node_unary(&l, SCL_OP_EXP, u))};
  for (size_t k = 0; k < 2; k++) {
    scl_sparse_program *p = NULL;
    scl_tape t;
    scl_tape_begin(&t);
    const int output = program_record(&l, &t, outputs[k]);
    CHECK_STATUS(k == 0 ? SCL_OK : SCL_E_MEMORY,
                 scl_sparse_program_make(ctx, &t, output, N, chosen, k == 0 ? 1000 : N / 2, &p));
    CHECK(p == NULL);
  }
  program_end(&l);
}

void test_sparse(scl_context *ctx) {
  check_programs(ctx);
  if (!scl_traits(ctx)->synchronous) return;
  check_dense(ctx);
  check_program_memory(ctx);
  check_refused(ctx);
  check_patterns();
  scl_sparse_set_blas(&(scl_sparse_blas){.gemm = NULL});
  check_patterns();
  test_set_blas();
  check_order();
  check_root();
  check_indefinite();
  check_memory();
}
