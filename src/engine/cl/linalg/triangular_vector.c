/* Triangular solves with few right-hand sides: launches of triangular_vector.cl, one a block. */
#include "engine/cl/linalg/linalg.h"

/* The system in the kernel's terms: positions count the unknowns in the order of solving. */
typedef struct {
  size_t n, rhs;
  const scl_kernel_triangular_vector *kernel;
  scl_block t, b; /* offsets: of the first position */
  long long row, column, step, next;
  scl_block work;
} chain;

static chain chain_of(const scl_cl_vectors *v) {
  size_t n = v->t.nrow, ld = v->t.ld;
  chain c = {.n = n, .rhs = v->rhs, .t = v->t, .b = v->b};
  c.kernel = v->transposed ? &scl_k_triangular_vector_t : &scl_k_triangular_vector_n;
  c.row = v->transposed ? (long long)ld : 1;
  c.column = v->transposed ? 1 : (long long)ld;
  c.step = (long long)v->step;
  c.next = (long long)v->next;
  if (v->lower == v->transposed) { /* M is upper: the last unknown comes first */
    c.t.offset += (n - 1) * (ld + 1);
    c.b.offset += (n - 1) * v->step;
    c.row = -c.row;
    c.column = -c.column;
    c.step = -c.step;
  }
  return c;
}

/* The launch for block `at`; -1: tiles of the first block only. */
static scl_status launch_block(scl_cl_op *op, const chain *c, int at) {
  size_t begin = (size_t)(at + 1) * VECTOR_BLOCK; /* of the next block */
  size_t rest = begin < c->n ? c->n - begin : 0;
  size_t beyond = rest > VECTOR_BLOCK ? rest - VECTOR_BLOCK : 0;
  size_t near = scl_ceil_div(rest - beyond, VECTOR_NEAR * VECTOR_LANES);
  size_t far = at > 0 ? scl_ceil_div(beyond, VECTOR_FAR * VECTOR_LANES) : 0;
  size_t rows = scl_ceil_div(rest - beyond, VECTOR_TILE), tiles = rows * (rows + 1) / 2;
  if (near == 0) near = 1; /* solves the last block */
  if (at < 0) near = 0;
  size_t groups = (near + far) * c->rhs + tiles;
  const triangular_vector_task task = {.row = c->row,
                                       .column = c->column,
                                       .unknown_step = c->step,
                                       .side_step = c->next,
                                       .n = (int)c->n,
                                       .rhs = (int)c->rhs,
                                       .at = at,
                                       .near = (int)near,
                                       .tiles = (int)tiles};
  return scl_launch_triangular_vector(
      op, c->kernel, scl_cl_range_1(groups * VECTOR_BLOCK, VECTOR_BLOCK), scl_in_at(c->t),
      scl_inout_at(c->b), scl_inout_buffer(c->work.buffer), &task);
}

bool scl_cl_trsv_pays(const scl_cl_op *op, size_t n, size_t rhs) {
  return !op->cl->cpu && n > TRIANGULAR_LEAF / 2 && rhs <= VECTOR_RHS;
}

scl_status scl_cl_trsv_in(scl_cl_op *op, const scl_cl_vectors *v) {
  chain c = chain_of(v);
  int blocks = (int)scl_ceil_div(c.n, VECTOR_BLOCK);
  SCL_TRY(scl_cl_temporary(op, 2 * (VECTOR_PACKED + VECTOR_BLOCK * v->rhs), 1, &c.work));
  scl_status status = SCL_OK;
  for (int at = -1; at < blocks && status == SCL_OK; at++) status = launch_block(op, &c, at);
  scl_buffer_release(c.work.buffer);
  return status;
}
