#include "program/lower.h"

#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"

enum { NONE = -1 };

typedef struct {
  const scl_tape *from;
  scl_lowered *to;
  int *moved;    /* of each old value: its new one */
  int room;      /* of holder and offset */
  size_t copies; /* distinguishes copies of one value */
  int *keeper;   /* of each SCAN: the live one that keeps its states as well, or NONE */
  int *uses;     /* of each old value: its readers, but sums of one with a factor */
  scl_pass_limits pass;
} lowering;

size_t scl_rows_needed(const scl_value *v) {
  switch (v->kind) {
  case SCL_VALUE_BROADCAST: /* of one element: any shape */
    return v->at[0] == 1 && v->at[2] == 0 ? 0 : v->at[0];
  case SCL_VALUE_TRANSPOSE:
    return v->at[1];
  case SCL_VALUE_PART: /* a part of a row is read as a column with gaps */
    return v->at[3] == 1 || v->at[4] == 1 ? 0 : v->at[3];
  case SCL_VALUE_REDUCE:
    return v->at[2] == SCL_TOTAL ? 0 : v->at[0];
  case SCL_VALUE_MATVEC: /* one column */
  case SCL_VALUE_MATVEC_ADJOINT:
    return v->at[0];
  default:
    return 0;
  }
}

/* ---- live values ---------------------------------------------------------------------------- */

static void mark_live(const scl_tape *t, int outputs, const int *output, int *moved) {
  for (int v = 0; v < t->values; v++) moved[v] = NONE;
  for (int k = 0; k < outputs; k++) moved[output[k]] = 0;
  for (int v = t->values - 1; v >= 0; v--) {
    if (moved[v] == NONE) continue;
    for (int k = 0; k < t->value[v].operands; k++) moved[scl_tape_operand(t, v, k)] = 0;
  }
}

/* ---- factors of sums ------------------------------------------------------------------------ */

/* The place of the factor s, one number, among the operands of x s or x / s; NONE for other
 * values. */
static int factor_of(const scl_tape *t, int value) {
  const scl_value *v = &t->value[value];
  if (v->kind != SCL_VALUE_APPLY || (v->op != SCL_OP_MUL && v->op != SCL_OP_DIV)) return NONE;
  for (int k = v->op == SCL_OP_DIV; k < 2; k++) {
    if (v->length > 1 && scl_tape_length(t, scl_tape_operand(t, value, k)) == 1) return k;
  }
  return NONE;
}

/* The place of the operand of which `value` is the sum, or X' r; NONE for other values. */
static int summed_of(const scl_tape *t, int value) {
  const scl_value *v = &t->value[value];
  if (v->kind == SCL_VALUE_REDUCE && v->op == SCL_REDUCE_SUM && v->at[2] == SCL_TOTAL) return 0;
  return v->kind == SCL_VALUE_MATMUL && v->at[3] != 0 && v->at[4] == 0 && v->at[2] == 1 ? 1 : NONE;
}

/* A value that is only summed, and has a factor, is not computed. */
static void take_factors(lowering *w, int outputs, const int *output) {
  const scl_tape *t = w->from;
  if (!w->pass.factors) return;
  for (int k = 0; k < outputs; k++) w->uses[output[k]]++;
  for (int v = 0; v < t->values; v++) {
    const int summed = summed_of(t, v);
    for (int k = 0; w->moved[v] != NONE && k < t->value[v].operands; k++) {
      const int x = scl_tape_operand(t, v, k);
      w->uses[x] += k != summed || factor_of(t, x) == NONE;
    }
  }
  for (int v = 0; v < t->values; v++) {
    if (factor_of(t, v) != NONE && w->uses[v] == 0) w->moved[v] = NONE;
  }
}

/* ---- operands ------------------------------------------------------------------------------- */

static int add_value(lowering *w, scl_value v, const int *operand) {
  scl_tape *t = &w->to->tape;
  const int value = scl_tape_add_value(t, v, operand);
  if (t->status != SCL_OK) return 0;
  if (value >= w->room) {
    int room = w->room;
    scl_tape_grow(t, &w->to->holder, &room, value, 1, sizeof *w->to->holder);
    for (int k = w->room; k < room; k++) w->to->holder[k] = NONE;
    if (!scl_tape_grow(t, &w->to->offset, &w->room, value, 1, sizeof *w->to->offset)) return 0;
  }
  return value;
}

static int add_copy(lowering *w, int x) {
  const scl_value v = {.kind = SCL_VALUE_COPY,
                       .operands = 1,
                       .at = {++w->copies},
                       .length = scl_tape_length(&w->to->tape, x)};
  return add_value(w, v, &x);
}

static bool has_storage(const scl_tape *t, int value) {
  const scl_value *v = &t->value[scl_root(t, value)];
  return v->kind != SCL_VALUE_NUMBER && scl_how(v) != SCL_IS_VIEW;
}

static int with_storage(lowering *w, int x) {
  return w->to->tape.status != SCL_OK || has_storage(&w->to->tape, x) ? x : add_copy(w, x);
}

/* Copies of the views whose shape is not that of the first view. */
static void match_shapes(lowering *w, scl_value *v, int *operand) {
  const scl_tape *t = &w->to->tape;
  size_t rows = scl_rows_needed(v);
  for (int k = 0; k < v->operands && t->status == SCL_OK; k++) {
    const size_t here = scl_rows_needed(&t->value[operand[k]]);
    if (scl_how(&t->value[operand[k]]) != SCL_IS_VIEW || here == 0) continue;
    if (rows == 0) rows = here;
    if (rows != here) operand[k] = add_copy(w, operand[k]);
  }
}

/* A product of a transposed matrix takes the matrix itself. */
static void take_transposed(const scl_tape *t, scl_value *v, int *operand, int k) {
  const scl_value *x = &t->value[operand[k]];
  if (x->kind != SCL_VALUE_TRANSPOSE) return;
  const size_t stored_rows = v->at[3 + k] != 0 ? v->at[k + 1] : v->at[k];
  if (x->at[1] != stored_rows) return;
  v->at[3 + k] = v->at[3 + k] == 0;
  operand[k] = scl_tape_operand(t, operand[k], 0);
}

/* Whether a kernel may have X b and X' r of data X with this number of rows. */
static bool may_pass(const lowering *w, int x, size_t rows, size_t columns, size_t vectors) {
  const scl_tape *t = &w->to->tape;
  return rows >= w->pass.rows && columns <= w->pass.columns && vectors <= w->pass.vectors &&
         t->value[scl_root(t, x)].kind == SCL_VALUE_DATA;
}

/* Whether the old tape has the X' r that belongs to the product `value` of several vectors. */
static bool has_adjoint(const lowering *w, int value) {
  const scl_tape *t = w->from;
  const size_t *at = t->value[value].at;
  for (int v = value + 1; v < t->values; v++) {
    const size_t *of = t->value[v].at;
    if (t->value[v].kind == SCL_VALUE_MATMUL && w->moved[v] != NONE && of[0] == at[1] &&
        of[1] == at[0] && of[2] == at[2] && of[3] != 0 &&
        scl_tape_operand(t, v, 0) == scl_tape_operand(t, value, 0)) {
      return true;
    }
  }
  return false;
}

/* A product of a matrix with many rows and a column is computed in the kernel that uses it, as in
 * graph/evaluate.c; with several columns only if the kernel may have X' r too. */
static void become_matvec(const lowering *w, int value, scl_value *v, const int *operand) {
  const size_t m = v->at[0], k = v->at[1], n = v->at[2];
  if (v->at[3] != 0 || m < (k <= w->pass.columns ? w->pass.rows : w->pass.fused) || n == 0) return;
  if (n > 1 && (v->at[4] != 0 || !may_pass(w, operand[0], m, k, n) || !has_adjoint(w, value))) {
    return;
  }
  const size_t at[SCL_VALUE_ATTRIBUTES] = {m, k, n};
  v->kind = SCL_VALUE_MATVEC;
  memcpy(v->at, at, sizeof at);
}

/* Whether the new tape has the product of this matrix and `columns` columns. */
static bool has_matvec(const scl_tape *t, int matrix, size_t columns) {
  for (int v = 0; v < t->values; v++) {
    if (t->value[v].kind == SCL_VALUE_MATVEC && scl_tape_operand(t, v, 0) == matrix &&
        t->value[v].at[2] == columns) {
      return true;
    }
  }
  return false;
}

/* X' r where r is made of X b: in the same kernel, if program/fuse.c finds that possible. */
static void become_adjoint(const lowering *w, scl_value *v, int *operand) {
  const scl_tape *t = &w->to->tape;
  const size_t m = v->at[1], k = v->at[0], n = v->at[2];
  const int matrix = operand[0], r = operand[1];
  if ((v->at[3] == 0 && k != 1) || (v->at[4] != 0 && n != 1)) return;
  if (!may_pass(w, matrix, m, k, n) || !has_matvec(t, matrix, n)) return;
  if (t->value[r].kind != SCL_VALUE_APPLY || t->value[r].length != m * n) return;
  const size_t at[SCL_VALUE_ATTRIBUTES] = {m, k, n == 1 ? SCL_TOTAL : SCL_BY_COLUMN, n};
  v->kind = SCL_VALUE_MATVEC_ADJOINT;
  memcpy(v->at, at, sizeof at);
  operand[0] = r;
  operand[1] = matrix;
}

/* The operands of a concat: computed where the concat has them, which an operand can be once. */
static void hold_operands(lowering *w, int concat) {
  scl_lowered *to = w->to;
  size_t offset = 0;
  for (int k = 0; k < to->tape.value[concat].operands; k++) {
    const int x = scl_tape_operand(&to->tape, concat, k);
    to->holder[x] = concat;
    to->offset[x] = offset;
    offset += scl_tape_length(&to->tape, x);
  }
}

static bool can_be_held(const lowering *w, const int *operand, int k) {
  const int x = operand[k];
  const scl_value_how how = scl_how(&w->to->tape.value[x]);
  if (how == SCL_IS_LEAF || how == SCL_IS_VIEW) return false;
  for (int j = 0; j < k; j++) {
    if (operand[j] == x) return false;
  }
  return w->to->holder[x] == NONE;
}

static int add_concat(lowering *w, scl_value v, int *operand) {
  for (int k = 0; k < v.operands && w->to->tape.status == SCL_OK; k++) {
    if (!can_be_held(w, operand, k)) operand[k] = add_copy(w, operand[k]);
  }
  const int value = add_value(w, v, operand);
  if (w->to->tape.status == SCL_OK) hold_operands(w, value);
  return value;
}

/* ---- scans ---------------------------------------------------------------------------------- */

static bool same_scan(const scl_tape *t, int v, int w) {
  const scl_value *a = &t->value[v], *b = &t->value[w];
  return a->kind == SCL_VALUE_SCAN && a->at[4] == 0 &&
         memcmp(a->at, b->at, 4 * sizeof *a->at) == 0 &&
         memcmp(t->operand + a->first, t->operand + b->first,
                (size_t)a->operands * sizeof *t->operand) == 0;
}

/* A gradient runs a scan again to keep its states: one run then suffices. */
static void find_keepers(lowering *w) {
  const scl_tape *t = w->from;
  for (int v = 0; v < t->values; v++) w->keeper[v] = NONE;
  for (int k = 0; k < t->values; k++) {
    if (w->moved[k] == NONE || t->value[k].kind != SCL_VALUE_SCAN || t->value[k].at[4] == 0)
      continue;
    for (int v = 0; v < k; v++) {
      if (w->moved[v] != NONE && same_scan(t, v, k)) w->keeper[v] = k;
    }
  }
}

/* ---- values --------------------------------------------------------------------------------- */

static int lower_operands(lowering *w, int value, scl_value v, int *operand) {
  if (v.kind == SCL_VALUE_MATMUL) {
    take_transposed(&w->to->tape, &v, operand, 0);
    take_transposed(&w->to->tape, &v, operand, 1);
    become_matvec(w, value, &v, operand);
    if (v.kind == SCL_VALUE_MATMUL) become_adjoint(w, &v, operand);
  }
  switch (v.kind == SCL_VALUE_MATVEC ? SCL_IS_CALL : scl_how(&v)) { /* both read from memory */
  case SCL_IS_LAYOUT:
    return add_concat(w, v, operand);
  case SCL_IS_STEP:
  case SCL_IS_TOTAL:
    match_shapes(w, &v, operand);
    break;
  case SCL_IS_VIEW:
  case SCL_IS_CALL:
    for (int k = 0; k < v.operands; k++) operand[k] = with_storage(w, operand[k]);
    break;
  default:
    break;
  }
  if (v.kind == SCL_VALUE_REDUCE && w->to->tape.value[operand[0]].kind == SCL_VALUE_NUMBER) {
    operand[0] = add_copy(w, operand[0]);
  }
  return add_value(w, v, operand);
}

/* The sum of x s, or x / s, from that of x. */
static int lower_sum(lowering *w, int value, int product, int *operand) {
  const scl_value *v = &w->from->value[product];
  const int place = factor_of(w->from, product);
  operand[summed_of(w->from, value)] = w->moved[scl_tape_operand(w->from, product, 1 - place)];
  const int sum = lower_operands(w, value, w->from->value[value], operand);
  const int factor = w->moved[scl_tape_operand(w->from, product, place)];
  const int two[] = {sum, factor};
  const scl_value scaled = {
      .kind = SCL_VALUE_APPLY, .op = v->op, .operands = 2, .length = w->from->value[value].length};
  return add_value(w, scaled, two);
}

static int lower_value(lowering *w, int value, int *operand) {
  const scl_value *v = &w->from->value[value];
  const int summed = summed_of(w->from, value);
  for (int k = 0; k < v->operands; k++) {
    const int x = scl_tape_operand(w->from, value, k);
    if (k == summed && w->moved[x] == NONE) {
      operand[1 - k] = v->operands > 1 ? w->moved[scl_tape_operand(w->from, value, 1 - k)] : NONE;
      return lower_sum(w, value, x, operand);
    }
    operand[k] = w->moved[x];
  }
  return lower_operands(w, value, *v, operand);
}

/* The results of a scan come first in those of its keeper. */
static int lower_scan(lowering *w, int value, int *operand) {
  const int keeper = lower_value(w, w->keeper[value], operand);
  const size_t length = w->from->value[value].length;
  const scl_value part = {.kind = SCL_VALUE_PART,
                          .operands = 1,
                          .at = {w->from->value[w->keeper[value]].length, 0, 0, length, 1},
                          .length = length};
  return add_value(w, part, &keeper);
}

static scl_status lower_all(lowering *w, int outputs, const int *output, int *operand) {
  const scl_tape *t = w->from;
  scl_tape *to = &w->to->tape;
  scl_tape_borrow_data(to, t);
  to->body = t->body;
  to->bodies = t->bodies;
  to->borrows_bodies = true;
  for (int v = 0; v < t->values && to->status == SCL_OK; v++) {
    if (w->moved[v] == NONE) continue;
    w->moved[v] = w->keeper[v] != NONE ? lower_scan(w, v, operand) : lower_value(w, v, operand);
  }
  if (to->status != SCL_OK) return to->status;
  scl_value result = {.kind = SCL_VALUE_CONCAT, .operands = outputs};
  for (int k = 0; k < outputs; k++) {
    operand[k] = w->moved[output[k]];
    result.length += scl_tape_length(to, operand[k]);
  }
  w->to->result = add_concat(w, result, operand);
  return to->status;
}

scl_status scl_lower(const scl_tape *t, int outputs, const int *output, scl_pass_limits pass,
                     scl_lowered *out) {
  lowering w = {.from = t, .to = out, .pass = pass};
  const size_t most = scl_max((size_t)outputs, (size_t)scl_tape_most_operands(t, t->values)) + 1;
  memset(out, 0, sizeof *out);
  scl_tape_begin(&out->tape);
  w.moved = malloc((size_t)t->values * sizeof *w.moved);
  int *operand = malloc(most * sizeof *operand);
  scl_status status = SCL_OK;
  w.keeper = malloc((size_t)t->values * sizeof *w.keeper);
  w.uses = calloc((size_t)t->values, sizeof *w.uses);
  if (w.moved == NULL || w.keeper == NULL || w.uses == NULL || operand == NULL) {
    status = scl_fail_memory((size_t)t->values * sizeof *w.moved, 0, "a program");
  } else {
    mark_live(t, outputs, output, w.moved);
    take_factors(&w, outputs, output);
    find_keepers(&w);
    status = lower_all(&w, outputs, output, operand);
  }
  free(w.moved);
  free(w.keeper);
  free(w.uses);
  free(operand);
  if (status != SCL_OK) scl_lowered_end(out);
  return status;
}

void scl_lowered_end(scl_lowered *l) {
  scl_tape_end(&l->tape);
  free(l->holder);
  free(l->offset);
  l->holder = NULL;
  l->offset = NULL;
}
