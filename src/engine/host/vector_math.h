/* Elementwise functions on runs of numbers, several at a time. */
#ifndef SCL_ENGINE_HOST_VECTOR_MATH_H
#define SCL_ENGINE_HOST_VECTOR_MATH_H

#include "engine/plan/elementwise.h"

/* y = f(x), n numbers; y may be x. A number's value does not depend on its index. */
typedef void scl_vector_function(size_t n, const double *x, double *y);

/* The function of an operation; NULL if there is none, or this processor has no such vectors. */
scl_vector_function *scl_vector_function_of(scl_op op);

#endif
