# cl_calibrate(): simulation-based calibration. Its methods are in R/sample-calibrate-methods.R.

#' Simulation-based calibration
#'
#' Tests whether a model, its simulator and the sampler agree: parameters are drawn from the prior,
#' data are simulated from them, and the posterior of these data is sampled, many times over. If all
#' three are correct, the rank of the true value among the draws is uniform.
#'
#' A replicate calls `simulate()`, then `model(data)`, runs one chain, and counts the draws below
#' the true value, of each parameter and of the log density (Talts, Betancourt, Simpson, Vehtari and
#' Gelman, 2018, <https://arxiv.org/abs/1804.06788>). The ranks of the log density detect what those
#' of parameters cannot, such as a posterior that ignores the data (Modrak, Moon, Kim, Buerkner,
#' Huurre, Faltejskova, Gelman and Vehtari, 2023, *Bayesian Analysis*). Ranks of equal values are
#' drawn at random among them.
#'
#' Draws are thinned, so that the ranks are those of nearly independent draws: the chain makes 4
#' iterations for each draw, and is repeated with twice as many, up to 64, until the effective size
#' of each quantity is at least `draws`.
#'
#' The test compares the distribution function of the ranks with that of a uniform distribution at
#' all of their values together (Saeilynoja, Buerkner and Vehtari, 2022, *Statistics and Computing*
#' 32): its p-value is the probability that uniform ranks deviate somewhere at least as far from
#' their pointwise binomial intervals, computed exactly by recursion. With several quantities
#' p-values are adjusted by Holm's method.
#'
#' @section Workers, and long runs:
#' `workers`, `checkpoint` and `checkpoint_seconds` are those of [cl_sample()]. A replicate has its
#' own stream of random numbers, so the ranks depend on `seed` only. A run with more `replicates`
#' continues from the checkpoint of a shorter one.
#'
#' @param simulate A function without arguments that draws parameters from the prior and data from
#'   the model: `list(parameters = , data = )`. The parameters are a named list, or a named vector,
#'   as the log density takes them.
#' @param model A function of the data that returns a log density, as [cl_sample()] takes it. Or it
#'   returns draws, to test another algorithm: a result of [cl_sample()], [cl_laplace()] or their
#'   relatives, or a fit of [cl_glm()] or [cl_gp()] with `method = "mcmc"`.
#' @param replicates Number of simulated data sets.
#' @param draws Number of draws whose ranks are taken: ranks are 0 to `draws`.
#' @param warmup Number of iterations for adaptation.
#' @param transform As for [cl_sample()].
#' @param init Where chains start: a vector or a list, or a function of the data that returns one of
#'   these. By default at uniform random numbers between -2 and 2 on the unconstrained scale.
#' @param quantities `NULL`, or a function of parameters and data that returns a named vector of
#'   further quantities.
#' @param thin Number of iterations for each draw; `NULL`: see below.
#' @param seed An integer, or `NULL`: the state of R's generator.
#' @param workers,checkpoint,checkpoint_seconds See below.
#' @param refresh Number of replicates between reports of progress; 0 for none.
#' @param ... Further arguments of [cl_sample()]: `method`, `adapt_delta`, `max_depth`, `leapfrogs`,
#'   `metric`, `rank`, `step_size`, `inverse_metric`, `nan`.
#' @return An object of class `"cl_calibration"`, see [cl_calibration-methods]. An interrupted run
#'   returns the replicates made so far, with a warning.
#' @section Errors:
#' `statcl_error_argument` if `simulate` or `model` fails or returns something else, or if simulated
#' parameters are outside the range of `transform`. `statcl_error_density` as for [cl_sample()].
#' Both have the fields `replicate` and `calibration` (the result so far, or `NULL`).
#' `statcl_error_checkpoint` as for [cl_sample()].
#' @seealso [cl_sample()], [cl_check_gradient()]
#' @export
#' @examples
#' simulate <- function() {
#'   mu <- rnorm(1)
#'   sigma <- rexp(1)
#'   list(parameters = list(mu = mu, sigma = sigma), data = rnorm(5, mu, sigma))
#' }
#' model <- function(y) {
#'   cl_log_posterior(~ dnorm(y, mu, sigma, log = TRUE), ~ dnorm(mu, 0, 1, log = TRUE), ~ -sigma)
#' }
#' checked <- cl_calibrate(simulate, model, replicates = 20, draws = 19, warmup = 100, seed = 1,
#'                         transform = list(sigma = cl_lower(0)))
#' checked
cl_calibrate <- function(simulate, model, replicates = 200, draws = 99, warmup = 300,
                         transform = NULL, init = NULL, quantities = NULL, thin = NULL,
                         seed = NULL, workers = 1, refresh = NULL, checkpoint = NULL,
                         checkpoint_seconds = 60, ...) {
  check_function(simulate, "simulate")
  check_function(model, "model")
  if (!is.null(quantities)) check_function(quantities, "quantities")
  replicates <- as.integer(check_count(replicates, "replicates", 1))
  draws <- as.integer(check_count(draws, "draws", 1))
  if (!is.null(thin)) check_count(thin, "thin", 1)
  if (!is.null(seed)) check_count(seed, "seed", lower = -.Machine$integer.max)
  if (is.null(refresh)) refresh <- if (interactive()) max(1, replicates %/% 10) else 0
  settings <- calibration_settings(warmup, ...)
  work <- c(list(simulate = simulate, model = model, quantities = quantities, draws = draws,
                 transform = transform, init = init, thin = thin), settings)
  run <- new.env(parent = emptyenv())
  run$refresh <- check_count(refresh, "refresh")
  run$started <- seconds_now()
  run$results <- vector("list", replicates)
  run$draws <- draws
  run$call <- sys.call()
  workers <- check_workers(workers, replicates)
  state <- stream_states(1L, seed)[[1L]]
  run$kept <- open_checkpoint(checkpoint, checkpoint_seconds,
                              list(points = list(NULL), states = list(state),
                                   control = c(work[c("draws", "thin")], settings)), seed)
  if (!is.null(run$kept)) state <- run$kept$states[[1L]]
  work$states <- Reduce(function(s, i) parallel::nextRNGStream(s), seq_len(replicates - 1L), state,
                        accumulate = TRUE)
  if (!is.null(run$kept$saved)) take_saved_replicates(run, work)
  run$saved <- sum(lengths(run$results) > 0L)
  calibrate(run, work, workers)
}

# Checks further arguments of cl_sample().
calibration_settings <- function(warmup, ...) {
  given <- list(...)
  known <- c("method", "adapt_delta", "max_depth", "leapfrogs", "metric", "step_size",
             "inverse_metric", "nan", "rank")
  other <- setdiff(names(given), known)
  if (length(given) > 0L && (is.null(names(given)) || length(other) > 0L)) {
    abort_argument("...", sprintf("unknown argument%s: further arguments are %s",
                                  if (any(nzchar(other))) sprintf(" '%s'", other[1L]) else "",
                                  paste(known, collapse = ", ")))
  }
  pick <- function(name, default) if (is.null(given[[name]])) default else given[[name]]
  control <- sample_control(warmup, 1, pick("method", "nuts"), pick("adapt_delta", 0.8),
                            pick("max_depth", 10), pick("leapfrogs", 10), pick("metric", "auto"),
                            given$step_size, FALSE, given$rank)
  control$nan <- check_choice(pick("nan", "reject"), c("reject", "stop"), "nan")
  c(control, list(refresh = 0, announce = FALSE, inverse_metric = given$inverse_metric))
}

# ---- the run -------------------------------------------------------------------------------------

calibrate <- function(run, work, workers) {
  interrupted <- FALSE
  tryCatch({
    if (is.null(workers)) {
      begin <- begin_replicates(work)
      for (i in which(lengths(run$results) == 0L)) {
        answer <- begin(list(left = i, seconds = 0))
        take_replicates(run, answer$value)
        if (!is.null(answer$error)) stop(answer$error)
      }
    } else {
      share_replicates(run, work, workers)
    }
  }, interrupt = function(e) interrupted <<- TRUE, statcl_error = function(e) {
    keep_checkpoint(run$kept, now = TRUE)
    if (is.null(e$replicate)) stop(e)
    e["calibration"] <- list(calibration_result(run))
    stop(e)
  })
  keep_checkpoint(run$kept, now = TRUE)
  result <- calibration_result(run)
  if (interrupted) {
    if (is.null(result)) statcl_abort("interrupted", "interrupted before the first replicate")
    statcl_warning("interrupted", sprintf("interrupted: the result has %d of %d replicates",
                                          nrow(result$ranks), length(run$results)))
  }
  result
}

# Share i has every n-th of the remaining replicates.
share_replicates <- function(run, work, workers) {
  left <- which(lengths(run$results) == 0L)
  n <- min(length(left), 64L)
  if (n == 0L) return()
  shares <- split(left, rep_len(seq_len(n), length(left)))
  asked <- logical(n)
  task <- function(k) {
    seconds <- if (asked[k]) 2 else 0.5
    asked[k] <<- TRUE
    list(left = Filter(function(i) is.null(run$results[[i]]), shares[[k]]), seconds = seconds)
  }
  take <- function(k, value) {
    take_replicates(run, value)
    all(lengths(run$results[shares[[k]]]) > 0L)
  }
  run_shares(n, workers, list(begin = begin_replicates, work = work,
                              uses = work[c("simulate", "model", "quantities", "init")]),
             task, take)
}

# `value`: a list of results by replicate.
take_replicates <- function(run, value) {
  before <- sum(lengths(run$results) > 0L)
  for (i in names(value)) check_replicate_names(run, i, names(value[[i]]$values))
  run$results[as.integer(names(value))] <- value
  done <- sum(lengths(run$results) > 0L)
  if (!is.null(run$kept)) {
    run$kept$chains[[1L]] <- run$results
    keep_checkpoint(run$kept)
  }
  if (run$refresh > 0 && done %/% run$refresh > before %/% run$refresh) {
    seconds <- seconds_now() - run$started
    left <- seconds / max(1, done - run$saved) * (length(run$results) - done)
    cat(sprintf("replicate %d of %d, %.1f s%s\n", done, length(run$results), seconds,
                if (left > 0) sprintf(", about %s left", time_text(left)) else ""),
        file = stderr())
  }
}

check_replicate_names <- function(run, i, names) {
  if (is.null(run$quantities)) run$quantities <- names
  if (identical(names, run$quantities)) return(invisible())
  other <- c(setdiff(names, run$quantities), setdiff(run$quantities, names))
  abort_argument("simulate", sprintf("replicate %s has other quantities than those before it%s", i,
                                     if (length(other) > 0L) sprintf(": '%s'", other[1L]) else ""))
}

# The contents of a checkpoint, if the simulator and the model reproduce its numbers.
take_saved_replicates <- function(run, work) {
  saved <- run$kept$saved$chains[[1L]]
  made <- which(lengths(saved) > 0L)
  made <- made[made <= length(run$results)]
  if (length(made) == 0L) return()
  i <- made[1L]
  again <- in_replicate(work, i, replicate_values(work, open_replicate(work, i)))
  if (!identical(names(again), names(saved[[i]]$values)) || !alike(again, saved[[i]]$values)) {
    run$kept$saved$refuse("is of another model or of another simulator")
  }
  run$results[made] <- saved[made]
  run$kept$chains[[1L]] <- saved # also replicates that this call does not need
}

# ---- replicates ----------------------------------------------------------------------------------

# function(task), which runs replicates of `task$left` for some seconds, in a worker or here.
begin_replicates <- function(work) {
  function(task) {
    done <- list()
    until <- seconds_now() + task$seconds
    for (i in task$left) {
      one <- tryCatch(in_replicate(work, i, run_replicate(work, i)), statcl_error = identity)
      if (inherits(one, "error")) return(list(value = done, error = one))
      done[[as.character(i)]] <- one
      if (seconds_now() > until) break
    }
    list(value = done)
  }
}

# Evaluates `code` with the stream of replicate i; its number is added to errors.
in_replicate <- function(work, i, code) {
  ensure_generator()
  old <- random_state()
  on.exit(assign(".Random.seed", old, envir = globalenv()))
  assign(".Random.seed", work$states[[i]], envir = globalenv())
  tryCatch(code, statcl_error = function(e) {
    e$message <- sprintf("replicate %d: %s", i, conditionMessage(e))
    e$replicate <- i
    stop(e)
  })
}

# Warnings are counted, not shown for each replicate.
run_replicate <- function(work, i) {
  told <- NA_character_
  withCallingHandlers({
    one <- open_replicate(work, i)
    values <- replicate_values(work, one)
    draw <- if (is.null(one$job)) replicate_fit_draws else replicate_chain_draws
    drawn <- draw(work, one)
  }, statcl_warning = function(w) {
    if (inherits(w, "statcl_warning_interrupted")) return()
    if (is.na(told)) told <<- conditionMessage(w)
    invokeRestart("muffleWarning")
  })
  x <- drawn$x
  if (!is.null(work$quantities)) {
    call_q <- function(row) replicate_quantities(work, one, row)
    more <- vapply(seq_len(nrow(x)), function(k) call_q(x[k, seq_along(one$truth)]),
                   call_q(one$truth))
    x <- cbind(x, matrix(more, nrow(x), byrow = TRUE))
  }
  below <- colSums(x < rep(values, each = nrow(x)))
  equal <- colSums(x == rep(values, each = nrow(x)))
  ranks <- below + floor(stats::runif(length(below)) * (equal + 1))
  names(ranks) <- names(values)
  list(values = values, ranks = ranks, figures = drawn$figures, warning = told)
}

# The simulated parameters as they are (`like`) and as a named vector (`truth`), the data, and the
# model: a fit, or a log density with the job of its chain.
open_replicate <- function(work, i) {
  drawn <- calling(work$simulate(), "simulate")
  if (!is.list(drawn) || !all(c("parameters", "data") %in% names(drawn))) {
    abort_argument("simulate", sprintf(paste("'simulate' must return list(parameters = , data = ),",
                                             "not %s"), describe(drawn)))
  }
  like <- drawn$parameters
  right <- (is.list(like) || is.numeric(like)) && length(like) > 0L && !is.null(names(like)) &&
    all(vapply(like, is.numeric, NA)) && all(is.finite(unlist(like)))
  if (!right) {
    abort_argument("simulate", paste("the parameters of 'simulate' must be a named list of finite",
                                     "numbers, or a named vector"))
  }
  one <- list(like = like, data = drawn$data,
              model = as_density(calling(work$model(drawn$data), "model")))
  if (inherits(one$model, c("cl_sample", "cl_glm", "cl_gp"))) {
    layout <- parameter_layout(like, NULL)
  } else {
    if (!is.function(one$model)) {
      abort_argument("model", sprintf(paste("'model' must return a log density or a fit with",
                                            "draws, not %s"), describe(one$model)))
    }
    one$job <- replicate_job(work, one, i)
    own <- attr(one$model, "own", exact = TRUE)
    if (!is.null(own)) {
      one$job$layout$own <- own$parameters
      like <- like[vapply(own$parameters$arguments, `[[`, "", "name")]
    }
    layout <- one$job$layout
    one$evaluate <- make_evaluator(one$model, layout, work$nan)
  }
  one$truth <- stats::setNames(as.double(unlist(like, use.names = FALSE)),
                               drawn_layout(layout)$names)
  one
}

# The value of a function of the user; its errors are argument errors.
calling <- function(code, argument) {
  tryCatch(code, error = function(e) {
    own <- inherits(e, "statcl_error") && !inherits(e, "statcl_error_argument")
    if (own) stop(e)
    abort_argument(argument, sprintf("'%s' failed: %s", argument, conditionMessage(e)))
  })
}

replicate_job <- function(work, one, i) {
  control <- work[setdiff(names(work), c("simulate", "model", "quantities", "transform", "init"))]
  control$check_gradient <- i == 1L
  job <- tryCatch(new_job(one$model, one$like, work$transform, 1L, control,
                          if (is.null(work$init)) 2 else 0, NULL, work$inverse_metric),
                  statcl_error_argument = function(e) {
                    if (e$argument != "init") stop(e)
                    abort_argument("simulate", gsub("'init'", "the value of 'simulate'",
                                                    conditionMessage(e), fixed = TRUE))
                  })
  start <- if (is.function(work$init)) calling(work$init(one$data), "init") else work$init
  job$truth <- job$points[[1L]]
  if (is.null(start)) {
    job$points[[1L]] <- 0 * job$truth
  } else {
    check_start(start)
    if (!identical(lengths(start), lengths(one$like))) {
      abort_argument("init", "'init' must have the shape of the parameters of 'simulate'")
    }
    job$points <- list(free_start(job$layout, start))
  }
  job
}

# The true values of all quantities; the log density is that on the unconstrained scale.
replicate_values <- function(work, one) {
  c(one$truth, if (!is.null(one$job)) c(log_density = replicate_density(one)),
    if (!is.null(work$quantities)) replicate_quantities(work, one, one$truth))
}

replicate_density <- function(one) {
  s <- new_chain(one$job, 1L)
  s$at <- one$job$truth
  value <- evaluate_once(s, one$evaluate)[[1L]]
  if (is.nan(value)) -Inf else value
}

replicate_quantities <- function(work, one, x) {
  parameters <- if (is.list(one$like)) utils::relist(unname(x), one$like) else x
  value <- calling(work$quantities(parameters, one$data), "quantities")
  if (!is.numeric(value) || is.null(names(value)) || anyNA(value)) {
    abort_argument("quantities", sprintf("'quantities' must return a named vector, not %s",
                                         if (anyNA(value)) "NA" else describe(value)))
  }
  value
}

# A matrix of draws with a column for each quantity, except `quantities`, and diagnostics of the
# chain.
replicate_chain_draws <- function(work, one) {
  job <- one$job
  thin <- if (is.null(work$thin)) 4L else work$thin
  repeat {
    job$control$thin <- 1
    job$control$iter <- as.integer(work$draws * thin)
    s <- start_chain(job, 1L, one$evaluate)
    run_chain(s, one$evaluate)
    fit <- collect_draws(job, list(chain_result(s)), complete = TRUE)
    x <- cbind(as.matrix(fit), fit$diagnostics$log_density)
    size <- min(apply(x, 2L, function(column) ess_bulk(matrix(column))), Inf, na.rm = TRUE)
    if (!is.null(work$thin) || thin >= 64L || size >= work$draws) break
    thin <- 2L * thin
  }
  list(x = x[seq_len(work$draws) * thin, , drop = FALSE],
       figures = c(divergent = sum(fit$diagnostics$divergent), size = size, thin = thin,
                   evaluations = sum(fit$evaluations)))
}

# Draws of a fit by the names of the simulated parameters, evenly spread.
replicate_fit_draws <- function(work, one) {
  draws <- if (inherits(one$model, "cl_sample")) one$model else one$model$draws
  if (is.null(draws)) abort_argument("model", "the fit of 'model' has no draws")
  if (identical(draws$complete, FALSE)) { # it was interrupted, and so is this run
    signalCondition(structure(list(message = "", call = NULL), class = c("interrupt", "condition")))
  }
  x <- as.matrix(draws)
  missing <- setdiff(names(one$truth), colnames(x))
  if (length(missing) > 0L || nrow(x) < work$draws) {
    abort_argument("model", if (length(missing) > 0L) {
      sprintf("the fit of 'model' has no parameter '%s'", missing[1L])
    } else {
      sprintf("the fit of 'model' has %d draws, fewer than 'draws'", nrow(x))
    })
  }
  x <- x[, names(one$truth), drop = FALSE]
  size <- if (inherits(draws, "cl_approximation")) nrow(x) else {
    min(apply(draws$draws, 3L, ess_bulk), Inf, na.rm = TRUE)
  }
  rows <- round(seq_len(work$draws) * (nrow(x) / work$draws))
  list(x = x[rows, , drop = FALSE],
       figures = c(divergent = sum(draws$diagnostics$divergent), size = size,
                   thin = nrow(x) / work$draws, evaluations = sum(draws$evaluations)))
}
