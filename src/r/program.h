/* Handles of compiled functions (r/program.c). */
#ifndef R_PROGRAM_H
#define R_PROGRAM_H

#include "r/glue.h"

#include "program/program.h"

/* The program of a handle, borrowed. SCL_E_ARGUMENT (no such handle), SCL_E_STALE, SCL_E_FORK. */
scl_status r_program_get(SEXP x, scl_program **out);

/* Records nodes (r/program.c) on an empty tape, which the caller ends. rolled: with loops rolled
 * if the nodes ask for it. */
scl_status r_program_fill(SEXP nodes, SEXP data, int output, bool rolled, scl_tape *tape,
                          int *result);

/* r/sparse.c: the factor of a handle, borrowed; NULL: there is none. */
const struct scl_sparse_factor *r_sparse_factor_of(SEXP handle);

/* r/glm.c: the likelihood of a handle; NULL if it has to be created again. */
struct scl_glm *r_glm_usable(SEXP handle);
/* How many numbers it takes; 0 if there is none. */
size_t r_program_parameters(SEXP program);

#endif
