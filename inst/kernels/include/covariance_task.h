/* The task of a covariance kernel, passed by value: filled in by the driver
 * (engine/cl/covariance/covariance.c). Offsets and leading dimensions (ld) are those of the
 * kernel's buffers of the same name. */
#ifndef SCL_KERNEL_COVARIANCE_TASK_H
#define SCL_KERNEL_COVARIANCE_TASK_H

/* Values of `region`: all tiles; those of the lower triangle; these, each also written transposed.
 */
#define COVARIANCE_ALL 0
#define COVARIANCE_LOWER 1
#define COVARIANCE_MIRRORED 2

/* The matrix, and the covariance function (covariance_plan.h). */
typedef struct {
  scl_long x1_offset, x2_offset, plan_offset, spread_offset, out_offset;
  real noise2;                  /* square of the noise's sd; 0 if `quiet` */
  int x1_ld, x2_ld, spread_ld;  /* spread_ld = 0: spread is not read, and counts as 1 and 0 */
  int out_ld;                   /* of the result */
  int m, n;                     /* rows of x1, of x2 */
  int terms, entries, products; /* of the covariance function */
  int region;
  int symmetric; /* x2 is x1, and the lower triangle stands for the whole */
  int quiet;     /* neither noise nor white terms on the diagonal */
} covariance_task;
SCL_SAME_LAYOUT(covariance_task, 96)

/* The weights of reverse mode (covariance_weights in covariance_plan.h). */
typedef struct {
  scl_long w_offset, u_offset, v_offset;
  real outer, inner;
  int w_ld, u_ld, v_ld;
  int rank, two;
  int unused; /* fills the struct up */
} covariance_weighting;
SCL_SAME_LAYOUT(covariance_weighting, 64)

/* Derivatives of one launch, `count` from `first` on, and the tiles that all groups share. */
typedef struct {
  scl_long tiles;
  int first, count;
} covariance_range;
SCL_SAME_LAYOUT(covariance_range, 16)

#endif
