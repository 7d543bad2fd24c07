/* Shares of derivatives. Those of a whole value are added at once. Shares of some of its elements,
 * from parts and gathers, are collected, and added in one pass when the value is visited: a
 * thousand uses x[1], ..., x[1000] cost one pass over x, not a thousand. */
#include "program/reverse.h"

#include <stdlib.h>

enum { NONE = -1 };

void scl_share_whole(scl_reverse *r, int value, int share) {
  if (!r->active[value] || share < 0) return;
  int *whole = &r->whole[value];
  *whole = *whole == NONE ? share : scl_tape_binary(r->t, SCL_OP_ADD, *whole, share);
}

void scl_share_some(scl_reverse *r, int value, scl_partial p) {
  if (!r->active[value] || p.length == 0) return;
  if (!scl_tape_grow(r->t, &r->partials, &r->room, r->used, 1, sizeof p)) return;
  p.before = r->last[value];
  r->last[value] = r->used;
  r->partials[r->used++] = p;
}

/* The indices of the elements of all partial shares, the last share first. */
static double *indices_of(const scl_reverse *r, int value, size_t total) {
  double *to = malloc((total > 0 ? total : 1) * sizeof *to);
  size_t at = 0;
  if (to == NULL) return NULL;
  for (int k = r->last[value]; k != NONE; k = r->partials[k].before) {
    const scl_partial *p = &r->partials[k];
    for (size_t i = 0; i < p->length; i++) {
      to[at++] = p->data == NONE ? (double)(p->from + i) : r->t->data[p->data].numbers[i];
    }
  }
  return to;
}

/* If each of `length` elements has exactly one share: for each element, the index of that share;
 * else NULL. `same`: all in order. */
static double *inverse_of(const double *index, size_t total, size_t length, bool *same) {
  *same = true;
  if (total != length) return NULL;
  double *inverse = malloc((length > 0 ? length : 1) * sizeof *inverse);
  if (inverse == NULL) return NULL;
  for (size_t i = 0; i < length; i++) inverse[i] = -1.0;
  for (size_t i = 0; i < length; i++) {
    const size_t k = (size_t)index[i];
    if (inverse[k] >= 0.0) {
      free(inverse);
      return NULL;
    }
    inverse[k] = (double)i;
    *same = *same && k == i;
  }
  return inverse;
}

static int compare_starts(const void *a, const void *b) {
  const scl_partial *x = *(const scl_partial *const *)a, *y = *(const scl_partial *const *)b;
  return x->from < y->from ? -1 : x->from > y->from;
}

/* The partial shares concatenated, with zeros between them, if all are of consecutive elements and
 * none overlap; else NONE. */
static int join_partials(scl_reverse *r, int value, int count) {
  scl_tape *t = r->t;
  const scl_partial **part = malloc((size_t)count * sizeof *part);
  int *piece = malloc((2 * (size_t)count + 1) * sizeof *piece), pieces = 0, k = 0, sum = NONE;
  size_t at = 0;
  bool joined = part != NULL && piece != NULL;
  for (int p = r->last[value]; joined && p != NONE; p = r->partials[p].before) {
    part[k++] = &r->partials[p];
    joined = r->partials[p].data == NONE;
  }
  if (joined) qsort(part, (size_t)count, sizeof *part, compare_starts);
  for (k = 0; joined && k < count; at = part[k]->from + part[k]->length, k++) {
    joined = part[k]->from >= at;
  }
  at = 0;
  for (k = 0; joined && k <= count; k++) {
    const size_t from = k < count ? part[k]->from : scl_tape_length(t, value);
    if (from > at) piece[pieces++] = scl_tape_fill(t, scl_tape_number(t, 0.0), from - at);
    if (k == count) break;
    piece[pieces++] = scl_tape_fill(t, part[k]->share, part[k]->length);
    at = from + part[k]->length;
  }
  if (joined) sum = scl_tape_concat(t, pieces, piece);
  free(part);
  free(piece);
  return sum;
}

/* The sum of a value's partial shares, as long as the value. */
int scl_share_sum(scl_reverse *r, int value) {
  scl_tape *t = r->t;
  int count = 0;
  size_t total = 0;
  for (int k = r->last[value]; k != NONE; k = r->partials[k].before) {
    count++;
    total += r->partials[k].length;
  }
  const size_t length = scl_tape_length(t, value);
  /* Last state, sums and outs of a scan are parts of it. */
  if (t->value[value].kind == SCL_VALUE_SCAN || total == length) {
    const int joined = join_partials(r, value, count);
    if (joined != NONE || t->status != SCL_OK) return joined != NONE ? joined : 0;
  }
  int *shares = malloc((size_t)count * sizeof *shares);
  double *index = indices_of(r, value, total);
  if (shares == NULL || index == NULL) {
    free(shares);
    free(index);
    if (t->status == SCL_OK) t->status = scl_fail_memory(total * sizeof *index, 0, "a gradient");
    return 0;
  }
  count = 0;
  for (int k = r->last[value]; k != NONE; k = r->partials[k].before) {
    shares[count++] = scl_tape_fill(t, r->partials[k].share, r->partials[k].length);
  }
  int sum = scl_tape_concat(t, count, shares);
  free(shares);
  bool in_order;
  double *inverse = inverse_of(index, total, length, &in_order);
  if (inverse != NULL) {
    if (!in_order) {
      sum = scl_tape_gather(t, sum, scl_tape_own_data(t, inverse, length));
    } else {
      free(inverse);
    }
    free(index);
    return sum;
  }
  return scl_tape_scatter(t, sum, scl_tape_own_data(t, index, total), length);
}
