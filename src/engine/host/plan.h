/* Runs of numbers of the host engine: between engine/host/plan_ops.c and its users. */
#ifndef SCL_ENGINE_HOST_PLAN_H
#define SCL_ENGINE_HOST_PLAN_H

#include "engine/plan/plan.h"
#include "engine/host/host.h"

/* Numbers, or one number for all of them (array == NULL). */
typedef struct {
  const double *array;
  double number;
} scl_run;

enum {
  SCL_RUN_BLOCK = 512,       /* numbers of a run: 4 KiB, some of which fit the first-level cache */
  SCL_RUN_TEAM_WORK = 500000 /* additions worth several threads: to start one takes some 50 us */
};

/* One operation other than a vector function (engine/host/vector_math.h). */
typedef void scl_op_loop(size_t n, const scl_run *arg, double *dst);
scl_op_loop *scl_op_loop_of(scl_op op);

/* dst = op(arg[0], ...), n times; one of the arguments is an array. dst may be one of them. */
void scl_run_op(scl_op op, size_t n, const scl_run *arg, double *dst);

typedef struct {
  double (*run)(size_t n, const double *x);               /* to one number */
  void (*each)(size_t n, double *total, const double *x); /* each into its own total */
  double (*combine)(double u, double v);
} scl_host_reduction;

extern const scl_host_reduction scl_host_reductions[SCL_REDUCE_COUNT];
double scl_run_reduction(scl_reduction op, size_t n, const double *x); /* to one number */

/* Of one column: rows of a block, and of a tile, which one thread computes block by block. In a
 * pass (engine/plan/pass.h) the rows of X in a block stay in the cache. */
size_t scl_run_block_rows(const scl_plan *p);
size_t scl_run_tile_rows(const scl_plan *p);
/* Columns of a block: more than one only where they are short, and then all their rows. */
size_t scl_run_block_columns(const scl_plan *p);
/* Additions for an element; reading and writing count as one. */
double scl_run_work(const scl_plan *p);

/* Adds the products of an output and n rows of X, from row i on, to its columns. */
void scl_run_products(const scl_plan *p, const scl_output *o, size_t i, size_t n, const double *r,
                      double *to);
/* The numbers of a reduction in one tile. */
static inline size_t scl_run_results(const scl_plan *p, const scl_output *o) {
  return o->product ? p->leaf[o->first].length : 1;
}

/* Blocks for a plan's steps: slot[s] is that of step s, which others take after its last use.
 * Returns how many there are. */
int scl_give_slots(const scl_plan *p, int16_t *slot);

#endif
