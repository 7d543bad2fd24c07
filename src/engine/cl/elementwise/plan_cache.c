/* Kernels of lazy arithmetic: compiled once for each structure of plan, found by its bytes. */
#include "engine/cl/elementwise/plan.h"
#include "engine/plan/pass.h"
#include "engine/plan/repeat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cl/runtime/private.h"

enum { BUCKETS = 256, MOST_ENTRIES = 512 };

typedef struct entry {
  struct entry *next;
  cl_program program;
  scl_cl_expr_kernels kernels;
  scl_cl_kept_arguments kept[2];
  size_t length;
  unsigned char key[];
} entry;

struct scl_cl_exprs {
  entry *bucket[BUCKETS];
  size_t entries;
};

static void free_entry(entry *e) {
  if (e->kernels.main.kernel != NULL) scl_cl.clReleaseKernel(e->kernels.main.kernel);
  if (e->kernels.last.kernel != NULL) scl_cl.clReleaseKernel(e->kernels.last.kernel);
  if (e->program != NULL) scl_cl.clReleaseProgram(e->program);
  free(e);
}

static void empty_cache(struct scl_cl_exprs *cache) {
  for (int b = 0; b < BUCKETS; b++) {
    while (cache->bucket[b] != NULL) {
      entry *e = cache->bucket[b];
      cache->bucket[b] = e->next;
      free_entry(e);
    }
  }
  cache->entries = 0;
}

void scl_cl_exprs_free(scl_cl_context *cl) {
  if (cl->exprs == NULL) return;
  empty_cache(cl->exprs);
  free(cl->exprs);
  cl->exprs = NULL;
}

/* The bucket of a key. Entries are compared by all of their bytes. */
static size_t hash_of(const unsigned char *key, size_t length) {
  uint64_t h = 14695981039346656037u;
  for (size_t k = 0; k < length; k++) h = (h ^ key[k]) * 1099511628211u;
  return (size_t)((h ^ (h >> 32)) % BUCKETS);
}

int scl_cl_expr_tile_rows(const scl_cl_context *cl) {
  /* A group is one thread on a CPU: fewer items, less to save at barriers. */
  if (cl->cpu || cl->info.work_group < SCL_PLAN_TILE * SCL_PLAN_TILE_ROWS) return 1;
  return SCL_PLAN_TILE_ROWS;
}

/* The files before the text of a plan, and their contents. */
typedef struct {
  int count;
  const char *name[8];
  char *text[8];
} files;

static void name_files(const scl_plan *plan, files *f) {
  const char *const pass[] = {"include/glm_pass.h", "include/glm_tile.h"};
  const char *const mma[] = {"nvidia/mma_ptx.h", "nvidia/mma_emulated.h", "nvidia/mma.h",
                             "nvidia/glm_mma_tile.h"};
  const char *const *of_pass = plan->pass_mma ? mma : pass;
  const int passes = plan->pass == 0 ? 0 : plan->pass_mma ? 4 : 2;
  for (int k = 0; k < passes; k++) f->name[f->count++] = of_pass[k];
  if (scl_plan_is_special(plan)) {
    f->name[f->count++] = "include/special_functions.h";
    f->name[f->count++] = "include/special_normal.h";
    f->name[f->count++] = "include/special_density.h";
  }
  if (scl_plan_is_incomplete(plan)) f->name[f->count++] = "include/incomplete_functions.h";
  if (scl_plan_is_bessel(plan)) f->name[f->count++] = "include/bessel_functions.h";
}

static scl_status build_program(scl_cl_context *cl, const scl_plan *plan, cl_program *out) {
  char head[32], shape[192] = "", *text = NULL, *port = NULL;
  const char *source[12];
  files f = {0};
  scl_status status;
  snprintf(head, sizeof head, "#define TILE_ROWS %d\n", scl_cl_expr_tile_rows(cl));
  SCL_GO(scl_plan_source(plan, &text));
  SCL_GO(scl_cl_source_read("include/port.h", &port));
  if (plan->pass != 0) scl_plan_pass_shape(plan, shape, sizeof shape);
  name_files(plan, &f);
  source[0] = port;
  source[1] = shape;
  for (int k = 0; k < f.count; k++) {
    SCL_GO(scl_cl_source_read(f.name[k], &f.text[k]));
    source[2 + k] = f.text[k];
  }
  source[2 + f.count] = head;
  source[3 + f.count] = text;
  status = scl_cl_program_build(cl, (cl_uint)f.count + 4, source, "expr", out);
done:
  for (int k = 0; k < f.count; k++) free(f.text[k]);
  free(port);
  free(text);
  return status;
}

static scl_status build_entry(scl_cl_context *cl, const scl_plan *plan, entry *e) {
  SCL_TRY(build_program(cl, plan, &e->program));
  SCL_TRY(scl_cl_kernel_make(cl, e->program, "expr", &e->kernels.main));
  if (scl_plan_reduces(plan)) {
    SCL_TRY(scl_cl_kernel_make(cl, e->program, "expr_final", &e->kernels.last));
  }
  scl_plan_count_built();
  return SCL_OK;
}

/* Nothing is made ready, but where nobody waits for kernels that of the first part is asked for. */
scl_status scl_cl_expr_ready(scl_context *ctx, int count, const scl_repeat *part,
                             const scl_buffer *results, int *taken, struct scl_ready_plan **out) {
  const scl_cl_expr_kernels *kernels;
  (void)results;
  *taken = 0;
  *out = NULL;
  if (count == 0 || part->plan == NULL || !scl_cl_asks()) return SCL_OK;
  const scl_status status = scl_cl_expr_find((scl_cl_context *)ctx, part->plan, &kernels);
  return status == SCL_E_BUILDING ? SCL_OK : status;
}

scl_status scl_cl_expr_find(scl_cl_context *cl, const scl_plan *plan,
                            const scl_cl_expr_kernels **out) {
  unsigned char key[SCL_PLAN_KEY];
  const size_t length = scl_plan_key(plan, key), b = hash_of(key, length);
  if (cl->exprs == NULL) {
    cl->exprs = calloc(1, sizeof *cl->exprs);
    if (cl->exprs == NULL) return scl_fail_memory(sizeof *cl->exprs, 0, "the kernels in use");
  }
  for (entry *e = cl->exprs->bucket[b]; e != NULL; e = e->next) {
    if (e->length == length && memcmp(e->key, key, length) == 0) {
      *out = &e->kernels;
      return SCL_OK;
    }
  }
  /* A full cache is emptied. Commands in progress keep their kernels. */
  if (cl->exprs->entries == MOST_ENTRIES) empty_cache(cl->exprs);
  entry *e = calloc(1, sizeof *e + length);
  if (e == NULL) return scl_fail_memory(sizeof *e + length, 0, "the kernels in use");
  scl_status status = build_entry(cl, plan, e);
  if (status != SCL_OK) {
    free_entry(e);
    return status;
  }
  e->length = length;
  e->kernels.kept_main = &e->kept[0];
  e->kernels.kept_last = &e->kept[1];
  memcpy(e->key, key, length);
  e->next = cl->exprs->bucket[b];
  cl->exprs->bucket[b] = e;
  cl->exprs->entries++;
  *out = &e->kernels;
  return SCL_OK;
}
