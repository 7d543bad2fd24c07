# The mode by Newton's method with step halving.

# The objective: the log likelihood plus log prior densities. `value` is minus it.
glm_objective <- function(core, prior, theta) {
  at <- glm_at(core, theta)
  likelihood <- at$value
  if (!is.null(prior)) {
    p <- prior$value(theta)
    at <- list(value = at$value + p$value, gradient = at$gradient + p$gradient)
  }
  list(theta = theta, value = if (is.finite(at$value)) -at$value else Inf, objective = at$value,
       gradient = as.vector(at$gradient), likelihood = likelihood)
}

# From `theta` to the mode. The tolerance applies to the square root of the Newton decrement, the
# length of the gradient in units of standard errors, which estimates the distance to the mode.
# Returns theta, value (log likelihood), objective, information, decrement, converged, message,
# iterations, `diverging` (the direction in which coefficients diverge, or NULL) and `held` (whether
# phi is fixed at its bound, or the auxiliary parameter where it was). `usual` is a point with
# parameters of typical size, unlike possibly theta: the information there is the reference for
# later ones.
glm_newton <- function(core, prior, theta, control, report = function(...) NULL, usual = theta,
                       held = FALSE) {
  now <- glm_objective(core, prior, theta)
  if (!is.finite(now$value)) {
    statcl_abort("nonfinite", "the log density is not finite at the starting values")
  }
  aux <- aux_index(core)
  at_usual <- identical(usual, theta)
  first <- diverging <- NULL
  direction <- function(now, exact) {
    if (!exact) return(NULL)
    theta <- now$theta
    gradient <- now$gradient
    if (identical(core$aux, "phi") && theta[aux] > largest_log_phi(core)) held <<- TRUE
    info <- glm_information(core, theta)
    if (!is.null(prior)) info <- info + prior$information(theta)
    if (held) {
      gradient[aux] <- 0
      info[aux, ] <- info[, aux] <- 0
      info[aux, aux] <- 1
    }
    by <- solve_information(info, gradient)
    list(information = info, by = by, decrement = max(sum(by * gradient), 0),
         enough = control$tolerance^2, most = if (core$logged && !held) min(1, 2 / abs(by[aux])))
  }
  count <- 0L
  shorten <- function(now, step, to) {
    if (is.null(prior)) {
      if (count == 1L && !at_usual) first <<- glm_information(core, usual)
      diverging <<- diverging_direction(core, now, step$information, first)
      if (count == 0L && at_usual) first <<- step$information
      count <<- count + 1L
      if (!is.null(diverging)) return(NULL)
    }
    shortened_step(now, step, to)
  }
  found <- newton_search(now, direction, function(now, step, size) {
    glm_objective(core, prior, now$theta + size * step$by)
  }, control$maxit, report = function(i, now, step) {
    report(i, now$objective, sqrt(step$decrement))
  }, shorten = shorten)
  now <- found$now
  step <- found$step
  # the remaining step costs nothing
  last <- if (found$converged && !found$rounding && is.null(prior)) step$by else 0
  list(theta = now$theta + last, value = now$likelihood, objective = now$objective,
       gradient = now$gradient, information = step$information, decrement = sqrt(step$decrement),
       converged = found$converged, iterations = found$iterations, diverging = diverging,
       held = held, message = if (found$converged) "converged" else
         if (!is.null(diverging)) "coefficients diverge" else
           if (found$stuck) "no step increases the log density" else limit_message(control$maxit))
}

limit_message <- function(count) sprintf("iteration limit of %d reached", count)

# The same for small logistic and Poisson regressions on the host without an offset: the search of
# glm-irls.R in C on a basis. NULL where it finds no mode, or one at which the gradient of the
# likelihood, which keeps its digits where means are near their bounds, is not rounding error.
newton_in_c <- function(problem, control) {
  if (!family_row(problem$family)$canonical || !is.null(problem$offset) ||
        is_on_device("glm_fit", problem$x)) return(NULL)
  core <- glm_core(problem, glm_basis(problem, working_weights(problem$family, used_data(problem))))
  control$tolerance <- min(control$tolerance, 1e-12) # the information is of the last step's start
  found <- canonical_in_c(core, control, 1e-2)
  if (is.null(found)) return(NULL)
  at <- .Call(r_glm_evaluate, environment(core$likelihood)$handle, 0, found$beta, NULL, NULL, NULL,
              "beta")
  slope <- attr(at, "gradient")$beta
  left <- sum(slope^2 / diag(found$information))
  if (is.null(at) || !is.finite(left) || left > 1e-20) return(NULL)
  found$theta <- found$beta
  found$value <- found$objective <- as.vector(at) + core$constant
  found[c("gradient", "converged", "message", "held")] <- list(slope, TRUE, "converged", FALSE)
  list(core = core, found = found)
}

# The bound of log(phi), above which the distribution is practically Poisson: the variance is within
# 1e-7 of the mean for counts of any size.
largest_log_phi <- function(core) 16 + log(max(core$data$y, 1))

# A direction in which the information has almost vanished compared with the start and the
# likelihood does not decrease: the likelihood has no maximum, and some observations are predicted
# with certainty. Returns the change of each coefficient, in units of its column; NULL if there is
# none.
diverging_direction <- function(core, now, info, first) {
  if (is.null(first) || is_least_squares(core$family) || core$beta_count == 0L) return(NULL)
  k <- if (core$logged) seq_len(core$beta_count) else seq_len(core$count)
  size <- sqrt(diag(first)[k])
  if (!all(size > 0)) return(NULL)
  # a quick check: no direction has lost nearly all of its information
  if (!is.null(chol_or_null((info[k, k] - 1e-6 * first[k, k]) / outer(size, size)))) return(NULL)
  root <- chol_or_null(first[k, k] / tcrossprod(size))
  if (is.null(root)) return(NULL)
  half <- backsolve(root, info[k, k] / tcrossprod(size), transpose = TRUE)
  relative <- backsolve(root, t(half), transpose = TRUE)
  parts <- eigen((relative + t(relative)) / 2, symmetric = TRUE)
  last <- length(k)
  if (parts$values[last] > 1e-8) return(NULL)
  direction <- numeric(core$count)
  direction[k] <- backsolve(root, parts$vectors[, last]) / size
  if (!goes_up_for_ever(core, now, direction)) return(NULL)
  beta <- seq_len(core$beta_count)
  if (is.null(core$basis)) return(abs(direction[beta] * size[beta]))
  gamma <- matrix(direction[beta], length(core$kept))
  abs(as.vector(from_basis(core$basis, gamma) * core$basis$unit *
                  sqrt(colSums(basis_root(core$basis)^2))))
}

# Whether the likelihood stays constant when the linear predictors move by up to 64 in this
# direction: a wrong prediction would decrease it.
goes_up_for_ever <- function(core, now, direction) {
  beta <- full_beta(core, as.matrix(direction))
  if (ncol(core$data$x) > core$columns) beta[-seq_len(core$columns), ] <- 0
  reach <- max(abs(as.matrix(cl_matmul(core$data$x, beta))), abs(direction[aux_index(core)]))
  if (!is.finite(reach) || reach == 0) return(FALSE)
  value <- now$likelihood
  slack <- 1e-9 * (1 + abs(value))
  further <- direction * (64 / reach)
  gain <- c(glm_at(core, now$theta + further)$value, glm_at(core, now$theta - further)$value) -
    value
  any(gain >= -slack & gain <= 1)
}

# ---- the fit by likelihood or with priors --------------------------------------------------------

# By the fitter that the row of the family names, or with priors by Newton's method: list(core,
# found), the result of glm_newton() and the core with its free columns.
glm_fit_mode <- function(problem, priors, start, control, progress) {
  fitter <- if (is.null(priors)) family_row(problem$family)$fitter else "newton"
  glm_on_engine(problem$x, function() {
    switch(fitter, newton = newton_fit(problem, priors, start, control, progress),
           least_squares = least_squares_mode(problem, start),
           irls = irls_mode(problem, start, control, glm_reporter(progress)))
  })
}

newton_fit <- function(problem, priors, start, control, progress) {
  by_likelihood <- is.null(priors)
  if (by_likelihood && is.null(start) && basis_is_cheap(problem$x)) {
    quick <- newton_in_c(problem, control)
    if (!is.null(quick)) return(quick)
  }
  near <- if (by_likelihood && is.null(start) && !basis_is_cheap(problem$x)) {
    near_mode(problem, control)
  }
  begin <- if (is.null(near)) glm_begin(problem, start, priors) else near
  report <- glm_reporter(progress)
  found <- glm_newton(begin$core, begin$prior, begin$theta, control, report, begin$usual)
  if (!is.null(near)) found$iterations <- found$iterations + near$iterations
  if (by_likelihood) {
    again <- better_basis(begin$core, found, control, report)
    begin$core <- again$core
    found <- again$found
  }
  warn_mode(begin$core, found)
  list(core = begin$core, prior = begin$prior, found = found)
}

# glm_start(), on a basis if that is cheap or the columns require it.
glm_begin <- function(problem, start, priors) {
  if (is.null(priors) && !basis_is_cheap(problem$x)) {
    begin <- glm_start(glm_core(problem), start, priors)
    if (begin$core$least > 1e-4) return(begin)
  }
  basis <- NULL
  if (is.null(priors)) {
    basis <- glm_basis(problem, working_weights(problem$family, used_data(problem)))
  }
  glm_start(glm_core(problem, basis), start, priors)
}

# Continues on a new basis if columns that were nearly orthogonal at the start no longer are.
better_basis <- function(core, found, control, report) {
  for (i in 1:4) {
    least <- if (is.null(core$basis)) 1e-4 else 1e-2 # a first basis is expensive
    if (!is.null(found$diverging) || !is_skew(coefficient_information(core, found), least)) break
    moved <- change_basis(core, found$theta, basis_weights(core, found$theta))
    if (is.null(moved)) break
    next_found <- tryCatch(glm_newton(moved$core, NULL, moved$theta, control, report),
                           statcl_error_nonfinite = function(e) NULL)
    if (is.null(next_found)) break
    next_found$iterations <- next_found$iterations + found$iterations
    core <- moved$core
    found <- next_found
  }
  list(core = core, found = found)
}

coefficient_information <- function(core, found) {
  k <- seq_len(core$beta_count)
  found$information[k, k, drop = FALSE]
}

warn_mode <- function(core, found) {
  if (!is.null(found$diverging)) {
    names <- coefficient_names(core)
    worst <- names[found$diverging > 0.1 * max(found$diverging)]
    more <- if (length(worst) > 5L) ", ..." else ""
    statcl_warning("separation", paste0(
      "the likelihood has no maximum: some responses are predicted with certainty, and these ",
      "coefficients diverge to infinity: ", paste(utils::head(worst, 5L), collapse = ", "), more,
      "; remove predictors, or use priors (method = \"map\")",
      if (family_row(core$family)$canonical) " or Firth's penalty (method = \"firth\")"))
  } else if (!found$converged) {
    statcl_warning("convergence", sprintf(paste(
      "the optimiser has not converged (%s): the mode is about %.2g standard errors away"),
      found$message, found$decrement))
  }
  if (found$held) {
    statcl_warning("boundary", paste("the counts are not overdispersed, so 'phi' has no finite",
                                     "estimate: use family \"poisson_log\""))
  }
}

# Shows the progress of a long search.
glm_reporter <- function(progress) {
  if (!progress) return(function(...) NULL)
  due <- progress_clock()
  function(i, value, decrement) {
    if (!due()) return()
    message(sprintf("cl_glm: iteration %d, log density %.8g, %.2g standard errors from the mode",
                    i, value, decrement))
  }
}

# Names of the free coefficients, in the order of theta.
coefficient_names <- function(core) class_names(core, core$problem$names[core$kept])

# "class:column" for families with several linear predictors.
class_names <- function(core, columns) {
  if (core$classes == 1L) return(columns)
  paste(rep(core$problem$levels[-1L], each = length(columns)), columns, sep = ":")
}

# ---- covariance ----------------------------------------------------------------------------------

# The covariance matrix of the free coefficients (and cuts, and the auxiliary parameter as the last
# one or on its log scale): list(vcov, aux_error, root), with vcov = root root' if the fit has a
# basis. For neg_binomial_2_log by maximum likelihood it uses the expected information, in which the
# coefficients and phi are uncorrelated.
glm_covariance <- function(core, prior, found) {
  info <- found$information
  beta <- seq_len(core$beta_count)
  aux <- aux_index(core)
  aux_error <- NA_real_
  if (core$logged && is.null(prior)) {
    aux_value <- exp(found$theta[aux])
    if (!found$held && info[aux, aux] > 0) aux_error <- aux_value / sqrt(info[aux, aux])
    info <- if (core$aux == "phi") {
      glm_gram(core$data$x, expected_weights(core, found$theta))[core$free, core$free, drop = FALSE]
    } else {
      info[beta, beta, drop = FALSE]
    }
  }
  squares <- if (is.null(prior) && is.null(core$basis) && !has_classes(core$family)) {
    function(basis) {
      full <- matrix(0, ncol(core$data$x), ncol(basis))
      full[core$free, ] <- basis
      glm_gram(cl_matmul(core$data$x, full), expected_weights(core, found$theta))
    }
  }
  half <- inverse_root(info, squares)
  if (is.null(half)) half <- info * NA_real_
  root <- NULL
  if (!is.null(core$basis)) {
    k <- seq_len(nrow(half))
    half <- root <- theta_map(core)[k, k, drop = FALSE] %*% half
  }
  v <- tcrossprod(half)
  if (core$logged && !is.null(prior)) {
    aux_error <- exp(found$theta[aux]) * sqrt(v[aux, aux])
    v <- v[beta, beta, drop = FALSE]
  }
  names <- c(coefficient_names(core), if (!core$logged) aux_names(core))
  dimnames(v) <- list(names, names)
  if (!is.null(root)) rownames(root) <- names
  list(vcov = v, aux_error = aux_error, root = root)
}

# The weights of the rows of x in the expected information, for families with one linear predictor.
expected_weights <- function(core, theta) {
  aux <- as.vector(aux_values(core, as.matrix(theta)))
  eta <- glm_eta(core, theta)
  if (!is_cl(eta)) eta <- as.vector(eta)
  w <- if (is.na(core$aux)) {
    glm_weights(core$family, core$data$there$y, eta, aux, core$data$there$trials)
  } else {
    mu <- exp(eta)
    mu / (1 + mu / aux)
  }
  if (is.null(core$data$weights)) w else w * core$data$there$weights
}

# The weight of each row in the information at theta, for a basis.
basis_weights <- function(core, theta) {
  eta <- as.matrix(glm_eta(core, theta))
  if (core$classes > 1L) {
    w <- 1 - rowSums(class_probabilities(core$family, eta)^2)
  } else {
    aux <- as.vector(aux_values(core, as.matrix(theta)))
    w <- glm_weights(core$family, core$data$y, as.vector(eta), aux, core$data$trials)
  }
  if (is.null(core$data$weights)) w else w * core$data$weights
}

# The inverse; NA, with a warning, if info is not positive definite.
invert_information <- function(info) {
  if (length(info) == 0L) return(info)
  factor <- scaled_factor(info)
  if (is.null(factor)) return(info * NA_real_)
  chol2inv(factor$root) / tcrossprod(factor$size)
}

# list(root, size): info = size root' root size.
scaled_factor <- function(info) {
  size <- sqrt(abs(diag(info)))
  size[!(size > 0)] <- 1
  root <- chol_or_null(info / outer(size, size))
  if (!is.null(root)) return(list(root = root, size = size))
  statcl_warning("convergence", paste("the Hessian of the log density is not negative definite",
                                      "at the estimate: no standard errors"))
  NULL
}

# R with R R' = info^-1; NULL as above. `squares`: for info = X' W X, a function that gives B' X' W
# X B without computing info. With nearly collinear columns, cross-products lose digits that X has:
# then a second factor is computed in coordinates in which the columns are nearly orthogonal.
inverse_root <- function(info, squares = NULL) {
  if (length(info) == 0L) return(info)
  factor <- scaled_factor(info)
  if (is.null(factor)) return(NULL)
  half <- .Call(r_solve_right, diag(nrow(info)), factor$root) / factor$size
  again <- if (!is.null(squares) && min(diag(factor$root)) <= 1e-3) chol_or_null(squares(half))
  if (is.null(again)) half else .Call(r_solve_right, half, again)
}

aux_names <- function(core) {
  if (core$aux_count == 0L) return(character())
  if (core$aux != "cuts") return(core$aux)
  levels <- core$problem$levels
  paste(levels[-length(levels)], levels[-1L], sep = "|")
}

glm_note <- function(x) if (is_cl(x)) data_note(state_of(x)) else engine_note("glm_fit")

# A fit, or a part of one, on the engine for these predictors; draws take as long as many fits.
# Least squares have no links, and pass over the rows once: up to some 40 columns the host is done
# before a device has the predictors.
glm_on_engine <- function(x, run, method = "ml", family = NULL) {
  begin_note("glm_fit")
  if (is_cl(x)) return(run())
  if (is_sparse(x)) {
    return(fit_on_engine("glm_fit", sparse_work(x), run, kind = fit_kind(x, method, family)))
  }
  once <- is.character(method) && identical(method[1L], "ml") && !is.null(family) &&
    is_least_squares(family)
  size <- if (once) as.numeric(nrow(x)) * ncol(x)^2 / 40 else x
  sampled <- identical(method, "mcmc")
  # a compiled density is kept, and the sampler would not end
  whole <- !sampled && is.character(family) &&
    family_row(family)$fitter %in% c("newton", "least_squares")
  fit_on_engine("glm_fit", size, run, if (sampled) 300 else 1, fit_kind(x, method, family),
                whole = whole)
}

# The kind of a fit, for where_for(). `family`: a name, a family of R or NULL.
fit_kind <- function(x, method, family) {
  names <- if (is.list(family)) unclass(family)[c("family", "link")] else family
  names <- Filter(is.character, c(if (is_sparse(x)) "sparse", method[1L], names))
  shape_kind(paste(c("glm_fit", names), collapse = " "), dim(x))
}
