/* The data of Gaussian processes as R hands them over; shared by r/gp.c and r/vecchia.c. */
#ifndef R_GP_H
#define R_GP_H

#include "r/glue.h"
#include "ops/gp.h"

/* y, x: matrices; basis, spread: matrices or NULL. */
scl_status r_gp_read_data(SEXP y, SEXP x, SEXP basis, SEXP spread, scl_gp_data *out);

#endif
