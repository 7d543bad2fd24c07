# Methods of cross-validations, and their comparison.

#' @export
print.cl_cv <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  loo <- x$k == length(x$folds)
  cat(sprintf("%s of %s (%s%s)\n", if (loo) "Leave-one-out cross-validation" else
    sprintf("%d-fold cross-validation", x$k), count_of(length(x$folds), "observation"), x$family,
    if (isFALSE(x$refit)) "; parameters kept" else ""))
  cat(x$model, "\n\n", sep = "")
  print(x$estimates, digits = digits)
  cat(engine_line(x$engine))
  invisible(x)
}

#' @rdname cl_cv
#' @param object,x A result of `cl_cv()`.
#' @export
summary.cl_cv <- function(object, ...) {
  table <- object$pointwise
  fold <- factor(table$fold, unique(sort(table$fold)))
  use <- object$used
  by <- function(v, f) as.vector(tapply(v[use], fold[use], f))
  numeric <- is.null(object$probabilities)
  folds <- data.frame(n = by(rep(1, nrow(table)), sum), row.names = levels(fold))
  if (!is.null(table$log_score)) folds$elpd <- by(table$log_score, sum)
  if (numeric) folds$rmse <- sqrt(by((table$observed - table$predicted)^2, mean)) else
    folds$error <- by(table$observed != table$predicted, mean)
  score <- if (is.null(table$log_score)) -abs(table$observed - table$predicted) else table$log_score
  worst <- utils::head(order(score), 5L)
  structure(c(object, list(by_fold = folds, worst = table[worst, ])), class = "summary.cl_cv")
}

#' @export
print.summary.cl_cv <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print.cl_cv(x, digits)
  if (x$k < length(x$folds)) {
    cat("\nBy fold:\n")
    print(utils::head(x$by_fold, 20L), digits = digits)
    if (x$k > 20L) cat(sprintf("... and %d more\n", x$k - 20L))
  }
  cat("\nLeast expected observations:\n")
  print(x$worst, digits = digits)
  invisible(x)
}

#' @export
as.data.frame.cl_cv <- function(x, row.names = NULL, optional = FALSE, ...) {
  if (is.null(x$probabilities)) x$pointwise else
    cbind(x$pointwise, as.data.frame(x$probabilities))
}

#' @rdname cl_cv
#' @param type `"predicted"`: observations against their predictions; `"score"`: log scores of the
#'   observations in order. By default the former, and for classes the latter.
#' @export
plot.cl_cv <- function(x, type = c("predicted", "score"), ...) {
  table <- x$pointwise
  classes <- !is.null(x$probabilities)
  type <- if (missing(type)) c("predicted", "score")[1L + classes] else
    check_choice(type, c("predicted", "score"), "type")
  arguments <- list(...)
  draw <- function(x, y, defaults) {
    do.call(graphics::plot, c(list(x, y), arguments,
                              defaults[setdiff(names(defaults), names(arguments))]))
  }
  if (type == "predicted" && !classes) {
    draw(table$predicted, table$observed, list(xlab = "predicted without its fold",
                                               ylab = "observed"))
    graphics::abline(0, 1, col = "grey60")
  } else if (type == "predicted") {
    abort_argument("type", "type = \"predicted\" is not for classes: use \"score\"")
  } else {
    if (is.null(table$log_score)) abort_argument("type", "this family has no log score")
    draw(seq_len(nrow(table)), table$log_score, list(xlab = "observation", ylab = "log score"))
    graphics::abline(h = mean(table$log_score), col = "grey60")
  }
  invisible(x)
}

#' @rdname cl_cv
#' @export
cl_compare <- function(...) {
  results <- list(...)
  if (length(results) == 1L && is.list(results[[1L]]) && !inherits(results[[1L]], "cl_cv")) {
    results <- results[[1L]]
  }
  if (length(results) < 2L || !all(vapply(results, inherits, NA, "cl_cv"))) {
    abort_argument("...", "two or more results of cl_cv() are needed")
  }
  names <- names(results)
  if (is.null(names)) names <- character(length(results))
  unnamed <- !nzchar(names)
  names[unnamed] <- vapply(results[unnamed], `[[`, "", "model")
  names <- make.unique(names)
  first <- results[[1L]]
  same <- function(x, y) isTRUE(all.equal(as.character(x), as.character(y)))
  for (r in results) {
    if (is.null(r$pointwise$log_score)) {
      abort_argument("...", sprintf("family \"%s\" has no log score", r$family))
    }
    if (!same(r$pointwise$observed, first$pointwise$observed) || !identical(r$used, first$used)) {
      abort_argument("...", "the results are not for the same observations")
    }
  }
  folds <- vapply(results, function(r) {
    identical(match(r$folds, unique(r$folds)), match(first$folds, unique(first$folds)))
  }, NA)
  if (!all(folds)) {
    statcl_warning("folds", paste("the results have different folds, which adds to their",
                                  "differences: give the first one as 'folds' of the others"))
  }
  score <- lapply(results, function(r) r$pointwise$log_score[r$used])
  total <- vapply(score, sum, 0)
  off <- lapply(score, `-`, score[[which.max(total)]])
  n <- length(score[[1L]])
  table <- data.frame(elpd_diff = vapply(off, sum, 0),
                      se_diff = sqrt(n) * vapply(off, stats::sd, 0), elpd = total,
                      se_elpd = sqrt(n) * vapply(score, stats::sd, 0), row.names = names)
  structure(table[order(-total), ], class = c("cl_compare", "data.frame"))
}

#' @exportS3Method loo::loo_compare
loo_compare.cl_cv <- function(x, ...) cl_compare(x, ...)

#' @export
print.cl_compare <- function(x, digits = 1L, ...) {
  print(format(data.frame(unclass(x), row.names = row.names(x)), nsmall = digits, digits = 2L))
  invisible(x)
}
