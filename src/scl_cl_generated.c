/* OpenCL text made from the tables elementwise.def and reduce.def, which the host engine expands as
 * C: one list of operations, two languages. */
#include "scl_cl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One case a row: "case N: return EXPRESSION;". */
typedef struct {
  int number;
  const char *expression;
} row;

static const row elementwise_rows[] = {
#define SCL_UNARY(NAME, name, expression, da) {SCL_OP_##NAME, #expression},
#define SCL_BINARY(NAME, name, expression, da, db) {SCL_OP_##NAME, #expression},
#define SCL_TERNARY(NAME, name, expression, da, db, dc)
#include "../inst/kernels/elementwise.def"
#undef SCL_TERNARY
#undef SCL_UNARY
#undef SCL_BINARY
};

static const row identity_rows[] = {
#define SCL_REDUCTION(NAME, name, arity, identity, map, combine) {SCL_REDUCE_##NAME, #identity},
#include "../inst/kernels/reduce.def"
#undef SCL_REDUCTION
};

static const row map_rows[] = {
#define SCL_REDUCTION(NAME, name, arity, identity, map, combine) {SCL_REDUCE_##NAME, #map},
#include "../inst/kernels/reduce.def"
#undef SCL_REDUCTION
};

static const row combine_rows[] = {
#define SCL_REDUCTION(NAME, name, arity, identity, map, combine) {SCL_REDUCE_##NAME, #combine},
#include "../inst/kernels/reduce.def"
#undef SCL_REDUCTION
};

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])
#define CASE_FRAME 32 /* bytes of a case besides its expression */

/* Writes "static inline double <head> { switch (op) { ... } return 0.0; }" at `to`, if not NULL;
 * gives the number of bytes it takes at most. */
static size_t write_switch(char *to, const char *head, const row *rows, size_t count) {
  size_t bytes = strlen(head) + 96;
  for (size_t i = 0; i < count; i++) bytes += strlen(rows[i].expression) + CASE_FRAME;
  if (to == NULL) return bytes;
  char *end = to + bytes;
  to += snprintf(to, (size_t)(end - to), "static inline double %s {\n  switch (op) {\n", head);
  for (size_t i = 0; i < count; i++) {
    to += snprintf(to, (size_t)(end - to), "  case %d: return %s;\n", rows[i].number,
                   rows[i].expression);
  }
  snprintf(to, (size_t)(end - to), "  }\n  return 0.0;\n}\n");
  return bytes;
}

typedef struct {
  const char *topic, *head;
  const row *rows;
  size_t count;
} generated_function;

static const generated_function functions[] = {
    {"elementwise", "elementwise_op(const int op, const double a, const double b)",
     elementwise_rows, COUNT(elementwise_rows)},
    {"reduce", "reduce_identity(const int op)", identity_rows, COUNT(identity_rows)},
    {"reduce", "reduce_map(const int op, const double a, const double b)", map_rows,
     COUNT(map_rows)},
    {"reduce", "reduce_combine(const int op, const double u, const double v)", combine_rows,
     COUNT(combine_rows)},
};

scl_status scl_cl_generated(const char *topic, char **out) {
  size_t bytes = 1;
  for (size_t i = 0; i < COUNT(functions); i++) {
    const generated_function *f = &functions[i];
    if (strcmp(f->topic, topic) == 0) bytes += write_switch(NULL, f->head, f->rows, f->count);
  }
  if (bytes == 1) return scl_fail(SCL_E_BUILD, "no text is generated for '%s'", topic);
  char *text = malloc(bytes);
  if (text == NULL) return scl_fail_memory(bytes, 0, "a kernel source");
  char *to = text;
  for (size_t i = 0; i < COUNT(functions); i++) {
    const generated_function *f = &functions[i];
    if (strcmp(f->topic, topic) != 0) continue;
    write_switch(to, f->head, f->rows, f->count);
    to += strlen(to);
  }
  *out = text;
  return SCL_OK;
}
