/* Large results as R vectors in reused memory (base/result_pool.h): an ALTREP class, since only
 * such vectors can have memory of a package. To R code they are ordinary vectors; their copies, and
 * vectors read from a file, are ordinary vectors. The first data field holds an external pointer to
 * the block, whose finaliser returns the memory to the pool. */
#include "r/entries.h"
#include "r/glue.h"

#include <R_ext/Altrep.h>
#include <R_ext/Memory.h>
#include <R_ext/Rdynload.h>

#include "base/result_pool.h"
#include "base/sizes.h"
#include "engine/host/memory.h"

/* malloc() reuses memory of smaller ones. */
#define POOLED_FROM ((size_t)6 << 20)

static R_altrep_class_t pooled_class;
/* A collection takes some 40 ms; it pays from this amount of garbage on. */
#define WORTH_A_RUN ((size_t)1 << 30)

static size_t in_use, in_use_then; /* bytes of blocks that vectors have; after the last run */

/* A finaliser of the user may read a vector that is collected together with its block, whose
 * finaliser may have run before. */
static scl_result_block *block_of(SEXP x) {
  scl_result_block *block = R_ExternalPtrAddr(R_altrep_data1(x));
  if (block == NULL) r_throw_given_back();
  return block;
}

static R_xlen_t pooled_length(SEXP x) {
  return (R_xlen_t)(block_of(x)->bytes / sizeof(double));
}

static void *pooled_data(SEXP x, Rboolean writable) {
  (void)writable;
  return block_of(x)->memory;
}

static const void *pooled_data_or_null(SEXP x) {
  return block_of(x)->memory;
}

static double pooled_element(SEXP x, R_xlen_t i) {
  return ((const double *)block_of(x)->memory)[i];
}

static void finalize_block(SEXP pointer) {
  r_finalized();
  scl_result_block *block = R_ExternalPtrAddr(pointer);
  if (block == NULL) return;
  R_ClearExternalPtr(pointer);
  in_use -= block->size;
  if (in_use_then > in_use) in_use_then = in_use;
  scl_result_pool_return(block);
}

void r_pooled_init(DllInfo *dll) {
  pooled_class = R_make_altreal_class("pooled", "statcl", dll);
  R_set_altrep_Length_method(pooled_class, pooled_length);
  R_set_altvec_Dataptr_method(pooled_class, pooled_data);
  R_set_altvec_Dataptr_or_null_method(pooled_class, pooled_data_or_null);
  R_set_altreal_Elt_method(pooled_class, pooled_element);
}

SEXP r_result_pool_clear(void) {
  scl_result_pool_clear();
  scl_host_memory_clear();
  return R_NilValue;
}

/* R's collector does not see this memory. It is run before fresh memory is allocated if there may
 * be enough garbage: three such results and half of what was in use after the last run, but at most
 * a sixteenth of all memory. */
static void collect_before(size_t bytes) {
  size_t most = scl_memory_limit() / 16, garbage = in_use - in_use_then;
  size_t enough = scl_max(WORTH_A_RUN, scl_max(3 * bytes, in_use_then / 2));
  if (enough > most) enough = most;
  if (garbage == 0 || garbage + bytes <= enough || scl_result_pool_fits(bytes)) return;
  R_gc();
  in_use_then = in_use;
}

SEXP r_pooled_matrix(size_t m, size_t n) {
  size_t bytes = m * n * sizeof(double);
  if (bytes < POOLED_FROM || Rf_asLogical(Rf_GetOption1(Rf_install("statcl.recycle"))) == FALSE)
    return NULL;
  collect_before(bytes);
  SEXP dim = PROTECT(Rf_allocVector(INTSXP, 2));
  INTEGER(dim)[0] = (int)m;
  INTEGER(dim)[1] = (int)n;
  SEXP pointer = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, R_NilValue));
  r_finalizer(pointer, finalize_block);
  SEXP result = PROTECT(R_new_altrep(pooled_class, pointer, R_NilValue));
  scl_result_block *block = scl_result_pool_get(bytes);
  if (block != NULL) {
    in_use += block->size;
    R_SetExternalPtrAddr(pointer, block);
    Rf_setAttrib(result, R_DimSymbol, dim);
  }
  UNPROTECT(3);
  return block != NULL ? result : NULL;
}

/* Bytes that this process may use; 0 if unknown. */
SEXP r_memory_limit(void) {
  return Rf_ScalarReal((double)scl_memory_limit());
}
