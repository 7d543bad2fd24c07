/* The metric of a chain: given, or from the positions of a window. */
#include <math.h>
#include <string.h>

#include "sample/state.h"

bool scl_chain_set_metric(scl_chain *c, const double *inverse) {
  const size_t d = c->options.dimension;
  if (!c->options.dense) {
    const size_t rank = c->options.directions;
    for (size_t k = 0; k < d; k++) c->scale[k] = sqrt(inverse[k]);
    if (rank > 0) scl_lowrank_set(&c->lowrank, rank, inverse + d, inverse + d + rank);
    return true;
  }
  memcpy(c->factor, inverse, d * d * sizeof *inverse);
  return scl_metric_factor(d, c->factor);
}

/* Whether the metric is of low rank now. */
static bool take_low_rank(scl_chain *c, const scl_adaptation *w) {
  const size_t n = (size_t)w->kept;
  double *const x = w->positions, *const g = w->gradients;
  if (c->options.chooses) return scl_lowrank_choose(&c->lowrank, n, x, g, c->work);
  scl_lowrank_fit(&c->lowrank, n, x, g, c->work);
  return true;
}

void scl_chain_take_metric(scl_chain *c) {
  const size_t d = c->options.dimension;
  if (c->options.rank > 0 && take_low_rank(c, &c->adapt)) return;
  double *inverse = c->options.dense ? c->factor : c->scale;
  scl_adapt_inverse(&c->adapt, inverse);
  if (!c->options.dense) {
    for (size_t k = 0; k < d; k++) c->scale[k] = sqrt(c->scale[k]);
  } else if (!scl_metric_factor(d, inverse)) {
    scl_adapt_inverse(&c->adapt, inverse);
    for (size_t k = 0; k < d * d; k++) {
      if (k % (d + 1) != 0) inverse[k] = 0.0;
    }
    scl_metric_factor(d, inverse);
  }
}

void scl_chain_copy_metric(scl_chain *c, const scl_chain *from) {
  const size_t d = c->options.dimension, rank = c->options.rank;
  scl_assign(c, c->scale, from->scale);
  if (c->factor != NULL) memcpy(c->factor, from->factor, d * d * sizeof *c->factor);
  if (rank > 0) {
    memcpy(c->lowrank.rank, from->lowrank.rank, scl_lowrank_room(d, rank) * sizeof *c->scale);
  }
}
