#include "stan/lexer.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  int kind;
  const char *text;
} word;

static const word keywords[] = {
#define SCL_STAN_KEYWORD(id, text) {SCL_STAN_T_##id, text},
#define SCL_STAN_SIGN(id, text)
#define SCL_STAN_TYPE(id, text, base, fewest, most, constraint, plain) {SCL_STAN_T_TYPE_##id, text},
#include "stan/tokens.def"
#include "stan/types.def"
#undef SCL_STAN_KEYWORD
#undef SCL_STAN_SIGN
#undef SCL_STAN_TYPE
};

static const word signs[] = {
#define SCL_STAN_KEYWORD(id, text)
#define SCL_STAN_SIGN(id, text) {SCL_STAN_T_##id, text},
#include "stan/tokens.def"
#undef SCL_STAN_KEYWORD
#undef SCL_STAN_SIGN
};

static const scl_stan_type_word type_words[] = {
#define SCL_STAN_TYPE(id, text, base, fewest, most, constraint, plain)                             \
  {text, SCL_STAN_##base, fewest, most, SCL_STAN_C_##constraint, plain},
#include "stan/types.def"
#undef SCL_STAN_TYPE
};

const scl_stan_type_word *scl_stan_type_word_of(int token) {
  return token >= SCL_STAN_T_TYPES && token < SCL_STAN_TOKENS
             ? &type_words[token - SCL_STAN_T_TYPES]
             : NULL;
}

scl_status scl_stan_add_keywords(scl_stan_program *program) {
  for (size_t k = 0; k < sizeof keywords / sizeof *keywords; k++) {
    scl_stan_name *name;
    SCL_TRY(scl_stan_intern(program, keywords[k].text, strlen(keywords[k].text), &name));
    name->keyword = keywords[k].kind;
  }
  return SCL_OK;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

/* Goes past white space and comments. */
static scl_status skip_space(const scl_stan_program *program, uint32_t *at) {
  const char *s = program->source;
  for (uint32_t k = *at;;) {
    if (s[k] != '\0' && strchr(" \t\r\n\f\v", s[k]) != NULL) {
      k++;
    } else if (s[k] == '#' || (s[k] == '/' && s[k + 1] == '/')) {
      while (s[k] != '\0' && s[k] != '\n') k++;
    } else if (s[k] == '/' && s[k + 1] == '*') {
      const char *end = strstr(s + k + 2, "*/");
      if (end == NULL) return scl_stan_fail(program, k, "this comment is not closed by '*/'");
      k = (uint32_t)(end - s) + 2;
    } else {
      *at = k;
      return SCL_OK;
    }
  }
}

/* Digits, which single underscores may separate. */
static uint32_t skip_digits(const char *s, uint32_t k) {
  while (is_digit(s[k]) || (s[k] == '_' && is_digit(s[k - 1]) && is_digit(s[k + 1]))) k++;
  return k;
}

static void lex_number(const char *s, scl_stan_token *token) {
  uint32_t k = token->at;
  token->kind = SCL_STAN_T_INTEGER;
  if (is_digit(s[k])) k = skip_digits(s, k);
  if (s[k] == '.') {
    token->kind = SCL_STAN_T_REAL;
    k++;
    if (is_digit(s[k])) k = skip_digits(s, k);
  }
  if (s[k] == 'e' || s[k] == 'E') {
    const uint32_t digits = k + 1 + (s[k + 1] == '+' || s[k + 1] == '-');
    if (is_digit(s[digits])) {
      token->kind = SCL_STAN_T_REAL;
      k = skip_digits(s, digits);
    }
  }
  if (s[k] == 'i' && !is_name(s[k + 1])) {
    token->kind = SCL_STAN_T_IMAGINARY;
    k++;
  }
  token->length = k - token->at;
}

static scl_status lex_name(scl_stan_program *program, scl_stan_token *token) {
  const char *s = program->source + token->at;
  uint32_t length = 1;
  while (is_name(s[length])) length++;
  SCL_TRY(scl_stan_intern(program, s, length, &token->name));
  token->length = length;
  token->kind = token->name->keyword != 0 ? token->name->keyword : SCL_STAN_T_NAME;
  return SCL_OK;
}

static scl_status lex_string(scl_stan_program *program, scl_stan_token *token) {
  const char *s = program->source + token->at;
  uint32_t length = 1;
  while (s[length] != '"' && s[length] != '\n' && s[length] != '\0') length++;
  if (s[length] != '"') {
    return scl_stan_fail(program, token->at, "this string is not closed by '\"' on its line");
  }
  token->kind = SCL_STAN_T_STRING;
  token->length = length + 1;
  return scl_stan_intern(program, s + 1, length - 1, &token->name);
}

scl_status scl_stan_lex(scl_stan_program *program, uint32_t from, scl_stan_token *out) {
  SCL_TRY(skip_space(program, &from));
  const char *s = program->source + from;
  scl_stan_token token = {.at = from, .kind = SCL_STAN_T_END};
  if (s[0] == '\0') {
    *out = token;
    return SCL_OK;
  }
  if (is_letter(s[0])) {
    SCL_TRY(lex_name(program, &token));
  } else if (is_digit(s[0]) || (s[0] == '.' && is_digit(s[1]))) {
    lex_number(program->source, &token);
  } else if (s[0] == '"') {
    SCL_TRY(lex_string(program, &token));
  } else {
    for (size_t k = 0; token.length == 0 && k < sizeof signs / sizeof *signs; k++) {
      const size_t length = strlen(signs[k].text);
      if (strncmp(s, signs[k].text, length) == 0) {
        token.length = (uint32_t)length;
        token.kind = signs[k].kind;
      }
    }
  }
  if (token.length == 0) {
    return scl_stan_fail(program, from,
                         (unsigned char)s[0] >= 0x80
                             ? "a character that is not ASCII can only be in comments and strings"
                         : s[0] == '_' ? "a name begins with a letter"
                                       : "this character has no meaning in Stan");
  }
  *out = token;
  return SCL_OK;
}

static const char *const token_names[SCL_STAN_TOKENS] = {
    [SCL_STAN_T_END] = "the end of the program",
    [SCL_STAN_T_NAME] = "a name",
    [SCL_STAN_T_INTEGER] = "an integer",
    [SCL_STAN_T_REAL] = "a number",
    [SCL_STAN_T_IMAGINARY] = "an imaginary number",
    [SCL_STAN_T_STRING] = "a string",
#define SCL_STAN_KEYWORD(id, text) [SCL_STAN_T_##id] = "'" text "'",
#define SCL_STAN_SIGN(id, text) [SCL_STAN_T_##id] = "'" text "'",
#define SCL_STAN_TYPE(id, text, base, fewest, most, constraint, plain)                             \
  [SCL_STAN_T_TYPE_##id] = "'" text "'",
#include "stan/tokens.def"
#include "stan/types.def"
#undef SCL_STAN_KEYWORD
#undef SCL_STAN_SIGN
#undef SCL_STAN_TYPE
};

const char *scl_stan_token_name(int kind) {
  return token_names[kind];
}

const char *scl_stan_token_text(const scl_stan_program *program, const scl_stan_token *token,
                                char *text, size_t size) {
  if (token->kind == SCL_STAN_T_END) {
    snprintf(text, size, "%s", token_names[token->kind]);
  } else {
    const int length = token->length < 40 ? (int)token->length : 40;
    snprintf(text, size, token->kind == SCL_STAN_T_STRING ? "a string" : "'%.*s'", length,
             program->source + token->at);
  }
  return text;
}
