/* .Call entries for sparse Hessians of compiled functions (program/sparse_program.h), and for
 * sparse factors (ops/sparse.h).
 *
 *   r_sparse_make(where, nodes, data, parameters, output, chosen, rolled, most): a program, or NULL
 *       if there is none; as r_program_make() (r/program.c). chosen: a raw vector, 1 for the chosen
 *       parameters
 *   r_sparse_pattern(program): list(start, row), 0-based
 *   r_sparse_run(program, x): the numbers of the lower triangle
 *   r_sparse_adjoint(program, x, weights), r_sparse_along(program, x, direction): a number for each
 *       parameter
 *   r_sparse_analyse(start, row, order): a factor without numbers; order: 0-based, or NULL
 *   r_sparse_factorize(factor, x, shift): 0, or the 1-based column at which x is not positive
 *       definite
 *   r_sparse_solve(factor, b), r_sparse_log_det(factor), r_sparse_inverse(factor)
 *   r_sparse_size(factor): how many numbers it has
 *   r_sparse_half(factor, half, b): scl_sparse_apply_half() for each column of b
 *   r_sparse_is_live(handle): FALSE for a handle of another session */
#include "r/entries.h"
#include "r/pointer.h"
#include "r/program.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ops/sparse.h"
#include "program/sparse_program.h"

R_POINTER_KIND(sparse_kind, "statcl_sparse_program", scl_sparse_program)

/* A factor works on the host. */
static scl_context *scl_sparse_factor_context(const scl_sparse_factor *f) {
  (void)f;
  return scl_context_host();
}
R_POINTER_KIND(factor_kind, "statcl_sparse_factor", scl_sparse_factor)

static scl_status get_object(const r_pointer_kind *kind, SEXP x, void **out) {
  SCL_TRY(r_require_outside());
  if (!r_is_pointer(kind, x)) return scl_fail_argument("f", "internal: no such handle");
  *out = r_pointer_object(x);
  if (*out != NULL) return SCL_OK;
  return scl_fail(SCL_E_STALE, "a sparse Hessian was made in another session");
}

static size_t numbers_of(SEXP program) {
  const scl_sparse_program *p =
      r_is_pointer(&sparse_kind, program) ? r_pointer_object(program) : NULL;
  return p != NULL ? scl_sparse_program_pattern(p)->count : 0;
}

static scl_status require_numbers(SEXP x, const char *name, size_t length) {
  if (r_is_double(x, length)) return SCL_OK;
  return scl_fail_argument(name, "internal: '%s' has not %zu numbers", name, length);
}

SEXP r_sparse_make(SEXP where, SEXP nodes, SEXP data, SEXP parameters, SEXP output, SEXP chosen,
                   SEXP rolled, SEXP most) {
  SEXP handle = PROTECT(r_pointer_new(&sparse_kind, R_NilValue));
  const size_t count = (size_t)Rf_asReal(parameters);
  scl_sparse_program *program = NULL;
  scl_context *ctx;
  scl_tape tape;
  scl_status status;
  int result = 0;
  scl_tape_begin(&tape);
  SCL_GO(r_require_outside());
  if (TYPEOF(chosen) != RAWSXP || (size_t)XLENGTH(chosen) != count) {
    SCL_GO(scl_fail_argument("chosen", "internal: 'chosen' does not fit"));
  }
  SCL_GO(r_context(Rf_asInteger(where), &ctx));
  SCL_GO(
      r_program_fill(nodes, data, Rf_asInteger(output), Rf_asLogical(rolled) == 1, &tape, &result));
  SCL_GO(scl_sparse_program_make(ctx, &tape, result, count, RAW(chosen), (size_t)Rf_asReal(most),
                                 &program));
  if (program != NULL) r_pointer_set(handle, program);
done:
  scl_tape_end(&tape);
  UNPROTECT(1);
  return r_return(status, program != NULL ? handle : R_NilValue);
}

SEXP r_sparse_pattern(SEXP program) {
  const scl_sparse_program *known =
      r_is_pointer(&sparse_kind, program) ? r_pointer_object(program) : NULL;
  const size_t count = numbers_of(program);
  const size_t columns = known != NULL ? scl_sparse_program_pattern(known)->n : 0;
  SEXP result = PROTECT(Rf_allocVector(VECSXP, 2));
  SEXP start = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)columns + 1));
  SEXP row = PROTECT(Rf_allocVector(INTSXP, (R_xlen_t)count));
  void *p = NULL;
  scl_status status;
  SET_VECTOR_ELT(result, 0, start);
  SET_VECTOR_ELT(result, 1, row);
  SCL_GO(get_object(&sparse_kind, program, &p));
  const scl_sparse_pattern *s = scl_sparse_program_pattern(p);
  for (size_t j = 0; j <= columns; j++) REAL(start)[j] = (double)s->start[j];
  for (size_t k = 0; k < count; k++) INTEGER(row)[k] = (int)s->row[k];
done:
  UNPROTECT(3);
  return r_return(status, result);
}

static size_t parameters_of(SEXP program) {
  const scl_sparse_program *p =
      r_is_pointer(&sparse_kind, program) ? r_pointer_object(program) : NULL;
  return p != NULL ? scl_sparse_program_parameters(p) : 0;
}

SEXP r_sparse_run(SEXP program, SEXP x) {
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)numbers_of(program)));
  void *p = NULL;
  scl_status status;
  SCL_GO(get_object(&sparse_kind, program, &p));
  SCL_GO(require_numbers(x, "x", parameters_of(program)));
  SCL_GO(scl_sparse_program_run(p, REAL_RO(x), REAL(result)));
done:
  UNPROTECT(1);
  return r_return(status, result);
}

typedef scl_status sparse_gradient(scl_sparse_program *p, const double *x, const double *by,
                                   double *to);

/* A gradient by all parameters at x, for `by`: `count` numbers named `what`. */
static SEXP run_gradient(sparse_gradient *run, SEXP program, SEXP x, SEXP by, const char *what,
                         size_t count) {
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)parameters_of(program)));
  void *p = NULL;
  scl_status status;
  SCL_GO(get_object(&sparse_kind, program, &p));
  SCL_GO(require_numbers(x, "x", parameters_of(program)));
  SCL_GO(require_numbers(by, what, count));
  SCL_GO(run(p, REAL_RO(x), REAL_RO(by), REAL(result)));
done:
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_sparse_adjoint(SEXP program, SEXP x, SEXP weights) {
  return run_gradient(scl_sparse_program_adjoint, program, x, weights, "weights",
                      numbers_of(program));
}

SEXP r_sparse_along(SEXP program, SEXP x, SEXP direction) {
  return run_gradient(scl_sparse_program_along, program, x, direction, "direction",
                      parameters_of(program));
}

SEXP r_sparse_is_live(SEXP handle) {
  const bool known = r_is_pointer(&sparse_kind, handle) || r_is_pointer(&factor_kind, handle);
  return Rf_ScalarLogical(known && r_pointer_object(handle) != NULL);
}

/* ---- factors --------------------------------------------------------------------------------- */

/* Columns of a lower triangle with its diagonal. */
static scl_status read_pattern(SEXP start, SEXP row, size_t *n, size_t **first) {
  const bool typed = TYPEOF(start) == REALSXP && TYPEOF(row) == INTSXP && XLENGTH(start) > 0 &&
                     XLENGTH(start) <= INT_MAX;
  *n = typed ? (size_t)XLENGTH(start) - 1 : 0;
  *first = malloc((*n + 1) * sizeof **first);
  if (*first == NULL) return scl_fail_memory(*n * sizeof **first, 0, "a sparse factor");
  bool fits = typed && REAL_RO(start)[0] == 0.0 && REAL_RO(start)[*n] == (double)XLENGTH(row);
  for (size_t j = 0; fits && j <= *n; j++) {
    const double at = REAL_RO(start)[j];
    fits = at >= 0.0 && at <= (double)XLENGTH(row) && (j == 0 || at > (double)(*first)[j - 1]);
    if (fits) (*first)[j] = (size_t)at;
  }
  for (size_t j = 0; fits && j < *n; j++) {
    const int *rows = INTEGER_RO(row);
    fits = rows[(*first)[j]] == (int)j;
    for (size_t k = (*first)[j] + 1; fits && k < (*first)[j + 1]; k++) {
      fits = rows[k] > rows[k - 1] && rows[k] < (int)*n;
    }
  }
  return fits ? SCL_OK : scl_fail_argument("row", "internal: no lower triangle of a sparse matrix");
}

static scl_status read_order(SEXP order, size_t n) {
  if (order == R_NilValue) return SCL_OK;
  bool fits = TYPEOF(order) == INTSXP && (size_t)XLENGTH(order) == n;
  unsigned char *seen = calloc(n + 1, 1);
  if (seen == NULL) return scl_fail_memory(n, 0, "a sparse factor");
  for (size_t i = 0; fits && i < n; i++) {
    const int k = INTEGER_RO(order)[i];
    fits = k >= 0 && (size_t)k < n && !seen[k];
    if (fits) seen[k] = 1;
  }
  free(seen);
  return fits ? SCL_OK : scl_fail_argument("order", "internal: 'order' is no permutation");
}

SEXP r_sparse_analyse(SEXP start, SEXP row, SEXP order) {
  SEXP handle = PROTECT(r_pointer_new(&factor_kind, R_NilValue));
  scl_sparse_factor *factor = NULL;
  size_t n = 0, *first = NULL;
  scl_status status;
  SCL_GO(r_require_outside());
  SCL_GO(read_pattern(start, row, &n, &first));
  SCL_GO(read_order(order, n));
  const uint32_t *by = order == R_NilValue ? NULL : (const uint32_t *)INTEGER_RO(order);
  SCL_GO(scl_sparse_analyse(n, first, (const uint32_t *)INTEGER_RO(row), by, &factor));
  r_pointer_set(handle, factor);
done:
  free(first);
  UNPROTECT(1);
  return r_return(status, handle);
}

const struct scl_sparse_factor *r_sparse_factor_of(SEXP handle) {
  return r_is_pointer(&factor_kind, handle) ? r_pointer_object(handle) : NULL;
}

SEXP r_sparse_factorize(SEXP factor, SEXP x, SEXP shift) {
  SEXP result = PROTECT(Rf_allocVector(REALSXP, 1));
  void *f = NULL;
  scl_status status;
  SCL_GO(get_object(&factor_kind, factor, &f));
  SCL_GO(require_numbers(x, "x", scl_sparse_factor_count(f)));
  status = scl_sparse_factorize(f, REAL_RO(x), Rf_asReal(shift));
  REAL(result)[0] = status == SCL_E_NOT_PD ? (double)scl_fault_last()->index : 0.0;
  if (status == SCL_E_NOT_PD) status = SCL_OK;
done:
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_sparse_solve(SEXP factor, SEXP b) {
  const scl_sparse_factor *known = r_sparse_factor_of(factor);
  const size_t n = known != NULL ? scl_sparse_factor_order(known) : 0;
  const size_t columns = n > 0 ? (size_t)XLENGTH(b) / n : 0;
  SEXP result = PROTECT(Rf_allocVector(REALSXP, XLENGTH(b)));
  void *f = NULL;
  scl_status status;
  SCL_GO(get_object(&factor_kind, factor, &f));
  SCL_GO(require_numbers(b, "b", n * columns));
  memcpy(REAL(result), REAL_RO(b), n * columns * sizeof(double));
  SCL_GO(scl_sparse_solve(f, REAL(result), columns));
done:
  Rf_setAttrib(result, R_DimSymbol, Rf_getAttrib(b, R_DimSymbol));
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_sparse_half(SEXP factor, SEXP half, SEXP b) {
  const scl_sparse_factor *known = r_sparse_factor_of(factor);
  const size_t n = known != NULL ? scl_sparse_factor_order(known) : 0;
  const size_t columns = n > 0 ? (size_t)XLENGTH(b) / n : 0;
  SEXP result = PROTECT(Rf_allocVector(REALSXP, XLENGTH(b)));
  double *room = (double *)R_alloc(n + 1, sizeof *room);
  void *f = NULL;
  scl_status status;
  SCL_GO(get_object(&factor_kind, factor, &f));
  SCL_GO(require_numbers(b, "b", n * columns));
  for (size_t k = 0; k < columns; k++) {
    SCL_GO(scl_sparse_apply_half(f, (scl_sparse_half)Rf_asInteger(half), REAL_RO(b) + k * n,
                                 REAL(result) + k * n, room));
  }
done:
  Rf_setAttrib(result, R_DimSymbol, Rf_getAttrib(b, R_DimSymbol));
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_sparse_log_det(SEXP factor) {
  SEXP result = PROTECT(Rf_allocVector(REALSXP, 1));
  void *f = NULL;
  scl_status status;
  SCL_GO(get_object(&factor_kind, factor, &f));
  SCL_GO(scl_sparse_log_det(f, REAL(result)));
done:
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_sparse_size(SEXP factor) {
  SEXP result = PROTECT(Rf_allocVector(REALSXP, 1));
  void *f = NULL;
  scl_status status;
  SCL_GO(get_object(&factor_kind, factor, &f));
  REAL(result)[0] = scl_sparse_factor_size(f);
done:
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_sparse_inverse(SEXP factor) {
  const scl_sparse_factor *known = r_sparse_factor_of(factor);
  const size_t count = known != NULL ? scl_sparse_factor_count(known) : 0;
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)count));
  void *f = NULL;
  scl_status status;
  SCL_GO(get_object(&factor_kind, factor, &f));
  SCL_GO(scl_sparse_inverse(f, REAL(result)));
done:
  UNPROTECT(1);
  return r_return(status, result);
}
