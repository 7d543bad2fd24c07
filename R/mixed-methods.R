# Methods of fits with random effects; the others are those of cl_glm().

#' @export
print.cl_glmm <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_mixed_head(x, digits)
  cat("\nFixed effects", if (x$method == "mcmc") " (posterior means)", ":\n", sep = "")
  print(format(x$coefficients, digits = digits), quote = FALSE)
  if (!is_least_squares(x$family)) print_aux(x, digits)
  print_mixed_tail(x, digits)
  cat(engine_line(x$engine))
  invisible(x)
}

print_mixed_head <- function(x, digits) {
  kind <- switch(x$method, mcmc = "sampling", reml = "restricted maximum likelihood", paste0(
    if (x$method == "map") "posterior mode" else "maximum likelihood",
    if (!is_least_squares(x$family)) " (Laplace's approximation)"))
  cat(x$family, ", ", count_of(x$nobs, "observation"), dropped_rows(x), ", by ", kind, "\n",
      sep = "")
  cat("Call: ", paste(deparse(x$call), collapse = "\n"), "\n\nRandom effects",
      if (x$method == "mcmc") " (posterior means of variances)", ":\n", sep = "")
  print(variance_components(x), digits = digits)
  others <- unlist(lapply(x$fields, function(f) f$par[-1L]))
  if (length(others) > 0L) {
    cat(sprintf("%s: %s\n", sub("|", " of ", names(others), fixed = TRUE),
                format(others, digits = digits)), sep = "")
  }
  cat("Levels: ", paste(names(x$random), vapply(x$random, nrow, 0L), sep = " ", collapse = ", "),
      "\n", sep = "")
}

print_mixed_tail <- function(x, digits) {
  if (x$method == "mcmc") return(cat("\n", convergence_line(x), "\n", sep = ""))
  if (x$method == "map") {
    return(cat("\nlog likelihood: ", format(x$logLik, digits = digits + 2L),
               ", with priors: ", format(x$objective, digits = digits + 2L), "\n",
               convergence_line(x), "\n", sep = ""))
  }
  cat("\n", likelihood_text(x, stats::AIC(x), digits), "   df: ", x$df, "\n", convergence_line(x),
      if (x$singular) "\nA variance is 0, or a correlation 1 or -1 (singular fit)", "\n", sep = "")
}

#' @export
summary.cl_glmm <- function(object, ...) {
  found <- object$coefficients
  error <- stats::setNames(rep(NA_real_, length(found)), names(found))
  error[rownames(object$vcov)] <- coefficient_errors(object)
  table <- cbind(Estimate = found, `Std. Error` = error)
  z <- found / error
  table <- if (object$method == "mcmc") table else
    if (is_least_squares(object$family)) cbind(table, `t value` = z) else
      cbind(table, `z value` = z, `Pr(>|z|)` = 2 * stats::pnorm(-abs(z)))
  structure(list(object = object, coefficients = table,
                 sampling = if (!is.null(object$draws)) summary(object$draws)),
            class = "summary.cl_glmm")
}

#' @export
print.summary.cl_glmm <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_mixed_head(x$object, digits)
  if (is.null(x$sampling)) {
    cat("\nFixed effects:\n")
    if (nrow(x$coefficients) > 0L) {
      stats::printCoefmat(x$coefficients, digits = digits, na.print = "NA")
    }
    if (!is_least_squares(x$object$family)) print_aux(x$object, digits)
  } else {
    cat("\n")
    print_draws(x$sampling, digits)
  }
  print_prior_texts(x$object$prior)
  print_mixed_tail(x$object, digits)
  cat(engine_line(x$object$engine))
  invisible(x)
}

# ---- random effects ------------------------------------------------------------------------------

# The covariance matrices by term, as VarCorr() of nlme and lme4 gives them.
variance_components <- function(x) {
  components <- lapply(x$variances, function(v) {
    sd <- sqrt(diag(v))
    scale <- ifelse(sd > 0, 1 / sd, 0)
    correlation <- v * outer(scale, scale)
    diag(correlation) <- 1
    structure(v, stddev = sd, correlation = correlation)
  })
  for (field in x$fields) {
    sd <- field$par[1L]
    names(sd) <- sub("^sd_(.*?)[|].*", "\\1", names(sd), perl = TRUE)
    components[[field$label]] <- structure(matrix(sd^2, dimnames = list(names(sd), names(sd))),
                                           stddev = sd, correlation = diag(1))
  }
  structure(components, sc = if (is_least_squares(x$family)) x$aux[[1L]], class = "cl_varcorr")
}

#' @exportS3Method nlme::fixef
fixef.cl_glmm <- function(object, ...) object$coefficients

#' @rdname predict.cl_glmm
#' @exportS3Method nlme::ranef
ranef.cl_glmm <- function(object, condVar = FALSE, ...) {
  found <- lapply(object$random, as.data.frame, optional = TRUE)
  if (check_flag(condVar, "condVar")) {
    if (object$method == "mcmc") {
      abort_argument("condVar", "conditional variances are not available for method \"mcmc\"")
    }
    v <- effect_covariances(object)
    for (name in names(found)) attr(found[[name]], "postVar") <- v[[name]]
  }
  structure(found, class = "ranef.cl_glmm")
}

# Numbers of levels, as lme4 gives them.
#' @exportS3Method lme4::ngrps
ngrps.cl_glmm <- function(object, ...) vapply(object$random, nrow, 0L)

# Parts of a fit by lme4's names; lme4's isSingular() asks for "theta" and "lower".
#' @exportS3Method lme4::getME
getME.cl_glmm <- function(object, name, ...) {
  if (length(name) != 1L) {
    return(sapply(name, function(one) getME.cl_glmm(object, one), simplify = FALSE))
  }
  places <- do.call(rbind, Map(function(root, group) {
    at <- which(lower.tri(root, TRUE), arr.ind = TRUE)
    own <- at[, 1L] == at[, 2L]
    columns <- rownames(root)
    data.frame(name = paste(group, ifelse(own, columns[at[, 1L]], paste(
      columns[at[, 1L]], columns[at[, 2L]], sep = ".")), sep = "."), lower = ifelse(own, 0, -Inf),
      stringsAsFactors = FALSE)
  }, object$roots, names(object$roots)))
  beta <- object$coefficients[!is.na(object$coefficients)]
  parts <- list(
    X = function() stats::model.matrix(object)[, names(beta), drop = FALSE],
    y = function() mean_response(object), mu = function() unname(object$fitted.values),
    offset = function() ones_unless(object$offset, length(object$y)) - is.null(object$offset),
    theta = function() if (!is.null(object$theta)) stats::setNames(object$theta, places$name),
    lower = function() stats::setNames(places$lower, places$name),
    beta = function() unname(beta), fixef = function() beta,
    sigma = function() if (is_least_squares(object$family)) object$aux[[1L]] else 1,
    flist = function() lapply(stats::setNames(object$effects, names(object$roots)), function(effect)
      group_factor(effect$of, stats::model.frame(object))$factor)[names(object$random)],
    cnms = function() lapply(object$roots, rownames),
    is_REML = function() object$method == "reml",
    n = function() length(object$y), p = function() length(beta),
    n_rtrms = function() length(object$roots), n_rfacs = function() length(object$random))
  if (!name %in% names(parts)) {
    abort_argument("name", sprintf("'name' must be one of %s, not \"%s\"",
                                   paste0("\"", names(parts), "\"", collapse = ", "), name))
  }
  parts[[name]]()
}

# A row for each effect, as from lme4.
#' @export
as.data.frame.ranef.cl_glmm <- function(x, row.names = NULL, optional = FALSE, ...) {
  do.call(rbind, lapply(names(x), function(name) {
    b <- as.matrix(x[[name]])
    v <- attr(x[[name]], "postVar")
    found <- data.frame(grpvar = name, term = factor(rep(colnames(b), each = nrow(b)), colnames(b)),
                        grp = rep(rownames(b), ncol(b)), condval = as.vector(b),
                        stringsAsFactors = FALSE)
    if (!is.null(v)) found$condsd <- sqrt(as.vector(t(apply(v, 3L, diag))))
    found
  }))
}

# Effects in increasing order, with 95% intervals if there are conditional variances.
#' @export
plot.ranef.cl_glmm <- function(x, ...) {
  rows <- as.data.frame(x)
  if (is.null(rows$condsd)) rows$condsd <- 0
  panels <- split(rows, list(rows$term, rows$grpvar), drop = TRUE)
  old <- graphics::par(mfrow = grDevices::n2mfrow(length(panels)))
  on.exit(graphics::par(old))
  for (panel in panels) {
    panel <- panel[order(panel$condval), ]
    at <- seq_len(nrow(panel))
    half <- 1.96 * panel$condsd
    plot(panel$condval, at, xlim = range(panel$condval - half, panel$condval + half, 0),
         yaxt = "n", pch = 19, cex = 0.6, xlab = as.character(panel$term[1L]),
         ylab = panel$grpvar[1L], ...)
    graphics::segments(panel$condval - half, at, panel$condval + half, at)
    if (length(at) <= 50L) graphics::axis(2L, at, panel$grp, las = 1L, cex.axis = 0.7)
    graphics::abline(v = 0, lty = 3)
  }
  invisible(x)
}

#' @export
print.ranef.cl_glmm <- function(x, ...) {
  print(unclass(x), ...)
  invisible(x)
}

#' @exportS3Method nlme::VarCorr
VarCorr.cl_glmm <- function(x, sigma = 1, ...) {
  if (!identical(as.numeric(sigma), 1)) {
    abort_argument("sigma", "'sigma' must be 1: multiply the standard deviations yourself")
  }
  variance_components(x)
}

#' @export
as.data.frame.cl_varcorr <- function(x, row.names = NULL, optional = FALSE, ...) {
  rows <- lapply(seq_along(x), function(t) {
    v <- x[[t]]
    sd <- attr(v, "stddev")
    names <- rownames(v)
    at <- which(row(v) > col(v), arr.ind = TRUE)
    data.frame(grp = names(x)[t], var1 = c(names, names[at[, 2L]]),
               var2 = c(rep(NA_character_, length(names)), names[at[, 1L]]),
               vcov = c(diag(v), v[at]), sdcor = c(sd, attr(v, "correlation")[at]),
               stringsAsFactors = FALSE)
  })
  sc <- attr(x, "sc")
  if (!is.null(sc)) {
    rows <- c(rows, list(data.frame(grp = "Residual", var1 = NA_character_, var2 = NA_character_,
                                    vcov = sc^2, sdcor = sc, stringsAsFactors = FALSE)))
  }
  do.call(rbind, rows)
}

#' @export
print.cl_varcorr <- function(x, digits = max(3L, getOption("digits") - 2L), ...) {
  rows <- as.data.frame(x)
  single <- rows[is.na(rows$var2), ]
  widest <- max(vapply(x, nrow, 0L))
  corr <- matrix("", nrow(single), widest - 1L)
  at <- 0L
  for (v in x) {
    c <- attr(v, "correlation")
    for (i in seq_len(nrow(v))[-1L]) {
      corr[at + i, seq_len(i - 1L)] <- sprintf("%.2f", c[i, seq_len(i - 1L)])
    }
    at <- at + nrow(v)
  }
  table <- cbind(single$grp, ifelse(is.na(single$var1), "", single$var1),
                 format(single$vcov, digits = digits), format(single$sdcor, digits = digits), corr)
  table[duplicated(rep(seq_along(x), vapply(x, nrow, 0L))), 1L] <- ""
  dimnames(table) <- list(rep("", nrow(table)),
                          c("Group", "Name", "Variance", "Std.Dev.", if (widest > 1L)
                            c("Corr", rep("", widest - 2L))))
  print(table, quote = FALSE)
  invisible(x)
}
