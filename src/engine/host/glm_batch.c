/* Generalised linear models by group on the host: each thread fits one model after the other. */
#include "engine/pass/glm_batch.h"
#include "engine/host/host.h"

#include <stdlib.h>

#include "base/threads.h"
#include "engine/host/vector_math.h"

static void run_exp(double *x, size_t n) {
  scl_vector_function *vectors = scl_vector_function_of(SCL_OP_EXP);
  if (vectors != NULL) {
    vectors(n, x, x);
    return;
  }
  for (size_t i = 0; i < n; i++) x[i] = exp(x[i]);
}

#define GLM_BATCH_SYNC() ((void)0)
#define GLM_BATCH_EXP(x, n, lane, lanes) run_exp(x, (size_t)(n))
#include "kernels/include/glm_batch.h"

enum {
  ROUND = 1 << 20,     /* rows between two checks for interrupts, at least */
  THREADS_FROM = 20000 /* numbers of x */
};

typedef struct {
  const scl_glm_batch_pass *pass;
  size_t from, to; /* groups of this round */
  double *memory;
  size_t each; /* of a thread */
} batch_job;

static void run_part(void *arg, int part, int parts) {
  const batch_job *job = arg;
  const scl_glm_batch_pass *pass = job->pass;
  const glm_batch_task *task = &pass->task;
  const double *starts = scl_host_at(pass->starts);
  double *out = scl_host_at(pass->out);
  const glm_batch_data data = {.x = scl_host_at(pass->x),
                               .y = scl_host_at(pass->y),
                               .w = scl_host_at(pass->weights),
                               .offset = scl_host_at(pass->offset),
                               .order = scl_host_at(pass->order),
                               .ld = (scl_long)pass->x.ld};
  double *local = job->memory + (size_t)part * job->each;
  double *work = local + GLM_BATCH_LOCAL(task->p, 1);
  /* about as many rows to each thread */
  const double rows = starts[job->to] - starts[job->from];
  const double begin = starts[job->from] + rows * part / parts;
  const double end = starts[job->from] + rows * (part + 1) / parts;
  for (size_t k = job->from; k < job->to; k++) {
    if (starts[k] < begin || starts[k] >= end) continue;
    const int n = (int)(starts[k + 1] - starts[k]);
    glm_batch b = glm_batch_place(work, local, n, task->p, task->family, 0, 1);
    glm_batch_fit(&b, &data, (scl_long)starts[k], task->most, scl_host_at(pass->eta),
                  out + k * (size_t)GLM_BATCH_RESULTS(task->p));
  }
}

scl_status scl_host_glm_batch(scl_context *ctx, const scl_glm_batch_pass *pass, bool *done) {
  (void)ctx;
  const size_t p = (size_t)pass->task.p, groups = (size_t)pass->task.groups;
  const double *starts = scl_host_at(pass->starts);
  const int threads = starts[groups] * (double)p < THREADS_FROM ? 1 : scl_copy_threads();
  batch_job job = {.pass = pass,
                   .each = GLM_BATCH_LOCAL(p, 1) + pass->most_rows * GLM_BATCH_ROW(p)};
  const size_t bytes = (size_t)threads * job.each * sizeof(double);
  *done = true;
  job.memory = malloc(bytes);
  if (job.memory == NULL) return scl_fail_memory(bytes, 0, "a workspace");
  scl_team *team = threads > 1 ? scl_team_start(threads) : NULL;
  scl_status status = SCL_OK;
  while (job.to < groups) {
    job.from = job.to++;
    while (job.to < groups && starts[job.to] - starts[job.from] < ROUND) job.to++;
    scl_team_run(team, run_part, &job);
    SCL_GO(scl_poll());
  }
done:
  scl_team_stop(team);
  free(job.memory);
  return status;
}
