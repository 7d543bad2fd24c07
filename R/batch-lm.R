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
#' equations). Groups whose columns are collinear to 0.01, where that would lose digits, are fitted
#' one by one by the QR decomposition of [lm()]. A group whose columns are collinear to 1e-7, the
#' tolerance of [lm()], or that has fewer rows than columns, gets `NaN` and is reported as described
#' for [cl_batch]. Unlike in [lm()], no column is dropped.
#'
#' @param x A numeric matrix with one row for each observation, including a column for the intercept
#'   if there is one; or a formula.
#' @param y The response: one number for each row of `x`.
#' @param group A factor (or a value that [as.factor()] accepts) with the group of each row. The
#'   formula method looks it up in `data` first. Levels without rows are dropped.
#' @param data A data frame with the variables of the formula, which may have an `offset()`. Rows
#'   with missing values are omitted.
#' @param on_error What to do if some groups cannot be fitted: warn, or stop with an error.
#' @param ... Passed on between methods.
#' @return An object of class `cl_batch_lm`, a list with the elements
#'   * `coefficients`, `std.error`: matrices with one row for each group and one column for each
#'     coefficient,
#'   * `sigma`: residual standard errors with n - p degrees of freedom; `NaN` if there are none,
#'   * `df.residual`, `nobs`: vectors over the groups,
#'   * `cov.unscaled`: the inverse cross-products, an array p x p x groups,
#'   * `residuals`, `fitted.values`, `group`: in the order of the rows in use,
#'   * `deviance`: residual sums of squares,
#'   * `info`: see [cl_batch].
#'
#'   For its methods see [cl_batch-methods].
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
  if (missing(group)) abort_no_group()
  call <- match.call()
  frame <- group_frame(x, data, eval(substitute(group), data, parent.frame()))
  offset <- stats::model.offset(frame$frame)
  y <- stats::model.response(frame$frame)
  if (!is.null(offset)) y <- check_numeric(y, "y") - offset
  fit <- cl_batch_lm.default(frame$x, y, frame$group, on_error)
  if (!is.null(offset)) fit$fitted.values <- fit$fitted.values + offset
  finish_group_fit(fit, frame, call, quote(cl_batch_lm))
}

# The complete rows of a formula's model frame, with the terms and the group of each.
group_frame <- function(formula, data, group, ...) {
  group <- check_group(classed(group, "group"))
  if (is.null(data)) data <- environment(formula)
  more <- Filter(Negate(is.null), list(...)) # as values, since model.frame() would evaluate names
  frame <- classed(do.call(stats::model.frame, c(
    list(formula, data, na.action = stats::na.pass), more)), "x")
  if (length(group) != nrow(frame)) abort_group(length(group), nrow(frame))
  keep <- stats::complete.cases(frame) & !is.na(group)
  if (!all(keep)) frame <- frame[keep, , drop = FALSE]
  terms <- attr(frame, "terms")
  list(frame = frame, group = group[keep], terms = terms, x = stats::model.matrix(terms, frame))
}

finish_group_fit <- function(fit, frame, call, name) {
  fit$call <- call
  fit$call[[1L]] <- name
  fit$terms <- frame$terms
  fit$xlevels <- stats::.getXlevels(frame$terms, frame$frame)
  fit$contrasts <- attr(frame$x, "contrasts")
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
  y <- check_numeric(if (is_cl(y)) as.matrix(y) else y, "y")
  data <- check_grouped(x, as.vector(y), group)
  begin_note("batch")
  fit <- fit_groups(data$x, as.vector(y), data$group, on_error)
  fit$engine <- engine_note("batch")
  fit$call <- match.call()
  fit$call[[1L]] <- quote(cl_batch_lm)
  structure(fit, class = "cl_batch_lm")
}

# list(x: a numeric matrix with names, group, size, order).
check_grouped <- function(x, y, group) {
  x <- check_numeric(if (is_cl(x)) as.matrix(x) else x, "x")
  if (is.null(dim(x))) x <- matrix(x)
  if (NROW(y) != nrow(x)) {
    abort_argument("y", sprintf("'y' must have %d values, one for each row of 'x', not %d", nrow(x),
                                NROW(y)))
  }
  group <- check_group(group)
  if (length(group) != nrow(x)) abort_group(length(group), nrow(x))
  if (!.Call(r_all_finite, x)) abort_argument("x", "'x' has missing or infinite values")
  if (!.Call(r_all_finite, y)) abort_argument("y", "'y' has missing or infinite values")
  if (ncol(x) == 0L) abort_argument("x", "'x' must have at least one column")
  check_order(ncol(x), "x")
  if (is.null(colnames(x))) colnames(x) <- paste0("x", seq_len(ncol(x)))
  c(list(x = x), group_codes(group))
}

# list(group: a factor with levels that occur, size: rows of each, order: of the rows by group, from
# 0 on, or NULL).
group_codes <- function(group) {
  found <- if (!is.object(group) || is.factor(group)) .Call(r_group_codes, group)
  if (is.null(found)) {
    if (anyNA(group)) abort_argument("group", "'group' has missing values")
    group <- as.factor(group)
    found <- .Call(r_group_codes, group)
  }
  if (!is.factor(group)) {
    values <- found$value
    storage.mode(values) <- typeof(group) # as.character() may differ
    group <- structure(found$code, levels = as.character(values), class = "factor")
  } else if (length(found$value) < nlevels(group)) {
    group <- droplevels(group)
  }
  list(group = group, size = found$size, order = found$order)
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
  collinear <- which(size >= p & info != 0L) # decided by QR
  root[, , info > 0L] <- diag(p)
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
  last <- cumsum(size)
  for (g in collinear) {
    rows <- seq.int(to = last[g], length.out = size[g])
    one <- qr_group(x[rows, , drop = FALSE], y[rows], 1e-7)
    info[g] <- one$info
    beta[, g] <- one$beta
    inverse[, , g] <- one$inverse
    residual[rows] <- one$residuals
  }
  fit <- group_results(beta, inverse, residual, code, size, info, colnames(x), levels(group))
  back <- order(order)
  fit$residuals <- residual[back]
  fit$fitted.values <- (y - residual)[back]
  fit$group <- group
  batch_report(fit, replace(info, is.na(info), 255L), on_error, "singular")
}

# For each group 0, or a positive number if it has fewer rows than columns or its factor is not
# accurate: the residual of a column of length one, regressed on earlier ones, is shorter than 1e-2.
group_info <- function(root, size, p) {
  pivots <- matrix(root[cbind(rep(seq_len(p), length(size)), rep(seq_len(p), length(size)),
                              rep(seq_along(size), each = p))], p)
  small <- is.na(pivots) | pivots < 1e-2
  info <- apply(small, 2L, function(x) if (any(x)) which(x)[1L] else 0L)
  bad <- attr(root, "info")
  if (!is.null(bad)) info[!bad %in% 0L] <- bad[!bad %in% 0L]
  ifelse(size < p & info == 0L, size + 1L, info)
}

# One group by Householder's QR decomposition, as in lm(). `info`: the first column that is a linear
# combination of earlier ones, 0 if there is none.
qr_group <- function(x, y, tol) {
  one <- stats::.lm.fit(x, y, tol)
  p <- ncol(x)
  full <- one$rank == p
  list(info = if (full) 0L else min(one$pivot[(one$rank + 1L):p]),
       beta = if (full) one$coefficients else NaN, residuals = one$residuals,
       inverse = if (full) chol2inv(one$qr, p) else NaN)
}

group_results <- function(beta, inverse, residual, code, size, info, columns, groups) {
  p <- length(columns)
  bad <- info != 0L
  df <- size - p
  deviance <- as.vector(rowsum(residual^2, code))
  sigma <- sqrt(deviance / ifelse(df > 0, df, NaN))
  variances <- matrix(inverse[cbind(rep(seq_len(p), length(size)), rep(seq_len(p), length(size)),
                                    rep(seq_along(size), each = p))], p)
  error <- t(sqrt(variances)) * sigma
  beta <- t(beta)
  beta[bad, ] <- error[bad, ] <- sigma[bad] <- deviance[bad] <- NaN
  inverse[, , bad] <- NaN
  dimnames(inverse) <- list(columns, columns, groups)
  dimnames(beta) <- dimnames(error) <- list(groups, columns)
  named <- function(v) stats::setNames(v, groups)
  list(coefficients = beta, std.error = error, sigma = named(sigma),
       deviance = named(deviance), df.residual = named(df),
       nobs = named(size), cov.unscaled = inverse, info = named(as.integer(info)))
}
