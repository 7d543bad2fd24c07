/* Trial of substitution with matrix instructions: a matrix with 1 and -1 on its diagonal and few
 * other elements, whose blocks have inverses of whole numbers, so that each step is exact. Packing
 * is tested together with the solve that uses it. */
#include <stdlib.h>

#include "engine/cl/linalg/linalg.h"
#include "engine/cl/runtime/trial.h"

/* A whole block and part of another, with the number of right-hand sides to solve for. */
enum { ORDER = PANEL_ORDER + 21, SIDES = 22 };

/* X M = B, or M X = B, where M is block diagonal: only diagonal blocks of T count. */
typedef struct {
  bool right, copies; /* copies: packed by the kernel that also copies */
  scl_block t, b, copy, packed;
} trial_case;

static double triangle_entry(size_t i, size_t j) {
  if (i == j) return i % 3 == 0 ? -1.0 : 1.0;
  return i > j && (5 * i + 11 * j) % 17 == 0 ? 1.0 : 0.0;
}

static bool in_one_block(size_t i, size_t j) {
  return i / PANEL_ORDER == j / PANEL_ORDER;
}

/* B for the solution X of whole numbers. */
static void make_sides(bool right, const double *t, const double *x, double *b) {
  const size_t step = right ? SIDES : 1, next = right ? 1 : ORDER;
  for (size_t s = 0; s < SIDES; s++) {
    for (size_t i = 0; i < ORDER; i++) {
      double sum = 0.0;
      for (size_t k = 0; k < ORDER; k++) {
        const double entry = right ? t[k + i * ORDER] : t[i + k * ORDER];
        if (in_one_block(i, k)) sum += entry * x[k * step + s * next];
      }
      b[i * step + s * next] = sum;
    }
  }
}

static scl_status solve_blocks(scl_cl_op *op, const trial_case *c) {
  for (size_t at = 0; at < ORDER; at += PANEL_ORDER) {
    const size_t n = ORDER - at < PANEL_ORDER ? ORDER - at : PANEL_ORDER;
    scl_cl_packed_solve s = {.right = c->right,
                             .reversed = c->right,
                             .n = n,
                             .n_last = n,
                             .rhs = SIDES,
                             .rhs_last = SIDES,
                             .batch = 1,
                             .first = at / PANEL_ORDER,
                             .packed = c->packed};
    s.b = c->right ? scl_block_part(c->b, 0, at, SIDES, n) : scl_block_part(c->b, at, 0, n, SIDES);
    SCL_TRY(scl_cl_packed_solve_in(op, &s));
  }
  return SCL_OK;
}

static scl_status pack_and_solve(scl_cl_op *op, trial_case *c) {
  scl_status status;
  SCL_GO(scl_cl_op_order(op, -1));
  SCL_GO(scl_cl_packed_create(op, 2, &c->packed));
  if (c->copies) {
    SCL_GO(scl_cl_pack_and_copy_in(op, c->right, c->right, c->t, c->packed, 2 * (size_t)PANEL_ORDER,
                                   c->t, c->copy));
  } else {
    SCL_GO(scl_cl_pack_in(op, c->right, c->right, c->t, c->packed));
  }
  SCL_GO(solve_blocks(op, c));
done:
  scl_buffer_release(c->packed.buffer);
  return scl_cl_op_end(op, status);
}

/* `host`: T, X and the results. */
static scl_status try_side(scl_cl_context *cl, bool copies, bool right, double *host, bool *good) {
  const size_t square = (size_t)ORDER * ORDER, sides = (size_t)ORDER * SIDES;
  double *t = host, *x = t + square, *result = x + sides;
  const size_t rows = right ? SIDES : ORDER;
  trial_case c = {.right = right, .copies = copies};
  scl_cl_op op;
  scl_status status;
  make_sides(right, t, x, result);
  SCL_GO(scl_cl_trial_upload(cl, t, ORDER, ORDER, &c.t));
  SCL_GO(scl_cl_trial_upload(cl, result, rows, sides / rows, &c.b));
  SCL_GO(scl_block_create(&cl->base, ORDER, ORDER, &c.copy));
  scl_cl_op_begin(&op, &cl->base);
  scl_cl_op_reads(&op, c.t.buffer);
  scl_cl_op_writes(&op, c.b.buffer);
  scl_cl_op_writes(&op, c.copy.buffer);
  SCL_GO(pack_and_solve(&op, &c));
  SCL_GO(scl_cl_trial_download(cl, c.b, result, rows));
  *good = scl_cl_trial_is_near(result, x, sides, 0.0);
  if (*good && copies) {
    SCL_GO(scl_cl_trial_download(cl, c.copy, result, ORDER));
    *good = scl_cl_trial_is_near(result, t, square, 0.0); /* it is lower triangular */
  }
done:
  scl_buffer_release(c.t.buffer);
  scl_buffer_release(c.b.buffer);
  scl_buffer_release(c.copy.buffer);
  return status;
}

scl_status scl_cl_trial_triangular(scl_cl_context *cl, scl_cl_program which, bool *right) {
  const scl_cl_program copying = SCL_CL_PROGRAM_triangular_mma_pack_and_copy;
  const size_t numbers = 2 * ORDER * (size_t)ORDER + ORDER * (size_t)SIDES;
  /* The solve needs packed blocks, from the kernel that also copies if that is available. */
  const bool copies =
      which == copying || (which == SCL_CL_PROGRAM_triangular_mma_solve &&
                           cl->program[copying] != NULL && !scl_cl_is_refused(cl, copying));
  double *host = malloc(numbers * sizeof *host);
  scl_status status;
  if (host == NULL) return scl_fail_memory(numbers * sizeof *host, 0, "the trial of a kernel");
  for (size_t i = 0; i < (size_t)ORDER * ORDER; i++) host[i] = triangle_entry(i % ORDER, i / ORDER);
  for (size_t i = 0; i < (size_t)ORDER * SIDES; i++)
    host[(size_t)ORDER * ORDER + i] = scl_cl_trial_number(i % ORDER, i / ORDER);
  SCL_GO(try_side(cl, copies, false, host, right));
  if (*right) SCL_GO(try_side(cl, copies, true, host, right));
done:
  free(host);
  return status;
}
