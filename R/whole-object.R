# Methods of fits and kernels, which are lists that users can modify. An error of a method due to an
# invalid object becomes an error of this package that names the object. (This file is loaded after
# all methods.)

# Runs the body of a method whose argument `name` is the object.
with_whole_object <- function(object, name, code) {
  tryCatch(code, error = function(e) {
    if (inherits(e, c("statcl_error", "stackOverflowError")) || is_time_limit(e)) stop(e)
    statcl_abort("argument", sprintf(
      "'%s' is not a valid object of class \"%s\", or another argument does not match it: %s", name,
      class(object)[1L], conditionMessage(e)), argument = name, parent = e, call = user_call())
  })
}

guard_methods <- function(space) {
  classes <- c("cl_glm", "cl_gp", "cl_batch_lm", "cl_batch_glm", "cl_sample", "cl_kernel",
               "cl_prior", "cl_transform", "cl_likelihood", "cl_gp_likelihood", "cl_log_posterior")
  methods <- ls(space, pattern = sprintf("[.](%s)$", paste(classes, collapse = "|")))
  for (name in methods) {
    f <- get(name, envir = space)
    object <- names(formals(f))[1L]
    body(f) <- call("with_whole_object", as.name(object), object, body(f))
    assign(name, f, envir = space)
  }
}

guard_methods(topenv())
