# The checked data of a Gaussian process fit, and the object of class cl_gp.

# Checked inputs: list(y, x, kernel, mean, beta, weights, variance, scale).
new_gp_problem <- function(x, y, kernel, mean, beta, weights, variance, h) {
  y <- check_numeric(if (is_cl(y)) as.matrix(y) else y, "y")
  if (is.matrix(y) && ncol(y) != 1L) {
    abort_argument("y", sprintf("'y' must be a vector, not %s", describe(y)))
  }
  check_columns_numeric(x, "x")
  x <- check_numeric(if (is_cl(x)) as.matrix(x) else x, "x")
  if (is.null(dim(x))) dim(x) <- c(length(x), 1L)
  y <- as.vector(y)
  n <- length(y)
  if (n == 0L) abort_argument("y", "'y' is empty")
  if (n != nrow(x)) {
    abort_argument("y", sprintf("'y' has %d values, but 'x' has %d rows", n, nrow(x)))
  }
  check_gp_finite(y, "y")
  check_gp_finite(x, "x")
  weights <- check_noise(weights, n, "weights", TRUE)
  variance <- check_noise(variance, n, "variance", FALSE)
  kind <- read_mean(mean)
  if (kind == "formula" && !is.null(colnames(x))) {
    mean <- without_dot(mean, stats::reformulate(sprintf("`%s`", colnames(x)))[[2L]])
  }
  learnt <- NULL # the parameters of poly() and similar functions are kept for other points
  if (kind %in% c("linear", "formula") && is.null(h)) {
    frame <- if (kind == "formula") mean_frame(mean, x)
    if (!is.null(frame)) learnt <- stats::terms(frame)
    h <- mean_columns(kind, x, learnt, frame)
  }
  basis <- gp_mean(kind, y, h, if (kind == "number") mean)
  taken <- basis$names %in% c(names(coef(kernel)), "noise")
  basis$names[taken] <- paste0("mean.", basis$names[taken])
  if (kind == "formula") basis$formula <- mean
  if (!is.null(learnt)) {
    basis$learnt <- learnt
    basis$xlevels <- stats::.getXlevels(learnt, frame)
  }
  # A power of two: dividing by it is exact, so that a covariance matrix that can be factored in the
  # search can be factored on the scale of y too.
  largest <- max(abs(y - basis$centre))
  spread <- if (largest > 0) largest * sqrt(mean(((y - basis$centre) / largest)^2)) else 0
  if (spread > 0 && (spread < 1e-150 || spread > 1e150)) {
    abort_argument("y", sprintf(paste("'y' varies by %.2g, whose square cannot be represented:",
                                      "rescale 'y'"), spread))
  }
  list(y = y, x = x, kernel = kernel, mean = basis, beta = beta, weights = weights,
       variance = variance, scale = if (spread > 0) 2^round(log2(spread)) else 1)
}

check_gp_finite <- function(v, name) {
  bad <- which(!is.finite(v))
  if (length(bad) == 0L) return(invisible())
  what <- if (!is.na(v[bad[1L]])) "an infinite value" else
    "a missing value (a formula drops such rows, see na.action)"
  statcl_abort("nonfinite", sprintf("'%s' has %s", name, what), index = bad[1L], argument = name)
}

check_noise <- function(v, n, name, positive) {
  if (is.null(v)) return(NULL)
  right <- is.numeric(v) && length(v) == n && all(is.finite(v)) &&
    all(if (positive) v > 0 else v >= 0)
  if (!right) {
    abort_argument(name, sprintf("'%s' must be a vector of %d finite %s numbers", name, n,
                                 if (positive) "positive" else "non-negative"))
  }
  as.double(v)
}

# The columns of x as the variables of a mean's formula.
mean_frame <- function(mean, x, xlevels = NULL) {
  if (is.null(colnames(x))) {
    abort_argument("mean", "a formula for the mean needs column names in 'x'")
  }
  lacking <- setdiff(all.vars(mean), colnames(x))
  if (length(lacking) > 0L) {
    abort_argument("mean", sprintf("'x' has no column '%s'", lacking[1L]))
  }
  stats::model.frame(stats::terms(mean), as.data.frame(x), na.action = stats::na.pass,
                     xlev = xlevels)
}

# Raises an error if the data have no information about parameters.
check_gp_information <- function(problem) {
  n <- length(problem$y)
  if (n < 2L) {
    abort_argument("y", paste("parameters cannot be estimated from one observation: fix all of",
                              "them in 'fixed'"))
  }
  if (n <= length(problem$mean$names)) {
    abort_argument("mean", sprintf("%d observations are too few for %d coefficients of the mean", n,
                                   length(problem$mean$names)))
  }
  if (max(abs(problem$y - problem$mean$centre)) <= 1e-14 * max(abs(problem$y))) {
    abort_argument("y", if (min(problem$y) == max(problem$y)) {
      "'y' is constant: there is no variation to fit"
    } else {
      "the mean fits 'y' exactly: the residuals are zero"
    })
  }
}

# The object, from the parameters found.
finish_gp <- function(problem, space, method, prior, found) {
  fit <- c(found_parts(problem, space, method, prior, found),
           list(noise = found$par[["noise"]], weights = problem$weights,
                variance = problem$variance))
  fit$noise_kernel <- problem$noise_kernel
  fit <- settle_gp(structure(fit, class = "cl_gp"))
  fit$engine <- engine_note("gp")
  warn_collapsed(fit, space)
  warn_unfinished(found, method)
  fit
}

# The components that fits by all methods have.
found_parts <- function(problem, space, method, prior, found) {
  of_kernel <- found$par[seq_along(coef(problem$kernel))]
  of_search <- c("par", "objective", "gradient", "converged", "message", "evaluations", "not_pd",
                 "at_bound", "trials", "draws", "vecchia")
  c(found[intersect(of_search, names(found))],
    list(kernel = with_parameters(problem$kernel, of_kernel), method = method,
         fixed = space$name[!space$free], prior = prior$by, x = problem$x, y = problem$y,
         trend = problem$mean, beta = problem$beta, log_scale = space$log))
}

# Warns of a search, or of chains, that did not finish.
warn_unfinished <- function(found, method) {
  if (identical(found$message, "interrupted")) {
    statcl_warning("interrupted", "interrupted: the result has the best parameters found so far")
  } else if (identical(found$message, edge_message)) {
    statcl_warning("convergence", paste(
      "the likelihood increases up to where the covariance matrix is singular to rounding:",
      "predictions may be precise, parameters and their standard errors are not; for these, fix",
      "'noise' at a small value, such as fixed = c(noise = 1e-4 * sd(y))"))
  } else if (!found$converged) {
    statcl_warning("convergence", if (method == "mcmc") {
      sprintf("%s: the chains are too short or do not agree; increase 'iter' in 'control'",
              found$message)
    } else {
      sprintf("the optimiser did not converge: %s", found$message)
    })
  }
}

# Few observations are often fitted without any noise, with intervals that are much too narrow.
warn_collapsed <- function(fit, space) {
  last <- nrow(space)
  count <- sum(space$free) + length(fit$trend$names)
  if (any(space$free) && length(fit$y) < count) {
    statcl_warning("few", sprintf(paste(
      "%d observations hardly determine %d parameters: take the estimates as rough guesses, or set",
      "some of them in 'fixed'"), length(fit$y), count))
  }
  few <- length(fit$y) < 10L * sum(space$free)
  if (few && fit$method %in% c("ml", "loo") && "noise" %in% fit$at_bound &&
        fit$noise < 1.01 * space$low[last]) {
    statcl_warning("noise", paste(
      "the estimate of 'noise' is at its lower bound, as happens with few observations: intervals",
      "may be too narrow. Take method = \"map\" or \"mcmc\"; for observations without noise set",
      "fixed = c(noise = 0)"))
  }
}

# Quantities derived from data and parameters: coefficients of the mean, likelihood, fitted values.
settle_gp <- function(fit, state = NULL) {
  fit$id <- new_gp_id()
  if (is.null(state)) state <- gp_condition(gp_function(gp_problem(fit)), fit$par)
  keep_gp_state(fit, state)
  if (!is.null(state$noise_process)) {
    fit$noise_process <- state$noise_process
    fit$weights <- state$effective
  }
  trend <- fit$trend
  beta <- if (trend$kind == "number") numeric() else as.vector(state$beta) + trend$shift
  fit$mean <- switch(trend$kind, number = trend$value, constant = beta)
  fit$coefficients <- c(fit$par, mean_coefficients(trend, beta))
  fit$logLik <- state$value - mean_constant(trend, fit$beta)
  if (is.null(fit$objective)) fit$objective <- fit$logLik
  fit$residuals <- stats::setNames(gp_noise(fit) * state$weights, rownames(fit$x))
  fit$fitted.values <- fit$y - fit$residuals
  fit
}

# The problem that a fit solved, for the likelihood.
gp_problem <- function(fit) {
  list(y = fit$y, x = fit$x, kernel = fit$kernel, mean = fit$trend, beta = fit$beta,
       weights = if (is.null(fit$noise_process)) fit$weights else fit$noise_process$weights,
       noise_kernel = fit$noise_kernel, variance = fit$variance, vecchia = fit$vecchia, scale = 1,
       response = fit$response)
}

# The variance of each observation's noise.
gp_noise <- function(fit) {
  v <- rep(fit$noise^2, length(fit$y))
  if (!is.null(fit$weights)) v <- v / fit$weights
  if (!is.null(fit$variance)) v <- v + fit$variance
  v + white_variance(fit$kernel, fit$x)
}

# The noise variance of a new observation at each row of x.
new_noise <- function(fit, x) {
  rep(fit$noise^2, nrow(x)) * noise_factor(fit, x) + white_variance(fit$kernel, fit_columns(fit, x))
}

# Points with column names as in the fit, and no others.
fit_columns <- function(fit, x) structure(unname(x), dimnames = list(NULL, colnames(fit$x)))

# The variance of white terms at the rows of x, which predictions of the process exclude.
white_variance <- function(kernel, x) {
  types <- vapply(kernel$terms, `[[`, "", "type")
  if (!"white" %in% types) return(0)
  total <- function(with_white) {
    run_program(kernel, function(i) {
      term <- kernel$terms[[i]]
      if (term$type == "white") return(rep(if (with_white) term$sd^2 else 0, nrow(x)))
      kernel_variance(new_kernel(term), x)
    }, `+`, `*`)
  }
  total(TRUE) - total(FALSE)
}
