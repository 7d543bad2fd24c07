#include "stan/parse.h"

#include <stdio.h>
#include <string.h>

bool scl_stan_begins_type(int token) {
  return token == SCL_STAN_T_ARRAY || token == SCL_STAN_T_TUPLE ||
         scl_stan_type_word_of(token) != NULL;
}

static scl_status fail_type(const scl_stan_program *program, const char *what) {
  char found[64];
  scl_stan_token_text(program, &program->token, found, sizeof found);
  return scl_stan_fail(program, program->token.at, "expected %s, found %s", what, found);
}

static scl_status check_dimensions(const scl_stan_program *program, uint32_t position,
                                   unsigned dimensions) {
  if (dimensions <= SCL_STAN_DIMENSIONS) return SCL_OK;
  return scl_stan_fail(program, position, "an array has at most %d dimensions",
                       SCL_STAN_DIMENSIONS);
}

/* Whether another part of a tuple follows; that of one part is written "(int,)". */
static scl_status accept_comma(scl_stan_program *program, bool first, bool *more) {
  SCL_TRY(scl_stan_accept(program, SCL_STAN_T_COMMA, more));
  if (first && !*more) {
    return scl_stan_fail(program, program->token.at,
                         "expected ',' after the first part of a tuple");
  }
  if (scl_stan_looks_at(program, SCL_STAN_T_CLOSE)) *more = false;
  return SCL_OK;
}

/* ---- types of functions --------------------------------------------------------------------- */

enum { MOST_PARTS = 256 };

/* Adds a type to a list in the arena, which grows by doubling. */
static scl_status add_part(scl_stan_program *program, const scl_stan_type *type,
                           const scl_stan_type ***parts, unsigned *count) {
  if ((*count & (*count - 1)) == 0) { /* 0 or a power of 2: it is full */
    const scl_stan_type **more;
    SCL_TRY(scl_stan_alloc(program, (*count == 0 ? 1 : 2 * *count) * sizeof *more, &more));
    for (unsigned k = 0; k < *count; k++) more[k] = (*parts)[k];
    *parts = more;
  }
  (*parts)[(*count)++] = type;
  return SCL_OK;
}

static scl_status parse_plain_tuple(scl_stan_program *program, const scl_stan_type **out) {
  const uint32_t position = program->token.at;
  const scl_stan_type **parts = NULL;
  unsigned count = 0;
  SCL_TRY(scl_stan_enter(program, position));
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN, "after 'tuple'"));
  bool more = true;
  while (more) {
    const scl_stan_type *part;
    SCL_TRY(scl_stan_parse_plain_type(program, &part));
    SCL_TRY(add_part(program, part, &parts, &count));
    if (count > MOST_PARTS) {
      return scl_stan_fail(program, position, "a tuple has at most %d parts", MOST_PARTS);
    }
    SCL_TRY(accept_comma(program, count == 1, &more));
  }
  program->depth--;
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_CLOSE, "after the parts of the tuple"));
  return scl_stan_type_with(program, SCL_STAN_TUPLE, 0, parts, count, out);
}

/* "[,]": as many commas as there are dimensions, less one. */
static scl_status parse_commas(scl_stan_program *program, unsigned *dimensions) {
  const uint32_t position = program->token.at;
  SCL_TRY(scl_stan_advance(program));
  *dimensions = 1;
  bool more = true;
  for (;;) {
    SCL_TRY(scl_stan_accept(program, SCL_STAN_T_COMMA, &more));
    if (!more) break;
    ++*dimensions;
    SCL_TRY(check_dimensions(program, position, *dimensions));
  }
  return scl_stan_expect(program, SCL_STAN_T_CLOSE_SQUARE,
                         "after the dimensions: types of functions have no sizes");
}

scl_status scl_stan_parse_plain_type(scl_stan_program *program, const scl_stan_type **out) {
  unsigned dimensions = 0;
  bool array;
  SCL_TRY(scl_stan_accept(program, SCL_STAN_T_ARRAY, &array));
  if (array) {
    if (!scl_stan_looks_at(program, SCL_STAN_T_OPEN_SQUARE)) {
      return fail_type(program, "'[' after 'array'");
    }
    SCL_TRY(parse_commas(program, &dimensions));
  }
  const scl_stan_type *type;
  const scl_stan_type_word *word = scl_stan_type_word_of(program->token.kind);
  if (scl_stan_looks_at(program, SCL_STAN_T_TUPLE)) {
    SCL_TRY(parse_plain_tuple(program, &type));
  } else if (word != NULL && word->plain) {
    SCL_TRY(scl_stan_type_of(program, word->base, 0, &type));
    SCL_TRY(scl_stan_advance(program));
  } else if (word != NULL) {
    return scl_stan_fail(program, program->token.at,
                         "'%s' is a constraint of variables: a function takes and gives '%s'",
                         word->text, scl_stan_base_names[word->base]);
  } else {
    return fail_type(program, "a type");
  }
  if (!array && scl_stan_looks_at(program, SCL_STAN_T_OPEN_SQUARE)) { /* real[,], as before 2.26 */
    SCL_TRY(parse_commas(program, &dimensions));
  }
  return scl_stan_type_at(program, type, dimensions, out);
}

/* ---- constraints ---------------------------------------------------------------------------- */

static const char *const bound_names[4] = {"lower", "upper", "offset", "multiplier"};

/* "lower = e" and the like; bounds[k] is its expression. */
static scl_status parse_bound(scl_stan_program *program, scl_stan_node *bounds[4]) {
  const scl_stan_token token = program->token;
  int which = -1;
  for (int k = 0; k < 4; k++) {
    if (token.kind == SCL_STAN_T_NAME && strcmp(token.name->text, bound_names[k]) == 0) which = k;
  }
  if (which < 0) return fail_type(program, "'lower', 'upper', 'offset' or 'multiplier'");
  if (bounds[which] != NULL) {
    return scl_stan_fail(program, token.at, "'%s' is given twice", bound_names[which]);
  }
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_ASSIGN, "in the constraint"));
  return scl_stan_parse_bound(program, &bounds[which]);
}

/* "<lower = 0, upper = 1>", if it is there: a node of kind CONSTRAINT. */
static scl_status parse_constraint(scl_stan_program *program, const scl_stan_type_word *word,
                                   scl_stan_node **out) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  scl_stan_node *bounds[4] = {NULL, NULL, NULL, NULL};
  bool more;
  scl_stan_constraint constraint = word->constraint;
  SCL_TRY(scl_stan_accept(program, SCL_STAN_T_LT, &more));
  if (more) {
    if (constraint != SCL_STAN_C_NONE || word->base == SCL_STAN_COMPLEX ||
        (word->base >= SCL_STAN_CVECTOR && word->base <= SCL_STAN_CMATRIX)) {
      return scl_stan_fail(program, position, "'%s' takes no bounds, offset or multiplier",
                           word->text);
    }
    while (more) {
      SCL_TRY(parse_bound(program, bounds));
      SCL_TRY(scl_stan_accept(program, SCL_STAN_T_COMMA, &more));
    }
    SCL_TRY(scl_stan_expect(program, SCL_STAN_T_GT, "after the constraint"));
    const bool range = bounds[0] != NULL || bounds[1] != NULL;
    const bool affine = bounds[2] != NULL || bounds[3] != NULL;
    if (range && affine) {
      return scl_stan_fail(program, position,
                           "a variable has either bounds or offset and multiplier, not both");
    }
    if (affine && word->base == SCL_STAN_INT) {
      return scl_stan_fail(program, position, "integers have no offset or multiplier");
    }
    constraint = range ? SCL_STAN_C_RANGE : SCL_STAN_C_OFFSET;
  }
  for (int k = 0; k < 4; k++) SCL_TRY(scl_stan_push(program, bounds[k]));
  SCL_TRY(scl_stan_make(program, SCL_STAN_CONSTRAINT_NODE, position, mark, out));
  (*out)->op = (uint8_t)constraint;
  return SCL_OK;
}

/* ---- sized types ---------------------------------------------------------------------------- */

/* Expressions in [ ], pushed: sizes. */
static scl_status parse_sizes(scl_stan_program *program, const char *what) {
  char where[96];
  snprintf(where, sizeof where, "after %s", what);
  const uint32_t mark = program->stack_count, position = program->token.at;
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN_SQUARE, where));
  SCL_TRY(scl_stan_parse_list(program, SCL_STAN_T_CLOSE_SQUARE, "after the sizes"));
  if (program->stack_count == mark) {
    return scl_stan_fail(program, position, "expected a size in '[ ]' %s", where);
  }
  return SCL_OK;
}

/* The sizes of a vector or matrix, pushed; a square matrix has its size twice. */
static scl_status parse_word_sizes(scl_stan_program *program, const scl_stan_type_word *word) {
  const uint32_t mark = program->stack_count, position = program->token.at;
  if (word->most == 0) return SCL_OK;
  SCL_TRY(parse_sizes(program, word->text));
  const int count = (int)(program->stack_count - mark);
  if (count < word->fewest || count > word->most) {
    return scl_stan_fail(program, position, "'%s' has %d size%s, not %d", word->text, word->most,
                         word->most == 1 ? "" : "s", count);
  }
  if (word->base == SCL_STAN_MATRIX && count == 1) {
    return scl_stan_push(program, program->stack[mark]);
  }
  return SCL_OK;
}

static scl_status parse_sized_type(scl_stan_program *program, scl_stan_node **out);

/* "(type, type)" after 'tuple': the list of its parts, and its type. */
static scl_status parse_parts(scl_stan_program *program, unsigned dimensions, scl_stan_node **out,
                              const scl_stan_type **type) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  SCL_TRY(scl_stan_enter(program, position));
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN, "after 'tuple'"));
  bool more = true;
  while (more) {
    scl_stan_node *part;
    SCL_TRY(parse_sized_type(program, &part));
    SCL_TRY(scl_stan_push(program, part));
    SCL_TRY(accept_comma(program, program->stack_count == mark + 1, &more));
  }
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_CLOSE, "after the parts of the tuple"));
  program->depth--;
  const uint32_t count = program->stack_count - mark;
  if (count > MOST_PARTS) {
    return scl_stan_fail(program, position, "a tuple has at most %d parts", MOST_PARTS);
  }
  const scl_stan_type **types;
  SCL_TRY(scl_stan_alloc(program, count * sizeof *types, &types));
  for (uint32_t k = 0; k < count; k++) types[k] = program->stack[mark + k]->type;
  SCL_TRY(scl_stan_type_with(program, SCL_STAN_TUPLE, dimensions, types, count, type));
  return scl_stan_make(program, SCL_STAN_LIST_NODE, position, mark, out);
}

static scl_status parse_sized_type(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  scl_stan_node *sizes, *parts = NULL, *constraint = NULL;
  const scl_stan_type *type;
  bool array;
  SCL_TRY(scl_stan_accept(program, SCL_STAN_T_ARRAY, &array));
  if (array) SCL_TRY(parse_sizes(program, "array"));
  const unsigned dimensions = program->stack_count - mark;
  SCL_TRY(check_dimensions(program, position, dimensions));
  const scl_stan_type_word *word = scl_stan_type_word_of(program->token.kind);
  if (scl_stan_looks_at(program, SCL_STAN_T_TUPLE)) {
    SCL_TRY(parse_parts(program, dimensions, &parts, &type));
  } else if (word != NULL) {
    SCL_TRY(scl_stan_advance(program));
    SCL_TRY(parse_constraint(program, word, &constraint));
    SCL_TRY(parse_word_sizes(program, word));
    SCL_TRY(scl_stan_type_of(program, word->base, dimensions, &type));
  } else {
    return fail_type(program, "a type");
  }
  SCL_TRY(scl_stan_make(program, SCL_STAN_LIST_NODE, position, mark, &sizes));
  SCL_TRY(scl_stan_push(program, sizes));
  SCL_TRY(scl_stan_push(program, parts));
  SCL_TRY(scl_stan_push(program, constraint));
  SCL_TRY(scl_stan_make(program, SCL_STAN_SIZED_NODE, position, mark, out));
  (*out)->type = type;
  return SCL_OK;
}

/* ---- declarations --------------------------------------------------------------------------- */

/* Dimensions after the name, as in "real x[3]": the type and sizes become those of an array. */
static scl_status parse_old_sizes(scl_stan_program *program, const scl_stan_type **type,
                                  scl_stan_node **sizes) {
  const uint32_t mark = program->stack_count, position = program->token.at;
  if (!scl_stan_looks_at(program, SCL_STAN_T_OPEN_SQUARE)) return SCL_OK;
  if ((*type)->depth > 0) {
    return scl_stan_fail(program, position,
                         "an array has its sizes after 'array', not after "
                         "its name");
  }
  SCL_TRY(parse_sizes(program, "the name"));
  const unsigned dimensions = program->stack_count - mark;
  SCL_TRY(check_dimensions(program, position, dimensions));
  for (uint32_t k = 0; k < (*sizes)->count; k++) {
    SCL_TRY(scl_stan_push(program, (*sizes)->child[k]));
  }
  SCL_TRY(scl_stan_make(program, SCL_STAN_LIST_NODE, position, mark, sizes));
  return scl_stan_type_at(program, *type, dimensions, type);
}

scl_status scl_stan_parse_declaration(scl_stan_program *program) {
  scl_stan_node *sized;
  SCL_TRY(parse_sized_type(program, &sized));
  bool more = true;
  while (more) {
    const uint32_t mark = program->stack_count, position = program->token.at;
    const scl_stan_type *type = sized->type;
    scl_stan_node *sizes = sized->child[0], *init = NULL, *node;
    scl_stan_name *name;
    bool assigned;
    SCL_TRY(scl_stan_expect_name(program, "the name of a variable", &name));
    SCL_TRY(parse_old_sizes(program, &type, &sizes));
    SCL_TRY(scl_stan_accept(program, SCL_STAN_T_ASSIGN, &assigned));
    if (assigned) SCL_TRY(scl_stan_parse_expression(program, &init));
    SCL_TRY(scl_stan_push(program, sizes));
    SCL_TRY(scl_stan_push(program, sized->child[1]));
    SCL_TRY(scl_stan_push(program, sized->child[2]));
    SCL_TRY(scl_stan_push(program, init));
    SCL_TRY(scl_stan_make(program, SCL_STAN_DECLARATION_NODE, position, mark, &node));
    node->name = name;
    node->type = type;
    SCL_TRY(scl_stan_push(program, node));
    SCL_TRY(scl_stan_accept(program, SCL_STAN_T_COMMA, &more));
  }
  return scl_stan_expect(program, SCL_STAN_T_SEMICOLON, "after the declaration");
}
