/* Mutated Stan programs: each is read or refused with a position, in time linear in its length, and
 * leaves nothing behind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stan_read.h"
#include "test.h"

enum { MOST = 16, ROOM = 1 << 15 };

static size_t pick(size_t n) {
  const double u = test_random() / 2 + 0.5;
  return (size_t)(u * (double)n) % n;
}

/* Pieces that mutations put in: words and signs of the language, and text that is none. */
static const char *const pieces[] = {"{",
                                     "}",
                                     "(",
                                     ")",
                                     "[",
                                     "]",
                                     ";",
                                     ",",
                                     ":",
                                     "|",
                                     "~",
                                     "=",
                                     "+=",
                                     "'",
                                     "?",
                                     "<lower=0>",
                                     "array[",
                                     "int ",
                                     "real ",
                                     "vector[",
                                     "data ",
                                     "tuple(",
                                     "for (",
                                     "if (",
                                     "else ",
                                     "while (",
                                     "return ",
                                     "target",
                                     "T[",
                                     "1",
                                     "2.5",
                                     "3i",
                                     "\"",
                                     "/*",
                                     "*/",
                                     "//",
                                     "#",
                                     "\n",
                                     "_lpdf",
                                     "_rng",
                                     "\xc3",
                                     "\xc3\xa9",
                                     ".",
                                     ".1",
                                     "%/%",
                                     "^",
                                     "\\",
                                     "print(",
                                     "model {",
                                     "functions {",
                                     "#include self.stan\n",
                                     "void ",
                                     "jacobian += ",
                                     "normal",
                                     "matrix",
                                     "complex "};

static void replace(char *text, size_t *length, size_t at, size_t drop, const char *with,
                    size_t size) {
  if (*length - drop + size >= ROOM) return;
  memmove(text + at + size, text + at + drop, *length - at - drop);
  memcpy(text + at, with, size);
  *length = *length - drop + size;
}

static void mutate(char *text, size_t *length, char *const *texts, const size_t *lengths,
                   size_t count) {
  const size_t at = pick(*length + 1), left = *length - at, kind = pick(6);
  char byte = (char)(1 + pick(255));
  char copy[256];
  if (kind == 0) { /* drop a few bytes */
    replace(text, length, at, left == 0 ? 0 : pick(left < 20 ? left + 1 : 20), "", 0);
  } else if (kind == 1) { /* another byte */
    replace(text, length, at, left > 0, &byte, 1);
  } else if (kind <= 3) { /* a word of the language */
    const char *piece = pieces[pick(sizeof pieces / sizeof *pieces)];
    replace(text, length, at, kind == 2 || left == 0 ? 0 : 1, piece, strlen(piece));
  } else { /* a stretch of this program, or of another */
    const size_t other = pick(count);
    const char *source = kind == 4 ? text : texts[other];
    const size_t size = kind == 4 ? *length : lengths[other], from = pick(size + 1);
    const size_t take = pick((size - from < 200 ? size - from : 200) + 1);
    memcpy(copy, source + from, take);
    replace(text, length, at, left == 0 ? 0 : pick(left < 50 ? left + 1 : 50), copy, take);
  }
}

static bool is_sound(const char *text, size_t length) {
  scl_stan_program *program = NULL;
  const scl_status status = stan_read(text, length, &program);
  scl_stan_free(program);
  if (status == SCL_OK) return true;
  const scl_fault *fault = scl_fault_last();
  return status == SCL_E_STAN && fault->line > 0 && fault->column > 0 && fault->message[0] != '\0';
}

/* STATCL_TEST_PROGRAMS sets how many programs. */
void test_stan_fuzz(scl_context *ctx) {
  if (!scl_context_is_host(ctx)) return;
  const char *number = getenv("STATCL_TEST_PROGRAMS");
  const long programs = number != NULL ? atol(number) : test_quick() ? 3000 : 1000000;
  char *texts[MOST];
  size_t lengths[MOST], count = 0;
  for (; stan_programs[count] != NULL; count++) {
    char path[80];
    snprintf(path, sizeof path, "stan/%s.stan", stan_programs[count]);
    texts[count] = stan_text(path, &lengths[count]);
  }
  for (long k = 0; k < programs; k++) {
    static char text[ROOM];
    const size_t which = pick(count), mutations = 1 + pick(4);
    size_t length = lengths[which];
    memcpy(text, texts[which], length);
    for (size_t i = 0; i < mutations; i++) mutate(text, &length, texts, lengths, count);
    if (is_sound(text, length)) continue;
    CHECK(!"a mutated program is read or refused");
    printf("       number %ld: %.*s\n", k, (int)length, text);
    break;
  }
  CHECK(programs > 0);
  for (size_t k = 0; k < count; k++) free(texts[k]);
}
