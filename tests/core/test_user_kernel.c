/* Kernels that a user writes: values, order, types of arguments, errors. */
#include <stdlib.h>
#include <string.h>

#include "graph/expr.h"
#include "base/user_kernel.h"
#include "matrices.h"

static const char source[] = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
                             "__kernel void add(const double a, __global const double *x,\n"
                             "                  __global double *y, const int n) {\n"
                             "  const int i = get_global_id(0);\n"
                             "  if (i < n) y[i] += a * x[i];\n"
                             "}\n";

enum { N = 40 };

static scl_status run(scl_kernel *kernel, const scl_mat *x, scl_mat *y, const size_t *local) {
  const size_t global = 64;
  const scl_kernel_argument args[] = {{.kind = SCL_ARGUMENT_DOUBLE, .number = 2.5},
                                      {.kind = SCL_ARGUMENT_MATRIX, .matrix = x},
                                      {.kind = SCL_ARGUMENT_MATRIX, .matrix = y, .writes = true},
                                      {.kind = SCL_ARGUMENT_INTEGER, .integer = N}};
  return scl_kernel_run(kernel, 4, args, 1, &global, local);
}

/* The kernel between an expression that makes its operand and one that reads its result. */
static void check_values(scl_context *ctx, scl_kernel *kernel) {
  const size_t group = 32;
  scl_mat *x = mat_random(ctx, N, 1, SCL_GENERAL), *y = mat_random(ctx, N, 1, SCL_GENERAL);
  scl_mat *twice = NULL, *sum = NULL;
  double *a = mat_stored(x), *b = mat_stored(y), *got, want = 0;
  const scl_term terms[] = {{x, 0}, {x, 0}};
  REQUIRE_OK(scl_expr_apply(SCL_OP_ADD, 2, terms, &twice));
  REQUIRE_OK(scl_mat_force(twice));
  REQUIRE_OK(run(kernel, twice, y, &group));
  REQUIRE_OK(run(kernel, twice, y, NULL));
  REQUIRE_OK(scl_expr_reduce(SCL_REDUCE_SUM, y, SCL_TOTAL, &sum));
  REQUIRE_OK(scl_mat_force(sum));
  for (int i = 0; i < N; i++) want += b[i] + 10 * a[i];
  got = mat_stored(sum);
  CHECK_NEAR(*got, want, 1e-13);
  FREE(a, b, got);
  RELEASE(x, y, twice, sum);
}

static void check_arguments(scl_context *ctx, scl_kernel *kernel) {
  scl_mat *x = mat_random(ctx, N, 1, SCL_GENERAL), *y = mat_random(ctx, N, 1, SCL_GENERAL);
  const size_t global = 64, odd = 48, none = 0, huge = (size_t)1 << 40;
  scl_kernel_argument args[] = {{.kind = SCL_ARGUMENT_DOUBLE, .number = 2.5},
                                {.kind = SCL_ARGUMENT_MATRIX, .matrix = x},
                                {.kind = SCL_ARGUMENT_MATRIX, .matrix = y, .writes = true},
                                {.kind = SCL_ARGUMENT_INTEGER, .integer = N}};
  CHECK(scl_kernel_arguments(kernel) == 4 && scl_kernel_context(kernel) == ctx);
  CHECK_STATUS(SCL_E_ARGUMENT, scl_kernel_run(kernel, 3, args, 1, &global, NULL));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_kernel_run(kernel, 4, args, 0, &global, NULL));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_kernel_run(kernel, 4, args, 1, &none, NULL));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_kernel_run(kernel, 4, args, 1, &global, &odd));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_kernel_run(kernel, 4, args, 1, &global, &none));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_kernel_run(kernel, 4, args, 1, &huge, &huge));
  for (int k = 0; k < 4; k++) { /* each kind in the place of each */
    const scl_kernel_argument right = args[k];
    for (int kind = SCL_ARGUMENT_MATRIX; kind <= SCL_ARGUMENT_INTEGER; kind++) {
      if ((scl_argument_kind)kind == right.kind) continue;
      args[k].kind = (scl_argument_kind)kind;
      args[k].matrix = x;
      CHECK_STATUS(SCL_E_ARGUMENT, scl_kernel_run(kernel, 4, args, 1, &global, NULL));
    }
    args[k] = right;
  }
  CHECK_OK(scl_kernel_run(kernel, 4, args, 1, &global, NULL));
  RELEASE(x, y);
}

void test_user_kernel(scl_context *ctx) {
  scl_kernel *kernel = NULL;
  if (scl_context_is_host(ctx)) {
    scl_status got = scl_kernel_create(ctx, source, "add", &kernel);
    CHECK(got == SCL_E_ARGUMENT || got == SCL_E_NO_DEVICE);
    return;
  }
  CHECK_STATUS(SCL_E_BUILD, scl_kernel_create(ctx, "no kernel(", "add", &kernel));
  CHECK(scl_fault_last()->log[0] != '\0');
  CHECK_STATUS(SCL_E_ARGUMENT, scl_kernel_create(ctx, source, "subtract", &kernel));
  CHECK(kernel == NULL);
  REQUIRE_OK(scl_kernel_create(ctx, source, "add", &kernel));
  check_values(ctx, kernel);
  check_arguments(ctx, kernel);
  scl_kernel_release(kernel);
}
