/* Making a routine. Between the files of src/program that do. */
#ifndef SCL_PROGRAM_COMPILE_H
#define SCL_PROGRAM_COMPILE_H

#include "program/routine.h"

/* Where a value's elements are, one after the other. */
typedef struct {
  scl_buffer *buffer;
  size_t offset;
} scl_location;

enum { SCL_FREE_LISTS = 256 }; /* by length, of which there may be many free blocks */

typedef struct {
  scl_residents *data;
  scl_lowered lowered;
  scl_schedule schedule;
  scl_block input;
  scl_location *at;           /* of each value that has storage of its own, once it is made */
  int *last_use;              /* the last group that reads it, or one after the last group */
  int *reader, *first_reader; /* values that read it: from first_reader[v] on */
  int *step;                  /* of each value in the plan at hand, or -1 */
  int *list_of;               /* of each value: the list of values that is planned together */
  int *uses;                  /* of each value of numbers.c: how often it is still read */
  int lists;
  scl_routine *routine;
  struct scl_free_block *free_list[SCL_FREE_LISTS]; /* storage that later values may take */
  scl_location shared; /* of short values, next to each other: where the next one begins */
  size_t shared_left;
} scl_compiling;

/* ---- program/residents.c -------------------------------------------------------------------- */
scl_status scl_resident_numbers(scl_residents *r, int data, scl_block *out);
scl_status scl_resident_groups(scl_residents *r, int data, size_t elements, scl_block *starts,
                               scl_block *order, size_t *most);
scl_status scl_resident_sparse(scl_residents *r, int data, size_t n, size_t count,
                               scl_sparse_known **out);

/* ---- program/storage.c ---------------------------------------------------------------------- */
scl_status scl_storage_begin(scl_compiling *c);
void scl_storage_end(scl_compiling *c);
/* Storage for a value that is about to be computed. */
scl_status scl_storage_make(scl_compiling *c, int value);
/* After group g: storage that no later group reads may be reused. */
scl_status scl_storage_release(scl_compiling *c, int group);
/* The location of a stored value, data and parts included. */
scl_status scl_storage_find(scl_compiling *c, int value, scl_location *out);
/* The same as a column-major matrix. */
scl_status scl_storage_block(scl_compiling *c, int value, size_t m, size_t n, scl_block *out);

/* ---- program/call.c ------------------------------------------------------------------------- */
/* A step for a value that is a call, or for products X b and X' r that share no kernel. */
scl_status scl_add_call(scl_compiling *c, int v);

/* ---- program/numbers.c ---------------------------------------------------------------------- */
/* Whether a group is one of single numbers, without a kernel; and the step for it. */
bool scl_is_number_group(const scl_compiling *c, const scl_group *g);
scl_status scl_number_group(scl_compiling *c, const scl_group *g);

/* ---- program/fuse.c ------------------------------------------------------------------------- */
/* Steps for a group that kernels compute: one plan, or several where it passes a plan's limits. */
scl_status scl_fuse_group(scl_compiling *c, const scl_group *g);

#endif
