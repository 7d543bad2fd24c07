/* Blocks of parameters that do not interact in a function. */
#ifndef SCL_PROGRAM_BLOCKS_H
#define SCL_PROGRAM_BLOCKS_H

#include "program/tape.h"

/* Writes f as a sum of functions of one block of the chosen parameters each (and of all others), as
 * far as the recorded values show: block[i] is the block of parameter i, from 0 on in the order of
 * their first parameters, or -1 if it is not chosen. Blocks may be larger than they need be, never
 * smaller. SCL_E_MEMORY. */
scl_status scl_tape_blocks(const scl_tape *t, int output, size_t parameters,
                           const unsigned char *chosen, int *block);

#endif
