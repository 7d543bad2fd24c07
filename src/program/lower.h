/* From a tape to values that can be scheduled: dead values are removed, and every operand is stored
 * where its user can read it. Between the files of src/program. */
#ifndef SCL_PROGRAM_LOWER_H
#define SCL_PROGRAM_LOWER_H

#include "program/tape.h"

/* Values that fused kernels and calls can be made of:
 *   - operands of calls and of views have storage, as have those that a concat holds;
 *   - a concat's operands are computed values that no other concat holds;
 *   - the views that an elementwise value reads have one shape. */
typedef struct {
  scl_tape tape;
  int *holder;    /* of each value: the concat that holds it, or -1 */
  size_t *offset; /* then: where its elements begin */
  int result;     /* a concat of the outputs */
} scl_lowered;

/* The numbers of rows (at least), of columns and of vectors b (at most) with which products X b and
 * X' r of data may share a kernel; no columns: none do. With `fused` rows any X b of one vector is
 * computed in the kernel that uses it. `factors`: a factor of all terms is taken out of a sum,
 * where an operation on a single number costs little. */
typedef struct {
  size_t rows, columns, vectors, fused;
  bool factors;
} scl_pass_limits;

scl_status scl_lower(const scl_tape *t, int outputs, const int *output, scl_pass_limits pass,
                     scl_lowered *out);
void scl_lowered_end(scl_lowered *l);

/* A part without gaps: the same storage as its operand. */
static inline bool scl_is_alias(const scl_value *v) {
  return v->kind == SCL_VALUE_PART && v->at[4] == 1;
}
static inline scl_value_how scl_how(const scl_value *v) {
  return scl_row_of(v->kind)->how;
}
/* The value whose storage this one has. */
static inline int scl_root(const scl_tape *t, int value) {
  while (scl_is_alias(&t->value[value])) value = scl_tape_operand(t, value, 0);
  return value;
}

/* The rows that a view, or a reduction by rows or columns, needs its elements to have; 0: any
 * number. */
size_t scl_rows_needed(const scl_value *v);

#endif
