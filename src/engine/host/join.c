#include "engine/host/join.h"

enum {
  NONE = -1,
  LEAST_ROWS = 16, /* for which it pays */
  FAR = 64         /* parts between a part and its home, and those that might read a result */
};

/* ---- memory --------------------------------------------------------------------------------- */

/* Numbers in memory; and what a part does with them. */
typedef struct {
  const double *from, *end;
} span;
enum { READS = 1, WRITES = 2, COVERS = 4 /* writes all of them */ };

static span span_of(scl_block b) {
  const double *at = scl_host_at(b);
  return (span){at, at + b.nrow};
}

static bool meet(span a, span b) {
  return a.from < b.end && b.from < a.end;
}

static unsigned writes(span s, span to) {
  if (!meet(s, to)) return 0;
  return to.from <= s.from && s.end <= to.end ? WRITES | COVERS : WRITES;
}

static span of_leaf(const scl_plan *p, const scl_leaf *l) {
  const double *at = ((const scl_host_buffer *)l->buffer)->data + l->at;
  const size_t terms = l->length > 0 ? (l->length - 1) * l->inner : 0;
  return (span){at, at + (p->m - 1) * l->step_i + terms + 1};
}

static unsigned by_plan(const scl_plan *p, span s) {
  unsigned all = 0;
  for (int k = 0; k < p->leaves; k++) all |= meet(s, of_leaf(p, &p->leaf[k])) ? READS : 0;
  for (int k = 0; k < p->outputs; k++) all |= writes(s, span_of(p->output[k].dst));
  return all;
}

static unsigned by_numbers(const scl_numbers *n, span s) {
  unsigned all = 0;
  for (int k = 0; k < n->steps; k++) {
    const scl_number_step *step = &n->step[k];
    for (int i = -1; i < scl_op_operands(step->op); i++) {
      const int reg = i < 0 ? step->to : step->arg[i], index = reg & ~SCL_REGISTER_KIND;
      if ((reg & SCL_REGISTER_KIND) != SCL_REGISTER_PLACE) continue;
      const scl_number_place *place = &n->place[index];
      const double *at = ((const scl_host_buffer *)place->buffer)->data + place->at;
      if (meet(s, (span){at, at + 1})) all |= i < 0 ? WRITES : READS;
    }
  }
  return all;
}

/* What a part does with the numbers, at its own place. */
static unsigned does(const scl_repeat *part, span s) {
  if (part->plan != NULL) return by_plan(part->plan, s);
  if (part->numbers != NULL) return by_numbers(part->numbers, s);
  return writes(s, span_of(part->dst)) | (meet(s, span_of(part->src)) ? READS : 0);
}

/* The same with the parts that it computes too. */
static unsigned does_with_joined(const scl_repeat *part, const scl_host_joined *joined, int k,
                                 span s) {
  unsigned all = does(&part[k], s);
  for (int j = joined[k].first; j != NONE; j = joined[j].next) all |= does(&part[j], s);
  return all;
}

/* ---- homes ---------------------------------------------------------------------------------- */

static bool is_call(const scl_repeat *part, scl_repeat_call call, size_t rows) {
  return part->plan == NULL && part->numbers == NULL && part->call == call && rows >= LEAST_ROWS;
}

/* Whether the plan reads these numbers row by row, and no others of them. */
static bool reads_rows(const scl_plan *p, scl_block x) {
  const span s = span_of(x);
  for (int k = 0; k < p->leaves; k++) {
    const scl_leaf *l = &p->leaf[k];
    const span of = of_leaf(p, l);
    if (meet(s, of) && (of.from != s.from || l->step_i != 1 || l->length > 0)) return false;
  }
  return p->m == x.nrow;
}

/* The output that is these numbers, row by row, or NONE. */
static int output_of(const scl_plan *p, scl_block x) {
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    if (!o->reduces && scl_host_at(o->dst) == scl_host_at(x) && p->m == x.nrow) return k;
  }
  return NONE;
}

/* The next plan, if it is the first part to touch the result. */
static int home_of_gather(int parts, const scl_repeat *part, int g) {
  const span from = span_of(part[g].src), to = span_of(part[g].dst);
  for (int k = g + 1; k < parts && k - g < FAR; k++) {
    const unsigned touched = does(&part[k], to);
    if ((does(&part[k], from) & WRITES) != 0 || (touched & WRITES) != 0) return NONE;
    if (touched == 0) continue;
    return part[k].plan != NULL && reads_rows(part[k].plan, part[g].dst) ? k : NONE;
  }
  return NONE;
}

/* The plan that made what is summed, if nothing in between touches the sums. */
static int home_of_sums(const scl_repeat *part, const scl_host_joined *joined, int s) {
  const span from = span_of(part[s].src), to = span_of(part[s].dst);
  for (int k = s - 1; k >= 0 && s - k < FAR; k--) {
    if (does_with_joined(part, joined, k, to) != 0) return NONE;
    if ((does(&part[k], from) & WRITES) == 0) continue;
    return part[k].plan != NULL && output_of(part[k].plan, part[s].src) != NONE ? k : NONE;
  }
  return NONE;
}

static void move(scl_host_joined *joined, int part, int home) {
  joined[part].home = home;
  if (home == NONE) return;
  joined[part].next = joined[home].first;
  joined[home].first = part;
}

/* ---- results that are not stored ------------------------------------------------------------ */

/* Whether something reads these numbers after part `home`, other than the sums that it computes. */
static bool is_read_after(int parts, const scl_repeat *part, const scl_host_joined *joined,
                          int home, span s) {
  for (int k = home + 1; k < parts; k++) {
    const unsigned touched = does(&part[k], s);
    if (k - home == FAR) return true;
    if ((touched & READS) != 0 && joined[k].home != home) return true;
    if ((touched & COVERS) != 0) break;
  }
  return false;
}

static void find_passing(int parts, const scl_repeat *part, const scl_buffer *results,
                         scl_host_joined *joined, int plan) {
  const scl_plan *p = part[plan].plan;
  for (int j = joined[plan].first; j != NONE; j = joined[j].next) {
    const bool gather = part[j].call == SCL_REPEAT_GATHER;
    const scl_block x = gather ? part[j].dst : part[j].src;
    if (x.buffer == results || is_read_after(parts, part, joined, plan, span_of(x))) continue;
    if (gather) {
      joined[j].passes = true;
    } else {
      joined[plan].passing |= 1u << output_of(p, x);
    }
  }
}

void scl_host_join(int parts, const scl_repeat *part, const scl_buffer *results,
                   scl_host_joined *joined) {
  for (int k = 0; k < parts; k++) joined[k] = (scl_host_joined){NONE, NONE, NONE, false, 0};
  for (int k = 0; k < parts; k++) {
    if (!is_call(&part[k], SCL_REPEAT_GATHER, part[k].dst.nrow)) continue;
    move(joined, k, home_of_gather(parts, part, k));
  }
  for (int k = 0; k < parts; k++) {
    if (!is_call(&part[k], SCL_REPEAT_GROUP_SUMS, part[k].src.nrow)) continue;
    move(joined, k, home_of_sums(part, joined, k));
  }
  for (int k = 0; k < parts && results != NULL; k++) {
    if (joined[k].first != NONE) find_passing(parts, part, results, joined, k);
  }
}
