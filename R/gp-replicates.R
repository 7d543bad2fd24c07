# Several observations of a Gaussian process at one input, replaced by their mean.
#
# Observations j = 1..r of a group have equal inputs, equal rows of the basis of the mean, and noise
# variances d_j = t / w_j with one t = noise^2 + q, where q = variance_j w_j. Their density is that
# of their mean, weighted by w and with variance t / a (a: the sum of the w_j), times
#
#   (2 pi t)^(-(r - 1) / 2) exp(-S / (2 t)) sqrt(prod(w) / a),
#
# S = sum(w_j (y_j - mean)^2) (Binois, Gramacy and Ludkovski, 2018, for w = 1): the likelihood is
# the same, and matrices have the order of the groups.

# Groups of observations of equal inputs, equal rows of the basis and equal q, with their means:
# list(first: the first row of each group, index: the group of each row, x, y, a, extra: r - 1,
# squares: S, constant: the sum of what does not depend on t).
replicate_groups <- function(x, basis, y, w, q = NULL) {
  index <- group_rows(replicate_key(x, basis, q))
  first <- which(!duplicated(index))
  sums <- function(v) as.vector(rowsum(v, index, reorder = FALSE))
  a <- sums(w)
  mean <- sums(w * y) / a
  list(first = first, index = index, x = x[first, , drop = FALSE], y = mean, a = a,
       extra = tabulate(index, length(a)) - 1, squares = sums(w * (y - mean[index])^2),
       constant = (sum(log(w)) - sum(log(a)) - (length(y) - length(a)) * log(2 * pi)) / 2)
}

# The columns that are equal within a group. Those that were computed have rounding errors: of the
# basis in proportion to its columns, of q in proportion to itself.
replicate_key <- function(x, basis, q) {
  if (!is.null(basis)) basis <- apply(basis, 2L, function(v) round(1e12 * v / max(abs(v), 1e-300)))
  cbind(x, basis, if (!is.null(q)) signif(q, 12), deparse.level = 0)
}

# Numbers of rows: equal rows have equal numbers, 1, 2, ... in order of first appearance.
group_rows <- function(columns) {
  columns <- unname(columns)
  if (anyDuplicated(columns[, 1L]) == 0L) return(seq_len(nrow(columns)))
  found <- match(columns[, 1L], unique(columns[, 1L]))
  for (j in seq_len(ncol(columns))[-1L]) {
    both <- found + nrow(columns) * as.double(match(columns[, j], unique(columns[, j])))
    found <- match(both, unique(both))
  }
  found
}

# The number of groups if the likelihood of a problem is computed from their means, which requires
# at most 0.9 n groups; otherwise n. Terms that distinguish observations at one input need all of
# them.
replicate_count <- function(problem) {
  n <- length(problem$y)
  if (!is.null(problem$response) || !is.null(problem$vecchia)) return(n)
  types <- vapply(problem$kernel$terms, `[[`, "", "type")
  if (any(types %in% c("white", "user"))) return(n)
  count <- max(group_rows(replicate_key(problem$x, problem$mean$basis, noise_ratio(problem))))
  if (count <= 0.9 * n) count else n
}

# q: variance_j w_j, or NULL.
noise_ratio <- function(problem) {
  if (is.null(problem$variance) || is.null(problem$weights)) return(problem$variance)
  problem$variance * problem$weights
}

# As gp_function() for objective "ml" and a problem of fewer groups than observations.
replicates_function <- function(problem, scale) {
  w <- if (is.null(problem$weights)) rep(1, length(problem$y)) else problem$weights
  basis <- problem$mean$basis
  q <- noise_ratio(problem)
  y <- (problem$y - problem$mean$centre) / scale
  d <- replicate_groups(problem$x, basis, y, w, q)
  d$q <- if (is.null(q)) numeric(length(d$a)) else q[d$first] / scale^2
  mean <- if (problem$mean$kind == "number") 0 else if (is.null(basis)) "constant" else
    basis[d$first, , drop = FALSE]
  inner <- cl_gp_likelihood(d$y, d$x, problem$kernel, mean, beta = problem$beta, weights = d$a,
                            variance = if (!is.null(q)) d$q / d$a)
  f <- function(par, gradient = TRUE) {
    noise <- check_gp_parameters(par, names, positive)[length(names)]
    within <- within_groups(d, noise)
    value <- inner(par, gradient)
    slope <- attr(value, "gradient")
    value <- value + within$value
    if (gradient) {
      slope[["noise"]] <- slope[["noise"]] + within$slope
      attr(value, "gradient") <- slope
    }
    value
  }
  names <- environment(inner)$names
  positive <- environment(inner)$positive
  structure(f, class = c("cl_gp_replicates", "function"))
}

# The log of the factor above for all groups, and its derivative with respect to `noise`.
within_groups <- function(d, noise) {
  several <- d$extra > 0
  t <- noise^2 + d$q[several]
  if (any(t == 0)) {
    statcl_abort("not_pd", paste("the covariance matrix is not positive definite: inputs repeat,",
                                 "but 'noise' is 0"))
  }
  extra <- d$extra[several]
  squares <- d$squares[several]
  list(value = d$constant - sum(extra * log(t) + squares / t) / 2,
       slope = sum((squares / t - extra) * noise / t))
}

# The process given the data. Results for single observations follow from those for the means.
replicates_condition <- function(f, par) {
  e <- environment(f)
  par <- check_gp_parameters(par, e$names, e$positive)
  state <- gp_condition(e$inner, par)
  noise <- par[length(par)]
  state$value <- state$value + within_groups(e$d, noise)$value
  replicates_state(state, e$d, e$y, e$w, noise)
}

# `inner`: the state of the means, with the value of all observations.
replicates_state <- function(inner, d, y, w, noise) {
  share <- w / d$a[d$index]
  # (1 - share) w / t and w (y - mean) / t, which are 0 for groups of one
  several <- d$extra[d$index] > 0
  precision <- ifelse(several, w / (noise^2 + d$q[d$index]), 0)
  state <- inner
  state$weights <- share * inner$weights[d$index] + precision * (y - d$y[d$index])
  state$loo <- function() {
    diagonal <- share^2 / inner$loo()$variance[d$index] + precision * (1 - share)
    list(mean = y - state$weights / diagonal, variance = 1 / diagonal)
  }
  state$extend <- function(y_new, x, basis = NULL, weights = NULL, variance = NULL) {
    y_new <- as.vector(y_new)
    k <- length(y_new)
    w_new <- if (is.null(weights)) rep(1, k) else weights
    longer <- inner$extend(y_new, x, basis, w_new, variance)
    longer$value <- longer$value + within_groups(d, noise)$value
    # groups of one, whose squares and q do not matter
    d$index <- c(d$index, length(d$a) + seq_len(k))
    d$a <- c(d$a, w_new)
    d$y <- c(d$y, y_new)
    for (name in c("extra", "squares", "q")) d[[name]] <- c(d[[name]], numeric(k))
    replicates_state(longer, d, c(y, y_new), c(w, w_new), noise)
  }
  state
}
