/* Parts of a plan, and the order of its elements. */
#include "engine/plan/plan.h"

#include <string.h>

void scl_plan_begin(scl_plan *p, size_t m, size_t n) {
  memset(p, 0, offsetof(scl_plan, step));
  p->m = m;
  p->n = n;
}

/* ---- parts ---------------------------------------------------------------------------------- */

int scl_plan_add_step(scl_plan *p, int first, scl_step_kind kind, unsigned op, int a, int b,
                      int c) {
  const scl_step step = {(uint8_t)kind, (uint8_t)op, {(uint16_t)a, (uint16_t)b, (uint16_t)c}};
  for (int s = first; s < p->steps; s++) {
    if (memcmp(&p->step[s], &step, sizeof step) == 0) return s;
  }
  if (p->steps == SCL_PLAN_STEPS) return SCL_PLAN_FULL;
  p->step[p->steps] = step;
  return p->steps++;
}

int scl_plan_add_number(scl_plan *p, double value) {
  for (int k = 0; k < p->numbers; k++) {
    if (memcmp(&p->number[k], &value, sizeof value) == 0) return k;
  }
  if (p->numbers == SCL_PLAN_NUMBERS) return SCL_PLAN_FULL;
  p->number[p->numbers] = value;
  return p->numbers++;
}

int scl_plan_add_rectangle(scl_plan *p, scl_rectangle r) {
  for (int k = 0; k < p->rectangles; k++) {
    if (memcmp(&p->rectangle[k], &r, sizeof r) == 0) return k;
  }
  if (p->rectangles == SCL_PLAN_RECTANGLES) return SCL_PLAN_FULL;
  p->rectangle[p->rectangles] = r;
  return p->rectangles++;
}

static scl_read read_of(const scl_plan *p, scl_leaf *leaf) {
  if (p->n == 1) leaf->step_j = 0;
  if (p->m == 1) leaf->step_i = 0;
  if (leaf->step_i == 0) return leaf->step_j == 0 ? SCL_READ_ONE : SCL_READ_ROW;
  if (leaf->step_j == 0) return leaf->step_i == 1 ? SCL_READ_COLUMN : SCL_READ_STRIDED;
  if (leaf->step_i == 1) return SCL_READ_MATRIX;
  return leaf->step_j == 1 ? SCL_READ_ACROSS : SCL_READ_STRIDED;
}

void scl_plan_set_read(const scl_plan *p, scl_leaf *leaf) {
  leaf->read = (uint8_t)read_of(p, leaf);
}

int scl_plan_add_leaf(scl_plan *p, scl_leaf leaf) {
  scl_plan_set_read(p, &leaf);
  for (int k = 0; k < p->leaves; k++) {
    const scl_leaf *l = &p->leaf[k];
    if (l->buffer == leaf.buffer && l->at == leaf.at && l->step_i == leaf.step_i &&
        l->step_j == leaf.step_j && l->inner == leaf.inner && l->length == leaf.length &&
        l->triangle == leaf.triangle && l->rectangle == leaf.rectangle) {
      return k;
    }
  }
  if (p->leaves == SCL_PLAN_LEAVES) return SCL_PLAN_FULL;
  p->leaf[p->leaves] = leaf;
  return p->leaves++;
}

int scl_plan_load(scl_plan *p, int first, scl_leaf leaf) {
  const int k = scl_plan_add_leaf(p, leaf);
  return k < 0 ? k : scl_plan_add_step(p, first, SCL_STEP_LOAD, 0, k, 0, 0);
}

int scl_plan_number(scl_plan *p, int first, double value) {
  const int k = scl_plan_add_number(p, value);
  return k < 0 ? k : scl_plan_add_step(p, first, SCL_STEP_NUMBER, 0, k, 0, 0);
}

int scl_plan_add_matrix(scl_plan *p, scl_block x) {
  return scl_plan_add_leaf(
      p,
      (scl_leaf){.buffer = x.buffer, .at = x.offset, .step_i = 1, .inner = x.ld, .length = x.ncol});
}

int scl_plan_product(scl_plan *p, int first, scl_block x, scl_block b) {
  const scl_leaf vector = {
      .buffer = b.buffer, .at = b.offset, .step_j = b.ld, .inner = 1, .length = x.ncol};
  const int k = scl_plan_add_matrix(p, x), l = scl_plan_add_leaf(p, vector);
  return k < 0 || l < 0 ? SCL_PLAN_FULL : scl_plan_add_step(p, first, SCL_STEP_MATVEC, 0, k, l, 0);
}

bool scl_plan_is_callable(const scl_plan *p) {
  enum { MOST_BYTES = 960 };
  return p->leaves * 32 + p->numbers * 8 + p->rectangles * 32 + p->outputs * 24 + 32 <= MOST_BYTES;
}

/* ---- the walk ------------------------------------------------------------------------------- */

/* One column instead of several, if no step needs the indices; `ld` is that of results. */
static void flatten(scl_plan *p, size_t ld) {
  if (p->n == 1 || p->margin != SCL_TOTAL || p->rectangles > 0 || p->triangle) return;
  for (int k = 0; k < p->outputs; k++) {
    if (!p->output[k].reduces && ld != p->m) return;
  }
  for (int s = 0; s < p->body; s++) {
    if (p->step[s].kind == SCL_STEP_INDEX || p->step[s].kind == SCL_STEP_MATVEC) return;
  }
  for (int k = 0; k < p->leaves; k++) {
    const scl_leaf *l = &p->leaf[k];
    const bool dense = l->read == SCL_READ_MATRIX && l->step_j == p->m && l->triangle == 0;
    if (!dense && l->read != SCL_READ_ONE) return;
  }
  for (int k = 0; k < p->leaves; k++) {
    if (p->leaf[k].read == SCL_READ_MATRIX) p->leaf[k].read = SCL_READ_COLUMN;
    p->leaf[k].step_j = 0;
  }
  p->m *= p->n;
  p->n = 1;
}

/* Indices and strides are less than 2^31 unless there are more elements than this. */
enum { MOST_NARROW = 1 << 30 };

/* Whether rows 2 i and 2 i + 1 of a leaf are adjacent and aligned. If their number is odd, a
 * product's matrix may be read one row too far: its columns start an even number of rows apart. */
static bool is_paired(const scl_plan *p, const scl_leaf *l) {
  const bool even = ((l->at | (l->length > 0 ? l->inner : p->m)) & 1) == 0;
  return even && l->read == SCL_READ_COLUMN && l->rectangle == 0;
}

/* Chooses the order in which elements are visited. */
static void choose_walk(scl_plan *p) {
  bool products = false, paired = true;
  p->wide = p->m > MOST_NARROW || p->n > MOST_NARROW;
  for (int k = 0; k < p->leaves; k++) {
    scl_leaf *l = &p->leaf[k];
    l->paired = is_paired(p, l);
    products = products || scl_leaf_takes_terms(l);
    if (scl_leaf_takes_terms(l)) paired = paired && l->paired;
  }
  const bool one_result = p->margin == SCL_TOTAL || !scl_plan_reduces(p);
  p->pairs = products && paired && p->n == 1 && p->m > 1 && one_result && !p->wide && p->pass == 0;
  for (int k = 0; k < p->leaves; k++) p->leaf[k].paired = p->leaf[k].paired && p->pairs;
}

void scl_plan_end(scl_plan *p, size_t ld) {
  flatten(p, ld);
  choose_walk(p);
}

void scl_plan_place(scl_plan *p, size_t k, scl_block dst) {
  scl_output *o = &p->output[k];
  if (o->reduces) {
    const size_t length = dst.nrow * dst.ncol;
    o->dst = (scl_block){dst.buffer, dst.offset, length, length, 1, dst.type};
  } else {
    o->dst = (scl_block){dst.buffer, dst.offset, p->n == 1 ? p->m : dst.ld, p->m, p->n, dst.type};
  }
}

/* ---- facts ---------------------------------------------------------------------------------- */

bool scl_plan_reads_across(const scl_plan *p) {
  for (int k = 0; k < p->leaves; k++) {
    if (p->leaf[k].read == SCL_READ_ACROSS) return true;
  }
  return false;
}

bool scl_plan_reduces(const scl_plan *p) {
  for (int k = 0; k < p->outputs; k++) {
    if (p->output[k].reduces) return true;
  }
  return false;
}

/* Whether any expression calls a function whose name starts with this prefix. */
static bool calls(const scl_plan *p, const char *prefix) {
  for (int s = 0; s < p->steps; s++) {
    const scl_step *step = &p->step[s];
    if (step->kind == SCL_STEP_APPLY && strstr(scl_ops[step->op].expression, prefix) != NULL) {
      return true;
    }
  }
  return false;
}

bool scl_plan_is_special(const scl_plan *p) {
  return calls(p, "special_") || scl_plan_is_incomplete(p) || scl_plan_is_bessel(p);
}

bool scl_plan_is_incomplete(const scl_plan *p) {
  return calls(p, "incomplete_");
}

bool scl_plan_is_bessel(const scl_plan *p) {
  return calls(p, "bessel_");
}

bool scl_plan_is_tiled(const scl_plan *p, int leaf) {
  int before = 0;
  if (p->leaf[leaf].read != SCL_READ_ACROSS || scl_plan_reduces(p)) return false;
  for (int k = 0; k < leaf; k++) before += p->leaf[k].read == SCL_READ_ACROSS;
  return before < SCL_PLAN_TILES;
}

bool scl_plan_has_tiles(const scl_plan *p) {
  for (int k = 0; k < p->leaves; k++) {
    if (scl_plan_is_tiled(p, k)) return true;
  }
  return false;
}

static _Atomic uint64_t built;

void scl_plan_count_built(void) {
  built++;
}

uint64_t scl_plans_built(void) {
  return built;
}
