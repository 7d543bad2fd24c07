/* Handles of objects that live in a context: likelihoods, Gaussian processes, kernels of users. */
#ifndef R_POINTER_H
#define R_POINTER_H

#include "r/glue.h"

typedef struct {
  const char *tag;
  scl_context *(*context)(const void *object); /* borrowed */
  void (*release)(void *object);
} r_pointer_kind;

/* A kind whose objects have the functions type##_context() and type##_release(). */
#define R_POINTER_KIND(name, tag, type)                                                            \
  static scl_context *name##_context(const void *x) {                                              \
    return type##_context(x);                                                                      \
  }                                                                                                \
  static void name##_release(void *x) {                                                            \
    type##_release(x);                                                                             \
  }                                                                                                \
  static const r_pointer_kind name = {tag, name##_context, name##_release};

/* Phase 1: a handle without an object yet, which keeps `kept` alive. Protect it. */
SEXP r_pointer_new(const r_pointer_kind *kind, SEXP kept);
/* Phase 2: the handle releases `object` from now on. */
void r_pointer_set(SEXP handle, void *object);

bool r_is_pointer(const r_pointer_kind *kind, SEXP x);
/* Its object; NULL if it has none: it was read from a file, or could not be made. */
void *r_pointer_object(SEXP handle);
/* The object of a handle of this kind, if it can be used now. NULL if the handle was read from a
 * file or made before a fork, its device is lost, or a hook of the core runs. */
void *r_pointer_usable(const r_pointer_kind *kind, SEXP x);

#endif
