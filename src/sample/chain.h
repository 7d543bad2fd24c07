/* One Markov chain: the no-U-turn sampler, or Hamiltonian Monte Carlo with a fixed number of steps.
 *
 * The momentum is kept in units in which it is standard normal: p = L' (usual momentum) with the
 * inverse mass matrix L L', diagonal, dense or of low rank plus diagonal. A leapfrog step of size e
 * is then, with C = e L, p <- p + C' gradient / 2;  q <- q + C p;  p <- p + C' gradient / 2, and
 * the products of the U-turn criterion need no mass matrix.
 *
 * NUTS is the multinomial sampler with the generalised criterion (Betancourt, 2017,
 * arXiv:1701.02434, appendix A), with the further checks across the halves of each tree that Stan
 * has had since 2.21. tests/testthat/helper-sample-chain.R is the same in R; given the same values,
 * both make the same draws, bit for bit.
 *
 * A chain is a state machine that asks for one evaluation after another. So it can stop between any
 * two and continue later. */
#ifndef SCL_SAMPLE_CHAIN_H
#define SCL_SAMPLE_CHAIN_H

#include "ops/sparse.h"
#include "sample/random.h"
#include "sample/target.h"

typedef struct {
  size_t dimension;
  int warmup, iter;
  bool static_steps; /* HMC with `leapfrogs` steps, else NUTS */
  int leapfrogs, max_depth;
  bool adapts_metric;
  bool dense;   /* the inverse metric is a matrix, else diagonal */
  size_t rank;  /* not 0: plus at most this many directions (sample/lowrank.h) */
  bool chooses; /* of low rank: only where that pays */
  /* NULL; or the factor of a precision P, borrowed: the other parts of the metric are in units in
   * which P is the identity, so that the inverse mass matrix is W L L' W' with W W' = P^-1. */
  const scl_sparse_factor *sparse;
  bool pools; /* chains wait at the end of each window (scl_chains_pool()) */
  double adapt_delta;
  double step_size;             /* 0: found by trial */
  const double *inverse_metric; /* diagonal, or lower triangle; read when the chain is made */
  size_t directions; /* of low rank: number of eigenvalues and -vectors after the diagonal */
  bool save_warmup;  /* keeps the draws of the warm-up */
  bool reject_nan;   /* points where value or gradient is NaN have density zero */
} scl_chain_options;

typedef struct scl_chain scl_chain;

/* A chain at `start`, which takes the stream over, also on failure. SCL_E_MEMORY. */
scl_status scl_chain_make(const scl_chain_options *options, const double *start, scl_random *stream,
                          scl_chain **out);
void scl_chain_free(scl_chain *c); /* accepts NULL */
/* Another start: `centre` plus uniform numbers between -jitter and jitter. SCL_E_MEMORY. */
scl_status scl_chain_place(scl_chain *c, const double *centre, double jitter);

typedef enum {
  SCL_CHAIN_RUNS,  /* the limit was reached */
  SCL_CHAIN_ENDED, /* all iterations are done */
  SCL_CHAIN_ASKS,  /* value or gradient at the point is NaN, or the value Inf: see
                      scl_chain_answer() */
  SCL_CHAIN_FLAT,  /* no step size is too large */
  SCL_CHAIN_STEEP, /* no step size is small enough */
  SCL_CHAIN_WAITS, /* for scl_chains_pool() */
  SCL_CHAIN_FAILS /* most iterations end at a point that cannot be evaluated: of the warm-up, at its
                     end, or of those after it, at each hundredth and at the end */
} scl_chain_stop;

/* Goes on until `iterations` are done, `seconds` are over, or the chain stops before. If the target
 * fails, its status is returned, and the same call continues from that point. */
scl_status scl_chain_run(scl_chain *c, const scl_target *target, int iterations, double seconds,
                         scl_chain_stop *out);
/* The result at the point in place of the target's. gradient NULL: the point has density zero,
 * since it cannot be evaluated if the value is NaN. SCL_E_MEMORY. */
scl_status scl_chain_answer(scl_chain *c, double value, const double *gradient,
                            scl_chain_stop *out);
/* Sets the inverse metric of chains that wait, from the positions in the windows of all; they
 * continue. */
scl_status scl_chains_pool(scl_chain *const *chain, int count);
/* Time counts between a start of the clock and its stop, and in scl_chain_run(). */
void scl_chain_clock(scl_chain *c, bool runs);

/* Several chains over one target, until each has done as many iterations as its `goal`, `seconds`
 * are over, or all have stopped. A chain whose point could not be evaluated stops with
 * SCL_CHAIN_ASKS. SCL_E_INTERRUPT, SCL_E_MEMORY: the same call continues.
 *
 * On threads if `program` is the target's program and its engine waits for its work; NULL: not. In
 * lockstep `vectors` > 1 points are evaluated together, and it returns as soon as one chain reaches
 * its goal or stops; but with scl_target.any_vectors others go on when one has ended or waits. */
scl_status scl_chains_run(scl_chain *const *chain, int count, const scl_target *target,
                          scl_program *program, size_t vectors, const int *goal, double seconds,
                          scl_chain_stop *stop);

/* The same for groups of chains over targets that are computed in different places: side by side, a
 * thread for each group. */
typedef struct {
  scl_chain *const *chain;
  int count;
  const scl_target *target;
  scl_program *program;
  size_t vectors;
  const int *goal;
  scl_chain_stop *stop;
} scl_chain_group;
scl_status scl_chain_groups_run(const scl_chain_group *group, int groups, double seconds);

/* The state and the results so far; borrowed. */
enum { SCL_CHAIN_FIGURES = 7 };
typedef struct {
  size_t dimension;
  int iteration, done;           /* the one in progress, and how many are complete */
  bool waits;                    /* SCL_CHAIN_WAITS */
  int rejections;                /* points of density zero, among them failures: */
  int failures, warmup_failures; /* points that could not be evaluated, and those in the warm-up */
  int failed_iterations;         /* that ended there: of the warm-up, then after it */
  const double *lost;            /* the last of these points; NULL: none */
  double evaluations, step_size, elapsed, warmup_seconds; /* NaN before the end of the warm-up */
  const double *point;                                    /* to be evaluated next */
  const double *scale;  /* square roots of the diagonal part of the inverse metric */
  const double *factor; /* lower Cholesky factor of a dense one, and its transpose; else NULL */
  int rank;             /* directions of low rank, their eigenvalues and vectors */
  const double *value, *vector;
  const double *draws; /* `dimension` numbers for each iteration that is kept */
  int kept;            /* of the iterations done */
  /* For each iteration done: acceptance statistic, step size, depth, steps, divergence, energy and
   * log density. */
  const double *figures;
} scl_chain_view;
scl_chain_view scl_chain_view_of(const scl_chain *c);

/* The image of a chain, from which another process continues with the same draws. Valid for chains
 * with the same options on machines with the same formats of numbers. SCL_E_ARGUMENT for other
 * bytes, which leave the chain as it was. */
size_t scl_chain_image_size(const scl_chain *c);
void scl_chain_save(const scl_chain *c, void *image);
scl_status scl_chain_restore(scl_chain *c, const void *image, size_t bytes);

#endif
