# Regressions by group: many small least-squares problems at once, over the batched functions.

#' Linear regressions by group
#'
#' Fits the same linear model to each group of rows, as `lapply(split(data, group), lm)` does, but
#' to all groups at once. The cross-products, Cholesky factors and solutions of all groups take one
#' call each of [cl_batch_matmul()], [cl_batch_chol()] and [cl_batch_tri_solve()], on the host or on
#' a device, as [cl_thresholds()] determines.
#'
#' Columns are scaled to length one within each group. The normal equations are solved with the
#' Cholesky factor, and the solution is corrected twice from its residuals (corrected semi-normal
#' equations: as accurate as a QR decomposition unless a group is close to collinear). A group whose
#' columns are collinear to 1e-7, or that has fewer rows than columns, gets `NaN` and is reported as
#' described for [cl_batch]. Unlike in [lm()], no column is dropped.
#'
#' @param x A numeric matrix with one row for each observation, including a column for the intercept
#'   if there is one; or a formula.
#' @param y The response: one number for each row of `x`.
#' @param group A factor (or a value that [as.factor()] accepts) with the group of each row. The
#'   formula method looks it up in `data` first. Levels without rows are dropped.
#' @param data A data frame with the variables of the formula. Rows with missing values are omitted.
#' @param on_error What to do if some groups cannot be fitted: warn, or stop with an error.
#' @param object,row.names,optional `object` is a fit; so is `x` for `print()` and
#'   `as.data.frame()`. The others are not used.
#' @param ... Passed on between methods.
#' @return An object of class `cl_batch_lm`, a list with the elements
#'   * `coefficients`, `std.error`: matrices with one row for each group and one column for each
#'     coefficient,
#'   * `sigma`: residual standard errors with n - p degrees of freedom; `NaN` if there are none,
#'   * `df.residual`, `nobs`: vectors over the groups,
#'   * `cov.unscaled`: the inverse cross-products, an array p x p x groups,
#'   * `residuals`: in the order of the rows,
#'   * `info`: see [cl_batch].
#'
#'   Methods: `coef()`, `sigma()`, `residuals()`, `nobs()`, `vcov()` (an array), `as.data.frame()`
#'   (one row for each coefficient of each group, with t statistic and p value), `print()`.
#' @section Errors:
#' `statcl_error_argument` for shapes that do not conform and for missing values in `x` and `y`.
#' With `on_error = "stop"`, `statcl_error_singular` (field `matrix`: the number of the group).
#' @references
#' Bjorck, A. (1987) Stability analysis of the method of seminormal equations for linear least
#' squares problems. *Linear Algebra and its Applications* 88/89, 31-48.
#' @export
#' @examples
#' fit <- cl_batch_lm(weight ~ Time, ChickWeight, group = Chick)
#' fit
#' head(as.data.frame(fit))
#' one <- lm(weight ~ Time, ChickWeight, subset = Chick == 3)
#' all.equal(coef(fit)["3", ], coef(one))
cl_batch_lm <- function(x, ...) UseMethod("cl_batch_lm")

#' @rdname cl_batch_lm
#' @export
cl_batch_lm.formula <- function(x, data = NULL, group, on_error = c("warn", "stop"), ...) {
  on_error <- check_on_error(on_error)
  formula <- x
  if (missing(group)) abort_no_group()
  group <- check_group(classed(eval(substitute(group), data, parent.frame()), "group"))
  if (is.null(data)) data <- environment(formula)
  frame <- classed(stats::model.frame(formula, data, na.action = stats::na.pass), "x")
  if (length(group) != nrow(frame)) abort_group(length(group), nrow(frame))
  keep <- stats::complete.cases(frame) & !is.na(group)
  frame <- frame[keep, , drop = FALSE]
  y <- stats::model.response(frame)
  x <- stats::model.matrix(attr(frame, "terms"), frame)
  fit <- cl_batch_lm.default(x, y, group[keep], on_error)
  fit$call <- match.call()
  fit$call[[1L]] <- quote(cl_batch_lm)
  fit
}

abort_no_group <- function() {
  abort_argument("group", paste("'group' is missing: supply the group of each row (for a single",
                                "regression use cl_glm() or lm())"))
}

check_group <- function(group) {
  if (is.atomic(group)) return(group)
  abort_argument("group", sprintf("'group' must be a vector or a factor, not %s", describe(group)))
}

abort_group <- function(got, want) {
  abort_argument("group", sprintf("'group' must have %d values, one for each row, not %d", want,
                                  got))
}

#' @rdname cl_batch_lm
#' @export
cl_batch_lm.default <- function(x, y, group, on_error = c("warn", "stop"), ...) {
  on_error <- check_on_error(on_error)
  if (missing(group)) abort_no_group()
  x <- check_numeric(if (is_cl(x)) as.matrix(x) else x, "x")
  y <- check_numeric(if (is_cl(y)) as.matrix(y) else y, "y")
  if (is.null(dim(x))) x <- matrix(x)
  if (length(y) != nrow(x)) {
    abort_argument("y", sprintf("'y' must have %d values, one for each row of 'x', not %d", nrow(x),
                                length(y)))
  }
  group <- check_group(group)
  if (length(group) != nrow(x)) abort_group(length(group), nrow(x))
  if (!all(is.finite(x))) abort_argument("x", "'x' has missing or infinite values")
  if (!all(is.finite(y))) abort_argument("y", "'y' has missing or infinite values")
  if (anyNA(group)) abort_argument("group", "'group' has missing values")
  if (ncol(x) == 0L) abort_argument("x", "'x' must have at least one column")
  check_order(ncol(x), "x")
  if (is.null(colnames(x))) colnames(x) <- paste0("x", seq_len(ncol(x)))
  fit <- fit_groups(x, as.vector(y), droplevels(as.factor(group)), on_error)
  fit$call <- match.call()
  fit$call[[1L]] <- quote(cl_batch_lm)
  structure(fit, class = "cl_batch_lm")
}

# Cross-products of the columns of z in an array. Rows are ordered by group, `size` rows in each.
# Groups are padded with zeros to the next power of two, so that a few arrays suffice.
group_products <- function(z, size) {
  p <- ncol(z)
  products <- array(0, c(p, p, length(size)))
  class <- ceiling(log2(size))
  last <- cumsum(size)
  for (bucket in split(seq_along(size), class)) {
    rows <- 2^class[bucket[1L]]
    taken <- sequence(size[bucket], from = last[bucket] - size[bucket] + 1L)
    first <- sequence(size[bucket]) + rep((seq_along(bucket) - 1) * rows * p, size[bucket])
    padded <- numeric(rows * p * length(bucket))
    for (j in seq_len(p)) padded[first + (j - 1) * rows] <- z[taken, j]
    dim(padded) <- c(rows, p, length(bucket))
    products[, , bucket] <- cl_batch_matmul(padded, padded, transpose_a = TRUE)
  }
  products
}

fit_groups <- function(x, y, group, on_error) {
  p <- ncol(x)
  groups <- nlevels(group)
  order <- order(group)
  x <- x[order, , drop = FALSE]
  y <- y[order]
  code <- as.integer(group)[order]
  size <- tabulate(code, groups)
  products <- group_products(cbind(x, y), size)
  squares <- products[cbind(rep(seq_len(p), groups), rep(seq_len(p), groups),
                            rep(seq_len(groups), each = p))]
  scale <- matrix(ifelse(squares > 0, 1 / sqrt(squares), 1), p)
  gram <- products[seq_len(p), seq_len(p), , drop = FALSE]
  row_scale <- as.vector(scale[, rep(seq_len(groups), each = p)]) # of element (i, j) of each group
  gram <- gram * rep(scale, each = p) * row_scale
  right <- matrix(products[seq_len(p), p + 1L, ], p) * scale
  root <- suppressWarnings(cl_batch_chol(gram))
  info <- group_info(root, size, p)
  root[, , info != 0L] <- diag(p)
  solve_scaled <- function(b) {
    z <- cl_batch_tri_solve(root, b, upper = TRUE, transpose = TRUE)
    cl_batch_tri_solve(root, z, upper = TRUE) * scale
  }
  beta <- solve_scaled(right)
  for (correction in 1:2) {
    residual <- y - rowSums(x * t(beta)[code, , drop = FALSE])
    beta <- beta + solve_scaled(t(rowsum(x * residual, code)) * scale)
  }
  residual <- y - rowSums(x * t(beta)[code, , drop = FALSE])
  inverse <- cl_batch_tri_solve(root, array(diag(p), c(p, p, 1L)), upper = TRUE) * row_scale
  inverse <- cl_batch_matmul(inverse, inverse, transpose_b = TRUE)
  fit <- group_results(beta, inverse, residual, code, size, info, colnames(x), levels(group))
  fit$residuals <- residual[order(order)]
  batch_report(fit, replace(info, is.na(info), 255L), on_error, "singular")
}

# For each group, the first column that is a linear combination of earlier columns; 0 if there is
# none. As in lm(), the criterion is the residual length of a column of length one.
group_info <- function(root, size, p) {
  pivots <- matrix(root[cbind(rep(seq_len(p), length(size)), rep(seq_len(p), length(size)),
                              rep(seq_along(size), each = p))], p)
  small <- is.na(pivots) | pivots < 1e-7
  info <- apply(small, 2L, function(x) if (any(x)) which(x)[1L] else 0L)
  bad <- attr(root, "info")
  if (!is.null(bad)) info[!bad %in% 0L] <- bad[!bad %in% 0L]
  ifelse(size < p & info == 0L, size + 1L, info)
}

group_results <- function(beta, inverse, residual, code, size, info, columns, groups) {
  p <- length(columns)
  bad <- info != 0L
  df <- size - p
  sigma <- sqrt(as.vector(rowsum(residual^2, code)) / ifelse(df > 0, df, NaN))
  variances <- matrix(inverse[cbind(rep(seq_len(p), length(size)), rep(seq_len(p), length(size)),
                                    rep(seq_along(size), each = p))], p)
  error <- t(sqrt(variances)) * sigma
  beta <- t(beta)
  beta[bad, ] <- error[bad, ] <- sigma[bad] <- NaN
  inverse[, , bad] <- NaN
  dimnames(inverse) <- list(columns, columns, groups)
  dimnames(beta) <- dimnames(error) <- list(groups, columns)
  named <- function(v) stats::setNames(v, groups)
  list(coefficients = beta, std.error = error, sigma = named(sigma), df.residual = named(df),
       nobs = named(size), cov.unscaled = inverse, info = named(as.integer(info)))
}

# ---- methods ------------------------------------------------------------------------------------

#' @rdname cl_batch_lm
#' @export
print.cl_batch_lm <- function(x, ...) {
  cat(sprintf("<cl_batch_lm: %d groups, %d coefficients, %.0f observations>\n", length(x$sigma),
              ncol(x$coefficients), sum(x$nobs)))
  print(utils::head(cbind(x$coefficients, sigma = x$sigma)), ...)
  if (length(x$sigma) > 6L) cat(sprintf("# ... %d more groups\n", length(x$sigma) - 6L))
  invisible(x)
}

#' @rdname cl_batch_lm
#' @export
as.data.frame.cl_batch_lm <- function(x, row.names = NULL, optional = FALSE, ...) {
  beta <- x$coefficients
  statistic <- beta / x$std.error
  df <- rep(x$df.residual, ncol(beta))
  long <- data.frame(group = factor(rownames(beta)[row(beta)], rownames(beta)),
                     term = colnames(beta)[col(beta)], estimate = as.vector(beta),
                     std.error = as.vector(x$std.error), statistic = as.vector(statistic),
                     p.value = 2 * stats::pt(-abs(as.vector(statistic)), ifelse(df > 0, df, NaN)),
                     stringsAsFactors = FALSE)
  long <- long[order(row(beta)), ]
  rownames(long) <- NULL
  long
}

#' @rdname cl_batch_lm
#' @export
sigma.cl_batch_lm <- function(object, ...) object$sigma

#' @rdname cl_batch_lm
#' @export
nobs.cl_batch_lm <- function(object, ...) object$nobs

#' @rdname cl_batch_lm
#' @export
vcov.cl_batch_lm <- function(object, ...) {
  p <- ncol(object$coefficients)
  object$cov.unscaled * rep(object$sigma^2, each = p * p)
}
