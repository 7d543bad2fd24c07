/* Passes on the host (engine/plan/pass.h): X' r is added up block by block, while the rows of X
 * from which the block's r was made are still in the cache. */
#include "base/sizes.h"
#include "engine/host/plan.h"
#include "engine/host/thin.h"

enum {
  CACHED = 24 * 1024 /
           sizeof(double), /* numbers of X in a block: some first-level caches, if it can be */
  MOST_COLUMNS = 512,
  LEAST_ROWS = 64, /* of a block: its columns need a minimal length */
  SHORT = 64,      /* rows of columns that share a block, at most */
  TILE = 16384,    /* rows where X is not read twice */
  DEAR = 4         /* the work of a function, in additions, at least */
};

size_t scl_host_pass_columns(scl_context *ctx) {
  (void)ctx;
  return MOST_COLUMNS;
}

size_t scl_run_block_rows(const scl_plan *p) {
  if (p->pass == 0) return SCL_RUN_BLOCK;
  const size_t rows = CACHED / scl_max(p->leaf[p->pass - 1].length, 1) / LEAST_ROWS * LEAST_ROWS;
  return rows < LEAST_ROWS ? LEAST_ROWS : scl_min(rows, SCL_RUN_BLOCK);
}

size_t scl_run_block_columns(const scl_plan *p) {
  bool can = p->n > 1 && p->m > 0 && p->m <= SHORT && p->pass == 0 && p->triangle == SCL_GENERAL;
  for (int s = 0; s < p->body && can; s++) {
    const scl_step *step = &p->step[s];
    can = step->kind == SCL_STEP_NUMBER || step->kind == SCL_STEP_APPLY ||
          (step->kind == SCL_STEP_LOAD && p->leaf[step->arg[0]].rectangle == 0);
  }
  for (int k = 0; k < p->outputs && can; k++) {
    const scl_output *o = &p->output[k];
    can = o->reduces ? o->op < SCL_REDUCE_COUNT && !scl_reduces_to_index(o->op) : o->dst.ld == p->m;
  }
  return can ? scl_run_block_rows(p) / p->m : 1;
}

double scl_run_work(const scl_plan *p) {
  double work = 1.0;
  for (int s = 0; s < p->body; s++) {
    const scl_step *step = &p->step[s];
    if (step->kind == SCL_STEP_MATVEC) work += (double)p->leaf[step->arg[0]].length;
    if (step->kind != SCL_STEP_APPLY) continue;
    const scl_op op = (scl_op)step->op;
    const bool cheap = op == SCL_OP_ADD || op == SCL_OP_SUB || op == SCL_OP_MUL ||
                       op == SCL_OP_DIV || op == SCL_OP_NEG || op == SCL_OP_SQUARE ||
                       op == SCL_OP_TIMES || op == SCL_OP_OVER;
    work += cheap ? 1.0 : DEAR;
  }
  for (int k = 0; k < p->outputs; k++) {
    if (p->output[k].product) work += (double)p->leaf[p->output[k].first].length;
  }
  return work;
}

/* As much work as several threads are worth is one tile, by the shape alone. */
size_t scl_run_tile_rows(const scl_plan *p) {
  if (p->pass == 0) return TILE;
  const size_t block = scl_run_block_rows(p);
  return scl_ceil_div((size_t)(SCL_RUN_TEAM_WORK / scl_run_work(p)), block) * block;
}

void scl_run_products(const scl_plan *p, const scl_output *o, size_t i, size_t n, const double *r,
                      double *to) {
  const scl_leaf *x = &p->leaf[o->first];
  scl_host_add_dots(n, x->length, ((const scl_host_buffer *)x->buffer)->data + x->at + i, x->inner,
                    r, to);
}
