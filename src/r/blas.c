/* R's BLAS and LAPACK for the host engine. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#ifndef _WIN32
#include <dlfcn.h>
#endif
#define USE_FC_LEN_T
#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <Rconfig.h>
#include <R_ext/BLAS.h>
#include <R_ext/Lapack.h>
#ifndef FCONE
#define FCONE
#endif

#include "r/glue.h"
#include "engine/host/fortran.h"
#include "ops/sparse.h"

void r_blas_set(void) {
  scl_host_set_blas(&fortran_blas);
  scl_sparse_set_blas(&(scl_sparse_blas){gemm, syrk, trsm, potrf, lauum, trtri});
  scl_context_set_complete(scl_context_host());
}

/* A function of the BLAS in use that takes or gives a number of threads, if it is OpenBLAS. */
static void *openblas(const char *name) {
#ifdef _WIN32
  (void)name;
  return NULL;
#else
  return dlsym(RTLD_DEFAULT, name);
#endif
}

int r_blas_threads(void) {
  int (*get)(void);
  *(void **)&get = openblas("openblas_get_num_threads");
  return get == NULL ? 0 : get();
}

void r_blas_set_threads(int threads) {
  void (*set)(int);
  *(void **)&set = openblas("openblas_set_num_threads");
  if (set != NULL) set(threads);
}
