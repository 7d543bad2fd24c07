# Conditioned Gaussian processes of recently used fits: what the session keeps, see R/gp-cache.R.

gp_states <- new.env(parent = emptyenv())

# The largest number of elements of all states in the cache: one large state or a few small ones.
gp_states_limit <- 4096^2

drop_gp_state <- function(object) {
  gp_states$list <- Filter(function(entry) !identical(entry$id, object$id), gp_states$list)
  invisible(gc(FALSE)) # frees their device memory now
  invisible()
}

# Frees the cache before a large allocation.
clear_gp_states <- function(n) if (n^2 > gp_states_limit / 4) gp_states$list <- list()
