#include "stan/check.h"
#include "stan/parse.h"

#include <stdlib.h>

static scl_status check_program(scl_stan_program *program) {
  scl_stan_checker c = {.program = program};
  for (int k = 0; k < SCL_STAN_BLOCKS; k++) {
    scl_stan_node *list = program->block[k];
    c.block = (scl_stan_place)k;
    if (list == NULL) continue;
    if (k == SCL_STAN_FUNCTIONS) {
      SCL_TRY(scl_stan_check_functions(&c, list));
      continue;
    }
    scl_stan_symbol *mark = c.scope;
    for (uint32_t i = 0; i < list->count; i++)
      SCL_TRY(scl_stan_check_statement(&c, list->child[i]));
    if (k == SCL_STAN_MODEL) scl_stan_leave(&c, mark);
  }
  return SCL_OK;
}

scl_status scl_stan_read(const scl_stan_input *input, scl_stan_program **out) {
  scl_stan_program *program = calloc(1, sizeof *program);
  if (program == NULL) return scl_fail_memory(sizeof *program, 0, "a Stan program");
  scl_status status;
  SCL_GO(scl_stan_load(program, input));
  SCL_GO(scl_stan_add_keywords(program));
  SCL_GO(scl_stan_add_library(program));
  SCL_GO(scl_stan_parse(program));
  SCL_GO(check_program(program));
  *out = program;
  program = NULL;
done:
  scl_stan_free(program);
  return status;
}

scl_status scl_stan_refuse(const scl_stan_input *input, uint32_t position, const char *message) {
  scl_stan_program *program = calloc(1, sizeof *program);
  if (program == NULL) return scl_fail_memory(sizeof *program, 0, "a Stan program");
  scl_status status = scl_stan_load(program, input);
  if (status == SCL_OK) status = scl_stan_fail(program, position, "%s", message);
  scl_stan_free(program);
  return status;
}

void scl_stan_free(scl_stan_program *program) {
  if (program == NULL) return;
  scl_stan_arena_free(program);
  free(program->names);
  free(program->source);
  free(program->stretches);
  free(program->files);
  free(program->stack);
  free(program);
}

const scl_stan_node *scl_stan_block(const scl_stan_program *program, scl_stan_place block) {
  return program->block[block];
}

uint32_t scl_stan_type_count(const scl_stan_program *program) {
  return program->type_count;
}
