/* What is true of a value whatever the parameters are: by its operations, and by the numbers of its
 * data, on which a program then relies. */
#ifndef SCL_PROGRAM_FACTS_H
#define SCL_PROGRAM_FACTS_H

#include "program/tape.h"

/* Properties of data. */
enum { SCL_DATA_SYMMETRIC = 1 }; /* as a square matrix */

/* Whether numbers have all of these properties. */
bool scl_numbers_have(const double *numbers, size_t length, unsigned properties);

/* Whether the value is a symmetric n x n matrix. False if that is not found out. */
bool scl_tape_is_symmetric(scl_tape *t, int value, size_t n);

#endif
