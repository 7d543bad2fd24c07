/* Values of a program: checks, search for equal values. program/tape_arithmetic.c has arithmetic.
 */
#include "program/facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void scl_tape_begin(scl_tape *t) {
  memset(t, 0, sizeof *t);
}

static void free_body(scl_scan_body *body) {
  if (body == NULL) return;
  scl_tape_end(&body->tape);
  free(body);
}

void scl_tape_end(scl_tape *t) {
  for (int k = 0; k < t->bodies && !t->borrows_bodies; k++) free_body(t->body[k]);
  if (!t->borrows_bodies) free(t->body);
  for (int k = 0; k < t->data_used; k++) free(t->data[k].owned);
  free(t->data);
  free(t->value);
  free(t->operand);
  free(t->bucket);
  free(t->next);
  scl_tape_begin(t);
}

/* ---- room ----------------------------------------------------------------------------------- */

bool scl_tape_fail(scl_tape *t, scl_status status) {
  if (t->status == SCL_OK) t->status = status;
  return t->status != SCL_OK;
}

bool scl_tape_grow(scl_tape *t, void *array, int *room, int used, int more, size_t size) {
  scl_tape_fail(t, scl_grow(array, room, (size_t)used + (size_t)more, size, "a program"));
  return t->status == SCL_OK;
}

/* ---- equal values --------------------------------------------------------------------------- */

uint64_t scl_tape_mix(uint64_t hash, uint64_t bits) {
  hash ^= bits + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 31);
}

uint64_t scl_tape_hash(const scl_value *v) {
  uint64_t hash = scl_tape_mix(v->kind, v->op);
  for (int k = 0; k < SCL_VALUE_ATTRIBUTES; k++) hash = scl_tape_mix(hash, v->at[k]);
  return scl_tape_mix(hash, v->length);
}

uint64_t scl_tape_mix_number(uint64_t hash, double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return scl_tape_mix(hash, bits);
}

bool scl_tape_alike(const scl_value *v, const scl_value *w) {
  return v->kind == w->kind && v->op == w->op && v->operands == w->operands &&
         v->length == w->length && memcmp(v->at, w->at, sizeof v->at) == 0;
}

static uint64_t hash_of(const scl_value *v, const int *operand) {
  uint64_t hash = scl_tape_mix_number(scl_tape_hash(v), v->number);
  for (int k = 0; k < v->operands; k++) hash = scl_tape_mix(hash, (uint64_t)operand[k]);
  return hash;
}

static bool equal(const scl_tape *t, const scl_value *v, const int *operand, const scl_value *w) {
  return scl_tape_alike(v, w) && memcmp(&v->number, &w->number, sizeof v->number) == 0 &&
         (v->operands == 0 ||
          memcmp(operand, t->operand + w->first, (size_t)v->operands * sizeof *operand) == 0);
}

static void widen_buckets(scl_tape *t) {
  const int buckets = t->buckets == 0 ? 256 : 4 * t->buckets;
  int *wider = calloc((size_t)buckets, sizeof *wider);
  if (wider == NULL) {
    scl_tape_fail(t, scl_fail_memory((size_t)buckets * sizeof *wider, 0, "a program"));
    return;
  }
  free(t->bucket);
  t->bucket = wider;
  t->buckets = buckets;
  for (int v = 0; v < t->values; v++) {
    const uint64_t hash = hash_of(&t->value[v], t->operand + t->value[v].first);
    int *head = &t->bucket[hash % (uint64_t)buckets];
    t->next[v] = *head;
    *head = v + 1;
  }
}

/* The index of `v`, which is added unless the list has an equal value. */
int scl_tape_add_value(scl_tape *t, scl_value v, const int *operand) {
  int *head = NULL;
  if (t->status != SCL_OK) return 0;
  if (!t->recorded) {
    if (t->values >= t->buckets) widen_buckets(t);
    if (t->status != SCL_OK) return 0;
    head = &t->bucket[hash_of(&v, operand) % (uint64_t)t->buckets];
    for (int w = *head; w != 0; w = t->next[w - 1]) {
      if (equal(t, &v, operand, &t->value[w - 1])) return w - 1;
    }
    int next_room = t->room;
    scl_tape_grow(t, &t->next, &next_room, t->values, 1, sizeof *t->next);
  }
  scl_tape_grow(t, &t->value, &t->room, t->values, 1, sizeof *t->value);
  scl_tape_grow(t, &t->operand, &t->operands_room, t->operands_used, v.operands,
                sizeof *t->operand);
  if (t->status != SCL_OK) return 0;
  v.first = t->operands_used;
  if (v.operands > 0) {
    memcpy(t->operand + v.first, operand, (size_t)v.operands * sizeof *operand);
  }
  v.zeros = (uint8_t)scl_tape_zeros(t, &v, operand);
  t->operands_used += v.operands;
  t->value[t->values] = v;
  if (head != NULL) {
    t->next[t->values] = *head;
    *head = t->values + 1;
  }
  return t->values++;
}

int scl_tape_most_operands(const scl_tape *t, int count) {
  int most = 0;
  for (int v = 0; v < count; v++) {
    if (t->value[v].operands > most) most = t->value[v].operands;
  }
  return most;
}

/* ---- data ----------------------------------------------------------------------------------- */

static int add_data(scl_tape *t, scl_tape_data data) {
  scl_tape_grow(t, &t->data, &t->data_room, t->data_used, 1, sizeof *t->data);
  if (t->status != SCL_OK) {
    free(data.owned);
    return 0;
  }
  t->data[t->data_used] = data;
  return t->data_used++;
}

int scl_tape_add_data(scl_tape *t, const double *numbers, size_t length) {
  return add_data(t, (scl_tape_data){.numbers = numbers, .length = length});
}

void scl_tape_borrow_data(scl_tape *t, const scl_tape *from) {
  for (int k = 0; k < from->data_used; k++) {
    scl_tape_data data = from->data[k];
    data.owned = NULL;
    add_data(t, data);
  }
}

int scl_tape_own_data(scl_tape *t, double *numbers, size_t length) {
  if (numbers == NULL) {
    scl_tape_fail(t, scl_fail_memory(length * sizeof *numbers, 0, "the data of a program"));
    return 0;
  }
  return add_data(t, (scl_tape_data){.numbers = numbers, .length = length, .owned = numbers});
}

int scl_tape_add_body(scl_tape *t, scl_scan_body *body) {
  if (body == NULL) {
    scl_tape_fail(t, scl_fail_memory(sizeof *body, 0, "a program"));
    return 0;
  }
  if (body->tape.status != SCL_OK) scl_tape_fail(t, body->tape.status);
  scl_tape_grow(t, &t->body, &t->bodies_room, t->bodies, 1, sizeof(scl_scan_body *));
  if (t->status != SCL_OK) {
    free_body(body);
    return 0;
  }
  t->body[t->bodies] = body;
  return t->bodies++;
}

void scl_tape_drop_body(scl_tape *t) {
  free_body(t->body[--t->bodies]);
}

int scl_tape_data_value(scl_tape *t, int data) {
  if (t->status != SCL_OK) return 0;
  const scl_tape_data *d = &t->data[data];
  if (d->length == 1 && d->owned != NULL) return scl_tape_number(t, d->numbers[0]);
  const scl_value v = {
      .kind = SCL_VALUE_DATA, .at = {(size_t)data, d->length}, .length = d->length};
  return scl_tape_add_value(t, v, NULL);
}

int scl_tape_number(scl_tape *t, double number) {
  return scl_tape_add_value(t, (scl_value){.kind = SCL_VALUE_NUMBER, .number = number, .length = 1},
                            NULL);
}

/* ---- known numbers --------------------------------------------------------------------------
 *
 * The elements of numbers, of the tape's own data, and of what only moves these: they are the same
 * in every run, while other data may be replaced (scl_program_set_data()). */

bool scl_tape_is_known(const scl_tape *t, int value) {
  for (;;) {
    const scl_value *v = &t->value[value];
    switch ((scl_value_kind)v->kind) {
    case SCL_VALUE_NUMBER:
      return true;
    case SCL_VALUE_DATA:
      return t->data[v->at[0]].owned != NULL;
    case SCL_VALUE_GATHER:
      if (t->data[v->at[0]].owned == NULL) return false;
      break;
    case SCL_VALUE_BROADCAST:
    case SCL_VALUE_TRANSPOSE:
    case SCL_VALUE_PART:
      break;
    default:
      return false;
    }
    value = scl_tape_operand(t, value, 0);
  }
}

double scl_tape_known(const scl_tape *t, int value, size_t k) {
  for (;;) {
    const scl_value *v = &t->value[value];
    if (v->kind == SCL_VALUE_NUMBER) return v->number;
    if (v->kind == SCL_VALUE_DATA) return t->data[v->at[0]].numbers[k];
    if (v->kind == SCL_VALUE_GATHER) {
      k = (size_t)t->data[v->at[0]].numbers[k];
    } else {
      size_t m, n;
      scl_value_view_shape(v, &m, &n);
      k = scl_value_view_element(v, k % m, k / m);
    }
    value = scl_tape_operand(t, value, 0);
  }
}

/* The scatter of known numbers; -1 if there is anything else, or an element is 0: a derivative that
 * nothing has a share in counts as masked (facts.h). */
static int known_scatter(scl_tape *t, int x, int data, size_t length) {
  if (t->data[data].owned == NULL || !scl_tape_is_known(t, x)) return -1;
  double *sums = calloc(length + 1, sizeof *sums);
  bool zero = false;
  for (size_t k = 0; sums != NULL && k < t->data[data].length; k++) {
    sums[(size_t)t->data[data].numbers[k]] += scl_tape_known(t, x, k);
  }
  for (size_t e = 0; sums != NULL && e < length; e++) zero = zero || sums[e] == 0.0;
  if (!zero) return scl_tape_data_value(t, scl_tape_own_data(t, sums, length));
  free(sums);
  return -1;
}

/* ---- views and calls, of operands that fit --------------------------------------------------- */

static int one(scl_tape *t, scl_value_kind kind, int x, const size_t *at, size_t length) {
  scl_value v = {.kind = (uint8_t)kind, .operands = 1, .length = length};
  memcpy(v.at, at, (size_t)scl_value_attributes(kind) * sizeof *at);
  return scl_tape_add_value(t, v, &x);
}

int scl_tape_fill(scl_tape *t, int x, size_t length) {
  if (t->status != SCL_OK || scl_tape_length(t, x) == length) return x;
  return scl_tape_broadcast(t, x, 1, length, false);
}

int scl_tape_broadcast(scl_tape *t, int x, size_t m, size_t n, bool by_row) {
  if (t->status != SCL_OK) return 0;
  if (m * n == scl_tape_length(t, x)) return x;
  /* One element: all ways to repeat it are one. */
  const bool alone = scl_tape_length(t, x) == 1;
  const size_t at[] = {alone ? 1 : m, alone ? m * n : n, alone ? 0 : by_row};
  return one(t, SCL_VALUE_BROADCAST, x, at, m * n);
}

int scl_tape_transpose(scl_tape *t, int x, size_t m, size_t n) {
  if (t->status != SCL_OK) return 0;
  if (m == 1 || n == 1 || scl_tape_length(t, x) == 1) return x;
  const scl_value *v = &t->value[x];
  if (v->kind == SCL_VALUE_TRANSPOSE && v->at[0] == n && v->at[1] == m) {
    return scl_tape_operand(t, x, 0);
  }
  const size_t at[] = {m, n};
  return one(t, SCL_VALUE_TRANSPOSE, x, at, m * n);
}

int scl_tape_block_part(scl_tape *t, int x, const size_t *at) {
  if (t->status != SCL_OK) return 0;
  size_t length = at[3] * at[4];
  if (length == scl_tape_length(t, x)) return x;
  if (length == 1 && scl_tape_is_known(t, x))
    return scl_tape_number(t, scl_tape_known(t, x, at[1] + at[2] * at[0]));
  if (length == 0 || at[4] == 1 || (at[1] == 0 && at[3] == at[0])) { /* without gaps */
    const size_t from = at[1] + at[2] * at[0];
    const scl_value *v = &t->value[x];
    if (v->kind == SCL_VALUE_PARAMETER || v->kind == SCL_VALUE_PART) {
      /* A part of a part without gaps is a part of a vector. */
      if (v->kind == SCL_VALUE_PARAMETER) {
        const scl_value p = {
            .kind = SCL_VALUE_PARAMETER, .at = {v->at[0] + from, length}, .length = length};
        return scl_tape_add_value(t, p, NULL);
      }
      if (v->at[4] == 1) {
        const size_t whole = scl_tape_length(t, scl_tape_operand(t, x, 0));
        const size_t start = v->at[1] + v->at[2] * v->at[0] + from;
        const size_t inner[] = {whole, start, 0, length, 1};
        return one(t, SCL_VALUE_PART, scl_tape_operand(t, x, 0), inner, length);
      }
    }
    const size_t flat[] = {scl_tape_length(t, x), from, 0, length, 1};
    return one(t, SCL_VALUE_PART, x, flat, length);
  }
  return one(t, SCL_VALUE_PART, x, at, length);
}

int scl_tape_part(scl_tape *t, int x, size_t from, size_t length) {
  if (t->status != SCL_OK) return 0;
  const size_t at[] = {scl_tape_length(t, x), from, 0, length, 1};
  return scl_tape_block_part(t, x, at);
}

int scl_tape_gather(scl_tape *t, int x, int data) {
  const size_t at[] = {(size_t)data};
  return t->status != SCL_OK ? 0 : one(t, SCL_VALUE_GATHER, x, at, t->data[data].length);
}

int scl_tape_scatter(scl_tape *t, int x, int data, size_t length) {
  const size_t at[] = {(size_t)data, length};
  if (t->status != SCL_OK) return 0;
  if (t->data[data].length == 0) return scl_tape_fill(t, scl_tape_number(t, 0.0), length);
  const int known = known_scatter(t, x, data, length);
  return known >= 0 ? known : one(t, SCL_VALUE_SCATTER, x, at, length);
}

int scl_tape_gather_columns(scl_tape *t, int x, int data, size_t columns) {
  const size_t at[] = {(size_t)data, columns};
  if (t->status != SCL_OK || columns == 1) return scl_tape_gather(t, x, data);
  return one(t, SCL_VALUE_GATHER_COLUMNS, x, at, columns * t->data[data].length);
}

int scl_tape_scatter_columns(scl_tape *t, int x, int data, size_t length, size_t columns) {
  const size_t at[] = {(size_t)data, length, columns};
  return t->status != SCL_OK ? 0 : one(t, SCL_VALUE_SCATTER_COLUMNS, x, at, columns * length);
}

int scl_tape_concat(scl_tape *t, int count, const int *x) {
  scl_value v = {.kind = SCL_VALUE_CONCAT, .operands = 0};
  if (t->status != SCL_OK) return 0;
  int *some = malloc(((size_t)count + 1) * sizeof *some);
  if (some == NULL) {
    scl_tape_fail(t, scl_fail_memory((size_t)count * sizeof *some, 0, "a program"));
    return 0;
  }
  for (int k = 0; k < count; k++) {
    if (scl_tape_length(t, x[k]) == 0) continue;
    v.length += scl_tape_length(t, x[k]);
    some[v.operands++] = x[k];
  }
  const int result = v.operands == 1 ? some[0] : scl_tape_add_value(t, v, some);
  free(some);
  return result;
}

int scl_tape_cumsum(scl_tape *t, int x, size_t m, size_t n, bool reverse) {
  const size_t at[] = {m, n, reverse};
  return m <= 1 ? x : one(t, SCL_VALUE_CUMSUM, x, at, m * n);
}

int scl_tape_matmul(scl_tape *t, int a, int b, size_t m, size_t k, size_t n, bool ta, bool tb) {
  scl_value v = {.kind = SCL_VALUE_MATMUL,
                 .operands = 2,
                 .at = {m, k, n, ta && m > 1 && k > 1, tb && k > 1 && n > 1},
                 .length = m * n};
  const int operand[] = {a, b};
  if (k == 0) return scl_tape_fill(t, scl_tape_number(t, 0.0), m * n);
  return scl_tape_add_value(t, v, operand);
}

int scl_tape_call(scl_tape *t, scl_value_kind kind, int a, int b, const size_t *at) {
  const int operand[] = {a, b};
  const scl_value_shape shape = scl_value_shape_of(kind, at, SCL_OF_RESULT);
  scl_value v = {.kind = (uint8_t)kind,
                 .operands = scl_value_operands(kind),
                 .length = shape.rows * shape.columns};
  memcpy(v.at, at, (size_t)scl_value_attributes(kind) * sizeof *at);
  return scl_tape_add_value(t, v, operand);
}

int scl_tape_scan(scl_tape *t, const size_t *at, const int *operand) {
  if (t->status != SCL_OK) return 0;
  const scl_scan_shape *shape = &t->body[at[0]]->shape;
  scl_value v = {.kind = SCL_VALUE_SCAN,
                 .operands = scl_scan_first(shape, SCL_SCAN_SUM),
                 .length = scl_scan_length(shape, at[1], at[2], at[4] != 0)};
  memcpy(v.at, at, (size_t)scl_value_attributes(SCL_VALUE_SCAN) * sizeof *at);
  return scl_tape_add_value(t, v, operand);
}

/* ---- views ----------------------------------------------------------------------------------- */
void scl_value_view_shape(const scl_value *v, size_t *m, size_t *n) {
  const bool part = v->kind == SCL_VALUE_PART, across = v->kind == SCL_VALUE_TRANSPOSE;
  *m = v->at[part ? 3 : across ? 1 : 0];
  *n = v->at[part ? 4 : across ? 0 : 1];
}

size_t scl_value_view_element(const scl_value *v, size_t i, size_t j) {
  const size_t *at = v->at;
  if (v->kind == SCL_VALUE_PART) return at[1] + i + (at[2] + j) * at[0];
  if (v->kind == SCL_VALUE_TRANSPOSE) return j + i * at[0];
  return at[2] != 0 ? j : i;
}
