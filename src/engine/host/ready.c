/* Plans that are run repeatedly (engine/host/plan.c runs any plan, once): whatever does not change
 * between runs is prepared beforehand. A run then computes a list of numbers that do not depend on
 * the element, and a list of loops over blocks of rows, in the order of the steps. */
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "engine/host/plan.h"
#include "engine/host/thin.h"
#include "engine/host/vector_math.h"

enum { BLOCK = SCL_RUN_BLOCK, MOST_ROWS = 16384 };

/* number[to] = *from, or op(number[arg[0]], ...). */
typedef struct {
  const double *from;
  uint16_t to, op, arg[3];
} number_step;

typedef enum { LOOP, VECTORS, PRODUCT, FILL, COPY } loop_kind;

typedef struct {
  loop_kind kind;
  scl_op_loop *loop;
  scl_vector_function *vectors;
  scl_run arg[3]; /* of a product: the matrix; of a filling: the number */
  size_t columns, ld;
  const double *weight;
  double *to;
  bool moves[3], to_moves; /* from block to block: it is not one of the plan's own blocks */
} loop_step;

typedef struct {
  uint16_t step;
  double *to;
} store; /* of a number */

typedef struct {
  scl_reduction op;
  const double *from;
  bool moves;
  double *to, identity, total;
} reduction;

/* The number that an operand of a loop is. */
typedef struct {
  uint16_t step;
  double *to;
} operand;

struct scl_ready_plan {
  size_t rows;
  int numbers, loops, stores, reductions, operands;
  number_step *number_step;
  loop_step *loop;
  operand *operand;
  double *number, *block;
  store store[SCL_PLAN_OUTPUTS];
  reduction reduction[SCL_PLAN_OUTPUTS];
};

/* ---- running it ----------------------------------------------------------------------------- */

static void run_loop(const loop_step *s, size_t n, const scl_run *arg, double *to) {
  switch (s->kind) {
  case LOOP:
    s->loop(n, arg, to);
    break;
  case VECTORS:
    s->vectors(n, arg[0].array, to);
    break;
  case PRODUCT:
    memset(to, 0, n * sizeof *to);
    scl_host_add_columns(n, s->columns, arg[0].array, s->ld, s->weight, to);
    break;
  case FILL:
    for (size_t k = 0; k < n; k++) to[k] = arg[0].number;
    break;
  case COPY:
    memcpy(to, arg[0].array, n * sizeof *to);
    break;
  }
}

static void run_block(struct scl_ready_plan *r, size_t i, size_t n) {
  for (int k = 0; k < r->loops; k++) {
    const loop_step *s = &r->loop[k];
    if (i == 0) {
      run_loop(s, n, s->arg, s->to);
      continue;
    }
    scl_run arg[3];
    memcpy(arg, s->arg, sizeof arg);
    for (int a = 0; a < 3; a++) {
      if (s->moves[a]) arg[a].array += i;
    }
    run_loop(s, n, arg, s->to_moves ? s->to + i : s->to);
  }
  for (int k = 0; k < r->reductions; k++) {
    reduction *o = &r->reduction[k];
    const double next = scl_run_reduction(o->op, n, o->moves ? o->from + i : o->from);
    o->total = scl_host_reductions[o->op].combine(o->total, next);
  }
}

void scl_host_expr_repeat(struct scl_ready_plan *r) {
  for (int k = 0; k < r->numbers; k++) {
    const number_step *s = &r->number_step[k];
    const uint16_t *a = s->arg;
    r->number[s->to] = s->from != NULL ? *s->from
                                       : scl_op_value((scl_op)s->op, r->number[a[0]],
                                                      r->number[a[1]], r->number[a[2]]);
  }
  for (int k = 0; k < r->stores; k++) *r->store[k].to = r->number[r->store[k].step];
  if (r->loops + r->reductions == 0) return;
  for (int k = 0; k < r->operands; k++) *r->operand[k].to = r->number[r->operand[k].step];
  for (int k = 0; k < r->reductions; k++) r->reduction[k].total = r->reduction[k].identity;
  for (size_t i = 0; i < r->rows; i += BLOCK) run_block(r, i, scl_min(BLOCK, r->rows - i));
  for (int k = 0; k < r->reductions; k++) *r->reduction[k].to = r->reduction[k].total;
}

/* ---- making it ------------------------------------------------------------------------------ */

static bool can_load(const scl_leaf *l) {
  return l->rectangle == 0 && l->step_i <= 1;
}

static bool can_repeat_step(const scl_plan *p, const scl_step *s) {
  switch (s->kind) {
  case SCL_STEP_LOAD:
    return can_load(&p->leaf[s->arg[0]]);
  case SCL_STEP_MATVEC:
    return p->m == 1 || p->leaf[s->arg[0]].step_i == 1;
  default:
    return s->kind == SCL_STEP_NUMBER || s->kind == SCL_STEP_APPLY;
  }
}

/* One column, of a size at which it is not computed on several threads. */
static bool can_repeat(const scl_plan *p) {
  bool can = p->n == 1 && p->m <= MOST_ROWS && p->triangle == SCL_GENERAL && p->pass == 0;
  for (int s = 0; s < p->body && can; s++) can = can_repeat_step(p, &p->step[s]);
  for (int k = 0; k < p->outputs && can; k++) {
    const scl_output *o = &p->output[k];
    if (!o->reduces) continue;
    can = p->margin == SCL_TOTAL && o->op < SCL_REDUCE_COUNT && !scl_reduces_to_index(o->op);
  }
  return can;
}

typedef struct {
  const scl_plan *p;
  struct scl_ready_plan *r;
  const double *array[SCL_PLAN_STEPS]; /* of each step; NULL: a number */
  bool moves[SCL_PLAN_STEPS];
  int16_t slot[SCL_PLAN_STEPS];
  size_t stride;
} making;

static double *block_of(const making *m, int step) {
  return m->r->block + (size_t)m->slot[step] * m->stride;
}

static const double *leaf_at(const scl_leaf *l) {
  return ((const scl_host_buffer *)l->buffer)->data + l->at;
}

/* The destination of a step that is computed for each element: an output that stores it, if there
 * is one. */
static double *place_of(making *m, int step, bool *moves) {
  for (int k = 0; k < m->p->outputs; k++) {
    const scl_output *o = &m->p->output[k];
    *moves = !o->reduces && o->step == step;
    if (*moves) return scl_host_at(o->dst);
  }
  return block_of(m, step);
}

static void add_number(making *m, int step, const double *from) {
  const scl_step *s = &m->p->step[step];
  number_step *n = &m->r->number_step[m->r->numbers++];
  *n = (number_step){.from = from, .to = (uint16_t)step, .op = s->op};
  if (from == NULL) memcpy(n->arg, s->arg, sizeof n->arg);
}

/* Operand k of a loop is this step. */
static void take_operand(making *m, loop_step *loop, int k, int step) {
  loop->arg[k].array = m->array[step];
  loop->moves[k] = m->moves[step];
  if (m->array[step] != NULL) return;
  m->r->operand[m->r->operands++] = (operand){(uint16_t)step, &loop->arg[k].number};
}

static loop_step *add_loop(making *m, loop_kind kind, double *to, bool to_moves) {
  loop_step *loop = &m->r->loop[m->r->loops++];
  *loop = (loop_step){.kind = kind, .to = to, .to_moves = to_moves};
  return loop;
}

static void add_apply(making *m, int step) {
  const scl_step *s = &m->p->step[step];
  const int arity = scl_op_arity((scl_op)s->op);
  bool any = false, moves;
  for (int k = 0; k < arity; k++) any = any || m->array[s->arg[k]] != NULL;
  if (!any) {
    add_number(m, step, NULL);
    return;
  }
  double *to = place_of(m, step, &moves);
  loop_step *loop = add_loop(m, LOOP, to, moves);
  for (int k = 0; k < arity; k++) take_operand(m, loop, k, s->arg[k]);
  loop->loop = scl_op_loop_of((scl_op)s->op);
  loop->vectors = scl_vector_function_of((scl_op)s->op);
  if (loop->vectors != NULL) loop->kind = VECTORS;
  m->array[step] = to;
  m->moves[step] = moves;
}

static void add_product(making *m, int step) {
  const scl_step *s = &m->p->step[step];
  const scl_leaf *x = &m->p->leaf[s->arg[0]];
  loop_step *loop = add_loop(m, PRODUCT, block_of(m, step), false);
  loop->arg[0].array = leaf_at(x);
  loop->moves[0] = true;
  loop->columns = x->length;
  loop->ld = x->inner;
  loop->weight = leaf_at(&m->p->leaf[s->arg[1]]);
  m->array[step] = loop->to;
}

static void add_load(making *m, int step, const scl_leaf *l) {
  m->moves[step] = l->step_i == 1;
  if (l->step_i == 1) {
    m->array[step] = leaf_at(l);
  } else {
    add_number(m, step, leaf_at(l));
  }
}

static void add_step(making *m, int step) {
  const scl_step *s = &m->p->step[step];
  switch (s->kind) {
  case SCL_STEP_LOAD:
    add_load(m, step, &m->p->leaf[s->arg[0]]);
    break;
  case SCL_STEP_NUMBER:
    m->r->number[step] = m->p->number[s->arg[0]];
    break;
  case SCL_STEP_MATVEC:
    add_product(m, step);
    break;
  default:
    add_apply(m, step);
    break;
  }
}

static void add_output(making *m, const scl_output *o) {
  struct scl_ready_plan *r = m->r;
  const int step = o->step;
  double *to = scl_host_at(o->dst);
  const bool number = m->array[step] == NULL;
  if (!o->reduces && number && m->p->m == 1) {
    r->store[r->stores++] = (store){o->step, to};
  } else if (!o->reduces && m->array[step] != to) {
    take_operand(m, add_loop(m, number ? FILL : COPY, to, true), 0, step);
  }
  if (!o->reduces) return;
  if (number) {
    take_operand(m, add_loop(m, FILL, block_of(m, step), false), 0, step);
    m->array[step] = block_of(m, step);
  }
  const scl_reduction op = (scl_reduction)o->op;
  r->reduction[r->reductions++] =
      (reduction){op, m->array[step], m->moves[step], to, scl_reduction_identity(op), 0.0};
}

/* Room for at most as many parts as the plan can need. */
static struct scl_ready_plan *allocate(const scl_plan *p, size_t blocks) {
  const size_t steps = p->body, loops = steps + p->outputs;
  const size_t numbers = (steps + blocks) * sizeof(double);
  struct scl_ready_plan *r = calloc(1, sizeof *r + numbers + steps * sizeof(number_step) +
                                           loops * sizeof(loop_step) + 3 * loops * sizeof(operand));
  if (r == NULL) return NULL;
  r->rows = p->m;
  r->number = (double *)(r + 1);
  r->block = r->number + steps;
  r->loop = (loop_step *)(r->block + blocks);
  r->number_step = (number_step *)(r->loop + loops);
  r->operand = (operand *)(r->number_step + steps);
  return r;
}

scl_status scl_host_expr_ready(scl_context *ctx, const scl_plan *plan,
                               struct scl_ready_plan **out) {
  (void)ctx;
  *out = NULL;
  if (!can_repeat(plan)) return SCL_OK;
  making m = {.p = plan, .stride = scl_min(plan->m, BLOCK)};
  m.r = allocate(plan, (size_t)scl_give_slots(plan, m.slot) * m.stride);
  if (m.r == NULL) return scl_fail_memory(sizeof *m.r, 0, "a program");
  for (int s = 0; s < plan->body; s++) add_step(&m, s);
  for (int k = 0; k < plan->outputs; k++) add_output(&m, &plan->output[k]);
  *out = m.r;
  return SCL_OK;
}

void scl_host_expr_forget(struct scl_ready_plan *ready) {
  free(ready);
}
