# Methods of Gaussian processes with another family of observations, apart from predict().

#' @export
print.cl_gp_response <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_gp_head(x, length(x$y))
  cat("family: ", response_text(x), "\n", sep = "")
  print(x$kernel, digits = digits)
  shown <- setdiff(names(x$coefficients), names(coef(x$kernel)))
  if (length(shown) > 0L) print(x$coefficients[shown], digits = digits)
  if (x$trend$kind == "number") cat("mean:", format(x$mean, digits = digits), "(held)\n")
  cat(sprintf("%s: %s (%s)\n", response_objective(x), format(x$objective, digits = digits + 2L),
              convergence_text(x)), engine_line(x$engine), sep = "")
  invisible(x)
}

response_text <- function(x) {
  levels <- x$response$levels
  paste0(x$family, if (length(levels) > 0L) {
    sprintf(", %d classes%s", length(levels), if (x$response$dims > 1L)
      sprintf(", %d latent processes", x$response$dims) else "")
  })
}

response_objective <- function(x) {
  switch(x$method, ml = if (x$beta == "integrate")
    "approximate log likelihood, mean integrated out" else "approximate log marginal likelihood",
    "log posterior density at its maximum")
}

#' @export
summary.cl_gp_response <- function(object, ...) {
  errors <- sqrt(diag(vcov(object)))
  kept <- c("call", "family", "kernel", "logLik", "objective", "method", "beta", "converged",
            "message", "at_bound", "fixed", "evaluations", "not_pd", "trials", "na.action", "prior",
            "response", "cuts", "vecchia", "engine")
  sampling <- NULL
  if (!is.null(object$draws)) {
    named <- colnames(as.matrix(object$draws))
    sampling <- summary(object$draws, parameters = intersect(names(object$par), named))
  }
  structure(c(object[intersect(kept, names(object))],
              list(parameters = cbind(Estimate = object$coefficients,
                                      `Std. Error` = errors[names(object$coefficients)]),
                   columns = c(response_columns(object)), n = length(object$y),
                   aic = stats::AIC(object), bic = stats::BIC(object), sampling = sampling)),
            class = "summary.cl_gp_response")
}

response_columns <- function(object) {
  of_kernel <- utils::head(parameter_columns(object), length(coef(object$kernel)))
  c(of_kernel, rep("", length(object$coefficients) - length(of_kernel)))
}

#' @export
print.summary.cl_gp_response <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_gp_head(x, x$n)
  cat("family:", response_text(x), "\n\nParameters (sd on the scale of the predictor):\n")
  print_gp_parameters(x, digits)
  if (is.null(x$sampling)) {
    cat("\napproximate log marginal likelihood: ", format(x$logLik, digits = digits + 2L),
        "   AIC: ", format(x$aic, digits = digits + 2L), "   BIC: ",
        format(x$bic, digits = digits + 2L), sep = "")
  }
  cat(sprintf("\n%s after %d evaluations\n", convergence_text(x), x$evaluations),
      engine_line(x$engine), sep = "")
  invisible(x)
}

#' @rdname predict.cl_gp_response
#' @export
residuals.cl_gp_response <- function(object, type = c("deviance", "pearson", "response"), ...) {
  type <- check_choice(type, c("deviance", "pearson", "response"), "type")
  if (has_classes(object$family)) {
    abort_argument("type", "families with several classes have no residuals")
  }
  response <- object$response
  mu <- as.vector(object$fitted.values)
  y <- response$y
  w <- ones_unless(response$weights, length(y))
  if (!is.null(response$trials)) {
    y <- ifelse(response$trials > 0, y / response$trials, 0)
    w <- w * response$trials
  }
  rest <- y - mu
  row <- family_row(object$family)
  aux <- unname(object$aux)
  if (!is.null(row$residual)) {
    if (type != "response") rest <- row$residual[[type]](rest, w, aux)
  } else {
    rest <- switch(type, response = rest, pearson = rest * sqrt(w / row$variance(mu, aux)),
                   deviance = sign(rest) * sqrt(pmax(row$deviance(y, mu, w, aux), 0)))
  }
  stats::naresid(object$na.action, stats::setNames(rest, rownames(object$x)))
}

#' @export
rstandard.cl_gp_response <- function(model, ...) {
  abort_argument("model", sprintf(paste("standardised residuals are for normal observations: for",
                                        "\"%s\" use residuals(type = \"pearson\")"), model$family))
}

#' @export
family.cl_gp_response <- function(object, ...) full_family(object$family)

#' @rdname predict.cl_gp_response
#' @param nsim,seed,conditional As for [simulate.cl_gp()].
#' @export
simulate.cl_gp_response <- function(object, nsim = 1, seed = NULL, newdata = NULL,
                                    type = c("response", "link"), conditional = TRUE, draws = 50,
                                    offset = NULL, trials = NULL, ...) {
  check_dots_empty(...)
  nsim <- check_count(nsim, "nsim")
  type <- check_choice(type, c("response", "link"), "type")
  conditional <- check_flag(conditional, "conditional")
  draws <- check_count(draws, "draws", 1)
  in_sample <- is.null(newdata)
  points <- gp_points(object, newdata)
  if (!all(points$complete)) abort_argument("newdata", "'newdata' has missing values")
  offset <- response_offset(object, points, offset, in_sample)
  n <- nrow(points$x)
  trials <- if (type == "response") new_trials(object, trials, in_sample, n, seq_len(n))
  with_seed(seed, simulate_response(object, nsim, points, offset, trials, type, conditional,
                                    max(1, min(draws, nsim))))
}

simulate_response <- function(object, nsim, points, offset, trials, type, conditional, draws) {
  d <- object$response$dims
  n <- nrow(points$x)
  par <- gp_draws(object, draws)
  of <- rep_len(seq_len(nrow(par)), nsim)
  values <- vector("list", nsim)
  basis <- mean_basis(object$trend, points$h)
  for (i in unique(of)) {
    one <- if (is.null(object$draws)) object else at_draw(object, par, i)
    if (conditional) {
      state <- if (is.null(object$draws)) gp_state(one) else drawn_state(one)
      joint <- state$predict(unname(points$x), "covariance", basis)
      joint$mean <- as.vector(joint$mean + mean_centre(one$trend, n, basis))
    } else {
      h <- points$h
      if (is.null(h) && one$trend$kind == "constant") h <- matrix(1, n, 1L)
      joint <- list(mean = if (is.null(h)) rep(one$mean, n * d) else
        as.vector(h %*% matrix(one$coefficients[one$beta_names], ncol = d)),
        covariance = kronecker(diag(d), cl_cov(fit_columns(one, points$x), kernel = one$kernel)))
    }
    root <- covariance_root(joint$covariance)
    for (k in which(of == i)) {
      f <- joint$mean + as.vector(crossprod(root, stats::rnorm(nrow(root))))
      values[[k]] <- if (type == "link") {
        if (d == 1L) f + offset else I(matrix(f, n))
      } else {
        draw_observations(one, matrix(f, n), offset, trials)
      }
    }
  }
  names(values) <- if (nsim > 0) paste0("sim_", seq_len(nsim))
  structure(values, class = "data.frame",
            row.names = if (is.null(rownames(points$x))) seq_len(n) else rownames(points$x))
}

# New observations given the latent values f (n x d).
draw_observations <- function(object, f, offset, trials) {
  family <- family_row(object$family)
  n <- nrow(f)
  response <- object$response
  q <- response_scale(object, f, offset, object$aux, TRUE)
  if (family$classes) {
    return(factor(response$levels[draw_classes(q)], response$levels,
                  ordered = response$kind == "ordered"))
  }
  y <- family$draw(n, q[, 1L], trials, unname(object$aux))
  switch(response$kind, factor = factor(response$levels[y + 1L], response$levels),
         logical = y > 0.5, share = y / trials,
         counts = I(cbind(successes = y, failures = trials - y)), y)
}

#' @rdname predict.cl_gp_response
#' @param x A fit.
#' @param along,n,xlim,ylim,xlab,ylab,main,col,pch,cex,las As for [plot.cl_gp()], which draws the
#'   latent process over two numeric inputs. Over one input, or for each level of a factor, the mean
#'   and its 95% interval are drawn, or over one input the probability of each class.
#' @export
plot.cl_gp_response <- function(x, type = c("fit", "trace", "parts"), along = NULL, n = NULL,
                                xlim = NULL, ylim = NULL, xlab = NULL, ylab = NULL, main = NULL,
                                col = NULL, pch = 16, cex = 0.6, las = 1, ...) {
  type <- check_choice(type, c("fit", "trace", "parts"), "type")
  if (is.null(along) && !is.null(attr(x$terms, "offset"))) { # the offset is not an input
    within <- unlist(lapply(attr(x$design$terms, "term.labels"), function(v) all.vars(str2lang(v))))
    along <- Filter(function(name) is_drawable(x$variables[[name]]), unique(within))
    if (!length(along) %in% 1:2) along <- NULL
  }
  if (type == "trace") {
    if (is.null(x$draws)) {
      abort_argument("type", "only a fit with method = \"mcmc\" has traces")
    }
    shown <- intersect(names(x$par), colnames(as.matrix(x$draws)))
    return(invisible(plot(x$draws, parameters = shown, ...)))
  }
  inputs <- plot_inputs(x, along, type == "fit" && !has_classes(x$family))
  if (is.null(inputs) || (x$response$dims > 1L && (length(inputs$names) > 1L || type == "parts"))) {
    numeric <- if (is.null(x$terms)) colnames(x$x) else
      setdiff(names(Filter(is_drawable, x$variables)), factor_variables(x))
    abort_argument("along", sprintf("'along' must name one of the numeric inputs for this plot: %s",
                                    if (length(numeric) > 0L) paste(numeric, collapse = ", ") else
                                      "the fit has none"))
  }
  if (length(inputs$by) > 0L) {
    labels <- list(xlab = xlab, ylab = ylab, main = main, y = response_label(x))
    return(plot_levels(x, inputs, n, xlim, ylim, labels, col, pch, cex, las, "auto", ...))
  }
  labels <- list(xlab = xlab, ylab = ylab, main = main, y = "latent process")
  if (is.null(col) && length(inputs$names) == 1L) col <- curve_colour
  if (type == "parts") return(plot_parts(x, inputs, n, xlim, labels, col, las, ...))
  if (length(inputs$names) == 2L) {
    return(plot_surface(x, inputs, FALSE, n, xlim, ylim, labels, col, pch, cex, las, ...))
  }
  plot_response_curve(x, inputs, n, xlim, ylim, labels, col, pch, cex, las, ...)
}

plot_response_curve <- function(object, inputs, n, xlim, ylim, labels, col, pch, cex, las, ...) {
  values <- inputs$values[[1L]]
  xlim <- if (is.null(xlim)) range(values) else as.numeric(xlim)
  grid <- seq(xlim[1L], xlim[2L], length.out = check_count(if (is.null(n)) 200 else n, "n", 2))
  points <- inputs$points(stats::setNames(data.frame(grid), inputs$names))
  response <- object$response
  classes <- has_classes(object$family)
  drawn <- data.frame(x = grid, plotted_response(object, points))
  y <- plotted_observations(object)
  if (classes) {
    names(drawn)[-1L] <- response$levels
    fit <- as.matrix(drawn[-1L])
    if (is.null(ylim)) ylim <- c(0, 1)
  } else if (is.null(ylim)) {
    ylim <- range(drawn[-1L], y, finite = TRUE)
  }
  graphics::plot(as_variable(xlim, inputs$like[[1L]]), ylim, type = "n", main = labels$main,
                 xlab = if (is.null(labels$xlab)) inputs$names else labels$xlab,
                 ylab = if (!is.null(labels$ylab)) labels$ylab else if (classes) "probability" else
                   response_label(object), las = las, ...)
  if (classes) {
    colours <- surface_colours(ncol(fit))
    graphics::matlines(grid, fit, col = colours, lty = 1, lwd = 2)
    graphics::legend("topright", response$levels, col = colours, lwd = 2, bty = "n")
  } else {
    draw_band(grid, drawn$lwr, drawn$upr, col, 0.30)
    graphics::lines(grid, drawn$fit, col = col, lwd = 2)
    if (!inputs$slice) graphics::points(values, y, pch = pch, cex = cex, col = point_colour())
  }
  graphics::box()
  invisible(drawn)
}

# The probabilities of classes, or the mean for an exposure of one with its 95% interval.
plotted_response <- function(object, points) {
  points$offset <- NULL
  classes <- has_classes(object$family)
  parts <- latent_parts(object, points, "variance", 50)
  rows <- seq_len(nrow(points$x))
  none <- if (is_categorical(object$family)) 0 else numeric(length(rows))
  scale <- function(f, aux) response_scale(object, f, none, aux, !classes)
  fit <- expectations(parts, object$response$dims, scale)$mean
  if (classes) return(data.frame(fit))
  link <- gp_interval(list(mean = none, rows = rows,
                           parts = lapply(parts, function(one) c(one, noise = 0))), FALSE, 0.95)
  data.frame(fit = fit[, 1L], lwr = scale(matrix(link[, 1L]), NULL)[, 1L],
             upr = scale(matrix(link[, 2L]), NULL)[, 1L])
}

# Observations on the scale of the means: shares of trials, rates.
plotted_observations <- function(object) {
  response <- object$response
  if (is.null(response)) return(object$y)
  if (!is.null(response$trials)) return(response$y / response$trials)
  if (response_log(object)) response$y / exp(response$offset) else response$y
}

response_log <- function(object) family_row(object$family)$counts
