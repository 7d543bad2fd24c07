#include "engine/pass/covariance.h"

bool scl_covariance_is_basic(const scl_covariance *kernel) {
  if (kernel->factors != NULL) return false;
  for (int t = 0; t < kernel->terms; t++) {
    switch (kernel->term[t].type) {
#define SCL_COVARIANCE_ENTRY(ID, name, metric) case SCL_COVARIANCE_##ID:
      SCL_COVARIANCE_BASIC(SCL_COVARIANCE_ENTRY)
#undef SCL_COVARIANCE_ENTRY
      break;
    default:
      return false;
    }
  }
  return true;
}
