/* Nodes: the matrices behind handles, and elementwise operations that are not recorded in the core
 * yet.
 *
 * A node is an external pointer. Its address is its matrix; or NULL, if it has none (any more); or
 * that of `deferred_mark`. R writes no address to a file, so a node that was read from one has
 * neither a matrix nor a record, whatever its other fields say.
 *
 * A deferred node stands for an operation on other nodes and numbers, as a record in its protected
 * field: list(operand, operand or NULL, facts), where facts are integers. Only this file makes
 * records, so their contents need no check. The core records the operation when the matrix of the
 * node is asked for (r_node_peek()).
 *
 * The operators do not record in the core at once because a matrix of the core needs a finaliser,
 * which takes R's collector as long as the rest of an operator, and most intermediate results are
 * never used. R's collector frees a record by itself. Ten operations on columns of 8 elements, on
 * the host engine, in microseconds of processor time, collector included:
 *
 *                      deferred   recorded at once
 *   ten operations         21             37
 *   and sum()              36             50
 *   and as.matrix()        30             45 */
#include "r/node.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "graph/expr.h"

enum { DEEPEST = 48 }; /* recording recurs */
enum { RECORD_A, RECORD_B, RECORD_FACTS, RECORD_SIZE };
/* The operation; depth; shape and view; how many deferred nodes have this one as operand. Of a node
 * that is not deferred only the last counts; its facts are its protected field, or missing. */
enum { OPERATION, DEPTH, NROW, NCOL, VIEW, USES, FACTS };

static char deferred_mark;
/* Symbols live as long as R. */
static SEXP node_tag, freed_tag;

void r_node_init(void) {
  node_tag = Rf_install("statcl_node");
  freed_tag = Rf_install("statcl_node_freed"); /* of a node whose handle the user has freed */
}

/* ---- facts ---------------------------------------------------------------------------------- */

bool r_is_node(SEXP x) {
  return TYPEOF(x) == EXTPTRSXP &&
         (R_ExternalPtrTag(x) == node_tag || R_ExternalPtrTag(x) == freed_tag);
}

static bool is_deferred(SEXP node) {
  return R_ExternalPtrAddr(node) == &deferred_mark;
}

scl_mat *r_node_matrix(SEXP node) {
  return is_deferred(node) ? NULL : R_ExternalPtrAddr(node);
}

void r_node_set(SEXP node, scl_mat *m) {
  R_SetExternalPtrAddr(node, m);
}

/* NULL if there are none. */
static int *facts_of(SEXP node) {
  SEXP facts = R_ExternalPtrProtected(node);
  if (is_deferred(node)) facts = VECTOR_ELT(facts, RECORD_FACTS);
  return TYPEOF(facts) == INTSXP && XLENGTH(facts) == FACTS ? INTEGER(facts) : NULL;
}

static int depth_of(SEXP x) {
  return r_is_node(x) && is_deferred(x) ? facts_of(x)[DEPTH] : 0;
}

bool r_node_is_deep(SEXP x) {
  return depth_of(x) >= DEEPEST;
}

scl_shape r_node_shape(SEXP node) {
  if (!is_deferred(node)) return scl_shape_of(r_node_matrix(node));
  const int *facts = facts_of(node);
  return (scl_shape){(size_t)facts[NROW], (size_t)facts[NCOL], (scl_view)facts[VIEW]};
}

scl_status r_fail_stale(const char *argument) {
  scl_fail(SCL_E_STALE, "the clMatrix has no data: it was freed, or restored from a file that does "
                        "not contain its data");
  strncpy(scl_fault_edit()->argument, argument, sizeof scl_fault_edit()->argument - 1);
  return SCL_E_STALE;
}

/* The matrix of a node that is not deferred. */
static scl_status find_matrix(SEXP node, const char *argument, scl_mat **out) {
  scl_mat *m = r_node_matrix(node);
  if (m == NULL) return r_fail_stale(argument);
  if (m->tag != SCL_MAT_TAG) return scl_fail_argument(argument, "'%s' is not a clMatrix", argument);
  if (m->ctx->lost) {
    return scl_fail(SCL_E_STALE, "the clMatrix was on a device that was lost");
  }
  SCL_TRY(scl_context_check(m->ctx));
  *out = m;
  return SCL_OK;
}

scl_status r_node_context(SEXP node, const char *argument, scl_context **out) {
  scl_mat *m;
  while (is_deferred(node)) { /* all operands have one context */
    SEXP record = R_ExternalPtrProtected(node), a = VECTOR_ELT(record, RECORD_A);
    node = r_is_node(a) ? a : VECTOR_ELT(record, RECORD_B);
  }
  SCL_TRY(find_matrix(node, argument, &m));
  *out = scl_mat_context(m);
  return SCL_OK;
}

/* ---- freeing -------------------------------------------------------------------------------- */

static void release_matrix(SEXP node) {
  scl_mat *m = r_node_matrix(node);
  R_ClearExternalPtr(node);
  /* A forked child must not touch the parent's device objects. */
  if (m != NULL && scl_context_check(m->ctx) != SCL_E_FORK) scl_mat_release(m);
}

static void finalize_node(SEXP node) {
  r_finalized();
  if (!is_deferred(node)) release_matrix(node);
}

static void end_uses(SEXP record);

/* If the user has freed the handle of the node, and no deferred node needs it. */
static void free_unused(SEXP node) {
  const int *facts = facts_of(node);
  if (R_ExternalPtrTag(node) != freed_tag || (facts != NULL && facts[USES] > 0)) return;
  if (!is_deferred(node)) {
    release_matrix(node);
    return;
  }
  SEXP record = R_ExternalPtrProtected(node); /* stays: nothing is allocated below */
  R_ClearExternalPtr(node);
  R_SetExternalPtrProtected(node, R_NilValue);
  end_uses(record);
}

/* The operands of a record have one use less. The count is an upper limit: it also counts the nodes
 * that the collector has taken since. INT_MAX stands for any larger count, and stays. */
static void end_uses(SEXP record) {
  for (int k = RECORD_A; k <= RECORD_B; k++) {
    SEXP x = VECTOR_ELT(record, k);
    int *facts = r_is_node(x) ? facts_of(x) : NULL;
    if (facts == NULL || facts[USES] == 0) continue;
    if (facts[USES] < INT_MAX) facts[USES]--;
    free_unused(x);
  }
}

void r_node_free(SEXP node) {
  R_SetExternalPtrTag(node, freed_tag);
  free_unused(node);
}

/* ---- making --------------------------------------------------------------------------------- */

static void register_node(SEXP node) {
  r_finalizer(node, finalize_node);
}

SEXP r_node_new(void) {
  SEXP node = PROTECT(R_MakeExternalPtr(NULL, node_tag, R_NilValue));
  register_node(node);
  UNPROTECT(1);
  return node;
}

scl_status r_node_rule(scl_op op, SEXP a, SEXP b, scl_shape *out) {
  scl_call call = {.operation = op, .count = b == R_NilValue ? 1 : 2};
  for (int k = 0; k < call.count; k++) {
    SEXP x = k == 0 ? a : b;
    if (r_is_node(x)) {
      call.operand[k].kind = SCL_A_MATRIX;
      call.operand[k].shape = r_node_shape(x);
    } else {
      call.operand[k].kind = SCL_A_NUMBER;
      call.operand[k].number = Rf_asReal(x);
    }
  }
  return scl_operations[op].rule(&call, out);
}

/* Phase 1. */
static void count_use(SEXP x) {
  if (!r_is_node(x)) return;
  int *facts = facts_of(x);
  if (facts == NULL) {
    SEXP fresh = Rf_allocVector(INTSXP, FACTS);
    R_SetExternalPtrProtected(x, fresh);
    facts = INTEGER(fresh);
    memset(facts, 0, FACTS * sizeof *facts);
  }
  if (facts[USES] < INT_MAX) facts[USES]++;
}

SEXP r_node_defer(scl_op op, SEXP a, SEXP b, scl_shape shape) {
  SEXP record = PROTECT(Rf_allocVector(VECSXP, RECORD_SIZE));
  SEXP facts = Rf_allocVector(INTSXP, FACTS);
  SET_VECTOR_ELT(record, RECORD_FACTS, facts);
  const int below = depth_of(a) > depth_of(b) ? depth_of(a) : depth_of(b);
  const int values[FACTS] = {(int)op,         below + 1,       (int)shape.nrow,
                             (int)shape.ncol, (int)shape.view, 0};
  memcpy(INTEGER(facts), values, sizeof values);
  SET_VECTOR_ELT(record, RECORD_A, a);
  SET_VECTOR_ELT(record, RECORD_B, b);
  SEXP node = PROTECT(R_MakeExternalPtr(&deferred_mark, node_tag, record));
  count_use(a);
  count_use(b);
  UNPROTECT(2);
  return node;
}

/* ---- recording in the core ------------------------------------------------------------------ */
/* Nodes that got a matrix on the way, so that each is recorded once. */
typedef struct {
  SEXP *node;
  size_t count;
  int room;
} node_list;

static scl_status append(node_list *list, SEXP node) {
  const size_t needed = list->count + 1;
  SCL_TRY(scl_grow(&list->node, &list->room, needed, sizeof *list->node, "an expression"));
  list->node[list->count++] = node;
  return SCL_OK;
}

static scl_status record_node(node_list *list, SEXP node, const char *argument) {
  scl_mat *out;
  if (!is_deferred(node)) return find_matrix(node, argument, &out);
  SEXP record = R_ExternalPtrProtected(node);
  scl_term term[2] = {{NULL, 0.0}, {NULL, 0.0}};
  const int count = VECTOR_ELT(record, RECORD_B) == R_NilValue ? 1 : 2;
  for (int k = 0; k < count; k++) {
    SEXP x = VECTOR_ELT(record, RECORD_A + k);
    if (r_is_node(x)) {
      SCL_TRY(record_node(list, x, argument));
      term[k].matrix = r_node_matrix(x);
    } else {
      term[k].number = Rf_asReal(x);
    }
  }
  SCL_TRY(append(list, node));
  scl_status status = scl_expr_apply((scl_op)facts_of(node)[OPERATION], count, term, &out);
  if (status == SCL_OK) {
    r_node_set(node, out);
  } else {
    list->count--;
  }
  return status;
}

static void register_nodes(void *data) {
  const node_list *list = data;
  for (size_t k = 0; k < list->count; k++) register_node(list->node[k]);
}

/* The node has a matrix and its finaliser: its record gives way to its facts. */
static void end_record(SEXP node) {
  SEXP record = R_ExternalPtrProtected(node); /* stays: nothing is allocated below */
  R_SetExternalPtrProtected(node, VECTOR_ELT(record, RECORD_FACTS));
  end_uses(record);
}

static scl_status record_graph(SEXP node, const char *argument, bool keep) {
  node_list list = {NULL, 0, 0};
  scl_status status = record_node(&list, node, argument);
  /* Those that keep their matrix: all, or the last, which is `node`. */
  node_list kept = list;
  if (!keep && list.count > 0) kept = (node_list){list.node + list.count - 1, 1, 1};
  /* R may have no memory for a finaliser. */
  scl_hooks_begin();
  if (status == SCL_OK && !R_ToplevelExec(register_nodes, &kept)) {
    status = scl_fail_memory(0, 0, "an expression");
  }
  scl_hooks_end();
  const size_t deferred = status == SCL_OK ? list.count - kept.count : list.count;
  for (size_t k = 0; k < deferred; k++) {
    scl_mat_release(r_node_matrix(list.node[k]));
    R_SetExternalPtrAddr(list.node[k], &deferred_mark);
  }
  for (size_t k = deferred; k < list.count; k++) end_record(list.node[k]);
  free(list.node);
  return status;
}

scl_status r_node_peek(SEXP node, const char *argument, bool keep, scl_mat **out) {
  SCL_TRY(r_require_outside());
  if (is_deferred(node)) SCL_TRY(record_graph(node, argument, keep));
  return find_matrix(node, argument, out);
}

scl_status r_node_get(SEXP node, const char *argument, scl_mat **out) {
  scl_mat *m;
  SCL_TRY(r_node_peek(node, argument, false, &m));
  SCL_TRY(scl_mat_force(m));
  *out = m;
  return SCL_OK;
}
