/* The state of a reader of Stan programs, for the files of this folder. */
#ifndef SCL_STAN_READER_H
#define SCL_STAN_READER_H

#include "stan/program.h"

enum {
  SCL_STAN_DEPTH = 1000,       /* deepest nesting of expressions and statements */
  SCL_STAN_INCLUDES = 50,      /* deepest nesting of includes */
  SCL_STAN_SOURCE = 100 << 20, /* most bytes of source, with includes */
  SCL_STAN_HASHES = 1 << 12
};

typedef struct scl_stan_chunk scl_stan_chunk;

/* A stretch of the source that begins a line, or goes on after an include. */
typedef struct {
  uint32_t start;  /* its position in the source */
  uint32_t line;   /* in its file, from 1 */
  uint32_t column; /* bytes of the line before it */
  uint32_t file;
} scl_stan_stretch;

typedef struct {
  uint32_t at, length;
  int kind;            /* lexer.h */
  scl_stan_name *name; /* of identifiers and keywords */
} scl_stan_token;

struct scl_stan_program {
  scl_stan_chunk *chunks; /* the arena */
  size_t room;            /* left in the first chunk */

  char *source; /* with includes in their places; ends with '\0' */
  uint32_t length;
  int capacity;
  scl_stan_stretch *stretches;
  uint32_t stretch_count;
  int stretch_capacity;
  const char **files;
  uint32_t file_count;
  int file_capacity;

  scl_stan_name **names; /* by hash */
  uint32_t name_count, name_places;
  const scl_stan_type *types[SCL_STAN_HASHES];
  uint32_t type_count;

  scl_stan_token token;  /* the one that the parser looks at */
  uint32_t last_end;     /* where the one before it ends */
  uint32_t depth;        /* of the parser's and the checker's calls */
  scl_stan_node **stack; /* children of the nodes that are being made */
  uint32_t stack_count;
  int stack_capacity;

  scl_stan_node *block[SCL_STAN_BLOCKS];
};

/* ---- memory (arena.c) ----------------------------------------------------------------------- */
/* Zeroed memory that lives as long as the program. */
scl_status scl_stan_alloc(scl_stan_program *program, size_t bytes, void *out);
void scl_stan_arena_free(scl_stan_program *program);

/* ---- names, types, nodes (build.c) ---------------------------------------------------------- */
scl_status scl_stan_intern(scl_stan_program *program, const char *text, size_t length,
                           scl_stan_name **out);
/* A type without parts. */
scl_status scl_stan_type_of(scl_stan_program *program, scl_stan_base base, unsigned depth,
                            const scl_stan_type **out);
/* A type with the parts of a tuple; parts may be NULL if count is 0. */
scl_status scl_stan_type_with(scl_stan_program *program, scl_stan_base base, unsigned depth,
                              const scl_stan_type *const *parts, unsigned count,
                              const scl_stan_type **out);
/* The same type as an array of other dimensions. */
scl_status scl_stan_type_at(scl_stan_program *program, const scl_stan_type *type, unsigned depth,
                            const scl_stan_type **out);
/* The type as Stan writes it: "array[,] real". Returns `text`, cut at its end. */
const char *scl_stan_type_text(const scl_stan_type *type, char *text, size_t size);

/* Puts a child (or NULL) on the stack. */
scl_status scl_stan_push(scl_stan_program *program, scl_stan_node *child);
/* Makes a node of all children since the stack had `mark` of them, and takes them from it.
 * SCL_E_STAN if it is too deep. */
scl_status scl_stan_make(scl_stan_program *program, scl_stan_kind kind, uint32_t position,
                         uint32_t mark, scl_stan_node **out);
/* The same from up to two children. */
scl_status scl_stan_make_of(scl_stan_program *program, scl_stan_kind kind, uint32_t position,
                            unsigned count, scl_stan_node *first, scl_stan_node *second,
                            scl_stan_node **out);

/* ---- source (source.c) ---------------------------------------------------------------------- */
scl_status scl_stan_load(scl_stan_program *program, const scl_stan_input *input);
/* SCL_E_STAN at a position: writes the message, line, column and the line itself. */
SCL_PRINTF(3, 4)
scl_status scl_stan_fail(const scl_stan_program *program, uint32_t position, const char *format,
                         ...);
/* Counts a nested call; SCL_E_STAN if there are too many. The caller subtracts it at its end. */
scl_status scl_stan_enter(scl_stan_program *program, uint32_t position);

#endif
