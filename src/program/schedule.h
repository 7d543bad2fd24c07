/* Which values are computed together, and in which order. Between the files of src/program. */
#ifndef SCL_PROGRAM_SCHEDULE_H
#define SCL_PROGRAM_SCHEDULE_H

#include "program/lower.h"

/* A call of the engine, or values over the same elements that one kernel computes. */
typedef struct {
  int first, count; /* in the schedule's list of values */
  int stage;        /* everything that it reads was computed in earlier ones */
  size_t elements;  /* 0: a call */
  size_t rows;      /* of the elements, or 0 where their shape does not matter */
  scl_margin margin;
} scl_group;

typedef struct {
  int *value;
  scl_group *group; /* by stage */
  int groups;
  int *group_of; /* of each value, or -1 */
} scl_schedule;

scl_status scl_schedule_make(const scl_lowered *l, scl_schedule *out);
void scl_schedule_end(scl_schedule *s);

#endif
