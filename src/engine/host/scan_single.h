/* Recursions on the host, step by step for one sequence. Between the files of src/engine/host. */
#ifndef SCL_ENGINE_HOST_SCAN_SINGLE_H
#define SCL_ENGINE_HOST_SCAN_SINGLE_H

#include "engine/plan/scan.h"

/* An operation, a pair or a copy (engine/host/code.h): the addresses of its numbers at the first
 * step. */
typedef struct {
  const double *arg[3];
  size_t step[3]; /* 0: one number for all steps */
  double *to;
  unsigned op;
  int operation; /* its number in the code; -1: a pair */
} scl_scan_single;

/* All operations of the first step, then all of the second, and so on. */
void scl_host_scan_single(const scl_scan_single *s, int count, size_t rows);

#endif
