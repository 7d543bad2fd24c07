/* The results of reductions, element by element. */
#ifndef EXPR_REFERENCE_H
#define EXPR_REFERENCE_H

#include "graph/graph.h"

/* The reduction of an array of rows x columns over a margin, *m x *n; free it. */
double *expr_reduced(scl_reduction op, const double *x, size_t rows, size_t columns,
                     scl_margin margin, size_t *m, size_t *n);

#endif
