/* Trials of programs with matrix instructions, one for each row of trials.def: shared functions,
 * and the trials' files. A trial launches the program's kernels on small matrices of this context
 * and compares with the host's results; `right` is untouched on failure. Matrices are small because
 * an emulation runs the trials too: somewhat more than a tile in each direction, and more steps
 * along a sum than a ring holds. */
#ifndef SCL_ENGINE_CL_RUNTIME_TRIAL_H
#define SCL_ENGINE_CL_RUNTIME_TRIAL_H

#include "engine/cl/runtime/cl.h"

typedef scl_status scl_cl_trial_function(scl_cl_context *cl, scl_cl_program which, bool *right);

scl_cl_trial_function scl_cl_trial_gemm, scl_cl_trial_gemm_pair; /* linalg/gemm_trial.c */
scl_cl_trial_function scl_cl_trial_integers;                     /* linalg/integers_trial.c */
scl_cl_trial_function scl_cl_trial_gram;                         /* linalg/gram_trial.c */
scl_cl_trial_function scl_cl_trial_cholesky;                     /* linalg/cholesky_trial.c */
scl_cl_trial_function scl_cl_trial_triangular;                   /* linalg/triangular_trial.c */
scl_cl_trial_function scl_cl_trial_batch_matmul, scl_cl_trial_batch_solve; /* batch/trial.c */
scl_cl_trial_function scl_cl_trial_glm;                                    /* glm/trial.c */

/* Whole numbers of at most two digits, of either sign, without a pattern that a wrong index would
 * preserve.
 */
double scl_cl_trial_number(size_t i, size_t j);

/* A new block with these numbers, m to a column. Release out->buffer, on failure too. */
scl_status scl_cl_trial_upload(scl_cl_context *cl, const double *data, size_t m, size_t n,
                               scl_block *out);

/* The numbers of a block, `ld` apart from column to column. */
scl_status scl_cl_trial_download(scl_cl_context *cl, scl_block block, double *data, size_t ld);

/* Whether each x differs from y by at most tolerance (1 + |y|). */
bool scl_cl_trial_is_near(const double *x, const double *y, size_t count, double tolerance);

#endif
