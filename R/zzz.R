# Loading does nothing but load: no platform is asked, no context made, no file written.

.onUnload <- function(libpath) {
  gp_states$list <- list()
  gc()
  # matrices, likelihoods and large results that live on need the code that frees them
  if (!.Call(r_in_use)) library.dynam.unload("statcl", libpath)
}

# R's quick way to a method of a primitive is off after the methods of a package were loaded, until
# its tables are asked for again; without it an operator takes twice as long.
quick_primitives <- function(...) {
  for (name in c("%*%", names(operators), device_functions)) {
    setPrimitiveMethods(name, get(name, baseenv()), "reset", getGeneric(name), NULL)
  }
}

setLoadAction(quick_primitives, "quick_primitives")
