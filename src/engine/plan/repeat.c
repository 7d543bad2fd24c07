#include "engine/plan/repeat.h"

#include <stdlib.h>
#include <string.h>

void scl_numbers_free(scl_numbers *n) {
  if (n == NULL) return;
  free(n->step);
  free(n->place);
  free(n->constant);
  free(n);
}

scl_numbers *scl_numbers_make(size_t steps, size_t places, size_t constants) {
  scl_numbers *n = calloc(1, sizeof *n);
  if (n == NULL) return NULL;
  n->step = calloc(steps + 1, sizeof *n->step);
  n->place = calloc(places + 1, sizeof *n->place);
  n->constant = calloc(constants + 1, sizeof *n->constant);
  if (n->step != NULL && n->place != NULL && n->constant != NULL) return n;
  scl_numbers_free(n);
  return NULL;
}

scl_numbers *scl_numbers_copy(const scl_numbers *n) {
  scl_numbers *to = scl_numbers_make((size_t)n->steps, (size_t)n->places, (size_t)n->constants);
  if (to == NULL) return NULL;
  memcpy(to->step, n->step, (size_t)n->steps * sizeof *n->step);
  memcpy(to->place, n->place, (size_t)n->places * sizeof *n->place);
  memcpy(to->constant, n->constant, (size_t)n->constants * sizeof *n->constant);
  to->steps = n->steps;
  to->places = n->places;
  to->constants = n->constants;
  to->others = n->others;
  return to;
}
