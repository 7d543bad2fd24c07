/* A program's routines for several parameter vectors at once (program/map.h), over its data.
 * Between the files of src/program. */
#ifndef SCL_PROGRAM_MAPPED_H
#define SCL_PROGRAM_MAPPED_H

#include "program/routine.h"

typedef struct scl_mapped scl_mapped;

/* For the value `output` of the tape, which is only read, and `vectors` > 1 vectors. The first
 * `given` data of the tape are those of `data`. */
scl_status scl_mapped_make(const scl_residents *data, int given, const scl_tape *t, int output,
                           size_t parameters, size_t vectors, scl_mapped **out);
void scl_mapped_release(scl_mapped *m);

size_t scl_mapped_vectors(const scl_mapped *m);
/* False if a value has no rule: nothing can be run. */
bool scl_mapped_is_compiled(const scl_mapped *m);
uint64_t scl_mapped_bytes(const scl_mapped *m, const scl_residents *data); /* of its own */

/* For each column of x, the value, and with `gradient` the derivatives behind it; NaN where a
 * matrix of that column has no Cholesky factor. Waits. */
scl_status scl_mapped_run(scl_mapped *m, const double *x, bool gradient, double *to);

/* As scl_residents_check(). */
scl_status scl_mapped_check_data(const scl_mapped *m, int index, const double *numbers,
                                 size_t length);
/* New numbers for its own copy of data, if it has one. */
scl_status scl_mapped_set_data(scl_mapped *m, const scl_residents *data, int index,
                               const double *numbers, size_t length);

#endif
