/* Between R and the core: handles, operands, results.
 *
 * Every .Call entry has three phases:
 *   1. allocate every SEXP (r_result_new()), holding nothing of the core;
 *   2. run the core, which neither jumps nor allocates R objects: r_context_pick(), r_operand(),
 * the operation, r_result_set();
 *   3. release what is held, then r_return(), which raises or returns.
 *
 * `where` says which engine works on base R input: -1 for the host, else an index in the device
 * list. R code decides it (R/base-session.R). */
#ifndef R_GLUE_H
#define R_GLUE_H

#include <stdatomic.h>

#include "engine/plan/elementwise.h"
#include "r/api.h"

/* ---- contexts (r/context.c) ----------------------------------------------------------------- */
/* The context of `where`; a device context is opened at its first use and kept. Borrowed. */
scl_status r_context(int where, scl_context **out);
void r_contexts_release(void); /* at unload */
/* OpenBLAS adjusts to threads that need cores, while it leaves some (r/blas.c). */
void r_blas_adjust(void);
atomic_bool *r_blas_rival(void); /* whether a thread that opens a device needs one */
bool r_is_opening(void);         /* a thread that lists or opens devices has not been awaited */

/* ---- matrix handles (r/handle.c) ------------------------------------------------------------ */
void r_handle_init(void);
void r_interrupt_init(void);
bool r_is_handle(SEXP x);
/* Phase 1: a handle without a matrix yet. Protect it. */
SEXP r_handle_new(void);
SEXP r_handle_of(SEXP node);     /* Phase 1 */
SEXP r_handle_node(SEXP handle); /* R_NilValue if it has none */
/* The matrix of a handle, borrowed. SCL_E_ARGUMENT (no handle), SCL_E_STALE, SCL_E_FORK. The graph
 * of a deferred handle is built, which may compute a part of it. */
scl_status r_handle_peek(SEXP x, const char *argument, scl_mat **out);
/* The same for a value that is computed in this call, or not needed again: the deferred handles
 * below stay deferred. */
scl_status r_handle_peek_briefly(SEXP x, const char *argument, scl_mat **out);
/* The same, computed if it was pending; all operations except those of graph/expr.h need it. */
scl_status r_handle_get(SEXP x, const char *argument, scl_mat **out);
/* The context of a handle; a deferred one stays deferred. Errors as of r_handle_peek(). */
scl_status r_handle_context(SEXP x, const char *argument, scl_context **out);
/* Frees a handle. Its matrix is released when no deferred node needs it any more. */
scl_status r_handle_free(SEXP x);

/* ---- operands: a handle, or a base R double matrix or vector (a column) --------------------- */
/* Rows and columns. Computes and records nothing. Errors for a handle as of r_handle_context(). */
scl_status r_shape(SEXP x, const char *argument, size_t *m, size_t *n);
/* Phase 1: one of them, 0 for R_NilValue; they raise errors. */
size_t r_nrow(SEXP x, const char *argument);
size_t r_ncol(SEXP x, const char *argument);
/* The context in which an operation on these operands runs: that of the first handle among them,
 * else that of `where`. */
scl_status r_context_pick(SEXP where, int n, const SEXP *operands, scl_context **out);
/* A reference to the operand in `ctx`: a handle's own matrix, wrapped host memory or an upload.
 * Release it. R_NilValue gives NULL. */
scl_status r_operand(scl_context *ctx, SEXP x, const char *argument, scl_mat **out);

/* The same, but pending matrices stay pending and base R memory is copied: for operands that
 * outlive the call. */
scl_status r_operand_kept(scl_context *ctx, SEXP x, const char *argument, scl_mat **out);

/* r_operand() for several, by name: picks their context (that of the first handle, else of `where`)
 * and takes a reference to each, or NULL for R_NilValue. Release all, also after an error, when
 * some may be NULL. */
scl_status r_operands(SEXP where, int n, const SEXP *x, const char *const *names, scl_mat **m);
void r_operands_release(int n, scl_mat **m);
bool r_any_handle(int n, const SEXP *x);

/* ---- results -------------------------------------------------------------------------------- */
/* Phase 1: an empty handle (resident) or an m x n double matrix. Protect it. */
SEXP r_result_new(bool resident, size_t m, size_t n);
/* Phase 2: moves *m into the handle (and sets *m to NULL), or copies it to the R matrix. */
scl_status r_result_set(SEXP result, scl_mat **m);
/* The first string of a character vector, else "". */
const char *r_string(SEXP x);

/* ---- plain vectors (r/values.c) ------------------------------------------------------------- */
/* Whether x is a double vector or matrix of this length. */
bool r_is_double(SEXP x, size_t length);
const double *r_numbers(SEXP x); /* NULL for R_NilValue */

#define R_VECTOR ((size_t)-1)
typedef struct {
  const char *name;
  size_t nrow, ncol; /* ncol may be R_VECTOR */
} r_part;
/* Phase 1: a list of `count` double matrices and vectors; `to`: their numbers. Protect it. */
SEXP r_list_new(int count, const r_part *parts, double **to);
/* Facts for printing: list(device: its label, host, bytes, blocks). */
SEXP r_info_new(const scl_context *ctx, const char *device, uint64_t bytes, size_t blocks);

/* ---- values (r/values.c) -------------------------------------------------------------------- */
/* Phase 1: an m x n double matrix. Protect it. */
SEXP r_values_new(size_t m, size_t n);
/* Phase 2: computes m and copies it to a double vector of as many numbers. All values of matrices
 * reach R through this function. */
scl_status r_values(SEXP result, scl_mat *m);
/* SCL_E_ARGUMENT unless `result` is a double vector of this length. Before the core writes. */
scl_status r_require_room(SEXP result, size_t numbers);

/* r/blas.c: gives R's BLAS and LAPACK to the host engine. */
void r_blas_set(void);

/* r/op.c: the row of ops/table.h with this name, a string of R (CHARSXP). */
void r_op_init(void);
scl_status r_op_find(SEXP string, unsigned *out);

/* r/lazy.c: looks up symbols and strings that its entries need often. */
void r_lazy_init(void);

/* ---- finalisers (r/finalizer.c) ------------------------------------------------------------- */
/* Registers a finaliser, which must call r_finalized() first. The library must stay loaded until
 * all have run. */
void r_finalizer(SEXP pointer, void (*finalize)(SEXP));
void r_finalized(void);
/* An R object that frees a text of the core if R jumps before r_text_free(). */
SEXP r_text_owner(char *text);
void r_text_free(SEXP owner);

/* ---- R code inside the core (r/interrupt.c) ------------------------------------------------- */
/* SCL_E_ARGUMENT while a hook of the core runs (scl_hooks_run()): the core is in the middle of a
 * computation when the collector runs the user's finalisers, or the check for interrupts runs event
 * handlers. Such R code may free matrices, which are released with their handles, and do nothing
 * else. */
scl_status r_require_outside(void);

/* ---- saving by value (r/serialize.c) -------------------------------------------------------- */
void r_serialize_init(struct _DllInfo *dll);
/* Phase 1: the keeper of a node, for the protected field of a handle. Protect it. */
SEXP r_keeper_new(SEXP node);
SEXP r_keeper_node(SEXP keeper); /* R_NilValue if it has none, or `keeper` is no keeper */
/* Makes the node and matrix of a keeper that was read from a file with its values; does nothing for
 * others. */
scl_status r_keeper_restore(SEXP keeper, const char *argument);

/* ---- large results (r/altrep_result.c) ------------------------------------------------------ */
void r_pooled_init(struct _DllInfo *dll);
/* An m x n double matrix in reused memory; NULL if it is small or there is no memory. */
SEXP r_pooled_matrix(size_t m, size_t n);

/* ---- interrupts (r/interrupt.c) ------------------------------------------------------------- */
/* The hook of the core. */
bool r_interrupted(void);
/* Collects garbage, or young garbage only. */
bool r_collect(bool all);
/* Phase 3: announces that kernels were built if that took long and the hook has not announced it.
 * May jump. */
void r_announce(void);
/* The token of a jump that the hook has postponed, once; else NULL. */
SEXP r_jump(void);
/* The message of R's error if the last interrupt was a time limit (setTimeLimit()), else "". */
const char *r_time_limit(void);

/* ---- conditions (r/throw.c) ----------------------------------------------------------------- */
/* Phase 3: raises the R condition of the last error, or returns `result`. */
SEXP r_return(scl_status status, SEXP result);
/* Raises; does not return. */
void r_throw(void);
void r_throw_given_back(void); /* for r/altrep_result.c */

#endif
