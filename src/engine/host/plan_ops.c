/* The tables of operations and reductions as loops over runs of numbers. */
#include "engine/host/plan.h"

#include "engine/host/vector_math.h"

#include "kernels/include/port.h"
#include "kernels/include/special_functions.h"
#include "kernels/include/special_normal.h"
#include "kernels/include/incomplete_functions.h"
#include "kernels/include/bessel_functions.h"

/* Partial results of a run: hide the latency of an addition. */
enum { LANES = 8 };

typedef void op_run(size_t n, const scl_run *arg, double *dst);

/* Several loops, so that the common cases have no test inside. Operands are copied to a stack block
 * where a loop of its own is not worth it. */
#define SCL_UNARY(NAME, name, expression, da)                                                      \
  static void run_##name(size_t n, const scl_run *arg, double *dst) {                              \
    const double *array_a = arg[0].array;                                                          \
    for (size_t k = 0; k < n; k++) {                                                               \
      const double a = array_a[k];                                                                 \
      dst[k] = expression;                                                                         \
    }                                                                                              \
  }
#define SCL_BINARY(NAME, name, expression, da, db)                                                 \
  static void run_##name(size_t n, const scl_run *arg, double *dst) {                              \
    const double *array_a = arg[0].array, *array_b = arg[1].array;                                 \
    if (array_a != NULL && array_b != NULL) {                                                      \
      for (size_t k = 0; k < n; k++) {                                                             \
        const double a = array_a[k], b = array_b[k];                                               \
        dst[k] = expression;                                                                       \
      }                                                                                            \
    } else if (array_a != NULL) {                                                                  \
      const double b = arg[1].number;                                                              \
      for (size_t k = 0; k < n; k++) {                                                             \
        const double a = array_a[k];                                                               \
        dst[k] = expression;                                                                       \
      }                                                                                            \
    } else {                                                                                       \
      const double a = arg[0].number;                                                              \
      for (size_t k = 0; k < n; k++) {                                                             \
        const double b = array_b[k];                                                               \
        dst[k] = expression;                                                                       \
      }                                                                                            \
    }                                                                                              \
  }
#define SCL_TERNARY(NAME, name, expression, da, db, dc)                                            \
  static void run_##name(size_t n, const scl_run *arg, double *dst) {                              \
    for (size_t k = 0; k < n; k++) {                                                               \
      const double a = arg[0].array != NULL ? arg[0].array[k] : arg[0].number;                     \
      const double b = arg[1].array != NULL ? arg[1].array[k] : arg[1].number;                     \
      const double c = arg[2].array != NULL ? arg[2].array[k] : arg[2].number;                     \
      dst[k] = expression;                                                                         \
    }                                                                                              \
  }
#include "kernels/include/elementwise.def"
#undef SCL_UNARY
#undef SCL_BINARY
#undef SCL_TERNARY

static op_run *const op_table[SCL_OP_COUNT] = {
#define SCL_UNARY(NAME, name, expression, da) [SCL_OP_##NAME] = run_##name,
#define SCL_BINARY(NAME, name, expression, da, db) [SCL_OP_##NAME] = run_##name,
#define SCL_TERNARY(NAME, name, expression, da, db, dc) [SCL_OP_##NAME] = run_##name,
#include "kernels/include/elementwise.def"
#undef SCL_UNARY
#undef SCL_BINARY
#undef SCL_TERNARY
};

void scl_run_op(scl_op op, size_t n, const scl_run *arg, double *dst) {
  scl_vector_function *vectors = scl_vector_function_of(op);
  if (vectors != NULL) {
    vectors(n, arg[0].array, dst);
  } else {
    op_table[op](n, arg, dst);
  }
}

#define SCL_REDUCTION(NAME, name, identity, map, combine)                                          \
  static double combine_##name(double u, double v) {                                               \
    return combine;                                                                                \
  }                                                                                                \
  static inline double map_##name(double a) {                                                      \
    return map;                                                                                    \
  }                                                                                                \
  static double reduce_##name(size_t n, const double *x) {                                         \
    double lane[LANES];                                                                            \
    for (size_t l = 0; l < LANES; l++) lane[l] = identity;                                         \
    size_t k = 0;                                                                                  \
    for (; k + LANES <= n; k += LANES) {                                                           \
      for (size_t l = 0; l < LANES; l++) {                                                         \
        const double u = lane[l], v = map_##name(x[k + l]);                                        \
        lane[l] = combine;                                                                         \
      }                                                                                            \
    }                                                                                              \
    for (size_t l = 0; k < n; k++, l++) lane[l] = combine_##name(lane[l], map_##name(x[k]));       \
    for (size_t half = LANES / 2; half > 0; half /= 2) {                                           \
      for (size_t l = 0; l < half; l++) lane[l] = combine_##name(lane[l], lane[l + half]);         \
    }                                                                                              \
    return lane[0];                                                                                \
  }                                                                                                \
  static void beside_##name(size_t n, double *total, const double *x) {                            \
    for (size_t k = 0; k < n; k++) {                                                               \
      const double u = total[k], v = map_##name(x[k]);                                             \
      total[k] = combine;                                                                          \
    }                                                                                              \
  }
#include "kernels/include/reduce.def"
#undef SCL_REDUCTION

const scl_host_reduction scl_host_reductions[SCL_REDUCE_COUNT] = {
#define SCL_REDUCTION(NAME, name, identity, map, combine)                                          \
  [SCL_REDUCE_##NAME] = {reduce_##name, beside_##name, combine_##name},
#include "kernels/include/reduce.def"
#undef SCL_REDUCTION
};
