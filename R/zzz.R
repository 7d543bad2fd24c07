# Loading queries no platform, creates no context and writes no file.

.onUnload <- function(libpath) {
  gp_states$list <- list()
  gc()
  # matrices, likelihoods and large results still in use need the code that frees them
  if (!.Call(r_in_use)) library.dynam.unload("statcl", libpath)
}

# DESCRIPTION asks R not to compile all functions at installation (ByteCompile), as that makes them
# three times as large and the package larger than 5 MB. Those that others call are compiled here.
# Methods, S3's and S4's, and what prints and draws run once for a line that a user types, and some
# topics are rarer than the rest: R compiles such a function when it is called again. This file is
# the last to be read.
compile_functions <- function(names, where) {
  for (name in names) {
    value <- get(name, where)
    if (typeof(value) == "closure" && !isS4(value)) assign(name, compiler::cmpfun(value), where)
  }
}

local({
  where <- topenv()
  names <- ls(where, all.names = TRUE)
  rare <- paste0(".\\.(cl_|clMatrix|clArray|clAny|statcl_)|^(draw|plot|predict|print|show)_|",
                 "_(text|title)$|^(fit|convergence)_line|linear_tests|mixed|stream|response|",
                 "latent|tmb|tune|tuning|calibrat|replicate|band|fold|^cv_|acquire|batch|laplace|",
                 "block|profile|prior|worker|share|crew|pool|noise|toeplitz|^qr_|density_|",
                 "vecchia_|user_|glmm|group|explain|checkpoint|extend|compare|csv|quantile|as_glm")
  compile_functions(names[!grepl(rare, names)], where)
})

# After the methods of a package are loaded, R's fast dispatch of primitives is off until its tables
# are requested again; without it, operators take twice as long.
quick_primitives <- function(...) {
  for (name in c("%*%", names(operators), frequent_functions)) {
    setPrimitiveMethods(name, get(name, baseenv()), "reset", getGeneric(name), NULL)
  }
}

setLoadAction(quick_primitives, "quick_primitives")
