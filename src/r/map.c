/* .Call entries of cl_map() on base R operands: functions whose trace is known
 * (R/trace-map-known.R).
 *
 *   r_map_template(inputs, results)  handles of the inputs (2 x 2), and of what a function makes of
 *       them, or numbers: a template as a raw vector, or NULL if there is none
 *   r_map_find(known, f, operands)  the one among known functions that is f with these operands, or
 *       NULL. known: a list of list(f, names, count, template, reads, results), `names` and `count`
 *       of the operands; template NULL: f must be traced in each call; reads: a list of
 *       list(symbols, values, environment), the names that the trace has read; environment NULL:
 *       that of f; results: FALSE if f returns a single value, else the names of its list
 *   r_map_shape(operands)  c(rows, columns, longest operand), or NULL if an operand is no plain
 *       vector or matrix of numbers, or they do not conform
 *   r_map_run(known, operands)  the value of a known function that has a template: base R values
 *       with the names of the operands
 *   r_map_quick(known, f, operands, limit)  these three in one call: NULL if f is not known, has no
 *       template, or an operand has `limit` elements or more (NA: no limit) */
#include "r/entries.h"
#include "r/glue.h"

#include <limits.h>
#include <string.h>

#include "graph/template.h"

/* ---- known functions ------------------------------------------------------------------------ */

/* The flags of identical(): numbers are compared by their bits, environments of functions are
 * ignored. */
enum { BY_BITS = 3 };
enum { KNOWN_F, KNOWN_NAMES, KNOWN_COUNT, KNOWN_TEMPLATE, KNOWN_READS, KNOWN_RESULTS };

/* The value of a name in an environment; the name itself, no such value, if there is none. May
 * jump.
 */
static SEXP value_of(SEXP symbol, SEXP env) {
  return R_getVarEx(symbol, env, TRUE, symbol);
}

/* A function that the user's function calls is kept with its environment, or, if that is the one of
 * the user's function, with an empty one. */
static bool is_same(SEXP now, SEXP then, SEXP env) {
  if (now == then) return true;
  if (TYPEOF(now) != TYPEOF(then)) return false;
  if (TYPEOF(now) == CLOSXP) {
    SEXP home = R_ClosureEnv(then);
    if (R_ClosureEnv(now) != (home == R_EmptyEnv ? env : home)) return false;
  }
  return R_compute_identical(now, then, BY_BITS);
}

static bool is_unchanged(SEXP read, SEXP env) {
  SEXP symbols = VECTOR_ELT(read, 0), values = VECTOR_ELT(read, 1), home = VECTOR_ELT(read, 2);
  if (home == R_NilValue) home = env;
  for (R_xlen_t k = 0; k < XLENGTH(symbols); k++) {
    SEXP now = PROTECT(value_of(VECTOR_ELT(symbols, k), home));
    const bool same = is_same(now, VECTOR_ELT(values, k), env);
    UNPROTECT(1);
    if (!same) return false;
  }
  return true;
}

static bool is_known(SEXP known, SEXP f, SEXP operands, SEXP env) {
  if (TYPEOF(VECTOR_ELT(known, KNOWN_F)) != TYPEOF(f) ||
      Rf_asInteger(VECTOR_ELT(known, KNOWN_COUNT)) != Rf_length(operands) ||
      !R_compute_identical(VECTOR_ELT(known, KNOWN_NAMES), Rf_getAttrib(operands, R_NamesSymbol),
                           BY_BITS) ||
      !R_compute_identical(VECTOR_ELT(known, KNOWN_F), f, BY_BITS)) {
    return false;
  }
  SEXP reads = VECTOR_ELT(known, KNOWN_READS);
  for (R_xlen_t k = 0; k < Rf_xlength(reads); k++) {
    if (!is_unchanged(VECTOR_ELT(reads, k), env)) return false;
  }
  return true;
}

SEXP r_map_find(SEXP known, SEXP f, SEXP operands) {
  SEXP env = TYPEOF(f) == CLOSXP ? R_ClosureEnv(f) : R_NilValue;
  for (R_xlen_t k = 0; k < XLENGTH(known); k++) {
    if (is_known(VECTOR_ELT(known, k), f, operands, env)) return VECTOR_ELT(known, k);
  }
  return R_NilValue;
}

SEXP r_map_template(SEXP inputs, SEXP results) {
  const R_xlen_t count = XLENGTH(inputs), outputs = XLENGTH(results);
  scl_mat *input[SCL_PLAN_LEAVES];
  scl_term result[SCL_PLAN_OUTPUTS] = {{NULL, 0.0}};
  if (count > SCL_PLAN_LEAVES || outputs > SCL_PLAN_OUTPUTS) return R_NilValue;
  SEXP template = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t)sizeof(scl_template)));
  scl_status status = SCL_OK;
  bool made = false;
  for (R_xlen_t k = 0; k < count; k++) {
    SCL_GO(r_handle_get(VECTOR_ELT(inputs, k), "x", &input[k]));
  }
  for (R_xlen_t k = 0; k < outputs; k++) {
    SEXP x = VECTOR_ELT(results, k);
    if (r_is_handle(x)) {
      SCL_GO(r_handle_peek(x, "f", &result[k].matrix));
    } else {
      result[k].number = Rf_asReal(x);
    }
  }
  made = scl_template_make((size_t)count, input, (size_t)outputs, result,
                           (scl_template *)(void *)RAW(template));
done:
  UNPROTECT(1);
  return r_return(status, made ? template : R_NilValue);
}

/* ---- operands ------------------------------------------------------------------------------- */

typedef struct {
  bool matrices; /* any operand is one */
  int nrow, ncol;
  R_xlen_t longest;
} map_shape;

/* Plain numbers; a vector is a column. */
static bool find_dim(SEXP x, int *m, int *n, bool *matrix) {
  if (TYPEOF(x) != REALSXP && TYPEOF(x) != INTSXP && TYPEOF(x) != LGLSXP) return false;
  if (Rf_isObject(x) || XLENGTH(x) > INT_MAX) return false;
  SEXP dim = !ANY_ATTRIB(x) ? R_NilValue : Rf_getAttrib(x, R_DimSymbol);
  *matrix = dim != R_NilValue;
  *m = *matrix ? INTEGER_RO(dim)[0] : (int)XLENGTH(x);
  *n = *matrix && XLENGTH(dim) == 2 ? INTEGER_RO(dim)[1] : 1;
  return !*matrix || XLENGTH(dim) == 2;
}

/* Of rows or columns: equal numbers, and any number with 1. */
static bool join(bool first, int size, int *joint) {
  if (first || *joint == 1) {
    *joint = size;
    return true;
  }
  return size == *joint || size == 1;
}

/* Names are taken from the first vector, which must then be a whole one. */
static bool find_map_shape(SEXP operands, map_shape *out) {
  *out = (map_shape){false, 1, 1, 0};
  for (R_xlen_t k = 0; k < XLENGTH(operands); k++) {
    SEXP x = VECTOR_ELT(operands, k);
    int m, n;
    bool matrix;
    if (!find_dim(x, &m, &n, &matrix)) return false;
    if (!join(k == 0, m, &out->nrow) || !join(k == 0, n, &out->ncol)) return false;
    out->matrices = out->matrices || matrix;
    if (XLENGTH(x) > out->longest) out->longest = XLENGTH(x);
  }
  SEXP first = VECTOR_ELT(operands, 0);
  return out->matrices || XLENGTH(first) == out->nrow || !ANY_ATTRIB(first);
}

SEXP r_map_shape(SEXP operands) {
  map_shape shape;
  if (!find_map_shape(operands, &shape)) return R_NilValue;
  SEXP out = PROTECT(Rf_allocVector(REALSXP, 3));
  REAL(out)[0] = shape.nrow;
  REAL(out)[1] = shape.ncol;
  REAL(out)[2] = (double)shape.longest;
  UNPROTECT(1);
  return out;
}

/* ---- running -------------------------------------------------------------------------------- */

static bool names_anything(SEXP names) {
  return names != R_NilValue &&
         (VECTOR_ELT(names, 0) != R_NilValue || VECTOR_ELT(names, 1) != R_NilValue);
}

/* The names of the result: of the first vector, or of the first matrix of its shape that has any.
 */
static SEXP find_names(SEXP operands, const map_shape *shape) {
  if (!shape->matrices) {
    SEXP first = VECTOR_ELT(operands, 0);
    return !ANY_ATTRIB(first) ? R_NilValue : Rf_getAttrib(first, R_NamesSymbol);
  }
  for (R_xlen_t k = 0; k < XLENGTH(operands); k++) {
    SEXP x = VECTOR_ELT(operands, k);
    int m, n;
    bool matrix;
    if (!find_dim(x, &m, &n, &matrix) || !matrix || m != shape->nrow || n != shape->ncol) continue;
    SEXP names = Rf_getAttrib(x, R_DimNamesSymbol);
    if (names_anything(names)) return names;
  }
  return R_NilValue;
}

static SEXP new_result(const map_shape *shape, SEXP names) {
  SEXP x = PROTECT(r_values_new((size_t)shape->nrow, (size_t)shape->ncol));
  if (!shape->matrices) Rf_setAttrib(x, R_DimSymbol, R_NilValue);
  if (names != R_NilValue) {
    Rf_setAttrib(x, shape->matrices ? R_DimNamesSymbol : R_NamesSymbol, names);
  }
  UNPROTECT(1);
  return x;
}

/* A list of base R values. */
static scl_status run_template(const scl_template *t, SEXP operands, const map_shape *shape,
                               SEXP result) {
  scl_input input[SCL_PLAN_LEAVES];
  double *output[SCL_PLAN_OUTPUTS];
  scl_status status = SCL_OK;
  scl_context *host = NULL;
  SEXP names = PROTECT(find_names(operands, shape));
  SEXP numbers = PROTECT(Rf_allocVector(VECSXP, t->inputs));
  for (int k = 0; k < t->outputs; k++) {
    SET_VECTOR_ELT(result, k, new_result(shape, names));
    output[k] = REAL(VECTOR_ELT(result, k));
  }
  for (int k = 0; k < t->inputs; k++) {
    SEXP x = VECTOR_ELT(operands, k);
    int m, n;
    bool matrix;
    find_dim(x, &m, &n, &matrix);
    if (TYPEOF(x) != REALSXP) {
      x = Rf_coerceVector(x, REALSXP);
      SET_VECTOR_ELT(numbers, k, x);
    }
    input[k] = (scl_input){REAL_RO(x), (size_t)m, (size_t)n};
  }
  if (shape->nrow > 0 && shape->ncol > 0) {
    SCL_GO(r_context(-1, &host));
    SCL_GO(scl_template_run(host, t, (size_t)shape->nrow, (size_t)shape->ncol, input, output));
  }
done:
  UNPROTECT(2);
  return status;
}

static SEXP run_known(SEXP known, SEXP operands, const map_shape *shape) {
  SEXP template = VECTOR_ELT(known, KNOWN_TEMPLATE), names = VECTOR_ELT(known, KNOWN_RESULTS);
  const scl_template *t = (const scl_template *)(const void *)RAW_RO(template);
  SEXP result = PROTECT(Rf_allocVector(VECSXP, t->outputs));
  const scl_status status = run_template(t, operands, shape, result);
  const bool list = TYPEOF(names) != LGLSXP;
  if (list) Rf_setAttrib(result, R_NamesSymbol, names);
  UNPROTECT(1);
  return r_return(status, list ? result : VECTOR_ELT(result, 0));
}

SEXP r_map_run(SEXP known, SEXP operands) {
  map_shape shape;
  if (XLENGTH(operands) != Rf_asInteger(VECTOR_ELT(known, KNOWN_COUNT)) ||
      !find_map_shape(operands, &shape)) {
    return r_return(scl_fail_argument("...", "internal: the operands do not fit"), R_NilValue);
  }
  return run_known(known, operands, &shape);
}

SEXP r_map_quick(SEXP known, SEXP f, SEXP operands, SEXP limit) {
  map_shape shape;
  if (!Rf_isFunction(f) || XLENGTH(operands) == 0 || !find_map_shape(operands, &shape) ||
      (double)shape.longest >= Rf_asReal(limit)) {
    return R_NilValue;
  }
  SEXP entry = r_map_find(known, f, operands);
  if (entry == R_NilValue || VECTOR_ELT(entry, KNOWN_TEMPLATE) == R_NilValue) return R_NilValue;
  return run_known(entry, operands, &shape);
}
