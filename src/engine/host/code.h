/* Code that the host runs repeatedly: between the files of src/engine/host. */
#ifndef SCL_ENGINE_HOST_CODE_H
#define SCL_ENGINE_HOST_CODE_H

#include <math.h>

#include "engine/host/groups.h"
#include "engine/host/plan.h"
#include "engine/host/vector_math.h"

typedef enum { LOOP, VECTORS, PRODUCT, FILL, COPY, GATHER } scl_host_loop_kind;

/* A step of a plan, for runs of elements. */
typedef struct {
  scl_host_loop_kind kind;
  scl_op_loop *loop;
  scl_vector_function *vectors;
  scl_run arg[3]; /* of a product: the matrix; of a filling: the number */
  size_t columns, ld;
  const double *weight;
  const int32_t *index; /* of a gather: which number of the array each row is */
  double *to;
  bool moves[3], to_moves; /* from block to block: it is not one of the plan's own blocks */
} scl_host_loop;

typedef struct {
  scl_reduction op;
  const double *from;
  bool moves;
  double *to, identity, total;
  const double *x; /* of X' r: X, and its shape */
  size_t columns, ld;
  scl_host_groups *groups; /* of sums of groups of rows */
} scl_host_total;

/* The part of a plan that is computed element by element. */
typedef struct {
  size_t rows, block;
  int loops, totals;
  scl_host_loop *loop;
  scl_host_total *total;
} scl_host_blocks;

/* *to = op(*a, *b, *c), or what follows. */
typedef struct {
  uint32_t op, count;
  double *to;
  union {
    const double *a;
    scl_host_blocks *blocks;
  };
  const double *b, *c;
} scl_host_code;

/* Two operations whose intermediate result nothing else reads, t = first(*a, *b) and
 * *to = second(t, *c). */
#define SCL_CODE_FIRSTS(EACH)                                                                      \
  EACH(ADD, a + b)                                                                                 \
  EACH(SUB, a - b)                                                                                 \
  EACH(MUL, a *b)                                                                                  \
  EACH(DIV, a / b)                                                                                 \
  EACH(TIMES, a == 0.0 ? 0.0 : a * b)                                                              \
  EACH(SQUARE, a *a)                                                                               \
  EACH(NEG, -a)                                                                                    \
  EACH(ABS, fabs(a))
/* The frequent operations, in place for speed; the meaning of each is in
 * kernels/include/elementwise.def. */
#define SCL_CODE_FREQUENT(EACH)                                                                    \
  SCL_CODE_FIRSTS(EACH)                                                                            \
  EACH(OVER, a == 0.0 ? 0.0 : a / b)                                                               \
  EACH(GT, isnan(a) || isnan(b) ? a + b : a > b ? 1.0 : 0.0)                                       \
  EACH(GE, isnan(a) || isnan(b) ? a + b : a >= b ? 1.0 : 0.0)                                      \
  EACH(EQ, isnan(a) || isnan(b) ? a + b : a == b ? 1.0 : 0.0)                                      \
  EACH(PMAX, isnan(a) ? a : isnan(b) ? b : fmax(a, b))                                             \
  EACH(SIGN, a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : fabs(a))                                             \
  EACH(SQRT, sqrt(a))                                                                              \
  EACH(EXP, exp(a))                                                                                \
  EACH(LOG, log(a))                                                                                \
  EACH(LOG1P, log1p(a))                                                                            \
  EACH(LOG_ADD_EXP, SCL_CODE_LOG_ADD_EXP(a, b))
#define SCL_CODE_LOG_ADD_EXP(a, b) ((a > b ? a : b) + log1p(a == b ? 1.0 : exp(-fabs(a - b))))
/* By the operation, and whether t is its first operand. */
#define SCL_CODE_SECONDS(EACH, ...)                                                                \
  EACH(ADD, 0, t + c, __VA_ARGS__)                                                                 \
  EACH(SUB, 0, t - c, __VA_ARGS__)                                                                 \
  EACH(SUB, 1, c - t, __VA_ARGS__)                                                                 \
  EACH(MUL, 0, t *c, __VA_ARGS__)                                                                  \
  EACH(DIV, 0, t / c, __VA_ARGS__)                                                                 \
  EACH(DIV, 1, c / t, __VA_ARGS__)                                                                 \
  EACH(TIMES, 0, t == 0.0 ? 0.0 : t * c, __VA_ARGS__)                                              \
  EACH(TIMES, 1, c == 0.0 ? 0.0 : c * t, __VA_ARGS__)                                              \
  EACH(SQUARE, 0, t *t, __VA_ARGS__)                                                               \
  EACH(NEG, 0, -t, __VA_ARGS__)                                                                    \
  EACH(SQRT, 0, sqrt(t), __VA_ARGS__)                                                              \
  EACH(EXP, 0, exp(t), __VA_ARGS__)                                                                \
  EACH(LOG_ADD_EXP, 0, SCL_CODE_LOG_ADD_EXP(t, c), __VA_ARGS__)
enum {
#define FIRST(NAME, ...) SCL_FIRST_##NAME,
  SCL_CODE_FIRSTS(FIRST) SCL_FIRST_COUNT
#undef FIRST
};
enum {
#define SECOND(NAME, place, ...) SCL_SECOND_##NAME##_##place,
  SCL_CODE_SECONDS(SECOND, ) SCL_SECOND_COUNT
#undef SECOND
};

enum {
  SCL_CODE_COPY = SCL_OP_COUNT, /* *to = *a */
  SCL_CODE_THREE,               /* an operation of three operands: number `count` */
  SCL_CODE_BLOCKS,              /* the elements of a plan */
  SCL_CODE_GATHER,              /* to[k] = a[b[k]], for `count` k */
  SCL_CODE_SUMS,                /* to[k] = the sum of a[c[i]] for i from b[k] to before b[k + 1] */
  SCL_CODE_PAIR                 /* + first SCL_SECOND_COUNT + second */
};

/* The code of a pair; 0: there is none. `place`: of the first one's result among the operands of
 * the second. */
unsigned scl_host_code_pair(unsigned first, unsigned second, int place);

/* A pair rounds twice. */
#if defined(__GNUC__) && !defined(__clang__)
#define SCL_ROUNDS_TWICE __attribute__((optimize("fp-contract=off")))
#else
#define SCL_ROUNDS_TWICE
#endif

/* Runs these entries. */
void scl_host_code_run(const scl_host_code *code, int entries);

#endif
