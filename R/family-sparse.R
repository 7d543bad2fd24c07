# Likelihoods with sparse predictors: their products, on the engine where the matrix is, and the log
# density of the observations given one intercept for each, which has no predictors.

# As new_likelihood(). x: a clSparse, which stays where it is, or a matrix of package Matrix.
sparse_likelihood <- function(family, y, x, trials) {
  if (is_categorical(family)) {
    abort_argument("x", sprintf("a sparse 'x' is not supported with family \"%s\"", family))
  }
  if (is_sparse(x)) x <- new_cl_sparse(sparse_columns(x))
  if (nrow(x) == 1L && length(y) > 1L) x <- new_cl_sparse(as_sparse(x)[rep(1L, length(y)), ])
  rows <- NULL # the likelihood of the observations
  op <- "likelihood"
  state <- x@state
  entries <- length(state$source@x)
  size <- 25 * nrow(x) + entries
  kind <- paste(op, "sparse", family, round(log2(1 + entries / nrow(x))))
  place <- function(times = 1) if (forked()) -1L else where_for(op, size, times, kind)
  all <- default_gradient(family)
  resident <- !is.null(state$handle)
  stay <- function(times = 1) {
    if (forked()) -1L else if (is.null(sparse_info(x))) where_resident() else state$where
  }
  engine <- movable(if (resident) stay else place, function(where) {
    if (is.null(sparse_info(x)) || where != state$where) sparse_upload(x, where)
    list(rows = fit_on_engine(op, size, function() {
      new_likelihood(family, y, matrix(0, nrow(x), 0L), trials)
    }, where = where), x = state$handle)
  }, function(made, where) {
    rows <<- made$rows
    assign("handle", made$x, state)
    assign("where", where, state)
  }, counts = of_one_gradient(all))
  f <- function(alpha = 0, beta = numeric(), ..., sigma = NULL, phi = NULL, cuts = NULL,
                gradient = all) {
    if (...length() > 0L) check_dots_empty(...)
    # restored from a file, in a forked process, or the device was lost
    if (is.null(sparse_info(x))) engine$restore()
    evaluate <- function() {
      sparse_evaluate(rows, x, on_host(alpha), on_host(beta), sigma, phi, cuts, gradient)
    }
    if (engine$moves) engine$run(evaluate) else evaluate()
  }
  engine$build()
  class(f) <- c("cl_likelihood", "function")
  f
}

sparse_evaluate <- function(rows, x, alpha, beta, sigma, phi, cuts, gradient) {
  if (!is.null(gradient) && !is.character(gradient)) {
    return(rows(sigma = sigma, phi = phi, cuts = cuts, gradient = gradient)) # refused
  }
  if ("x" %in% gradient) abort_argument("gradient", "no gradient with respect to a sparse 'x'")
  eta <- row_predictors(x, alpha, beta)
  several <- is.matrix(beta)
  wanted <- unique(c(setdiff(gradient, "beta"), if ("beta" %in% gradient) "alpha"))
  value <- rows(alpha = if (several) eta else as.vector(eta),
                beta = if (several) matrix(0, 0L, ncol(beta)) else numeric(), sigma = sigma,
                phi = phi, cuts = cuts, gradient = if (length(wanted) > 0L) wanted)
  if (length(wanted) == 0L) return(value)
  slope <- attr(value, "gradient")
  by_eta <- as.matrix(slope$alpha)
  slope$alpha <- if ("alpha" %in% gradient) {
    shaped_like(if (length(alpha) == length(by_eta)) by_eta else colSums(by_eta), alpha)
  }
  slope$beta <- if ("beta" %in% gradient) {
    by_beta <- as.matrix(cl_crossprod(x, by_eta))
    shaped_like(if (length(beta) == 1L) sum(by_beta) else by_beta, beta)
  }
  order <- c("alpha", "beta", "sigma", "phi", "cuts", "y")
  attr(value, "gradient") <- slope[intersect(order, names(slope))]
  value
}

# The numbers with dimensions and names of an argument of this length; else of a vector.
shaped_like <- function(numbers, argument) {
  attributes(numbers) <- if (length(argument) == length(numbers)) attributes(argument)
  numbers
}

# alpha + x beta, a column for each parameter vector.
row_predictors <- function(x, alpha, beta) {
  n <- nrow(x)
  p <- ncol(x)
  vectors <- NCOL(beta)
  if (!is.numeric(beta) || !(NROW(beta) == p || length(beta) == 1L)) {
    abort_argument("beta", sprintf("'beta' must have one number for each of %d columns of 'x'", p))
  }
  beta <- if (length(beta) == 1L) matrix(beta, p, 1L) else matrix(as.vector(beta), p)
  eta <- unname(as.matrix(cl_matmul(x, beta)))
  if (!is.numeric(alpha) || !length(alpha) %in% c(1L, vectors, length(eta), if (vectors == 1L) n)) {
    abort_argument("alpha", sprintf("'alpha' must be one number, or one for each of %d rows of 'x'",
                                    n))
  }
  eta + if (length(alpha) == vectors) rep(as.vector(alpha), each = n) else as.vector(alpha)
}
