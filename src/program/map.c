/* A value that depends on parameters is wide: it has a copy for each vector. The copies are one
 * value, column k being that of vector k (`whole`), or one value for each vector (`per_vector`);
 * the other form is made when it is needed. A value that does not depend on parameters stays
 * single.
 *
 * Each kind has a rule for its wide values. If several vectors can be computed at once (elementwise
 * operations, reductions by column, one product for all vectors), the value is made whole;
 * otherwise once for each vector. Columns are never combined, so that NaN in one does not reach
 * another. */
#include "program/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "program/scan.h"

enum { NONE = -1 };

typedef struct {
  bool wide;
  int whole;      /* NONE: not made yet */
  int per_vector; /* where its values begin in the list; NONE: not made yet */
} copies;

typedef struct {
  const scl_tape *from;
  scl_tape *to;
  size_t vectors;
  const scl_parameter_blocks *blocks;
  copies *of; /* of each value of `from` */
  int *list;  /* values for each vector */
  int used, room;
  int *operand; /* room for operands */
} mapping;

static const scl_value *value_of(const mapping *m, int v) {
  return &m->from->value[v];
}

static size_t length_of(const mapping *m, int v) {
  return scl_tape_length(m->from, v);
}

/* ---- both forms ----------------------------------------------------------------------------- */

/* Room for a value for each vector, as `per_vector` of v. */
static bool reserve(mapping *m, int v) {
  const int more = (int)m->vectors;
  if (!scl_tape_grow(m->to, &m->list, &m->room, m->used, more, sizeof *m->list)) return false;
  m->of[v].per_vector = m->used;
  m->used += more;
  return true;
}

static int whole(mapping *m, int v) {
  copies *c = &m->of[v];
  if (c->whole == NONE) c->whole = scl_tape_concat(m->to, (int)m->vectors, m->list + c->per_vector);
  return c->whole;
}

/* The value of vector k. */
static int per_vector(mapping *m, int v, size_t k) {
  copies *c = &m->of[v];
  if (!c->wide) return c->whole;
  if (c->per_vector == NONE) {
    const size_t length = length_of(m, v);
    if (!reserve(m, v)) return 0;
    for (size_t i = 0; i < m->vectors; i++) {
      m->list[c->per_vector + (int)i] = scl_tape_part(m->to, c->whole, i * length, length);
    }
  }
  return m->list[c->per_vector + (int)k];
}

static bool is_wide(const mapping *m, int v) {
  return m->of[v].wide;
}

static int operand_of(const mapping *m, int v, int k) {
  return scl_tape_operand(m->from, v, k);
}

/* The same operation on other operands. */
static int repeat_on(mapping *m, scl_value v, const int *operand) {
  return scl_tape_add_value(m->to, v, operand);
}

static int of_each(mapping *m, int v) {
  if (!reserve(m, v)) return NONE;
  const int first = m->of[v].per_vector;
  for (size_t k = 0; k < m->vectors; k++) {
    scl_value value = *value_of(m, v);
    for (int i = 0; i < value.operands; i++) m->operand[i] = per_vector(m, operand_of(m, v, i), k);
    if (value.kind == SCL_VALUE_CHOL) value.at[1] = k + 1;
    m->list[first + (int)k] = repeat_on(m, value, m->operand);
  }
  return NONE;
}

/* ---- rules: the whole of a wide value, or NONE if there is one for each vector --------------- */

static int map_parameter(mapping *m, int v) {
  const size_t *at = value_of(m, v)->at, *start = m->blocks->start;
  size_t low = 0, high = m->blocks->count;
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    *(start[middle] <= at[0] ? &low : &high) = middle;
  }
  const size_t size = m->blocks->count > 0 ? start[low + 1] - start[low] : 0;
  const size_t from = m->blocks->count > 0 ? start[low] : 0;
  const scl_value block = {.kind = SCL_VALUE_PARAMETER,
                           .at = {from * m->vectors, size * m->vectors},
                           .length = size * m->vectors};
  const size_t part[] = {size, at[0] - from, 0, at[1], m->vectors};
  return scl_tape_block_part(m->to, repeat_on(m, block, NULL), part);
}

/* An operand of the same operation as a wide value of `length` numbers. */
static int align(mapping *m, int x, size_t length) {
  if (!is_wide(m, x)) {
    const bool one = length == 1 || length_of(m, x) == 1;
    return one ? whole(m, x) : scl_tape_broadcast(m->to, whole(m, x), length, m->vectors, false);
  }
  if (length_of(m, x) == length) return whole(m, x);
  return scl_tape_broadcast(m->to, whole(m, x), length, m->vectors, true);
}

static int map_apply(mapping *m, int v) {
  const scl_value *value = value_of(m, v);
  int operand[3];
  for (int k = 0; k < value->operands; k++) {
    operand[k] = align(m, operand_of(m, v, k), value->length);
  }
  return scl_tape_apply(m->to, (scl_op)value->op, value->operands, operand);
}

static int map_broadcast(mapping *m, int v) {
  const size_t *at = value_of(m, v)->at;
  const int x = operand_of(m, v, 0);
  if (length_of(m, x) == 1) {
    return scl_tape_broadcast(m->to, whole(m, x), length_of(m, v), m->vectors, true);
  }
  if (at[2] == 0) return of_each(m, v);
  return scl_tape_broadcast(m->to, whole(m, x), at[0], at[1] * m->vectors, true);
}

static int map_part(mapping *m, int v) {
  const size_t *at = value_of(m, v)->at;
  const int x = operand_of(m, v, 0);
  if (m->of[x].whole == NONE) return of_each(m, v);
  if (at[4] == 1) { /* without gaps */
    const size_t part[] = {length_of(m, x), at[1] + at[2] * at[0], 0, at[3], m->vectors};
    return scl_tape_block_part(m->to, whole(m, x), part);
  }
  if (at[2] != 0 || at[4] * at[0] != length_of(m, x)) return of_each(m, v);
  const size_t rows[] = {at[0], at[1], 0, at[3], at[4] * m->vectors};
  return scl_tape_block_part(m->to, whole(m, x), rows);
}

static int map_reduce(mapping *m, int v) {
  const scl_value *value = value_of(m, v);
  const size_t *at = value->at;
  if (at[2] == SCL_BY_ROW) return of_each(m, v);
  const size_t rows = at[2] == SCL_TOTAL ? at[0] * at[1] : at[0];
  const size_t columns = at[2] == SCL_TOTAL ? 1 : at[1];
  return scl_tape_reduce(m->to, (scl_reduction)value->op, whole(m, operand_of(m, v, 0)), rows,
                         columns * m->vectors, SCL_BY_COLUMN);
}

/* Indices are repeated for each vector if they are few, because derivatives of such gathers are
 * collected (program/reverse.c). */
enum { FEW_INDICES = 1024 };

static int shifted(mapping *m, int data, size_t limit) {
  const scl_tape_data *d = &m->from->data[data];
  const size_t n = d->length;
  double *index = malloc((n * m->vectors + 1) * sizeof *index);
  for (size_t k = 0; index != NULL && k < m->vectors; k++) {
    for (size_t i = 0; i < n; i++) index[k * n + i] = d->numbers[i] + (double)(k * limit);
  }
  return scl_tape_own_data(m->to, index, n * m->vectors);
}

static int map_gather(mapping *m, int v) {
  const int x = operand_of(m, v, 0), data = (int)value_of(m, v)->at[0];
  if (length_of(m, v) > FEW_INDICES) {
    return scl_tape_gather_columns(m->to, whole(m, x), data, m->vectors);
  }
  return scl_tape_gather(m->to, whole(m, x), shifted(m, data, length_of(m, x)));
}

static int map_scatter(mapping *m, int v) {
  const int x = operand_of(m, v, 0), data = (int)value_of(m, v)->at[0];
  const size_t length = length_of(m, v);
  if (length_of(m, x) > FEW_INDICES) {
    return scl_tape_scatter_columns(m->to, whole(m, x), data, length, m->vectors);
  }
  return scl_tape_scatter(m->to, whole(m, x), shifted(m, data, length), length * m->vectors);
}

/* The indices of a concat's elements in the list of its operands' wholes. */
static int interleaved(mapping *m, int v) {
  const size_t length = length_of(m, v), vectors = m->vectors;
  double *index = malloc((length * vectors + 1) * sizeof *index);
  size_t at = 0;
  for (int i = 0; index != NULL && i < value_of(m, v)->operands; i++) {
    const size_t n = length_of(m, operand_of(m, v, i));
    for (size_t k = 0; k < vectors; k++) {
      for (size_t j = 0; j < n; j++) {
        index[k * length + at + j] = (double)(at * vectors + k * n + j);
      }
    }
    at += n;
  }
  return scl_tape_own_data(m->to, index, length * vectors);
}

/* Operands are copied for each vector if they are few, or long: they cost less than indices. */
enum { FEW_COPIES = 8, MANY_NUMBERS = 65536, MANY_COPIES = 64 };

static int map_concat(mapping *m, int v) {
  const size_t length = length_of(m, v), operands = (size_t)value_of(m, v)->operands;
  const size_t count = operands * m->vectors;
  if (count <= FEW_COPIES || (count <= MANY_COPIES && length * m->vectors > MANY_NUMBERS)) {
    return of_each(m, v);
  }
  for (size_t i = 0; i < operands; i++) {
    const int x = operand_of(m, v, (int)i);
    const size_t n = length_of(m, x);
    m->operand[i] =
        is_wide(m, x) ? whole(m, x) : scl_tape_broadcast(m->to, whole(m, x), n, m->vectors, n == 1);
  }
  const int all = scl_tape_concat(m->to, (int)operands, m->operand);
  if (length == operands) return scl_tape_transpose(m->to, all, m->vectors, length);
  return scl_tape_gather(m->to, all, interleaved(m, v));
}

static int map_cumsum(mapping *m, int v) {
  const size_t *at = value_of(m, v)->at;
  return scl_tape_cumsum(m->to, whole(m, operand_of(m, v, 0)), at[0], at[1] * m->vectors,
                         at[2] != 0);
}

/* One product for all vectors if only one operand is wide and its copies form one matrix; a product
 * of vectors as a sum by column; otherwise one product for each vector. */
static int map_matmul(mapping *m, int v) {
  const size_t *at = value_of(m, v)->at, rows = at[0], inner = at[1], columns = at[2];
  const bool ta = at[3] != 0, tb = at[4] != 0;
  const int a = operand_of(m, v, 0), b = operand_of(m, v, 1);
  if (is_wide(m, a) && is_wide(m, b)) {
    if (rows != 1 || columns != 1) return of_each(m, v);
    const int both = scl_tape_binary(m->to, SCL_OP_MUL, whole(m, a), whole(m, b));
    return scl_tape_reduce(m->to, SCL_REDUCE_SUM, both, inner, m->vectors, SCL_BY_COLUMN);
  }
  if (is_wide(m, b)) {
    if (tb) return of_each(m, v);
    return scl_tape_matmul(m->to, whole(m, a), whole(m, b), rows, inner, columns * m->vectors, ta,
                           false);
  }
  if (rows == 1) {
    return scl_tape_matmul(m->to, whole(m, b), whole(m, a), columns, inner, m->vectors, !tb, false);
  }
  if (columns == 1 && (ta || inner == 1)) {
    return scl_tape_matmul(m->to, whole(m, a), whole(m, b), rows * m->vectors, inner, 1, ta, tb);
  }
  return of_each(m, v);
}

/* n, k and flags; the columns of all vectors together where they share the matrix. */
static int map_solve(mapping *m, int v) {
  const scl_value value = *value_of(m, v);
  const int l = operand_of(m, v, 0), b = operand_of(m, v, 1);
  if (is_wide(m, l)) return of_each(m, v);
  const size_t all[] = {value.at[0], value.at[1] * m->vectors, value.at[2], value.at[3]};
  return scl_tape_call(m->to, (scl_value_kind)value.kind, whole(m, l), whole(m, b), all);
}

/* The numbers of a scan's operand for the sequences of all vectors. */
static int sequences_of(mapping *m, int x, bool shared, size_t sequences) {
  const size_t n = length_of(m, x);
  if (!is_wide(m, x)) {
    return shared ? whole(m, x) : scl_tape_broadcast(m->to, whole(m, x), n, m->vectors, n == 1);
  }
  if (!shared || sequences == 1) return whole(m, x);
  int *copy = malloc((m->vectors + 1) * sizeof *copy);
  if (copy == NULL) {
    scl_tape_fail(m->to, scl_fail_memory(m->vectors * sizeof *copy, 0, "a program"));
    return 0;
  }
  for (size_t k = 0; k < m->vectors; k++) {
    copy[k] = scl_tape_broadcast(m->to, per_vector(m, x, k), n, sequences, n == 1);
  }
  const int all = scl_tape_concat(m->to, (int)m->vectors, copy);
  free(copy);
  return all;
}

/* Where the numbers of each vector are in the result of a scan of all sequences: `at` as of the
 * scan of one vector. */
static int split_by_vector(mapping *m, const scl_scan_shape *s, const size_t *at, size_t length) {
  double *index = malloc((length * m->vectors + 1) * sizeof *index);
  size_t from = 0, to = 0;
  for (int k = 0; index != NULL && k < scl_scan_first(s, SCL_SCAN_ROLES); k++) {
    const bool input = k >= s->ports[SCL_SCAN_STATE] && k < scl_scan_first(s, SCL_SCAN_SUM);
    if (input) continue;
    const bool out = k >= scl_scan_first(s, SCL_SCAN_OUT);
    const size_t n = s->port[k].length * at[2] * (out ? at[1] : 1);
    for (size_t v = 0; v < m->vectors; v++) {
      for (size_t i = 0; i < n; i++) index[v * length + to + i] = (double)(from + v * n + i);
    }
    from += n * m->vectors;
    to += n;
  }
  return scl_tape_own_data(m->to, index, length * m->vectors);
}

/* One scan of the sequences of all vectors. */
static int map_scan(mapping *m, int v) {
  const scl_value value = *value_of(m, v);
  const scl_scan_body *body = m->from->body[value.at[0]];
  bool own[SCL_SCAN_PORTS];
  size_t at[SCL_VALUE_ATTRIBUTES];
  for (int i = 0; i < value.operands; i++) {
    const int x = operand_of(m, v, i);
    own[i] = is_wide(m, x);
    m->operand[i] = sequences_of(m, x, body->shape.port[i].shared, value.at[2]);
  }
  memcpy(at, value.at, sizeof at);
  at[0] = (size_t)scl_scan_copy(body, own, m->to);
  at[2] *= m->vectors;
  if (m->to->status != SCL_OK) return 0;
  const int all = scl_tape_scan(m->to, at, m->operand);
  return scl_tape_gather(m->to, all, split_by_vector(m, &body->shape, value.at, value.length));
}

/* Of ops/operations.def. A kind without a rule: the vectors are evaluated one after another. */
typedef int rule(mapping *m, int v);
static rule *const rules[SCL_VALUE_KINDS] = {
#define NONE NULL
#define NO_VALUE NULL
#define VALUE(reverse, vectors, scalars) vectors
#define SCL_OPERATION(NAME, name, how, operands, attributes, shapes, node, run, value) value,
#include "ops/operations.def"
#undef SCL_OPERATION
#undef VALUE
#undef NO_VALUE
#undef NONE
};

bool scl_tape_can_map(const scl_tape *t) {
  for (int v = 0; v < t->values; v++) {
    if (rules[t->value[v].kind] == NULL) return false;
  }
  return true;
}

/* ---- blocks of parameters ------------------------------------------------------------------- */

void scl_parameter_blocks_end(scl_parameter_blocks *b) {
  free(b->start);
  b->start = NULL;
  b->count = 0;
}

/* A block begins at each parameter that is in no recorded part together with the parameter before
 * it. */
static scl_status find_blocks(const scl_tape *t, size_t parameters, scl_parameter_blocks *b) {
  size_t *start = calloc(parameters + 2, sizeof *start);
  if (start == NULL) return scl_fail_memory(parameters * sizeof *start, 0, "a program");
  for (int v = 0; v < t->values; v++) { /* parts that begin before i, less those that end there */
    const scl_value *p = &t->value[v];
    if (p->kind != SCL_VALUE_PARAMETER || p->at[1] == 0) continue;
    start[p->at[0] + 1]++;
    start[p->at[0] + p->at[1]]--;
  }
  size_t open = 0, count = 0;
  for (size_t i = 0; i < parameters; i++) {
    open += start[i];
    if (open == 0) start[count++] = i;
  }
  start[count] = parameters;
  *b = (scl_parameter_blocks){start, count};
  return SCL_OK;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void map_value(mapping *m, int v) {
  const scl_value *value = value_of(m, v);
  copies *c = &m->of[v];
  *c = (copies){value->kind == SCL_VALUE_PARAMETER, NONE, NONE};
  for (int k = 0; k < value->operands; k++) {
    c->wide = c->wide || is_wide(m, operand_of(m, v, k));
    m->operand[k] = m->of[operand_of(m, v, k)].whole;
  }
  if (c->wide) {
    c->whole = rules[value->kind](m, v);
    return;
  }
  scl_value same = *value;
  if (same.kind == SCL_VALUE_SCAN) {
    const bool own[SCL_SCAN_PORTS] = {false};
    same.at[0] = (size_t)scl_scan_copy(m->from->body[same.at[0]], own, m->to);
  }
  c->whole = m->to->status == SCL_OK ? repeat_on(m, same, m->operand) : 0;
}

static scl_status begin(mapping *m) {
  const size_t most = scl_max(3, (size_t)scl_tape_most_operands(m->from, m->from->values));
  m->of = malloc(((size_t)m->from->values + 1) * sizeof *m->of);
  m->operand = malloc(most * sizeof *m->operand);
  if (m->of != NULL && m->operand != NULL) return SCL_OK;
  return scl_fail_memory((size_t)m->from->values * sizeof *m->of, 0, "a program");
}

scl_status scl_tape_map(const scl_tape *from, int output, size_t parameters, size_t vectors,
                        scl_tape *to, scl_parameter_blocks *blocks, int *result) {
  mapping m = {.from = from, .to = to, .vectors = vectors, .blocks = blocks};
  SCL_TRY(find_blocks(from, parameters, blocks));
  scl_status status = begin(&m);
  if (status == SCL_OK) scl_tape_borrow_data(to, from);
  if (status == SCL_OK) status = to->status;
  for (int v = 0; v < from->values && status == SCL_OK; v++) {
    map_value(&m, v);
    status = to->status;
  }
  if (status == SCL_OK) {
    *result = scl_tape_fill(to, whole(&m, output), vectors);
    status = to->status;
  }
  free(m.of);
  free(m.list);
  free(m.operand);
  if (status != SCL_OK) scl_parameter_blocks_end(blocks);
  return status;
}
