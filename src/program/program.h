/* Programs: a function of a parameter vector that returns one number, recorded once and run
 * repeatedly on an engine, alone or with its gradient. */
#ifndef SCL_PROGRAM_PROGRAM_H
#define SCL_PROGRAM_PROGRAM_H

#include "program/tape.h"

typedef struct scl_program scl_program;

/* For the value `output` (of length 1) of the tape, which the program takes over and leaves empty,
 * also on failure. Data that the tape borrows must stay valid until this returns; they are then on
 * the engine. SCL_E_ARGUMENT (naming "f") if the gradient is not available, SCL_E_MEMORY. */
scl_status scl_program_make(scl_context *ctx, scl_tape *t, int output, size_t parameters,
                            scl_program **out);
/* The same for second derivatives only: scl_program_product() and scl_program_hessian(). Of order 3
 * the product is the gradient of (direction) (Hessian) (direction). */
scl_status scl_program_make_second(scl_context *ctx, scl_tape *t, int output, size_t parameters,
                                   int order, scl_program **out);
void scl_program_release(scl_program *p); /* accepts NULL */

scl_context *scl_program_context(const scl_program *p); /* borrowed */

/* The value at x, which has as many numbers as there are parameters; with `gradient` followed by
 * the derivatives. NaN if a matrix has no Cholesky factor. Waits. */
scl_status scl_program_run(scl_program *p, const double *x, bool gradient, double *to);

/* The same with a gradient, at parameters in several places, one after the other: of each its
 * numbers, and room for its derivatives, which may be where the numbers are. Long ones are not
 * copied on the host. */
typedef struct {
  const double *x;
  double *slope;
  size_t length;
} scl_program_part;
scl_status scl_program_run_parts(scl_program *p, size_t count, const scl_program_part *part,
                                 double *value);

/* A copy of a program's memory, over the same data: concurrent threads have one each. Valid as long
 * as the program. */
typedef struct scl_evaluator scl_evaluator;
/* NULL if the engine does not wait for its work, or if results could depend on the number of
 * threads. SCL_E_MEMORY. */
scl_status scl_evaluator_make(scl_program *p, scl_evaluator **out);
void scl_evaluator_release(scl_evaluator *e); /* accepts NULL */
/* scl_program_run() with the gradient. */
scl_status scl_evaluator_run(scl_evaluator *e, const double *x, double *to);

/* The Hessian at x times a direction; both, and the result, have as many numbers as there are
 * parameters. Waits. */
scl_status scl_program_product(scl_program *p, const double *x, const double *direction,
                               double *to);
/* The Hessian at x, column-major, a product for each column. */
scl_status scl_program_hessian(scl_program *p, const double *x, double *to);

/* The same for several vectors, the columns of x: column k of `to` is the result of
 * scl_program_run() for it, up to the order of sums. In one run if the program was mapped to this
 * number of vectors, else one after another. Waits. */
scl_status scl_program_run_vectors(scl_program *p, const double *x, size_t vectors, bool gradient,
                                   double *to);
/* Maps it to this number of vectors. The tape has the values, data and output from which the
 * program was made, and is taken over in the same way. At most SCL_PROGRAM_MAPPED mapped programs
 * are kept. Does nothing if a kind of value has no rule (program/map.c). */
enum { SCL_PROGRAM_MAPPED = 4 };
scl_status scl_program_map(scl_program *p, scl_tape *t, int output, size_t vectors);
/* Whether scl_program_map() has nothing to do. */
bool scl_program_is_mapped(const scl_program *p, size_t vectors);

typedef struct {
  size_t parameters;
  int values;                  /* of the function */
  int gradient_values;         /* of its gradient, in addition */
  double operations, elements; /* elementwise operations of the function; numbers in its values */
  double rounds, steps;        /* of its scans: in all sequences, and one after the other */
  int kernels, calls;          /* of value and gradient */
  uint64_t bytes;              /* on the engine */
} scl_program_facts;
scl_program_facts scl_program_about(const scl_program *p);

/* New numbers for data `index`, as many as before. SCL_E_ARGUMENT if they are used as indices, or
 * lack a property on which the program relies (program/facts.h). */
scl_status scl_program_set_data(scl_program *p, int index, const double *numbers, size_t length);

#endif
