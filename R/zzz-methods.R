# What all methods have in common. Fits and kernels are lists that users can modify: an error of a
# method due to an invalid object becomes an error of this package that names the object. (This file
# is loaded after all methods.)

# Runs the body of a method whose argument `name` is the object. Errors with a class of their own
# keep it: they come from an argument of the user's, or from this package.
with_whole_object <- function(object, name, code) {
  tryCatch(code, error = function(e) {
    if (!inherits(e, c("simpleError", "subscriptOutOfBoundsError"))) stop(e)
    statcl_abort("argument", sprintf(
      "'%s' is not a valid object of class \"%s\", or another argument does not match it: %s", name,
      class(object)[1L], conditionMessage(e)), argument = name, parent = e, call = user_call())
  })
}

guard_methods <- function(space) {
  classes <- c("cl_glm", "cl_gp", "cl_batch_lm", "cl_batch_glm", "cl_sample", "cl_kernel",
               "cl_prior", "cl_transform", "cl_likelihood", "cl_gp_likelihood", "cl_log_posterior")
  methods <- ls(space, pattern = sprintf("^[A-Za-z].*[.](%s)$", paste(classes, collapse = "|")))
  for (name in methods) {
    f <- get(name, envir = space)
    object <- names(formals(f))[1L]
    body(f) <- call("with_whole_object", as.name(object), object, body(f))
    assign(name, f, envir = space)
  }
}

# An argument that a method does not know is refused, not ignored: each method that has `...` and
# does not use it begins with a check that nothing is there. Not those that print, to which R passes
# what was given for a list, nor those which emmeans and insight give the arguments of all models.
# Methods of as.data.frame() get their row names here.
honour_arguments <- function(space) {
  methods <- ls(space, pattern = "^[A-Za-z].*\\.(cl_\\w+|clMatrix|clArray)$|^cl_\\w+\\.")
  free <- paste0("^(print|format|str|emm_basis|recover_data|get_[a-z]+|find_formula|",
                 "as.data.frame.cl_traced)")
  for (name in methods[!grepl(free, methods)]) {
    f <- get(name, envir = space)
    if (!is.function(f) || isS4(f) || !"..." %in% names(formals(f))) next
    used <- all.names(body(f))
    if ("row.names" %in% setdiff(names(formals(f)), used)) {
      body(f) <- call("with_row_names", body(f), quote(row.names))
    }
    if (!any(c("...", "...length", "NextMethod", "UseMethod") %in% used)) {
      body(f) <- call("{", quote(check_dots_empty(...)), body(f))
    }
    assign(name, f, envir = space)
  }
}

# `names`: NULL, or those that as.data.frame() was given.
with_row_names <- function(table, names) {
  if (is.null(names)) return(table)
  if (length(names) != nrow(table) || anyNA(names) || anyDuplicated(names) > 0L) {
    abort_argument("row.names", sprintf("'row.names' must be %d different names", nrow(table)))
  }
  row.names(table) <- names
  table
}

guard_methods(topenv())
honour_arguments(topenv())
