# The result of cl_sample().

# ---- from chains to a result ---------------------------------------------------------------------

# The draws of the chains, or NULL if there are none. If chains differ in length (`complete` is
# FALSE), the numbers of chains and iterations are chosen to keep the most draws.
collect_draws <- function(job, chains, complete) {
  warmup <- job$control$warmup
  first <- if (job$control$save_warmup) 1L else warmup + 1L
  if (!complete) {
    made <- vapply(chains, function(s) max(0L, s$iteration_done - warmup), 0L)
    most <- sort(made, decreasing = TRUE)
    kept <- which.max(most * seq_along(most))
    if (length(kept) == 0L || most[kept] == 0L) return(NULL)
    chains <- chains[made >= most[kept]]
    last <- warmup + most[kept]
  } else {
    last <- warmup + job$control$iter
  }
  rows <- first:last
  rows <- rows[rows <= warmup | (rows - warmup) %% job$control$thin == 0]
  if (length(rows) == 0L) return(NULL)
  drawn <- drawn_layout(job$layout)
  names <- drawn$names
  draws <- array(0, c(length(rows), length(chains), length(names)),
                 list(iteration = NULL, chain = NULL, parameter = names))
  for (j in seq_along(chains)) {
    kept <- chains[[j]]$draws[, rows - first + 1L, drop = FALSE]
    draws[, j, ] <- t(constrain_draws(job$layout, kept, job$states[[chains[[j]]$id]]))
  }
  diagnostics <- lapply(structure(record_names, names = record_names), function(name) {
    matrix(unlist(lapply(chains, function(s) s$figures[rows, name])), length(rows))
  })
  for (name in c("tree_depth", "leapfrogs")) storage.mode(diagnostics[[name]]) <- "integer"
  storage.mode(diagnostics$divergent) <- "logical"
  in_sampling <- rows > warmup
  result <- list(
    draws = draws[in_sampling, , , drop = FALSE],
    diagnostics = lapply(diagnostics, function(m) m[in_sampling, , drop = FALSE]),
    step_size = vapply(chains, function(s) s$step_size, 0),
    inverse_metric = inverse_metrics(chains, job$layout$dimension),
    precision = metric_precision(job),
    seconds = cbind(warmup = vapply(chains, function(s) s$warmup_seconds, 0),
                    total = vapply(chains, function(s) s$elapsed, 0)),
    evaluations = vapply(chains, function(s) s$evaluations, 0),
    rejections = vapply(chains, function(s) s$rejections, 0L),
    failures = cbind(warmup = vapply(chains, function(s) s$failures[1L], 0L),
                     sampling = vapply(chains, function(s) s$failures[2L], 0L)),
    elapsed = seconds_now() - job$started, complete = complete, bounds = drawn$bounds,
    transform = job$layout$transform,
    arguments = drawn$arguments, control = job$control, call = job$call,
    engine = density_note(job$log_density))
  lost <- Filter(function(s) !is.null(s$lost), chains)
  if (length(lost) > 0L) {
    result$failure <- failure_text(job, as.vector(lost[[length(lost)]]$lost))
  }
  result$remote <- names[remote_parameters(result$draws, job)]
  if (job$control$save_warmup && warmup > 0L) {
    result$warmup <- list(draws = draws[!in_sampling, , , drop = FALSE],
                          diagnostics = lapply(diagnostics,
                                               function(m) m[!in_sampling, , drop = FALSE]))
  }
  structure(result, class = "cl_sample")
}

# Whether the median of a parameter is four powers of ten further from zero than its starts.
remote_parameters <- function(draws, job) {
  if (!is.null(job$layout$own) || dim(draws)[1L] == 0L) return(integer())
  starts <- vapply(job$points, function(u) {
    x <- constrain(job$layout, u)
    if (is.null(x)) rep(NA_real_, job$layout$n) else abs(as.vector(x))
  }, numeric(job$layout$n))
  limit <- 1e4 * (1 + apply(matrix(starts, job$layout$n), 1L, max))
  far <- which(vapply(seq_along(limit), function(k) max(abs(range(draws[, , k]))), 0) > limit)
  far[vapply(far, function(k) stats::median(abs(draws[, , k])), 0) > limit[far]]
}

# Diagonals in columns, or an array of matrices, or a list of the parts of metrics of low rank.
inverse_metrics <- function(chains, d) {
  if (!is.null(chains[[1L]]$vectors)) {
    return(lapply(chains, function(s) {
      list(diagonal = s$scale^2, values = as.vector(s$values), vectors = s$vectors)
    }))
  }
  if (is.null(chains[[1L]]$factor)) {
    return(matrix(vapply(chains, function(s) rep_len(s$scale^2, d), numeric(d)), d))
  }
  one <- function(s) tcrossprod(s$factor * lower.tri(s$factor, diag = TRUE))
  array(vapply(chains, one, matrix(0, d, d)), c(d, d, length(chains)))
}

# ---- warnings ------------------------------------------------------------------------------------

warn_problems <- function(x) {
  problems <- sample_problems(x)
  if (length(problems) > 0L) statcl_warning("sampling", paste(problems, collapse = "\n"))
}

# The problems of the run as text. R-hat and the effective sample size are those of summary().
sample_problems <- function(x) {
  problems <- character()
  total <- length(x$diagnostics$divergent)
  divergent <- sum(x$diagnostics$divergent)
  if (divergent > 0) {
    problems <- sprintf(paste("%d of %d iterations diverged: in some regions the distribution is",
                              "too curved for the step size; increase adapt_delta or",
                              "reparameterise"), divergent, total)
  }
  failed <- sum(x$failures[, "sampling"])
  if (failed > 0L) {
    problems <- c(problems, sprintf(paste("%s after the warm-up could not be evaluated, so that",
                                          "iterations diverged there: %s"),
                                    count_of(failed, "point"), x$failure))
  }
  deep <- sum(x$diagnostics$tree_depth >= x$control$max_depth)
  if (x$control$method == "nuts" && deep > 0) {
    problems <- c(problems, sprintf(paste("%d of %d iterations stopped at max_depth = %d: the",
                                          "chains move slowly, so the draws are less independent"),
                                    deep, total, x$control$max_depth))
  }
  low <- which(energy_fractions(x) < 0.3)
  if (length(low) > 0L) {
    problems <- c(problems, sprintf(paste("low energy fraction (below 0.3) in chain %s: the chains",
                                          "may not explore the tails"),
                                    paste(low, collapse = ", ")))
  }
  if (length(problems) > 0L && length(x$remote) > 0L) {
    problems <- c(problems, sprintf(paste("draws of %s are far from their starts (medians above",
                                          "10000 times as large): without priors, or with data",
                                          "that leave a parameter free, the distribution may be",
                                          "improper"),
                                    paste(utils::head(x$remote, 5L), collapse = ", ")))
  }
  problems
}

# For each chain: the variance of the energy's changes over that of the energy; NA for few draws.
energy_fractions <- function(x) {
  apply(x$diagnostics$energy, 2L, function(e) {
    if (length(e) < 50L) NA_real_ else sum(diff(e)^2) / sum((e - mean(e))^2)
  })
}

# ---- methods -------------------------------------------------------------------------------------

#' Results of cl_sample()
#'
#' @param x,object A result of [cl_sample()].
#' @param digits Number of significant digits.
#' @param rows Maximum number of parameters to print.
#' @param parameters Names of parameters: complete, or without the index (`"beta"` for `beta[1]`,
#'   `beta[2]`, ...); `NULL` for all.
#' @param max Maximum number of parameters that `plot()` shows. By default 6, or all that
#'   `parameters` names. A message reports how many are left out.
#' @param probs Probabilities of the quantiles.
#' @param row.names Names of the rows, or `NULL`.
#' @param optional,... Not used; `plot()` passes `...` on to [plot()] of the traces.
#' @return `print()` shows the summary, without `mcse` and `ess_tail` where a line has no room for
#'   them. `coef()`: the posterior means. `summary()`: a data frame of class `"summary.cl_sample"`
#'   with one row for each parameter and columns `parameter`, `mean`, `mcse` (the Monte Carlo
#'   standard error of the mean), `sd`, quantiles, `ess_bulk`, `ess_tail` and `rhat`. `as.array()`:
#'   iteration x chain x parameter. `as.matrix()`: one column for each parameter, the chains one
#'   below another. `as.data.frame()`: the same with the columns `.chain`, `.iteration` and `.draw`
#'   in front. `plot()` draws trace and density of each parameter, one line for each chain, with
#'   divergent iterations marked in red; it returns `x` invisibly. Densities are estimated between
#'   the smallest and the largest draw of a chain, and do not fall off towards a bound of the
#'   parameter.
#'
#'   The object is a list with the elements
#'   * `draws`: the array,
#'   * `diagnostics`: matrices iteration x chain: `accept_stat`, `step_size`, `tree_depth`,
#'     `leapfrogs`, `divergent`, `energy`, `log_density`; the last two on the unconstrained scale,
#'     including the Jacobian,
#'   * `step_size`, `inverse_metric`: values after the warm-up, for each chain (the latter in
#'     columns, or an array of matrices if the metric is dense, or a list of lists if it is of low
#'     rank),
#'   * `precision`: the precision matrix of a sparse metric, in whose units `inverse_metric` is;
#'     else `NULL`,
#'   * `seconds`: time of each chain, for the warm-up and in total,
#'   * `evaluations`, `rejections`: the numbers of evaluations, and of points of density zero, for
#'     each chain,
#'   * `failures`: the number of those that could not be evaluated, a matrix with a row for each
#'     chain and the columns `warmup` and `sampling`; `failure`: why the last of them has no value,
#'     if there was one,
#'   * `elapsed`: seconds of the whole run,
#'   * `complete`: `FALSE` after an interrupt,
#'   * `bounds`: bounds of each parameter from its transform, a matrix with columns `lower` and
#'     `upper`,
#'   * `arguments`: name, columns and dimensions of each argument of the density; `NULL` if it has
#'     one vector,
#'   * `remote`: names of parameters whose draws are far from their starts, which may be improper,
#'   * `control`, `call`,
#'   * `warmup`: draws and diagnostics of the warm-up, with `save_warmup`.
#'
#'   Rank-normalised split R-hat and effective sample sizes are those of Vehtari et al. (2021,
#'   *Bayesian Analysis* 16).
#' @section Other packages:
#' With the package posterior, `as_draws()`, `as_draws_df()`, `as_draws_rvars()` and related
#' functions accept the result, and fits of [cl_glm()] and [cl_gp()] with `method = "mcmc"`; so do
#' `as.matrix()`, `as.array()` and `as.data.frame()`, and `nuts_params()` and `log_posterior()` of
#' the package bayesplot.
#'
#' `loo::loo(fit, log_lik)` compares models by leave-one-out cross-validation: `log_lik` is a
#' function of the draw as for [cl_generate()] that returns the log density of each observation.
#' For a [cl_glm()] fit, `loo::loo(fit)` needs none.
#' @seealso [cl_sample()], [cl_generate()]
#' @name cl_sample-methods
#' @examples
#' density <- function(x) structure(-sum(x^2) / 2, gradient = -x)
#' fit <- cl_sample(density, c(a = 0, b = 0), chains = 2, warmup = 200, iter = 250, seed = 1)
#' summary(fit)
#' colMeans(as.matrix(fit))
#' plot(fit, "a")
NULL

#' @rdname cl_sample-methods
#' @export
print.cl_sample <- function(x, digits = 3L, rows = 10L, ...) {
  size <- dim(x$draws)
  cat(sprintf("%s of %s each after %d of warm-up (%s)%s\n", count_of(size[2L], "chain"),
              count_of(size[1L], "iteration"), x$control$warmup,
              paste0(toupper(x$control$method),
                     metric_text(x$control$metric, x$inverse_metric),
                     if (isTRUE(x$control$pooled)) ", pooled"),
              if (x$complete) "" else ", interrupted"))
  table <- summary(x)
  attr(table, "engine") <- NULL # printed below
  print(utils::head(table, rows), digits = digits)
  if (nrow(table) > rows) {
    cat(sprintf("... and %d more parameters; largest rhat %.3f, smallest ess_bulk %.0f\n",
                nrow(table) - rows, max(table$rhat, -Inf, na.rm = TRUE),
                min(table$ess_bulk, Inf, na.rm = TRUE)))
  }
  cat(sprintf("%.0f evaluations in %.1f s; step size %s; %.1f steps an iteration\n",
              sum(x$evaluations), x$elapsed,
              paste(format(signif(range(x$step_size), 2)), collapse = " to "),
              mean(x$diagnostics$leapfrogs)))
  if (sum(x$failures) > sum(x$failures[, "sampling"])) {
    writeLines(strwrap(sprintf("%s of the warm-up could not be evaluated and %s rejected: %s",
                               count_of(sum(x$failures[, "warmup"]), "point"),
                               if (sum(x$failures[, "warmup"]) == 1L) "was" else "were",
                               x$failure), 0.9 * getOption("width"), exdent = 2L))
  }
  cat(engine_line(x$engine))
  for (problem in c(sample_problems(x), convergence_problems(table))) {
    writeLines(strwrap(paste("!", problem), width = 0.9 * getOption("width"), exdent = 2L))
  }
  invisible(x)
}

# The metric unless it is diagonal, such as ", low-rank metric of rank 2 to 3".
metric_text <- function(metric, inverse) {
  if (metric == "dense") return(", dense metric")
  if (!has_rank(metric)) return("")
  if (metric == "sparse") return(", sparse metric")
  rank <- range(vapply(inverse, function(m) length(m$values), 0L))
  if (metric == "auto" && rank[2L] == 0L) return("")
  sprintf(", low-rank metric of rank %s", paste(unique(rank), collapse = " to "))
}

convergence_problems <- function(table) {
  apart <- table$parameter[!is.na(table$rhat) & table$rhat > 1.05]
  if (length(apart) == 0L) return(character())
  sprintf("rhat above 1.05 for %s: the chains have not mixed",
          paste(utils::head(apart, 5L), collapse = ", "))
}

# The verdict on the draws of a fit: list(converged, message). Chains must agree and have an
# effective size of 50 draws per chain, since R-hat is unreliable with fewer.
draws_verdict <- function(draws) {
  if (!draws$complete) return(list(converged = FALSE, message = "interrupted"))
  table <- summary(draws)
  rhat <- max(table$rhat)
  size <- min(table$ess_bulk)
  message <- sprintf("largest R-hat %.3f, smallest effective sample size %.0f", rhat, size)
  enough <- isTRUE(rhat < 1.05) && isTRUE(size >= 50 * dim(draws$draws)[2L])
  list(converged = enough, message = message)
}

#' @rdname cl_sample-methods
#' @export
summary.cl_sample <- function(object, parameters = NULL, probs = c(0.05, 0.5, 0.95), ...) {
  if (!is.numeric(probs) || anyNA(probs) || any(probs < 0 | probs > 1)) {
    abort_argument("probs", "'probs' must be numbers between 0 and 1")
  }
  names <- pick_parameters(object, parameters)
  rows <- lapply(names, function(name) {
    x <- matrix(object$draws[, , name], nrow(object$draws))
    quantiles <- stats::quantile(x, probs, names = FALSE)
    c(mean(x), stats::sd(x) / sqrt(effective_size(halves(x))), stats::sd(x), quantiles,
      ess_bulk(x), ess_tail(x), rhat(x))
  })
  table <- as.data.frame(do.call(rbind, rows))
  names(table) <- c("mean", "mcse", "sd", sprintf("%g%%", 100 * probs), "ess_bulk", "ess_tail",
                    "rhat")
  structure(cbind(parameter = names, table, stringsAsFactors = FALSE),
            class = c("summary.cl_sample", "data.frame"), engine = object$engine)
}

#' @export
print.summary.cl_sample <- function(x, digits = 3L, ...) {
  shown <- as.data.frame(lapply(x, function(column) {
    if (is.numeric(column)) format_each(column, digits) else column
  }), optional = TRUE, stringsAsFactors = FALSE)
  for (name in intersect(c("ess_bulk", "ess_tail"), names(x))) {
    shown[[name]] <- sprintf("%.0f", x[[name]])
  }
  if (!is.null(x$rhat)) shown$rhat <- sprintf("%.3f", x$rhat)
  names(shown) <- names(x)
  # A table wider than a line would be printed in two parts.
  for (name in c("mcse", "ess_tail")) {
    widths <- pmax(nchar(names(shown)), vapply(shown, function(v) max(nchar(v), 0L), 0L)) + 1L
    if (sum(widths) > getOption("width")) shown[[name]] <- NULL
  }
  print.data.frame(shown, row.names = FALSE)
  cat(engine_line(attr(x, "engine")))
  invisible(x)
}

# Full names of the requested parameters.
pick_parameters <- function(x, parameters) {
  pick_names(dimnames(x$draws)[[3L]], parameters, "parameter")
}

# The chosen elements of `all`; names may lack the index.
pick_names <- function(all, chosen, what) {
  if (is.null(chosen)) return(all)
  stem <- sub("\\[.*", "", all)
  if (!is.character(chosen) || !all(chosen %in% c(all, stem))) {
    unknown <- setdiff(chosen, c(all, stem))
    many <- sub("ys$", "ies", paste0(what, "s"))
    abort_argument(many, sprintf("unknown %s '%s'; the %s are %s", what, format(unknown[1L]), many,
                                 paste(utils::head(all, 10L), collapse = ", ")))
  }
  all[all %in% chosen | stem %in% chosen]
}

#' @rdname cl_sample-methods
#' @export
coef.cl_sample <- function(object, ...) colMeans(as.matrix(object))

#' @rdname cl_sample-methods
#' @export
as.array.cl_sample <- function(x, ...) x$draws

#' @rdname cl_sample-methods
#' @export
as.matrix.cl_sample <- function(x, ...) {
  size <- dim(x$draws)
  matrix(x$draws, size[1L] * size[2L], size[3L], dimnames = list(NULL, dimnames(x$draws)[[3L]]))
}

#' @rdname cl_sample-methods
#' @export
as.data.frame.cl_sample <- function(x, row.names = NULL, optional = FALSE, ...) {
  size <- dim(x$draws)
  data.frame(.chain = rep(seq_len(size[2L]), each = size[1L]),
             .iteration = rep(seq_len(size[1L]), size[2L]), .draw = seq_len(size[1L] * size[2L]),
             as.matrix(x), check.names = FALSE)
}

#' @exportS3Method posterior::as_draws
as_draws.cl_sample <- function(x, ...) {
  draws <- x$draws
  size <- dim(draws)
  dimnames(draws) <- list(iteration = as.character(seq_len(size[1L])),
                          chain = as.character(seq_len(size[2L])),
                          variable = dimnames(draws)[[3L]])
  structure(draws, class = c("draws_array", "draws", "array"))
}
