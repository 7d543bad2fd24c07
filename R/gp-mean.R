# The mean of a Gaussian process and its basis.
#
# A fit uses an orthonormal basis Q of the columns of the user's H = Q R, so that units and offsets
# of the inputs do not matter, and transforms the results back.

# list(kind, value (of a number), basis (Q, or NULL), root (R), names (of the coefficients), shift
# (least-squares coefficients of Q, which are subtracted beforehand), centre (the mean at the
# observations)).
gp_mean <- function(kind, y, h = NULL, value = NULL) {
  if (kind == "number") {
    return(list(kind = kind, value = value, names = character(), shift = numeric(),
                centre = rep(value, length(y))))
  }
  n <- length(y)
  if (kind == "constant") {
    return(list(kind = kind, names = "mean", root = matrix(1), shift = mean(y),
                centre = rep(mean(y), n)))
  }
  # each column is first divided by its largest value, so that the rank does not depend on units
  size <- apply(abs(h), 2L, max)
  decomposed <- qr(sweep(h, 2L, ifelse(size > 0, size, 1), "/"), tol = 1e-10)
  if (decomposed$rank < ncol(h)) {
    lost <- colnames(h)[decomposed$pivot[decomposed$rank + 1L]]
    abort_argument("mean", sprintf(paste("column '%s' of the mean is a linear combination of the",
                                         "others: remove it"), lost))
  }
  basis <- qr.Q(decomposed)
  root <- sweep(qr.R(decomposed), 2L, size, "*")
  shift <- as.vector(crossprod(basis, y))
  list(kind = kind, basis = basis, root = root, names = colnames(h), shift = shift,
       centre = as.vector(basis %*% shift))
}

# The centre at m points with the basis q.
mean_centre <- function(mean, m, q) {
  if (!is.null(mean$basis)) return(as.vector(q %*% mean$shift))
  rep(if (mean$kind == "number") mean$value else mean$shift, m)
}

# The argument 'mean': a number, or the kind of mean.
read_mean <- function(mean) {
  if (inherits(mean, "formula")) {
    if (length(mean) != 2L) abort_argument("mean", "the formula 'mean' must be one-sided")
    check_no_offset(stats::terms(mean, allowDotAsName = TRUE))
    return("formula")
  }
  if (is.character(mean)) {
    choices <- c("estimate", "constant", "linear")
    kind <- check_choice(mean, choices, "mean")
    return(if (kind == "linear") kind else "constant")
  }
  check_number(mean, "mean")
  "number"
}

# The mean's columns H for points: `frame`, a model frame, where a formula needs one.
mean_columns <- function(kind, x, terms = NULL, frame = NULL, contrasts = NULL) {
  h <- switch(kind,
    linear = cbind(`(Intercept)` = 1, x),
    formula = stats::model.matrix(terms, frame, contrasts.arg = contrasts))
  if (!is.null(h) && is.null(colnames(x)) && kind == "linear") {
    colnames(h) <- c("(Intercept)", paste0("x", seq_len(ncol(x))))
  }
  if (kind == "linear") rownames(h) <- NULL
  h
}

# H R^-1, the basis at other points.
mean_basis <- function(mean, h) {
  if (is.null(mean$basis) || is.null(h)) return(NULL)
  h <- unname(h)
  attributes(h) <- list(dim = dim(h))
  t(backsolve(mean$root, t(h), transpose = TRUE))
}

# Coefficients and their covariance by H, from those by Q.
mean_coefficients <- function(mean, beta) {
  if (length(mean$names) == 0L) return(NULL)
  stats::setNames(as.vector(backsolve(mean$root, beta)), mean$names)
}

mean_covariance <- function(mean, beta_cov) {
  count <- nrow(mean$root) # several latent processes have the same columns
  inverse <- kronecker(diag(1, nrow(beta_cov) / count), backsolve(mean$root, diag(1, count)))
  unname(inverse %*% beta_cov %*% t(inverse))
}

# The difference between the integrated likelihoods for Q and for H.
mean_constant <- function(mean, beta) {
  if (!identical(beta, "integrate") || is.null(mean$basis)) return(0)
  sum(log(abs(diag(mean$root))))
}

# The argument 'mean' of cl_gp_likelihood().
mean_argument <- function(mean) {
  switch(mean$kind, number = mean$value, constant = "constant", mean$basis)
}
