/* Properties of a value for all parameters: they follow from its operations, and from the numbers
 * of its data, on which a program then relies. */
#ifndef SCL_PROGRAM_FACTS_H
#define SCL_PROGRAM_FACTS_H

#include "program/tape.h"

/* Properties of data: symmetric as a square matrix; all finite; none is 0; read when the program
 * was made, so that no other numbers have it. */
enum { SCL_DATA_SYMMETRIC = 1, SCL_DATA_FINITE = 2, SCL_DATA_NONZERO = 4, SCL_DATA_READ = 8 };

/* Whether numbers have all of these properties. */
bool scl_numbers_have(const double *numbers, size_t length, unsigned properties);

/* Whether the value is a symmetric n x n matrix. False if that is not found out. */
bool scl_tape_is_symmetric(scl_tape *t, int value, size_t n);

/* Whether the value has finite numbers for all parameters. False if that is not found out. */
bool scl_tape_is_finite(scl_tape *t, int value);

/* Where a derivative may be exactly 0. Choices, comparisons and elements without a share make
 * zeros; parameters and data may be zero themselves; products, sums and views pass zeros on. Zeros
 * to which a function only tends, such as exp(-800), are not among these. */
enum { SCL_ZERO_BY_CHOICE = 1, SCL_ZERO_BY_VALUE = 2 };
unsigned scl_tape_zeros(scl_tape *t, const scl_value *v, const int *operand);

#endif
