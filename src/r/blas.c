/* R's BLAS and LAPACK for the host engine. */
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
