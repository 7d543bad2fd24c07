# The log likelihood of a fit as a function of one vector of free parameters, theta: the
# coefficients of the free columns of x (of categorical_logit class by class, without the first
# class), then log(sigma), log(phi) or the cuts. Its gradient, and its information: minus the second
# derivatives. With a basis (glm-basis.R) the columns and coefficients are those of the basis.

# x and y are uploaded to the device here and freed with the result.
glm_core <- function(problem, basis = NULL) {
  family <- problem$family
  data <- glm_likelihood_data(problem, basis)
  core <- list(family = family, problem = problem, data = data, basis = basis,
               columns = if (is.null(basis)) ncol(problem$x) else ncol(basis$x),
               classes = if (is_categorical(family)) length(problem$levels) else 1L,
               aux = aux_parameter(family), constant = share_constant(problem))
  core$aux_count <- if (is.na(core$aux)) 0L else
    if (core$aux == "cuts") length(problem$levels) - 1L else 1L
  core$logged <- core$aux %in% c("sigma", "phi")
  core$likelihood <- new_likelihood(family, data$y, data$x, data$trials, data$weights,
                                    "glm_fit")
  if (is_least_squares(family)) {
    core$gram <- glm_gram(data$x, NULL)
    if (!is.null(problem$row_weights)) core$constant <- sum(log(problem$row_weights)) / 2
  }
  if (!is.null(basis)) core <- free_columns(core, seq_len(core$columns), basis$kept)
  core
}

# The core with these columns free; other coefficients are 0, that of an offset is 1. `kept`: the
# columns of the predictors to which the final coefficients belong.
free_columns <- function(core, free, kept = free) {
  core$free <- free
  core$kept <- kept
  core$beta_count <- length(free) * max(1L, core$classes - 1L)
  core$count <- core$beta_count + core$aux_count
  core
}

aux_index <- function(core) core$beta_count + seq_len(core$aux_count)

# Coefficients of all columns of the likelihood's x: p x M, or p x C x M. theta: d x M.
full_beta <- function(core, theta) {
  beta <- theta[seq_len(core$beta_count), , drop = FALSE]
  p <- ncol(core$data$x)
  if (core$classes > 1L) {
    full <- array(0, c(p, core$classes, ncol(theta)))
    full[core$free, -1L, ] <- beta
    for (i in seq_len(p - core$columns)) full[core$columns + i, i, ] <- 1 # the offset
    return(if (ncol(theta) == 1L) matrix(full, p) else full)
  }
  full <- matrix(rep(c(0, 1), c(core$columns, p - core$columns)), p, ncol(theta))
  full[core$free, ] <- beta
  full
}

# sigma and phi as numbers, cuts as a matrix: a column for each column of theta.
aux_values <- function(core, theta) {
  aux <- theta[aux_index(core), , drop = FALSE]
  if (core$logged) exp(aux) else aux
}

# list(value: M numbers, gradient: d x M) at the columns of theta. If the density overflows, the
# value is -Inf.
glm_at <- function(core, theta) {
  theta <- as.matrix(theta)
  if (only_asks()) theta[] <- 0
  aux <- aux_values(core, theta)
  out <- list(value = rep(-Inf, ncol(theta)), gradient = matrix(0, nrow(theta), ncol(theta)))
  if (!all(is.finite(theta)) || (core$logged && any(aux == 0 | aux == Inf))) return(out)
  if (core$aux_count > 1L && !core$logged && any(apply(aux, 2L, diff) <= 0)) return(out)
  arguments <- list(beta = full_beta(core, theta), gradient = "beta")
  if (core$aux_count > 0L) {
    arguments[[core$aux]] <- if (core$logged || ncol(theta) == 1L) as.vector(aux) else aux
    arguments$gradient <- c("beta", core$aux)
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
  if (core$aux_count > 0L) {
    by_aux <- slope[[core$aux]]
    out$gradient[aux_index(core), ] <- if (core$logged) by_aux * aux else by_aux
  }
  if (anyNA(out$gradient)) out$value[] <- -Inf
  out
}

# ---- information ---------------------------------------------------------------------------------

# X' diag(w) X as a base matrix; w: NULL, numbers, or a clMatrix of one column.
glm_gram <- function(x, w) {
  if (length(w) == 1L && !is_cl(w)) return(w * glm_gram(x, NULL))
  if (is_sparse(x)) return(unname(cl_crossprod(if (is.null(w)) x else x * sqrt(w))))
  if (!is_cl(x) && is.null(w)) return(unname(base::crossprod(x)))
  if (!is_cl(x)) return(.Call(r_weighted_gram, x, as.double(w)))
  unname(as.matrix(if (is.null(w)) cl_crossprod(x) else weighted_crossprod(x, w)))
}

# X' diag(w) X as cl_crossprod() has it; w: a number for each row, or a clMatrix of one column.
weighted_crossprod <- function(x, w) {
  if (!is_cl(x)) return(cl_crossprod(x, x * w))
  w <- if (is_cl(w)) w@handle else as.double(w)
  value(.Call(r_op, "gram", list(x@handle, w), NULL, 0L), NULL, product_names(x, 2L, x, 2L))
}

# Linear predictors, one column, or one for each class; a clMatrix if x is one.
glm_eta <- function(core, theta) {
  x <- core$data$x
  beta <- full_beta(core, as.matrix(theta))
  if (is_cl(x)) cl_matmul(x, if (ncol(beta) == 1L) as.vector(beta) else beta) else
    host_times(x, beta)
}

# x beta for base or sparse matrices; in one column of many rows by the threads of the host, as %*%
# first looks for NaN in all of x.
host_times <- function(x, beta) {
  if (!is.double(x) || length(x) < 1e5 || length(beta) != ncol(x)) return(x %*% beta)
  product <- .Call(r_rest, x, NULL, as.double(beta))
  dim(product) <- c(nrow(x), 1L) # matrix() would copy
  product
}

# d x d. The rows of sigma and phi are central differences of gradients, accurate to 1e-8, computed
# in one evaluation; Newton's method needs no more. Those of the cuts are exact, because the cuts
# replace an intercept, which must be accurate for columns with a large mean.
glm_information <- function(core, theta) {
  beta <- seq_len(core$beta_count)
  info <- matrix(0, core$count, core$count)
  info[beta, beta] <- beta_information(core, theta)
  for_aux <- aux_index(core)
  if (core$aux_count == 0L) return(info)
  if (core$logged) {
    h <- 1e-4
    step <- replace(numeric(core$count), for_aux, h)
    slope <- glm_at(core, cbind(theta + step, theta - step))$gradient
    columns <- matrix((slope[, 2L] - slope[, 1L]) / (2 * h))
  } else {
    columns <- cut_information(core, theta)
  }
  info[, for_aux] <- columns
  info[for_aux, beta] <- t(columns[beta, , drop = FALSE])
  info
}

# The columns of the cuts. With u and l the cuts above and below an observation, less eta, and F the
# logistic distribution function, its density is F(u) (1 - F(l)) (1 - exp(l - u)).
cut_information <- function(core, theta) {
  cuts <- theta[aux_index(core)]
  k <- seq_along(cuts)
  y <- core$data$y
  eta <- as.vector(as.matrix(glm_eta(core, theta)))
  adjacent <- outer(y, k, `==`) | outer(y, k + 1, `==`)
  near <- adjacent * stats::dlogis(outer(-eta, cuts, `+`))
  if (!is.null(core$data$weights)) near <- near * core$data$weights
  gap <- diff(cuts)
  tie <- class_counts(core, length(k))[-1L] * exp(-gap) / expm1(-gap)^2
  block <- diag(colSums(near) + c(tie, 0) + c(0, tie), length(k))
  block[cbind(k[-1L] - 1L, k[-1L])] <- block[cbind(k[-1L], k[-1L] - 1L)] <- -tie
  rbind(-as.matrix(cl_crossprod(core$data$x, near))[core$free, , drop = FALSE], block)
}

beta_information <- function(core, theta) {
  free <- core$free
  aux <- as.vector(aux_values(core, as.matrix(theta)))
  if (is_least_squares(core$family)) return(core$gram[free, free, drop = FALSE] / aux^2)
  eta <- glm_eta(core, theta)
  if (core$classes > 1L) return(class_information(core, as.matrix(eta)))
  if (!is_cl(eta)) eta <- as.vector(eta)
  data <- core$data$there
  w <- glm_weights(core$family, data$y, eta, aux, data$trials)
  if (!is.null(data$weights)) w <- w * data$weights
  glm_gram(core$data$x, w)[free, free, drop = FALSE]
}

# A block for each pair of classes except the first.
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
    block <- as.matrix(weighted_crossprod(x, w))[free, free, drop = FALSE]
    at_c <- (c - 2L) * k + seq_len(k)
    at_d <- (d - 2L) * k + seq_len(k)
    info[at_c, at_d] <- block
    info[at_d, at_c] <- t(block)
  }
  info
}

# eta = X b + offset: n numbers, or of categorical_logit n x C, the first column 0.
glm_predictor <- function(fit, x, offset, coefficients = fit$coefficients) {
  beta <- coefficients
  beta[is.na(beta)] <- 0
  categorical <- is_categorical(fit$family)
  if (categorical) beta <- cbind(0, matrix(beta, ncol(x)))
  if (is_ordered(fit$family) && fit$intercept > 0L) {
    beta <- append(beta, 0, fit$intercept - 1L)
  }
  beta <- unname(if (is.matrix(beta)) beta else matrix(beta, ncol = 1L))
  eta <- if (is_cl(x)) as.matrix(cl_matmul(x, beta)) else host_times(x, beta)
  if (categorical) {
    dimnames(eta) <- list(rownames(x), fit$levels)
    if (!is.null(offset)) eta <- eta + offset
    return(eta)
  }
  eta <- stats::setNames(as.vector(eta), rownames(x))
  if (is.null(offset)) eta else eta + offset
}
