# Standard errors of cl_tmb(), from the Hessian and by the delta method.

#' @rdname cl_tmb
#' @param quantities Whether standard errors of `ADREPORT()`ed quantities and of random effects are
#'   computed.
#' @param joint Whether the result has the element `jointPrecision`, the inverse of the covariance
#'   matrix of parameters and random effects together: sparse if the package Matrix is installed.
#' @param bias.correct Whether the result has the element `unbiased`, a list with the `value` of the
#'   `ADREPORT()`ed quantities as expectations over the random effects, not at their mode (Thorson
#'   and Kristensen 2016, Fisheries Research 175).
#' @export
cl_sdreport <- function(obj, par = NULL, quantities = TRUE, joint = FALSE, bias.correct = FALSE) {
  if (!inherits(obj, "cl_tmb")) {
    abort_argument("obj", sprintf("'obj' must be a value of cl_tmb(), not %s", describe(obj)))
  }
  check_flag(quantities, "quantities")
  check_flag(joint, "joint")
  check_flag(bias.correct, "bias.correct")
  o <- environment(obj$fn)$o
  theta <- if (is.null(par)) as.double(o$best_par) else check_tmb_point(o, par, "par")
  if (length(o$random) > 0L) require_mode(o, theta, "par")
  cov <- safe_inverse(obj$he(theta))
  dimnames(cov) <- list(names(o$par), names(o$par))
  result <- list(par.fixed = stats::setNames(theta, names(o$par)), cov.fixed = cov,
                 gradient.fixed = obj$gr(theta), pdHess = all(is.finite(cov)))
  if (!result$pdHess) {
    statcl_warning("hessian", "the Hessian is not positive definite: standard errors are NaN")
  }
  if (quantities) result <- c(result, tmb_quantities(o, theta, unname(cov)))
  if (bias.correct) result$unbiased <- list(value = tmb_unbiased(o, theta))
  if (joint) result$jointPrecision <- joint_precision(o, theta, unname(cov))
  structure(result, class = "cl_sdreport", form = list(
    layout = o$layout, active = o$point$values, fixed = o$fixed, random = o$random,
    reported = if (quantities) o$notes$adreport))
}

#' @rdname cl_tmb
#' @param what `"Estimate"` or `"Std. Error"`, which may be shortened.
#' @param report Whether to give the `ADREPORT()`ed quantities, not the parameters.
#' @export
as.list.cl_sdreport <- function(x, what = c("Estimate", "Std. Error"), report = FALSE, ...) {
  choices <- c("Estimate", "Std. Error")
  column <- if (missing(what)) 1L else if (is.character(what)) pmatch(what[1L], choices) else NA
  if (is.na(column)) abort_argument("what", "'what' must be \"Estimate\" or \"Std. Error\"")
  form <- attr(x, "form")
  if (check_flag(report, "report")) {
    return(split_slope(unname(if (column == 1L) x$value else x$sd), form$reported))
  }
  z <- rep(NA_real_, length(form$fixed) + length(form$random))
  z[form$fixed] <- summary(x, "fixed")[, column]
  if (!is.null(x$par.random)) z[form$random] <- summary(x, "random")[, column]
  tmb_parameters(form$layout, split_slope(z, form$active), if (column == 2L) NA_real_)
}

tmb_quantities <- function(o, theta, cov) {
  z <- o$start
  z[o$fixed] <- theta
  random <- length(o$random) > 0L
  if (random) {
    mode <- require_mode(o, theta, "par")
    z <- mode$z
    cross <- tmb_hessian(o, z, o$fixed, o$random)
    factor <- mode$step$factor
    moves <- -effects_solve(o, factor, cross) # of the mode
  }
  reported <- tmb_reported(o, z)$adreport
  value <- as.double(unlist(reported, use.names = FALSE))
  names(value) <- rep(names(reported), lengths(reported))
  jacobian <- tmb_jacobian(o, z, length(value))
  outer <- jacobian[, o$fixed, drop = FALSE]
  extra <- 0
  if (random) {
    by_u <- jacobian[, o$random, drop = FALSE]
    outer <- outer + by_u %*% moves
    extra <- by_u %*% effects_solve(o, mode$step$factor, t(by_u))
  }
  spread <- outer %*% tcrossprod(cov, outer) + extra
  result <- list(value = value, sd = sqrt(diag(spread)), cov = spread)
  if (!random) return(result)
  c(result, list(par.random = stats::setNames(z[o$random], o$names[o$random]),
                 diag.cov.random = effects_variances(o, mode$step$factor) +
              rowSums((moves %*% cov) * moves)))
}

# The derivative by e, at 0, of Laplace's approximation of exp(-f + e q), for each quantity q:
# q + tr(H^-1 q'') / 2 - a' q' / 2, where a is H^-1 times the gradient of log(det(H)).
tmb_unbiased <- function(o, theta) {
  z <- replace(o$start, o$fixed, theta)
  mode <- if (length(o$random) > 0L) require_mode(o, theta, "par")
  if (!is.null(mode)) z <- mode$z
  reported <- tmb_reported(o, z)$adreport
  value <- stats::setNames(as.double(unlist(reported, use.names = FALSE)),
                           rep(names(reported), lengths(reported)))
  if (is.null(mode) || length(value) == 0L) return(value)
  factor <- mode$step$factor
  a <- effects_solve(o, factor, effects_third(o, mode)[o$random])
  slopes <- tmb_jacobian(o, z, length(value))[, o$random, drop = FALSE]
  value + 0.5 * (tmb_traces(o, z, length(value), factor) - drop(slopes %*% a))
}

# tr(H^-1 q'') for each quantity q.
tmb_traces <- function(o, z, n, factor) {
  state <- environment(o$weighted)
  chosen <- c(seq_along(z) %in% o$random, logical(n))
  second <- if (!is.null(state$program)) sparse_program(-1L, state$known[[1L]], chosen)
  if (is.null(second)) {
    if (is.null(state$program)) return(numeric(n))
    abort_argument("bias.correct", paste("'bias.correct = TRUE' needs quantities with sparse",
                                         "second derivatives, see ?cl_hessian"))
  }
  inverse <- inverse_elements(o, factor, second$row, second$column)
  twice <- ifelse(second$row == second$column, 1, 2)
  vapply(seq_len(n), function(k) {
    x <- c(z, replace(numeric(n), k, 1))
    sum(twice * inverse * .Call(r_sparse_run, second$program, x))
  }, 0)
}

# Elements of H^-1: rows and columns from 0 on.
inverse_elements <- function(o, factor, row, column) {
  s <- factor$of
  if (is.environment(s)) {
    q <- length(o$random)
    at <- match(row + column * as.double(q), s$row + s$column * as.double(q))
    if (!anyNA(at)) return(less_profiled(o, factor, selected_inverse(factor)[at], row, column))
  }
  result <- numeric(length(row))
  for (some in split(unique(column), ceiling(seq_along(unique(column)) / 256))) {
    unit <- matrix(0, length(o$random), length(some))
    unit[cbind(some + 1L, seq_along(some))] <- 1
    solved <- effects_solve(o, factor, unit)
    mine <- column %in% some
    result[mine] <- solved[cbind(row[mine] + 1L, match(column[mine], some))]
  }
  less_profiled(o, factor, result, row, column)
}

# Derivatives of the reported quantities with respect to all active parameters, one row each: the
# gradient of their weighted sum, for weights of which one is 1 and the others are 0.
tmb_jacobian <- function(o, z, n) {
  result <- matrix(0, n, length(z))
  if (n == 0L) return(result)
  if (is.null(o$weighted)) {
    notes <- o$notes
    finish <- function(value, .weights) {
      force(value) # runs the objective
      sum(.weights * unlist(notes$adreport))
    }
    o$weighted <- cl_gradient(tmb_function(o, finish, ".weights"))
  }
  values <- split_slope(z, o$point$values)
  for (k in seq_len(n)) {
    values$.weights <- replace(numeric(n), k, 1)
    slope <- withCallingHandlers(attr(do.call(o$weighted, values, quote = TRUE), "gradient"),
                                 statcl_warning_unused = function(w) {
                                   invokeRestart("muffleWarning")
                                 })
    slope$.weights <- NULL
    result[k, ] <- unlist(slope, use.names = FALSE)
  }
  result
}

#' @rdname cl_tmb
#' @export
vcov.cl_sdreport <- function(object, ...) object$cov.fixed

#' @rdname cl_tmb
#' @export
summary.cl_sdreport <- function(object, select = c("all", "fixed", "random", "report"), ...) {
  select <- check_choice(select, c("all", "fixed", "random", "report"), "select")
  parts <- list(fixed = cbind(object$par.fixed, sqrt(diag(object$cov.fixed))),
                random = cbind(object$par.random, sqrt(as.double(object$diag.cov.random))),
                report = cbind(object$value, object$sd))
  if (select != "all") parts <- parts[select]
  table <- do.call(rbind, parts)
  if (is.null(table)) table <- matrix(0, 0L, 2L)
  colnames(table) <- c("Estimate", "Std. Error")
  table
}

#' @rdname cl_tmb
#' @export
print.cl_sdreport <- function(x, ...) {
  cat("<cl_sdreport>\n")
  print(summary(x, "fixed"))
  if (length(x$value) > 0L) {
    cat("\nreported:\n")
    print(summary(x, "report"))
  }
  if (length(x$par.random) > 0L) cat(sprintf("\n%d random effects\n", length(x$par.random)))
  cat(sprintf("\nlargest gradient: %.2g\n", max(abs(x$gradient.fixed))))
  invisible(x)
}
