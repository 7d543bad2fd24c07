/* Transitions of the no-U-turn sampler: multinomial sampling from a trajectory that doubles until
 * it turns. The recursion is unrolled: c->node holds the finished subtrees to the left of the
 * current point: one for each binary digit 1 of the number of points. */
#include <math.h>

#include "sample/state.h"

static double log_add(double a, double b) {
  if (a > b) return a + log1p(exp(b - a));
  return b == -INFINITY ? b : b + log1p(exp(a - b));
}

static void add(size_t n, const double *a, const double *b, double *to) {
  for (size_t k = 0; k < n; k++) to[k] = a[k] + b[k];
}

/* Whether two adjacent trajectories make a U-turn: together, and each with the first point of the
 * other. For single points the three checks are one. */
static bool turns(const scl_chain *c, scl_subtree a, scl_subtree b, bool points) {
  const size_t n = c->options.dimension;
  add(n, a.rho, b.rho, c->room);
  if (!scl_both_positive(n, a.first, b.last, c->room)) return true;
  if (points) return false;
  add(n, a.rho, b.first, c->room);
  if (!scl_both_positive(n, a.first, b.first, c->room)) return true;
  add(n, a.last, b.rho, c->room);
  return !scl_both_positive(n, a.last, b.last, c->room);
}

/* Doubles the trajectory on one side. */
static scl_status begin_doubling(scl_chain *c) {
  c->size = 1 << c->depth;
  SCL_TRY(scl_random_uniform(&c->stream, (size_t)c->size + 2, &c->u));
  c->side = c->u[0] > 0.5;
  c->direction = c->side ? 1.0 : -1.0;
  c->leaf = 0;
  c->tree_weight = -INFINITY;
  const scl_phase_point *end = &c->end[c->side];
  scl_assign(c, c->p, end->p);
  scl_half_step(c, end->g, c->p, false);
  scl_full_step(c, end->q);
  return SCL_OK;
}

scl_status scl_tree_begin(scl_chain *c) {
  for (int side = 0; side < 2; side++) {
    scl_assign(c, c->end[side].q, c->q);
    scl_assign(c, c->end[side].p, c->p);
    scl_assign(c, c->end[side].g, c->g);
  }
  scl_assign(c, c->rho, c->p);
  c->log_weight = 0.0;
  return begin_doubling(c);
}

static scl_status end_doubling(scl_chain *c, scl_subtree new, const double *gradient, bool *more) {
  scl_phase_point *end = &c->end[c->side];
  const scl_subtree old = {c->end[!c->side].p, end->p, c->rho};
  if (log(c->u[c->size + 1]) < c->tree_weight - c->log_weight) {
    scl_assign(c, c->q, c->proposal.q);
    scl_assign(c, c->g, c->proposal.g);
    c->lp = c->proposal_lp;
    c->energy1 = c->proposal_energy;
  }
  c->log_weight = log_add(c->log_weight, c->tree_weight);
  c->depth++;
  if (c->depth >= c->options.max_depth || turns(c, old, new, c->size == 1)) return SCL_OK;
  add(c->options.dimension, c->rho, new.rho, c->rho);
  scl_assign(c, end->q, c->at);
  scl_assign(c, end->p, new.last);
  scl_assign(c, end->g, gradient);
  *more = true;
  return begin_doubling(c);
}

/* Energy and weight of the point, which may be the proposal. False: the trajectory diverges. */
static bool weigh(scl_chain *c, double value, const double *gradient) {
  const double energy = scl_kinetic(c, c->p) - value;
  double weight = c->energy0 - energy;
  if (isnan(weight)) weight = -INFINITY;
  c->leaf++;
  c->leapfrog++;
  c->metropolis += weight > 0.0 ? 1.0 : exp(weight);
  c->divergent = weight < -SCL_LARGEST_ERROR;
  if (c->divergent) return false;
  /* Each point replaces the proposal of the subtree with probability proportional to its weight. */
  const double sum = log_add(c->tree_weight, weight);
  c->tree_weight = sum;
  if (log(c->u[c->leaf]) <= weight - sum) {
    scl_assign(c, c->proposal.q, c->at);
    scl_assign(c, c->proposal.g, gradient);
    c->proposal_lp = value;
    c->proposal_energy = energy;
  }
  return true;
}

scl_status scl_tree_receive(scl_chain *c, double value, const double *gradient, bool *more) {
  scl_subtree here = {c->p, c->p, c->sum};
  int level = 0;
  *more = false;
  scl_half_step(c, gradient, c->p, false);
  if (!weigh(c, value, gradient)) return SCL_OK;
  scl_assign(c, c->sum, c->p);
  for (int rest = c->leaf; rest % 2 == 0; rest /= 2, level++) {
    const scl_subtree left = c->node[level];
    if (turns(c, left, here, level == 0)) return SCL_OK;
    here.first = left.first;
    add(c->options.dimension, left.rho, here.rho, here.rho);
  }
  if (c->leaf == c->size) return end_doubling(c, here, gradient, more);
  scl_assign(c, c->node[level].first, here.first);
  scl_assign(c, c->node[level].last, here.last);
  scl_assign(c, c->node[level].rho, here.rho);
  scl_half_step(c, gradient, c->p, true);
  scl_full_step(c, c->at);
  *more = true;
  return SCL_OK;
}
