/* Triangular solves with few right-hand sides: launches of triangular_vector.cl, four a block. */
#include "scl_cl_linalg.h"

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

typedef struct {
  scl_cl_op *op;
  const scl_cl_vectors *v;
  size_t n, block, blocks;
  bool reversed;  /* M is upper: the last block comes first */
  scl_block x, w; /* inverses, workspace */
} chain;

/* Unknowns from `begin` to before `end`. */
typedef struct {
  size_t begin, end;
} range;

static size_t groups_of(size_t count, size_t each) {
  return (count + each - 1) / each;
}

/* The block that comes as number `at`. */
static range block_at(const chain *c, size_t at) {
  size_t begin = (c->reversed ? c->blocks - 1 - at : at) * c->block;
  return (range){begin, min_size(c->n, begin + c->block)};
}

/* The `share`-th third of the unknowns that come after block `at`, in whole groups. */
enum { SHARES = 3 };

static range far_share(const chain *c, size_t at, size_t share) {
  range block = block_at(c, at);
  range far = {c->reversed ? 0 : block.end, c->reversed ? block.begin : c->n};
  size_t length = far.begin < far.end ? far.end - far.begin : 0;
  size_t each = scl_round_up(groups_of(length, SHARES), 32);
  range part = {far.begin + min_size(length, share * each),
                far.begin + min_size(length, (share + 1) * each)};
  return part;
}

/* One link: rows of `rows` and columns of `columns`; beside it the rows `far` learn of `known`. */
static scl_status launch_link(const chain *c, int what, range rows, range columns, range far,
                              range known) {
  static const scl_cl_kernel kernels[2][2] = {
      {SCL_K_triangular_vector_n, SCL_K_triangular_vector_t},
      {SCL_K_triangular_vector_few_n, SCL_K_triangular_vector_few_t}};
  const scl_cl_vectors *v = c->v;
  bool few = v->rhs > 1;
  size_t groups = groups_of(rows.end - rows.begin, VECTOR_ROWS);
  size_t far_groups = groups_of(far.end - far.begin, VECTOR_ROWS);
  size_t local[2] = {VECTOR_ITEMS, 1};
  size_t global[2] = {(groups + far_groups) * VECTOR_ITEMS,
                      groups_of(v->rhs, few ? VECTOR_COLUMNS : 1)};
  return scl_cl_launch(c->op, kernels[few][v->transposed], 2, global, local, "iiiiiiiiiibmmlllm",
                       (int)c->n, (int)v->rhs, c->reversed ? -1 : 1, what, (int)groups,
                       (int)rows.begin, (int)columns.begin, (int)far.begin, (int)far.end,
                       (int)known.begin, v->t, c->x.buffer, v->b.buffer, (long long)v->b.offset,
                       (long long)v->step, (long long)v->next, c->w.buffer);
}

static scl_status solve_chain(const chain *c) {
  static const int links[SHARES] = {VECTOR_APPLY, VECTOR_RESIDUAL, VECTOR_CORRECT};
  const range none = {0, 0};
  for (size_t at = 0; at < c->blocks; at++) {
    range now = block_at(c, at), before = at > 0 ? block_at(c, at - 1) : none;
    for (size_t k = 0; k < SHARES; k++)
      SCL_TRY(launch_link(c, links[k], now, now, at > 0 ? far_share(c, at, k) : none, before));
    if (at + 1 < c->blocks)
      SCL_TRY(launch_link(c, VECTOR_FOLLOW, block_at(c, at + 1), now, none, none));
  }
  return SCL_OK;
}

bool scl_cl_trsv_pays(const scl_cl_op *op, size_t n, size_t rhs) {
  return !op->cl->cpu && n > VECTOR_LEAST && rhs <= VECTOR_RHS;
}

scl_status scl_cl_trsv_in(scl_cl_op *op, const scl_cl_vectors *v) {
  size_t n = v->t.nrow, block = VECTOR_BLOCK;
  chain c = {.op = op, .v = v, .n = n, .block = block, .blocks = groups_of(n, block)};
  c.reversed = v->lower == v->transposed;
  SCL_TRY(scl_cl_temporary(op, (block + 1) * n, 1, &c.x));
  c.x = (scl_block){.buffer = c.x.buffer, .ld = block, .nrow = n, .ncol = n};
  scl_status status = scl_cl_temporary(op, 2 * n, v->rhs, &c.w);
  if (status == SCL_OK) {
    SCL_GO(scl_cl_diagonal_inverses_in(op, v->lower, block, v->t, c.x));
    SCL_GO(solve_chain(&c));
  done:
    scl_buffer_release(c.w.buffer);
  }
  scl_buffer_release(c.x.buffer);
  return status;
}
