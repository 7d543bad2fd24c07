/* Handles of objects that live in a context: likelihoods, Gaussian processes, kernels of the
 * user's. */
#ifndef R_POINTER_H
#define R_POINTER_H

#include "r/glue.h"

typedef struct {
  const char *tag;
  scl_context *(*context)(const void *object); /* borrowed */
  void (*release)(void *object);
} r_pointer_kind;

/* Phase 1: a handle without an object yet, which keeps `kept` alive. Protect it. */
SEXP r_pointer_new(const r_pointer_kind *kind, SEXP kept);
/* Phase 2: the handle releases `object` from now on. */
void r_pointer_set(SEXP handle, void *object);

bool r_is_pointer(const r_pointer_kind *kind, SEXP x);
/* Its object; NULL if it has none: it was read from a file, or its making failed. */
void *r_pointer_object(SEXP handle);
/* The object of a handle of this kind that can be used here and now; else NULL: it may come from a
 * file or from before a fork, its device may be lost, or a hook of the core may run. */
void *r_pointer_usable(const r_pointer_kind *kind, SEXP x);

#endif
