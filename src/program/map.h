/* Programs for several parameter vectors: the values that a tape computes for one vector become, on
 * another tape, values for `vectors` of them side by side. Between the files of src/program. */
#ifndef SCL_PROGRAM_MAP_H
#define SCL_PROGRAM_MAP_H

#include "program/tape.h"

/* Blocks of parameters, such that no recorded part of the parameter vector extends over two of
 * them: block b has the parameters start[b] to start[b + 1] - 1. On the engine a block of s
 * parameters is an s x vectors matrix at start[b] * vectors, which can be read without gaps. */
typedef struct {
  size_t *start;
  size_t count;
} scl_parameter_blocks;

void scl_parameter_blocks_end(scl_parameter_blocks *b);

/* Whether all values of the tape have a rule. */
bool scl_tape_can_map(const scl_tape *t);

/* Fills the empty tape `to`, which borrows the data of `from`; *result is a value there with a
 * number for each vector: `output`, of length 1. */
scl_status scl_tape_map(const scl_tape *from, int output, size_t parameters, size_t vectors,
                        scl_tape *to, scl_parameter_blocks *blocks, int *result);

#endif
