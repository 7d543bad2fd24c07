/* Device contexts: opening, closing, loss, profiling, and the engine's table. */
#include "engine/cl/runtime/cl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cl/runtime/private.h"
#include "base/threads.h"

static bool profiling_wanted;

void scl_device_profiling(bool on) {
  profiling_wanted = on;
}

/* Drivers also report harmless errors here; only these texts mean that the context is lost. */
static void CL_CALLBACK notice(const char *text, const void *more, size_t bytes, void *user) {
  static const char *const fatal[] = {"ILLEGAL", "waiting for idle", "-9999", "GPU hang"};
  scl_cl_context *cl = user;
  (void)more;
  (void)bytes;
  for (size_t i = 0; text != NULL && i < sizeof fatal / sizeof *fatal; i++) {
    if (strstr(text, fatal[i]) != NULL) cl->base.lost = true;
  }
}

/* ---- opening and closing --------------------------------------------------------------------- */
static scl_status check_device(const scl_device_info *info) {
  int major = 0, minor = 0;
  sscanf(info->version, "OpenCL %d.%d", &major, &minor);
  if (!info->fp64) {
    return scl_fail(SCL_E_NO_FP64,
                    "'%s (%s)' does not support double precision, in which statcl computes: use "
                    "another device or the host",
                    info->name, info->id);
  }
  if (!info->compiler) {
    return scl_fail(SCL_E_NO_DEVICE, "device '%s (%s)' has no OpenCL compiler", info->name,
                    info->id);
  }
  if (major * 10 + minor < 12) {
    return scl_fail(SCL_E_NO_DEVICE, "device '%s (%s)' supports '%s', but OpenCL 1.2 is needed",
                    info->name, info->id, info->version);
  }
  return SCL_OK;
}

/* A forked child inherits the driver's state without its threads, so that calls would hang. Drivers
 * start threads as soon as their devices are listed. */
static scl_status check_process(void) {
  if (scl_cl_listed_by() == scl_process_id()) return SCL_OK;
  return scl_cl_forked();
}

static uint64_t memory_limit(const scl_device_info *info) {
  const char *asked = scl_env("STATCL_MEMORY_LIMIT");
  if (asked != NULL) {
    double bytes = strtod(asked, NULL);
    if (bytes >= 1 && bytes < 1e18) return (uint64_t)bytes;
  }
  return info->memory - info->memory / 20;
}

/* An eighth of a device's own memory: garbage may grow to this size, or until there is time to
 * collect it. */
static uint64_t spare_memory(const scl_cl_context *cl) {
  return cl->cpu || cl->info.host_memory ? 0 : cl->base.memory.limit / 8;
}

static scl_status make_queues(scl_cl_context *cl) {
  cl_command_queue_properties properties = cl->profiled ? CL_QUEUE_PROFILING_ENABLE : 0;
  for (int q = 0; q < SCL_CL_QUEUES; q++) {
    cl_int code = CL_SUCCESS;
    cl->queue[q] = scl_cl.clCreateCommandQueue(cl->context, cl->device, properties, &code);
    if (cl->queue[q] == NULL) return scl_cl_fail(NULL, code, "clCreateCommandQueue");
  }
  return SCL_OK;
}

static void release_profile(scl_cl_context *cl) {
  for (int q = 0; q < SCL_CL_QUEUES; q++) {
    if (cl->profile_first[q] != NULL) scl_cl.clReleaseEvent(cl->profile_first[q]);
    if (cl->profile_last[q] != NULL) scl_cl.clReleaseEvent(cl->profile_last[q]);
    cl->profile_first[q] = cl->profile_last[q] = NULL;
  }
}

/* Commands may still use the memory, also when the device could not be opened. A lost device is not
 * waited for. */
static void free_context(scl_cl_context *cl) {
  for (int q = 0; q < SCL_CL_QUEUES && !cl->base.lost; q++) {
    if (cl->queue[q] != NULL) scl_cl.clFinish(cl->queue[q]);
  }
  scl_cl_pool_free(cl);
  release_profile(cl);
  for (int q = 0; q < SCL_CL_QUEUES; q++) {
    if (cl->mark[q] != NULL) scl_cl.clReleaseEvent(cl->mark[q]);
  }
  scl_cl_staging_free(cl);
  if (cl->batch_flag != NULL) scl_cl.clReleaseMemObject(cl->batch_flag);
  scl_cl_exprs_free(cl);
  scl_cl_scans_free(cl);
  scl_cl_programs_free(cl);
  for (int q = 0; q < SCL_CL_QUEUES; q++) {
    if (cl->queue[q] != NULL) scl_cl.clReleaseCommandQueue(cl->queue[q]);
  }
  if (cl->context != NULL) scl_cl.clReleaseContext(cl->context);
  free(cl);
}

void scl_cl_context_destroy(scl_context *ctx) {
  free_context((scl_cl_context *)ctx);
}

/* Whether to use the kernels for CPUs. STATCL_GPU_KERNELS=1 (0) makes any device use those for GPUs
 * (CPUs), so that both can be tested on one device. */
static bool cpu_kernels_wanted(const scl_device_info *info) {
  const char *wanted = scl_env("STATCL_GPU_KERNELS");
  if (wanted != NULL && strcmp(wanted, "1") == 0) return false;
  if (wanted != NULL && strcmp(wanted, "0") == 0) return true;
  return info->type == SCL_DEVICE_CPU;
}

/* Whether STATCL_MMA_EMULATED=1 has any device run the kernels of matrix instructions, emulated. */
static bool emulation_wanted(void) {
  const char *wanted = scl_env("STATCL_MMA_EMULATED");
  return wanted != NULL && strcmp(wanted, "1") == 0;
}

static scl_status open_device(size_t index, atomic_bool *rival, scl_context **out) {
  const scl_device_info *list;
  size_t count;
  SCL_TRY(scl_device_list(&list, &count));
  if (index >= count) {
    return count > 0 ? scl_fail(SCL_E_NO_DEVICE, "there is no device %zu", index)
                     : scl_fail(SCL_E_NO_DEVICE, "%s", scl_device_reason());
  }
  SCL_TRY(check_device(&list[index]));
  SCL_TRY(check_process());
  scl_cl_context *cl = calloc(1, sizeof *cl);
  if (cl == NULL) return scl_fail_memory(sizeof *cl, 0, "a context");
  const scl_cl_handle *handle = scl_cl_handle_of(index);
  cl->info = list[index];
  cl->index = index;
  cl->emulated_mma = emulation_wanted();
  cl->cpu = !cl->emulated_mma && cpu_kernels_wanted(&cl->info);
  cl->profiled = profiling_wanted;
  cl->device = handle->device;
  cl->base.engine = &scl_cl_engine;
  cl->base.tag = SCL_CONTEXT_TAG;
  cl->base.refs = 1;
  cl->base.owner = scl_process_id();
  cl->base.memory.limit = memory_limit(&cl->info);
  cl->base.memory.largest = cl->info.largest;
  cl->base.spare = spare_memory(cl);
  memcpy(cl->base.name, cl->info.name, sizeof cl->base.name);
  snprintf(cl->base.label, sizeof cl->base.label, "%s (%s)", cl->info.name, cl->info.id);
  cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                        (cl_context_properties)handle->platform, 0};
  cl_int code = CL_SUCCESS;
  scl_signals_hold(); /* drivers make threads */
  cl->context = scl_cl.clCreateContext(properties, 1, &cl->device, notice, cl, &code);
  scl_status status =
      cl->context != NULL ? make_queues(cl) : scl_cl_fail(NULL, code, "clCreateContext");
  scl_signals_release();
  if (status == SCL_OK && rival != NULL && !scl_cores_are_busy())
    atomic_store(rival, scl_thread_give_way(true));
  if (status == SCL_OK) status = scl_cl_primitives_try(cl); /* builds kernels */
  if (status != SCL_OK) {
    free_context(cl);
    return status;
  }
  *out = &cl->base;
  return SCL_OK;
}

scl_status scl_device_open(size_t index, scl_context **out) {
  return open_device(index, NULL, out);
}

scl_status scl_device_open_beside(size_t index, atomic_bool *rival, scl_context **out) {
  return open_device(index, rival, out);
}

const scl_device_info *scl_device_of(const scl_context *ctx) {
  return ctx->engine == &scl_cl_engine ? &((const scl_cl_context *)ctx)->info : NULL;
}

void scl_device_trim(scl_context *ctx) {
  if (ctx->engine == &scl_cl_engine) scl_cl_pool_free((scl_cl_context *)ctx);
}

/* ---- what became of trials ------------------------------------------------------------------- */
const char *scl_device_variant(scl_context *ctx) {
  if (ctx->engine != &scl_cl_engine) return "the host has none";
  scl_cl_context *cl = (scl_cl_context *)ctx;
  return scl_cl_may_try_mma(cl) ? "" : cl->variant_reason;
}

bool scl_device_trial_next(const scl_context *ctx, int *at, scl_device_trial *out) {
  const scl_cl_context *cl = (const scl_cl_context *)ctx;
  if (ctx->engine != &scl_cl_engine) return false;
  for (; *at < SCL_CL_PROGRAMS; ++*at) {
    const scl_cl_trial *trial = &cl->trial[*at];
    if (trial->state != SCL_CL_PASSED && trial->state != SCL_CL_REFUSED) continue;
    *out = (scl_device_trial){scl_cl_program_name((scl_cl_program)*at),
                              trial->state == SCL_CL_PASSED ? ""
                              : trial->reason != NULL       ? trial->reason
                                                            : "out of memory"};
    ++*at;
    return true;
  }
  return false;
}

/* ---- profiling ------------------------------------------------------------------------------- */
static scl_status check_profiled(const scl_context *ctx) {
  if (ctx->engine == &scl_cl_engine && ((const scl_cl_context *)ctx)->profiled) return SCL_OK;
  return scl_fail_argument("profiling", "'%s' was not opened for profiling", ctx->label);
}

scl_status scl_device_profile_begin(scl_context *ctx) {
  SCL_TRY(check_profiled(ctx));
  SCL_TRY(scl_context_finish(ctx));
  scl_cl_context *cl = (scl_cl_context *)ctx;
  release_profile(cl);
  cl->profiling = true;
  return SCL_OK;
}

static scl_status event_time(scl_cl_context *cl, cl_event event, cl_profiling_info what,
                             cl_ulong *out) {
  SCL_CL_TRY(cl, scl_cl.clGetEventProfilingInfo(event, what, sizeof *out, out, NULL),
             "clGetEventProfilingInfo");
  return SCL_OK;
}

scl_status scl_device_profile_end(scl_context *ctx, double *milliseconds) {
  SCL_TRY(check_profiled(ctx));
  scl_cl_context *cl = (scl_cl_context *)ctx;
  cl->profiling = false;
  SCL_TRY(scl_context_finish(ctx));
  cl_ulong start = 0, end = 0;
  for (int q = 0; q < SCL_CL_QUEUES; q++) {
    if (cl->profile_first[q] == NULL) continue;
    cl_ulong first, last;
    SCL_TRY(event_time(cl, cl->profile_first[q], CL_PROFILING_COMMAND_START, &first));
    SCL_TRY(event_time(cl, cl->profile_last[q], CL_PROFILING_COMMAND_END, &last));
    if (start == 0 || first < start) start = first;
    if (last > end) end = last;
  }
  release_profile(cl);
  *milliseconds = (double)(end - start) * 1e-6;
  return SCL_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */
const scl_engine scl_cl_engine = {
    .name = "device",
    .traits = {.types = 1u << SCL_F64,
               .prefers_transposed_copy = true,
               .prefers_inverse = true,
               .column_multiple = 16,
               .adjoint_leaf = 256},
#define SCL_SLOT(result, name, parameters) .name = scl_cl_##name,
#define SCL_SLOT_OPTIONAL(result, name, parameters)
#include "base/engine.def"
    .expr_ready = scl_cl_expr_ready,
    .potrf_adjoint = scl_cl_potrf_adjoint,
    .gram = scl_cl_gram,
    .glm_begin = scl_cl_glm_begin,
    .glm_end = scl_cl_glm_end,
    .pass_columns = scl_cl_pass_columns,
    .pass_mma = scl_cl_pass_mma,
    .gp_prepare = scl_cl_gp_prepare,
    .vecchia = scl_cl_vecchia,
};
