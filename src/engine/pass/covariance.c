#include "engine/pass/covariance.h"

#define BIT(ID, name, metric) | 1u << SCL_COVARIANCE_##ID

unsigned scl_covariance_kinds(const scl_covariance *kernel) {
  unsigned kinds = kernel->factors != NULL ? 1u << SCL_COVARIANCE_TYPES : 0;
  for (int t = 0; t < kernel->terms; t++) kinds |= 1u << kernel->term[t].type;
  return kinds;
}

unsigned scl_covariance_kinds_rounded(const scl_covariance *kernel) {
  const unsigned basic = 0 SCL_COVARIANCE_BASIC(BIT);
  const unsigned sums = basic SCL_COVARIANCE_SHORT(BIT);
  const unsigned kinds = scl_covariance_kinds(kernel);
  const unsigned bessel = 0 SCL_COVARIANCE_BESSEL(BIT), all = (2u << SCL_COVARIANCE_TYPES) - 1;
  if ((kinds & bessel) != 0) return all;
  if ((kinds & ~sums) != 0) return all & ~bessel;
  return (kinds & ~basic) != 0 ? sums : basic;
}
