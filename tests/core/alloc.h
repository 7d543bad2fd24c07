/* Makes chosen calls of malloc(), calloc() and realloc() by the core fail, if the linker can wrap
 * functions (tests/core/Makefile: SCL_TEST_ALLOC). */
#ifndef ALLOC_H
#define ALLOC_H

#include <stdbool.h>

/* Call number n from now on (1: the next) returns NULL; 0: none. */
void alloc_fail(long n);
/* Whether that call has failed. */
bool alloc_failed(void);

#endif
