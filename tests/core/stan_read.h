/* Programs for the tests of the reader of Stan programs. */
#ifndef STAN_READ_H
#define STAN_READ_H

#include <stdbool.h>

#include "stan/program.h"

/* Reads text, which may include files of stan/include/. */
scl_status stan_read(const char *text, size_t length, scl_stan_program **out);

/* The programs in stan/, NULL after the last; their text, ended by a zero byte, to be freed. */
extern const char *const stan_programs[];
char *stan_text(const char *path, size_t *length);

/* The last statement of a block of a program that is read. */
const scl_stan_node *stan_last(const scl_stan_program *program, scl_stan_place block);

#endif
