#include "stan/parse.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* ---- tokens --------------------------------------------------------------------------------- */

scl_status scl_stan_advance(scl_stan_program *program) {
  program->last_end = program->token.at + program->token.length;
  return scl_stan_lex(program, program->last_end, &program->token);
}

scl_status scl_stan_accept(scl_stan_program *program, int kind, bool *out) {
  *out = scl_stan_looks_at(program, kind);
  return *out ? scl_stan_advance(program) : SCL_OK;
}

scl_status scl_stan_expect(scl_stan_program *program, int kind, const char *where) {
  if (scl_stan_looks_at(program, kind)) return scl_stan_advance(program);
  char found[64];
  scl_stan_token_text(program, &program->token, found, sizeof found);
  /* An error of a missing ';' is reported at the end of the statement, not at the next token. */
  const uint32_t at = kind == SCL_STAN_T_SEMICOLON ? program->last_end : program->token.at;
  return scl_stan_fail(program, at, "expected %s %s, found %s", scl_stan_token_name(kind), where,
                       found);
}

scl_status scl_stan_expect_name(scl_stan_program *program, const char *what, scl_stan_name **out) {
  const scl_stan_token token = program->token;
  char found[64];
  scl_stan_token_text(program, &token, found, sizeof found);
  if (token.kind != SCL_STAN_T_NAME) {
    return token.name != NULL && token.kind != SCL_STAN_T_STRING
               ? scl_stan_fail(program, token.at, "%s is a word of the language: it cannot be %s",
                               found, what)
               : scl_stan_fail(program, token.at, "expected %s, found %s", what, found);
  }
  if (token.length > 2 && memcmp(token.name->text + token.length - 2, "__", 2) == 0) {
    return scl_stan_fail(program, token.at, "the name %s ends with two underscores", found);
  }
  *out = token.name;
  return scl_stan_advance(program);
}

/* ---- beginnings ----------------------------------------------------------------------------- */

scl_status scl_stan_parse_list(scl_stan_program *program, int close, const char *where) {
  bool more = !scl_stan_looks_at(program, close);
  while (more) {
    scl_stan_node *item;
    SCL_TRY(scl_stan_parse_expression(program, &item));
    SCL_TRY(scl_stan_push(program, item));
    SCL_TRY(scl_stan_accept(program, SCL_STAN_T_COMMA, &more));
  }
  if (scl_stan_looks_at(program, close)) return scl_stan_advance(program);
  char found[64];
  scl_stan_token_text(program, &program->token, found, sizeof found);
  return scl_stan_fail(program, program->token.at, "expected ',' or %s %s, found %s",
                       scl_stan_token_name(close), where, found);
}

/* The number of a token: underscores between digits are left out. */
static scl_status number_of(const scl_stan_program *program, const scl_stan_token *token,
                            double *out) {
  char text[512];
  size_t used = 0;
  for (uint32_t k = 0; k < token->length; k++) {
    const char c = program->source[token->at + k];
    if (c == '_') continue;
    if (used + 1 == sizeof text) {
      return scl_stan_fail(program, token->at, "this number has too many digits");
    }
    text[used++] = c;
  }
  text[used] = '\0';
  *out = strtod(text, NULL);
  return SCL_OK;
}

static scl_status parse_number(scl_stan_program *program, scl_stan_node **out) {
  const scl_stan_token token = program->token;
  const bool imaginary = token.kind == SCL_STAN_T_IMAGINARY;
  const scl_stan_base base = imaginary                          ? SCL_STAN_COMPLEX
                             : token.kind == SCL_STAN_T_INTEGER ? SCL_STAN_INT
                                                                : SCL_STAN_REAL;
  double value = 0;
  SCL_TRY(number_of(program, &token, &value));
  if (base == SCL_STAN_INT && value > 2147483647.0) {
    return scl_stan_fail(program, token.at,
                         "integers end at 2147483647: write a real number, with a point");
  }
  if (value > DBL_MAX) return scl_stan_fail(program, token.at, "this number is too large");
  SCL_TRY(scl_stan_make_of(program, imaginary ? SCL_STAN_IMAGINARY_NODE : SCL_STAN_NUMBER_NODE,
                           token.at, 0, NULL, NULL, out));
  (*out)->value = value;
  SCL_TRY(scl_stan_type_of(program, base, 0, &(*out)->type));
  return scl_stan_advance(program);
}

/* The arguments of a call, after '('. */
static scl_status parse_call(scl_stan_program *program, scl_stan_name *name, uint32_t position,
                             scl_stan_node **out) {
  const uint32_t mark = program->stack_count;
  bool bar = false;
  if (!scl_stan_looks_at(program, SCL_STAN_T_CLOSE)) {
    scl_stan_node *first;
    SCL_TRY(scl_stan_parse_expression(program, &first));
    SCL_TRY(scl_stan_push(program, first));
    bool comma = false;
    SCL_TRY(scl_stan_accept(program, SCL_STAN_T_BAR, &bar));
    if (!bar) SCL_TRY(scl_stan_accept(program, SCL_STAN_T_COMMA, &comma));
    if (comma && scl_stan_looks_at(program, SCL_STAN_T_CLOSE)) {
      return scl_stan_fail(program, program->token.at, "expected an argument after ','");
    }
  }
  SCL_TRY(scl_stan_parse_list(program, SCL_STAN_T_CLOSE, "after the arguments"));
  SCL_TRY(scl_stan_make(program, SCL_STAN_CALL_NODE, position, mark, out));
  (*out)->name = name;
  if (bar) (*out)->flags |= SCL_STAN_BAR;
  return SCL_OK;
}

static scl_status parse_named(scl_stan_program *program, scl_stan_node **out) {
  const scl_stan_token token = program->token;
  bool call;
  if (token.kind == SCL_STAN_T_TARGET) {
    SCL_TRY(scl_stan_advance(program));
    SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN, "after 'target'"));
    return parse_call(program, token.name, token.at, out);
  }
  scl_stan_name *name;
  SCL_TRY(scl_stan_expect_name(program, "a variable or function", &name));
  SCL_TRY(scl_stan_accept(program, SCL_STAN_T_OPEN, &call));
  if (call) return parse_call(program, name, token.at, out);
  SCL_TRY(scl_stan_make_of(program, SCL_STAN_VARIABLE_NODE, token.at, 0, NULL, NULL, out));
  (*out)->name = name;
  return SCL_OK;
}

/* An expression in parentheses, or a tuple. */
static scl_status parse_parentheses(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  SCL_TRY(scl_stan_advance(program));
  scl_stan_node *first;
  bool tuple;
  SCL_TRY(scl_stan_parse_expression(program, &first));
  SCL_TRY(scl_stan_accept(program, SCL_STAN_T_COMMA, &tuple));
  if (!tuple) {
    *out = first;
    return scl_stan_expect(program, SCL_STAN_T_CLOSE, "after the expression");
  }
  SCL_TRY(scl_stan_push(program, first));
  SCL_TRY(scl_stan_parse_list(program, SCL_STAN_T_CLOSE, "after the parts of the tuple"));
  return scl_stan_make(program, SCL_STAN_TUPLE_NODE, position, mark, out);
}

static scl_status parse_brackets(scl_stan_program *program, int close, scl_stan_kind kind,
                                 scl_stan_node **out) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_parse_list(program, close, "after the elements"));
  return scl_stan_make(program, kind, position, mark, out);
}

static scl_status parse_string(scl_stan_program *program, scl_stan_node **out) {
  const scl_stan_token token = program->token;
  SCL_TRY(scl_stan_make_of(program, SCL_STAN_STRING_NODE, token.at, 0, NULL, NULL, out));
  (*out)->name = token.name;
  return scl_stan_advance(program);
}

static scl_status parse_first(scl_stan_program *program, scl_stan_node **out) {
  char found[64];
  switch (program->token.kind) {
  case SCL_STAN_T_INTEGER:
  case SCL_STAN_T_REAL:
  case SCL_STAN_T_IMAGINARY:
    return parse_number(program, out);
  case SCL_STAN_T_NAME:
  case SCL_STAN_T_TARGET:
    return parse_named(program, out);
  case SCL_STAN_T_STRING:
    return parse_string(program, out);
  case SCL_STAN_T_OPEN:
    return parse_parentheses(program, out);
  case SCL_STAN_T_OPEN_BRACE:
    return parse_brackets(program, SCL_STAN_T_CLOSE_BRACE, SCL_STAN_ARRAY_NODE, out);
  case SCL_STAN_T_OPEN_SQUARE:
    return parse_brackets(program, SCL_STAN_T_CLOSE_SQUARE, SCL_STAN_ROW_NODE, out);
  default:
    scl_stan_token_text(program, &program->token, found, sizeof found);
    return scl_stan_fail(
        program, program->token.at, "expected an expression, found %s%s", found,
        program->source[program->token.at] == '\'' ? ": text stands in double quotes" : "");
  }
}

/* ---- indices and other endings -------------------------------------------------------------- */

static bool ends_index(const scl_stan_program *program) {
  return scl_stan_looks_at(program, SCL_STAN_T_COMMA) ||
         scl_stan_looks_at(program, SCL_STAN_T_CLOSE_SQUARE);
}

static scl_status parse_index(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at;
  scl_stan_node *lower = NULL, *upper = NULL;
  bool range = false;
  if (ends_index(program)) {
    return scl_stan_make_of(program, SCL_STAN_ALL_NODE, position, 0, NULL, NULL, out);
  }
  if (!scl_stan_looks_at(program, SCL_STAN_T_COLON)) {
    SCL_TRY(scl_stan_parse_expression(program, &lower));
  }
  SCL_TRY(scl_stan_accept(program, SCL_STAN_T_COLON, &range));
  if (!range) return scl_stan_make_of(program, SCL_STAN_SINGLE_NODE, position, 1, lower, NULL, out);
  if (!ends_index(program)) SCL_TRY(scl_stan_parse_expression(program, &upper));
  if (lower == NULL && upper == NULL) {
    return scl_stan_make_of(program, SCL_STAN_ALL_NODE, position, 0, NULL, NULL, out);
  }
  return scl_stan_make_of(program, SCL_STAN_RANGE_NODE, position, 2, lower, upper, out);
}

static scl_status parse_indices(scl_stan_program *program, scl_stan_node *base,
                                scl_stan_node **out) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_push(program, base));
  bool more = true;
  while (more) {
    scl_stan_node *index;
    SCL_TRY(parse_index(program, &index));
    SCL_TRY(scl_stan_push(program, index));
    SCL_TRY(scl_stan_accept(program, SCL_STAN_T_COMMA, &more));
  }
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_CLOSE_SQUARE, "after the indices"));
  return scl_stan_make(program, SCL_STAN_INDEX_NODE, position, mark, out);
}

/* Whether the token is ".3", a part of a tuple. */
static bool is_part(const scl_stan_program *program) {
  const char *text = program->source + program->token.at;
  if (!scl_stan_looks_at(program, SCL_STAN_T_REAL) || text[0] != '.') return false;
  for (uint32_t k = 1; k < program->token.length; k++) {
    if (text[k] < '0' || text[k] > '9') return false;
  }
  return program->token.length < 8;
}

static scl_status parse_part(scl_stan_program *program, scl_stan_node *base, scl_stan_node **out) {
  const uint32_t mark = program->stack_count, position = program->token.at;
  scl_stan_node *part;
  SCL_TRY(scl_stan_make_of(program, SCL_STAN_NUMBER_NODE, position, 0, NULL, NULL, &part));
  part->value = (double)strtoul(program->source + position + 1, NULL, 10);
  SCL_TRY(scl_stan_type_of(program, SCL_STAN_INT, 0, &part->type));
  SCL_TRY(scl_stan_push(program, base));
  SCL_TRY(scl_stan_push(program, part));
  SCL_TRY(scl_stan_advance(program));
  return scl_stan_make(program, SCL_STAN_TUPLE_GET_NODE, position, mark, out);
}

scl_status scl_stan_parse_beginning(scl_stan_program *program, scl_stan_node **out) {
  scl_stan_node *node;
  SCL_TRY(parse_first(program, &node));
  for (;;) {
    if (scl_stan_looks_at(program, SCL_STAN_T_OPEN_SQUARE)) {
      SCL_TRY(parse_indices(program, node, &node));
    } else if (is_part(program)) {
      SCL_TRY(parse_part(program, node, &node));
    } else if (scl_stan_looks_at(program, SCL_STAN_T_TRANSPOSE)) {
      SCL_TRY(scl_stan_make_of(program, SCL_STAN_OPERATION_NODE, program->token.at, 1, node, NULL,
                               &node));
      node->op = SCL_STAN_OP_TRANSPOSE;
      SCL_TRY(scl_stan_advance(program));
    } else {
      *out = node;
      return SCL_OK;
    }
  }
}

/* ---- operators ------------------------------------------------------------------------------ */

static const uint8_t binary_of[SCL_STAN_TOKENS] = {
    [SCL_STAN_T_OR] = SCL_STAN_OP_OR,
    [SCL_STAN_T_AND] = SCL_STAN_OP_AND,
    [SCL_STAN_T_EQ] = SCL_STAN_OP_EQ,
    [SCL_STAN_T_NE] = SCL_STAN_OP_NE,
    [SCL_STAN_T_LT] = SCL_STAN_OP_LT,
    [SCL_STAN_T_LE] = SCL_STAN_OP_LE,
    [SCL_STAN_T_GT] = SCL_STAN_OP_GT,
    [SCL_STAN_T_GE] = SCL_STAN_OP_GE,
    [SCL_STAN_T_PLUS] = SCL_STAN_OP_ADD,
    [SCL_STAN_T_MINUS] = SCL_STAN_OP_SUBTRACT,
    [SCL_STAN_T_TIMES] = SCL_STAN_OP_MULTIPLY,
    [SCL_STAN_T_DIVIDE] = SCL_STAN_OP_DIVIDE,
    [SCL_STAN_T_MODULO] = SCL_STAN_OP_MODULO,
    [SCL_STAN_T_ELT_MULTIPLY] = SCL_STAN_OP_ELT_MULTIPLY,
    [SCL_STAN_T_ELT_DIVIDE] = SCL_STAN_OP_ELT_DIVIDE,
    [SCL_STAN_T_INT_DIVIDE] = SCL_STAN_OP_INT_DIVIDE,
    [SCL_STAN_T_LEFT_DIVIDE] = SCL_STAN_OP_LEFT_DIVIDE,
    [SCL_STAN_T_POWER] = SCL_STAN_OP_POWER,
    [SCL_STAN_T_ELT_POWER] = SCL_STAN_OP_ELT_POWER,
};

static const uint8_t level_of[SCL_STAN_OPERATORS] = {
    0,
#define SCL_STAN_OPERATOR(id, text, level, rule) level,
#include "stan/operators.def"
#undef SCL_STAN_OPERATOR
};

enum { FIRST_LEVEL = 1, BOUND_LEVEL = 5, POWER_LEVEL = 9 };

static scl_status parse_prefix(scl_stan_program *program, scl_stan_node **out);

/* Goes on with binary operators of at least this level. */
static scl_status parse_binary(scl_stan_program *program, scl_stan_node *left, int level,
                               scl_stan_node **out) {
  for (;;) {
    const uint8_t op = binary_of[program->token.kind];
    const uint32_t position = program->token.at;
    if (op == 0 || level_of[op] < level) break;
    scl_stan_node *right;
    SCL_TRY(scl_stan_advance(program));
    SCL_TRY(scl_stan_enter(program, position));
    SCL_TRY(parse_prefix(program, &right));
    /* Powers bind to the right. */
    const int next = level_of[op] == POWER_LEVEL ? POWER_LEVEL : level_of[op] + 1;
    SCL_TRY(parse_binary(program, right, next, &right));
    program->depth--;
    SCL_TRY(scl_stan_make_of(program, SCL_STAN_OPERATION_NODE, position, 2, left, right, &left));
    left->op = op;
  }
  *out = left;
  return SCL_OK;
}

/* A beginning, or a prefix operator and its operand, which powers belong to. */
static scl_status parse_prefix(scl_stan_program *program, scl_stan_node **out) {
  const int kind = program->token.kind;
  const uint32_t position = program->token.at;
  const uint8_t op = kind == SCL_STAN_T_MINUS  ? SCL_STAN_OP_NEGATE
                     : kind == SCL_STAN_T_PLUS ? SCL_STAN_OP_PLUS
                     : kind == SCL_STAN_T_NOT  ? SCL_STAN_OP_NOT
                                               : 0;
  SCL_TRY(scl_stan_enter(program, position));
  if (op == 0) {
    SCL_TRY(scl_stan_parse_beginning(program, out));
  } else {
    scl_stan_node *operand;
    SCL_TRY(scl_stan_advance(program));
    SCL_TRY(parse_prefix(program, &operand));
    SCL_TRY(parse_binary(program, operand, POWER_LEVEL, &operand));
    SCL_TRY(scl_stan_make_of(program, SCL_STAN_OPERATION_NODE, position, 1, operand, NULL, out));
    (*out)->op = op;
  }
  program->depth--;
  return SCL_OK;
}

/* "? yes :" after the test, at a choice whose last child is not read yet. */
static scl_status parse_first_choice(scl_stan_program *program, scl_stan_node *test,
                                     scl_stan_node **out) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  scl_stan_node *yes;
  SCL_TRY(scl_stan_enter(program, position));
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_parse_expression(program, &yes));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_COLON, "after the first choice of '?'"));
  program->depth--;
  SCL_TRY(scl_stan_push(program, test));
  SCL_TRY(scl_stan_push(program, yes));
  SCL_TRY(scl_stan_push(program, NULL));
  return scl_stan_make(program, SCL_STAN_CONDITIONAL_NODE, position, mark, out);
}

/* After the test: "? yes : no", if it is there; no may be another test with choices. */
static scl_status parse_choice(scl_stan_program *program, scl_stan_node *test,
                               scl_stan_node **out) {
  scl_stan_node **to = out;
  *out = test;
  while (scl_stan_looks_at(program, SCL_STAN_T_QUESTION)) {
    SCL_TRY(parse_first_choice(program, *to, to));
    scl_stan_deepen(*out, (*to)->depth);
    scl_stan_node *no;
    SCL_TRY(parse_prefix(program, &no));
    SCL_TRY(parse_binary(program, no, FIRST_LEVEL, &no));
    to = &(*to)->child[2];
    *to = no;
    scl_stan_deepen(*out, no->depth + 1);
  }
  return SCL_OK;
}

scl_status scl_stan_parse_rest(scl_stan_program *program, scl_stan_node *beginning,
                               scl_stan_node **out) {
  SCL_TRY(parse_binary(program, beginning, FIRST_LEVEL, &beginning));
  return parse_choice(program, beginning, out);
}

scl_status scl_stan_parse_expression(scl_stan_program *program, scl_stan_node **out) {
  scl_stan_node *beginning;
  SCL_TRY(parse_prefix(program, &beginning));
  return scl_stan_parse_rest(program, beginning, out);
}

scl_status scl_stan_parse_bound(scl_stan_program *program, scl_stan_node **out) {
  scl_stan_node *beginning;
  SCL_TRY(parse_prefix(program, &beginning));
  return parse_binary(program, beginning, BOUND_LEVEL, out);
}
