/* Tries what kernels are made of, once for each device, driver and version, before the device is
 * used: arithmetic, conversions, integers, exchange between work-items
 * (kernels/include/primitives.h), in the options of all kernels. The expected values are not the
 * host's but exact ones. A device that computes a wrong one is refused: no operator can be replaced
 * in OpenCL C, and a poor division would be in every kernel. Programs of matrix instructions have
 * trials of their own (variant.c). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cl/runtime/launch.h"
#include "engine/cl/runtime/private.h"
#include "engine/cl/runtime/trial.h"
#include "kernels/include/primitives.h"

typedef struct {
  int what;
  double number[4]; /* a, b, c and the value */
} trial_row;

static const trial_row rows[] = {
#define ROW(name, a, b, c, value) {PRIMITIVE_##name, {a, b, c, value}},
#include "engine/cl/runtime/primitives.def"
#undef ROW
};

enum {
  TABLE_ROWS = sizeof rows / sizeof *rows,
  TABLE_ITEMS = (TABLE_ROWS + PRIMITIVES_ITEMS - 1) / PRIMITIVES_ITEMS * PRIMITIVES_ITEMS,
  EXCHANGE_STEPS = 6,
  EXCHANGE = PRIMITIVE_COUNT, /* two more that can be wrong */
  ATOMICS,
  KINDS
};

static const struct {
  const char *name, *words;
  uint64_t ulps;
} kinds[KINDS] = {
#define PRIMITIVE(name, words, ulps, value) {#name, words, ulps},
    PRIMITIVES(PRIMITIVE)
#undef PRIMITIVE
        {"exchange", "local memory with barriers", 0},
    {"atomics", "atomic operations", 0},
};

/* For each kind whether it is wrong, and the largest relative error that was seen. */
typedef struct {
  bool wrong[KINDS];
  double error[KINDS];
} findings;

/* ---- the table ------------------------------------------------------------------------------- */
static void fill_table(double *table) {
  const int counters[PRIMITIVES_COUNTERS] = {0, 0, 1000};
  memset(table, 0, sizeof *table * TABLE_ITEMS * PRIMITIVES_COLUMNS);
  for (int i = 0; i < TABLE_ROWS; i++) {
    table[i] = rows[i].what;
    for (int k = 0; k < 3; k++) table[i + (k + 1) * TABLE_ITEMS] = rows[i].number[k];
  }
  memcpy(table + 6 * TABLE_ITEMS, counters, sizeof counters);
}

/* Doubles in their order, as whole numbers; both zeros are the same. */
static int64_t rank(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits < 0 ? INT64_MIN - bits : bits;
}

static bool is_within(double x, double y, uint64_t ulps) {
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  const int64_t a = rank(x), b = rank(y);
  return (a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a) <= ulps;
}

static bool is_right(const trial_row *row, double value) {
  if (is_within(value, row->number[3], kinds[row->what].ulps)) return true;
  if (row->what != PRIMITIVE_contracted) return false;
  const volatile double product = row->number[0] * row->number[1]; /* not contracted here */
  return is_within(value, product + row->number[2], 0);
}

static void look_at_values(const double *table, findings *f) {
  for (int i = 0; i < TABLE_ROWS; i++) {
    const double value = table[i + 4 * TABLE_ITEMS], right = rows[i].number[3];
    const double error = fabs(value - right) / fabs(right);
    if (is_right(&rows[i], value)) continue;
    f->wrong[rows[i].what] = true;
    if (isfinite(error) && error > f->error[rows[i].what]) f->error[rows[i].what] = error;
  }
}

static void look_at_groups(const double *table, findings *f) {
  double before[PRIMITIVES_ITEMS], number[PRIMITIVES_ITEMS];
  int counters[PRIMITIVES_COUNTERS];
  memcpy(counters, table + 6 * TABLE_ITEMS, sizeof counters);
  for (int first = 0; first < TABLE_ITEMS; first += PRIMITIVES_ITEMS) {
    for (int i = 0; i < PRIMITIVES_ITEMS; i++) number[i] = first + i;
    for (int s = 0; s < EXCHANGE_STEPS; s++) {
      memcpy(before, number, sizeof before);
      for (int i = 0; i < PRIMITIVES_ITEMS; i++)
        number[i] = 0.5 * before[i] + before[(i + (1 << s)) % PRIMITIVES_ITEMS];
    }
    if (memcmp(number, table + 5 * TABLE_ITEMS + first, sizeof number) != 0)
      f->wrong[EXCHANGE] = true;
  }
  f->wrong[ATOMICS] = counters[0] != TABLE_ITEMS || counters[1] != 0x7fffffff ||
                      counters[2] != 1000 - (TABLE_ITEMS - 1);
}

static scl_status run_table(scl_cl_context *cl, findings *f) {
  double table[TABLE_ITEMS * PRIMITIVES_COLUMNS];
  scl_block block = {0};
  scl_cl_op op;
  scl_status status;
  fill_table(table);
  SCL_GO(scl_cl_trial_upload(cl, table, TABLE_ITEMS, PRIMITIVES_COLUMNS, &block));
  scl_cl_op_begin(&op, &cl->base);
  SCL_GO(scl_cl_op_end(&op,
                       scl_launch_primitives_try(&op, scl_cl_range_1(TABLE_ITEMS, PRIMITIVES_ITEMS),
                                                 scl_inout(block), EXCHANGE_STEPS)));
  SCL_GO(scl_cl_trial_download(cl, block, table, TABLE_ITEMS));
  look_at_values(table, f);
  look_at_groups(table, f);
  for (int k = 0; k < KINDS; k++)
    if (scl_cl_primitive_fault(kinds[k].name)) f->wrong[k] = true;
done:
  scl_buffer_release(block.buffer);
  scl_cl_pool_free(cl);
  cl->base.memory.peak = 0;
  return status;
}

/* ---- the verdict ----------------------------------------------------------------------------- */
#define TO_DO "update its driver (%s), or use another device or the host"

static scl_status judge(const scl_cl_context *cl, const findings *f) {
  char words[256] = "";
  for (int k = 0; k < KINDS; k++) {
    const size_t used = strlen(words);
    if (!f->wrong[k] || strstr(words, kinds[k].words) != NULL) continue;
    snprintf(words + used, sizeof words - used, "%s%s", used > 0 ? ", " : "", kinds[k].words);
    const size_t now = strlen(words);
    if (f->error[k] > 0)
      snprintf(words + now, sizeof words - now, " (relative error %.2g)", f->error[k]);
  }
  if (words[0] == '\0') return SCL_OK;
  return scl_fail(SCL_E_REFUSED, "device '%s' computes wrongly: %s: " TO_DO, cl->base.label, words,
                  cl->info.driver);
}

static scl_status run_trial(scl_cl_context *cl) {
  findings f;
  memset(&f, 0, sizeof f);
  scl_status status = run_table(cl, &f);
  if (status == SCL_OK) status = judge(cl, &f);
  scl_fault fault = *scl_fault_last();
  if (status == SCL_E_BUILD && fault.cl_code == CL_BUILD_PROGRAM_FAILURE) {
    status = scl_fail(SCL_E_REFUSED, "device '%s' does not compile what it is tried with: " TO_DO,
                      cl->base.label, cl->info.driver);
    memcpy(scl_fault_edit()->log, fault.log, sizeof fault.log);
  }
  snprintf(scl_fault_edit()->device, sizeof fault.device, "%s", cl->base.name);
  return status;
}

/* Of this process: a context may be opened again. Without memory for a refusal it is found again.
 */
enum { MOST_VERDICTS = 64 };
static struct {
  scl_digest name;
  scl_fault *refusal; /* NULL: the device is right */
} verdict[MOST_VERDICTS];
static int verdicts;

void scl_cl_primitives_forget(void) {
  while (verdicts > 0) free(verdict[--verdicts].refusal);
}

static void keep_verdict(const scl_digest *name, scl_status status) {
  scl_fault *refusal = status == SCL_OK ? NULL : malloc(sizeof *refusal);
  if (verdicts == MOST_VERDICTS || (status != SCL_OK && refusal == NULL)) {
    free(refusal);
    return;
  }
  if (refusal != NULL) *refusal = *scl_fault_last();
  verdict[verdicts].name = *name;
  verdict[verdicts++].refusal = refusal;
}

/* A name for the verdict: of the sources, the options, the numbers, the device and its driver. */
static scl_status name_verdict(const scl_cl_context *cl, scl_digest *name) {
  static const char *const files[] = {"include/port.h", "include/primitives.h",
                                      "portable/primitives.cl"};
  enum { FILES = sizeof files / sizeof *files };
  char *text[FILES] = {NULL}, options[SCL_CL_OPTIONS];
  scl_status status;
  for (int k = 0; k < FILES; k++) SCL_GO(scl_cl_source_read(files[k], &text[k]));
  scl_cl_build_options(cl, options);
  scl_cl_store_name(cl, FILES, (const char **)text, options, name);
  for (int i = 0; i < TABLE_ROWS; i++) scl_digest_add(name, rows[i].number, sizeof rows[i].number);
done:
  for (int k = 0; k < FILES; k++) free(text[k]);
  return status;
}

scl_status scl_cl_primitives_try(scl_cl_context *cl) {
  static const unsigned char right[] = "right";
  scl_digest name;
  SCL_TRY(name_verdict(cl, &name));
  for (int i = 0; i < verdicts; i++) {
    if (memcmp(&verdict[i].name, &name, sizeof name) != 0) continue;
    if (verdict[i].refusal == NULL) return SCL_OK;
    *scl_fault_edit() = *verdict[i].refusal;
    return verdict[i].refusal->status;
  }
  scl_status status = SCL_OK;
  if (!scl_cl_store_holds(&name, right, sizeof right)) {
    const bool asks = scl_cl_asks(); /* a context is whole when it is open: this waits */
    if (asks) scl_device_beside_begin(false);
    status = run_trial(cl);
    if (asks) scl_device_beside_end(true);
    if (status == SCL_OK) scl_cl_store_put(&name, right, sizeof right);
  }
  if (status == SCL_OK || status == SCL_E_REFUSED) keep_verdict(&name, status);
  return status;
}
