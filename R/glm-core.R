# The log likelihood of a fit as a function of one vector of free parameters, theta: the
# coefficients of the free columns of x (of categorical_logit class by class, without the first
# class), then log(sigma), log(phi) or the cuts. Its gradient, and its information: minus the second
# derivatives.

# x and y go to the device here, and are gone with the result.
glm_core <- function(problem) {
  family <- problem$family
  data <- glm_likelihood_data(problem)
  core <- list(family = family, problem = problem, data = data, columns = ncol(problem$x),
               classes = if (family == "categorical_logit") length(problem$levels) else 1L,
               own = unname(own_parameter[family]))
  core$own_count <- if (is.na(core$own)) 0L else
    if (core$own == "cuts") length(problem$levels) - 1L else 1L
  core$logged <- core$own %in% c("sigma", "phi")
  core$likelihood <- cl_likelihood(family, data$y, data$x, data$trials)
  if (family == "normal_id") core$gram <- glm_gram(data$x, problem$sd_weights)
  core
}

# With these columns free; the coefficients of others are 0, but 1 of an offset.
free_columns <- function(core, free) {
  core$free <- free
  core$beta_count <- length(free) * max(1L, core$classes - 1L)
  core$count <- core$beta_count + core$own_count
  core
}

own_places <- function(core) core$beta_count + seq_len(core$own_count)

# Coefficients of all columns of the likelihood's x: p x M, or p x C x M. theta: d x M.
full_beta <- function(core, theta) {
  beta <- theta[seq_len(core$beta_count), , drop = FALSE]
  p <- ncol(core$data$x)
  if (core$classes > 1L) {
    full <- array(0, c(p, core$classes, ncol(theta)))
    full[core$free, -1L, ] <- beta
    return(if (ncol(theta) == 1L) matrix(full, p) else full)
  }
  full <- matrix(rep(c(0, 1), c(core$columns, p - core$columns)), p, ncol(theta))
  full[core$free, ] <- beta
  full
}

# sigma and phi as numbers, cuts as a matrix: a column for each column of theta.
own_values <- function(core, theta) {
  own <- theta[own_places(core), , drop = FALSE]
  if (core$logged) exp(own) else own
}

# list(value: M numbers, gradient: d x M) at the columns of theta. Where the density cannot be
# computed in floating-point numbers the value is -Inf.
glm_at <- function(core, theta) {
  theta <- as.matrix(theta)
  own <- own_values(core, theta)
  out <- list(value = rep(-Inf, ncol(theta)), gradient = matrix(0, nrow(theta), ncol(theta)))
  if (!all(is.finite(theta)) || (core$logged && any(own == 0 | own == Inf))) return(out)
  if (core$own_count > 1L && !core$logged && any(apply(own, 2L, diff) <= 0)) return(out)
  spread <- core$problem$sd_weights
  arguments <- list(beta = full_beta(core, theta), gradient = "beta")
  if (core$own_count > 0L) {
    arguments[[core$own]] <- if (!is.null(spread)) outer(1 / sqrt(spread), as.vector(own)) else
      if (core$logged || ncol(theta) == 1L) as.vector(own) else own
    arguments$gradient <- c("beta", core$own)
  }
  value <- tryCatch(do.call(core$likelihood, arguments), statcl_error_nonfinite = function(e) NULL)
  if (is.null(value)) return(out)
  out$value <- as.vector(value)
  slope <- attr(value, "gradient")
  by_beta <- slope$beta
  dim(by_beta) <- c(ncol(core$data$x), core$classes, ncol(theta))
  by_beta <- if (core$classes > 1L) by_beta[core$free, -1L, , drop = FALSE] else
    by_beta[core$free, , , drop = FALSE]
  out$gradient[seq_len(core$beta_count), ] <- by_beta
  if (core$own_count > 0L) {
    by_own <- slope[[core$own]]
    if (!is.null(spread)) by_own <- colSums(matrix(by_own / sqrt(spread), length(spread)))
    out$gradient[own_places(core), ] <- if (core$logged) by_own * own else by_own
  }
  if (anyNA(out$gradient)) out$value[] <- -Inf
  out
}

# ---- information ---------------------------------------------------------------------------------

# X' diag(w) X as a base matrix; w: NULL, numbers, or a clMatrix of one column.
glm_gram <- function(x, w) {
  if (!is.null(w)) x <- x * sqrt(w)
  unname(as.matrix(cl_crossprod(x)))
}

# Linear predictors, all of them in one column, or one for each class; with the x's class.
glm_eta <- function(core, theta) cl_matmul(core$data$x, full_beta(core, as.matrix(theta)))

# d x d. What concerns sigma or phi is by central differences of gradients, exact to 1e-8, in one
# evaluation: that is what Newton's method needs. Cuts take the place of an intercept, of which
# columns with a large mean need all digits.
glm_information <- function(core, theta) {
  beta <- seq_len(core$beta_count)
  info <- matrix(0, core$count, core$count)
  info[beta, beta] <- beta_information(core, theta)
  for_own <- own_places(core)
  if (core$own_count == 0L) return(info)
  if (core$logged) {
    h <- 1e-4
    step <- replace(numeric(core$count), for_own, h)
    slope <- glm_at(core, cbind(theta + step, theta - step))$gradient
    columns <- matrix((slope[, 2L] - slope[, 1L]) / (2 * h))
  } else {
    columns <- cut_information(core, theta)
  }
  info[, for_own] <- columns
  info[for_own, beta] <- t(columns[beta, , drop = FALSE])
  info
}

# The columns of the cuts. With u and l the cuts above and below an observation, less eta, and F the
# logistic distribution function, its density is F(u) (1 - F(l)) (1 - exp(l - u)).
cut_information <- function(core, theta) {
  cuts <- theta[own_places(core)]
  k <- seq_along(cuts)
  y <- core$data$y
  eta <- as.vector(as.matrix(glm_eta(core, theta)))
  beside <- outer(y, k, `==`) | outer(y, k + 1, `==`)
  near <- beside * stats::dlogis(outer(-eta, cuts, `+`))
  gap <- diff(cuts)
  tie <- tabulate(y, length(k))[-1L] * exp(-gap) / expm1(-gap)^2
  block <- diag(colSums(near) + c(tie, 0) + c(0, tie), length(k))
  block[cbind(k[-1L] - 1L, k[-1L])] <- block[cbind(k[-1L], k[-1L] - 1L)] <- -tie
  rbind(-as.matrix(cl_crossprod(core$data$x, near))[core$free, , drop = FALSE], block)
}

beta_information <- function(core, theta) {
  free <- core$free
  own <- as.vector(own_values(core, as.matrix(theta)))
  if (core$family == "normal_id") return(core$gram[free, free, drop = FALSE] / own^2)
  eta <- glm_eta(core, theta)
  if (core$classes > 1L) return(class_information(core, as.matrix(eta)))
  if (!is_cl(eta)) eta <- as.vector(eta)
  w <- glm_weights(core$family, core$data$y, eta, NULL, own, own, core$data$trials)
  glm_gram(core$data$x, w)[free, free, drop = FALSE]
}

# A block for each pair of classes but the first.
class_information <- function(core, eta) {
  share <- class_probabilities(core$family, eta)
  x <- core$data$x
  free <- core$free
  k <- length(free)
  info <- matrix(0, core$beta_count, core$beta_count)
  for (c in seq_len(core$classes)[-1L]) for (d in 2:c) {
    w <- if (c == d) share[, c] * rowSums(share[, -c, drop = FALSE]) else -share[, c] * share[, d]
    block <- as.matrix(cl_crossprod(x, x * w))[free, free, drop = FALSE]
    at_c <- (c - 2L) * k + seq_len(k)
    at_d <- (d - 2L) * k + seq_len(k)
    info[at_c, at_d] <- block
    info[at_d, at_c] <- t(block)
  }
  info
}

# ---- where to start ------------------------------------------------------------------------------

# One weighted least squares fit to the link of y, drawn inwards, as glm() starts; of the families
# with classes the frequencies of the classes. list(core, prior, theta, usual): the core's free
# columns are those that no earlier ones explain; with priors, all. theta has the user's `start`,
# `usual` has not.
glm_start <- function(core, start, priors) {
  family <- core$family
  y <- core$data$y
  x <- core$data$x
  working <- if (!has_classes(family)) working_response(family, y, core$data$trials,
                                                        core$problem$sd_weights)
  gram <- if (family == "normal_id") core$gram else glm_gram(x, working$w)
  check_gram(core, gram)
  inside <- seq_len(core$columns)
  free <- if (!is.null(priors)) inside else
    independent_columns(gram[inside, inside, drop = FALSE], x, working$w)
  core$aliased <- setdiff(inside, free)
  if (family == "ordered_logistic") free <- setdiff(free, core$problem$intercept)
  core <- free_columns(core, free)
  prior <- if (!is.null(priors)) prior_of_theta(priors, core)
  beta <- if (has_classes(family)) class_start(core) else {
    z <- working$z
    if (ncol(x) > core$columns) z <- z - offset_of(core)
    right <- as.vector(as.matrix(cl_crossprod(x, working$w * z)))
    left <- gram[free, free, drop = FALSE] + prior_ridge(core, prior)
    solve_information(left, right[free])
  }
  usual <- c(beta, own_start(core, beta, !is.null(prior)))
  if (!is.null(start)) beta <- start_beta(core, start)
  theta <- if (is.null(start)) usual else c(beta, own_start(core, beta, !is.null(prior)))
  list(core = core, prior = prior, theta = theta, usual = usual)
}

# What the priors add to the matrix of the first least squares fit.
prior_ridge <- function(core, prior) {
  if (is.null(prior)) return(0)
  k <- seq_len(core$beta_count)
  unit <- if (core$family == "normal_id") stats::var(core$data$y) else 1
  info <- prior$information(numeric(core$count))
  diag(pmax(diag(info)[k], 0) * unit, core$beta_count)
}

check_gram <- function(core, gram) {
  bad <- which(!is.finite(diag(gram)))
  if (length(bad) == 0L) return(invisible())
  name <- c(core$problem$names, "offset")[bad[1L]]
  statcl_abort("nonfinite", sprintf("the column '%s' of 'x' has missing or infinite values", name),
               argument = "x", index = bad[1L])
}

working_response <- function(family, y, trials, weights) {
  n <- length(y)
  switch(family,
    bernoulli_logit = {
      mu <- (y + 0.5) / 2
      list(z = stats::qlogis(mu), w = mu * (1 - mu))
    },
    binomial_logit = {
      mu <- (y + 0.5) / (trials + 1)
      list(z = stats::qlogis(mu), w = trials * mu * (1 - mu))
    },
    normal_id = list(z = y, w = ones_unless(weights, n)),
    list(z = log(y + 0.1), w = y + 0.1))
}

# Starting coefficients of the user: one for each column, those of dropped columns ignored.
start_beta <- function(core, start) {
  all <- core$columns * max(1L, core$classes - 1L)
  intercept <- if (core$family == "ordered_logistic") core$problem$intercept else 0L
  wanted <- all - (intercept > 0L)
  usable <- is.numeric(start) && length(start) == wanted && all(is.finite(start))
  if (!usable) {
    abort_argument("start", sprintf("'start' must be %d finite numbers, the coefficients", wanted))
  }
  if (intercept > 0L) start <- append(start, 0, intercept - 1L)
  as.vector(matrix(start, core$columns)[core$free, ])
}

class_start <- function(core) {
  beta <- matrix(0, length(core$free), max(1L, core$classes - 1L))
  if (core$family == "categorical_logit" && core$problem$intercept > 0L) {
    count <- tabulate(core$data$y, core$classes)
    beta[core$free == core$problem$intercept, ] <- log(count[-1L] / count[1L])
  }
  as.vector(beta)
}

own_start <- function(core, beta, with_prior) {
  if (core$own_count == 0L) return(numeric())
  y <- core$data$y
  if (core$own == "cuts") {
    share <- tabulate(y, length(core$problem$levels)) / length(y)
    return(stats::qlogis(cumsum(share)[-length(share)]))
  }
  at <- c(beta, numeric(core$own_count))
  eta <- as.vector(as.matrix(glm_eta(core, at)))
  if (core$own == "phi") {
    off <- sum((y / pmax(exp(eta), 1e-6) - 1)^2) # method of moments
    return(log(min(max(length(y) / off, 1e-2), 1e4)))
  }
  w <- ones_unless(core$problem$sd_weights, length(y))
  mean_square <- sum(w * (y - eta)^2) / length(y)
  if (with_prior) return(log(max(mean_square, 1e-4 * stats::var(y))) / 2)
  if (core$beta_count >= length(y)) {
    abort_argument("y", sprintf(paste("%d observations and %d coefficients: there is no error left",
                                      "to estimate"), length(y), core$beta_count))
  }
  if (!(mean_square > 1e-24 * max(sum(w * y^2) / length(y), .Machine$double.xmin))) {
    abort_argument("y", "the predictors give the response exactly: there is no error to estimate")
  }
  log(mean_square) / 2
}

# ---- columns -------------------------------------------------------------------------------------

# The columns of x of which no earlier ones explain all but 1e-7 of the length, as lm() has it.
# Their matrix of products tells which may be explained; for those it is looked at exactly.
independent_columns <- function(gram, x, w) {
  p <- ncol(gram)
  size <- sqrt(diag(gram))
  scaled <- gram / tcrossprod(ifelse(size > 0, size, 1))
  root <- matrix(0, p, p) # upper, for the columns found so far
  found <- integer()
  for (j in seq_len(p)) {
    k <- length(found)
    if (size[j] == 0) next
    above <- if (k > 0L) {
      backsolve(root[seq_len(k), seq_len(k), drop = FALSE], scaled[found, j], transpose = TRUE)
    }
    rest <- 1 - sum(above^2)
    if (rest < 1e-8) {
      rest <- (unexplained(x, w, found, j, gram) / size[j])^2
      if (rest < 1e-14) next
    }
    root[seq_len(k), k + 1L] <- above
    root[k + 1L, k + 1L] <- sqrt(rest)
    found <- c(found, j)
  }
  found
}

# Length of what the columns `found` leave of column j, by least squares with one correction.
unexplained <- function(x, w, found, j, gram) {
  rest <- as.vector(as.matrix(x[, j, drop = FALSE]))
  if (length(found) > 0L) for (again in 1:2) {
    right <- if (is.null(w)) rest else w * rest
    right <- as.vector(as.matrix(cl_crossprod(x, right)))[found]
    beta <- numeric(ncol(x))
    beta[found] <- solve_information(gram[found, found, drop = FALSE], right)
    rest <- rest - as.vector(as.matrix(cl_matmul(x, matrix(beta))))
  }
  sqrt(sum(if (is.null(w)) rest^2 else w * rest^2))
}

# Solves with a matrix that should be positive definite, after scaling its diagonal to 1. Where it
# is not, its eigenvalues are made so: the result is then still a direction upwards.
solve_information <- function(info, right) {
  if (length(right) == 0L) return(right)
  size <- sqrt(abs(diag(info)))
  size[!(size > 0)] <- 1
  scaled <- info / tcrossprod(size)
  root <- tryCatch(chol(scaled), error = function(e) NULL)
  if (!is.null(root)) {
    return(backsolve(root, backsolve(root, right / size, transpose = TRUE)) / size)
  }
  parts <- eigen(scaled, symmetric = TRUE)
  values <- pmax(abs(parts$values), 1e-12 * max(abs(parts$values)))
  as.vector(parts$vectors %*% (crossprod(parts$vectors, right / size) / values)) / size
}

offset_of <- function(core) {
  rows <- core$problem$rows
  if (is.null(rows)) core$problem$offset else core$problem$offset[rows]
}
