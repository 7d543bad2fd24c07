/* Finalisers: which are still to run, and an owner of text. */
#include "r/entries.h"
#include "r/glue.h"

#include <stdlib.h>

static size_t finalizers; /* registered, and not run yet */

void r_finalizer(SEXP pointer, void (*finalize)(SEXP)) {
  R_RegisterCFinalizerEx(pointer, finalize, FALSE);
  finalizers++;
}

void r_finalized(void) {
  finalizers--;
}

/* Whether the code must stay when the package is unloaded. Where a thread still lists or opens
 * devices, a driver is beginning its own threads, and an unloaded library ended the process. */
SEXP r_in_use(void) {
  return Rf_ScalarLogical(finalizers > 0 || r_is_opening());
}

static void finalize_text(SEXP owner) {
  r_finalized();
  r_text_free(owner);
}

SEXP r_text_owner(char *text) {
  SEXP owner = PROTECT(R_MakeExternalPtr(text, R_NilValue, R_NilValue));
  r_finalizer(owner, finalize_text);
  UNPROTECT(1);
  return owner;
}

void r_text_free(SEXP owner) {
  free(R_ExternalPtrAddr(owner));
  R_ClearExternalPtr(owner);
}
