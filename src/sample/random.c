#include "sample/random.h"

#include <stdlib.h>
#include <string.h>

scl_status scl_random_grow(scl_random *s, size_t n) {
  if (n <= s->room) return SCL_OK;
  double *more = realloc(s->buffer, n * sizeof *more);
  if (more == NULL) return scl_fail_memory(n * sizeof *more, 0, "random numbers");
  s->buffer = more;
  s->room = n;
  return SCL_OK;
}

scl_status scl_random_begin(scl_random *s, const int state[6], double (*quantile)(double)) {
  *s = (scl_random){.quantile = quantile};
  for (int k = 0; k < 6; k++) s->state[k] = (uint32_t)state[k];
  return scl_random_grow(s, SCL_RANDOM_BLOCK);
}

void scl_random_end(scl_random *s) {
  free(s->buffer);
  *s = (scl_random){.quantile = NULL};
}

static const int64_t m1 = 4294967087, m2 = 4294944443;

bool scl_random_sound(const scl_random *s) {
  const uint32_t *x = s->state;
  for (int k = 0; k < 6; k++) {
    if (x[k] >= (k < 3 ? m1 : m2)) return false;
  }
  return (x[0] | x[1] | x[2]) != 0 && (x[3] | x[4] | x[5]) != 0;
}

/* One step of both recurrences; a number in (0, 1). */
static double draw(scl_random *s) {
  uint32_t *x = s->state;
  int64_t a = (1403580 * (int64_t)x[1] - 810728 * (int64_t)x[0]) % m1;
  int64_t b = (527612 * (int64_t)x[5] - 1370589 * (int64_t)x[3]) % m2;
  if (a < 0) a += m1;
  if (b < 0) b += m2;
  x[0] = x[1];
  x[1] = x[2];
  x[2] = (uint32_t)a;
  x[3] = x[4];
  x[4] = x[5];
  x[5] = (uint32_t)b;
  return (double)(a > b ? a - b : a - b + m1) * 2.328306549295727688e-10;
}

/* A uniform number has 32 bits; the tails need the 27 more of a second one. */
void scl_random_normal(scl_random *s, size_t n, double *to) {
  const double big = 134217728.0; /* 2^27 */
  for (size_t k = 0; k < n; k++) {
    const double high = (double)(int)(big * draw(s));
    to[k] = s->quantile((high + draw(s)) / big);
  }
}

scl_status scl_random_uniform(scl_random *s, size_t n, const double **out) {
  if (s->used + n > s->count) {
    const size_t count = n > SCL_RANDOM_BLOCK ? n : SCL_RANDOM_BLOCK;
    SCL_TRY(scl_random_grow(s, count));
    for (size_t k = 0; k < count; k++) {
      do s->buffer[k] = draw(s);
      while (!(s->buffer[k] > 0.0 && s->buffer[k] < 1.0));
    }
    s->count = count;
    s->used = 0;
  }
  *out = s->buffer + s->used;
  s->used += n;
  return SCL_OK;
}

scl_status scl_random_copy(const scl_random *from, scl_random *to) {
  const size_t left = from->count - from->used;
  SCL_TRY(scl_random_grow(to, left > SCL_RANDOM_BLOCK ? left : SCL_RANDOM_BLOCK));
  memcpy(to->state, from->state, sizeof to->state);
  if (left > 0) memcpy(to->buffer, from->buffer + from->used, left * sizeof *to->buffer);
  to->quantile = from->quantile;
  to->used = 0;
  to->count = left;
  return SCL_OK;
}
