# Fits of families of R by iteratively reweighted least squares. The mean, its derivative and the
# variance are those of the family object. For a matrix on a device they are computed there, in one
# kernel, if the link and the variance function are among those of this file.

# As glm_fit_mode(). The step is solved by QR on the host where that is cheap or the columns require
# it, else by the cross-product matrix where x is.
irls_mode <- function(problem, start, control, report = function(...) NULL) {
  data <- used_data(problem)
  solver <- NULL
  found <- if (is.null(start) && is.null(problem$penalty)) irls_in_c(problem, data, control)
  if (is.null(found) && is.null(problem$penalty) &&
        (is_sparse(problem$x) || !basis_is_cheap(problem$x))) {
    solver <- (if (is_sparse(problem$x)) by_sparse_products else by_products)(problem, data)
    found <- irls(problem, data, solver, start, control, report)
  }
  if (is.null(found)) {
    direct <- if (is.null(problem$penalty)) by_rotation else by_penalised_rotation
    found <- irls(problem, data, direct(problem, data), start, control, report)
  }
  core <- list(family = problem$family, problem = problem, classes = 1L, aux = NA_character_,
               aux_count = 0L, logged = FALSE, columns = ncol(problem$x),
               data = if (is.null(problem$offset)) list(x = solver$x))
  k <- length(found$kept)
  root <- if (is_cl(found$root)) cl_tri_inverse(found$root, upper = TRUE) else
    if (k > 0L) backsolve(found$root, diag(k)) else matrix(0, 0L, 0L)
  names <- problem$names[found$kept]
  vcov <- on_host(tcrossprod(root))
  root <- on_host(root)
  rownames(root) <- names
  dimnames(vcov) <- list(names, names)
  found$covariance <- list(vcov = vcov, aux_error = NA_real_, root = root)
  found$theta <- found$beta[found$kept]
  list(core = free_columns(core, found$kept), found = found)
}

# The search: list(beta, kept, root (of the information), deviance, decrement, converged, message,
# iterations); NULL if `solver` cannot solve for the step. Its convergence is linear unless the link
# is canonical.
irls <- function(problem, data, solver, start, control, report) {
  family <- r_family(problem$family)
  now <- if (is.null(solver$begin)) irls_begin(problem, data, family, solver, start) else
    solver$begin(start)
  if (is.null(now)) return(NULL)
  now$value <- now$at$deviance
  rows <- if (is.null(solver$rows)) length(data$y) else solver$rows()
  direction <- function(now, exact) {
    step <- if (exact) solver$step(now$at$weight, now$at$score)
    if (is.null(step)) return(NULL)
    unit <- if (dispersion_known(family)) 1 else
      now$at$pearson / max(rows - length(step$kept), 1)
    size <- sum((step$root %*% now$beta[step$kept])^2)
    c(step, list(decrement = if (step$square > 0) min(step$square / unit, 1e300) else 0, ratio = 1,
                 enough = if (step$square <= 1e-24 * size) Inf else control$tolerance^2))
  }
  found <- newton_search(now, direction, function(now, step, size) {
    beta <- now$beta + size * step$change
    at <- solver$at(beta)
    list(beta = beta, at = at, value = at$deviance)
  }, control$maxit, report = function(i, now, step) {
    report(i, -now$value / 2, sqrt(step$decrement))
  }, shorten = irls_step)
  now <- found$now
  step <- found$step
  if (is.null(step)) return(NULL)
  last <- if (found$converged && !found$rounding) step$change else 0
  list(beta = now$beta + last, decrement = sqrt(step$decrement), converged = found$converged,
       message = if (found$converged) "converged" else
         if (found$stuck) "no step gives valid means" else
           if (isTRUE(now$bounded)) "the maximum is at the bound of valid means" else
             limit_message(control$maxit),
       kept = step$kept, root = step$root, deviance = now$value, iterations = found$iterations,
       held = FALSE, value = NA_real_, objective = NA_real_)
}

# The same for a matrix in host memory, in C, for the links and variances that are known there. NULL
# in difficult cases. Small problems are solved on a basis of x.
irls_in_c <- function(problem, data, control) {
  x <- problem$x
  family <- r_family(problem$family)
  p <- ncol(x)
  if (!is_known(family) || is_cl(x) || is_sparse(x) || !p %in% 1:256 ||
        is_on_device("glm_fit", x)) return(NULL)
  basis <- if (basis_is_cheap(x)) glm_basis(problem)
  if (is.null(basis) && !is.null(problem$rows)) x <- x[problem$rows, , drop = FALSE]
  theta <- nb_theta(family)
  kind <- c(match(family$link, known_links) - 1, match(variance_name(family), known_variances) - 1,
            if (is.null(theta)) 1 else theta, dispersion_known(family))
  found <- search_in_c(if (is.null(basis)) x else basis$x, data, irls_eta(problem, data, family),
                       kind, control, if (is.null(basis)) 1e-4 else 0.01)
  if (is.null(found)) return(NULL)
  size <- sqrt(diag(found$information))
  root <- chol(found$information / tcrossprod(size)) * rep(size, each = length(size))
  kept <- seq_len(p)
  if (!is.null(basis)) {
    kept <- basis$kept
    found$beta <- replace(numeric(p), kept, from_basis(basis, matrix(found$beta)))
    root <- root %*% (basis$root * rep(basis$unit, each = length(kept)))
  }
  c(found[-2L], list(kept = kept, root = root, converged = TRUE, message = "converged",
                     held = FALSE, value = NA_real_, objective = NA_real_))
}

# As in src/engine/host/irls.h.
known_links <- c("logit", "probit", "cauchit", "cloglog", "log", "identity", "sqrt", "inverse",
                 "1/mu^2")
known_variances <- c("mu(1-mu)", "mu", "mu^2", "mu^3", "constant", "theta")

is_known <- function(family) {
  family$link %in% known_links && variance_name(family) %in% known_variances &&
    has_own_link(family)
}

# kind: link, variance function, theta, and whether the dispersion is known.
search_in_c <- function(x, data, eta, kind, control, least) {
  found <- .Call(r_irls, x, list(data$y, data$weights, data$offset, eta),
                 c(kind, control$tolerance, least, control$maxit))
  if (!is.null(found)) found$iterations <- as.integer(found$iterations)
  found
}

# The same for the likelihood of a logistic or Poisson regression. The search is short, so that one
# that does not end, as the likelihood has no maximum, is not taken for one that does.
canonical_in_c <- function(core, control, least) {
  data <- core$data
  link <- family_row(core$family)$link
  eta <- working_response(core$family, data)
  if (!is.null(data$trials)) {
    data$weights <- if (is.null(data$weights)) data$trials else data$weights * data$trials
    data$y <- ifelse(data$trials > 0, data$y / data$trials, 0)
  }
  data["offset"] <- list(NULL)
  control$maxit <- min(15, control$maxit)
  kind <- c(match(link, known_links) - 1, if (link == "logit") 0 else 1, 1, TRUE)
  search_in_c(data$x, data, eta, kind, control, least)
}

# A point near the mode of a logistic or Poisson regression of many rows on the host, for the last
# steps of Newton's method: list(core, theta, usual, iterations), or NULL in difficult cases.
near_mode <- function(problem, control) {
  x <- problem$x
  if (!family_row(problem$family)$canonical || is_cl(x) ||
        !ncol(x) %in% 1:256 || !is.null(problem$offset) || is_on_device("glm_fit", x)) {
    return(NULL)
  }
  core <- glm_core(problem)
  control$tolerance <- 1e-6
  found <- canonical_in_c(core, control, 1e-4)
  if (is.null(found)) return(NULL)
  list(core = free_columns(core, seq_len(core$columns)), theta = found$beta, usual = found$beta,
       iterations = found$iterations)
}

# Whether the link is R's of this name.
has_own_link <- function(family) {
  identical(family$linkinv, stats::make.link(family$link)$linkinv)
}

# The step, halved until the means are valid and the deviance does not increase. The deviance of a
# quasi-likelihood need not decrease at all: then the longest valid step, as in glm().
irls_step <- function(now, step, to) {
  bound <- now$value + 1e-10 * (abs(now$value) + 0.1)
  longest <- NULL
  bounded <- FALSE
  size <- 1
  while (size > if (is.null(longest)) 1e-10 else 1e-3) {
    new <- to(now, step, size)
    valid <- !is.null(new$at)
    bounded <- bounded || !valid
    new$bounded <- bounded
    if (valid && new$value <= bound) return(new)
    if (valid && is.null(longest)) longest <- new
    size <- size / 2
  }
  longest
}

# One weighted least squares fit from the family's own start, or the user's: list(beta, at). If that
# gives invalid means, a constant mean.
irls_begin <- function(problem, data, family, solver, start) {
  offset <- if (is.null(data$offset)) 0 else data$offset
  eta <- if (!is.null(start)) solver$eta(start) else
    solver$column(irls_eta(problem, data, family))
  at <- solver$point(eta)
  if (is.null(at)) abort_start()
  step <- solver$step(at$weight, at$weight * (eta - solver$column(offset)) + at$score)
  if (is.null(step)) return(NULL)
  to <- solver$at(step$change)
  if (!is.null(to)) return(list(beta = step$change, at = to))
  beta <- numeric(ncol(problem$x))
  if (problem$intercept > 0L) {
    w <- ones_unless(data$weights, length(data$y))
    beta[problem$intercept] <- family$linkfun(sum(w * data$y) / sum(w)) - mean(offset)
  }
  to <- if (all(is.finite(beta))) solver$at(beta)
  if (is.null(to)) abort_start()
  list(beta = beta, at = to)
}

# Linear predictors from which the search starts.
irls_eta <- function(problem, data, family) {
  pick <- function(v) as.double(if (is.null(problem$rows)) v else v[problem$rows])
  if (!is.null(problem$etastart)) return(pick(problem$etastart))
  w <- ones_unless(data$weights, length(data$y))
  mean <- if (!is.null(problem$mustart)) pick(problem$mustart) else
    suppressWarnings(glm_response_as_r(family, data$y, w, length(w)))$mustart
  as.double(family$linkfun(mean))
}

# In the words of glm().
abort_start <- function() {
  abort_argument("start", "cannot find valid starting values: please specify some with 'start'")
}

# ---- solvers -------------------------------------------------------------------------------------

# A solver is a list of functions: column(v): n numbers where x is; eta(beta): linear predictors,
# with the offset; point(eta): list(weight, score, deviance, pearson), NULL where means are invalid
# or overflow; at(beta): both; step(weight, score): list(change, square (of its length in units of
# the information), kept, root (of the information of the columns kept)), NULL if it is inaccurate.

# By Householder's QR of the weighted columns, as in glm().
by_rotation <- function(problem, data) {
  design <- host_design(problem)
  x <- design$x
  unit <- design$unit
  inside <- seq_len(ncol(x))
  point <- host_point(r_family(problem$family), data)
  offset <- if (is.null(data$offset)) 0 else data$offset
  eta <- function(beta) as.vector(x %*% (beta * unit)) + offset
  step <- function(weight, score) {
    used <- weight > 0
    half <- sqrt(weight[used])
    found <- qr(x[used, inside, drop = FALSE] * half, tol = 1e-11)
    k <- seq_len(found$rank)
    at <- sort(inside[found$pivot[k]])
    inside <<- at # a dropped column remains dropped
    change <- numeric(ncol(x))
    root <- qr.R(found)[k, k, drop = FALSE]
    rotated <- qr.qty(found, score[used] / half)[k]
    if (length(k) > 0L) change[at] <- backsolve(root, rotated) / unit[at]
    list(change = change, square = sum(rotated^2), kept = at,
         root = root * rep(unit[at], each = length(k)))
  }
  list(column = identity, eta = eta, point = point, at = function(beta) point(eta(beta)),
       step = step)
}

# The same with Jeffreys' prior as a penalty (Firth 1993; Heinze and Schemper 2002): half of the log
# determinant of the information. In the score each observation has, for its leverage h, the
# derivative of half a log weight: h (1/2 - mu) of a binomial, h / 2 of a Poisson response.
by_penalised_rotation <- function(problem, data) {
  solver <- by_rotation(problem, data)
  x <- host_design(problem)$x
  family <- r_family(problem$family)
  solver$at <- function(beta) {
    eta <- solver$eta(beta)
    at <- solver$point(eta)
    if (is.null(at)) return(NULL)
    found <- qr(x * sqrt(at$weight), tol = 1e-11)
    k <- seq_len(found$rank)
    leverage <- rowSums(qr.Q(found)[, k, drop = FALSE]^2)
    centre <- if (family_row(problem$family)$trials) family$linkinv(eta) else 0
    at$score <- at$score + leverage * (0.5 - centre)
    at$deviance <- at$deviance - 2 * sum(log(abs(diag(qr.R(found))[k])))
    at
  }
  solver
}

# By the cross-product matrix. x is on the device if likelihoods are computed there.
by_products <- function(problem, data) {
  x <- problem$x
  if (!is.null(problem$rows)) x <- x[problem$rows, , drop = FALSE]
  if (!is_cl(x) && is_on_device("glm_fit", x)) x <- as_cl(x)
  kept <- NULL
  column <- if (is_cl(x)) function(v) column_beside(rep_len(v, nrow(x)), x) else identity
  offset <- if (!is.null(data$offset)) column(data$offset)
  family <- r_family(problem$family)
  point <- if (is_cl(x)) device_point(family, data, column) else host_point(family, data)
  eta <- function(beta) {
    eta <- cl_matmul(x, matrix(beta))
    if (!is_cl(x)) eta <- as.vector(eta)
    if (is.null(offset)) eta else eta + offset
  }
  step <- function(weight, score) {
    right <- as.vector(as.matrix(cl_crossprod(x, score)))
    found <- gram_step(glm_gram(x, weight), right, x, weight, kept)
    if (!is.null(found)) kept <<- found$kept
    found
  }
  list(column = column, eta = eta, point = point, at = function(beta) point(eta(beta)), step = step,
       x = x)
}

# The step by X' W X = gram and X' score = right; kept: the columns, NULL if they are to be found.
gram_step <- function(gram, right, x, weight, kept) {
  if (!all(is.finite(gram)) || any(diag(gram) < 1e-280)) return(NULL)
  if (is.null(kept)) {
    found <- independent_columns(gram, x, weight, 1e-11)
    if (found$least < 1e-4) return(NULL)
    kept <- found$columns
  }
  info <- gram[kept, kept, drop = FALSE]
  if (is_skew(info, 1e-4)) return(NULL)
  size <- sqrt(diag(info))
  root <- chol(info / tcrossprod(size))
  half <- backsolve(root, right[kept] / size, transpose = TRUE)
  change <- numeric(ncol(x))
  change[kept] <- backsolve(root, half) / size
  list(change = change, square = sum(half^2), kept = kept,
       root = root * rep(size, each = length(size)))
}

# ---- means and weights ---------------------------------------------------------------------------

valid_means <- function(family, eta, mu) {
  all(is.finite(mu)) && (is.null(family$valideta) || family$valideta(eta)) &&
    (is.null(family$validmu) || family$validmu(mu))
}

host_point <- function(family, data) {
  y <- data$y
  w <- ones_unless(data$weights, length(y))
  function(eta) {
    mu <- family$linkinv(eta)
    if (!valid_means(family, eta, mu)) return(NULL)
    slope <- family$mu.eta(eta)
    by_eta <- w * slope / family$variance(mu)
    rest <- y - mu
    at <- list(weight = by_eta * slope, score = by_eta * rest,
               deviance = sum(family$dev.resids(y, mu, w)),
               pearson = sum(w * rest^2 / family$variance(mu)))
    if (all(is.finite(at$weight)) && all(is.finite(at$score)) && is.finite(at$deviance)) at
  }
}

# The same for a clMatrix of one column. `column` brings numbers to the device. Links and variances
# that are not known there are computed on the host.
device_point <- function(family, data, column) {
  parts <- device_parts(family, data, column)
  if (!is.null(parts)) return(function(eta) parts$read(parts$queue(eta)))
  on_host <- host_point(family, data)
  function(eta) {
    at <- on_host(as.vector(as.matrix(eta)))
    if (is.null(at)) return(NULL)
    at[c("weight", "score")] <- lapply(at[c("weight", "score")], column)
    at
  }
}

# The two halves of it, for families that are known on the device: queue(eta) starts the work, and
# has `weight` and `score` in its result; read() of that result waits. NULL for others.
device_parts <- function(family, data, column) {
  link <- device_links[[family$link]]
  spread <- device_variance(family)
  if (is.null(spread) || is.null(link) || !has_own_link(family)) return(NULL)
  y <- column(data$y)
  w <- if (!is.null(data$weights)) column(data$weights)
  weighted <- function(v) if (is.null(w)) v else w * v
  queue <- function(eta) {
    mu <- link$mean(eta)
    slope <- link$slope(eta)
    variance <- spread$variance(mu)
    by_eta <- weighted(slope / variance)
    rest <- y - mu
    score <- by_eta * rest
    weight <- by_eta * slope
    extreme <- function(v, how, from) cl_reduce(v, combine = how, identity = from)
    cl_eval(weight = weight, score = score,
            deviance = cl_reduce(weighted(spread$deviance(y, mu))),
            pearson = cl_reduce(weighted(rest^2 / variance)),
            total = cl_reduce(weight + abs(score)), # finite if all are
            low = extreme(mu, "min", Inf), high = extreme(mu, "max", -Inf),
            first = extreme(eta, "min", Inf), last = extreme(eta, "max", -Inf))
  }
  read <- function(found) {
    plain <- vapply(found[-(1:2)], function(v) as.vector(as.matrix(v)), 0)
    ends <- function(names) unname(plain[names])
    if (!all(is.finite(plain)) ||
          !valid_means(family, ends(c("first", "last")), ends(c("low", "high")))) return(NULL)
    c(found[1:2], as.list(plain[c("deviance", "pearson")]))
  }
  list(queue = queue, read = read)
}

# The links of R, with the bounds that they have there.
smallest <- .Machine$double.eps
between <- function(v, bound) pmin(pmax(v, -bound), bound)
device_links <- list(
  logit = list(mean = function(eta) cl_inv_logit(between(eta, -log(smallest))),
               slope = function(eta) pmax(cl_inv_logit(eta) * cl_inv_logit(-eta), smallest)),
  probit = list(mean = function(eta) cl_pnorm(between(eta, -stats::qnorm(smallest))),
                slope = function(eta) pmax(exp(-eta^2 / 2) / sqrt(2 * pi), smallest)),
  cauchit = list(mean = function(eta) cl_atan2(1, -between(eta, 1 / (pi * smallest))) / pi,
                 slope = function(eta) pmax(1 / (pi * (1 + eta^2)), smallest)),
  cloglog = list(
    mean = function(eta) pmax(pmin(-expm1(-exp(eta)), 1 - smallest), smallest),
    slope = function(eta) {
      eta <- pmin(eta, 700)
      pmax(exp(eta) * exp(-exp(eta)), smallest)
    }),
  log = list(mean = function(eta) pmax(exp(eta), smallest),
             slope = function(eta) pmax(exp(eta), smallest)),
  identity = list(mean = function(eta) eta, slope = function(eta) 0 * eta + 1),
  sqrt = list(mean = function(eta) eta^2, slope = function(eta) 2 * eta),
  inverse = list(mean = function(eta) 1 / eta, slope = function(eta) -1 / eta^2),
  `1/mu^2` = list(mean = function(eta) 1 / sqrt(eta), slope = function(eta) -1 / (2 * eta^1.5)))

# The variance function of a family of R; "" if it is another.
variance_name <- function(family) {
  name <- if (is.null(nb_theta(family))) r_rows[[family$family]]$variance_name else "theta"
  if (!is.null(name)) name else if (is.character(family$varfun)) family$varfun else ""
}

# list(variance(mu), deviance(y, mu) for weight 1) of a family of R; NULL if it is another.
device_variance <- function(family) {
  plog <- function(y, ratio) cl_ifelse(y > 0, y * log(ratio), 0)
  theta <- nb_theta(family)
  switch(variance_name(family),
    `mu(1-mu)` = list(
      variance = function(mu) mu * (1 - mu),
      deviance = function(y, mu) 2 * (plog(y, y / mu) + plog(1 - y, (1 - y) / (1 - mu)))),
    mu = list(variance = function(mu) mu,
              deviance = function(y, mu) 2 * (plog(y, y / mu) - (y - mu))),
    `mu^2` = list(
      variance = function(mu) mu^2,
      deviance = function(y, mu) 2 * ((y - mu) / mu - log(cl_ifelse(y == 0, 1, y / mu)))),
    `mu^3` = list(variance = function(mu) mu^3,
                  deviance = function(y, mu) (y - mu)^2 / (y * mu^2)),
    constant = list(variance = function(mu) 0 * mu + 1, deviance = function(y, mu) (y - mu)^2),
    theta = list(
      variance = function(mu) mu + mu^2 / theta,
      deviance = function(y, mu) {
        2 * (y * log(pmax(1, y) / mu) - (y + theta) * log((y + theta) / (mu + theta)))
      }))
}
