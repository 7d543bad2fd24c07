/* .Call entries for batches of small matrices. An array is a column of numbers on either side; R
 * knows its dimensions. Entries with statuses give list(value, status), a raw vector with a byte
 * for each matrix, or NULL if all are fine. */
#include "r/entries.h"
#include "r/glue.h"

#include "ops/batch.h"
#include "ops/operation.h"

static bool flag(SEXP x) {
  return Rf_asLogical(x) == TRUE;
}

/* A dimension; 0 for anything else, which then fits no operand. */
static size_t as_size(double x) {
  return x >= 0.0 && x <= 2147483647.0 ? (size_t)x : 0;
}

static size_t size_of(SEXP x) {
  return as_size(Rf_asReal(x));
}

/* Phase 1 of an entry with statuses: list(value, status). Protect it. */
static SEXP reported_new(bool resident, size_t each, size_t batch) {
  const char *names[] = {"value", "status", ""};
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(result, 0, r_result_new(resident, each * batch, 1));
  SET_VECTOR_ELT(result, 1, Rf_allocVector(RAWSXP, (R_xlen_t)batch));
  UNPROTECT(1);
  return result;
}

/* The work of all entries with operands before and after the operation itself. */
typedef struct {
  SEXP result;
  scl_mat *in[3], *out;
  scl_batch_report report;
} call;

static SEXP end_call(call *c, scl_status status, int operands, SEXP value) {
  if (status == SCL_OK) status = r_result_set(value, &c->out);
  r_operands_release(operands, c->in);
  scl_mat_release(c->out);
  UNPROTECT(1);
  return r_return(status, c->result);
}

/* A call whose result is list(value, status): `each` numbers of each matrix. */
static call reported_call(bool resident, size_t each, size_t batch) {
  call c = {.result = PROTECT(reported_new(resident, each, batch))};
  c.report.status = RAW(VECTOR_ELT(c.result, 1));
  return c;
}

static SEXP end_reported(call *c, scl_status status, int operands) {
  if (status == SCL_OK && c->report.bad == 0) SET_VECTOR_ELT(c->result, 1, R_NilValue);
  return end_call(c, status, operands, VECTOR_ELT(c->result, 0));
}

/* One batch of square matrices in, one of the same shape out. */
typedef scl_status square_operation(const scl_mat *a, size_t n, size_t batch, bool option,
                                    scl_batch_report *report, scl_mat **out);

static SEXP run_square(square_operation *operation, SEXP a, SEXP n, SEXP batch, SEXP option,
                       SEXP where) {
  const char *const names[] = {"a"};
  size_t order = size_of(n), count = size_of(batch);
  call c = reported_call(r_is_handle(a), order * order, count);
  scl_status status;
  SCL_GO(r_operands(where, 1, &a, names, c.in));
  SCL_GO(operation(c.in[0], order, count, flag(option), &c.report, &c.out));
done:
  return end_reported(&c, status, 1);
}

SEXP r_batch_inverse(SEXP a, SEXP n, SEXP batch, SEXP cofactors, SEXP where) {
  return run_square(scl_batch_inverse, a, n, batch, cofactors, where);
}

SEXP r_batch_chol(SEXP a, SEXP n, SEXP batch, SEXP upper, SEXP where) {
  return run_square(scl_batch_chol, a, n, batch, upper, where);
}

SEXP r_batch_chol_adjoint(SEXP l, SEXP l_adj, SEXP n, SEXP batch, SEXP where) {
  const SEXP x[] = {l, l_adj};
  const char *const names[] = {"l", "l_adj"};
  size_t order = size_of(n), count = size_of(batch);
  call c = reported_call(r_any_handle(2, x), order * order, count);
  scl_status status;
  SCL_GO(r_operands(where, 2, x, names, c.in));
  SCL_GO(scl_batch_chol_adjoint(c.in[0], c.in[1], order, count, &c.report, &c.out));
done:
  return end_reported(&c, status, 2);
}

SEXP r_batch_solve(SEXP a, SEXP b, SEXP n, SEXP k, SEXP batch, SEXP where) {
  const SEXP x[] = {a, b};
  const char *const names[] = {"a", "b"};
  size_t order = size_of(n), columns = size_of(k), count = size_of(batch);
  call c = reported_call(r_any_handle(2, x), order * columns, count);
  scl_status status;
  SCL_GO(r_operands(where, 2, x, names, c.in));
  SCL_GO(scl_batch_solve(c.in[0], c.in[1], order, columns, count, &c.report, &c.out));
done:
  return end_reported(&c, status, 2);
}

SEXP r_batch_tri_solve(SEXP l, SEXP b, SEXP n, SEXP k, SEXP batch, SEXP upper, SEXP transpose,
                       SEXP where) {
  const SEXP x[] = {l, b};
  const char *const names[] = {"l", "b"};
  size_t order = size_of(n), columns = size_of(k), count = size_of(batch);
  call c = reported_call(r_any_handle(2, x), order * columns, count);
  scl_status status;
  SCL_GO(r_operands(where, 2, x, names, c.in));
  SCL_GO(scl_batch_tri_solve(c.in[0], c.in[1], order, columns, count, flag(upper), flag(transpose),
                             &c.report, &c.out));
done:
  return end_reported(&c, status, 2);
}

/* A column of values; for logarithms a batch x 2 matrix with their signs. */
SEXP r_batch_det(SEXP a, SEXP n, SEXP batch, SEXP logarithm, SEXP where) {
  const char *const names[] = {"a"};
  size_t order = size_of(n), count = size_of(batch);
  call c = {.result = PROTECT(r_result_new(r_is_handle(a), count, flag(logarithm) ? 2 : 1))};
  scl_status status;
  SCL_GO(r_operands(where, 1, &a, names, c.in));
  SCL_GO(scl_batch_det(c.in[0], order, count, flag(logarithm), &c.out));
done:
  return end_call(&c, status, 1, c.result);
}

/* shape: m, n, k, batch; transpose: of a and of b. */
SEXP r_batch_matmul(SEXP a, SEXP b, SEXP shape, SEXP transpose, SEXP where) {
  const SEXP x[] = {a, b};
  const char *const names[] = {"a", "b"};
  const double *s = REAL_RO(shape);
  size_t m = as_size(s[0]), n = as_size(s[1]), k = as_size(s[2]), batch = as_size(s[3]);
  const int *t = LOGICAL_RO(transpose);
  call c = {.result = PROTECT(r_result_new(r_any_handle(2, x), m * n * batch, 1))};
  scl_status status;
  SCL_GO(r_operands(where, 2, x, names, c.in));
  SCL_GO(scl_batch_matmul(c.in[0], t[0] ? SCL_TRANS : SCL_NO_TRANS, c.in[1],
                          t[1] ? SCL_TRANS : SCL_NO_TRANS, m, n, k, batch, &c.out));
done:
  return end_call(&c, status, 2, c.result);
}

/* mean may be NULL. */
SEXP r_batch_mvn(SEXP y, SEXP mean, SEXP factor, SEXP n, SEXP batch, SEXP upper, SEXP where) {
  const SEXP x[] = {y, mean, factor};
  const char *const names[] = {"y", "mean", "chol"};
  size_t count = size_of(batch);
  call c = reported_call(r_any_handle(3, x), 1, count);
  scl_status status;
  SCL_GO(r_operands(where, 3, x, names, c.in));
  SCL_GO(scl_batch_mvn_lpdf(c.in[0], c.in[1], c.in[2], size_of(n), count, flag(upper), &c.report,
                            &c.out));
done:
  return end_reported(&c, status, 3);
}

/* The numbers of a handle, column by column, as an m x n matrix. */
SEXP r_array_matrix(SEXP handle, SEXP nrow, SEXP ncol) {
  const char *const names[] = {"x"};
  size_t m = size_of(nrow), n = size_of(ncol);
  call c = {.result = PROTECT(r_result_new(true, m, n))};
  scl_status status;
  SCL_GO(r_operands(R_NilValue, 1, &handle, names, c.in));
  if (c.in[0]->nrow * c.in[0]->ncol != m * n) {
    SCL_GO(scl_fail_argument("x", "internal: %zu numbers for %zu x %zu", c.in[0]->nrow, m, n));
  }
  SCL_GO(scl_mat_create(c.in[0]->ctx, m, n, SCL_GENERAL, &c.out));
  if (!scl_is_empty(c.out)) {
    scl_block from = scl_mat_block(c.in[0]);
    from.ld = from.nrow = m;
    from.ncol = n;
    SCL_GO(scl_engine_of(c.out)->copy(c.out->ctx, SCL_COPY, from, scl_mat_block(c.out)));
  }
done:
  return end_call(&c, status, 1, c.result);
}
