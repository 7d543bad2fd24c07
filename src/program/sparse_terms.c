/* Entries and terms of sparse Jacobians. */
#include <stdlib.h>
#include <string.h>

#include "program/sparse_parts.h"

/* Equal entries are looked for among the last ones. */
enum { NONE = SCL_SPARSE_NONE, MOST_TERMS = 12, MOST_COMPARED = 1024 };

void *scl_sparse_room(scl_jacobian *w, size_t count, size_t size) {
  if (w->t->status != SCL_OK) return NULL;
  void *room = malloc((count + 1) * size);
  if (room == NULL) scl_tape_fail(w->t, scl_fail_memory(count * size, 0, "a sparse Hessian"));
  return room;
}

bool scl_sparse_allows(scl_jacobian *w, int value, size_t more) {
  if (w->t->status != SCL_OK) return false;
  if (w->held + more > w->most) {
    w->refused[value] = true;
    if (w->lacking < w->held + more) w->lacking = w->held + more;
  }
  return !w->refused[value];
}

/* ---- entries -------------------------------------------------------------------------------- */

static uint64_t hash_of(size_t length, const uint32_t *row, const uint32_t *column) {
  uint64_t hash = length;
  for (size_t k = 0; k < length; k++) {
    hash = scl_tape_mix(hash, ((uint64_t)row[k] << 32) | column[k]);
  }
  return hash;
}

static bool equal(const scl_entries *e, const scl_entries *f) {
  if (e->hash != f->hash || e->length != f->length || (e->row == NULL) != (f->row == NULL)) {
    return false;
  }
  if (memcmp(e->column, f->column, e->length * sizeof *e->column) != 0) return false;
  return e->row == NULL ? e->from == f->from
                        : memcmp(e->row, f->row, e->length * sizeof *e->row) == 0;
}

int scl_sparse_entries(scl_jacobian *w, size_t length, uint32_t *row, uint32_t *column) {
  if (!scl_tape_grow(w->t, &w->entries, &w->room, w->used, 1, sizeof *w->entries)) {
    free(row);
    free(column);
    return 0;
  }
  scl_entries e = {length, length > 0 ? row[0] : 0,      row,
                   column, hash_of(length, row, column), NONE};
  bool consecutive = true;
  for (size_t k = 0; k < length && consecutive; k++) consecutive = row[k] == e.from + k;
  if (consecutive) {
    free(row);
    e.row = NULL;
  }
  for (int k = w->used - 1; k >= 0 && k >= w->used - MOST_COMPARED; k--) {
    if (!equal(&w->entries[k], &e)) continue;
    free(e.row);
    free(column);
    return k;
  }
  w->held += length;
  w->entries[w->used] = e;
  return w->used++;
}

/* In linear time: by the minor index, then by the major one. */
bool scl_sparse_sort(scl_jacobian *w, size_t count, const uint32_t *major, size_t majors,
                     const uint32_t *minor, size_t minors, size_t *order) {
  const size_t most = majors > minors ? majors : minors;
  size_t *start = scl_sparse_room(w, most + 1, sizeof *start);
  size_t *first = scl_sparse_room(w, count, sizeof *first);
  const bool done = start != NULL && first != NULL;
  for (int pass = 0; done && pass < 2; pass++) {
    const uint32_t *key = pass == 0 ? minor : major;
    size_t *to = pass == 0 ? first : order;
    memset(start, 0, (most + 2) * sizeof *start);
    for (size_t k = 0; k < count; k++) start[key[k] + 1]++;
    for (size_t i = 0; i < most; i++) start[i + 1] += start[i];
    for (size_t k = 0; k < count; k++) {
      const size_t entry = pass == 0 ? k : first[k];
      to[start[key[entry]]++] = entry;
    }
  }
  free(start);
  free(first);
  return done;
}

/* ---- listings ------------------------------------------------------------------------------- */

void scl_listing_end(scl_listing *l) {
  free(l->row);
  free(l->column);
  free(l->pick);
}

bool scl_listing_begin(scl_jacobian *w, int value, size_t total, scl_listing *l) {
  *l = (scl_listing){.count = 0};
  if (!scl_sparse_allows(w, value, total)) return false;
  l->row = scl_sparse_room(w, total, sizeof *l->row);
  l->column = scl_sparse_room(w, total, sizeof *l->column);
  l->pick = scl_sparse_room(w, total, sizeof *l->pick);
  if (w->t->status != SCL_OK) scl_listing_end(l);
  return w->t->status == SCL_OK;
}

void scl_listing_put(scl_listing *l, size_t row, uint32_t column, size_t pick) {
  l->row[l->count] = (uint32_t)row;
  l->column[l->count] = column;
  l->pick[l->count++] = pick;
}

int scl_listing_entries(scl_jacobian *w, scl_listing *l) {
  const int entries = scl_sparse_entries(w, l->count, l->row, l->column);
  l->row = l->column = NULL;
  return entries;
}

void scl_listing_finish(scl_jacobian *w, int value, scl_listing *l, int from) {
  scl_sparse_add_picked(w, value, scl_listing_entries(w, l), from, l->pick);
  scl_listing_end(l);
}

/* ---- terms ---------------------------------------------------------------------------------- */

static int terms_of(const scl_jacobian *w, int value) {
  int count = 0;
  for (int k = w->first[value]; k != NONE; k = w->term[k].next) count++;
  return count;
}

void scl_sparse_add(scl_jacobian *w, int of, int entries, int value) {
  if (w->t->status != SCL_OK || w->entries[entries].length == 0) return;
  if (scl_tape_is_number(w->t, value, 0.0)) return;
  int *link = &w->first[of];
  for (; *link != NONE; link = &w->term[*link].next) {
    scl_term *same = &w->term[*link];
    if (same->entries != entries) continue;
    same->value = scl_tape_binary(w->t, SCL_OP_ADD, same->value, value);
    return;
  }
  *link = w->terms;
  if (!scl_tape_grow(w->t, &w->term, &w->term_room, w->terms, 1, sizeof *w->term)) {
    w->first[of] = NONE;
    return;
  }
  w->term[w->terms++] = (scl_term){entries, value, NONE};
  if (terms_of(w, of) > MOST_TERMS) scl_sparse_merge(w, of, true);
}

int scl_sparse_pick(scl_jacobian *w, int x, const size_t *pick, size_t count) {
  if (w->t->status != SCL_OK || count == 0) return 0;
  bool consecutive = true;
  for (size_t k = 0; k < count && consecutive; k++) consecutive = pick[k] == pick[0] + k;
  if (consecutive) return scl_tape_part(w->t, x, pick[0], count);
  double *index = scl_sparse_room(w, count, sizeof *index);
  for (size_t k = 0; index != NULL && k < count; k++) index[k] = (double)pick[k];
  return scl_tape_gather(w->t, x, scl_tape_own_data(w->t, index, count));
}

void scl_sparse_add_picked(scl_jacobian *w, int of, int entries, int value, const size_t *pick) {
  if (w->t->status != SCL_OK || w->entries[entries].length == 0) return;
  if (scl_tape_length(w->t, value) > 1) {
    value = scl_sparse_pick(w, value, pick, w->entries[entries].length);
  }
  scl_sparse_add(w, of, entries, value);
}

int scl_sparse_by_row(scl_jacobian *w, int x, int entries) {
  scl_entries *e = &w->entries[entries];
  if (w->t->status != SCL_OK || scl_tape_length(w->t, x) == 1) return x;
  if (e->row == NULL) return scl_tape_part(w->t, x, e->from, e->length);
  if (e->rows == NONE) {
    double *index = scl_sparse_room(w, e->length, sizeof *index);
    for (size_t k = 0; index != NULL && k < e->length; k++) index[k] = e->row[k];
    e->rows = scl_tape_own_data(w->t, index, e->length);
  }
  return scl_tape_gather(w->t, x, e->rows);
}

int scl_sparse_concat(scl_jacobian *w, int value) {
  int *part = scl_sparse_room(w, (size_t)terms_of(w, value), sizeof *part), parts = 0;
  for (int k = w->first[value]; part != NULL && k != NONE; k = w->term[k].next) {
    part[parts++] = scl_tape_fill(w->t, w->term[k].value, scl_entries_of(w, k)->length);
  }
  const int all = part != NULL ? scl_tape_concat(w->t, parts, part) : 0;
  free(part);
  return all;
}

/* Sorted entries that are different: fills `to` for each entry with its place, and the arrays of
 * these places. Returns how many there are. */
static size_t find_places(size_t count, const size_t *order, uint32_t *row, uint32_t *column,
                          double *to, uint32_t *new_row, uint32_t *new_column) {
  size_t places = 0;
  for (size_t k = 0; k < count; k++) {
    const size_t e = order[k];
    if (places == 0 || new_row[places - 1] != row[e] || new_column[places - 1] != column[e]) {
      new_row[places] = row[e];
      new_column[places++] = column[e];
    }
    to[e] = (double)(places - 1);
  }
  return places;
}

static void replace_terms(scl_jacobian *w, int value, size_t count, double *to, uint32_t *row,
                          uint32_t *column, size_t places) {
  const int all = scl_sparse_concat(w, value);
  const int merged = scl_tape_scatter(w->t, all, scl_tape_own_data(w->t, to, count), places);
  w->first[value] = NONE;
  const int entries = scl_sparse_entries(w, places, row, column);
  scl_sparse_add(w, value, entries, merged);
}

void scl_sparse_merge(scl_jacobian *w, int value, bool always) {
  const size_t length = scl_tape_length(w->t, value);
  size_t count = 0, at = 0, places = 0;
  for (int k = w->first[value]; k != NONE; k = w->term[k].next) {
    count += scl_entries_of(w, k)->length;
  }
  if (w->t->status != SCL_OK || count == 0 || (!always && count <= length)) return;
  uint32_t *row = scl_sparse_room(w, count, sizeof *row);
  uint32_t *column = scl_sparse_room(w, count, sizeof *column);
  uint32_t *new_row = scl_sparse_room(w, count, sizeof *new_row);
  uint32_t *new_column = scl_sparse_room(w, count, sizeof *new_column);
  size_t *order = scl_sparse_room(w, count, sizeof *order);
  double *to = scl_sparse_room(w, count, sizeof *to);
  for (int k = w->first[value]; w->t->status == SCL_OK && k != NONE; k = w->term[k].next) {
    const scl_entries *e = scl_entries_of(w, k);
    for (size_t i = 0; i < e->length; i++, at++) {
      row[at] = scl_entries_row(e, i);
      column[at] = e->column[i];
    }
  }
  if (w->t->status == SCL_OK && scl_sparse_sort(w, count, row, length, column, w->columns, order)) {
    places = find_places(count, order, row, column, to, new_row, new_column);
  }
  if (w->t->status == SCL_OK && (always || 4 * places < 3 * count)) {
    replace_terms(w, value, count, to, new_row, new_column, places);
    new_row = new_column = NULL;
    to = NULL;
  }
  free(row);
  free(column);
  free(new_row);
  free(new_column);
  free(order);
  free(to);
}
