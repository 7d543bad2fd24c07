/* Stages and groups.
 *
 * A value is computed at the first stage at which its operands can be read. A stored operand can be
 * read one stage after it was computed; one that the same kernel computes, over the same elements,
 * at the same stage. Values over the same elements that read each other at one stage form a group.
 * So derivatives, which read what the values read, mostly share the values' kernel.
 *
 * All elements of a kernel have one shape, and all its reductions one margin. Where they conflict,
 * one value waits for the next stage and reads the other from memory. */
#include "program/schedule.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1, UNSET = -1 };

/* A group under construction, identified by the first of its values. */
typedef struct {
  int stage, margin;
  size_t elements, rows;
} cluster;

typedef struct {
  const scl_lowered *l;
  const scl_tape *t;
  int *stage;     /* of each computed value */
  int *leader;    /* union-find among values of kernels */
  cluster *about; /* of a leader */
  int *least;     /* the first stage at which each value may be computed */
} scheduling;

static int leader_of(scheduling *s, int v) {
  while (s->leader[v] != v) {
    s->leader[v] = s->leader[s->leader[v]];
    v = s->leader[v];
  }
  return v;
}

static bool in_kernel(const scl_value *v) {
  return scl_how(v) == SCL_IS_STEP || scl_how(v) == SCL_IS_TOTAL;
}

static size_t elements_of(const scl_tape *t, int v) {
  return scl_how(&t->value[v]) == SCL_IS_TOTAL ? scl_tape_length(t, scl_tape_operand(t, v, 0))
                                               : scl_tape_length(t, v);
}

/* The first stage at which a value can be read from memory. */
static int readable(const scheduling *s, int v) {
  v = scl_root(s->t, v);
  if (scl_how(&s->t->value[v]) == SCL_IS_VIEW) return readable(s, scl_tape_operand(s->t, v, 0));
  return scl_how(&s->t->value[v]) == SCL_IS_LEAF ? 0 : s->stage[v] + 1;
}

/* Whether operand x of v may be computed in v's kernel, which has `elements` elements. */
static bool may_join(const scheduling *s, int v, int x, size_t elements) {
  return s->t->value[v].kind != SCL_VALUE_MATVEC && scl_how(&s->t->value[x]) == SCL_IS_STEP &&
         scl_tape_length(s->t, x) == elements;
}

/* The cluster of a value together with what it joins; false if they disagree. */
static bool combine_clusters(cluster *c, const cluster *other) {
  if (c->rows != 0 && other->rows != 0 && c->rows != other->rows) return false;
  if (c->margin != UNSET && other->margin != UNSET && c->margin != other->margin) return false;
  if (c->rows == 0) c->rows = other->rows;
  if (c->margin == UNSET) c->margin = other->margin;
  return true;
}

/* The shape of the elements that the value, and the views that it reads, need. */
static cluster cluster_of(const scheduling *s, int v) {
  const scl_value *value = &s->t->value[v];
  const bool total = scl_how(value) == SCL_IS_TOTAL;
  cluster c = {.margin = total ? (int)value->at[2] : UNSET,
               .elements = elements_of(s->t, v),
               .rows = scl_rows_needed(value)};
  for (int k = 0; k < value->operands; k++) {
    const scl_value *x = &s->t->value[scl_tape_operand(s->t, v, k)];
    if (scl_how(x) == SCL_IS_VIEW && scl_rows_needed(x) != 0) c.rows = scl_rows_needed(x);
  }
  return c;
}

static void place_in_kernel(scheduling *s, int v) {
  const scl_tape *t = s->t;
  const scl_value *value = &t->value[v];
  cluster c = cluster_of(s, v), together;
  int stage = s->least[v], joined = NONE, stage_apart = stage;
  for (int k = 0; k < value->operands; k++) {
    const int x = scl_tape_operand(t, v, k);
    const bool may = may_join(s, v, x, c.elements);
    const int at = may ? s->stage[x] : readable(s, x);
    if (at > stage) stage = at;
    if (readable(s, x) > stage_apart) stage_apart = readable(s, x);
  }
  together = c;
  for (int k = 0; k < value->operands; k++) {
    const int x = scl_tape_operand(t, v, k);
    if (!may_join(s, v, x, c.elements) || s->stage[x] != stage) continue;
    if (!combine_clusters(&together, &s->about[leader_of(s, x)])) {
      stage = stage_apart; /* none is joined */
      together = c;
      break;
    }
  }
  s->leader[v] = v;
  s->stage[v] = stage;
  for (int k = 0; k < value->operands; k++) {
    const int x = scl_tape_operand(t, v, k);
    if (!may_join(s, v, x, c.elements) || s->stage[x] != stage) continue;
    joined = leader_of(s, x);
    s->leader[joined] = v;
  }
  together.stage = stage;
  s->about[v] = together;
}

/* A call; or a concat, which is complete when the last of its operands is. */
static void schedule_call(scheduling *s, int v) {
  const bool layout = scl_how(&s->t->value[v]) == SCL_IS_LAYOUT;
  int stage = 0;
  for (int k = 0; k < s->t->value[v].operands; k++) {
    const int at = readable(s, scl_tape_operand(s->t, v, k)) - (layout ? 1 : 0);
    if (at > stage) stage = at;
  }
  s->stage[v] = stage;
}

static void schedule_all(scheduling *s) {
  for (int v = 0; v < s->t->values; v++) {
    const scl_value_how how = scl_how(&s->t->value[v]);
    if (in_kernel(&s->t->value[v])) place_in_kernel(s, v);
    if (how == SCL_IS_CALL || how == SCL_IS_LAYOUT) schedule_call(s, v);
  }
}

/* ---- passes ---------------------------------------------------------------------------------
 *
 * X' r shares a kernel with X b if r and X b have one stage. So all values from which r is
 * computed, X b too, wait until r can be computed. If one of them needs all of X b, the two
 * products have separate kernels. */

static bool is_adjoint(const scheduling *s, int v) {
  return s->t->value[v].kind == SCL_VALUE_MATVEC_ADJOINT;
}

/* The last stage of an r with the matrix of X' r, by stages without waiting. */
static int stage_of_slopes(const scheduling *s, const int *asap, int adjoint) {
  int stage = 0;
  for (int v = 0; v < s->t->values; v++) {
    if (!is_adjoint(s, v)) continue;
    const int r = scl_tape_operand(s->t, v, 0);
    const bool same = scl_tape_operand(s->t, v, 1) == scl_tape_operand(s->t, adjoint, 1);
    if (same && asap[r] > stage) stage = asap[r];
  }
  return stage;
}

/* The values from which the r of X' r is computed wait for this stage. */
static void wait_for(scheduling *s, int adjoint, int stage, bool *reached) {
  const int r = scl_tape_operand(s->t, adjoint, 0);
  memset(reached, 0, (size_t)r + 1);
  reached[r] = true;
  for (int v = r; v >= 0; v--) {
    if (!reached[v]) continue;
    if (s->least[v] < stage) s->least[v] = stage;
    for (int k = 0; k < s->t->value[v].operands; k++) {
      const int x = scl_tape_operand(s->t, v, k);
      if (may_join(s, v, x, scl_tape_length(s->t, r))) reached[x] = true;
    }
  }
}

/* Whether the matrix of X' r has a product at another stage than r. */
static bool is_apart(const scheduling *s, int adjoint) {
  const int stage = s->stage[scl_tape_operand(s->t, adjoint, 0)];
  for (int v = 0; v < adjoint; v++) {
    if (s->t->value[v].kind == SCL_VALUE_MATVEC && s->stage[v] != stage &&
        scl_tape_operand(s->t, v, 0) == scl_tape_operand(s->t, adjoint, 1)) {
      return true;
    }
  }
  return false;
}

/* Schedules all values again until no value waits without effect. */
static scl_status schedule_passes(scheduling *s) {
  const size_t values = (size_t)s->t->values;
  int *asap = malloc(values * sizeof *asap);
  bool *reached = calloc(values, sizeof *reached), *apart = calloc(values, sizeof *apart);
  bool again = asap != NULL && reached != NULL && apart != NULL;
  const scl_status status = again ? SCL_OK : scl_fail_memory(values * sizeof *asap, 0, "a program");
  if (again) memcpy(asap, s->stage, values * sizeof *asap);
  while (again) {
    again = false;
    memset(s->least, 0, values * sizeof *s->least);
    for (int v = 0; v < s->t->values; v++) {
      if (is_adjoint(s, v) && !apart[v]) wait_for(s, v, stage_of_slopes(s, asap, v), reached);
    }
    schedule_all(s);
    for (int v = 0; v < s->t->values; v++) {
      if (!is_adjoint(s, v) || apart[v] || !is_apart(s, v)) continue;
      apart[v] = again = true;
    }
  }
  free(asap);
  free(reached);
  free(apart);
  return status;
}

static bool has_adjoints(const scheduling *s) {
  for (int v = 0; v < s->t->values; v++) {
    if (is_adjoint(s, v)) return true;
  }
  return false;
}

/* ---- groups --------------------------------------------------------------------------------- */

/* Clusters that may be one kernel have equal keys: scalars, or elements of one shape, at one
 * stage. */
static int compare(const scl_group *a, const scl_group *b) {
  if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
  if (a->elements != b->elements) return a->elements < b->elements ? -1 : 1;
  if (a->rows != b->rows) return a->rows < b->rows ? -1 : 1;
  if (a->margin != b->margin) return a->margin < b->margin ? -1 : 1;
  return a->first - b->first; /* of the leader, until groups are formed */
}

static int compare_groups(const void *a, const void *b) {
  return compare(a, b);
}

static bool may_be_one(const scl_group *a, const scl_group *b) {
  return a->elements == b->elements && a->elements != 0 && a->stage == b->stage &&
         a->rows == b->rows && a->margin == b->margin;
}

/* One group for each cluster and each call, `first` being its leader. */
static int list_groups(scheduling *s, scl_group *group) {
  int groups = 0;
  for (int v = 0; v < s->t->values; v++) {
    const scl_value_how how = scl_how(&s->t->value[v]);
    if (how == SCL_IS_CALL) {
      group[groups++] = (scl_group){.first = v, .stage = s->stage[v]};
    } else if (in_kernel(&s->t->value[v]) && leader_of(s, v) == v && s->about[v].elements > 0) {
      const cluster *c = &s->about[v];
      group[groups++] =
          (scl_group){.first = v,
                      .stage = c->stage,
                      .elements = c->elements,
                      .rows = c->rows,
                      .margin = c->margin == UNSET ? SCL_TOTAL : (scl_margin)c->margin};
    }
  }
  return groups;
}

/* Merges the groups that may be one kernel. Returns the number of groups left; number[]: of each
 * leader's group. */
static int merge_groups(scl_group *group, int groups, int *number) {
  int merged = 0;
  for (int g = 0; g < groups; g++) {
    number[group[g].first] =
        merged > 0 && may_be_one(&group[merged - 1], &group[g]) ? merged - 1 : merged;
    if (number[group[g].first] == merged) group[merged++] = group[g];
  }
  return merged;
}

/* Fills the list of values, group after group, each in the order of the tape. */
static void list_values(scheduling *s, const int *number, scl_schedule *out) {
  const int values = s->t->values;
  for (int g = 0; g < out->groups; g++) out->group[g].count = 0;
  for (int v = 0; v < values; v++) {
    const scl_value *value = &s->t->value[v];
    const bool computed = scl_how(value) == SCL_IS_CALL || in_kernel(value);
    out->group_of[v] = NONE;
    if (!computed || elements_of(s->t, v) == 0) continue;
    out->group_of[v] = number[in_kernel(value) ? leader_of(s, v) : v];
    out->group[out->group_of[v]].count++;
  }
  int first = 0;
  for (int g = 0; g < out->groups; g++) {
    out->group[g].first = first;
    first += out->group[g].count;
    out->group[g].count = 0;
  }
  for (int v = 0; v < values; v++) {
    if (out->group_of[v] == NONE) continue;
    scl_group *g = &out->group[out->group_of[v]];
    out->value[g->first + g->count++] = v;
  }
}

scl_status scl_schedule_make(const scl_lowered *l, scl_schedule *out) {
  const scl_tape *t = &l->tape;
  const size_t values = (size_t)t->values;
  scheduling s = {.l = l, .t = t};
  int *number = malloc(values * sizeof *number);
  scl_status status = SCL_OK;
  memset(out, 0, sizeof *out);
  s.stage = calloc(values, sizeof *s.stage);
  s.leader = calloc(values, sizeof *s.leader);
  s.about = calloc(values, sizeof *s.about);
  s.least = calloc(values, sizeof *s.least);
  out->value = malloc(values * sizeof *out->value);
  out->group = malloc(values * sizeof *out->group);
  out->group_of = malloc(values * sizeof *out->group_of);
  if (number == NULL || s.stage == NULL || s.leader == NULL || s.about == NULL || s.least == NULL ||
      out->value == NULL || out->group == NULL || out->group_of == NULL) {
    status = scl_fail_memory(values * sizeof *out->group, 0, "a program");
    scl_schedule_end(out);
    goto done;
  }
  schedule_all(&s);
  if (has_adjoints(&s)) SCL_GO(schedule_passes(&s));
  out->groups = list_groups(&s, out->group);
  qsort(out->group, (size_t)out->groups, sizeof *out->group, compare_groups);
  out->groups = merge_groups(out->group, out->groups, number);
  list_values(&s, number, out);
done:
  free(number);
  free(s.stage);
  free(s.leader);
  free(s.about);
  free(s.least);
  return status;
}

void scl_schedule_end(scl_schedule *s) {
  free(s->value);
  free(s->group);
  free(s->group_of);
  memset(s, 0, sizeof *s);
}
