# Loading queries no platform, creates no context and writes no file.

.onLoad <- function(libname, pkgname) {
  table <- .Call(r_expr_ops)$operations
  functions <- setdiff(intersect(getGroupMembers("Math"), table$name[table$arity == 1L]), "log")
  assign("device_functions", functions, topenv())
}

.onUnload <- function(libpath) {
  gp_states$list <- list()
  gc()
  # matrices, likelihoods and large results still in use need the code that frees them
  if (!.Call(r_in_use)) library.dynam.unload("statcl", libpath)
}

# Functions of higher rooms that lower rooms call.
tracing$rooms <- list(kernel_masks, glm_masks, density_functions)
tracing$densities <- names(density_table)
known_pure$stats <- intersect(names(density_table), getNamespaceExports("stats"))
later_fits$effects <- cl_glmm
tracing$twins <- list(cl_likelihood = traced_likelihood)

# After the methods of a package are loaded, R's fast dispatch of primitives is off until its tables
# are requested again; without it, operators take twice as long.
quick_primitives <- function(...) {
  for (name in c("%*%", names(operators), frequent_functions)) {
    setPrimitiveMethods(name, get(name, baseenv()), "reset", getGeneric(name), NULL)
  }
}

setLoadAction(quick_primitives, "quick_primitives")
