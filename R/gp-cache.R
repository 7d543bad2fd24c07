# Conditioned processes of the fits that were used last.
#
# A fit holds data and parameters only, so that it can be copied and saved like any list. Factoring
# its covariance matrix takes long, though, and predictions come in series: the session keeps the
# states of a few fits, found by the fit's id, and makes others again.

gp_states <- new.env(parent = emptyenv())
gp_states$list <- list()
gp_states$count <- 0L

# How many observations the states kept may have together, squared: one large one, or some small.
gp_states_limit <- 4096^2

new_gp_id <- function() {
  gp_states$count <- gp_states$count + 1L
  paste(Sys.getpid(), format(as.numeric(Sys.time()), digits = 16), gp_states$count)
}

# The state of a fit at its parameters.
gp_state <- function(object) {
  key <- list(object$par, object$kernel$terms, session$engine, Sys.getpid())
  for (entry in gp_states$list) {
    if (identical(entry$id, object$id) && identical(entry$key, key)) return(entry$state)
  }
  state <- gp_condition(gp_function(gp_problem(object)), object$par)
  keep_gp_state(object, state)
  state
}

keep_gp_state <- function(object, state) {
  key <- list(object$par, object$kernel$terms, session$engine, Sys.getpid())
  old <- Filter(function(entry) !identical(entry$id, object$id), gp_states$list)
  all <- c(list(list(id = object$id, key = key, n = length(object$y), state = state)), old)
  size <- cumsum(vapply(all, function(entry) entry$n^2, 0))
  gp_states$list <- all[seq_along(all) == 1L | (size <= gp_states_limit & seq_along(all) <= 8L)]
  invisible()
}

drop_gp_state <- function(object) {
  gp_states$list <- Filter(function(entry) !identical(entry$id, object$id), gp_states$list)
  invisible(gc(FALSE)) # what they held of a device goes now
  invisible()
}

# Before something large: what is kept makes room.
clear_gp_states <- function(n) if (n^2 > gp_states_limit / 4) gp_states$list <- list()
