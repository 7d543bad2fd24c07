/* Work that is done repeatedly (engine/host/plan.c runs any plan, once): whatever does not change
 * between runs is prepared beforehand. What is left is code (engine/host/code.h): numbers that do
 * not depend on the element, and loops over blocks of rows, with the addresses of their
 * operands. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/sizes.h"
#include "engine/host/arena.h"
#include "engine/host/code.h"
#include "engine/host/join.h"
#include "engine/plan/repeat.h"

enum {
  MOST_ROWS = 16384,
  LINE = 8,     /* numbers of a line of the cache */
  FEW_ROWS = 3, /* which are computed one by one, more quickly than by a loop */
  LONG_RUN = 6  /* rows of runs of one group, which are worth a loop for each */
};

struct scl_ready_plan {
  scl_host_code *code;
  int entries, room;
  scl_arena memory;
  double *other; /* registers of numbers */
  bool failed;   /* there was no memory */
};

void scl_host_expr_repeat(struct scl_ready_plan *r) {
  scl_host_code_run(r->code, r->entries);
}

void scl_host_expr_forget(struct scl_ready_plan *r) {
  scl_arena_end(&r->memory);
  free(r->code);
  free(r);
}

/* ---- memory and code ------------------------------------------------------------------------ */

static void *take(struct scl_ready_plan *r, size_t bytes) {
  void *at = scl_arena_take(&r->memory, bytes);
  r->failed = r->failed || at == NULL;
  return at;
}

static double *take_numbers(struct scl_ready_plan *r, size_t count) {
  return take(r, count * sizeof(double));
}

static void emit(struct scl_ready_plan *r, scl_host_code entry) {
  const size_t needed = (size_t)r->entries + 1;
  r->failed =
      scl_grow(&r->code, &r->room, needed, sizeof *r->code, "a plan") != SCL_OK || r->failed;
  if (!r->failed) r->code[r->entries++] = entry;
}

static bool is_plain(const scl_host_code *e) {
  return e->op <= SCL_CODE_THREE || e->op >= SCL_CODE_PAIR;
}

/* Operand `place` of this entry is a number that nothing else reads: if one of the last entries
 * computes it, both may become one. False if not. */
static bool emit_pair(struct scl_ready_plan *r, scl_host_code e, int place) {
  const double *t = place == 0 ? e.a : e.b;
  int k = r->entries - 1;
  while (k >= 0 && r->entries - k < FEW_ROWS && is_plain(&r->code[k]) && r->code[k].to != t) k--;
  if (k < 0 || r->code[k].to != t) return false;
  const scl_host_code first = r->code[k];
  const unsigned op = scl_host_code_pair(first.op, e.op, place);
  bool may = op != 0 && is_plain(&first);
  for (int i = k + 1; i < r->entries; i++) {
    may = may && r->code[i].to != first.a && r->code[i].to != first.b;
  }
  if (!may) return false;
  memmove(r->code + k, r->code + k + 1, (size_t)(r->entries - 1 - k) * sizeof e);
  const double *c = place == 0 ? e.b : e.a;
  r->code[r->entries - 1] = (scl_host_code){op, 0, e.to, {first.a}, first.b, c};
  return true;
}

/* *to = op(arg[0], ...); `only` as in scl_number_step. */
static void emit_op(struct scl_ready_plan *r, unsigned op, double *to, const double *const *arg,
                    unsigned only) {
  const int operands = scl_op_operands(op);
  const bool apart = operands > 2 && op != SCL_OP_IFELSE;
  const scl_host_code e = {apart ? SCL_CODE_THREE : op, op, to, {arg[0]}, arg[operands > 1],
                           arg[operands > 2 ? 2 : 0]};
  for (int k = 0; k < operands && k < 2; k++) {
    if ((only >> k & 1) != 0 && emit_pair(r, e, k)) return;
  }
  emit(r, e);
}

static void emit_copy(struct scl_ready_plan *r, double *to, const double *from) {
  emit_op(r, SCL_CODE_COPY, to, &from, 0);
}

/* ---- plans ---------------------------------------------------------------------------------- */

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
  const size_t most = p->pass == 0 ? MOST_ROWS : scl_min(MOST_ROWS, scl_run_tile_rows(p));
  bool can = p->n == 1 && p->m <= most && p->triangle == SCL_GENERAL;
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
  unsigned passing; /* as in engine/host/join.h */
  struct scl_ready_plan *r;
  scl_host_blocks *blocks;
  const double *array[SCL_PLAN_STEPS];  /* of each step; NULL: a number, */
  const double *number[SCL_PLAN_STEPS]; /* which is here */
  bool moves[SCL_PLAN_STEPS];
  int16_t slot[SCL_PLAN_STEPS];
  int uses[SCL_PLAN_STEPS];
  double *block;
  double *gathered[SCL_PLAN_LEAVES]; /* the block of a leaf that is not stored, or NULL */
  size_t stride, stride_of_blocks;
} making;

static double *block_of(const making *m, int step) {
  return m->block + (size_t)m->slot[step] * m->stride_of_blocks;
}

static const double *leaf_at(const scl_leaf *l) {
  return ((const scl_host_buffer *)l->buffer)->data + l->at;
}

/* Whether an output is not stored. */
static bool passes(const making *m, int output) {
  return (m->passing >> output & 1) != 0;
}

/* An output that stores this step, or NULL. */
static double *output_of(const making *m, int step) {
  for (int k = 0; k < m->p->outputs; k++) {
    const scl_output *o = &m->p->output[k];
    if (!o->reduces && o->step == step && !passes(m, k)) return scl_host_at(o->dst);
  }
  return NULL;
}

/* Operand k of a loop is this step. */
static void take_operand(making *m, scl_host_loop *loop, int k, int step) {
  loop->arg[k].array = m->array[step];
  loop->moves[k] = m->moves[step];
  if (m->array[step] == NULL) emit_copy(m->r, &loop->arg[k].number, m->number[step]);
}

/* Loops so far are run before what follows. */
static void end_blocks(making *m) {
  scl_host_blocks *b = m->blocks;
  if (b->loops + b->totals == 0) return;
  scl_host_blocks *next = take(m->r, sizeof *next);
  if (next == NULL) return;
  emit(m->r, (scl_host_code){.op = SCL_CODE_BLOCKS, .blocks = b});
  next->rows = b->rows;
  next->block = b->block;
  next->loop = b->loop + b->loops;
  next->total = b->total + b->totals;
  m->blocks = next;
}

static unsigned only_uses(const making *m, unsigned op, const uint16_t *step) {
  unsigned only = 0;
  for (int k = 0; k < scl_op_operands(op); k++) {
    const bool computed = m->p->step[step[k]].kind == SCL_STEP_APPLY;
    const bool once = m->p->m == 1 || m->array[step[k]] != NULL; /* by each element, or by one */
    if (computed && once && m->uses[step[k]] == 1) only |= 1u << k;
  }
  return only;
}

static void find_uses(making *m) {
  for (int s = 0; s < m->p->body; s++) {
    const scl_step *step = &m->p->step[s];
    if (step->kind != SCL_STEP_APPLY) continue;
    for (int k = 0; k < scl_op_arity((scl_op)step->op); k++) m->uses[step->arg[k]]++;
  }
  for (int k = 0; k < m->p->outputs; k++) m->uses[m->p->output[k].step] += 2;
}

/* op for each of few elements. */
static void emit_each(making *m, unsigned op, const uint16_t *step, double *to) {
  end_blocks(m);
  for (size_t i = 0; i < m->p->m; i++) {
    const double *arg[3] = {NULL, NULL, NULL};
    for (int k = 0; k < scl_op_operands(op); k++) {
      const double *array = m->array[step[k]];
      arg[k] = array != NULL ? array + i : m->number[step[k]];
    }
    emit_op(m->r, op, to + i, arg, only_uses(m, op, step));
  }
}

static scl_host_loop *add_loop(making *m, scl_host_loop_kind kind, double *to, bool to_moves) {
  scl_host_loop *loop = &m->blocks->loop[m->blocks->loops++];
  *loop = (scl_host_loop){.kind = kind, .to = to, .to_moves = to_moves};
  return loop;
}

/* A number of the plan; where it is an output, in its place. */
static void add_number(making *m, int step) {
  const scl_step *s = &m->p->step[step];
  const double *arg[3] = {NULL, NULL, NULL};
  double *to = m->p->m == 1 ? output_of(m, step) : NULL;
  if (to == NULL) to = take_numbers(m->r, 1);
  for (int k = 0; k < scl_op_arity((scl_op)s->op); k++) arg[k] = m->number[s->arg[k]];
  emit_op(m->r, s->op, to, arg, only_uses(m, s->op, s->arg));
  m->number[step] = to;
}

static void add_apply(making *m, int step) {
  const scl_step *s = &m->p->step[step];
  const int arity = scl_op_arity((scl_op)s->op);
  bool any = false;
  for (int k = 0; k < arity; k++) any = any || m->array[s->arg[k]] != NULL;
  if (!any) {
    add_number(m, step);
    return;
  }
  double *out = output_of(m, step), *to = out != NULL ? out : block_of(m, step);
  scl_vector_function *vectors = scl_vector_function_of((scl_op)s->op);
  if (m->p->m <= FEW_ROWS && vectors == NULL) {
    emit_each(m, s->op, s->arg, to);
  } else {
    scl_host_loop *loop = add_loop(m, vectors != NULL ? VECTORS : LOOP, to, out != NULL);
    for (int k = 0; k < arity; k++) take_operand(m, loop, k, s->arg[k]);
    loop->loop = scl_op_loop_of((scl_op)s->op);
    loop->vectors = vectors;
  }
  m->array[step] = to;
  m->moves[step] = out != NULL;
}

static void add_product(making *m, int step) {
  const scl_step *s = &m->p->step[step];
  const scl_leaf *x = &m->p->leaf[s->arg[0]];
  scl_host_loop *loop = add_loop(m, PRODUCT, block_of(m, step), false);
  loop->arg[0].array = leaf_at(x);
  loop->moves[0] = true;
  loop->columns = x->length;
  loop->ld = x->inner;
  loop->weight = leaf_at(&m->p->leaf[s->arg[1]]);
  m->array[step] = loop->to;
}

static void add_load(making *m, int step) {
  const int l = m->p->step[step].arg[0];
  const scl_leaf *leaf = &m->p->leaf[l];
  if (m->gathered[l] != NULL) {
    m->array[step] = m->gathered[l];
    return;
  }
  m->moves[step] = leaf->step_i == 1;
  (m->moves[step] ? m->array : m->number)[step] = leaf_at(leaf);
}

static void add_step(making *m, int step) {
  const scl_step *s = &m->p->step[step];
  double *number;
  switch (s->kind) {
  case SCL_STEP_LOAD:
    add_load(m, step);
    break;
  case SCL_STEP_NUMBER:
    m->number[step] = number = take_numbers(m->r, 1);
    if (number != NULL) *number = m->p->number[s->arg[0]];
    break;
  case SCL_STEP_MATVEC:
    add_product(m, step);
    break;
  default:
    add_apply(m, step);
    break;
  }
}

static void store_output(making *m, uint16_t step, double *to) {
  const bool number = m->array[step] == NULL;
  if (m->p->m <= FEW_ROWS) {
    if ((number ? m->number : m->array)[step] != to) emit_each(m, SCL_CODE_COPY, &step, to);
  } else if (m->array[step] != to) {
    take_operand(m, add_loop(m, number ? FILL : COPY, to, true), 0, step);
  }
}

/* The elements of this step are added up. */
static scl_host_total *add_total(making *m, uint16_t step, double *to) {
  if (m->array[step] == NULL) {
    take_operand(m, add_loop(m, FILL, block_of(m, step), false), 0, step);
    m->array[step] = block_of(m, step);
  }
  scl_host_total *total = &m->blocks->total[m->blocks->totals++];
  *total = (scl_host_total){.from = m->array[step], .moves = m->moves[step], .to = to};
  return total;
}

static void add_output(making *m, int k) {
  const scl_output *o = &m->p->output[k];
  double *to = scl_host_at(o->dst);
  if (!o->reduces) {
    if (!passes(m, k)) store_output(m, o->step, to);
    return;
  }
  scl_host_total *total = add_total(m, o->step, to);
  total->op = (scl_reduction)o->op;
  total->identity = scl_reduction_identity(total->op);
  if (!o->product) return;
  const scl_leaf *x = &m->p->leaf[o->first];
  total->x = leaf_at(x);
  total->columns = x->length;
  total->ld = x->inner;
}

/* ---- gathers and sums of a plan's elements -------------------------------------------------- */

/* Into memory, or into a block if only this plan reads it. */
static void add_gather(making *m, const scl_repeat *part, double *block) {
  double *to = scl_host_at(part->dst);
  int32_t *index = take(m->r, m->p->m * sizeof *index);
  for (int l = 0; l < m->p->leaves && block != NULL; l++) {
    if (leaf_at(&m->p->leaf[l]) == to) m->gathered[l] = block;
  }
  scl_host_loop *loop = add_loop(m, GATHER, block != NULL ? block : to, block == NULL);
  loop->arg[0].array = scl_host_at(part->src);
  loop->index = index;
  for (size_t i = 0; i < m->p->m && index != NULL; i++) {
    index[i] = (int32_t)scl_host_at(part->index)[i];
  }
}

static scl_host_groups *make_groups(const making *m, const scl_repeat *part) {
  struct scl_ready_plan *r = m->r;
  const size_t rows = m->p->m, groups = part->dst.nrow;
  int32_t *group = take(r, rows * sizeof *group);
  scl_host_groups *g = take(r, sizeof *g);
  if (r->failed) return NULL;
  scl_host_find_groups(part->index, part->order, group);
  *g = (scl_host_groups){.groups = groups, .group = group};
  const size_t runs = scl_host_count_runs(rows, m->stride, group);
  if (runs <= rows / LONG_RUN) {
    int32_t *of_run = take(r, runs * sizeof *of_run), *end = take(r, runs * sizeof *end);
    if (r->failed) return NULL;
    scl_host_list_runs(rows, m->stride, group, of_run, end);
    g->group = of_run;
    g->end = end;
  } else if (groups <= rows / SCL_GROUP_TURNS) {
    g->turns = take_numbers(r, SCL_GROUP_TURNS * groups);
  }
  return g;
}

static void add_sums(making *m, const scl_repeat *part) {
  const scl_output *o = m->p->output;
  while (scl_host_at(o->dst) != scl_host_at(part->src)) o++;
  add_total(m, o->step, scl_host_at(part->dst))->groups = make_groups(m, part);
}

static bool make_lists(making *m, size_t slots, size_t loops, size_t totals) {
  m->stride_of_blocks = m->stride + LINE;
  m->block = take_numbers(m->r, slots * m->stride_of_blocks + LINE);
  m->blocks = take(m->r, sizeof *m->blocks);
  scl_host_loop *loop = take(m->r, loops * sizeof *loop);
  scl_host_total *total = take(m->r, totals * sizeof *total);
  if (m->r->failed) return false;
  while ((uintptr_t)m->block % (LINE * sizeof(double)) != 0) m->block++; /* vectors in one line */
  m->blocks->rows = m->p->m;
  m->blocks->block = m->stride;
  m->blocks->loop = loop;
  m->blocks->total = total;
  return true;
}

/* Part k, a plan, with the parts that it computes too. */
static void add_plan(struct scl_ready_plan *r, const scl_repeat *part,
                     const scl_host_joined *joined, int k) {
  const scl_plan *p = part[k].plan;
  making m = {
      .p = p, .passing = joined[k].passing, .r = r, .stride = scl_min(p->m, scl_run_block_rows(p))};
  size_t more = 0, slot = (size_t)scl_give_slots(p, m.slot);
  for (int j = joined[k].first; j >= 0; j = joined[j].next) more++;
  const size_t totals = p->outputs + more;
  if (!make_lists(&m, slot + more, p->body + totals, totals)) return;
  find_uses(&m);
  for (int j = joined[k].first; j >= 0; j = joined[j].next) {
    if (part[j].call != SCL_REPEAT_GATHER) continue;
    add_gather(&m, &part[j], joined[j].passes ? m.block + slot++ * m.stride_of_blocks : NULL);
  }
  for (int s = 0; s < p->body; s++) add_step(&m, s);
  for (int o = 0; o < p->outputs; o++) add_output(&m, o);
  for (int j = joined[k].first; j >= 0; j = joined[j].next) {
    if (part[j].call == SCL_REPEAT_GROUP_SUMS) add_sums(&m, &part[j]);
  }
  end_blocks(&m);
}

/* ---- numbers and calls ---------------------------------------------------------------------- */

static void add_numbers(struct scl_ready_plan *r, const scl_numbers *n) {
  double *constant = take_numbers(r, (size_t)n->constants);
  if (r->failed) return;
  for (int k = 0; k < n->constants; k++) constant[k] = n->constant[k];
  for (int k = 0; k < n->steps; k++) {
    const scl_number_step *s = &n->step[k];
    double *at[4];
    for (int i = 0; i <= scl_op_operands(s->op); i++) {
      const int reg = i == 0 ? s->to : s->arg[i - 1], index = reg & ~SCL_REGISTER_KIND;
      const scl_number_place *place = &n->place[index];
      at[i] = (reg & SCL_REGISTER_KIND) == SCL_REGISTER_CONSTANT ? constant + index
              : (reg & SCL_REGISTER_KIND) == SCL_REGISTER_OTHER
                  ? r->other + index
                  : ((scl_host_buffer *)place->buffer)->data + place->at;
    }
    const double *arg[] = {at[1], at[2], at[3]};
    emit_op(r, s->op, at[0], arg, s->only);
  }
}

static bool can_take(const scl_repeat *part) {
  if (part->plan != NULL) return can_repeat(part->plan);
  return part->numbers != NULL ||
         (part->call != SCL_REPEAT_NOTHING && part->dst.ncol == 1 && part->dst.nrow <= MOST_ROWS);
}

static void add_part(struct scl_ready_plan *r, const scl_repeat *all, const scl_host_joined *joined,
                     int k) {
  const scl_repeat *part = &all[k];
  if (part->plan != NULL) {
    add_plan(r, all, joined, k);
  } else if (part->numbers != NULL) {
    add_numbers(r, part->numbers);
  } else {
    const bool sums = part->call == SCL_REPEAT_GROUP_SUMS;
    emit(r, (scl_host_code){.op = sums ? SCL_CODE_SUMS : SCL_CODE_GATHER,
                            .count = (uint32_t)part->dst.nrow,
                            .to = scl_host_at(part->dst),
                            .a = scl_host_at(part->src),
                            .b = scl_host_at(part->index),
                            .c = scl_host_at(part->order)});
  }
}

scl_status scl_host_expr_ready(scl_context *ctx, int count, const scl_repeat *part,
                               const scl_buffer *results, int *taken, struct scl_ready_plan **out) {
  int others = 0, parts = 0;
  (void)ctx;
  for (; parts < count && can_take(&part[parts]); parts++) {
    const scl_numbers *n = part[parts].numbers;
    if (n != NULL && n->others > others) others = n->others;
  }
  *out = NULL;
  *taken = parts;
  if (parts == 0) return SCL_OK;
  struct scl_ready_plan *r = calloc(1, sizeof *r);
  scl_host_joined *joined = malloc((size_t)parts * sizeof *joined);
  if (r == NULL || joined == NULL) {
    free(r);
    free(joined);
    return scl_fail_memory((size_t)parts * sizeof *joined, 0, "a program");
  }
  scl_host_join(parts, part, parts == count ? results : NULL, joined);
  r->other = take_numbers(r, (size_t)others);
  for (int k = 0; k < parts && !r->failed; k++) {
    if (joined[k].home < 0) add_part(r, part, joined, k);
  }
  free(joined);
  if (r->failed) {
    scl_host_expr_forget(r);
    return scl_fail_memory((size_t)parts * sizeof *part, 0, "a program");
  }
  *out = r;
  return SCL_OK;
}
