# Starting values of a fit.

# One weighted least squares fit to the link of y, shrunk away from the boundary as in glm(); for
# families with classes, the frequencies of the classes. list(core, prior, theta, usual): the free
# columns of the core are linearly independent; with priors, all columns are free. theta includes
# the user's `start`, `usual` does not.
glm_start <- function(core, start, priors) {
  family <- core$family
  x <- core$data$x
  w <- working_weights(family, core$data$there)
  gram <- if (is_least_squares(family)) core$gram else glm_gram(x, w)
  if (is.null(core$basis)) core <- choose_columns(core, gram, w, priors)
  if (is.null(priors) && is.null(core$basis) && core$least < 1e-4) return(list(core = core))
  prior <- if (!is.null(priors)) prior_of_theta(priors, core)
  beta <- if (has_classes(family)) class_start(core) else {
    z <- working_response(family, core$data$there)
    if (ncol(x) > core$columns) z <- z - core$data$offset
    right <- if (is_cl(x)) as.vector(as.matrix(cl_crossprod(x, w * z))) else
      base::crossprod(x, w * z)
    left <- gram[core$free, core$free, drop = FALSE] + prior_ridge(core, prior)
    solve_information(left, right[core$free])
  }
  usual <- c(beta, aux_start(core, beta, !is.null(prior)))
  if (!is.null(start)) beta <- start_beta(core, start)
  theta <- if (is.null(start)) usual else c(beta, aux_start(core, beta, !is.null(prior)))
  list(core = core, prior = prior, theta = theta, usual = usual)
}

# The free columns if there is no basis.
choose_columns <- function(core, gram, w, priors) {
  inside <- seq_len(core$columns)
  found <- list(columns = inside, least = 0)
  if (!is.null(priors)) {
    check_gram(core, gram)
  } else if (all(is.finite(gram)) && all(diag(gram)[inside] > 1e-280)) {
    found <- independent_columns(gram[inside, inside, drop = FALSE], core$data$x, w,
                                 dependence(core$family))
  }
  free <- found$columns
  # very unequal weights may hide the information of some rows
  if (length(free) < core$columns && !is.null(w) && min(w) < 1e-10 * max(w)) found$least <- 0
  if (is_ordered(core$family)) free <- setdiff(free, core$problem$intercept)
  core$least <- found$least
  free_columns(core, free)
}

# The priors' contribution to the matrix of the first least squares fit.
prior_ridge <- function(core, prior) {
  if (is.null(prior)) return(0)
  k <- seq_len(core$beta_count)
  unit <- if (is_least_squares(core$family)) stats::var(core$problem$y) else 1
  info <- prior$information(numeric(core$count))
  diag(pmax(diag(info)[k], 0) * unit, core$beta_count)
}

check_gram <- function(core, gram) {
  bad <- which(!is.finite(diag(gram)))
  if (length(bad) == 0L) return(invisible())
  abort_nonfinite_column(c(core$problem$names, "offset")[bad[1L]], bad[1L])
}

abort_nonfinite_column <- function(name, index) {
  statcl_abort("nonfinite", sprintf("the column '%s' of 'x' has missing or infinite values", name),
               argument = "x", index = index)
}

# The response on the scale of the link, shrunk away from the boundary as in glm(), and the weights
# of this start (for families with classes, the user's weights or NULL; one number if all are
# equal). `data`: used_data(), or these data on a device.
working_response <- function(family, data) {
  family_row(family)$start(data$y, data$trials)
}

working_weights <- function(family, data) {
  if (has_classes(family)) return(data$weights)
  w <- family_row(family)$start_weight(data$y, data$trials)
  if (is.null(data$weights)) w else w * data$weights
}

# Starting coefficients of the user: one for each column, those of dropped columns ignored.
start_beta <- function(core, start) {
  columns <- ncol(core$problem$x)
  all <- columns * max(1L, core$classes - 1L)
  intercept <- if (is_ordered(core$family)) core$problem$intercept else 0L
  wanted <- all - (intercept > 0L)
  usable <- is.numeric(start) && length(start) == wanted && all(is.finite(start))
  if (!usable) {
    abort_argument("start", sprintf(paste("'start' must be a vector of %d finite numbers, one for",
                                          "each coefficient"), wanted))
  }
  if (intercept > 0L) start <- append(start, 0, intercept - 1L)
  start <- matrix(start, columns)[core$kept, , drop = FALSE]
  as.vector(if (is.null(core$basis)) start else to_basis(core$basis, start))
}

class_start <- function(core) {
  count <- class_counts(core, core$classes)
  k <- core$problem$intercept
  if (!is_categorical(core$family) || !k %in% core$kept) {
    return(numeric(core$beta_count))
  }
  beta <- matrix(0, length(core$kept), core$classes - 1L)
  beta[core$kept == k, ] <- log(count[-1L] / count[1L])
  as.vector(if (is.null(core$basis)) beta else to_basis(core$basis, beta))
}

# How often each of the first `classes` classes occurred.
class_counts <- function(core, classes) {
  w <- core$data$weights
  if (is.null(w)) return(tabulate(core$data$y, classes))
  sums <- rowsum(w, core$data$y)
  counts <- numeric(max(classes, core$data$y))
  counts[as.integer(rownames(sums))] <- sums
  counts[seq_len(classes)]
}

aux_start <- function(core, beta, with_prior) {
  if (core$aux_count == 0L) return(numeric())
  y <- core$data$y
  w <- ones_unless(core$data$weights, length(y))
  if (core$aux == "cuts") {
    share <- class_counts(core, length(core$problem$levels)) / sum(w)
    return(stats::qlogis(cumsum(share)[-length(share)]))
  }
  at <- c(beta, numeric(core$aux_count))
  eta <- as.vector(as.matrix(glm_eta(core, at)))
  family_row(core$family)$aux_start(y, eta, w, stats::var(core$problem$y))
}
