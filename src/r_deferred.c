/* Deferred nodes: the operations of r_lazy.c as R objects.
 *
 * A node of the core needs a finaliser, which costs R as much as all the rest of an operator. Most
 * nodes are intermediate results that nobody asks for again. So an operator leaves its handle
 * empty, with a record of what it stands for as its note (r_serialize.c): memory that R's
 * collector frees by itself. Whoever takes the matrix of such a handle (r_handle_peek()) has the
 * graph of the core built first; then the handle is one like all others.
 *
 * A record is list(operation, first operand, second operand or NULL, depth, leaf, uses): the
 * operation's symbol; operands are handles or numbers; the leaf is a handle below that is not
 * deferred; uses counts the deferred nodes that have this one as operand. */
#include "r_glue.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "scl_expr.h"
#include "scl_expr_ops.h"

enum { DEEPEST = 48 }; /* building recurs */
enum { RECORD_OP, RECORD_A, RECORD_B, RECORD_DEPTH, RECORD_LEAF, RECORD_USES, RECORD_SIZE };

static SEXP op_symbol[SCL_OP_COUNT];
static SEXP depth_number[DEEPEST + 1];

void r_deferred_init(void) {
  for (int i = 0; i < SCL_OP_COUNT; i++) op_symbol[i] = Rf_install(scl_ops[i].name);
  for (int i = 0; i <= DEEPEST; i++) {
    depth_number[i] = Rf_ScalarInteger(i);
    R_PreserveObject(depth_number[i]);
    MARK_NOT_MUTABLE(depth_number[i]);
  }
}

/* The record of a deferred handle, else NULL. */
static SEXP record_of(SEXP handle) {
  if (R_ExternalPtrAddr(handle) != NULL) return NULL;
  SEXP record = r_handle_note(handle);
  return TYPEOF(record) == VECSXP && XLENGTH(record) == RECORD_SIZE ? record : NULL;
}

bool r_is_deferred(SEXP handle) {
  return record_of(handle) != NULL;
}

static int depth_of(SEXP x) {
  SEXP record = r_is_handle(x) ? record_of(x) : NULL;
  return record == NULL ? 0 : INTEGER_RO(VECTOR_ELT(record, RECORD_DEPTH))[0];
}

static SEXP leaf_of(SEXP x) {
  SEXP record = record_of(x);
  return record == NULL ? x : VECTOR_ELT(record, RECORD_LEAF);
}

bool r_deferred_fits(SEXP a, SEXP b) {
  return depth_of(a) < DEEPEST && depth_of(b) < DEEPEST;
}

/* The count of uses of a handle: in its record or, when it is not deferred, as its note. */
static SEXP uses_of(SEXP handle) {
  SEXP record = record_of(handle);
  return record != NULL ? VECTOR_ELT(record, RECORD_USES) : r_handle_note(handle);
}

int r_deferred_uses(SEXP handle) {
  SEXP uses = uses_of(handle);
  return TYPEOF(uses) == INTSXP && XLENGTH(uses) == 1 ? INTEGER(uses)[0] : 0;
}

/* Phase 1 when `change` is 1. */
static void count_use(SEXP x, int change) {
  if (!r_is_handle(x)) return;
  if (TYPEOF(uses_of(x)) != INTSXP) {
    if (change < 0) return;
    SEXP zero = Rf_ScalarInteger(0), record = record_of(x);
    if (record != NULL) {
      SET_VECTOR_ELT(record, RECORD_USES, zero);
    } else {
      r_handle_set_note(x, zero);
    }
  }
  int *uses = INTEGER(uses_of(x));
  if (change < 0 ? *uses > 0 : *uses < INT_MAX) *uses += change;
  if (*uses == 0) r_handle_unused(x);
}

SEXP r_deferred_new(scl_op op, SEXP a, SEXP b) {
  const int below = depth_of(a) > depth_of(b) ? depth_of(a) : depth_of(b);
  SEXP record = PROTECT(Rf_allocVector(VECSXP, RECORD_SIZE));
  SET_VECTOR_ELT(record, RECORD_OP, op_symbol[op]);
  SET_VECTOR_ELT(record, RECORD_A, a);
  SET_VECTOR_ELT(record, RECORD_B, b);
  SET_VECTOR_ELT(record, RECORD_DEPTH, depth_number[below + 1]);
  SET_VECTOR_ELT(record, RECORD_LEAF, leaf_of(r_is_handle(a) ? a : b));
  count_use(a, 1);
  count_use(b, 1);
  SEXP handle = r_handle_with(record);
  UNPROTECT(1);
  return handle;
}

scl_status r_deferred_context(SEXP handle, const char *argument, scl_context **out) {
  scl_mat *m;
  /* A leaf of a deferred node may have been freed since; a handle by itself may not. */
  SEXP leaf = leaf_of(handle);
  SCL_TRY(leaf == handle ? r_handle_peek(leaf, argument, &m)
                         : r_handle_peek_kept(leaf, argument, &m));
  *out = scl_mat_context(m);
  return SCL_OK;
}

/* ---- building ------------------------------------------------------------------------------- */
/* Handles that hold a matrix while a graph is being built, so that each is made once. */
typedef struct {
  SEXP *handle;
  size_t count, room;
} built_list;

static scl_status remember(built_list *list, SEXP handle) {
  if (list->count == list->room) {
    const size_t room = 2 * list->room + 16;
    SEXP *more = realloc(list->handle, room * sizeof *more);
    if (more == NULL) return scl_fail_memory(room * sizeof *more, 0, "an expression");
    list->handle = more;
    list->room = room;
  }
  list->handle[list->count++] = handle;
  return SCL_OK;
}

static scl_status find_op(SEXP symbol, scl_op *out) {
  for (int i = 0; i < SCL_OP_COUNT; i++) {
    if (op_symbol[i] == symbol) {
      *out = (scl_op)i;
      return SCL_OK;
    }
  }
  return scl_fail(SCL_E_STALE, "the clMatrix was restored from another version of the package");
}

static scl_status build(built_list *list, SEXP handle, const char *argument) {
  SEXP record = record_of(handle);
  scl_mat *out;
  if (record == NULL) return r_handle_peek_kept(handle, argument, &out);
  scl_op op;
  SCL_TRY(find_op(VECTOR_ELT(record, RECORD_OP), &op));
  scl_term term[2] = {{NULL, 0.0}, {NULL, 0.0}};
  const int count = VECTOR_ELT(record, RECORD_B) == R_NilValue ? 1 : 2;
  for (int k = 0; k < count; k++) {
    SEXP x = VECTOR_ELT(record, RECORD_A + k);
    if (r_is_handle(x)) {
      SCL_TRY(build(list, x, argument));
      term[k].matrix = R_ExternalPtrAddr(x);
    } else {
      term[k].number = Rf_asReal(x);
    }
  }
  SCL_TRY(remember(list, handle));
  scl_status status = scl_expr_apply(op, count, term, &out);
  if (status == SCL_OK) {
    R_SetExternalPtrAddr(handle, out);
  } else {
    list->count--;
  }
  return status;
}

/* The handle has a matrix, and its finaliser: no longer deferred. */
static void settle(SEXP handle) {
  SEXP record = r_handle_note(handle); /* stays: nothing is allocated below */
  r_handle_set_note(handle, VECTOR_ELT(record, RECORD_USES));
  count_use(VECTOR_ELT(record, RECORD_A), -1);
  count_use(VECTOR_ELT(record, RECORD_B), -1);
}

static void register_handles(void *data) {
  const built_list *list = data;
  for (size_t k = 0; k < list->count; k++) r_handle_register(list->handle[k]);
}

scl_status r_deferred_build(SEXP handle, const char *argument, bool keep) {
  built_list list = {NULL, 0, 0};
  scl_status status = build(&list, handle, argument);
  /* Those that stay: all, or the last, which is `handle`. */
  built_list stay = list;
  if (!keep && list.count > 0) stay = (built_list){list.handle + list.count - 1, 1, 1};
  /* R may be out of memory for a finaliser. */
  if (status == SCL_OK && !R_ToplevelExec(register_handles, &stay)) {
    status = scl_fail_memory(0, 0, "an expression");
  }
  const size_t leaving = status == SCL_OK ? list.count - stay.count : list.count;
  for (size_t k = 0; k < leaving; k++) {
    scl_mat_release(R_ExternalPtrAddr(list.handle[k]));
    R_SetExternalPtrAddr(list.handle[k], NULL);
  }
  for (size_t k = leaving; k < list.count; k++) settle(list.handle[k]);
  free(list.handle);
  return status;
}
