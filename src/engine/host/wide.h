/* Functions compiled a second time for processors with vectors of four doubles and fused
 * multiply-adds, which would otherwise be function calls. Only such functions have values of type
 * scl_wide; the vectors need not be aligned. */
#ifndef SCL_ENGINE_HOST_WIDE_H
#define SCL_ENGINE_HOST_WIDE_H

#include <stdbool.h>

#if defined(__GNUC__) && defined(__x86_64__)
#define SCL_WIDE __attribute__((target("avx2,fma")))
enum { SCL_WIDE_LANES = 4 };
typedef double scl_wide __attribute__((vector_size(32), aligned(8), may_alias));
typedef long long scl_wide_bits __attribute__((vector_size(32)));
static inline bool scl_host_has_wide(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
/* A function `linkage` void name(parameters) that runs body(arguments), which is compiled twice. */
#define SCL_BY_WIDTH(linkage, name, body, parameters, arguments)                                   \
  SCL_WIDE static void name##_wide parameters {                                                    \
    body arguments;                                                                                \
  }                                                                                                \
  linkage void name parameters {                                                                   \
    if (scl_host_has_wide()) {                                                                     \
      name##_wide arguments;                                                                       \
    } else {                                                                                       \
      body arguments;                                                                              \
    }                                                                                              \
  }
#else
static inline bool scl_host_has_wide(void) {
  return false;
}
#define SCL_BY_WIDTH(linkage, name, body, parameters, arguments)                                   \
  linkage void name parameters {                                                                   \
    body arguments;                                                                                \
  }
#endif

#endif
