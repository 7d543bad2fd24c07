/* GLM likelihoods: the layout of parameters, results and workspace for both engines and all kernels
 * (glm*.cl), and the task of a kernel. The driver (engine/cl/glm/glm.c) fills the structs in;
 * kernels get them by value.
 *
 * The workspace `work`, in numbers. All parts are column-major. There are n rows, p columns of X, M
 * parameter vectors, and P predictors of a row: M times the classes of a coupled family, else M.
 *
 *   work + 0     two ints, 0 before and after a pass: counter of the groups that are done, or of
 *                the parts (glm_mma_walk.cl), and whether one has given up waiting (glm_meet.h)
 *        + 1     only of walks: a counter for each part, GLM_COUNTERS, 0 before a walk
 *        + at.aux      +-------------------------------------------------------+
 *                      | auxiliary parameters, aux_count x M: of each vector   |  parameters
 *                      | cuts; or sigma or phi, its logarithm, its inverse     |
 *        + at.alpha    | alpha, 1 x P; or n x P, by row                        |
 *        + at.beta     | beta, p x P                                           |
 *        + at.row_aux  | the auxiliary parameter by row, n x M; or nothing     |
 *        + results     +-------------------------------------------------------+
 *          + at.value    | log densities, 1 x M                                |  results: sums
 *          + at.d_aux    | by the auxiliary parameter, aux_sums x M            |  over all rows
 *          + at.d_alpha  | by alpha, 1 x P                                     |
 *          + at.d_beta   | by beta, p x P                                      |
 *        + records     | of a walk, for each point but the last (leapfrog.h)   |
 *        + residuals   +-------------------------------------------------------+
 *                      | derivatives by each row's predictors, n x P; or none  |
 *        + slopes      | by each row's auxiliary parameter, n x M; or none     |
 *        + partials    | results of each group, before they are summed; of a   |
 *                      | walk in one launch two sets                           |
 *        + scratch     | of glm_rows                                           |
 *                      +-------------------------------------------------------+ */
#ifndef SCL_KERNEL_GLM_TASK_H
#define SCL_KERNEL_GLM_TASK_H

/* Made by scl_glm_layout_of() (engine/pass/glm.h). */
typedef struct {
  scl_long aux, alpha, beta, row_aux;
  scl_long parameters; /* numbers in all, the counter's included */
  scl_long value, d_aux, d_alpha, d_beta;
  scl_long results; /* numbers in all */
} glm_layout;
SCL_SAME_LAYOUT(glm_layout, 80)

/* Flags of a pass: the gradient by beta is wanted; alpha, or the auxiliary parameter, is one for
 * each row; the parameters come with the launch, as glm_few; the last column of y has weights. */
enum { GLM_GRADIENT = 1, GLM_ROW_ALPHA = 2, GLM_ROW_AUX = 4, GLM_FEW = 8, GLM_WEIGHTED = 16 };

/* Residuals and slopes are not written where theirs is negative. With a record the group that adds
 * the sums makes the leapfrog steps to a point (leapfrog.h), whose numbers begin at alpha. */
typedef struct {
  glm_layout at;
  scl_long results, partials, residuals, slopes, scratch;
  scl_long record;         /* -1: none */
  int n, p;                /* rows and columns of X */
  int vectors, classes;    /* parameter vectors; classes of a coupled family, else 1 */
  int predictors;          /* of a row: vectors * classes */
  int aux_count, aux_sums; /* of each vector: auxiliary numbers, and sums of derivatives by them */
  int flags;
  int family;  /* scl_glm_family, of glm_rows and glm_split */
  int has_eta; /* of glm_split: the predictors start from X beta, else from 0 */
  int point;   /* of the leapfrog steps: its number, the first being 0 */
  int directions; /* of their metrics, at most; 0: all are diagonal */
  int points; /* of the launch; if there are several, records begin at `record`, and behind them is
                 1 when all are written, until then 0 */
  int keep;       /* tiles of each group that stay in the cache; or GLM_KEEP_NONE: no hints */
} glm_task;
SCL_SAME_LAYOUT(glm_task, 184)
enum { GLM_KEEP_NONE = -1 };

enum { GLM_COUNTERS = 16 }; /* parts of the vectors of a walk by matrix instructions, at most */

/* The first numbers of `work`, where these are all parameters. */
enum { GLM_FEW_MOST = 64 };
typedef struct {
  real number[GLM_FEW_MOST];
} glm_few;
SCL_SAME_LAYOUT(glm_few, 8 * GLM_FEW_MOST)

#endif
