# Sampling from a density with gradient: arguments and starting values.

#' Sample from a log density with gradient
#'
#' Hamiltonian Monte Carlo for any R function that returns the value of a log density with its
#' gradient: the no-U-turn sampler, as in Stan, with its warm-up. The sampler adds about 10
#' microseconds to the time of each evaluation of the function.
#'
#' @section The log density:
#' A function whose value is a single number, the log density up to a constant, with the attribute
#' `"gradient"`.
#' - If `init` is a numeric vector, `log_density(x)` is called with a vector of the same length and
#'   names, and the gradient is a vector of the same length, in the same order or with the same
#'   names.
#' - If `init` is a named list, such as `list(alpha = 0, beta = numeric(10))`, `log_density(alpha =
#'   , beta = )` is called with its elements as arguments, with their dimensions and names, and the
#'   gradient is a list with these names. A [cl_likelihood()] is such a function, and so is the
#'   result of [cl_log_posterior()], which adds priors.
#'
#' `transform` declares which parameters are constrained ([transforms]). The function is called with
#' constrained values and returns their density; do not add a Jacobian.
#'
#' A value of `-Inf` is a density of zero.
#'
#' @section Points that cannot be evaluated:
#' At parameters so extreme that the computation breaks down, the density cannot be evaluated: its
#' value or its gradient is `NaN`, as after a `chol()` that fails in a [cl_gradient()]; or the
#' function ends with an error of class `statcl_error_not_pd`, `statcl_error_singular` or
#' `statcl_error_nonfinite`, with that of a likelihood whose `sigma`, `phi` or `cuts` are out of
#' range, or with that of base R's `chol()` or `solve()` for a matrix that is not positive definite
#' or singular. Such a point is rejected, as in Stan: it has density zero, the iteration ends there
#' and counts as divergent. The result counts these points (`failures`) and says why the last one
#' has no value (`failure`); some in the warm-up do no harm. With `nan = "stop"` a `NaN` ends the
#' run.
#'
#' The error `statcl_error_density` names the operation, the call in your function and the
#' parameters if no start has a value, and if more than half of the iterations end at such points:
#' of those of the warm-up, at its end, or of those after it, at each hundredth and at the end.
#' Often a bound is missing in `transform`. Where the density should be zero, return `-Inf`.
#'
#' Any other error of your function, such as one of [stop()], a value of `Inf`, or a gradient of
#' another length ends the run.
#'
#' @section The check of the gradient:
#' With a wrong gradient the draws do not follow the intended distribution, or chains hardly move.
#' Therefore the gradient is compared with central differences of the log density near the start of
#' the first chain, for each parameter (if there are more than 50, for 50 sums of some of them).
#' This takes two evaluations each, at most 101, compared with several thousand for a run. They are
#' not counted in the result. `check_gradient = FALSE` skips the check. If differences are
#' inconclusive because the density is infinite, noisy or not smooth there, the run continues.
#' [cl_check_gradient()] checks at other points, and with a smaller tolerance than the 1e-4 of the
#' derivative used here. The warning `statcl_warning_unused` names parameters without finite bounds
#' on which the density does not depend at the start: their distribution is improper.
#'
#' @section The sampler:
#' `"nuts"` is the no-U-turn sampler with multinomial sampling within the trajectory (Betancourt,
#' 2017, <https://arxiv.org/abs/1701.02434>). `"hmc"` always makes `leapfrogs` steps, for
#' comparisons of speed. During the warm-up the step size is adapted by dual averaging to an average
#' acceptance statistic of `adapt_delta` (Hoffman and Gelman, 2014, *JMLR* 15), and the inverse
#' mass matrix is set to the variances of the parameters (`metric = "diag"`, as in Stan) or to their
#' covariance matrix (`"dense"`), to a part of it (`"low-rank"`, see below), or to whichever of the
#' first and the last saves steps (`"auto"`), in windows of 25, 50, 100, ... iterations after the
#' first 75; the last 50 iterations adapt the step size only. For a warm-up of less than 150
#' iterations these numbers are reduced in proportion; a warm-up of less than 20 adapts the step
#' size only.
#'
#' With strongly correlated parameters `"dense"` needs far fewer steps. Each step then takes
#' `2 * d^2` more operations for `d` parameters, and each chain three matrices of that size. With
#' `pooled = TRUE` the windows of all chains are used together: chains wait for each other at the
#' end of each window, and a metric is estimated from `chains` times as many draws.
#'
#' @section A metric of low rank:
#' With `metric = "low-rank"` the inverse mass matrix is
#' \deqn{M^{-1} = D^{1/2} (I + U (\Lambda - I) U') D^{1/2}}{D^(1/2) (I + U (Lambda - I) U') D^(1/2)}
#' with a diagonal matrix D and r orthonormal columns of U, as in Bales et al. (2019,
#' <https://arxiv.org/abs/1905.11916>). A step takes `8 * d * r` more operations, and no matrix of
#' the size d x d is formed: for many parameters of which a few combinations are strongly
#' correlated.
#'
#' D, U and Lambda are estimated from the positions of a window and their gradients, at most 256
#' evenly spaced ones (with `pooled = TRUE` from all chains in turn). D is the ratio of their
#' standard deviations. In the space of the leading eigenvectors of both covariance matrices, scaled
#' by D, A of the positions and B of the gradients, S is the positive definite solution of S B S =
#' A. For a normal distribution S is the covariance matrix there whatever the positions; in general
#' S minimises the Fisher divergence of a normal distribution (Seyboldt, Carlson and Carpenter,
#' 2026, <https://arxiv.org/abs/2603.18845>). Directions are the eigenvectors of S with eigenvalues
#' above 2 or below 1/2, at most `rank`.
#'
#' With `metric = "auto"` each chain chooses at the end of each window between that metric and the
#' diagonal one. Both are estimated from one half of the window. On the other half the number of
#' steps that a trajectory takes is predicted to be proportional to the largest standard deviation
#' of the positions, times that of the gradients, both in the units of the metric. The metric of low
#' rank is used if it saves at least a fifth of the steps on either half; otherwise the metric is
#' that of `"diag"`, and a step costs no more. From 16 parameters on, only directions are considered
#' in which the draws vary more than independent ones would; above 5,000 parameters `"auto"` means
#' `"diag"`, since the draws of a window would take too much memory. Of a [cl_tmb()] with at least
#' 50 random effects, or of an `init` by [cl_laplace()] with `random`, `"auto"` means `"sparse"` if
#' there is a mode and the Cholesky factor of the Hessian has at most 100 numbers a parameter.
#'
#' @section A sparse metric:
#' For latent fields of hundreds or thousands of values, whose Hessian is sparse. With `metric =
#' "sparse"` the mass matrix is a precision matrix P, the negative Hessian at a mode, which is found
#' before chains start. If up to 20 parameters interact with very many others, as standard
#' deviations of a field do, the density often has no mode, since it grows as they go to zero. Then
#' the mode is that of their marginal density, with all others integrated out by Laplace's
#' approximation, as in [cl_laplace()]; else, or if that fails, it is that of the joint density.
#'
#' `metric` may also be P itself, a matrix (dense, or of the package Matrix) on the unconstrained
#' scale, or a result of [cl_laplace()] with `random`, which says what is integrated out. With
#' `metric = "sparse"` such a result as `init` gives P, too.
#'
#' P stays as it is. The warm-up adapts a metric like that of `"auto"` in units in which P is the
#' identity; the result's `inverse_metric` has these units. Each step takes two more triangular
#' solutions with the sparse Cholesky factor of P. The result has P as `precision`, if Matrix is
#' installed.
#'
#' @section Compiled densities:
#' A density that can be compiled runs without R between evaluations, its transforms included: a
#' [cl_gradient()], and on the host a [cl_likelihood()] or a [cl_log_posterior()] of these and
#' formulas. So does a [cl_likelihood()] on a device or in lockstep, alone or in a
#' [cl_log_posterior()] with formulas, if its family has one linear predictor and no cut points, its
#' coefficients have no transform, and `sigma` or `phi` has none or [cl_lower()] of zero.
#'
#' @section Several chains:
#' Chains run one after another, in `workers` processes, or in lockstep (`batch = TRUE`). Those of a
#' density that is compiled for the host run side by side on threads: at most as many as the
#' environment variable `STATCL_COPY_THREADS` says, by default one for each core up to 16. The draws
#' of a chain depend on the seed and its number only, not on which of these is chosen, as long as
#' the function returns bitwise identical values. Rounding differences between one evaluation and
#' several at once grow until trajectories diverge.
#'
#' In lockstep the chains share each evaluation: `log_density` is called with one column for each
#' chain and returns one value for each, with gradients that have one column for each value:
#' - for a numeric vector `init`: the argument is a matrix, and the attribute `"gradient"` a matrix
#'   of that shape;
#' - for a list: each argument is a matrix (with one row for a scalar parameter; for a parameter
#'   that is a matrix, an array), and the gradient is a list of such matrices.
#'
#' A [cl_likelihood()] is such a function, and a [cl_gradient()] evaluates all chains in one run
#' (see [cl_map_gradient()]). For a [cl_log_posterior()], both are called in this way, formulas are
#' computed for all chains together, and functions are called once for each chain. The contents of
#' your own function are unknown: even if it calls a likelihood, its chains run one after another,
#' unless it accepts columns and you set `batch = TRUE`. It is better to write its priors as
#' formulas.
#'
#' The number of columns decreases to one as chains finish. Lockstep is faster if several
#' evaluations together take little longer than one.
#'
#' @section Several devices:
#' With `devices`, chain 1 runs on the first of them, chain 2 on the second, and so on in turn, at
#' the same time: each device has a thread and a copy of the data. The density must run without R,
#' see "The sampler". On devices of one kind the draws are the same as on one, except that in
#' lockstep fewer chains share an evaluation. A point at which a device fails is an error with the
#' number of the chain. Workers are for functions of R and for devices of other machines.
#'
#' @section Workers:
#' A worker gets the function, with its data and the objects of the global environment that it uses,
#' once, and then chains to advance for some time: the answer is the chain's state, from which any
#' worker can continue. If a worker is lost, its chain continues from its last state in another one,
#' or in this session, with the same draws; the warning `statcl_warning_worker` reports it. A
#' likelihood uploads its data in each worker. Where there are several devices like the one in use,
#' workers use them in turn.
#'
#' Workers are other R processes, on this machine or others, which need the same version of statcl:
#' otherwise the error is `statcl_error_worker`. A `multicore` plan is refused, since OpenCL does
#' not survive a fork. The processes of `workers = 2` are forked nevertheless, without copies, if
#' the system supports it and the session has not looked for devices or uses
#' `cl_use(engine = "host")`.
#'
#' @param log_density A function, see below.
#' @param init Where chains start: a numeric vector or a named list of parameters; or a function of
#'   the chain's number that returns one of these; or an unnamed list with one of these for each
#'   chain; or a result of `cl_sample()`, [cl_pathfinder()] or a related function, from whose draws
#'   chains start. Or a word of `start`, if `log_density` is a [cl_likelihood()] or a
#'   [cl_gradient()] that has been called, so that its parameters are known. Not needed for a
#'   [cl_stan()].
#' @param start `"init"`; or chains start at draws of [cl_pathfinder()], at the mode that
#'   [cl_optimise()] finds, both of which begin at `init`, or in Stan's manner: at uniform random
#'   numbers between -2 and 2 on the unconstrained scale.
#' @param chains Number of chains.
#' @param warmup,iter Number of iterations for adaptation, whose draws are dropped, and number of
#'   iterations after it.
#' @param transform `NULL`, or a transform of all parameters, or a named list of transforms by
#'   parameter: see [transforms]. If `init` is a result of such a function, its transforms are used.
#' @param method `"nuts"` or `"hmc"`.
#' @param adapt_delta The target acceptance statistic, between 0 and 1; larger values give smaller
#'   steps.
#' @param max_depth NUTS makes at most `2^max_depth - 1` steps in an iteration.
#' @param leapfrogs Number of steps in an iteration of `"hmc"`.
#' @param metric The mass matrix: `"auto"`: one of low rank where that pays, else the diagonal one;
#'   `"diag"`, `"dense"`, `"low-rank"` plus diagonal, or `"unit"`: not adapted; `"sparse"`, a
#'   precision matrix, or a result of [cl_laplace()] with `random`: see "A sparse metric".
#' @param rank The largest rank of a metric of low rank; `NULL`: 32.
#' @param pooled Whether the mass matrix is adapted from the draws of all chains, see below.
#' @param step_size,inverse_metric Initial step size (`NULL`: found by trial) and inverse mass
#'   matrix (on the unconstrained scale; one number, or the diagonal, or the matrix if `metric` is
#'   `"dense"`, or an element of the result's `inverse_metric` if it is `"low-rank"`, `"auto"` or
#'   sparse). Without a warm-up they are not changed.
#' @param jitter Chains start at `init` plus uniform random numbers between `-jitter` and `jitter`,
#'   on the unconstrained scale. The default is 1 if several chains share one `init`, and 0
#'   otherwise.
#' @param seed An integer, or `NULL`: the draws then depend on the state of R's generator
#'   ([set.seed()]).
#' @param workers Where chains run: a number of processes; a cluster of the parallel package;
#'   `"future"` for the plan of the future package, or a plan such as `future::multisession`; or
#'   `"mirai"` for the daemons of that package. See below.
#' @param batch `TRUE`: all chains in lockstep, see below. By default lockstep is used where it is
#'   faster: for several chains of a likelihood with much data, or of a [cl_gradient()] on a device,
#'   unless there are `workers`.
#' @param devices `NULL`: the device in use. Or several, between which the chains of this process
#'   are divided, see below: `"all"` that have the name of the one in use, or a vector of ids,
#'   numbers or names as for [cl_use()].
#' @param nan What to do if the density or its gradient is `NaN`: `"reject"` the point, see below,
#'   or `"stop"` with an error.
#' @param check_gradient Whether to compare the gradient with finite differences of the log density
#'   at the start of the first chain, see below.
#' @param save_warmup Whether to keep the draws of the warm-up.
#' @param refresh Number of iterations between reports of progress, with an estimate of the
#'   remaining time; 0 for none. The default is ten reports for each chain, at most one line each
#'   second in an interactive session and each ten seconds in scripts, where
#'   `options(statcl.quiet = TRUE)` turns them off. A message gives the estimate once, after a tenth
#'   of the iterations or 30 seconds, if it exceeds 10 seconds.
#' @param thin Every `thin`-th draw after the warm-up is kept, of `iter` iterations.
#' @param checkpoint `NULL`, or the name of a file in which the state of the run is kept, see below.
#' @param checkpoint_seconds Seconds between two states of the file.
#' @param data `NULL`, or data for `log_density`, which is then a function of data that returns a
#'   log density, such as a [cl_stan()].
#' @return An object of class `"cl_sample"`, see [cl_sample-methods].
#'
#'   An interrupted run returns the draws made so far, with a warning: the number of complete
#'   iterations and chains that gives the most draws.
#' @section Long runs:
#' With `checkpoint`, the state of all chains is written to this file every `checkpoint_seconds`, at
#' an interrupt, and at the end. If the session ends before the run does, the same call continues
#' from the file, and gives the draws that it would have given; after the end it returns the result
#' again, also with other `workers`. Delete the file to start anew. Each state is written to a
#' second file first (`.part`), which then takes its name, so that a complete file exists at any
#' moment. A digest shows damage, and that the file belongs to the call is checked by its settings
#' and by the log density near the starts. No other file is written over, and no link.
#' @section Errors:
#' `statcl_error_checkpoint` if the file is damaged or belongs to other settings, another model,
#' other data or another version of the package; the warning `statcl_warning_checkpoint` if it
#' cannot be written: the run continues. `statcl_error_argument` for invalid arguments.
#' `statcl_error_density` if the log density fails, has no gradient or a wrong one, cannot be
#' evaluated at a start or at most points, or cannot be sampled from. Its fields are `parameters`
#' (named, constrained: where it was evaluated), `chain`, `iteration`, `parent` (the error of the
#' function, if there was one), `draws` (the result so far, or `NULL`) and, for a wrong gradient,
#' `wrong` (a data frame with columns `parameter`, `gradient` and `difference`).
#' @seealso [cl_log_posterior()] for priors, [transforms], [cl_check_gradient()]
#' @export
#' @examples
#' # Logistic regression with flat priors
#' likelihood <- cl_likelihood("bernoulli_logit", mtcars$am, scale(mtcars$wt))
#' fit <- cl_sample(likelihood, init = list(alpha = 0, beta = 0), chains = 2, warmup = 200,
#'                  iter = 200, seed = 1)
#' fit
#'
#' # Any density: a normal distribution with correlation 0.9
#' precision <- solve(matrix(c(1, 0.9, 0.9, 1), 2))
#' density <- function(x) {
#'   slope <- -as.vector(precision %*% x)
#'   structure(sum(x * slope) / 2, gradient = slope)
#' }
#' fit <- cl_sample(density, c(a = 0, b = 0), chains = 2, warmup = 200, iter = 200, seed = 1)
#' cor(as.matrix(fit))
cl_sample <- function(log_density, init, chains = 4, warmup = 1000, iter = 1000, transform = NULL,
                      method = c("nuts", "hmc"), adapt_delta = 0.8, max_depth = 10, leapfrogs = 10,
                      metric = c("auto", "diag", "dense", "low-rank", "unit", "sparse"),
                      step_size = NULL, inverse_metric = NULL,
                      jitter = NULL, seed = NULL, workers = 1, batch = NULL,
                      nan = c("reject", "stop"), check_gradient = TRUE, save_warmup = FALSE,
                      refresh = NULL, thin = 1, checkpoint = NULL, checkpoint_seconds = 60,
                      pooled = FALSE, start = c("init", "pathfinder", "mode", "random"),
                      devices = NULL, rank = NULL, data = NULL) {
  log_density <- density_with(log_density, data)
  check_function(log_density, "log_density")
  chains <- as.integer(check_count(chains, "chains", lower = 1))
  control <- sample_control(warmup, iter, method, adapt_delta, max_depth, leapfrogs, metric,
                            step_size, save_warmup, rank)
  control$pooled <- check_flag(pooled, "pooled") && chains > 1L
  control$nan <- check_choice(nan, c("reject", "stop"), "nan")
  control$check_gradient <- check_flag(check_gradient, "check_gradient")
  control$announce <- is.null(refresh)
  if (is.null(refresh)) refresh <- max(1, (control$warmup + control$iter) %/% 10)
  control$refresh <- check_count(refresh, "refresh")
  control$thin <- check_count(thin, "thin", 1)
  if (thin > control$iter) abort_argument("thin", "'thin' is larger than 'iter'")
  if (!is.null(batch)) check_flag(batch, "batch")
  if (!is.null(seed)) check_count(seed, "seed", lower = -.Machine$integer.max)
  control$start <- check_choice(start, start_words, "start")
  if (missing(init)) {
    init <- own_start(log_density)
    given <- !is.null(attr(log_density, "start", exact = TRUE))
    if (control$start == "init" && !given) control$start <- "random"
  }
  if (is.character(init)) {
    control$start <- check_choice(init, start_words[-1L], "init")
    init <- known_parameters(log_density, transform)
  }
  evaluations <- points_per_draw * chains * (control$warmup + control$iter)
  # the starts are evaluated where chains will be
  settle_densities(log_density, evaluations, chains)
  begin <- place_starts(control$start, log_density, init, transform, jitter, seed,
                        control$check_gradient)
  job <- new_job(log_density, begin$init, transform, chains, control, begin$jitter, seed,
                 inverse_metric)
  if (control$start == "random") job$points <- lapply(job$points, `*`, 0)
  job$call <- sys.call()
  workers <- check_workers(workers, chains)
  if (control$pooled && !is.null(workers)) {
    abort_argument("pooled", "pooled = TRUE needs workers = 1")
  }
  job$devices <- check_shared_devices(devices, workers)
  job$evaluations <- evaluations / min(chains, parallel::detectCores(), na.rm = TRUE) # at once
  job$checkpoint <- open_checkpoint(checkpoint, checkpoint_seconds, job, seed)
  if (!is.null(checkpoint)) job[c("points", "states")] <- mget(c("points", "states"),
                                                               envir = job$checkpoint)
  if (is.null(batch)) {
    batch <- is.null(workers) && batch_pays(log_density,
                                              chains / max(1L, length(job$devices)), job)
  }
  fit <- if (batch) run_batch(job) else if (is.null(workers)) run_in_turn(job) else
    run_in_workers(job, workers)
  if (fit$complete && is.null(c(workers, devices, checkpoint)))
    pace_densities(log_density, fit$elapsed, mean(fit$evaluations), chains)
  fit
}

start_words <- c("init", "pathfinder", "mode", "random")

# `init` and `jitter` for the kind of start that `start` names.
place_starts <- function(start, f, init, transform, jitter, seed, check) {
  if (start == "init") return(list(init = init, jitter = jitter))
  if (!single_init(init)) {
    abort_argument("init", sprintf("start = \"%s\" needs one vector or list as 'init'", start))
  }
  init <- switch(start, random = init,
                 mode = cl_optimise(f, init, transform, hessian = FALSE, check_gradient = check),
                 pathfinder = cl_pathfinder(f, init, transform, seed = seed,
                                            check_gradient = check))
  if (is.null(jitter)) jitter <- if (start == "random") 2 else 0
  list(init = init, jitter = jitter)
}

# The parameters that the density takes, at zero on the unconstrained scale.
known_parameters <- function(f, transform) {
  if (!is.null(attr(f, "own", exact = TRUE))) return(own_start(f))
  state <- environment(f)
  init <- if (inherits(f, "cl_gradient")) state$like
  if (inherits(f, "cl_likelihood") && !has_classes(state$family)) {
    aux <- aux_parameter(state$family)
    init <- c(list(alpha = 0, beta = numeric(NCOL(state$x))),
              if (!is.na(aux)) stats::setNames(list(1), aux))
  }
  if (is.null(init)) {
    abort_argument("init", paste("the parameters of 'log_density' are not known: give them as",
                                 "'init', and this word as 'start'"))
  }
  layout <- parameter_layout(init, transform)
  utils::relist(as.vector(constrain(layout, numeric(layout$dimension))), init)
}

# The job of a run: the density, start values, transforms, settings and random streams of its
# chains.
new_job <- function(log_density, init, transform, chains, control, jitter, seed,
                    inverse_metric = NULL) {
  session$notes$density <- NULL
  starts <- start_values(init, chains)
  if (is.null(transform) && inherits(init, c("cl_sample", "cl_optimise"))) {
    transform <- init$transform # else the draws would be starts of another model
  }
  own <- attr(log_density, "own", exact = TRUE)
  layout <- if (is.null(own)) parameter_layout(starts[[1L]], transform) else
    own_layout(own, transform)
  layout$transform <- transform
  if (inherits(log_density, c("cl_likelihood", "cl_log_posterior")) && is.null(layout$arguments)) {
    abort_argument("init", paste("'init' must be a list named by parameter, such as list(alpha =",
                                 "0, beta = c(0, 0))"))
  }
  if (layout$dimension > most_chosen && !is.list(inverse_metric)) {
    if (control$metric == "auto") control[c("metric", "rank")] <- list("diag", 0)
    if (control$metric == "sparse") control$rank <- 0
  }
  if (control$metric == "auto" && is.null(inverse_metric)) {
    control$precision <- known_precision(log_density, layout, starts[[1L]], init)
    if (!is.null(control$precision)) control$metric <- "sparse"
  } else if (control$metric == "sparse") {
    given <- if (is.null(control$precision)) "sparse" else control$precision
    control$precision <- precision_of(given, log_density, layout,
                                      free_start(layout, starts[[1L]]), init)
  }
  control$inverse_metric <- check_inverse_metric(inverse_metric, layout$dimension,
                                                 control$metric, control$rank)
  if (is.null(jitter)) {
    jitter <- if (chains > 1L && single_init(init) && !inherits(init, "cl_sample")) 1 else 0
  }
  jitter <- check_number(jitter, "jitter", lower = 0)
  points <- lapply(starts, function(start) free_start(layout, start))
  list(log_density = log_density, layout = layout, control = control, jitter = jitter,
       points = points, states = stream_states(chains, seed), started = seconds_now(),
       announced = new.env(parent = emptyenv()), compiled = new.env(parent = emptyenv()))
}

# ---- arguments -----------------------------------------------------------------------------------

sample_control <- function(warmup, iter, method, adapt_delta, max_depth, leapfrogs, metric,
                           step_size, save_warmup, rank = NULL) {
  given <- if (!is.character(metric)) metric
  metric <- if (is.null(given)) {
    check_choice(metric, c("auto", "diag", "dense", "low-rank", "unit", "sparse"), "metric")
  } else {
    "sparse"
  }
  if (has_rank(metric)) {
    rank <- if (is.null(rank)) 32 else check_count(rank, "rank", 1)
  } else if (!is.null(rank)) {
    abort_argument("rank", "'rank' needs metric = \"low-rank\" or \"auto\"")
  }
  list(warmup = as.integer(check_count(warmup, "warmup")),
       iter = as.integer(check_count(iter, "iter", lower = 1)),
       method = check_choice(method, c("nuts", "hmc"), "method"),
       adapt_delta = check_number(adapt_delta, "adapt_delta", 0.01, 0.999999),
       max_depth = as.integer(check_count(max_depth, "max_depth", 1, 20)),
       leapfrogs = as.integer(check_count(leapfrogs, "leapfrogs", 1)),
       metric = metric, rank = if (is.null(rank)) 0 else rank, pooled = FALSE,
       step_size = if (!is.null(step_size)) check_number(step_size, "step_size", 1e-300, 1e7),
       save_warmup = check_flag(save_warmup, "save_warmup"), precision = given)
}

# Whether lockstep is faster: when reading the data takes longer than R's work around it, or when
# starting kernels takes most of the time.
batch_pays <- function(f, chains, job = NULL) {
  if (chains <= 1L) return(FALSE)
  if (!inherits(f, "cl_gradient")) return(likelihood_size(f) >= 1e4)
  limit <- host_limit("program", NA)
  if (environment(f)$retrace || limit %in% c(0, Inf)) return(!environment(f)$retrace && limit == 0)
  if (is.null(environment(f)$program)) { # records it
    tryCatch(make_evaluator(f, job$layout, "reject")(job$points[[1L]]), error = function(e) NULL)
  }
  isTRUE(density_engine(f, job$evaluations) >= 0L)
}

# About how many points a draw visits, for the choice of an engine: the trees of the sampler have
# one less than a power of 2, at least 7 in most models.
points_per_draw <- 7

# The number of elements of x in the largest likelihood of the density.
likelihood_size <- function(f) {
  if (inherits(f, "cl_likelihood")) return(as.double(length(environment(f)$x)))
  if (!inherits(f, "cl_log_posterior")) return(0)
  max(0, vapply(environment(f)$terms, likelihood_size, 0))
}

# Whether one starting value is used for all chains.
single_init <- function(init) {
  is.numeric(init) || (is.list(init) && !is.null(names(init)))
}

# One start for each chain, all of one shape.
start_values <- function(init, chains) {
  starts <- if (inherits(init, c("cl_sample", "cl_optimise"))) {
    starts_of_fit(init, chains)
  } else if (is.function(init)) {
    lapply(seq_len(chains), init)
  } else if (single_init(init)) {
    rep(list(init), chains)
  } else if (is.list(init) && length(init) == chains) {
    init
  } else {
    abort_argument("init", sprintf(paste("'init' must be a numeric vector, a named list, a",
                                         "function, or a list of %d of these, not %s"), chains,
                                   describe(init)))
  }
  lapply(starts, check_start)
  shape <- function(x) if (is.list(x)) lapply(x, length) else list(length(x), names(x))
  same <- vapply(starts, function(x) identical(shape(x), shape(starts[[1L]])), NA)
  if (!all(same)) abort_argument("init", "'init' must have values of the same shape for all chains")
  starts
}

# Draws of a fit, evenly spread, or its mode, in the form of 'init'.
starts_of_fit <- function(fit, chains) {
  x <- if (inherits(fit, "cl_sample")) as.matrix(fit) else t(fit$coefficients)
  if (identical(colnames(x), element_names("par", numeric(ncol(x))))) colnames(x) <- NULL
  lapply(round(seq(1, nrow(x), length.out = chains + 1L))[-1L], function(row) {
    if (is.null(fit$arguments)) return(x[row, ])
    parts <- lapply(fit$arguments, function(a) as_argument(unname(x[row, a$index]), a))
    stats::setNames(parts, vapply(fit$arguments, `[[`, "", "name"))
  })
}
