# Predictions by terms, and partial residuals.

# list(fit: an n x terms matrix with the attribute "constant", se.fit, residual.scale), each term
# centred at the data of the fit, as from predict.glm(type = "terms").
term_prediction <- function(object, newdata, se.fit, terms) {
  if (is.null(object$terms)) {
    abort_argument("type", "type = \"terms\" needs a fit with a formula")
  }
  if (has_classes(object$family) || !is.null(object$draws)) {
    abort_argument("type", paste("type = \"terms\" is for families with one linear predictor and",
                                 "methods \"ml\" and \"map\""))
  }
  own <- as.matrix(stats::model.matrix(object))
  x <- if (is.null(newdata)) own else as.matrix(glm_points(object, newdata)$x)
  beta <- object$coefficients
  beta[is.na(beta)] <- 0
  centre <- if (object$intercept > 0L) colMeans(own) else numeric(ncol(own))
  x <- x - rep(centre, each = nrow(x))
  labels <- attr(object$terms, "term.labels")
  if (is.null(terms)) terms <- labels
  lost <- setdiff(terms, labels)
  if (length(lost) > 0L) abort_argument("terms", sprintf("there is no term '%s'", lost[1L]))
  fit <- matrix(0, nrow(x), length(terms), dimnames = list(rownames(x), terms))
  error <- fit
  for (term in terms) {
    k <- which(object$assign == match(term, labels))
    fit[, term] <- x[, k, drop = FALSE] %*% beta[k]
    known <- intersect(names(beta)[k], rownames(object$vcov))
    if (se.fit && length(known) > 0L) {
      error[, term] <- wald_errors(object, x[, known, drop = FALSE], known)
    }
  }
  attr(fit, "constant") <- sum(centre * beta)
  if (!se.fit) return(fit)
  list(fit = fit, se.fit = error, residual.scale = stats::sigma(object))
}

# As residuals.glm(type = "partial"): working residuals plus the terms.
partial_residuals <- function(object) {
  refuse_mixed(object, "partial residuals")
  object$na.action <- NULL
  terms <- term_prediction(object, NULL, FALSE, NULL)
  terms + as.vector(glm_residuals(object, "working"))
}
