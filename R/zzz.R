# Loading does nothing but load: no platform is asked, no context made, no file written.

.onUnload <- function(libpath) {
  gc()
  library.dynam.unload("statcl", libpath)
}
