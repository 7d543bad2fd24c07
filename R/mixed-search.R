# The search for the parameters of models with random effects. A likelihood is an even function of
# each column of a factor of a covariance matrix, so that its derivatives are 0 where a column is 0,
# whether that is a maximum or not. Therefore factors have no bounds in the search, which starts at
# estimates by moments, and leaves a column of 0 where the likelihood curves upwards.

# The lower triangles theta from variances by moments, of the observations with `score` (first
# derivatives with respect to linear predictors at effects of 0) and minus second derivatives `w`:
# the product of the scores of two observations of a level has the expectation variance * product of
# their w. `rest`: the total variance; then variances are divided by what the effects leave of it,
# that of the residuals.
moment_theta <- function(model, score, w = 1, rest = NULL) {
  variances <- lapply(model$blocks, function(block) {
    pairs <- function(v) colSums(sums_by(v, block$g, block$L)^2) - colSums(v^2)
    pairs(block$x * score) / pairs(w * block$x^2)
  })
  variances <- rapply(variances, function(v) ifelse(is.finite(v), pmin(pmax(v, 0.01), 4), 0.25),
                      how = "replace")
  if (!is.null(rest)) {
    left <- max(rest - sum(unlist(variances)), rest / 10)
    variances <- lapply(variances, `/`, left)
  }
  own <- model$at[, 2L] == model$at[, 3L]
  theta <- numeric(length(own))
  theta[own] <- vapply(which(own), function(i)
    sqrt(variances[[model$at[i, 1L]]][model$at[i, 2L]]), 0)
  theta
}

# The factors of the same covariance matrices whose diagonals are not negative. With `zero` columns
# with a diagonal element near 0 become 0.
plain_theta <- function(model, theta, zero = TRUE) {
  lambda <- lapply(theta_lambda(model, theta), function(l) {
    l <- l * rep(ifelse(diag(l) < 0, -1, 1), each = nrow(l))
    if (!zero || all(diag(l) >= 1e-3)) return(l)
    v <- tcrossprod(l)
    for (j in seq_len(nrow(l))) {
      l[, j] <- if (v[j, j] < 1e-6) 0 else v[, j] / sqrt(v[j, j])
      v <- v - tcrossprod(l[, j])
    }
    l
  })
  vapply(seq_len(nrow(model$at)), function(i)
    lambda[[model$at[i, 1L]]][model$at[i, 2L], model$at[i, 3L]], 0)
}

# How mixed_minimum() continues from the end `par` of its search, whose elements after `before` are
# theta: list(par, again: whether to search again from there, fixed: the positions of elements that
# are 0).
leave_zero <- function(model, before = 0L) {
  own <- before + seq_len(nrow(model$at))
  columns <- split(own, paste(model$at[, 1L], model$at[, 3L]))
  function(par, value, gradient) {
    plain <- replace(par, own, plain_theta(model, par[own]))
    zeros <- Filter(function(column) all(plain[column] == 0), columns)
    least <- value(par)
    found <- NULL
    for (column in zeros) {
      h <- 1e-3
      bend <- vapply(column, function(j) gradient(replace(plain, j, h))[column] / h,
                     numeric(length(column)))
      if (!all(is.finite(bend))) next
      bend <- matrix(bend, length(column))
      for (new in zero_steps(model, plain, column, (bend + t(bend)) / 2, before)) {
        if (value(new) < least - 1e-9) {
          least <- value(new)
          found <- new
        }
      }
    }
    if (!is.null(found)) return(list(par = found, again = TRUE))
    same <- value(plain) <= least + 1e-8 + 1e-13 * abs(least)
    list(par = if (same) plain else replace(par, own, plain_theta(model, par[own], zero = FALSE)),
         again = FALSE, fixed = if (same) unlist(zeros))
  }
}

# Parameters where the value may be less than at `par`, which has a column of 0, by the second
# derivatives `bend` at this column: along their eigenvector, and by the covariances of its first
# row with the others, which an added column does not change to first order.
zero_steps <- function(model, par, column, bend, before) {
  k <- length(column)
  e <- eigen(bend, symmetric = TRUE)
  if (e$values[k] >= 0) return(list())
  steps <- lapply(c(1, 0.3, 0.1, 0.03, 0.01, 0.003), function(size)
    replace(par, column, size * e$vectors[, k]))
  if (k == 1L || bend[1L, 1L] <= 0) return(steps)
  rows <- model$at[column - before, 2L]
  own <- which(model$at[, 1L] == model$at[column[1L] - before, 1L] & model$at[, 2L] %in% rows &
                 model$at[, 3L] %in% rows)
  l <- matrix(0, k, k)
  l[lower.tri(l, TRUE)] <- par[before + own]
  l[1L, ] <- -(bend %*% l)[1L, ] / bend[1L, 1L]
  root <- t(qr.R(qr(t(l))))
  c(steps, list(replace(par, before + own, root[lower.tri(root, TRUE)])))
}

# As leave_zero(), for standard deviations, whose `lower` is 0, and correlations, which are the
# parameters of `terms`: a term with a standard deviation of 0 is tried with the parameters of the
# start.
leave_bound <- function(terms, start, lower) {
  function(par, value, gradient) {
    least <- value(par) - 1e-9
    again <- FALSE
    for (term in Filter(function(k) any(lower[k] == 0 & abs(par[k]) < 1e-5), terms)) {
      for (size in c(1, 0.3, 0.1, 0.03)) {
        new <- replace(par, term, size * start[term])
        if (value(new) < least) {
          least <- value(new)
          par <- new
          again <- TRUE
        }
      }
    }
    list(par = par, again = again)
  }
}

# Minimises value(par) over par[free], again as long as `leave` says so: list(par, fixed,
# iterations, message). `unit`: see parameter_units().
mixed_minimum <- function(par, free, value, gradient, leave, lower, maxit, unit = 1) {
  unit <- rep_len(unit, length(par))[free]
  fill <- function(part) replace(par, free, unit * part)
  iterations <- 0L
  end <- NULL
  for (i in seq_len(10L)) {
    found <- tryCatch(
      stats::nlminb(par[free] / unit, function(part) value(fill(part)),
                    function(part) unit * gradient(fill(part))[free], lower = lower[free] / unit,
                    control = list(rel.tol = 1e-11, x.tol = 1e-9, iter.max = maxit,
                                   eval.max = 2 * maxit)),
      simpleError = function(e) list(par = par[free] / unit, objective = NaN, iterations = 0L,
                                     convergence = 1L, message = conditionMessage(e)))
    iterations <- iterations + found$iterations
    par <- fill(found$par)
    if (found$convergence != 0L && any(unit != 1)) { # curvature elsewhere may be another
      unit[] <- 1
      next
    }
    if (!is.finite(found$objective)) break
    end <- leave(par, value, gradient)
    par <- end$par
    if (!end$again) break
  }
  list(par = par, fixed = end$fixed, iterations = iterations, message = found$message)
}

# For each parameter the step along which the value has the second derivative 1, at most 1, by a
# difference of gradients. Without them the search would begin with steps of equal size along a
# fixed effect and along the standard deviation of a hundred thousand effects, whose second
# derivative is as large, and would take a hundred iterations. `known`: parameters that have such
# units already.
parameter_units <- function(par, gradient, known) {
  unit <- rep(1, length(par))
  g <- gradient(par)
  for (j in setdiff(seq_along(par), known)) {
    h <- 1e-3 * max(abs(par[j]), 0.1)
    bend <- (gradient(replace(par, j, par[j] + h))[j] - g[j]) / h
    if (is.finite(bend)) unit[j] <- 1 / sqrt(max(abs(bend), 1))
  }
  unit
}

# Minimises at(par)$value with the gradient slope(par, at(par)); `leave`: see leave_zero();
# `lower`: bounds; `known`: see parameter_units(). Ends with steps of Newton's method for parameters
# that are free, with differences of gradients, so that estimates have more digits than the values.
# Gives list(par, at, hessian, inverse: NULL without one, converged, message, iterations, free).
search_mixed <- function(at, slope, par, control, leave, lower = rep(-Inf, length(par)),
                         known = integer()) {
  cache <- list(par = NULL)
  visit <- function(par) {
    if (!identical(cache$par, par)) cache <<- list(par = par, at = at(par))
    cache$at
  }
  value <- function(par) visit(par)$value
  gradient <- function(par) {
    state <- visit(par)
    if (!is.finite(state$value)) return(rep(NA_real_, length(par)))
    slope(par, state)
  }
  unit <- parameter_units(par, gradient, known)
  end <- mixed_minimum(par, seq_along(par), value, gradient, leave, lower, control$maxit, unit)
  if (!is.finite(value(end$par))) {
    abort_argument("formula", "the likelihood cannot be evaluated: no fit was found")
  }
  par <- end$par
  g <- gradient(par)
  free <- setdiff(which(par > lower + 1e-5 | g < -1e-4), end$fixed)
  difference <- function(par) {
    h <- vapply(free, function(j) {
      # a gradient has an error of 1e-9 of its unit, that of the mode
      d <- min(1e-3 * unit[j], max(par[j] - lower[j], 1e-5) / 2)
      at <- function(d) gradient(replace(par, j, par[j] + d))[free]
      (at(d) - at(-d)) / (2 * d)
    }, numeric(length(free)))
    (h + t(h)) / 2
  }
  hessian <- difference(par)
  for (i in seq_len(3L)) {
    root <- if (all(is.finite(hessian))) tryCatch(chol(hessian), error = function(e) NULL)
    if (is.null(root) || length(free) == 0L) break
    step <- -backsolve(root, backsolve(root, g[free], transpose = TRUE))
    decrement <- sqrt(abs(sum(g[free] * step)))
    if (decrement < 1e-9 || decrement > 0.1) break
    new <- replace(par, free, par[free] + step)
    g_new <- if (all(new >= lower)) gradient(new)
    if (is.null(g_new) || !all(is.finite(g_new)) || sum(g_new[free]^2) > sum(g[free]^2)) break
    par <- new
    g <- g_new
    if (decrement > 1e-5) hessian <- difference(par)
  }
  inverse <- if (!is.null(root)) chol2inv(root) else if (length(free) > 0L)
    flat_inverse(hessian, g[free])
  good <- length(free) == 0L || if (is.null(root)) !is.null(inverse) else decrement < 1e-3
  list(par = par, at = visit(par), hessian = hessian, inverse = inverse, free = free,
       converged = good,
       iterations = end$iterations,
       message = if (good) "converged" else sprintf("the search stopped: %s", end$message))
}

# The inverse of a Hessian, without the combinations of parameters that have no effect at the end of
# a search, such as the variance of a factor that is among the fixed effects too; NULL if the
# gradient `g` or the Hessian is not that of an end. Second derivatives are 1 or more unless a
# parameter has little effect.
flat_inverse <- function(hessian, g) {
  if (!all(is.finite(hessian))) return(NULL)
  d <- sqrt(pmax(diag(hessian), 1))
  e <- eigen(hessian / outer(d, d), symmetric = TRUE)
  bent <- e$values > 1e-4
  along <- as.vector(crossprod(e$vectors, g / d))
  if (any(e$values < -1e-4) || any(abs(along[!bent]) > 3e-5) ||
        sum(along[bent]^2 / e$values[bent]) > 1e-6) return(NULL)
  v <- e$vectors[, bent, drop = FALSE] / d
  v %*% (t(v) / e$values[bent])
}
