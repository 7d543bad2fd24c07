#include "engine/host/code.h"

#include <string.h>

#include "base/sizes.h"
#include "engine/host/thin.h"

/* ---- elements of a plan --------------------------------------------------------------------- */

static void run_loop(const scl_host_loop *s, size_t i, size_t n, const scl_run *arg, double *to) {
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
  case GATHER:
    for (size_t k = 0; k < n; k++) to[k] = arg[0].array[s->index[i + k]];
    break;
  }
}

static void run_block(scl_host_blocks *r, size_t i, size_t n) {
  for (int k = 0; k < r->loops; k++) {
    const scl_host_loop *s = &r->loop[k];
    if (i == 0) {
      run_loop(s, i, n, s->arg, s->to);
      continue;
    }
    scl_run arg[3];
    memcpy(arg, s->arg, sizeof arg);
    for (int a = 0; a < 3; a++) {
      if (s->moves[a]) arg[a].array += i;
    }
    run_loop(s, i, n, arg, s->to_moves ? s->to + i : s->to);
  }
  for (int k = 0; k < r->totals; k++) {
    scl_host_total *o = &r->total[k];
    const double *from = o->moves ? o->from + i : o->from;
    if (o->x != NULL) {
      scl_host_add_dots(n, o->columns, o->x + i, o->ld, from, o->to);
    } else if (o->groups != NULL) {
      scl_host_groups_add(o->groups, i, n, from, o->to);
    } else {
      const double next = scl_run_reduction(o->op, n, from);
      o->total = scl_host_reductions[o->op].combine(o->total, next);
    }
  }
}

static void run_blocks(scl_host_blocks *r) {
  for (int k = 0; k < r->totals; k++) {
    scl_host_total *o = &r->total[k];
    o->total = o->identity;
    if (o->x != NULL) memset(o->to, 0, o->columns * sizeof *o->to);
    if (o->groups != NULL) scl_host_groups_begin(o->groups, o->to);
  }
  for (size_t i = 0; i < r->rows; i += r->block) run_block(r, i, scl_min(r->block, r->rows - i));
  for (int k = 0; k < r->totals; k++) {
    const scl_host_total *o = &r->total[k];
    if (o->groups != NULL) {
      scl_host_groups_end(o->groups, o->to);
    } else if (o->x == NULL) {
      *o->to = o->total;
    }
  }
}

/* ---- moved elements ------------------------------------------------------------------------- */

/* Converted to a signed integer by one instruction. */
#define AT(index) ((ptrdiff_t)(index))

static void gather(const scl_host_code *s) {
  for (size_t k = 0; k < s->count; k++) s->to[k] = s->a[AT(s->b[k])];
}

/* Sums of every fourth element: hides the latency of an addition in long groups. */
static void sum_groups(const scl_host_code *s) {
  const double *a = s->a, *c = s->c;
  size_t i = (size_t)s->b[0];
  for (size_t k = 0; k < s->count; k++) {
    const size_t end = (size_t)s->b[k + 1];
    double sum = 0.0, part[3] = {0.0, 0.0, 0.0};
    for (; i + 4 <= end; i += 4) {
      sum += a[AT(c[i])];
      for (size_t l = 0; l < 3; l++) part[l] += a[AT(c[i + 1 + l])];
    }
    for (; i < end; i++) sum += a[AT(c[i])];
    s->to[k] = (sum + part[0]) + (part[1] + part[2]);
  }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int first_of(unsigned op) {
  switch (op) {
#define FIRST(NAME, ...)                                                                           \
  case SCL_OP_##NAME:                                                                              \
    return SCL_FIRST_##NAME;
    SCL_CODE_FIRSTS(FIRST)
#undef FIRST
  default:
    return -1;
  }
}

/* These do not depend on the order of their operands. */
static int second_of(unsigned op, int place) {
  if (op == SCL_OP_ADD || op == SCL_OP_MUL || op == SCL_OP_LOG_ADD_EXP) place = 0;
  switch (2 * op + (unsigned)place) {
#define SECOND(NAME, where, ...)                                                                   \
  case 2 * SCL_OP_##NAME + where:                                                                  \
    return SCL_SECOND_##NAME##_##where;
    SCL_CODE_SECONDS(SECOND, )
#undef SECOND
  default:
    return -1;
  }
}

unsigned scl_host_code_pair(unsigned first, unsigned second, int place) {
  const int f = first_of(first), s = second_of(second, place);
  return f < 0 || s < 0 ? 0 : (unsigned)(SCL_CODE_PAIR + f * SCL_SECOND_COUNT + s);
}

#define CASE(NAME, expression)                                                                     \
  case SCL_OP_##NAME: {                                                                            \
    const double a = *s->a, b = *s->b;                                                             \
    (void)b;                                                                                       \
    *s->to = expression;                                                                           \
    break;                                                                                         \
  }
#define PAIR(NAME, place, second, FIRST, first)                                                    \
  case SCL_CODE_PAIR + SCL_FIRST_##FIRST *SCL_SECOND_COUNT + SCL_SECOND_##NAME##_##place: {        \
    const double a = *s->a, b = *s->b, c = *s->c, t = first;                                       \
    (void)b, (void)c;                                                                              \
    *s->to = second;                                                                               \
    break;                                                                                         \
  }
#define PAIRS(NAME, first) SCL_CODE_SECONDS(PAIR, NAME, first)

SCL_ROUNDS_TWICE void scl_host_code_run(const scl_host_code *s, int entries) {
  for (const scl_host_code *end = s + entries; s < end; s++) {
    switch (s->op) {
      SCL_CODE_FREQUENT(CASE)
      SCL_CODE_FIRSTS(PAIRS)
    case SCL_OP_IFELSE:
      *s->to = isnan(*s->a) ? *s->a : *s->a != 0.0 ? *s->b : *s->c;
      break;
    case SCL_CODE_COPY:
      *s->to = *s->a;
      break;
    case SCL_CODE_THREE:
      *s->to = scl_op_value((scl_op)s->count, *s->a, *s->b, *s->c);
      break;
    case SCL_CODE_BLOCKS:
      run_blocks(s->blocks);
      break;
    case SCL_CODE_GATHER:
      gather(s);
      break;
    case SCL_CODE_SUMS:
      sum_groups(s);
      break;
    default:
      *s->to = scl_op_value((scl_op)s->op, *s->a, *s->b, 0.0);
      break;
    }
  }
}
