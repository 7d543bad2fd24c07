/* Lazy arithmetic: expressions over matrices that are computed when a number is needed, in one pass
 * over the data (internals.Rmd, "Lazy arithmetic").
 *
 * Every function that makes an expression returns a pending matrix: shape, view and context are
 * known, there is no storage. scl_mat_force() or scl_expr_eval() compute it, once: the value is
 * kept and its operands are released. Pending and computed matrices may be mixed as operands. All
 * other operations of the core need computed matrices: their callers force pending ones first.
 *
 * Operands live in one context, else SCL_E_ARGUMENT. Results go to `*out`, untouched on failure;
 * the caller releases them. Making an expression waits for nothing; if it would exceed the limits
 * below, a part of it is computed at once, so that any function may fail as scl_expr_eval() may. */
#ifndef SCL_GRAPH_EXPR_H
#define SCL_GRAPH_EXPR_H

#include "engine/plan/elementwise.h"

/* Deepest pending expression; graphs of more operations are cut where they are computed. */
enum { SCL_EXPR_DEPTH = 100 };

/* An operand: a matrix, or a number when `matrix` is NULL. */
typedef struct {
  scl_mat *matrix;
  double number;
} scl_term;

/* ---- calls of operations -------------------------------------------------------------------- */
/* A pending matrix for a call of row `operation` of ops/table.h, after the checks of its
 * row. `ctx` is for operations without a matrix among their operands, and may be NULL for others.
 * Operands after the last one given are omitted. */
scl_status scl_record(scl_context *ctx, unsigned operation, int count, const scl_term *operand,
                      int attributes, const double *attribute, scl_mat **out);
/* The same, computed. */
scl_status scl_compute(scl_context *ctx, unsigned operation, int count, const scl_term *operand,
                       int attributes, const double *attribute, scl_mat **out);

/* ---- scl_record() of some operations -------------------------------------------------------- */
/* op(terms), elementwise; `count` is the operation's arity (SCL_E_ARGUMENT otherwise) and one term
 * is a matrix at least. Matrices have one shape, or are a column of as many rows, which is
 * recycled over all columns. A result keeps a triangular or symmetric view where that holds for all
 * elements: lower + lower is lower, lower * 2 is lower, exp(lower) is general. */
scl_status scl_expr_apply(scl_op op, int count, const scl_term *terms, scl_mat **out);

/* Reductions: over all elements (1 x 1), each row (m x 1) or each column (1 x n). Over no elements
 * the result is the identity. Sums have a fixed order. */
scl_status scl_expr_reduce(scl_reduction op, scl_mat *x, scl_margin margin, scl_mat **out);

/* ---- values --------------------------------------------------------------------------------- */
/* Computes a pending matrix, once; does nothing for all others. Returns what scl_expr_eval() may.
 */
scl_status scl_mat_force(scl_mat *a);
/* Computes the pending ones, in as few kernels as possible: results of one shape, and reductions of
 * expressions of that shape over one margin, come from one kernel. Matrices may be repeated. On
 * failure those that are not computed stay pending. */
scl_status scl_expr_eval(size_t count, scl_mat *const *x);

/* ---- facts ---------------------------------------------------------------------------------- */
typedef struct {
  bool pending;
  unsigned nodes, depth; /* of the pending expression; 0 if there is none */
} scl_expr_facts;
scl_expr_facts scl_expr_about(const scl_mat *x);
/* The pending expression as text, "exp(x1 - x2) * 2.5", cut to `room` bytes with the final NUL. */
void scl_expr_text(const scl_mat *x, char *to, size_t room);
/* The kernel sources that scl_expr_eval() would run on a device for the pending matrices of x;
 * free() it. Parts that need another kernel first are computed. "" if nothing is pending. On the
 * host it is the source that a device would run. */
scl_status scl_expr_source(size_t count, scl_mat *const *x, char **out);

typedef struct {
  uint64_t evaluated; /* groups computed, on any engine */
  uint64_t built;     /* kernels compiled */
  uint64_t cut;       /* graphs that exceeded a limit */
} scl_expr_counters;
scl_expr_counters scl_expr_counts(void);

#endif
