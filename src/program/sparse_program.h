/* Programs for the sparse Hessian H(x) of a function by some of its parameters, and for the
 * gradient of sum(w * H(x)), which is what the derivative of log(det(H)) needs. */
#ifndef SCL_PROGRAM_SPARSE_PROGRAM_H
#define SCL_PROGRAM_SPARSE_PROGRAM_H

#include "program/sparse.h"

typedef struct scl_sparse_program scl_sparse_program;

/* The tape is taken over and left empty, also on failure; data that it borrows must stay valid
 * until this returns. *out is NULL if scl_tape_sparse_hessian() has none. SCL_E_ARGUMENT, naming
 * "f", SCL_E_MEMORY. */
scl_status scl_sparse_program_make(scl_context *ctx, scl_tape *t, int output, size_t parameters,
                                   const unsigned char *chosen, size_t most,
                                   scl_sparse_program **out);
void scl_sparse_program_release(scl_sparse_program *p); /* accepts NULL */

scl_context *scl_sparse_program_context(const scl_sparse_program *p);              /* borrowed */
const scl_sparse_pattern *scl_sparse_program_pattern(const scl_sparse_program *p); /* borrowed */
size_t scl_sparse_program_parameters(const scl_sparse_program *p);

/* The lower triangle of H at x, as its pattern has it. NaN if a matrix has no Cholesky factor.
 * Waits. */
scl_status scl_sparse_program_run(scl_sparse_program *p, const double *x, double *to);
/* The gradient of sum(w * H) at x by all parameters, for weights w of the lower triangle. */
scl_status scl_sparse_program_adjoint(scl_sparse_program *p, const double *x, const double *w,
                                      double *to);
/* The gradient at x by all parameters of the derivative by the chosen ones along a direction, which
 * is as long as all parameters: the Hessian times the direction, where that is 0 for the others. */
scl_status scl_sparse_program_along(scl_sparse_program *p, const double *x, const double *direction,
                                    double *to);

#endif
