/* A scheduled list of values with its memory: fused kernels and calls of the engine in their order.
 * Between the files of src/program. */
#ifndef SCL_PROGRAM_ROUTINE_H
#define SCL_PROGRAM_ROUTINE_H

#include "engine/plan/repeat.h"
#include "ops/sparse_known.h"
#include "program/schedule.h"

/* Data on the engine, each uploaded when it is first needed. Programs of one tape share them. */
typedef struct {
  scl_block numbers;        /* a column */
  scl_block starts, order;  /* of indices: for each of the elements that they stand for, where its
                               list begins in `order` */
  size_t elements;          /* how many these are */
  size_t most;              /* length of the longest list */
  bool is_index;            /* gathers read them */
  unsigned assumed;         /* properties on which a program relies (program/facts.h) */
  scl_sparse_known *sparse; /* of a pattern: shared by the calls that have it */
} scl_resident;

typedef struct {
  scl_context *ctx;
  const scl_tape *tape; /* whose data they are */
  scl_resident *of;
  int room;
} scl_residents;

void scl_residents_end(scl_residents *r);
/* The first `count` data of others, where they are resident. */
scl_status scl_residents_share(scl_residents *r, const scl_residents *others, int count);
/* Records the properties of the tape's data on which a program relies. */
scl_status scl_residents_assume(scl_residents *r);
/* SCL_E_ARGUMENT if new numbers for data `index` lack such a property. */
scl_status scl_residents_check(const scl_residents *r, int index, const double *numbers,
                               size_t length);
/* New numbers for data `index`, if they are resident. SCL_E_ARGUMENT if they are indices, or of
 * another length. */
scl_status scl_residents_set(scl_residents *r, int index, const double *numbers, size_t length);

/* Their memory, minus that shared with others; NULL: nothing is shared. */
uint64_t scl_residents_bytes(const scl_residents *r, const scl_residents *others);

/* One step: a plan, numbers, or a call. */
typedef struct {
  scl_plan *plan;
  scl_numbers *numbers;         /* both NULL: a call of this kind, on blocks */
  struct scl_ready_plan *ready; /* the engine's form of this step and those after it, */
  int covers;                   /* so many in all; or NULL */
  scl_scan_pass *scan;          /* of a SCAN */
  scl_sparse_known *sparse;     /* of a sparse matrix; borrowed from the residents, or the copy's */
  scl_value_kind kind;
  scl_call call;
  size_t most; /* elements of a group, of sums over groups */
  scl_block a, b, dst, more;
} scl_routine_step;

static inline bool scl_is_sparse(scl_value_kind kind) {
  return kind == SCL_VALUE_SPARSE_LOG_DET || kind == SCL_VALUE_SPARSE_INVERSE ||
         kind == SCL_VALUE_SPARSE_SOLVE || kind == SCL_VALUE_SPARSE_ROOT ||
         kind == SCL_VALUE_SPARSE_ROOT_ADJOINT;
}

typedef struct {
  scl_context *ctx;
  scl_routine_step *step;
  int steps, room;
  scl_buffer **held; /* released with the routine */
  int buffers, buffers_room;
  scl_block out; /* a column: the results, then for each Cholesky factor the order of the leading
                    minor that is not positive, or 0 */
  size_t results;
  int factors;
  size_t *vector; /* of each factor: 1 + the vector that it belongs to, or 0 for all */
  double *answer; /* room for all of it on the host */
  bool brief;     /* the last run took less than a millisecond */
  bool is_copy;   /* the code of scans is another routine's, but not sparse factors */
} scl_routine;

/* The steps that compute the values `output` of the tape, one after the other, from the parameter
 * vector in `input` (program/compile.c). */
scl_status scl_routine_make(scl_residents *data, const scl_tape *t, scl_block input, int outputs,
                            const int *output, scl_routine *out);
void scl_routine_end(scl_routine *r);

/* Room for one more step; and a buffer to release with the routine, which takes over the reference,
 * also on failure. */
scl_status scl_routine_add(scl_routine *r, scl_routine_step **out);
scl_status scl_routine_hold(scl_routine *r, scl_buffer *buffer);

uint64_t scl_routine_bytes(const scl_routine *r);

/* Prepares the engine's plans for repeated runs; called when all steps are there. */
scl_status scl_routine_ready(scl_routine *r);

/* The same steps over memory of their own, while the routine is there; `input` is replaced. Not
 * with recursions of several sequences, whose rounding depends on the number of threads. */
bool scl_routine_may_copy(const scl_routine *r);
scl_status scl_routine_copy(const scl_routine *from, const scl_buffer *input, scl_buffer *by,
                            scl_routine *out);

/* Runs it; waits. `to` gets the results, all NaN if a matrix had no Cholesky factor. */
scl_status scl_routine_run(scl_routine *r, double *to);
/* The same, without copies: ranges of the results, in their order, go where they are wanted, the
 * rest to r->answer. If a matrix had no Cholesky factor, `failed` is set and nothing else. */
typedef struct {
  size_t from, count;
  double *to;
} scl_routine_range;
scl_status scl_routine_run_ranges(scl_routine *r, size_t ranges, const scl_routine_range *range,
                                  bool *failed);
/* Of several vectors: the results are in r->answer; and whether a matrix of one vector had no
 * Cholesky factor. */
scl_status scl_routine_run_vectors(scl_routine *r);
bool scl_routine_has_failed(const scl_routine *r, size_t vector);

#endif
