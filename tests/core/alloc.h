/* Chosen calls of malloc(), calloc() and realloc() by the core that fail, where the linker can put
 * functions between (tests/core/Makefile: SCL_TEST_ALLOC). */
#ifndef ALLOC_H
#define ALLOC_H

#include <stdbool.h>

/* Call number n from now on (1: the next) returns NULL; 0: none. */
void alloc_fail(long n);
/* Whether it has. */
bool alloc_failed(void);

#endif
