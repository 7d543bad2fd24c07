#include "engine/pass/covariance.h"

static scl_covariance_form form_of_type(scl_covariance_type type) {
  switch (type) {
#define SCL_COVARIANCE_ENTRY(ID, name, metric) case SCL_COVARIANCE_##ID:
    SCL_COVARIANCE_BASIC(SCL_COVARIANCE_ENTRY)
    return SCL_COVARIANCE_FORM_BASIC;
    SCL_COVARIANCE_SHORT(SCL_COVARIANCE_ENTRY)
#undef SCL_COVARIANCE_ENTRY
    return SCL_COVARIANCE_FORM_SUMS;
  default:
    return SCL_COVARIANCE_FORM_PRODUCTS;
  }
}

scl_covariance_form scl_covariance_form_of(const scl_covariance *kernel) {
  if (kernel->factors != NULL) return SCL_COVARIANCE_FORM_PRODUCTS;
  scl_covariance_form form = SCL_COVARIANCE_FORM_BASIC;
  for (int t = 0; t < kernel->terms; t++) {
    const scl_covariance_form needed = form_of_type(kernel->term[t].type);
    if (needed > form) form = needed;
  }
  return form;
}
