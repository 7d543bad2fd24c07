/* Deferred nodes: the operations of r/lazy.c as R objects.
 *
 * A node of the core needs a finaliser, which costs R as much as all the rest of an operator. Most
 * nodes are intermediate results that nobody asks for again. So an operator leaves the node of its
 * handle without a matrix, with a record of what it stands for in the protected field: memory that
 * R's collector frees by itself. Whoever takes the matrix of such a handle (r_handle_peek()) has
 * the graph of the core built first; then the node is one like all others.
 *
 * A record is list(operation, first operand, second operand or NULL, facts): the operation's
 * symbol; operands are nodes or numbers; facts are integers. Records come from here only
 * (r/handle.c says how that is known), so they are what they were made. */
#include "r/glue.h"

#include <limits.h>
#include <stdlib.h>

#include "graph/expr.h"
#include "engine/plan/elementwise.h"

enum { DEEPEST = 48 }; /* building recurs */
enum { RECORD_OP, RECORD_A, RECORD_B, RECORD_FACTS, RECORD_SIZE };
/* Depth; rows and columns; how many deferred nodes have had this one as operand. Of a node that is
 * not deferred only the last counts; then they are in its protected field, or not there. */
enum { DEPTH, NROW, NCOL, USES, FACTS };

static SEXP op_symbol[SCL_OP_COUNT];

void r_deferred_init(void) {
  for (int i = 0; i < SCL_OP_COUNT; i++) op_symbol[i] = Rf_install(scl_ops[i].name);
}

/* NULL where there are none. */
static int *facts_of(SEXP node) {
  SEXP facts = R_ExternalPtrProtected(node);
  if (r_node_waits(node)) facts = VECTOR_ELT(facts, RECORD_FACTS);
  return TYPEOF(facts) == INTSXP && XLENGTH(facts) == FACTS ? INTEGER(facts) : NULL;
}

static int depth_of(SEXP node) {
  return r_node_waits(node) ? facts_of(node)[DEPTH] : 0;
}

void r_deferred_shape(SEXP node, size_t *m, size_t *n) {
  const int *facts = facts_of(node);
  *m = (size_t)facts[NROW];
  *n = (size_t)facts[NCOL];
}

SEXP r_deferred_leaf(SEXP node) {
  while (r_node_waits(node)) {
    SEXP record = R_ExternalPtrProtected(node), a = VECTOR_ELT(record, RECORD_A);
    node = r_is_node(a) ? a : VECTOR_ELT(record, RECORD_B);
  }
  return node;
}

int r_deferred_uses(SEXP node) {
  const int *facts = facts_of(node);
  return facts != NULL ? facts[USES] : 0;
}

/* ---- making --------------------------------------------------------------------------------- */

/* Rows and columns of an operation as scl_expr_apply() has them; false if the operands do not fit.
 * Either is a node, or a number or NULL. */
static bool find_shape(SEXP a, SEXP b, size_t *m, size_t *n) {
  size_t rows, columns;
  r_node_shape(r_is_node(a) ? a : b, m, n);
  if (!r_is_node(a) || !r_is_node(b)) return true;
  r_node_shape(b, &rows, &columns);
  if (rows != *m || (columns != *n && columns != 1 && *n != 1)) return false;
  if (*n == 1) *n = columns;
  return true;
}

bool r_deferred_fits(SEXP a, SEXP b) {
  size_t m, n;
  if (r_is_node(a) && depth_of(a) >= DEEPEST) return false;
  if (r_is_node(b) && depth_of(b) >= DEEPEST) return false;
  return find_shape(a, b, &m, &n);
}

/* Phase 1. */
static void count_use(SEXP x) {
  if (!r_is_node(x)) return;
  int *facts = facts_of(x);
  if (facts == NULL) {
    SEXP fresh = Rf_allocVector(INTSXP, FACTS);
    R_SetExternalPtrProtected(x, fresh);
    facts = INTEGER(fresh);
    for (int k = 0; k < FACTS; k++) facts[k] = 0;
  }
  if (facts[USES] < INT_MAX) facts[USES]++;
}

/* A count that came to its end stays there: it says at least how many uses there are. */
static void end_use(SEXP x) {
  int *facts = r_is_node(x) ? facts_of(x) : NULL;
  if (facts == NULL || facts[USES] == 0) return;
  if (facts[USES] < INT_MAX) facts[USES]--;
  if (facts[USES] == 0) r_node_unused(x);
}

SEXP r_deferred_new(scl_op op, SEXP a, SEXP b) {
  size_t m = 0, n = 0;
  find_shape(a, b, &m, &n); /* first: what is allocated may run finalisers of the user's */
  int depth = r_is_node(a) ? depth_of(a) : 0;
  if (r_is_node(b) && depth_of(b) > depth) depth = depth_of(b);
  SEXP record = PROTECT(Rf_allocVector(VECSXP, RECORD_SIZE));
  SEXP facts = Rf_allocVector(INTSXP, FACTS);
  SET_VECTOR_ELT(record, RECORD_FACTS, facts);
  INTEGER(facts)[DEPTH] = depth + 1;
  INTEGER(facts)[NROW] = (int)m;
  INTEGER(facts)[NCOL] = (int)n;
  INTEGER(facts)[USES] = 0;
  SET_VECTOR_ELT(record, RECORD_OP, op_symbol[op]);
  SET_VECTOR_ELT(record, RECORD_A, a);
  SET_VECTOR_ELT(record, RECORD_B, b);
  SEXP handle = PROTECT(r_handle_deferred(record));
  count_use(a);
  count_use(b);
  UNPROTECT(2);
  return handle;
}

/* ---- building ------------------------------------------------------------------------------- */
/* Nodes that got a matrix while a graph is being built, so that each is made once. */
typedef struct {
  SEXP *node;
  size_t count, room;
} built_list;

static scl_status remember(built_list *list, SEXP node) {
  if (list->count == list->room) {
    const size_t room = 2 * list->room + 16;
    SEXP *more = realloc(list->node, room * sizeof *more);
    if (more == NULL) return scl_fail_memory(room * sizeof *more, 0, "an expression");
    list->node = more;
    list->room = room;
  }
  list->node[list->count++] = node;
  return SCL_OK;
}

static scl_op find_op(SEXP symbol) {
  int i = 0;
  while (i < SCL_OP_COUNT - 1 && op_symbol[i] != symbol) i++;
  return (scl_op)i;
}

static scl_status build(built_list *list, SEXP node, const char *argument) {
  scl_mat *out;
  if (!r_node_waits(node)) return r_node_peek(node, argument, &out);
  SEXP record = R_ExternalPtrProtected(node);
  scl_term term[2] = {{NULL, 0.0}, {NULL, 0.0}};
  const int count = VECTOR_ELT(record, RECORD_B) == R_NilValue ? 1 : 2;
  for (int k = 0; k < count; k++) {
    SEXP x = VECTOR_ELT(record, RECORD_A + k);
    if (r_is_node(x)) {
      SCL_TRY(build(list, x, argument));
      term[k].matrix = r_node_matrix(x);
    } else {
      term[k].number = Rf_asReal(x);
    }
  }
  SCL_TRY(remember(list, node));
  scl_status status = scl_expr_apply(find_op(VECTOR_ELT(record, RECORD_OP)), count, term, &out);
  if (status == SCL_OK) {
    r_node_set(node, out);
  } else {
    list->count--;
  }
  return status;
}

static void end_record(SEXP record) {
  end_use(VECTOR_ELT(record, RECORD_A));
  end_use(VECTOR_ELT(record, RECORD_B));
}

/* The node has a matrix, and its finaliser: no longer deferred. */
static void settle(SEXP node) {
  SEXP record = R_ExternalPtrProtected(node); /* stays: nothing is allocated below */
  R_SetExternalPtrProtected(node, VECTOR_ELT(record, RECORD_FACTS));
  end_record(record);
}

void r_deferred_drop(SEXP node) {
  SEXP record = R_ExternalPtrProtected(node);
  R_ClearExternalPtr(node);
  R_SetExternalPtrProtected(node, R_NilValue);
  end_record(record);
}

static void register_nodes(void *data) {
  const built_list *list = data;
  for (size_t k = 0; k < list->count; k++) r_node_register(list->node[k]);
}

scl_status r_deferred_build(SEXP node, const char *argument, bool keep) {
  built_list list = {NULL, 0, 0};
  scl_status status = build(&list, node, argument);
  /* Those that stay: all, or the last, which is `node`. */
  built_list stay = list;
  if (!keep && list.count > 0) stay = (built_list){list.node + list.count - 1, 1, 1};
  /* R may be out of memory for a finaliser. */
  scl_hooks_begin();
  if (status == SCL_OK && !R_ToplevelExec(register_nodes, &stay)) {
    status = scl_fail_memory(0, 0, "an expression");
  }
  scl_hooks_end();
  const size_t leaving = status == SCL_OK ? list.count - stay.count : list.count;
  for (size_t k = 0; k < leaving; k++) {
    scl_mat_release(r_node_matrix(list.node[k]));
    r_node_defer(list.node[k]);
  }
  for (size_t k = leaving; k < list.count; k++) settle(list.node[k]);
  free(list.node);
  return status;
}
