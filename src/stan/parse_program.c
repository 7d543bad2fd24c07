#include "stan/parse.h"

#include <string.h>

static const char *const block_titles[SCL_STAN_BLOCKS] = {"functions",
                                                          "data",
                                                          "transformed data",
                                                          "parameters",
                                                          "transformed parameters",
                                                          "model",
                                                          "generated quantities"};

/* The block that the words at the program's token name, which are read; SCL_STAN_BLOCKS: none. */
static scl_status parse_title(scl_stan_program *program, scl_stan_place *out) {
  static const struct {
    int token;
    scl_stan_place block;
  } titles[] = {{SCL_STAN_T_FUNCTIONS, SCL_STAN_FUNCTIONS},
                {SCL_STAN_T_DATA, SCL_STAN_DATA},
                {SCL_STAN_T_PARAMETERS, SCL_STAN_PARAMETERS},
                {SCL_STAN_T_MODEL, SCL_STAN_MODEL},
                {SCL_STAN_T_GENERATED, SCL_STAN_GENERATED},
                {SCL_STAN_T_TRANSFORMED, SCL_STAN_TRANSFORMED_DATA}};
  const int first = program->token.kind;
  *out = SCL_STAN_BLOCKS;
  for (size_t k = 0; k < sizeof titles / sizeof *titles; k++) {
    if (titles[k].token == first) *out = titles[k].block;
  }
  if (*out == SCL_STAN_BLOCKS) return SCL_OK;
  SCL_TRY(scl_stan_advance(program));
  if (first == SCL_STAN_T_GENERATED) {
    return scl_stan_expect(program, SCL_STAN_T_QUANTITIES, "after 'generated'");
  }
  if (first != SCL_STAN_T_TRANSFORMED) return SCL_OK;
  if (scl_stan_looks_at(program, SCL_STAN_T_PARAMETERS)) {
    *out = SCL_STAN_TRANSFORMED_PARAMETERS;
    return scl_stan_advance(program);
  }
  return scl_stan_expect(program, SCL_STAN_T_DATA, "or 'parameters' after 'transformed'");
}

static scl_status parse_argument(scl_stan_program *program, scl_stan_node **out) {
  bool only_data;
  SCL_TRY(scl_stan_accept(program, SCL_STAN_T_DATA, &only_data));
  const scl_stan_type *type;
  SCL_TRY(scl_stan_parse_plain_type(program, &type));
  const uint32_t position = program->token.at;
  scl_stan_name *name;
  SCL_TRY(scl_stan_expect_name(program, "the name of an argument", &name));
  SCL_TRY(scl_stan_make_of(program, SCL_STAN_PARAMETER_NODE, position, 0, NULL, NULL, out));
  (*out)->name = name;
  (*out)->type = type;
  if (only_data) (*out)->flags |= SCL_STAN_ONLY_DATA;
  return SCL_OK;
}

static scl_status parse_function(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t mark = program->stack_count;
  const scl_stan_type *type;
  bool none;
  SCL_TRY(scl_stan_accept(program, SCL_STAN_T_VOID, &none));
  if (none)
    SCL_TRY(scl_stan_type_of(program, SCL_STAN_VOID, 0, &type));
  else
    SCL_TRY(scl_stan_parse_plain_type(program, &type));
  const uint32_t position = program->token.at;
  scl_stan_name *name;
  SCL_TRY(scl_stan_expect_name(program, "the name of a function", &name));
  SCL_TRY(scl_stan_push(program, NULL)); /* the body */
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN, "after the function's name"));
  bool more = !scl_stan_looks_at(program, SCL_STAN_T_CLOSE);
  while (more) {
    scl_stan_node *argument;
    SCL_TRY(parse_argument(program, &argument));
    SCL_TRY(scl_stan_push(program, argument));
    SCL_TRY(scl_stan_accept(program, SCL_STAN_T_COMMA, &more));
  }
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_CLOSE, "after the arguments"));
  bool declared;
  SCL_TRY(scl_stan_accept(program, SCL_STAN_T_SEMICOLON, &declared));
  if (!declared) {
    const uint32_t begin = program->token.at;
    SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN_BRACE, "to begin the function's body"));
    scl_stan_node *body;
    SCL_TRY(scl_stan_parse_body(program, SCL_STAN_BLOCK_NODE, begin, &body));
    program->stack[mark] = body;
  }
  SCL_TRY(scl_stan_make(program, SCL_STAN_FUNCTION_NODE, position, mark, out));
  (*out)->name = name;
  (*out)->type = type;
  return SCL_OK;
}

static scl_status parse_functions(scl_stan_program *program, uint32_t position,
                                  scl_stan_node **out) {
  const uint32_t mark = program->stack_count;
  while (!scl_stan_looks_at(program, SCL_STAN_T_CLOSE_BRACE)) {
    scl_stan_node *function;
    if (scl_stan_looks_at(program, SCL_STAN_T_END)) {
      return scl_stan_fail(program, position, "this block is not closed by '}'");
    }
    SCL_TRY(parse_function(program, &function));
    SCL_TRY(scl_stan_push(program, function));
  }
  SCL_TRY(scl_stan_advance(program));
  return scl_stan_make(program, SCL_STAN_LIST_NODE, position, mark, out);
}

scl_status scl_stan_parse(scl_stan_program *program) {
  SCL_TRY(scl_stan_lex(program, 0, &program->token));
  int last = -1;
  while (!scl_stan_looks_at(program, SCL_STAN_T_END)) {
    const uint32_t position = program->token.at;
    char found[64];
    scl_stan_place place;
    scl_stan_token_text(program, &program->token, found, sizeof found);
    SCL_TRY(parse_title(program, &place));
    if (place == SCL_STAN_BLOCKS) {
      return scl_stan_fail(program, position,
                           "expected a block (functions, data, transformed "
                           "data, parameters, transformed parameters, model, generated "
                           "quantities), found %s",
                           found);
    }
    if ((int)place <= last) {
      return scl_stan_fail(program, position,
                           (int)place == last ? "there are two blocks '%s'"
                                              : "the block '%s' must stand before the block '%s'",
                           block_titles[place], block_titles[last]);
    }
    last = (int)place;
    SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN_BRACE, "to begin the block"));
    if (place == SCL_STAN_FUNCTIONS) {
      SCL_TRY(parse_functions(program, position, &program->block[place]));
    } else {
      SCL_TRY(scl_stan_parse_body(program, SCL_STAN_LIST_NODE, position, &program->block[place]));
    }
  }
  return SCL_OK;
}
