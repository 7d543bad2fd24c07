/* Recursions: a step made of operations on single numbers, and a run of it over many steps and
 * sequences. The input of the engines' scan(); program/scan_code.c makes it.
 *
 * Numbers come and go through ports. Their order is that of the roles, and of the ports within a
 * role. An input's numbers, for T steps and B sequences:
 *   STATE  length x B: before the first step
 *   X      T x length x B, or T x length if shared by all sequences
 *   FIXED  length x B, or length if shared: the same at all steps
 * and the result has, one after the other,
 *   STATE  length x B: after the last step
 *   SUM    length x B: sums over the steps
 *   OUT    T x length x B
 *   STATE  T x length x B if `keeps`: before each step. */
#ifndef SCL_ENGINE_PLAN_SCAN_H
#define SCL_ENGINE_PLAN_SCAN_H

#include "engine/plan/elementwise.h"

typedef enum {
  SCL_SCAN_STATE,
  SCL_SCAN_X,
  SCL_SCAN_FIXED,
  SCL_SCAN_SUM,
  SCL_SCAN_OUT,
  SCL_SCAN_ROLES
} scl_scan_role;

typedef struct {
  size_t length;
  bool shared; /* X and FIXED only */
} scl_scan_port;

enum { SCL_SCAN_PORTS = 160 };

typedef struct {
  scl_scan_port port[SCL_SCAN_PORTS];
  int ports[SCL_SCAN_ROLES]; /* how many of each role */
} scl_scan_shape;

/* The first port of a role; all inputs are before SCL_SCAN_SUM. */
int scl_scan_first(const scl_scan_shape *s, scl_scan_role role);
/* Numbers of a role at one step; and of all roles before it. */
size_t scl_scan_numbers(const scl_scan_shape *s, scl_scan_role role);
size_t scl_scan_offset(const scl_scan_shape *s, scl_scan_role role);
/* Length of the result; and where its ports of a role begin. `kept`: the states of each step. */
size_t scl_scan_length(const scl_scan_shape *s, size_t steps, size_t sequences, bool keeps);
size_t scl_scan_begin(const scl_scan_shape *s, size_t steps, size_t sequences, scl_scan_role role,
                      bool kept);

/* When an operation can be executed: once; for many steps at a time, before or after those on which
 * a new state depends; or step by step. */
typedef enum {
  SCL_SCAN_ONCE,
  SCL_SCAN_BEFORE,
  SCL_SCAN_WITHIN,
  SCL_SCAN_AFTER,
  SCL_SCAN_PHASES
} scl_scan_phase;

typedef struct {
  uint8_t op;    /* scl_op */
  uint8_t phase; /* scl_scan_phase */
  bool idle;     /* done in idle steps too; before the others of its phase */
  int arg[3];    /* registers */
} scl_scan_operation;

/* Registers: the numbers of all inputs, then constants, then results of operations. */
typedef struct {
  scl_scan_shape shape;
  int inputs, constants, operations, results;
  int guard;  /* a register: a step where it is 0 is idle; negative: none */
  int listed; /* registers in `result`: with a guard those of idle steps follow */
  double *constant;
  scl_scan_operation *operation; /* by phase, each after those that it needs */
  int *result;                   /* registers of the new state, of sums and of outs */
  uint64_t serial;               /* unique within a process */
  char *source;                  /* OpenCL C, made when a device first needs it */
} scl_scan_code;

/* Finds the phases of operations, which are in a valid order, and sorts them. */
scl_status scl_scan_order(scl_scan_code *code);
void scl_scan_code_free(scl_scan_code *code); /* accepts NULL */
/* The phase of a register. */
scl_scan_phase scl_scan_phase_of(const scl_scan_code *code, int reg);
/* The port and element of an input register. */
int scl_scan_port_of(const scl_scan_shape *s, int reg, size_t *element);
/* Whether a function of special_functions.h is called, incomplete_functions.h or
 * bessel_functions.h. */
bool scl_scan_calls(const scl_scan_code *code, const char *prefix);
/* OpenCL C of a kernel `scan` (engine/plan/source_scan.c): kept with the code. */
scl_status scl_scan_source(scl_scan_code *code);

typedef struct scl_scan_pass {
  scl_scan_code *code;
  size_t steps, sequences; /* at least 1 */
  bool reverse;            /* from the last step to the first */
  bool keeps;
  scl_block *input; /* of each port, a column */
  scl_block dst;    /* a column */
} scl_scan_pass;

#endif
