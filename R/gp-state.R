# Gaussian processes conditioned on data, for predictions.

# Conditions the process of a likelihood on its data. A list of class "cl_gp_state": value (log
# marginal likelihood), weights (C^-1 (y - H b)), beta, beta_cov, and functions: predict(at, what,
# basis), loo(), mean_gradient(at, y_column), extend(y, x, basis, weights, variance). For one column
# of y, weights and means are vectors, else matrices with a column for each.
gp_condition <- function(f, par) {
  if (inherits(f, "cl_gp_vecchia")) return(vecchia_condition(f, par))
  if (inherits(f, "cl_gp_response")) return(response_condition(f, par))
  if (inherits(f, "cl_gp_noise")) return(noise_condition(f, par))
  if (inherits(f, "cl_gp_replicates")) return(replicates_condition(f, par))
  e <- environment(f)
  par <- check_gp_parameters(par, e$names, e$positive)
  new_gp_state(e$data, e$kernel, e$trend, e$spread, par, e$on_device)
}

# extend: NULL, or a function that gives the state of .Call from an older handle.
new_gp_state <- function(data, kernel, trend, spread, par, on_device, extend = NULL) {
  resident <- FALSE
  user <- if (has_user(kernel)) user_process(data, kernel, spread, function() resident)
  layout <- if (is.null(user)) kernel_layout(kernel, ncol(data$x), colnames(data$x))
  values <- if (is.null(user)) layout_values(layout, par)
  first <- if (!is.null(extend)) extend(layout, values)
  on_handle <- handle_caller(data, on_device, function(where) {
    resident <<- where >= 0L # for user$covariance()
    made <- .Call(r_gp_condition, new_gp(data, kernel, trend, spread, where),
                  if (is.null(user)) layout$c else user$covariance(par), values, trend$integrate)
    if (is.null(first)) first <<- made
    made$handle
  }, first$handle, function(where) resident <<- where >= 0L)
  shape <- function(v) if (data$vector) as.vector(v) else unname(v)
  state <- c(state_parts(data, trend, first), list(
    predict = function(at, what = "mean", basis = NULL) {
      new <- state_points(data, trend, at, basis)
      result <- if (!is.null(user)) user$predict(on_handle, par, new$at, new$scaled, what) else
        on_handle(function(h) {
          .Call(r_gp_predict, h, layout$c, values, kernel_points(kernel, new$at), new$scaled, what)
        })
      result$mean <- shape(result$mean + new$known)
      result["variance"] <- list(if (!is.null(result$variance)) as.vector(result$variance))
      result
    },
    # for the part of the process with the covariance function `own`, without a mean
    part = function(at, own, what = "mean") {
      at <- check_state_points(at, data)
      part <- kernel_layout(own, ncol(data$x), colnames(data$x), kernel)
      kernel_at <- kernel_points(kernel, at)
      numbers <- layout_values(part, c(kernel_values(own), 0))
      none <- if (trend$count > 0L) matrix(0, nrow(at), trend$count)
      result <- on_handle(function(h) {
        .Call(r_gp_predict, h, part$c, numbers, kernel_at, none, what)
      })
      result$mean <- shape(result$mean)
      result["variance"] <- list(if (!is.null(result$variance)) as.vector(result$variance))
      result
    },
    loo = function() {
      diagonal <- on_handle(function(h) .Call(r_gp_precisions, h))
      list(mean = shape(data$y - first$weights / diagonal), variance = 1 / diagonal)
    },
    mean_gradient = function(at, y_column = 1L) {
      at <- check_state_points(at, data)
      if (!is.null(user)) { # of the process alone if the basis is a matrix
        none <- if (trend$type == "basis") matrix(0, nrow(at), NROW(state_beta(trend, first$b)))
        mean <- function(x) as.matrix(state$predict(x, basis = none)$mean)[, y_column]
        return(user_mean_gradient(mean, at, data$x))
      }
      slope <- on_handle(function(h) {
        .Call(r_gp_slope, h, layout$c, values, kernel_points(kernel, at), as.integer(y_column))
      })
      slope <- sphere_slopes(kernel, slope, at)
      if (trend$type == "linear") {
        b <- if (is.null(trend$held)) as.matrix(state_beta(trend, first$b)) else trend$held
        slope <- slope + rep(b[-1L, y_column], each = nrow(at))
      }
      dimnames(slope) <- list(NULL, colnames(data$x))
      slope
    },
    extend = function(y, x, basis = NULL, weights = NULL, variance = NULL) {
      more <- extend_data(data, kernel, trend, spread, y, x, basis, weights, variance)
      new_gp_state(more$data, kernel, more$trend, more$spread, par, on_device,
                   if (is.null(user)) function(layout, values) {
                     on_handle(function(h) {
                       .Call(r_gp_extend, h, more$data$y - more$trend$offset,
                             kernel_points(kernel, more$data$x),
                             more$trend$basis, more$spread, layout$c, values, trend$integrate)
                     })
                   })
    }))
  structure(state, class = "cl_gp_state")
}

state_beta <- function(trend, b) {
  if (trend$count > 0L) return(trend_coefficients(trend, b))
  held <- trend$held
  if (is.null(held)) return(numeric())
  if (trend$outputs == 1L) held[, 1L] else held
}

state_beta_cov <- function(trend, a_inverse) {
  count <- if (is.null(trend$held)) trend$count else nrow(trend$held)
  cov <- matrix(0, count, count)
  if (trend$count > 0L) {
    inverse <- backsolve(trend$root, diag(count))
    cov <- inverse %*% a_inverse %*% t(inverse)
  }
  dimnames(cov) <- list(trend$names, trend$names)
  cov
}

# The components of a state that come from the core's results.
state_parts <- function(data, trend, first) {
  list(value = first$value[1L] - if (trend$integrate) trend$log_det * ncol(data$y) else 0,
       weights = if (data$vector) as.vector(first$weights) else unname(first$weights),
       beta = state_beta(trend, first$b), beta_cov = state_beta_cov(trend, first$a_inverse))
}

# Points for a prediction: list(at, scaled: the basis there, as the core has it, known: the part of
# the mean that it does not have).
state_points <- function(data, trend, at, basis) {
  at <- check_state_points(at, data)
  basis <- trend_at(trend, at, basis)
  known <- if (is.null(trend$held)) 0 else basis %*% trend$held
  list(at = at, known = as.vector(if (trend$type == "number") trend$offset else known),
       scaled = if (trend$count > 0L) t(backsolve(trend$root, t(basis), transpose = TRUE)))
}

check_state_points <- function(at, data) {
  at <- check_numeric(if (is_cl(at)) as.matrix(at) else at, "newdata")
  if (is.null(dim(at))) dim(at) <- c(length(at), 1L)
  if (ncol(at) != ncol(data$x)) {
    abort_argument("newdata", sprintf("'newdata' has %d columns, but the model has %d", ncol(at),
                                      ncol(data$x)))
  }
  bad <- which(!is.finite(at))
  if (length(bad) > 0L) {
    statcl_abort("nonfinite", "'newdata' has missing or infinite values", index = bad[1L],
                 argument = "newdata")
  }
  if (is.null(colnames(at))) colnames(at) <- colnames(data$x)
  at
}

# The data with more observations.
extend_data <- function(data, kernel, trend, spread, y, x, basis, weights, variance) {
  more <- gp_observations(y, x, kernel)
  if (ncol(more$x) != ncol(data$x) || ncol(more$y) != ncol(data$y)) {
    abort_argument("x", "the new observations must have the same columns as the old ones")
  }
  k <- nrow(more$x)
  added <- gp_spread(weights, variance, k)
  if (!is.null(spread) || !is.null(added)) {
    none <- function(n) cbind(rep(1, n), rep(0, n))
    spread <- rbind(if (is.null(spread)) none(nrow(data$x)) else spread,
                    if (is.null(added)) none(k) else added)
  }
  colnames(more$x) <- colnames(data$x)
  new <- trend_at(trend, more$x, basis)
  if (trend$count > 0L) {
    old <- trend$basis %*% trend$root
    trend$basis <- rbind(trend$basis, t(backsolve(trend$root, t(new), transpose = TRUE)))
    dimnames(trend$basis) <- NULL
    if (trend$type == "basis") {
      whole <- rbind(old, new)
      trend$at <- function(x) whole
    }
  } else if (!is.null(trend$held)) {
    trend$offset <- rbind(trend$offset, unname(new %*% trend$held))
  }
  data$y <- rbind(unname(data$y), unname(more$y))
  data$x <- rbind(data$x, more$x)
  list(data = data, trend = trend, spread = spread)
}
