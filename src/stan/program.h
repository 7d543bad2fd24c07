/* A Stan program while it is read, and after: source, arena, names, types and the tree. */
#ifndef SCL_STAN_PROGRAM_H
#define SCL_STAN_PROGRAM_H

#include "stan/tree.h"

/* The source: its text, its name in messages ("" for none), and the folders where included files
 * are looked for. */
typedef struct {
  const char *text;
  size_t length;
  const char *file;
  const char *const *folders;
  size_t folder_count;
} scl_stan_input;

typedef struct scl_stan_program scl_stan_program;

/* Reads and checks a program. SCL_E_STAN, with the position, if it is wrong; SCL_E_MEMORY. */
scl_status scl_stan_read(const scl_stan_input *input, scl_stan_program **out);
void scl_stan_free(scl_stan_program *program); /* accepts NULL */

/* SCL_E_STAN with a message about a position of a program that was read. */
scl_status scl_stan_refuse(const scl_stan_input *input, uint32_t position, const char *message);

/* A block's statements, or function definitions: a node of kind LIST; NULL if it is absent. */
const scl_stan_node *scl_stan_block(const scl_stan_program *program, scl_stan_place block);
uint32_t scl_stan_type_count(const scl_stan_program *program);
/* The line of a position in its file, from 1. */
uint32_t scl_stan_line(const scl_stan_program *program, uint32_t position);

#endif
