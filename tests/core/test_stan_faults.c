/* Programs that the reader of Stan programs refuses: where, and in which words. */
#include <stdio.h>
#include <string.h>

#include "stan_read.h"
#include "test.h"

static const struct {
  const char *text;
  int line, column;
  const char *message;
} faults[] = {
#define STAN_FAULT(text, line, column, message) {text, line, column, message},
#include "stan_faults.def"
#include "stan_slips.def"
#undef STAN_FAULT
};

/* How many sizes a type has. */
static void check_sizes(void) {
  static const struct {
    const char *word;
    int fewest, most;
  } types[] = {{"int", 0, 0},
               {"real", 0, 0},
               {"complex", 0, 0},
               {"vector", 1, 1},
               {"row_vector", 1, 1},
               {"matrix", 2, 2},
               {"complex_vector", 1, 1},
               {"complex_row_vector", 1, 1},
               {"complex_matrix", 2, 2},
               {"ordered", 1, 1},
               {"positive_ordered", 1, 1},
               {"simplex", 1, 1},
               {"unit_vector", 1, 1},
               {"sum_to_zero_vector", 1, 1},
               {"sum_to_zero_matrix", 2, 2},
               {"cholesky_factor_corr", 1, 1},
               {"cholesky_factor_cov", 1, 2},
               {"corr_matrix", 1, 1},
               {"cov_matrix", 1, 1},
               {"column_stochastic_matrix", 2, 2},
               {"row_stochastic_matrix", 2, 2}};
  static const char *const sizes[] = {"", "[2]", "[2, 2]", "[2, 2, 2]"};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    for (int n = 0; n < 4; n++) {
      char text[80];
      const int length = snprintf(text, sizeof text, "data { %s%s x; }", types[k].word, sizes[n]);
      const bool fits = n >= types[k].fewest && n <= types[k].most;
      scl_stan_program *program = NULL;
      CHECK_STATUS(fits ? SCL_OK : SCL_E_STAN, stan_read(text, (size_t)length, &program));
      scl_stan_free(program);
    }
  }
}

/* Names of all lengths are whole in messages. */
static void check_names(void) {
  char name[40] = "", text[120], message[120];
  for (int k = 0; k < 32; k++) {
    name[k] = 'x';
    const int length = snprintf(text, sizeof text, "model { real %s; real %s; }", name, name);
    snprintf(message, sizeof message, "the name '%s' is in use: line 1 declares it", name);
    scl_stan_program *program = NULL;
    CHECK_STATUS(SCL_E_STAN, stan_read(text, (size_t)length, &program));
    CHECK(strcmp(scl_fault_last()->message, message) == 0);
  }
}

/* Text that is no UTF-8, and text that is. */
static void check_encodings(void) {
  static const struct {
    const char *text;
    int column; /* 0: none */
  } texts[] = {{"// \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\nmodel { }", 0},
               {"\xef\xbb\xbfmodel { }", 0},
               {"// \xc3", 4},
               {"// \xc3\xa9 \xe9 ", 6},
               {"// \xc0\x80", 4},
               {"// \xed\xa0\x80", 4},
               {"// \xf5\x80\x80\x80", 4},
               {"// \xe2\x82", 4},
               {"model { print(\"\xff\"); }", 16},
               {"model { real \xc3\xa9; }", 14}};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    scl_stan_program *program = NULL;
    CHECK_STATUS(texts[k].column > 0 ? SCL_E_STAN : SCL_OK,
                 stan_read(texts[k].text, strlen(texts[k].text), &program));
    CHECK(texts[k].column == 0 || scl_fault_last()->column == texts[k].column);
    scl_stan_free(program);
  }
  scl_stan_program *program = NULL;
  CHECK_STATUS(SCL_E_STAN, stan_read("model {\0 }", 10, &program));
  CHECK(scl_fault_last()->column == 8);
}

/* The line of a fault, and how many characters of it come before the column. */
static void check_lines(void) {
  scl_stan_program *program = NULL;
  const char text[] = "model {\r\n\tprint(\"\xc3\xa9\", y);\r\n}\n";
  CHECK_STATUS(SCL_E_STAN, stan_read(text, sizeof text - 1, &program));
  const scl_fault *fault = scl_fault_last();
  CHECK(strcmp(fault->log, " print(\"\xc3\xa9\", y);") == 0);
  CHECK(fault->line == 2 && fault->column == 13 && fault->index == 12);
  /* Of a long name the end, by whole characters. */
  char name[100] = "ab";
  for (int k = 0; k < 40; k++) strcat(name, "\xc3\xa9");
  strcat(name, ".stan");
  for (int k = 0; k < 2; k++) {
    const scl_stan_input input = {"x", 1, name + k, NULL, 0};
    CHECK_STATUS(SCL_E_STAN, scl_stan_read(&input, &program));
    CHECK(strncmp(fault->where, "...\xc3\xa9", 5) == 0 &&
          strstr(fault->where, "\xa9.stan") != NULL);
  }
}

void test_stan_faults(scl_context *ctx) {
  if (!scl_context_is_host(ctx)) return;
  for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
    scl_stan_program *program = NULL;
    CHECK_STATUS(SCL_E_STAN, stan_read(faults[k].text, strlen(faults[k].text), &program));
    const scl_fault *fault = scl_fault_last();
    const bool same = fault->line == faults[k].line && fault->column == faults[k].column &&
                      strcmp(fault->message, faults[k].message) == 0;
    CHECK(same);
    if (!same) {
      printf("       %s\n       %d:%d: %s\n", faults[k].text, fault->line, fault->column,
             fault->message);
    }
    scl_stan_free(program);
  }
  check_sizes();
  check_names();
  check_encodings();
  check_lines();
}
