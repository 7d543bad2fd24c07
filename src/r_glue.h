/* Between R and the core: handles, operands, results.
 *
 * Every .Call entry has three phases:
 *   1. allocate every SEXP (r_result_new()), holding nothing of the core;
 *   2. run the core, which neither jumps nor allocates R objects: r_context_pick(), r_operand(),
 * the operation, r_result_set();
 *   3. release what is held, then r_return(), which raises or returns.
 *
 * `where` says which engine works on base R input: -1 for the host, else a place in the device
 * list. R code decides it (R/session.R). */
#ifndef R_GLUE_H
#define R_GLUE_H

#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <Rinternals.h>

#include "scl_engine.h"

/* ---- contexts ------------------------------------------------------------------------------- */
/* The context of `where`; a device context is opened at its first use and kept. Borrowed. */
scl_status r_context(int where, scl_context **out);
/* The context in which an operation on these operands runs: that of the first handle among them,
 * else that of `where`. */
scl_status r_context_pick(SEXP where, int n, const SEXP *operands, scl_context **out);
void r_contexts_release(void); /* at unload */

/* ---- matrix handles ------------------------------------------------------------------------- */
bool r_is_handle(SEXP x);
/* The matrix of a handle, borrowed. SCL_E_ARGUMENT (no handle), SCL_E_STALE, SCL_E_FORK. */
scl_status r_handle_peek(SEXP x, const char *argument, scl_mat **out);
/* The same, computed if it was pending: what all operations but those of scl_expr.h take. */
scl_status r_handle_get(SEXP x, const char *argument, scl_mat **out);

/* ---- operands: a handle, or a base R double matrix or vector (a column) --------------------- */
size_t r_nrow(SEXP x); /* 0 for a stale handle: r_operand() reports it */
size_t r_ncol(SEXP x);
/* A reference to the operand in `ctx`: a handle's own matrix, wrapped host memory or an upload.
 * Release it. R_NilValue gives NULL. */
scl_status r_operand(scl_context *ctx, SEXP x, const char *argument, scl_mat **out);

/* The same, left pending, and with base R memory copied: for what outlives the call. */
scl_status r_operand_kept(scl_context *ctx, SEXP x, const char *argument, scl_mat **out);

/* r_operand() for several, by name: picks their context (that of the first handle, else of `where`)
 * and takes a reference to each, or NULL for R_NilValue. On a fault some may have been taken;
 * release all in either case. */
scl_status r_operands(SEXP where, int n, const SEXP *x, const char *const *names, scl_mat **m);
void r_operands_release(int n, scl_mat **m);
bool r_any_handle(int n, const SEXP *x);

/* ---- results -------------------------------------------------------------------------------- */
/* Phase 1: an empty handle (resident) or an m x n double matrix. Protect it. */
SEXP r_result_new(bool resident, size_t m, size_t n);
/* Phase 2: moves *m into the handle (and sets *m to NULL), or copies it to the R matrix. */
scl_status r_result_set(SEXP result, scl_mat **m);
/* Phase 3: raises the R condition of the last fault, or gives `result`. */
SEXP r_return(scl_status status, SEXP result);

/* An R object that frees a text of the core, should R jump before r_text_free(). */
SEXP r_text_owner(char *text);
void r_text_free(SEXP owner);

/* r_blas.c: hands R's BLAS and LAPACK to the host engine. */
void r_blas_set(void);

/* r_handle_peek() also of a handle that the user has freed, for what was made of it before. */
scl_status r_handle_peek_kept(SEXP x, const char *argument, scl_mat **out);
/* Frees the matrix of a handle, for the user at once, in fact when no deferred node needs it. */
void r_handle_free(SEXP x);
/* No deferred node needs the handle's matrix any more. */
void r_handle_unused(SEXP x);

/* r_lazy.c: looks up what its entries need often. */
void r_lazy_init(void);

/* ---- deferred nodes (r_deferred.c) ---------------------------------------------------------- */
void r_deferred_init(void);
bool r_is_deferred(SEXP handle);
/* Whether an operation of these (handles, numbers, or NULL) may be deferred. */
bool r_deferred_fits(SEXP a, SEXP b);
/* Phase 1: a handle that stands for op(a) (b is R_NilValue) or op(a, b). Protect it. */
SEXP r_deferred_new(scl_op op, SEXP a, SEXP b);
/* The context of a handle, which may be deferred and stays so. */
scl_status r_deferred_context(SEXP handle, const char *argument, scl_context **out);
/* Builds the graph; r_handle_peek() calls it. SCL_E_STALE if a matrix that it needs is gone. With
 * `keep` the handles on the way keep their nodes, so that a value computed for one of them is seen
 * in all that stands on it; without, for what is computed at once, they stay deferred. */
scl_status r_deferred_build(SEXP handle, const char *argument, bool keep);
/* How many deferred nodes are known to stand on a handle that is not deferred itself. Nodes that
 * the collector has taken count on: at most, memory is freed by the collector and not at once. */
int r_deferred_uses(SEXP handle);
/* For r_deferred.c: an empty handle with something in its protected field and no finaliser, and the
 * finaliser. */
SEXP r_handle_with(SEXP record);
void r_handle_register(SEXP handle);

/* ---- large results (r_large.c) -------------------------------------------------------------- */
void r_large_init(struct _DllInfo *dll);
/* An m x n double matrix in recycled memory, or NULL: a small one, or there is none. */
SEXP r_large_matrix(size_t m, size_t n);

/* ---- interrupts (r_interrupt.c) -------------------------------------------------------------- */
/* The hook of the core. */
bool r_interrupted(void);
/* Phase 3: says that kernels were built if that took long and was not said by the hook. May jump.
 */
void r_announce(void);
/* The token of a jump that the hook has held up, once; else NULL. */
SEXP r_jump(void);
/* The message of R's error if the last interrupt was a time limit (setTimeLimit()), else "". */
const char *r_time_limit(void);

/* r_throw.c: raises; does not return. */
void r_throw(void);
void r_throw_given_back(void); /* for r_large.c */

#endif
