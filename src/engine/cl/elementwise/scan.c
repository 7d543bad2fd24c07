/* Recursions on a device: the kernel that engine/plan/source_scan.c writes, a work-item for each
 * sequence. Kernels are compiled once for each text. */
#include "engine/plan/scan.h"

#include <stdlib.h>
#include <string.h>

#include "engine/cl/runtime/private.h"
#include "engine/plan/plan.h"

enum { ITEMS = 64, MOST_ENTRIES = 128 };

typedef struct scl_cl_scan {
  struct scl_cl_scan *next;
  uint64_t serial; /* of the code that was run last */
  char *source;
  cl_program program;
  scl_cl_launchable kernel;
} entry;

/* ---- kernels -------------------------------------------------------------------------------- */

static void free_entry(entry *e) {
  if (e->kernel.kernel != NULL) scl_cl.clReleaseKernel(e->kernel.kernel);
  if (e->program != NULL) scl_cl.clReleaseProgram(e->program);
  free(e->source);
  free(e);
}

void scl_cl_scans_free(scl_cl_context *cl) {
  while (cl->scans != NULL) {
    entry *next = cl->scans->next;
    free_entry(cl->scans);
    cl->scans = next;
  }
}

static scl_status build_scan(scl_cl_context *cl, const scl_scan_code *code, entry *e) {
  char *port = NULL, *special = NULL, *normal = NULL, *density = NULL, *incomplete = NULL;
  char *bessel = NULL;
  const bool is_incomplete = scl_scan_calls(code, "incomplete_");
  const bool is_bessel = scl_scan_calls(code, "bessel_");
  scl_status status;
  SCL_GO(scl_cl_source_read("include/port.h", &port));
  if (is_incomplete || is_bessel || scl_scan_calls(code, "special_")) {
    SCL_GO(scl_cl_source_read("include/special_functions.h", &special));
    SCL_GO(scl_cl_source_read("include/special_normal.h", &normal));
    SCL_GO(scl_cl_source_read("include/special_density.h", &density));
  }
  if (is_incomplete) SCL_GO(scl_cl_source_read("include/incomplete_functions.h", &incomplete));
  if (is_bessel) SCL_GO(scl_cl_source_read("include/bessel_functions.h", &bessel));
  const char *source[] = {port,
                          special != NULL ? special : "",
                          normal != NULL ? normal : "",
                          density != NULL ? density : "",
                          incomplete != NULL ? incomplete : "",
                          bessel != NULL ? bessel : "",
                          code->source};
  SCL_GO(scl_cl_program_build(cl, 7, source, "scan", &e->program));
done:
  free(bessel);
  free(incomplete);
  free(density);
  free(normal);
  free(special);
  free(port);
  SCL_TRY(status);
  return scl_cl_kernel_make(cl, e->program, "scan", &e->kernel);
}

/* The entry of this code, or of one with the same text; NULL if there is none. */
static entry *find_entry(scl_cl_context *cl, const scl_scan_code *code) {
  for (entry *e = cl->scans; e != NULL; e = e->next) {
    if (e->serial == code->serial) return e;
  }
  for (entry *e = cl->scans; e != NULL; e = e->next) {
    if (strcmp(e->source, code->source) == 0) return e;
  }
  return NULL;
}

static scl_status get_entry(scl_cl_context *cl, scl_scan_code *code, entry **out) {
  int entries = 0;
  SCL_TRY(scl_scan_source(code));
  entry *e = find_entry(cl, code);
  if (e == NULL) {
    for (e = cl->scans; e != NULL; e = e->next) entries++;
    /* Commands in progress keep their kernels. */
    if (entries == MOST_ENTRIES) scl_cl_scans_free(cl);
    const size_t bytes = strlen(code->source) + 1;
    e = calloc(1, sizeof *e);
    if (e != NULL) e->source = malloc(bytes);
    if (e == NULL || e->source == NULL) {
      free(e);
      return scl_fail_memory(bytes, 0, "the kernels in use");
    }
    memcpy(e->source, code->source, bytes);
    const scl_status status = build_scan(cl, code, e);
    if (status != SCL_OK) {
      free_entry(e);
      return status;
    }
    e->next = cl->scans;
    cl->scans = e;
    scl_plan_count_built();
  }
  e->serial = code->serial;
  *out = e;
  return SCL_OK;
}

/* ---- arguments ------------------------------------------------------------------------------ */

static cl_int set_block(cl_kernel kernel, cl_uint *next, scl_block b) {
  const cl_mem memory = b.buffer != NULL ? ((const scl_cl_buffer *)b.buffer)->memory : NULL;
  const cl_long at = (cl_long)b.offset;
  const cl_int code = scl_cl.clSetKernelArg(kernel, (*next)++, sizeof memory, &memory);
  return code != CL_SUCCESS ? code : scl_cl.clSetKernelArg(kernel, (*next)++, sizeof at, &at);
}

static cl_int set_arguments(cl_kernel kernel, const scl_scan_pass *p) {
  const cl_long size[] = {(cl_long)p->steps, (cl_long)p->sequences};
  const cl_int flag[] = {p->reverse, p->keeps};
  const int inputs = scl_scan_first(&p->code->shape, SCL_SCAN_SUM);
  cl_uint next = 0;
  cl_int code = CL_SUCCESS;
  for (int k = 0; k < 2 && code == CL_SUCCESS; k++) {
    code = scl_cl.clSetKernelArg(kernel, next++, sizeof size[k], &size[k]);
  }
  for (int k = 0; k < 2 && code == CL_SUCCESS; k++) {
    code = scl_cl.clSetKernelArg(kernel, next++, sizeof flag[k], &flag[k]);
  }
  for (int k = 0; k < inputs && code == CL_SUCCESS; k++) {
    code = set_block(kernel, &next, p->input[k]);
  }
  return code != CL_SUCCESS ? code : set_block(kernel, &next, p->dst);
}

scl_status scl_cl_scan(scl_context *ctx, const scl_scan_pass *pass) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  entry *e = NULL;
  scl_cl_op op;
  scl_status status;
  scl_cl_op_begin(&op, ctx);
  SCL_GO(scl_poll());
  SCL_GO(scl_cl_op_needs(&op, get_entry(cl, pass->code, &e)));
  if (op.missing) goto done;
  for (int k = 0; k < scl_scan_first(&pass->code->shape, SCL_SCAN_SUM); k++) {
    scl_cl_op_reads(&op, pass->input[k].buffer);
  }
  scl_cl_op_writes(&op, pass->dst.buffer);
  op.timing = SCL_CL_TIME_EACH;
  SCL_GO(scl_cl_op_order(&op, -1));
  const cl_int code = set_arguments(e->kernel.kernel, pass);
  if (code != CL_SUCCESS) SCL_GO(scl_cl_fail(ctx, code, "scan"));
  size_t items = 1;
  while (2 * items <= scl_min(e->kernel.items, ITEMS) && items < pass->sequences) items *= 2;
  const scl_cl_range range = scl_cl_range_1(scl_round_up(pass->sequences, items), items);
  SCL_GO(scl_cl_enqueue(&op, &e->kernel, &range, 0));
done:
  return scl_cl_op_end(&op, status);
}
