#include "stan/tree.h"

const char *const scl_stan_base_names[SCL_STAN_BASES] = {"int",
                                                         "real",
                                                         "complex",
                                                         "vector",
                                                         "row_vector",
                                                         "matrix",
                                                         "complex_vector",
                                                         "complex_row_vector",
                                                         "complex_matrix",
                                                         "tuple",
                                                         "void",
                                                         "function",
                                                         "string"};

const char *const scl_stan_kind_names[SCL_STAN_KINDS] = {
#define SCL_STAN_NODE(kind, name, fields) name,
#include "stan/nodes.def"
#undef SCL_STAN_NODE
};

const char *const scl_stan_kind_fields[SCL_STAN_KINDS] = {
#define SCL_STAN_NODE(kind, name, fields) fields,
#include "stan/nodes.def"
#undef SCL_STAN_NODE
};

const char *const scl_stan_operator_names[SCL_STAN_OPERATORS] = {
    "",
#define SCL_STAN_OPERATOR(id, text, level, rule) text,
#include "stan/operators.def"
#undef SCL_STAN_OPERATOR
};

const char *const scl_stan_constraint_names[SCL_STAN_CONSTRAINTS] = {
#define SCL_STAN_CONSTRAINT(id, name) name,
#include "stan/constraints.def"
#undef SCL_STAN_CONSTRAINT
};

const char *const scl_stan_place_names[SCL_STAN_PLACES] = {"functions",
                                                           "data",
                                                           "transformed_data",
                                                           "parameters",
                                                           "transformed_parameters",
                                                           "model",
                                                           "generated_quantities",
                                                           "local",
                                                           "loop",
                                                           "argument",
                                                           "function"};
