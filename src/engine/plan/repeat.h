/* Work that is done again and again, with the numbers that its blocks have each time: the input of
 * an engine's expr_ready(). */
#ifndef SCL_ENGINE_PLAN_REPEAT_H
#define SCL_ENGINE_PLAN_REPEAT_H

#include "engine/plan/plan.h"

/* Operations on single numbers, one after another: program/numbers.c makes them. A register is one
 * of `places` in memory, of constants or of others, which have a value until they get another
 * one. */
enum {
  SCL_REGISTER_PLACE = 0,
  SCL_REGISTER_CONSTANT = 1 << 28,
  SCL_REGISTER_OTHER = 2 << 28,
  SCL_REGISTER_KIND = 3 << 28
};
typedef struct {
  unsigned op; /* scl_op, or SCL_OP_COUNT: a copy of arg[0] */
  int to, arg[3];
  unsigned only; /* bit k: arg[k] is a result that nothing else reads */
} scl_number_step;

typedef struct {
  scl_buffer *buffer;
  size_t at;
} scl_number_place;

typedef struct {
  int steps, places, constants, others;
  scl_number_step *step;
  scl_number_place *place;
  double *constant;
} scl_numbers;

/* A list with room for these numbers of each; a copy of one. NULL without memory. */
scl_numbers *scl_numbers_make(size_t steps, size_t places, size_t constants);
scl_numbers *scl_numbers_copy(const scl_numbers *n);
void scl_numbers_free(scl_numbers *n); /* accepts NULL */

static inline int scl_op_operands(unsigned op) {
  return op == SCL_OP_COUNT ? 1 : scl_op_arity((scl_op)op);
}

/* A plan; or such numbers; or, if both are NULL, a call. */
typedef enum { SCL_REPEAT_NOTHING, SCL_REPEAT_GATHER, SCL_REPEAT_GROUP_SUMS } scl_repeat_call;
typedef struct scl_repeat {
  const scl_plan *plan;
  const scl_numbers *numbers;
  scl_repeat_call call;             /* the engine's function, of these blocks */
  scl_block index, order, src, dst; /* index: of sums, where the lists of `order` begin */
} scl_repeat;

#endif
