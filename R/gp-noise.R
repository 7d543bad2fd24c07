# Noise whose variance changes with the inputs: its logarithm has a Gaussian process of its own
# (Goldberg, Williams and Bishop, 1998; Binois, Gramacy and Ludkovski, 2018).
#
# The noise of an observation at the input i has the variance lambda_i = noise^2 exp(g_i), divided
# by its weight, with g ~ N(0, G). Observations at one input are replaced by their mean with the
# weight a_i, the sum of their weights, and their sum of squares (gp-replicates.R). g is integrated
# out by Laplace's method: with l(g) = log p(y | g), J(g) = l(g) - g' G^-1 g / 2 at its maximum, and
# W the expected information of l, the value is J - log|I + G W| / 2. If the variance of g is zero
# it is the likelihood of constant noise.

# The argument 'noise': its kernel, or NULL.
noise_kernel <- function(noise, kernel, x, ard, method, variance, neighbours) {
  if (is.null(noise)) return(NULL)
  if (!inherits(noise, "cl_kernel")) {
    abort_argument("noise", sprintf("'noise' must be a kernel such as k_exp_quad(), not %s",
                                    describe(noise)))
  }
  types <- vapply(c(kernel$terms, noise$terms), `[[`, "", "type")
  if (method != "ml" || !is.null(variance) || !is.null(neighbours) ||
        any(types %in% c("white", "user", "factor"))) {
    abort_argument("noise", paste("a process of the noise needs method = \"ml\" and an exact fit",
                                  "of normal observations, without 'variance', k_white(),",
                                  "k_factor() and k_user()"))
  }
  resolve_kernel(check_kernel(noise), x, NULL, ard, 1)
}

# The rows of the noise's kernel in the table of parameters, before that of `noise`.
noise_rows <- function(problem) {
  kernel <- problem$noise_kernel
  if (is.null(kernel)) return(NULL)
  x <- problem$x
  parts <- kernel_parameters(kernel, ncol(x), colnames(x))
  rows <- lapply(seq_len(nrow(parts)), function(i) {
    row <- parameter_range(parts[i, ], kernel$terms[[parts$term[i]]], x, coef(kernel)[[i]], 1)
    if (parts$role[i] == "sd" && parts$degree[i] > 0) row[1:4] <- c(0.01, 20, 0.5, 3)
    row
  })
  rows <- cbind(data.frame(name = paste0("noise.", parts$name), role = paste0("noise_", parts$role),
                           log = parts$positive, unit = 1), do.call(rbind, rows))
  list(rows = rows, held = ifelse(parts$redundant, unname(coef(kernel)), NA))
}

# The approximate log likelihood as a function of the parameters, as that of cl_gp_likelihood().
noise_function <- function(problem, scale) {
  w <- if (is.null(problem$weights)) rep(1, length(problem$y)) else problem$weights
  d <- replicate_groups(problem$x, problem$mean$basis, (problem$y - problem$mean$centre) / scale, w)
  d$kernel <- problem$kernel
  d$noise_kernel <- problem$noise_kernel
  d$integrate <- identical(problem$beta, "integrate")
  d$h <- if (problem$mean$kind == "constant") matrix(1, length(d$y), 1L) else
    problem$mean$basis[d$first, , drop = FALSE]
  names <- c(names(coef(d$kernel)), paste0("noise.", names(coef(d$noise_kernel))), "noise")
  positive <- c(kernel_positive(d$kernel), kernel_positive(d$noise_kernel))
  last <- NULL
  f <- function(par, gradient = TRUE) {
    par <- check_gp_parameters(par, names, positive)
    mode <- noise_mode(d, par, last)
    if (is.null(mode)) return(-Inf)
    last <<- mode$b
    inner <- mode$prior %*% mode$w
    diag(inner) <- diag(inner) + 1
    value <- -mode$value - as.numeric(determinant(inner)$modulus) / 2
    if (!gradient) return(value)
    structure(value, gradient = stats::setNames(noise_gradient(d, mode, inner, par), names))
  }
  structure(f, class = c("cl_gp_noise", "function"))
}

# l and its derivatives at g: list(value, slope, w (expected information), and further parts of the
# gradient); NULL if C is not positive definite. `inverse`: C^-1, or with coefficients integrated
# out C^-1 - C^-1 H (H' C^-1 H)^-1 H' C^-1, which is `projected` in both cases.
noise_likelihood <- function(d, k, g, noise) {
  lambda <- noise^2 * exp(g)
  mu <- lambda / d$a
  c <- k
  diag(c) <- diag(c) + mu
  root <- tryCatch(as.matrix(cl_chol(c)), statcl_error_not_pd = function(e) NULL,
                   statcl_error_nonfinite = function(e) NULL)
  if (is.null(root)) return(NULL)
  inverse <- projected <- chol2inv(root)
  value <- -sum(log(diag(root))) - length(g) * log(2 * pi) / 2
  if (!is.null(d$h)) {
    ch <- inverse %*% d$h
    inner <- chol_or_null(crossprod(d$h, ch))
    if (is.null(inner)) return(NULL)
    projected <- inverse - crossprod(backsolve(inner, t(ch), transpose = TRUE))
    if (d$integrate) {
      inverse <- projected
      value <- value - sum(log(diag(inner))) + ncol(d$h) * log(2 * pi) / 2
    }
  }
  alpha <- as.vector(projected %*% d$y)
  value <- value - sum(alpha * d$y) / 2 + d$constant -
    sum(d$extra * log(lambda) + d$squares / lambda) / 2
  slope <- (mu * (alpha^2 - diag(inverse)) - d$extra + d$squares / lambda) / 2
  w <- tcrossprod(mu) * inverse^2 / 2
  diag(w) <- diag(w) + d$extra / 2
  list(value = value, slope = slope, w = w, alpha = alpha, inverse = inverse,
       projected = projected, mu = mu, lambda = lambda)
}

# Minus the second derivatives of l.
noise_curvature <- function(d, at) {
  w <- tcrossprod(at$mu) * (tcrossprod(at$alpha) * at$projected - at$inverse^2 / 2)
  diag(w) <- diag(w) - at$mu * (at$alpha^2 - diag(at$inverse)) / 2 + d$squares / at$lambda / 2
  w
}

# The maximum of J over g = G b, from 0 or from `from`: steps by the observed information, or, where
# these do not increase J, by the expected one. list(b, g, value = -J, and what the gradient needs);
# NULL without one.
noise_mode <- function(d, par, from) {
  i <- seq_along(coef(d$kernel))
  j <- length(i) + seq_along(coef(d$noise_kernel))
  noise <- par[length(par)]
  kernel <- with_parameters(d$kernel, par[i])
  own <- with_parameters(d$noise_kernel, par[j])
  k <- as.matrix(cl_cov(d$x, kernel = kernel))
  prior <- as.matrix(cl_cov(d$x, kernel = own))
  at <- function(b) {
    g <- as.vector(prior %*% b)
    now <- noise_likelihood(d, k, g, noise)
    if (is.null(now) || !is.finite(now$value)) return(list(value = Inf))
    now$value <- sum(g * b) / 2 - now$value
    c(now, list(b = b, g = g))
  }
  start <- at(numeric(length(d$y)))
  starts <- list(function() start)
  if (!is.null(from)) { # parameters may be far from those of `from`
    other <- at(from)
    starts <- append(starts, function() other, if (other$value < start$value) 0L else 1L)
  }
  mode <- newton_mode(starts, function(now, exact) {
    w <- if (exact) noise_curvature(d, now) else now$w
    inner <- w %*% prior
    diag(inner) <- diag(inner) + 1
    to <- tryCatch(as.vector(solve(inner, w %*% now$g + now$slope)), error = function(e) NULL)
    if (is.null(to)) return(NULL)
    by <- to - now$b
    list(by = by, decrement = sum((now$slope - now$b) * (prior %*% by)), least = if (exact) 0.1)
  }, function(now, step, size) at(now$b + size * step$by))
  if (!is.null(mode)) c(mode, list(prior = prior, kernel = kernel, own = own, noise = noise))
}

# The derivative of the value, including the change of the mode: by(g) is the derivative of -log|I +
# G W| / 2 with respect to g, and u the change of the mode weighted by it.
noise_gradient <- function(d, mode, inner, par) {
  mu <- mode$mu
  inverse <- mode$inverse
  s <- -solve(inner, mode$prior) / 2 # with respect to W
  s <- (s + t(s)) / 2
  on_c <- -inverse %*% (s * tcrossprod(mu) * inverse) %*% inverse
  by_g <- mu * (diag(on_c) + as.vector((s * inverse^2) %*% mu))
  curvature <- noise_curvature(d, mode)
  exact <- curvature %*% mode$prior
  diag(exact) <- diag(exact) + 1
  along <- as.vector(solve(exact, by_g))
  u <- as.vector(mode$prior %*% along)
  # the derivative of l with respect to C, and its change along u
  moved <- -as.vector(mode$projected %*% (mu * u * mode$alpha))
  on_c <- on_c + (tcrossprod(mode$alpha) - inverse + tcrossprod(moved, mode$alpha) +
                    tcrossprod(mode$alpha, moved) + inverse %*% (mu * u * inverse)) / 2
  low <- tcrossprod(along, mode$b)
  on_prior <- (tcrossprod(mode$b) + low + t(low)) / 2 - mode$w %*% solve(inner) / 2
  by_noise <- 2 * (sum(mode$slope + by_g) - sum(curvature %*% u)) / mode$noise
  c(cl_cov_adjoint((on_c + t(on_c)) / 2, d$x, kernel = mode$kernel),
    cl_cov_adjoint((on_prior + t(on_prior)) / 2, d$x, kernel = mode$own), by_noise)
}

# The process given the data and the estimated variances: that of constant noise with weights
# divided by exp(g).
noise_condition <- function(f, par) {
  e <- environment(f)
  problem <- e$problem
  par <- check_gp_parameters(par, e$names, e$positive)
  mode <- noise_mode(e$d, par, e$last)
  problem[c("noise_kernel", "kernel")] <- list(NULL, mode$kernel)
  problem$weights <- e$w * exp(-mode$g[e$d$index])
  state <- gp_condition(gp_function(problem), c(unname(coef(mode$kernel)), mode$noise))
  state$value <- as.numeric(f(par, FALSE))
  inner <- mode$prior %*% mode$w
  diag(inner) <- diag(inner) + 1
  state$noise_process <- list(kernel = mode$own, x = e$d$x, b = mode$b, log_variance = mode$g,
                              spread = mode$w %*% solve(inner), weights = e$problem$weights)
  state$effective <- problem$weights
  state
}

# The mean of exp(g) at the rows of x, where g has the variance G - G W (I + G W)^-1 G.
noise_factor <- function(fit, x) {
  own <- fit$noise_process
  if (is.null(own)) return(1)
  x <- structure(unname(x), dimnames = list(NULL, colnames(own$x)))
  g <- as.matrix(cl_cov(x, own$x, own$kernel))
  variance <- kernel_variance(own$kernel, x) - rowSums((g %*% own$spread) * g)
  exp(as.vector(g %*% own$b) + pmax(variance, 0) / 2)
}
