# The log likelihood of a fit as a function of one vector of free parameters, theta: the
# coefficients of the free columns of x (of categorical_logit class by class, without the first
# class), then log(sigma), log(phi) or the cuts. Its gradient, and its information: minus the second
# derivatives. With a basis (glm-basis.R) the columns and coefficients are those of the basis.

# x and y go to the device here, and are gone with the result.
glm_core <- function(problem, basis = NULL) {
  family <- problem$family
  data <- glm_likelihood_data(problem, basis)
  core <- list(family = family, problem = problem, data = data, basis = basis,
               columns = if (is.null(basis)) ncol(problem$x) else ncol(basis$x),
               classes = if (family == "categorical_logit") length(problem$levels) else 1L,
               own = unname(own_parameter[family]), constant = share_constant(problem))
  core$own_count <- if (is.na(core$own)) 0L else
    if (core$own == "cuts") length(problem$levels) - 1L else 1L
  core$logged <- core$own %in% c("sigma", "phi")
  core$likelihood <- new_likelihood(family, data$y, data$x, data$trials, data$weights)
  if (family == "normal_id") {
    core$gram <- glm_gram(data$x, NULL)
    if (!is.null(problem$row_weights)) core$constant <- sum(log(problem$row_weights)) / 2
  }
  if (!is.null(basis)) core <- free_columns(core, seq_len(core$columns), basis$kept)
  core
}

# With these columns free; the coefficients of others are 0, but 1 of an offset. `kept`: the columns
# of the predictors to which the coefficients belong in the end.
free_columns <- function(core, free, kept = free) {
  core$free <- free
  core$kept <- kept
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
  arguments <- list(beta = full_beta(core, theta), gradient = "beta")
  if (core$own_count > 0L) {
    arguments[[core$own]] <- if (core$logged || ncol(theta) == 1L) as.vector(own) else own
    arguments$gradient <- c("beta", core$own)
  }
  value <- tryCatch(do.call(core$likelihood, arguments), statcl_error_nonfinite = function(e) NULL)
  if (is.null(value)) return(out)
  out$value <- as.vector(value) + core$constant
  slope <- attr(value, "gradient")
  by_beta <- slope$beta
  dim(by_beta) <- c(ncol(core$data$x), core$classes, ncol(theta))
  by_beta <- if (core$classes > 1L) by_beta[core$free, -1L, , drop = FALSE] else
    by_beta[core$free, , , drop = FALSE]
  out$gradient[seq_len(core$beta_count), ] <- by_beta
  if (core$own_count > 0L) {
    by_own <- slope[[core$own]]
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
  if (!is.null(core$data$weights)) near <- near * core$data$weights
  gap <- diff(cuts)
  tie <- class_counts(core, length(k))[-1L] * exp(-gap) / expm1(-gap)^2
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
  if (!is.null(core$data$weights)) w <- w * core$data$weights
  glm_gram(core$data$x, w)[free, free, drop = FALSE]
}

# A block for each pair of classes but the first.
class_information <- function(core, eta) {
  share <- class_probabilities(core$family, eta)
  x <- core$data$x
  times <- core$data$weights
  free <- core$free
  k <- length(free)
  info <- matrix(0, core$beta_count, core$beta_count)
  for (c in seq_len(core$classes)[-1L]) for (d in 2:c) {
    w <- if (c == d) share[, c] * rowSums(share[, -c, drop = FALSE]) else -share[, c] * share[, d]
    if (!is.null(times)) w <- w * times
    block <- as.matrix(cl_crossprod(x, x * w))[free, free, drop = FALSE]
    at_c <- (c - 2L) * k + seq_len(k)
    at_d <- (d - 2L) * k + seq_len(k)
    info[at_c, at_d] <- block
    info[at_d, at_c] <- t(block)
  }
  info
}
