/* Nodes: the matrices behind handles, and elementwise operations that are not recorded in the core
 * yet (r/node.c). */
#ifndef R_NODE_H
#define R_NODE_H

#include "ops/table.h"
#include "r/glue.h"

void r_node_init(void);
bool r_is_node(SEXP x);
/* Phase 1: a node without a matrix yet. Protect it. */
SEXP r_node_new(void);
void r_node_set(SEXP node, scl_mat *m); /* the node owns m */
scl_mat *r_node_matrix(SEXP node);      /* NULL if the node is deferred or freed */
/* The matrix of a node, borrowed. A deferred one is recorded in the core first, which may compute a
 * part of its graph. With `keep` the deferred nodes below keep their matrices, so that each is
 * computed once; without, for what is computed at once, they stay deferred. SCL_E_STALE if the
 * matrix, or one below it, was freed; SCL_E_FORK. */
scl_status r_node_peek(SEXP node, const char *argument, bool keep, scl_mat **out);
/* The same, computed. */
scl_status r_node_get(SEXP node, const char *argument, scl_mat **out);
/* Nothing is recorded by the next two; the node must have passed r_node_context() for the second.
 */
scl_status r_node_context(SEXP node, const char *argument, scl_context **out);
scl_shape r_node_shape(SEXP node);
/* SCL_E_STALE: the matrix was freed, or is not in the file that it was read from. */
scl_status r_fail_stale(const char *argument);
/* The user has freed the handle: the matrix is freed when no deferred node needs it any more. */
void r_node_free(SEXP node);

/* ---- deferred operations: `a` and `b` are nodes or numbers, `b` is R_NilValue if there is one
 * ---- */
/* The rule of the operation (ops/call.h). */
scl_status r_node_rule(scl_op op, SEXP a, SEXP b, scl_shape *out);
/* Whether another operation may be deferred on x. If not, r_node_peek() makes it so. */
bool r_node_is_deep(SEXP x);
/* Phase 1: a node that stands for op(a) or op(a, b), whose shape the rule gave. Protect it. */
SEXP r_node_defer(scl_op op, SEXP a, SEXP b, scl_shape shape);

#endif
