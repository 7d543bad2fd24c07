/* The tables of operations and reductions as loops over runs of numbers. */
#include "engine/host/plan.h"

#include "engine/host/vector_math.h"
#include "engine/host/wide.h"

#include "kernels/include/port.h"
#include "kernels/include/special_functions.h"
#include "kernels/include/special_normal.h"
#include "kernels/include/special_density.h"
#include "kernels/include/incomplete_functions.h"
#include "kernels/include/bessel_functions.h"

/* Partial results of a run: hide the latency of an addition. */
enum { LANES = 8 };

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

static scl_op_loop *const op_table[SCL_OP_COUNT] = {
#define SCL_UNARY(NAME, name, expression, da) [SCL_OP_##NAME] = run_##name,
#define SCL_BINARY(NAME, name, expression, da, db) [SCL_OP_##NAME] = run_##name,
#define SCL_TERNARY(NAME, name, expression, da, db, dc) [SCL_OP_##NAME] = run_##name,
#include "kernels/include/elementwise.def"
#undef SCL_UNARY
#undef SCL_BINARY
#undef SCL_TERNARY
};

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

/* ---- vectors -------------------------------------------------------------------------------- */

/* The same numbers, four at a time: compilers leave the loops above as they are, for their rest
 * would have to be a loop of its own. */
#ifdef SCL_WIDE

#define WIDE_LOOP(load_a, load_b, one_a, one_b, expression)                                        \
  size_t k = 0;                                                                                    \
  for (; k + SCL_WIDE_LANES <= n; k += SCL_WIDE_LANES) {                                           \
    load_a load_b *(scl_wide *)(dst + k) = expression;                                             \
  }                                                                                                \
  for (; k < n; k++) {                                                                             \
    one_a one_b dst[k] = expression;                                                               \
  }

#define FOUR(x) const scl_wide x = *(const scl_wide *)(array_##x + k);
#define ONE(x) const double x = array_##x[k];

#define WIDE_UNARY(name, expression)                                                               \
  SCL_WIDE static void wide_##name(size_t n, const scl_run *arg, double *dst) {                    \
    const double *array_a = arg[0].array;                                                          \
    WIDE_LOOP(FOUR(a), , ONE(a), , expression)                                                     \
  }
#define WIDE_BINARY(name, expression)                                                              \
  SCL_WIDE static void wide_##name(size_t n, const scl_run *arg, double *dst) {                    \
    const double *array_a = arg[0].array, *array_b = arg[1].array;                                 \
    if (array_a != NULL && array_b != NULL) {                                                      \
      WIDE_LOOP(FOUR(a), FOUR(b), ONE(a), ONE(b), expression)                                      \
    } else if (array_a != NULL) {                                                                  \
      const double b = arg[1].number;                                                              \
      WIDE_LOOP(FOUR(a), , ONE(a), , expression)                                                   \
    } else {                                                                                       \
      const double a = arg[0].number;                                                              \
      WIDE_LOOP(FOUR(b), , ONE(b), , expression)                                                   \
    }                                                                                              \
  }

/* 0 where a is 0. A number minus 0 keeps the sign of its zero. */
#define WIDE_SHARE(name, operator)                                                                 \
  SCL_WIDE static void wide_##name(size_t n, const scl_run *arg, double *dst) {                    \
    const double *array_a = arg[0].array, *array_b = arg[1].array;                                 \
    const scl_wide zeros = {0.0}, every_a = arg[0].number - zeros,                                 \
                   every_b = arg[1].number - zeros;                                                \
    size_t k = 0;                                                                                  \
    for (; k + SCL_WIDE_LANES <= n; k += SCL_WIDE_LANES) {                                         \
      const scl_wide a = array_a != NULL ? *(const scl_wide *)(array_a + k) : every_a;             \
      const scl_wide b = array_b != NULL ? *(const scl_wide *)(array_b + k) : every_b;             \
      *(scl_wide *)(dst + k) = (scl_wide)((scl_wide_bits)(a operator b) & (a != zeros));           \
    }                                                                                              \
    for (; k < n; k++) {                                                                           \
      const double a = array_a != NULL ? array_a[k] : arg[0].number;                               \
      const double b = array_b != NULL ? array_b[k] : arg[1].number;                               \
      dst[k] = a == 0.0 ? 0.0 : a operator b;                                                      \
    }                                                                                              \
  }

/* In the order of reduce_sum(). */
SCL_WIDE static double wide_sum(size_t n, const double *x) {
  union {
    scl_wide vector[LANES / SCL_WIDE_LANES];
    double lane[LANES];
  } sum = {.lane = {0.0}};
  size_t k = 0;
  for (; k + LANES <= n; k += LANES) {
    sum.vector[0] += *(const scl_wide *)(x + k);
    sum.vector[1] += *(const scl_wide *)(x + k + SCL_WIDE_LANES);
  }
  for (size_t l = 0; k < n; k++, l++) sum.lane[l] += x[k];
  const scl_wide half = sum.vector[0] + sum.vector[1];
  return (half[0] + half[2]) + (half[1] + half[3]);
}

enum { CHUNK = 64 };
/* max(a, b) + log(1 + exp(-|a - b|)) */
static void wide_log_add_exp(size_t n, const scl_run *arg, double *dst) {
  scl_vector_function *log1p_exp = scl_vector_function_of(SCL_OP_LOG1P_EXP);
  for (size_t i = 0; i < n; i += CHUNK) {
    const size_t count = n - i < CHUNK ? n - i : CHUNK;
    double high[CHUNK], rest[CHUNK];
    for (size_t k = 0; k < count; k++) {
      const double a = arg[0].array != NULL ? arg[0].array[i + k] : arg[0].number;
      const double b = arg[1].array != NULL ? arg[1].array[i + k] : arg[1].number;
      high[k] = a > b ? a : b;
      rest[k] = a == b ? 0.0 : -fabs(a - b);
    }
    log1p_exp(count, rest, rest);
    for (size_t k = 0; k < count; k++) dst[i + k] = high[k] + rest[k];
  }
}

WIDE_BINARY(add, a + b)
WIDE_BINARY(sub, a - b)
WIDE_BINARY(mul, a *b)
WIDE_BINARY(div, a / b)
WIDE_SHARE(times, *)
WIDE_SHARE(over, /)
WIDE_UNARY(neg, -a)
WIDE_UNARY(square, a *a)

static scl_op_loop *wide_loop_of(scl_op op) {
  static scl_op_loop *const loops[SCL_OP_COUNT] = {[SCL_OP_ADD] = wide_add,
                                                   [SCL_OP_SUB] = wide_sub,
                                                   [SCL_OP_MUL] = wide_mul,
                                                   [SCL_OP_DIV] = wide_div,
                                                   [SCL_OP_TIMES] = wide_times,
                                                   [SCL_OP_OVER] = wide_over,
                                                   [SCL_OP_NEG] = wide_neg,
                                                   [SCL_OP_SQUARE] = wide_square,
                                                   [SCL_OP_LOG_ADD_EXP] = wide_log_add_exp};
  return scl_host_has_wide() ? loops[op] : NULL;
}

#else

static scl_op_loop *wide_loop_of(scl_op op) {
  (void)op;
  return NULL;
}

static double wide_sum(size_t n, const double *x) {
  return reduce_sum(n, x);
}

#endif

scl_op_loop *scl_op_loop_of(scl_op op) {
  scl_op_loop *wide = wide_loop_of(op);
  return wide != NULL ? wide : op_table[op];
}

void scl_run_op(scl_op op, size_t n, const scl_run *arg, double *dst) {
  scl_vector_function *vectors = scl_vector_function_of(op);
  if (vectors != NULL) {
    vectors(n, arg[0].array, dst);
  } else {
    scl_op_loop_of(op)(n, arg, dst);
  }
}

double scl_run_reduction(scl_reduction op, size_t n, const double *x) {
  const bool wide = op == SCL_REDUCE_SUM && scl_host_has_wide();
  return wide ? wide_sum(n, x) : scl_host_reductions[op].run(n, x);
}

/* ---- blocks --------------------------------------------------------------------------------- */

int scl_give_slots(const scl_plan *p, int16_t *slot) {
  int last[SCL_PLAN_STEPS], free_slot[SCL_PLAN_STEPS], free_count = 0, slots = 0;
  for (int s = 0; s < p->steps; s++) last[s] = s < p->body ? s : p->steps;
  for (int s = 0; s < p->body; s++) {
    if (p->step[s].kind != SCL_STEP_APPLY) continue;
    for (int k = 0; k < scl_op_arity((scl_op)p->step[s].op); k++) last[p->step[s].arg[k]] = s;
  }
  for (int k = 0; k < p->outputs; k++) last[p->output[k].step] = p->steps;
  for (int s = 0; s < p->steps; s++) {
    slot[s] = (int16_t)(free_count > 0 ? free_slot[--free_count] : slots++);
    if (last[s] == s) free_slot[free_count++] = slot[s];
    if (s >= p->body || p->step[s].kind != SCL_STEP_APPLY) continue;
    for (int k = 0; k < scl_op_arity((scl_op)p->step[s].op); k++) {
      const int before = p->step[s].arg[k];
      if (last[before] != s) continue;
      free_slot[free_count++] = slot[before];
      last[before] = -1; /* an operand may be there twice */
    }
  }
  return slots;
}
