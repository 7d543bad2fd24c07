/* Status codes and the record of the last error.
 *
 * Every core function that can fail returns scl_status and writes its results through `out`
 * arguments, which it leaves untouched on failure. The message is written once, where the error is
 * found; callers clean up and pass the status on. The core never prints, exits or jumps. */
#ifndef SCL_BASE_STATUS_H
#define SCL_BASE_STATUS_H

#include <stddef.h>
#include <stdint.h>

/* Has the compiler check arguments against a format: the number of the format, of the first of
 * them. */
#if defined(__MINGW32__) && !defined(__clang__)
#define SCL_PRINTF(format_at, first) __attribute__((format(gnu_printf, format_at, first)))
#elif defined(__GNUC__)
#define SCL_PRINTF(format_at, first) __attribute__((format(printf, format_at, first)))
#else
#define SCL_PRINTF(format_at, first)
#endif

typedef enum {
  SCL_OK = 0,
  SCL_E_ARGUMENT,  /* bad argument: type, shape, range */
  SCL_E_NO_DEVICE, /* no OpenCL loader, platform or device */
  SCL_E_NO_FP64,   /* the device has no double precision */
  SCL_E_REFUSED,   /* the device computes wrongly: it is tried before it is used */
  SCL_E_MEMORY,    /* host or device memory; `bytes` asked, `limit` when known */
  SCL_E_NOT_PD,    /* not positive definite; `index` is the order of the failing leading minor */
  SCL_E_SINGULAR,  /* exact zero on a triangular diagonal; `index` is 1-based */
  SCL_E_NONFINITE, /* NaN or Inf where a number is needed; `index` is 1-based, column-major */
  SCL_E_STALE,     /* handle freed, restored from a file, or of a context that is gone */
  SCL_E_FORK,      /* device handle used in a forked child */
  SCL_E_BUILD,     /* kernel source did not compile; `log` holds the build log */
  SCL_E_BUILDING,  /* kernels are being built in the background (scl_device_beside_begin()) */
  SCL_E_LOST,      /* the device stopped answering; the context is dead */
  SCL_E_OPENCL,    /* any other OpenCL error; `cl_code` and `where` say which call */
  SCL_E_STAN, /* a Stan program is wrong at `line` and `column` of the file `where`; `log` is the
                 line, or the part of it with `index` characters before that column */
  SCL_E_INTERRUPT /* the user asked to stop */
} scl_status;

/* The last error. Fields that do not apply are zero or empty. */
typedef struct {
  scl_status status;
  char message[512];
  char argument[32]; /* name of the offending argument, as the R user knows it */
  int64_t index;
  uint64_t bytes, limit;
  int cl_code, line, column;
  char where[64]; /* OpenCL function or kernel */
  char device[128];
  char log[4096]; /* build log, cut */
} scl_fault;

/* The record of the last error of this thread; valid until the next one. Never NULL. */
const scl_fault *scl_fault_last(void);

/* Clears the record, writes the message, returns `status`. One line, no trailing full stop. */
SCL_PRINTF(2, 3)
scl_status scl_fail(scl_status status, const char *format, ...);

/* As scl_fail(), naming the argument. */
SCL_PRINTF(2, 3)
scl_status scl_fail_argument(const char *argument, const char *format, ...);

/* As scl_fail(), with the 1-based index (order of the minor, index of the zero or of the NaN). */
SCL_PRINTF(3, 4)
scl_status scl_fail_index(scl_status status, int64_t index, const char *format, ...);

/* SCL_E_MEMORY with the requested bytes and the limit (0 when unknown). */
scl_status scl_fail_memory(uint64_t bytes, uint64_t limit, const char *what);

/* The record itself, for the few functions that add fields after scl_fail(). */
scl_fault *scl_fault_edit(void);

/* Returns on failure; nothing is held. */
#define SCL_TRY(expression)                                                                        \
  do {                                                                                             \
    scl_status status_ = (expression);                                                             \
    if (status_ != SCL_OK) return status_;                                                         \
  } while (0)

/* On failure jumps to the label `done`, which releases; needs a local `scl_status status`. */
#define SCL_GO(expression)                                                                         \
  do {                                                                                             \
    status = (expression);                                                                         \
    if (status != SCL_OK) goto done;                                                               \
  } while (0)

#endif
