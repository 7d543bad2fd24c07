#include "stan/parse.h"

#include <string.h>

static scl_status parse_statement(scl_stan_program *program, scl_stan_node **out);

/* ---- assignments, sampling statements, calls ------------------------------------------------ */

static const uint8_t assignment_of[SCL_STAN_TOKENS] = {
    [SCL_STAN_T_ASSIGN] = SCL_STAN_OP_ASSIGN,
    [SCL_STAN_T_ASSIGN_ADD] = SCL_STAN_OP_ASSIGN_ADD,
    [SCL_STAN_T_ASSIGN_SUBTRACT] = SCL_STAN_OP_ASSIGN_SUBTRACT,
    [SCL_STAN_T_ASSIGN_MULTIPLY] = SCL_STAN_OP_ASSIGN_MULTIPLY,
    [SCL_STAN_T_ASSIGN_DIVIDE] = SCL_STAN_OP_ASSIGN_DIVIDE,
    [SCL_STAN_T_ASSIGN_ELT_MULTIPLY] = SCL_STAN_OP_ASSIGN_ELT_MULTIPLY,
    [SCL_STAN_T_ASSIGN_ELT_DIVIDE] = SCL_STAN_OP_ASSIGN_ELT_DIVIDE,
};

/* The operator of an assignment that the program looks at, and the length of "<-", or 0. */
static uint8_t looks_at_assignment(const scl_stan_program *program, bool *arrow) {
  *arrow =
      scl_stan_looks_at(program, SCL_STAN_T_LT) && program->source[program->token.at + 1] == '-';
  return *arrow ? SCL_STAN_OP_ASSIGN : assignment_of[program->token.kind];
}

static scl_status parse_assignment(scl_stan_program *program, scl_stan_node *left, uint8_t op,
                                   bool arrow, scl_stan_node **out) {
  const uint32_t position = program->token.at;
  scl_stan_node *right;
  SCL_TRY(scl_stan_advance(program));
  if (arrow) SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_parse_expression(program, &right));
  SCL_TRY(scl_stan_make_of(program, SCL_STAN_ASSIGN_NODE, position, 2, left, right, out));
  (*out)->op = op;
  return scl_stan_expect(program, SCL_STAN_T_SEMICOLON, "after the assignment");
}

/* "T[lower, upper]", if it is there; either may be left out. */
static scl_status parse_truncation(scl_stan_program *program, scl_stan_node *bounds[2],
                                   bool *truncated) {
  *truncated = scl_stan_looks_at(program, SCL_STAN_T_NAME) && program->token.length == 1 &&
               program->source[program->token.at] == 'T';
  if (!*truncated) return SCL_OK;
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN_SQUARE, "after 'T'"));
  if (!scl_stan_looks_at(program, SCL_STAN_T_COMMA)) {
    if (scl_stan_looks_at(program, SCL_STAN_T_CLOSE_SQUARE)) return scl_stan_advance(program);
    SCL_TRY(scl_stan_parse_expression(program, &bounds[0]));
  }
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_COMMA, "between the bounds of T[lower, upper]"));
  if (!scl_stan_looks_at(program, SCL_STAN_T_CLOSE_SQUARE)) {
    SCL_TRY(scl_stan_parse_expression(program, &bounds[1]));
  }
  return scl_stan_expect(program, SCL_STAN_T_CLOSE_SQUARE, "after the bounds of T[lower, upper]");
}

static scl_status parse_sample(scl_stan_program *program, scl_stan_node *left,
                               scl_stan_node **out) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  scl_stan_node *bounds[2] = {NULL, NULL};
  scl_stan_name *name;
  bool truncated;
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_expect_name(program, "the name of a distribution", &name));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN, "after the distribution"));
  SCL_TRY(scl_stan_push(program, left));
  SCL_TRY(scl_stan_push(program, NULL));
  SCL_TRY(scl_stan_push(program, NULL));
  SCL_TRY(scl_stan_parse_list(program, SCL_STAN_T_CLOSE, "after the arguments"));
  SCL_TRY(parse_truncation(program, bounds, &truncated));
  program->stack[mark + 1] = bounds[0];
  program->stack[mark + 2] = bounds[1];
  SCL_TRY(scl_stan_make(program, SCL_STAN_SAMPLE_NODE, position, mark, out));
  (*out)->name = name;
  if (truncated) (*out)->flags |= SCL_STAN_TRUNCATED;
  return scl_stan_expect(program, SCL_STAN_T_SEMICOLON, "after the distribution");
}

/* A statement that begins with an expression. */
static scl_status parse_from_expression(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at;
  const int first = program->token.kind;
  scl_stan_node *left;
  bool arrow = false;
  if (first == SCL_STAN_T_MINUS || first == SCL_STAN_T_PLUS || first == SCL_STAN_T_NOT) {
    SCL_TRY(scl_stan_parse_expression(program, &left));
  } else {
    SCL_TRY(scl_stan_parse_beginning(program, &left));
    const uint8_t op = looks_at_assignment(program, &arrow);
    if (op != 0) return parse_assignment(program, left, op, arrow, out);
    if (!scl_stan_looks_at(program, SCL_STAN_T_TILDE)) {
      SCL_TRY(scl_stan_parse_rest(program, left, &left));
    }
  }
  if (scl_stan_looks_at(program, SCL_STAN_T_TILDE)) return parse_sample(program, left, out);
  if (left->kind == SCL_STAN_CALL_NODE) {
    SCL_TRY(scl_stan_make_of(program, SCL_STAN_STATEMENT_NODE, position, 1, left, NULL, out));
    return scl_stan_expect(program, SCL_STAN_T_SEMICOLON, "after the call");
  }
  char found[64];
  scl_stan_token_text(program, &program->token, found, sizeof found);
  if (left->kind == SCL_STAN_VARIABLE_NODE && scl_stan_looks_at(program, SCL_STAN_T_NAME)) {
    return scl_stan_fail(program, position, "there is no type '%.60s'", left->name->text);
  }
  return scl_stan_fail(program, program->token.at,
                       "expected '=', '~' or a call: an expression is no statement, found %s",
                       found);
}

/* ---- log density ---------------------------------------------------------------------------- */

/* "target += e" and "jacobian += e". */
static scl_status parse_increment(scl_stan_program *program, scl_stan_kind kind,
                                  scl_stan_node **out) {
  const uint32_t position = program->token.at;
  scl_stan_node *value;
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_ASSIGN_ADD, "to add to the log density"));
  SCL_TRY(scl_stan_parse_expression(program, &value));
  SCL_TRY(scl_stan_make_of(program, kind, position, 1, value, NULL, out));
  return scl_stan_expect(program, SCL_STAN_T_SEMICOLON, "after the statement");
}

/* "increment_log_prob(e)", as before 2.17. */
static scl_status parse_old_increment(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at;
  scl_stan_node *value;
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN, "after 'increment_log_prob'"));
  SCL_TRY(scl_stan_parse_expression(program, &value));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_CLOSE, "after the argument"));
  SCL_TRY(scl_stan_make_of(program, SCL_STAN_TARGET_NODE, position, 1, value, NULL, out));
  return scl_stan_expect(program, SCL_STAN_T_SEMICOLON, "after the statement");
}

static scl_status parse_from_name(scl_stan_program *program, scl_stan_node **out) {
  const bool old = strcmp(program->token.name->text, "increment_log_prob") == 0;
  return old ? parse_old_increment(program, out) : parse_from_expression(program, out);
}

/* ---- control flow --------------------------------------------------------------------------- */

static scl_status parse_condition(scl_stan_program *program, const char *after,
                                  scl_stan_node **out) {
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN, after));
  SCL_TRY(scl_stan_parse_expression(program, out));
  return scl_stan_expect(program, SCL_STAN_T_CLOSE, "after the condition");
}

/* "if (test) yes", at a statement without else. */
static scl_status parse_lone_if(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  scl_stan_node *test, *yes;
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(parse_condition(program, "after 'if'", &test));
  SCL_TRY(parse_statement(program, &yes));
  SCL_TRY(scl_stan_push(program, test));
  SCL_TRY(scl_stan_push(program, yes));
  SCL_TRY(scl_stan_push(program, NULL));
  return scl_stan_make(program, SCL_STAN_IF_NODE, position, mark, out);
}

static scl_status parse_if(scl_stan_program *program, scl_stan_node **out) {
  scl_stan_node **to = out;
  bool otherwise, again;
  do {
    SCL_TRY(parse_lone_if(program, to));
    scl_stan_deepen(*out, (*to)->depth);
    SCL_TRY(scl_stan_accept(program, SCL_STAN_T_ELSE, &otherwise));
    again = otherwise && scl_stan_looks_at(program, SCL_STAN_T_IF);
    scl_stan_node **next = &(*to)->child[2];
    if (otherwise && !again) {
      SCL_TRY(parse_statement(program, next));
      scl_stan_deepen(*out, (*next)->depth + 1);
    }
    to = next;
  } while (again);
  return SCL_OK;
}

static scl_status parse_while(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at;
  scl_stan_node *test, *body;
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(parse_condition(program, "after 'while'", &test));
  SCL_TRY(parse_statement(program, &body));
  return scl_stan_make_of(program, SCL_STAN_WHILE_NODE, position, 2, test, body, out);
}

static scl_status parse_for(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  scl_stan_name *name;
  scl_stan_node *part;
  bool range;
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN, "after 'for'"));
  SCL_TRY(scl_stan_expect_name(program, "the name of a loop's variable", &name));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_IN, "after the loop's variable"));
  SCL_TRY(scl_stan_parse_expression(program, &part));
  SCL_TRY(scl_stan_push(program, part));
  SCL_TRY(scl_stan_accept(program, SCL_STAN_T_COLON, &range));
  if (range) {
    SCL_TRY(scl_stan_parse_expression(program, &part));
    SCL_TRY(scl_stan_push(program, part));
  }
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_CLOSE, "after the loop's range"));
  SCL_TRY(parse_statement(program, &part));
  SCL_TRY(scl_stan_push(program, part));
  SCL_TRY(scl_stan_make(program, range ? SCL_STAN_FOR_NODE : SCL_STAN_FOREACH_NODE, position, mark,
                        out));
  (*out)->name = name;
  return SCL_OK;
}

/* ---- others --------------------------------------------------------------------------------- */

static scl_status parse_return(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at;
  scl_stan_node *value = NULL;
  SCL_TRY(scl_stan_advance(program));
  if (!scl_stan_looks_at(program, SCL_STAN_T_SEMICOLON)) {
    SCL_TRY(scl_stan_parse_expression(program, &value));
  }
  SCL_TRY(scl_stan_make_of(program, SCL_STAN_RETURN_NODE, position, 1, value, NULL, out));
  return scl_stan_expect(program, SCL_STAN_T_SEMICOLON, "after 'return'");
}

/* 'break' and 'continue'. */
static scl_status parse_word(scl_stan_program *program, scl_stan_kind kind, scl_stan_node **out) {
  SCL_TRY(scl_stan_make_of(program, kind, program->token.at, 0, NULL, NULL, out));
  SCL_TRY(scl_stan_advance(program));
  return scl_stan_expect(program, SCL_STAN_T_SEMICOLON, "after the statement");
}

/* 'print', 'reject' and 'fatal_error'. */
static scl_status parse_message(scl_stan_program *program, scl_stan_kind kind,
                                scl_stan_node **out) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN, "after the statement's name"));
  SCL_TRY(scl_stan_parse_list(program, SCL_STAN_T_CLOSE, "after the arguments"));
  SCL_TRY(scl_stan_make(program, kind, position, mark, out));
  return scl_stan_expect(program, SCL_STAN_T_SEMICOLON, "after the statement");
}

static scl_status parse_profile(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at;
  SCL_TRY(scl_stan_advance(program));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN, "after 'profile'"));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_STRING, "as the profile's name"));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_CLOSE, "after the profile's name"));
  SCL_TRY(scl_stan_expect(program, SCL_STAN_T_OPEN_BRACE, "to begin the profile"));
  return scl_stan_parse_body(program, SCL_STAN_PROFILE_NODE, position, out);
}

/* Whether the '{' of the token begins an array before '~', not a block: what is up to its '}' is
 * short. */
static scl_status is_sampled_array(scl_stan_program *program, bool *out) {
  scl_stan_token token = program->token;
  unsigned open = 0;
  *out = false;
  for (unsigned k = 0; k < 256 && token.kind != SCL_STAN_T_SEMICOLON; k++) {
    if (token.kind == SCL_STAN_T_OPEN_BRACE) open++;
    if (token.kind == SCL_STAN_T_CLOSE_BRACE) open--;
    SCL_TRY(scl_stan_lex(program, token.at + token.length, &token));
    if (open == 0 || token.kind == SCL_STAN_T_END) break;
  }
  *out = open == 0 && token.kind == SCL_STAN_T_TILDE;
  return SCL_OK;
}

static scl_status parse_block(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at;
  bool array;
  SCL_TRY(is_sampled_array(program, &array));
  if (array) return parse_from_expression(program, out);
  SCL_TRY(scl_stan_advance(program));
  return scl_stan_parse_body(program, SCL_STAN_BLOCK_NODE, position, out);
}

/* Declarations that are a loop's or condition's whole body. */
static scl_status parse_lone_declaration(scl_stan_program *program, scl_stan_node **out) {
  const uint32_t position = program->token.at, mark = program->stack_count;
  SCL_TRY(scl_stan_parse_declaration(program));
  return scl_stan_make(program, SCL_STAN_BLOCK_NODE, position, mark, out);
}

static scl_status parse_empty(scl_stan_program *program, scl_stan_node **out) {
  SCL_TRY(scl_stan_make_of(program, SCL_STAN_BLOCK_NODE, program->token.at, 0, NULL, NULL, out));
  return scl_stan_advance(program);
}

static scl_status parse_by_token(scl_stan_program *program, scl_stan_node **out) {
  const int kind = program->token.kind;
  switch (kind) {
  case SCL_STAN_T_OPEN_BRACE:
    return parse_block(program, out);
  case SCL_STAN_T_SEMICOLON:
    return parse_empty(program, out);
  case SCL_STAN_T_IF:
    return parse_if(program, out);
  case SCL_STAN_T_WHILE:
    return parse_while(program, out);
  case SCL_STAN_T_FOR:
    return parse_for(program, out);
  case SCL_STAN_T_RETURN:
    return parse_return(program, out);
  case SCL_STAN_T_BREAK:
    return parse_word(program, SCL_STAN_BREAK_NODE, out);
  case SCL_STAN_T_CONTINUE:
    return parse_word(program, SCL_STAN_CONTINUE_NODE, out);
  case SCL_STAN_T_PRINT:
    return parse_message(program, SCL_STAN_PRINT_NODE, out);
  case SCL_STAN_T_REJECT:
    return parse_message(program, SCL_STAN_REJECT_NODE, out);
  case SCL_STAN_T_FATAL:
    return parse_message(program, SCL_STAN_FATAL_NODE, out);
  case SCL_STAN_T_PROFILE:
    return parse_profile(program, out);
  case SCL_STAN_T_TARGET:
    return parse_increment(program, SCL_STAN_TARGET_NODE, out);
  case SCL_STAN_T_JACOBIAN:
    return parse_increment(program, SCL_STAN_JACOBIAN_NODE, out);
  case SCL_STAN_T_NAME:
    return parse_from_name(program, out);
  case SCL_STAN_T_ELSE:
    return scl_stan_fail(program, program->token.at, "this 'else' belongs to no 'if'");
  default:
    break;
  }
  if (scl_stan_begins_type(kind)) return parse_lone_declaration(program, out);
  return parse_from_expression(program, out);
}

static scl_status parse_statement(scl_stan_program *program, scl_stan_node **out) {
  SCL_TRY(scl_stan_enter(program, program->token.at));
  SCL_TRY(parse_by_token(program, out));
  program->depth--;
  return SCL_OK;
}

scl_status scl_stan_parse_body(scl_stan_program *program, scl_stan_kind kind, uint32_t position,
                               scl_stan_node **out) {
  const uint32_t mark = program->stack_count;
  while (!scl_stan_looks_at(program, SCL_STAN_T_CLOSE_BRACE)) {
    if (scl_stan_looks_at(program, SCL_STAN_T_END)) {
      return scl_stan_fail(program, position, "this block is not closed by '}'");
    }
    if (scl_stan_looks_at(program, SCL_STAN_T_SEMICOLON)) {
      SCL_TRY(scl_stan_advance(program));
    } else if (scl_stan_begins_type(program->token.kind)) {
      SCL_TRY(scl_stan_parse_declaration(program));
    } else {
      scl_stan_node *statement;
      SCL_TRY(parse_statement(program, &statement));
      SCL_TRY(scl_stan_push(program, statement));
    }
  }
  SCL_TRY(scl_stan_advance(program));
  return scl_stan_make(program, kind, position, mark, out);
}
