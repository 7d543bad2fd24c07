# Methods of blockwise fits, which keep no rows. Results with a number for each row are computed by
# another pass over the blocks.

# The values f(fit of a block, block) of all rows, one after another.
stream_rows <- function(object, what, f) {
  kept <- object$stream
  if (is.null(kept$data)) {
    abort_argument("object", sprintf(paste(
      "%s need the data again, which a connection does not give twice: use predict() with",
      "'newdata', or fit from a file name or a function"), what))
  }
  s <- list2env(c(kept, list(settled = TRUE, progress = FALSE, found = list(), row = 0,
                             aux = object$aux, terms = object$terms, contrasts = object$contrasts,
                             intercept = object$intercept)), parent = emptyenv())
  s$source <- new_source(kept$data, kept$block, kept$variables)
  on.exit(s$source$close())
  s$source$restart()
  values <- list()
  sums <- numeric(4L)
  while (!is.null(data <- next_block(s))) {
    block <- block_numbers(s, data)
    if (block$n == 0L) next
    if (any(block$w > 0)) sums <- sums + block$sums
    values <- c(values, list(f(block_fit(object, block), block)))
  }
  if (any(abs(sums - kept$sums[3:6]) > 1e-9 * (abs(sums) + abs(kept$sums[3:6])))) {
    abort_argument("object", "'data' gave other rows than in the fit")
  }
  stats::naresid(object$na.action, if (is.matrix(values[[1L]])) do.call(rbind, values) else
    unlist(values))
}

refuse_stream <- function(object, what) {
  if (!inherits(object, "cl_glm_stream")) return(invisible())
  abort_argument("object", sprintf("%s are not available for a fit by blocks, %s", what,
                                   "which keeps no rows; predict() takes 'newdata'"))
}

#' @export
fitted.cl_glm_stream <- function(object, ...) {
  stream_rows(object, "fitted values", function(fit, block) fit$fitted.values)
}

#' @export
residuals.cl_glm_stream <- function(object, type = c("deviance", "pearson", "response", "working",
                                                     "partial"), ...) {
  type <- check_choice(type, c("deviance", "pearson", "response", "working", "partial"), "type")
  if (type == "partial") refuse_stream(object, "partial residuals")
  stream_rows(object, "residuals", function(fit, block) glm_residuals(fit, type))
}

#' @export
weights.cl_glm_stream <- function(object, type = c("prior", "working"), ...) {
  type <- check_choice(type, c("prior", "working"), "type")
  stream_rows(object, "weights", function(fit, block) weights.cl_glm(fit, type))
}

#' @export
predict.cl_glm_stream <- function(object, newdata = NULL, type = c("link", "response", "class",
                                                                   "terms"), ...) {
  type <- check_choice(type, c("link", "response", "class", "terms"), "type")
  if (type == "terms") refuse_stream(object, "predictions of type \"terms\"")
  if (!is.null(newdata)) {
    types <- object$stream$types
    for (name in intersect(names(types), names(newdata))) {
      v <- if (is.data.frame(newdata)) as_type(newdata[[name]], types[[name]])
      if (!is.null(v)) newdata[[name]] <- v
    }
    return(predict.cl_glm(object, newdata, type, ...))
  }
  if (...length() > 0L) refuse_stream(object, "standard errors and intervals of its own rows")
  stream_rows(object, "predictions", function(fit, block) predict.cl_glm(fit, type = type))
}

#' @export
hatvalues.cl_glm_stream <- function(model, ...) {
  h <- stream_rows(model, "leverages", function(fit, block) stream_leverage(model, fit, block))
  replace(h, is.na(h), 0)
}

#' @export
cooks.distance.cl_glm_stream <- function(model, ...) {
  stream_rows(model, "Cook's distances", function(fit, block) {
    h <- stream_leverage(model, fit, block)
    r <- glm_residuals(fit, "pearson")
    distance <- (r / (1 - h))^2 * h / (dispersion(model) * model$rank)
    replace(distance, is.infinite(distance), NaN)
  })
}

stream_leverage <- function(model, fit, block) {
  kept <- !is.na(model$coefficients)
  w <- weights.cl_glm(fit, "working")
  h <- rowSums((block$x[, kept, drop = FALSE] %*% model$vcov.root)^2) * w / dispersion(model)
  replace(h, h > 1 - 10 * .Machine$double.eps, 1)
}

#' @export
model.frame.cl_glm_stream <- function(formula, ...) refuse_stream(formula, "model frames")

#' @export
model.matrix.cl_glm_stream <- function(object, ...) refuse_stream(object, "model matrices")

#' @export
simulate.cl_glm_stream <- function(object, nsim = 1, seed = NULL, ...) {
  refuse_stream(object, "simulated responses")
}

#' @export
plot.cl_glm_stream <- function(x, ...) refuse_stream(x, "plots of residuals")

# The fits with no term, the first one, the first two, and so on.
stream_term_fits <- function(object) {
  kept <- object$stream
  if (is.null(kept$data)) {
    abort_argument("object", "the data can be read only once: supply two fits")
  }
  call <- kept$frame
  if (!is.null(kept$trials)) call$trials <- kept$trials
  family <- if (is.null(r_family(object$family))) object$family else r_family(object$family)
  smaller <- lapply(seq_len(max(object$assign)) - 1L, function(k) {
    stream_glm(stats::formula(object), kept$data, family, "ml", NULL, call, kept$where,
               object$contrasts, kept$block, control = kept$control, progress = FALSE,
               xlev = kept$levels, to_term = k)
  })
  c(smaller, list(object))
}
