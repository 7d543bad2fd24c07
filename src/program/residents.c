/* Data of programs on the engine. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "program/compile.h"
#include "program/facts.h"

static scl_status make_room(scl_residents *r, int data) {
  const int before = r->room;
  SCL_TRY(scl_grow(&r->of, &r->room, (size_t)data + 1, sizeof *r->of, "a program"));
  memset(r->of + before, 0, (size_t)(r->room - before) * sizeof *r->of);
  return SCL_OK;
}

scl_status scl_resident_numbers(scl_residents *r, int data, scl_block *out) {
  SCL_TRY(make_room(r, data));
  scl_resident *d = &r->of[data];
  const scl_tape_data *from = &r->tape->data[data];
  if (d->numbers.buffer == NULL)
    SCL_TRY(scl_block_upload(r->ctx, from->numbers, from->length, SCL_ORIGINAL, &d->numbers));
  *out = d->numbers;
  return SCL_OK;
}

/* For each element, where its list of indices begins; then the lists, one after the other. Returns
 * the length of the longest list. */
static size_t sort_indices(const scl_tape_data *index, size_t elements, double *starts,
                           double *order) {
  double most = 0.0;
  for (size_t e = 0; e <= elements; e++) starts[e] = 0.0;
  for (size_t k = 0; k < index->length; k++) starts[(size_t)index->numbers[k] + 1] += 1.0;
  for (size_t e = 0; e < elements; e++) {
    if (starts[e + 1] > most) most = starts[e + 1];
    starts[e + 1] += starts[e];
  }
  /* starts[e] moves to the end of e's list, which is where those of e + 1 begin. */
  for (size_t k = 0; k < index->length; k++) {
    const size_t e = (size_t)index->numbers[k];
    order[(size_t)starts[e]] = (double)k;
    starts[e] += 1.0;
  }
  for (size_t e = elements; e > 0; e--) starts[e] = starts[e - 1];
  starts[0] = 0.0;
  return (size_t)most;
}

scl_status scl_resident_groups(scl_residents *r, int data, size_t elements, scl_block *starts,
                               scl_block *order, size_t *most) {
  SCL_TRY(make_room(r, data));
  scl_resident *d = &r->of[data];
  const scl_tape_data *from = &r->tape->data[data];
  if (d->starts.buffer == NULL || d->elements != elements) {
    double *numbers = malloc((elements + 1 + from->length) * sizeof *numbers);
    if (numbers == NULL) {
      return scl_fail_memory((elements + 1 + from->length) * sizeof *numbers, 0, "a program");
    }
    d->most = sort_indices(from, elements, numbers, numbers + elements + 1);
    scl_buffer_release(d->starts.buffer);
    scl_buffer_release(d->order.buffer);
    d->starts = d->order = (scl_block){.buffer = NULL};
    scl_status status = scl_block_upload(r->ctx, numbers, elements + 1, SCL_ORIGINAL, &d->starts);
    if (status == SCL_OK) {
      status =
          scl_block_upload(r->ctx, numbers + elements + 1, from->length, SCL_ORIGINAL, &d->order);
    }
    free(numbers);
    SCL_TRY(status);
    d->elements = elements;
  }
  *starts = d->starts;
  *order = d->order;
  *most = d->most;
  return SCL_OK;
}

scl_status scl_resident_sparse(scl_residents *r, int data, size_t n, size_t count,
                               scl_sparse_known **out) {
  SCL_TRY(make_room(r, data));
  scl_resident *d = &r->of[data];
  if (d->sparse == NULL) {
    SCL_TRY(scl_sparse_known_create(r->tape->data[data].numbers, n, count, &d->sparse));
  }
  *out = d->sparse;
  return SCL_OK;
}

void scl_residents_end(scl_residents *r) {
  for (int k = 0; k < r->room; k++) {
    scl_sparse_known_release(r->of[k].sparse);
    scl_buffer_release(r->of[k].numbers.buffer);
    scl_buffer_release(r->of[k].starts.buffer);
    scl_buffer_release(r->of[k].order.buffer);
  }
  free(r->of);
  r->of = NULL;
  r->room = 0;
}

scl_status scl_residents_share(scl_residents *r, const scl_residents *others, int count) {
  if (count > others->room) count = others->room;
  if (count == 0) return SCL_OK;
  SCL_TRY(make_room(r, count - 1));
  for (int k = 0; k < count; k++) {
    r->of[k] = others->of[k];
    r->of[k].sparse = NULL;
    scl_buffer_retain(r->of[k].numbers.buffer);
    scl_buffer_retain(r->of[k].starts.buffer);
    scl_buffer_retain(r->of[k].order.buffer);
  }
  return SCL_OK;
}

scl_status scl_residents_assume(scl_residents *r) {
  for (int k = 0; k < r->tape->data_used; k++) {
    if (r->tape->data[k].assumed == 0) continue;
    SCL_TRY(make_room(r, k));
    r->of[k].assumed |= r->tape->data[k].assumed;
  }
  return SCL_OK;
}

scl_status scl_residents_check(const scl_residents *r, int index, const double *numbers,
                               size_t length) {
  const unsigned assumed = index < r->room ? r->of[index].assumed : 0;
  if (scl_numbers_have(numbers, length, assumed)) return SCL_OK;
  return scl_fail_argument("values",
                           "data number %d no longer have the properties that the "
                           "program relies on",
                           index + 1);
}

scl_status scl_residents_set(scl_residents *r, int index, const double *numbers, size_t length) {
  const scl_resident *d = index < r->room ? &r->of[index] : NULL;
  const bool used =
      d != NULL && (d->numbers.buffer != NULL || d->elements > 0 || d->sparse != NULL);
  if (!used) return SCL_OK;
  if (d->starts.buffer != NULL || d->is_index || d->sparse != NULL) {
    return scl_fail_argument("index", "data number %d are indices", index + 1);
  }
  if (d->numbers.nrow != length) {
    return scl_fail_argument("values", "'values' must have length %zu, not %zu", d->numbers.nrow,
                             length);
  }
  return r->ctx->engine->upload(r->ctx, SCL_GENERAL, numbers, length, d->numbers);
}

static uint64_t bytes_of(const scl_buffer *buffer, const scl_buffer *other) {
  return buffer != NULL && buffer != other ? buffer->bytes : 0;
}

uint64_t scl_residents_bytes(const scl_residents *r, const scl_residents *others) {
  static const scl_resident none;
  uint64_t bytes = 0;
  for (int k = 0; k < r->room; k++) {
    const scl_resident *d = &r->of[k];
    const scl_resident *o = others != NULL && k < others->room ? &others->of[k] : &none;
    bytes += bytes_of(d->numbers.buffer, o->numbers.buffer);
    bytes += bytes_of(d->starts.buffer, o->starts.buffer);
    bytes += bytes_of(d->order.buffer, o->order.buffer);
  }
  return bytes;
}
