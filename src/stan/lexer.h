/* Words and signs of a Stan program. */
#ifndef SCL_STAN_LEXER_H
#define SCL_STAN_LEXER_H

#include "stan/reader.h"

#define SCL_STAN_KEYWORD(id, text) SCL_STAN_T_##id,
#define SCL_STAN_SIGN(id, text) SCL_STAN_T_##id,
#define SCL_STAN_TYPE(id, text, base, fewest, most, constraint, plain) SCL_STAN_T_TYPE_##id,
enum {
  SCL_STAN_T_END = 0,
  SCL_STAN_T_NAME,
  SCL_STAN_T_INTEGER,
  SCL_STAN_T_REAL,
  SCL_STAN_T_IMAGINARY,
  SCL_STAN_T_STRING,
#include "stan/tokens.def"
  SCL_STAN_T_TYPES,
  SCL_STAN_T_BEFORE_TYPES = SCL_STAN_T_TYPES - 1,
#include "stan/types.def"
  SCL_STAN_TOKENS
};
#undef SCL_STAN_KEYWORD
#undef SCL_STAN_SIGN
#undef SCL_STAN_TYPE

/* The row of types.def of a token, or NULL. */
typedef struct {
  const char *text;
  scl_stan_base base;
  int fewest, most;
  scl_stan_constraint constraint;
  bool plain; /* a type of functions, too */
} scl_stan_type_word;
const scl_stan_type_word *scl_stan_type_word_of(int token);

/* Makes the keywords known as names; before the first token. */
scl_status scl_stan_add_keywords(scl_stan_program *program);

/* The first token at or after `from`. SCL_E_STAN if there is none: an unknown sign, a comment or
 * string that is not closed. */
scl_status scl_stan_lex(scl_stan_program *program, uint32_t from, scl_stan_token *out);

/* For messages: "';'", "a name"; of a token of the source also its text, cut. */
const char *scl_stan_token_name(int kind);
const char *scl_stan_token_text(const scl_stan_program *program, const scl_stan_token *token,
                                char *text, size_t size);

#endif
