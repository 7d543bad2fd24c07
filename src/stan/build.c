#include "stan/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static uint32_t hash_bytes(const void *bytes, size_t length, uint32_t hash) {
  const unsigned char *p = bytes;
  for (size_t i = 0; i < length; i++) hash = (hash ^ p[i]) * 16777619u;
  return hash;
}

/* Twice as many places for names. */
static scl_status more_names(scl_stan_program *program) {
  const uint32_t places = program->name_places == 0 ? SCL_STAN_HASHES : 2 * program->name_places;
  scl_stan_name **names = calloc(places, sizeof *names);
  if (names == NULL) return scl_fail_memory(places * sizeof *names, 0, "a Stan program");
  for (uint32_t k = 0; k < program->name_places; k++) {
    scl_stan_name *name = program->names[k], *next;
    for (; name != NULL; name = next) {
      next = name->next;
      name->next = names[name->hash % places];
      names[name->hash % places] = name;
    }
  }
  free(program->names);
  program->names = names;
  program->name_places = places;
  return SCL_OK;
}

scl_status scl_stan_intern(scl_stan_program *program, const char *text, size_t length,
                           scl_stan_name **out) {
  const uint32_t hash = hash_bytes(text, length, 2166136261u);
  if (program->name_count >= program->name_places) SCL_TRY(more_names(program));
  scl_stan_name **place = &program->names[hash % program->name_places];
  for (scl_stan_name *name = *place; name != NULL; name = name->next) {
    if (name->hash == hash && name->length == length && memcmp(name->text, text, length) == 0) {
      *out = name;
      return SCL_OK;
    }
  }
  scl_stan_name *name;
  SCL_TRY(scl_stan_alloc(program, sizeof *name + length + 1, &name));
  memcpy(name->text, text, length);
  name->hash = hash;
  name->length = (uint32_t)length;
  name->next = *place;
  *place = name;
  program->name_count++;
  *out = name;
  return SCL_OK;
}

scl_status scl_stan_type_with(scl_stan_program *program, scl_stan_base base, unsigned depth,
                              const scl_stan_type *const *parts, unsigned count,
                              const scl_stan_type **out) {
  uint32_t hash = hash_bytes((uint32_t[]){base, depth}, 2 * sizeof(uint32_t), 2166136261u);
  for (unsigned k = 0; k < count; k++) hash = hash_bytes(&parts[k]->id, sizeof(uint32_t), hash);
  const scl_stan_type **place = &program->types[hash % SCL_STAN_HASHES];
  const size_t bytes = count * sizeof *parts;
  for (const scl_stan_type *type = *place; type != NULL; type = type->next) {
    if (type->base == base && type->depth == depth && type->parts == count &&
        (count == 0 || memcmp(type->part, parts, bytes) == 0)) {
      *out = type;
      return SCL_OK;
    }
  }
  scl_stan_type *type;
  SCL_TRY(scl_stan_alloc(program, sizeof *type + bytes, &type));
  type->next = *place;
  type->base = (uint8_t)base;
  type->depth = (uint8_t)depth;
  type->parts = (uint16_t)count;
  type->id = program->type_count++;
  if (count > 0) memcpy(type->part, parts, bytes);
  *place = type;
  *out = type;
  return SCL_OK;
}

scl_status scl_stan_type_of(scl_stan_program *program, scl_stan_base base, unsigned depth,
                            const scl_stan_type **out) {
  return scl_stan_type_with(program, base, depth, NULL, 0, out);
}

scl_status scl_stan_type_at(scl_stan_program *program, const scl_stan_type *type, unsigned depth,
                            const scl_stan_type **out) {
  return scl_stan_type_with(program, type->base, depth, type->part, type->parts, out);
}

/* Appends to a text of *used bytes, of which there may be `size`. */
static void append(char *text, size_t size, size_t *used, const char *more) {
  const size_t room = size - 1 - *used, length = strlen(more);
  const size_t take = length < room ? length : room;
  memcpy(text + *used, more, take);
  *used += take;
  text[*used] = '\0';
}

static void write_type(const scl_stan_type *type, char *text, size_t size, size_t *used) {
  if (*used + 1 >= size) return;
  if (type->depth > 0) {
    append(text, size, used, "array[");
    for (unsigned k = 1; k < type->depth; k++) append(text, size, used, ",");
    append(text, size, used, "] ");
  }
  append(text, size, used, scl_stan_base_names[type->base]);
  if (type->base != SCL_STAN_TUPLE) return;
  append(text, size, used, "(");
  for (unsigned k = 0; k < type->parts && *used + 1 < size; k++) {
    if (k > 0) append(text, size, used, ", ");
    write_type(type->part[k], text, size, used);
  }
  append(text, size, used, ")");
}

const char *scl_stan_type_text(const scl_stan_type *type, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  write_type(type, text, size, &used);
  return text;
}

scl_status scl_stan_push(scl_stan_program *program, scl_stan_node *child) {
  SCL_TRY(scl_grow(&program->stack, &program->stack_capacity, (size_t)program->stack_count + 1,
                   sizeof *program->stack, "a Stan program"));
  program->stack[program->stack_count++] = child;
  return SCL_OK;
}

static void set_depth(scl_stan_node *node) {
  const scl_stan_node *chained = scl_stan_chained(node);
  for (uint32_t k = 0; k < node->count; k++) {
    const scl_stan_node *child = node->child[k];
    if (child == NULL) continue;
    const uint32_t depth = child->depth + (child != chained);
    if (depth > node->depth) node->depth = depth;
  }
  if (node->depth == 0) node->depth = 1;
}

scl_status scl_stan_make(scl_stan_program *program, scl_stan_kind kind, uint32_t position,
                         uint32_t mark, scl_stan_node **out) {
  const uint32_t count = program->stack_count - mark;
  scl_stan_node *const *children = program->stack + mark;
  scl_stan_node *node;
  SCL_TRY(scl_stan_alloc(program, sizeof *node + count * sizeof *children, &node));
  node->kind = (uint8_t)kind;
  node->position = position;
  node->count = count;
  for (uint32_t k = 0; k < count; k++) node->child[k] = children[k];
  program->stack_count = mark;
  set_depth(node);
  if (node->depth > SCL_STAN_DEPTH) {
    return scl_stan_fail(program, position,
                         "this is nested more than %d deep: give parts of it a name of their own",
                         SCL_STAN_DEPTH);
  }
  *out = node;
  return SCL_OK;
}

scl_status scl_stan_make_of(scl_stan_program *program, scl_stan_kind kind, uint32_t position,
                            unsigned count, scl_stan_node *first, scl_stan_node *second,
                            scl_stan_node **out) {
  const uint32_t mark = program->stack_count;
  if (count > 0) SCL_TRY(scl_stan_push(program, first));
  if (count > 1) SCL_TRY(scl_stan_push(program, second));
  return scl_stan_make(program, kind, position, mark, out);
}
