/* A layer between the device engine and the driver, put into the engine's table of functions. It
 * counts the driver's objects and makes chosen calls fail. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/context.h"

/* The number of the context's device in the list, for another context of it. */
size_t driver_index(const scl_context *ctx);

typedef struct {
  long contexts, queues, programs, kernels, buffers, maps, events; /* alive */
  long calls;   /* that may fail; queries of events do not */
  long dropped; /* queues released after commands that nobody has waited for */
} driver_counts;

void driver_install(void);
void driver_remove(void);
driver_counts driver_counted(void);
bool driver_is_clean(driver_counts before); /* as many objects as then */

/* Call number n from now on (1: the next) returns `code`; with `persistent` all later ones too. n =
 * 0: none. */
void driver_fail(long n, int code, bool persistent);

/* Programs made from now on have `to` for each `from` of their sources, as if a driver misread it;
 * NULL: as they are. Then the number of places. */
void driver_rewrite(const char *from, const char *to);
long driver_rewritten(void);

/* Each build of a program takes so much longer. */
void driver_build_slowly(unsigned us);

/* The nice values of the thread that built a program last, and of this one: 20 if it gets only what
 * others leave; 0 if not on Linux. */
int driver_build_nice(void);
int driver_context_nice(void); /* of the thread that made a context last */
int driver_own_nice(void);

/* All events seem to have commands in this state (CL_RUNNING, a negative code); 0: their true
 * state, which CL_COMPLETE also is. */
void driver_pretend(int state);

#endif
