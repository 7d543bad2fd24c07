# Conditioned Gaussian processes of recently used fits.
#
# A fit contains only data and parameters, so that it can be copied and saved like any list.
# Factoring its covariance matrix is expensive, and predictions come in series, so the session
# caches the states of a few fits by the fit's id and recomputes others.

gp_states$list <- list()
gp_states$count <- 0L

# The approximate number of elements of a fit's state: a factor of the covariance matrix, or
# neighbours.
gp_state_size <- function(object) {
  n <- length(object$y)
  if (is.null(object$vecchia)) n^2 else n * (object$vecchia$neighbours + 4)
}

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
  all <- c(list(list(id = object$id, key = key, size = gp_state_size(object), state = state)), old)
  size <- cumsum(vapply(all, function(entry) entry$size, 0))
  gp_states$list <- all[seq_along(all) == 1L | (size <= gp_states_limit & seq_along(all) <= 8L)]
  invisible()
}

# The likelihood of a fit: by Vecchia's approximation that of its state, whose order and neighbours
# take longer than a likelihood.
gp_state_likelihood <- function(object) {
  problem <- gp_problem(object)
  if (!is.null(object$vecchia) && is.null(problem$response)) return(gp_state(object)$likelihood)
  clear_gp_states(length(object$y)) # two more n x n matrices will be allocated
  gp_function(problem)
}
