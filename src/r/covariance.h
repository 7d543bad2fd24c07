/* Covariance functions as R hands them over; shared by r/covariance.c and r/gp.c. */
#ifndef R_COVARIANCE_H
#define R_COVARIANCE_H

#include "r/glue.h"
#include "ops/covariance.h"

/* Phase 1: reads a layout, list(type = names of the terms' functions, entries = number of columns
 * of each, columns = counted from 1, centers = of the columns, factors = for each product the
 * number of its factors and their terms counted from 1, or NULL), and values, c(sd of the terms,
 * lengthscales of the entries, extra parameters of the terms, noise). The arrays live until the
 * .Call returns. Errors are left to phase 2. */
scl_status r_covariance_read(SEXP layout, SEXP values, scl_covariance *out);
/* The same from `count` values in memory that lives as long. */
scl_status r_covariance_read_values(SEXP layout, const double *values, R_xlen_t count,
                                    scl_covariance *out);

#endif
