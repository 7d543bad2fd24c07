/* The data of Gaussian processes as R hands them over; shared by r/gp.c and r/vecchia.c. */
#ifndef R_GP_H
#define R_GP_H

#include "r/glue.h"
#include "ops/gp.h"

static inline scl_gp_trend r_gp_trend(SEXP integrate) {
  return Rf_asLogical(integrate) == TRUE ? SCL_GP_INTEGRATE : SCL_GP_PROFILE;
}
/* SCL_E_ARGUMENT unless x is a double matrix with p columns, or the basis one of q columns with as
 * many rows (m); a basis of no columns may be anything. */
scl_status r_gp_points(SEXP x, size_t p);
scl_status r_gp_basis(SEXP basis, size_t m, size_t q);

/* y, x: matrices; basis, spread: matrices or NULL. */
scl_status r_gp_read_data(SEXP y, SEXP x, SEXP basis, SEXP spread, scl_gp_data *out);

#endif
