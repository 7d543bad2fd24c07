#include "engine/cl/glm/shape.h"

#include <string.h>

/* ---- layouts ------------------------------------------------------------------------------ */

static const scl_cl_glm_shape layouts[] = {
#define LAYOUT(NAME, family, layout, predictors, eighths, groups, groups_lean, least, columns,     \
               least_rows)                                                                         \
  {#layout,                                                                                        \
   (predictors),                                                                                   \
   32,                                                                                             \
   16,                                                                                             \
   8 * (eighths),                                                                                  \
   false,                                                                                          \
   {(groups), (groups_lean)},                                                                      \
   {(least), (columns), (least_rows)},                                                             \
   true},
    SCL_GLM_MMA_LAYOUTS(LAYOUT, , )
#undef LAYOUT
#define LAYOUT(NAME, family, layout, predictors, row_lanes, lanes, columns, width, finish, groups, \
               groups_lean)                                                                        \
  {#layout,                                                                                        \
   (predictors),                                                                                   \
   (size_t)(row_lanes) * (lanes),                                                                  \
   (size_t)(width) * (row_lanes),                                                                  \
   (size_t)(lanes) * (columns),                                                                    \
   (finish) != 0,                                                                                  \
   {(groups), (groups_lean)},                                                                      \
   {0, 0, 0},                                                                                      \
   false},
        SCL_GLM_LAYOUTS(LAYOUT, , )
#undef LAYOUT
};

enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* The kernels of the layouts: those that add the groups' sums themselves have their own table. */
#define MMA_KERNEL(NAME, family, layout, ...) &scl_k_glm_##layout##_##family,
#define KERNEL(NAME, family, layout, predictors, row_lanes, lanes, columns, width, finish, ...)    \
  KERNEL_##finish(&scl_k_glm_##layout##_##family),
#define ROW(NAME, name, support, words, aux)                                                       \
  {SCL_GLM_MMA_LAYOUTS(MMA_KERNEL, NAME, name) SCL_GLM_LAYOUTS(KERNEL, NAME, name)},
#define KERNEL_0(kernel) kernel
#define KERNEL_1(kernel) NULL
static const scl_kernel_glm_pass *const pass_kernels[SCL_GLM_FAMILY_COUNT][LAYOUTS] = {
    SCL_GLM_FAMILIES(ROW)};
#undef KERNEL_0
#undef KERNEL_1
#undef MMA_KERNEL
#define MMA_KERNEL(NAME, family, layout, ...) NULL,
#define KERNEL_0(kernel) NULL
#define KERNEL_1(kernel) kernel
static const scl_kernel_glm_pass_and_sum *const sum_kernels[SCL_GLM_FAMILY_COUNT][LAYOUTS] = {
    SCL_GLM_FAMILIES(ROW)};
#undef KERNEL_0
#undef KERNEL_1
#undef MMA_KERNEL
#undef KERNEL
#undef ROW

#define WALK_KERNEL(NAME, family) [SCL_GLM_##NAME] = &scl_k_glm_16m8_walk_##family,
static const scl_kernel_glm_pass *const walk_kernels[SCL_GLM_FAMILY_COUNT] = {
    SCL_GLM_WALK_FAMILIES(WALK_KERNEL)};
#undef WALK_KERNEL

const scl_cl_glm_shape *scl_cl_glm_shape_of(int layout) {
  return &layouts[layout];
}

const scl_kernel_glm_pass *scl_cl_glm_pass_kernel(scl_glm_family family, int layout) {
  return pass_kernels[family][layout];
}

const scl_kernel_glm_pass_and_sum *scl_cl_glm_sum_kernel(scl_glm_family family, int layout) {
  return sum_kernels[family][layout];
}

const scl_kernel_glm_pass *scl_cl_glm_walk_kernel(scl_glm_family family, int layout) {
  return strcmp(layouts[layout].name, "16m8") == 0 ? walk_kernels[family] : NULL;
}

static scl_cl_program mma_program(scl_glm_family family, int layout) {
  return scl_cl_program_of(pass_kernels[family][layout]->id);
}

static const char *wanted_layout; /* for tests, and for trials */

void scl_cl_glm_force(const char *name) {
  wanted_layout = name;
}

scl_cl_glm_form scl_cl_glm_form_of(scl_cl_program which) {
  scl_cl_glm_form form = {0};
  for (int family = 0; family < SCL_GLM_FAMILY_COUNT; family++) {
    for (int l = 0; l < LAYOUTS; l++) {
      if (!layouts[l].mma || mma_program((scl_glm_family)family, l) != which) continue;
      form = (scl_cl_glm_form){(scl_glm_family)family, layouts[l].name, layouts[l].predictors,
                               layouts[l].slots};
    }
  }
  return form;
}

const char *scl_cl_glm_wanted(void) {
  return wanted_layout;
}

const char *scl_cl_glm_layout(size_t i) {
  if (i < LAYOUTS) return layouts[i].name;
  return i == LAYOUTS ? "rows" : NULL;
}

/* ---- choice ------------------------------------------------------------------------------- */

/* More parameter vectors than a row has predictors are cut into parts of PART of one launch. */
enum { PART = 8, MOST_PARTS = 16 };
_Static_assert((int)MOST_PARTS <= (int)GLM_COUNTERS, "each part of a walk has a counter");

size_t scl_cl_glm_cut_bytes(const scl_glm_pass *pass, size_t cells) {
  size_t cuts = GLM_FAMILY_AUX(pass->family) == SCL_GLM_CUTS ? pass->aux_sums : 0;
  return cuts * cells > 0 ? cuts * cells * sizeof(double) : sizeof(double);
}

/* Only on known devices does a fence order memory between groups. */
bool scl_cl_glm_may_meet(const scl_cl_context *cl) {
  return cl->info.capability >= 70 || wanted_layout != NULL;
}

static size_t most_predictors(const scl_glm_pass *pass, const scl_cl_glm_shape *l) {
  const bool in_parts = l->mma && l->predictors == PART && !GLM_FAMILY_COUPLED(pass->family);
  return in_parts ? PART * MOST_PARTS : l->predictors;
}

static bool layout_fits(scl_cl_context *cl, const scl_glm_pass *pass, const scl_cl_glm_shape *l) {
  size_t predictors = pass->vectors * pass->classes;
  bool worth =
      predictors >= l->least[0] && pass->x.ncol >= l->least[1] && pass->x.nrow >= l->least[2];
  if (wanted_layout != NULL ? strcmp(wanted_layout, l->name) != 0 : !worth) return false;
  if (l->finish && !scl_cl_glm_may_meet(cl)) return false;
  /* Local memory has room for so many columns of the metric of a walk. */
  if (l->finish && pass->directions > 1 + pass->x.ncol) return false;
  return predictors <= most_predictors(pass, l) && pass->x.ncol <= l->slots &&
         (pass->vectors == 1 || pass->classes == 1) && l->items <= cl->info.work_group &&
         scl_cl_glm_cut_bytes(pass, l->predictors * l->rows) <= SCL_CL_GLM_CUT_BYTES &&
         (!l->mma || scl_cl_may_try_large_mma(cl));
}

/* Pairs of rows need columns that start at even offsets; indices have 32 bits in the pass. */
scl_status scl_cl_glm_choose(scl_cl_context *cl, const scl_glm_pass *pass, int *out) {
  *out = -1;
  if (((pass->x.offset | pass->x.ld) & 1) != 0 && pass->x.ncol > 0) return SCL_OK;
  if (pass->x.ld * (pass->x.ncol + 1) > UINT32_MAX) return SCL_OK;
  for (int l = 0; l < LAYOUTS; l++) {
    bool usable = true;
    if (!layout_fits(cl, pass, &layouts[l])) continue;
    if (layouts[l].mma) SCL_TRY(scl_cl_try_program(cl, mma_program(pass->family, l), &usable));
    if (!usable) continue;
    *out = l;
    break;
  }
  return SCL_OK;
}

size_t scl_cl_glm_local_groups(const scl_cl_glm_shape *l, const scl_glm_pass *pass) {
  size_t unit = 228 << 10, aux = 1024;
  size_t cuts = GLM_FAMILY_AUX(pass->family) == SCL_GLM_CUTS ? pass->aux_count : 0;
  /* with more cuts gradients are computed without a pass, and values alone need no sums by
   * cut */
  if (cuts * l->predictors * l->rows * sizeof(double) > SCL_CL_GLM_CUT_BYTES) cuts = 0;
  size_t numbers = 2 * l->slots * l->rows + l->predictors * (l->rows * (1 + cuts) + 1);
  return unit / (scl_round_up((numbers + 1) * sizeof(double), 128) + aux);
}
