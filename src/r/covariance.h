/* Covariance functions as R hands them over; shared by r/covariance.c and r/gp.c. */
#ifndef R_COVARIANCE_H
#define R_COVARIANCE_H

#include "r/glue.h"
#include "ops/covariance.h"

/* Phase 1: reads a layout, list(type = names of the terms' functions, entries = how many columns
 * each looks at, columns = counted from 1, centers = of the columns, factors = the products, for
 * each the number of its factors and their terms counted from 1, or NULL), and values, c(sd of the
 * terms, lengthscales of the entries, extra parameters of the terms, noise). The arrays live until
 * the .Call returns. Faults are left to phase 2. */
scl_status r_covariance_read(SEXP layout, SEXP values, scl_covariance *out);

#endif
