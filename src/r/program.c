/* .Call entries for compiled functions (program/program.h).
 *
 *   r_program_make(where, nodes, data, parameters, output)
 *       where: an index in the device list, -1 for the host
 *       nodes: list(kind, op, args, at, number, scans, roll), all but the last two as long as
 * there are nodes: two character vectors, a list of integer vectors (1-based nodes), a list of
 * double vectors (the attributes of ops/operations.def; `index` and `body` are 1-based), a double
 *       vector. scans: the bodies of scans, each list(nodes, data, result, ports, guard): of ports
 * the columns are role, length and whether all sequences share it, one row for each
 *       (engine/plan/scan.h). roll: whether loops are rolled (program/roll.h); never in a scan
 *       data: a list of double vectors; parameters: how many numbers; output: a node
 *   r_program_run(program, x, gradient): the value, and the derivatives behind it if `gradient`
 *   r_program_run_vectors(program, x, gradient): the same for each column of the matrix x, as a
 *       column; NULL if the program has to be mapped to this number of vectors first
 *   r_program_map(program, nodes, data, output, count): does that, from what it was made of
 *   r_program_is_live(program): FALSE for a handle of another session r_program_make_second(...,
 *   order): the same for second derivatives, or of order 3 r_program_hessian(program, x),
 *   r_program_product(program, x, direction): a matrix; it times a
 *       vector
 *   r_program_blocks(nodes, data, output, chosen): for each parameter its block (program/blocks.h);
 *       chosen: a raw vector, 1 for the chosen parameters
 *   r_program_facts(program): a named double vector
 *   r_program_set_data(program, index, values): index is 1-based */
#include "r/entries.h"
#include "r/pointer.h"
#include "r/program.h"

#include <stdlib.h>
#include <string.h>

#include "program/blocks.h"
#include "program/roll.h"
#include "program/scan.h"

R_POINTER_KIND(program_kind, "statcl_program", scl_program)

scl_status r_program_get(SEXP x, scl_program **out) {
  SCL_TRY(r_require_outside());
  if (!r_is_pointer(&program_kind, x)) {
    return scl_fail_argument("f", "'f' must be a compiled function");
  }
  scl_program *program = r_pointer_object(x);
  if (program == NULL) {
    return scl_fail(SCL_E_STALE,
                    "the function was compiled in another session: call cl_gradient() again");
  }
  SCL_TRY(scl_context_check(scl_program_context(program)));
  *out = program;
  return SCL_OK;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

enum { KIND, OP, ARGS, AT, NUMBER, COLUMNS, SCANS = COLUMNS, ROLL, FIELDS };

typedef struct {
  SEXP column[COLUMNS];
  R_xlen_t count;
  int *value;    /* of each node: its index on the tape */
  int *operands; /* room for those of one node */
  int room;
} node_table;

static scl_status bad_nodes(void) {
  return scl_fail_argument("nodes", "'nodes' must be what tracing a function recorded");
}

static scl_status read_table(SEXP nodes, node_table *t) {
  static const unsigned type[COLUMNS] = {STRSXP, STRSXP, VECSXP, VECSXP, REALSXP};
  if (TYPEOF(nodes) != VECSXP || XLENGTH(nodes) != FIELDS) return bad_nodes();
  for (int k = 0; k < COLUMNS; k++) {
    t->column[k] = VECTOR_ELT(nodes, k);
    if ((unsigned)TYPEOF(t->column[k]) != type[k]) return bad_nodes();
    if (XLENGTH(t->column[k]) != XLENGTH(t->column[0])) return bad_nodes();
  }
  t->count = XLENGTH(t->column[0]);
  for (R_xlen_t k = 0; k < t->count; k++) {
    SEXP args = VECTOR_ELT(t->column[ARGS], k);
    if (TYPEOF(args) != INTSXP || TYPEOF(VECTOR_ELT(t->column[AT], k)) != REALSXP) {
      return bad_nodes();
    }
    if (XLENGTH(args) > t->room) t->room = (int)XLENGTH(args);
  }
  t->value = malloc(((size_t)t->count + 1) * sizeof *t->value);
  t->operands = malloc(((size_t)t->room + 1) * sizeof *t->operands);
  if (t->value == NULL || t->operands == NULL) {
    return scl_fail_memory((size_t)t->count * sizeof *t->value, 0, "a program");
  }
  return SCL_OK;
}

/* The kind of a node, and of APPLY and REDUCE the operation: scl_op, scl_reduction. */
static scl_status find_kind(SEXP name, SEXP of, scl_value_kind *kind, unsigned *op) {
  unsigned row;
  SCL_TRY(r_op_find(name, &row));
  *kind = scl_operations[row].kind;
  if (*kind == SCL_VALUE_APPLY || *kind == SCL_VALUE_REDUCE) {
    SCL_TRY(r_op_find(of, &row));
    if (scl_operations[row].kind != *kind) return bad_nodes();
  }
  *op = row >= SCL_FIRST_REDUCTION ? row - SCL_FIRST_REDUCTION : row;
  return SCL_OK;
}

/* Kinds whose first attribute is the 1-based index of data or of a body. */
static bool has_index(scl_value_kind kind) {
  return kind == SCL_VALUE_SCAN || kind == SCL_VALUE_DATA || kind == SCL_VALUE_GATHER ||
         kind == SCL_VALUE_SCATTER || kind == SCL_VALUE_SPARSE_LOG_DET ||
         kind == SCL_VALUE_SPARSE_SOLVE || kind == SCL_VALUE_SPARSE_INVERSE ||
         kind == SCL_VALUE_SPARSE_ROOT;
}

static scl_status add_node(const node_table *t, R_xlen_t k, scl_tape *tape) {
  SEXP args = VECTOR_ELT(t->column[ARGS], k), given = VECTOR_ELT(t->column[AT], k);
  const int operands = (int)XLENGTH(args);
  size_t at[SCL_VALUE_ATTRIBUTES] = {0};
  scl_value_kind kind;
  unsigned op;
  SCL_TRY(find_kind(STRING_ELT(t->column[KIND], k), STRING_ELT(t->column[OP], k), &kind, &op));
  if (XLENGTH(given) != scl_value_attributes(kind)) return bad_nodes();
  for (int i = 0; i < operands; i++) {
    const int arg = INTEGER_RO(args)[i];
    if (arg < 1 || arg > k) return bad_nodes();
    t->operands[i] = t->value[arg - 1];
  }
  for (R_xlen_t i = 0; i < XLENGTH(given); i++) {
    const double number = REAL_RO(given)[i];
    if (!(number >= 0.0 && number < 9007199254740992.0)) return bad_nodes();
    at[i] = (size_t)number;
  }
  if (has_index(kind) && at[0]-- == 0) return bad_nodes();
  t->value[k] =
      scl_tape_add(tape, kind, op, operands, t->operands, at, REAL_RO(t->column[NUMBER])[k]);
  return tape->status;
}

static scl_status fill_tape(SEXP nodes, SEXP data, int output, scl_tape *tape, int *result,
                            int *guard);

static scl_status read_ports(SEXP ports, scl_scan_shape *s) {
  if (TYPEOF(ports) != REALSXP || XLENGTH(ports) % 3 != 0) return bad_nodes();
  const R_xlen_t count = XLENGTH(ports) / 3;
  if (count > SCL_SCAN_PORTS) {
    return scl_fail_argument("f", "cl_scan() has too many inputs and outputs: put several into one "
                                  "vector");
  }
  for (R_xlen_t k = 0; k < count; k++) {
    const double role = REAL_RO(ports)[k], length = REAL_RO(ports)[count + k];
    const bool in_order = k == 0 || role >= REAL_RO(ports)[k - 1];
    if (!in_order || !(role >= 0.0 && role < SCL_SCAN_ROLES)) return bad_nodes();
    if (!(length >= 1.0 && length < 2147483648.0)) return bad_nodes();
    s->port[k] = (scl_scan_port){(size_t)length, REAL_RO(ports)[2 * count + k] != 0.0};
    s->ports[(int)role]++;
  }
  return SCL_OK;
}

static scl_status add_scan(SEXP scan, scl_tape *tape) {
  if (TYPEOF(scan) != VECSXP || XLENGTH(scan) != 5) return bad_nodes();
  scl_scan_body *body = calloc(1, sizeof *body);
  if (body == NULL) return scl_fail_memory(sizeof *body, 0, "a program");
  body->of = -1;
  scl_tape_begin(&body->tape);
  scl_status status = read_ports(VECTOR_ELT(scan, 3), &body->shape);
  int guard = XLENGTH(VECTOR_ELT(scan, 4)) > 0 ? Rf_asInteger(VECTOR_ELT(scan, 4)) : 0;
  if (status == SCL_OK) {
    status = fill_tape(VECTOR_ELT(scan, 0), VECTOR_ELT(scan, 1), Rf_asInteger(VECTOR_ELT(scan, 2)),
                       &body->tape, &body->result, &guard);
    body->guard = guard;
  }
  if (status == SCL_OK) status = scl_scan_check(body);
  scl_tape_add_body(tape, body); /* which ends it */
  return status != SCL_OK ? status : tape->status;
}

static scl_status add_scans(SEXP scans, scl_tape *tape) {
  if (TYPEOF(scans) != VECSXP) return bad_nodes();
  for (R_xlen_t k = 0; k < XLENGTH(scans); k++) SCL_TRY(add_scan(VECTOR_ELT(scans, k), tape));
  return SCL_OK;
}

static scl_status fill_tape(SEXP nodes, SEXP data, int output, scl_tape *tape, int *result,
                            int *guard) {
  node_table t = {.room = 0};
  scl_status status;
  SCL_GO(read_table(nodes, &t));
  SCL_GO(add_scans(VECTOR_ELT(nodes, SCANS), tape));
  if (TYPEOF(data) != VECSXP) SCL_GO(bad_nodes());
  for (R_xlen_t k = 0; k < XLENGTH(data); k++) {
    SEXP numbers = VECTOR_ELT(data, k);
    if (TYPEOF(numbers) != REALSXP) SCL_GO(bad_nodes());
    scl_tape_add_data(tape, REAL_RO(numbers), (size_t)XLENGTH(numbers));
  }
  for (R_xlen_t k = 0; k < t.count; k++) SCL_GO(add_node(&t, k, tape));
  if (output < 1 || output > t.count) SCL_GO(bad_nodes());
  *result = t.value[output - 1];
  if (guard != NULL) *guard = *guard < 1 || *guard > t.count ? 0 : t.value[*guard - 1] + 1;
done:
  free(t.value);
  free(t.operands);
  return status;
}

scl_status r_program_fill(SEXP nodes, SEXP data, int output, bool rolled, scl_tape *tape,
                          int *result) {
  if (TYPEOF(nodes) != VECSXP || XLENGTH(nodes) != FIELDS) return bad_nodes();
  if (!rolled || Rf_asLogical(VECTOR_ELT(nodes, ROLL)) != 1) {
    return fill_tape(nodes, data, output, tape, result, NULL);
  }
  scl_tape recorded;
  int last = 0;
  scl_tape_begin(&recorded);
  recorded.recorded = true;
  scl_status status = fill_tape(nodes, data, output, &recorded, &last, NULL);
  if (status == SCL_OK) {
    scl_tape_roll(&recorded, last, tape, result);
    status = tape->status;
  }
  scl_tape_end(&recorded);
  return status;
}

/* ---- entries -------------------------------------------------------------------------------- */

static SEXP make_program(SEXP where, SEXP nodes, SEXP data, SEXP parameters, SEXP output,
                         int order) {
  SEXP handle = PROTECT(r_pointer_new(&program_kind, R_NilValue));
  scl_program *program = NULL;
  scl_context *ctx;
  scl_tape tape;
  scl_status status;
  int result = 0;
  scl_tape_begin(&tape);
  SCL_GO(r_require_outside());
  SCL_GO(r_context(Rf_asInteger(where), &ctx));
  SCL_GO(r_program_fill(nodes, data, Rf_asInteger(output), true, &tape, &result));
  const size_t count = (size_t)Rf_asReal(parameters);
  SCL_GO(order > 1 ? scl_program_make_second(ctx, &tape, result, count, order, &program)
                   : scl_program_make(ctx, &tape, result, count, &program));
  r_pointer_set(handle, program);
done:
  scl_tape_end(&tape);
  UNPROTECT(1);
  return r_return(status, handle);
}

SEXP r_program_make(SEXP where, SEXP nodes, SEXP data, SEXP parameters, SEXP output) {
  return make_program(where, nodes, data, parameters, output, 1);
}

SEXP r_program_make_second(SEXP where, SEXP nodes, SEXP data, SEXP parameters, SEXP output,
                           SEXP order) {
  return make_program(where, nodes, data, parameters, output, Rf_asInteger(order));
}

SEXP r_program_blocks(SEXP nodes, SEXP data, SEXP output, SEXP chosen) {
  const size_t parameters = (size_t)XLENGTH(chosen);
  SEXP result = PROTECT(Rf_allocVector(INTSXP, XLENGTH(chosen)));
  scl_tape tape;
  scl_status status;
  int last = 0;
  scl_tape_begin(&tape);
  if (TYPEOF(chosen) != RAWSXP) SCL_GO(bad_nodes());
  SCL_GO(r_program_fill(nodes, data, Rf_asInteger(output), false, &tape, &last));
  SCL_GO(scl_tape_blocks(&tape, last, parameters, RAW(chosen), INTEGER(result)));
done:
  scl_tape_end(&tape);
  UNPROTECT(1);
  return r_return(status, result);
}

/* The number of parameters of a handle that may be no program, for the size of a result. */
size_t r_program_parameters(SEXP program) {
  const scl_program *p = r_is_pointer(&program_kind, program) ? r_pointer_object(program) : NULL;
  return p != NULL ? scl_program_about(p).parameters : 0;
}

SEXP r_program_is_live(SEXP program) {
  return Rf_ScalarLogical(r_is_pointer(&program_kind, program) &&
                          r_pointer_object(program) != NULL);
}

static scl_status require_point(SEXP x, size_t parameters) {
  if (r_is_double(x, parameters)) return SCL_OK;
  return scl_fail_argument("x", "'x' must be a double vector of length %zu", parameters);
}

SEXP r_program_hessian(SEXP program, SEXP x) {
  const size_t parameters = r_program_parameters(program);
  SEXP result = PROTECT(Rf_allocMatrix(REALSXP, (int)parameters, (int)parameters));
  scl_program *p;
  scl_status status;
  SCL_GO(r_program_get(program, &p));
  SCL_GO(require_point(x, parameters));
  SCL_GO(scl_program_hessian(p, REAL_RO(x), REAL(result)));
done:
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_program_product(SEXP program, SEXP x, SEXP direction) {
  const size_t parameters = r_program_parameters(program);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)parameters));
  scl_program *p;
  scl_status status;
  SCL_GO(r_program_get(program, &p));
  SCL_GO(require_point(x, parameters));
  SCL_GO(require_point(direction, parameters));
  SCL_GO(scl_program_product(p, REAL_RO(x), REAL_RO(direction), REAL(result)));
done:
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_program_run(SEXP program, SEXP x, SEXP gradient) {
  const bool both = Rf_asLogical(gradient) == 1;
  const size_t parameters = r_program_parameters(program);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)(both ? parameters + 1 : 1)));
  scl_program *p;
  scl_status status;
  SCL_GO(r_program_get(program, &p));
  SCL_GO(require_point(x, parameters));
  SCL_GO(scl_program_run(p, REAL_RO(x), both, REAL(result)));
done:
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_program_run_vectors(SEXP program, SEXP x, SEXP gradient) {
  const bool both = Rf_asLogical(gradient) == 1;
  const size_t parameters = r_program_parameters(program);
  const int vectors = Rf_isMatrix(x) ? Rf_ncols(x) : 1;
  SEXP result = PROTECT(Rf_allocMatrix(REALSXP, (int)(both ? parameters + 1 : 1), vectors));
  scl_program *p;
  scl_status status;
  bool mapped = true;
  SCL_GO(r_program_get(program, &p));
  if (!r_is_double(x, parameters * (size_t)vectors)) {
    SCL_GO(scl_fail_argument("x", "'x' must be a double matrix with %zu rows", parameters));
  }
  mapped = scl_program_is_mapped(p, (size_t)vectors);
  if (mapped) {
    SCL_GO(scl_program_run_vectors(p, REAL_RO(x), (size_t)vectors, both, REAL(result)));
  }
done:
  UNPROTECT(1);
  return r_return(status, mapped ? result : R_NilValue);
}

SEXP r_program_map(SEXP program, SEXP nodes, SEXP data, SEXP output, SEXP count) {
  const int vectors = Rf_asInteger(count);
  scl_program *p;
  scl_tape tape;
  scl_status status;
  int result = 0;
  scl_tape_begin(&tape);
  SCL_GO(r_program_get(program, &p));
  if (vectors < 1) SCL_GO(scl_fail_argument("count", "'count' must be positive"));
  SCL_GO(r_program_fill(nodes, data, Rf_asInteger(output), true, &tape, &result));
  SCL_GO(scl_program_map(p, &tape, result, (size_t)vectors));
done:
  scl_tape_end(&tape);
  return r_return(status, R_NilValue);
}

SEXP r_program_facts(SEXP program) {
  const char *names[] = {"parameters", "values",   "gradient_values", "kernels", "calls", "bytes",
                         "operations", "elements", "rounds",          "steps",   ""};
  SEXP result = PROTECT(Rf_mkNamed(REALSXP, names));
  scl_program *p;
  scl_status status;
  SCL_GO(r_program_get(program, &p));
  const scl_program_facts facts = scl_program_about(p);
  const double numbers[] = {(double)facts.parameters,
                            facts.values,
                            facts.gradient_values,
                            facts.kernels,
                            facts.calls,
                            (double)facts.bytes,
                            facts.operations,
                            facts.elements,
                            facts.rounds,
                            facts.steps};
  memcpy(REAL(result), numbers, sizeof numbers);
done:
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_program_set_data(SEXP program, SEXP index, SEXP values) {
  scl_program *p;
  scl_status status;
  SCL_GO(r_program_get(program, &p));
  if (TYPEOF(values) != REALSXP) {
    SCL_GO(scl_fail_argument("values", "'values' must be a double vector"));
  }
  SCL_GO(
      scl_program_set_data(p, Rf_asInteger(index) - 1, REAL_RO(values), (size_t)XLENGTH(values)));
done:
  return r_return(status, R_NilValue);
}
