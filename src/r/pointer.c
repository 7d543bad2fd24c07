/* Handles of objects that live in a context (r/pointer.h). */
#include "r/pointer.h"

#include <stdlib.h>

/* The target of an external pointer. */
typedef struct {
  const r_pointer_kind *kind;
  void *object;
} box;

static void finalize(SEXP handle) {
  r_finalized();
  box *b = R_ExternalPtrAddr(handle);
  R_ClearExternalPtr(handle);
  if (b == NULL) return;
  /* A forked child must not touch the parent's device objects. */
  if (b->object != NULL && scl_context_check(b->kind->context(b->object)) != SCL_E_FORK)
    b->kind->release(b->object);
  free(b);
}

SEXP r_pointer_new(const r_pointer_kind *kind, SEXP kept) {
  SEXP handle = PROTECT(R_MakeExternalPtr(NULL, Rf_install(kind->tag), kept));
  r_finalizer(handle, finalize);
  box *b = calloc(1, sizeof *b);
  if (b == NULL) {
    scl_fail_memory(sizeof *b, 0, "a handle");
    r_throw();
  }
  b->kind = kind;
  R_SetExternalPtrAddr(handle, b);
  UNPROTECT(1);
  return handle;
}

void r_pointer_set(SEXP handle, void *object) {
  box *b = R_ExternalPtrAddr(handle);
  b->object = object;
}

bool r_is_pointer(const r_pointer_kind *kind, SEXP x) {
  return TYPEOF(x) == EXTPTRSXP && R_ExternalPtrTag(x) == Rf_install(kind->tag);
}

void *r_pointer_object(SEXP handle) {
  box *b = R_ExternalPtrAddr(handle);
  return b == NULL ? NULL : b->object;
}

void *r_pointer_usable(const r_pointer_kind *kind, SEXP x) {
  if (r_require_outside() != SCL_OK || !r_is_pointer(kind, x)) return NULL;
  void *object = r_pointer_object(x);
  return object != NULL && scl_context_check(kind->context(object)) == SCL_OK ? object : NULL;
}
