/* Fits by group (glm_batch.h): their arguments, and the sizes of results and workspaces. */
#ifndef GLM_BATCH_TASK_H
#define GLM_BATCH_TASK_H

enum { GLM_BATCH_LOGIT = 0, GLM_BATCH_POISSON, GLM_BATCH_NORMAL };
enum { GLM_BATCH_FINE = 0, GLM_BATCH_RANK, GLM_BATCH_SEPARATED, GLM_BATCH_LOST };

/* `most`: steps of a search. */
typedef struct {
  int p, groups, family, most;
  int weighted, shifted, ordered; /* whether there are weights, an offset, an order of rows */
} glm_batch_task;
SCL_SAME_LAYOUT(glm_batch_task, 28)

/* A result: coefficients, their covariance matrix (p x p), deviance, rank, steps, status. */
#define GLM_BATCH_RESULTS(p) ((p) + (p) * (p) + 4)
/* Numbers of workspace for a row, and for a fit. */
#define GLM_BATCH_ROW(p) ((p) + 6)
#define GLM_BATCH_LOCAL(p, lanes) (2 * (p) * (p) + 5 * (p) + (lanes))

#endif
