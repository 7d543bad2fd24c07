# Sampling from a density with gradient: the interface, and what drives the chains.

#' Sample from a log density with gradient
#'
#' Hamiltonian Monte Carlo on any R function that gives the value of a log density with its
#' gradient: the no-U-turn sampler, as in Stan, with its warm-up. One evaluation of the density
#' costs as much as the function; the sampler adds about 20 microseconds to each.
#'
#' @section The log density:
#' A function whose value is one number, the log density up to a constant, with the attribute
#' `"gradient"`.
#' - If `init` is a numeric vector: `log_density(x)` gets a vector like it (with its names), and the
#'   gradient is a vector of the same length, in the same order or with the same names.
#' - If `init` is a list with names, such as `list(alpha = 0, beta = numeric(10))`:
#'   `log_density(alpha = , beta = )` gets its elements as arguments, and the gradient is a list
#'   with these names. A [cl_likelihood()] is such a function, and so is what
#'   [cl_log_posterior()] makes of a likelihood and priors.
#'
#' `transform` says which parameters are constrained ([transforms]). The function sees constrained
#' values only, and its density is one of them: no Jacobian is to be added by hand.
#'
#' A value of `-Inf` is density zero. An error of class `statcl_error_not_pd`,
#' `statcl_error_singular` or `statcl_error_nonfinite` (parameters so far out that the computation
#' breaks down) is taken as that, too. Any other error, `NaN`, or a gradient of another length ends
#' the run.
#'
#' @section The check of the gradient:
#' With a wrong gradient draws follow no distribution that anybody wants, or chains hardly move. So
#' beside the first chain's start, the gradient is held against central differences of the log
#' density, by each parameter (of more than 50, by 50 sums of some of them). This costs two
#' evaluations each, 101 at most, where a run takes some thousands; they do not count in the result.
#' `check_gradient = FALSE` spares them. Where differences tell nothing, as the density is infinite,
#' noisy or not smooth there, the run goes on. [cl_check_gradient()] checks at other points, and
#' with a smaller tolerance than the 1e-4 of the derivative that this check has.
#'
#' @section The sampler:
#' `"nuts"` is the no-U-turn sampler with multinomial choice within the trajectory (Betancourt,
#' 2017, <https://arxiv.org/abs/1701.02434>). `"hmc"` makes `leapfrogs` steps, always: for
#' comparisons of time. During the warm-up the step size is adapted by dual averaging to an average
#' acceptance statistic of `adapt_delta` (Hoffman and Gelman, 2014, *JMLR* 15), and a diagonal
#' inverse mass matrix is set to the variances of the parameters, in windows of 25, 50, 100, ...
#' iterations after the first 75, the last 50 being kept for the step size. A warm-up of less than
#' 150 is divided in proportion; one of less than 20 adapts the step size only.
#'
#' @section Several chains:
#' Chains run one after another, or in `workers` processes, or in lockstep (`batch = TRUE`). The
#' draws of a chain depend on the seed and its number only, not on which of these is chosen, as long
#' as the function gives the same bits; rounding differences between one evaluation and several at
#' once grow until paths part.
#'
#' In lockstep all chains ask for one evaluation together: `log_density` is called with one column
#' for each chain, gives as many values, and its gradients have one column for each value:
#' - for a numeric vector `init`: a matrix in, the attribute `"gradient"` a matrix of that shape;
#' - for a list: a matrix for each argument (with one row for a single number; an array for a
#'   parameter that is a matrix itself), the gradient a list of such matrices.
#'
#' A [cl_likelihood()] is such a function. Of a [cl_log_posterior()] the likelihoods are called in
#' this way, formulas are computed for all chains together, and functions are called once for each
#' chain. What a function of your own calls is not known: one that has a likelihood in it runs one
#' chain after another unless it takes columns and `batch = TRUE` says so; better write its priors
#' as formulas.
#'
#' The number of columns falls to one as chains come to their ends. This is worth it where
#' several evaluations cost little more than one.
#'
#' Workers are new R processes, to which the function is sent with what it uses of the global
#' environment, and where a likelihood uploads its data again. They are forked, and need no copies,
#' where that is possible and the session has not looked for devices (OpenCL does not survive a
#' fork) or works with `cl_use(engine = "host")`.
#'
#' @param log_density a function, see below.
#' @param init where chains start: a numeric vector or a list of parameters with names; or a
#'   function of the chain's number giving that; or a list without names with one for each chain.
#' @param chains number of chains.
#' @param warmup,iter number of iterations for adaptation, which are dropped, and after it.
#' @param transform `NULL`, or a transform of all parameters, or a list of transforms by name of
#'   parameter: see [transforms].
#' @param method `"nuts"` or `"hmc"`.
#' @param adapt_delta the acceptance statistic to adapt to, between 0 and 1: larger means smaller
#'   steps.
#' @param max_depth NUTS makes at most `2^max_depth - 1` steps in an iteration.
#' @param leapfrogs number of steps in an iteration of `"hmc"`.
#' @param metric `"diag"`, or `"unit"`: no adaptation of the mass matrix.
#' @param step_size,inverse_metric first step size (`NULL`: found by trial) and diagonal of the
#'   inverse mass matrix (on the unconstrained scale; one number, or one for each parameter).
#'   Without a warm-up they stay.
#' @param jitter chains start at `init` plus uniform numbers between `-jitter` and `jitter`, on the
#'   unconstrained scale. By default 1 if one `init` serves several chains, and 0 otherwise.
#' @param seed a whole number, or `NULL`: then the draws follow from the state of R's generator
#'   ([set.seed()]).
#' @param workers number of processes, or a cluster of the parallel package.
#' @param batch `TRUE`: all chains in lockstep, see below. By default where it is faster: with
#'   several chains of a likelihood with much data, unless there are `workers`.
#' @param nan what to do when the density or its gradient is `NaN`: `"stop"` with an error, or
#'   `"reject"` the point.
#' @param check_gradient whether the gradient is held against differences of the log density where
#'   the first chain starts, see below.
#' @param save_warmup whether the draws of the warm-up are kept, too.
#' @param refresh progress is shown every so many iterations, with an estimate of the time left;
#'   0 for silence. By default ten times a chain in an interactive session; and anywhere a message
#'   tells the estimate once, after two seconds or more, if it is above 10 seconds.
#' @return An object of class `"cl_sample"`, see [cl_sample-methods].
#'
#'   An interrupted run gives the draws made so far, with a warning: as many complete iterations of
#'   as many chains as give most draws.
#' @section Errors:
#' `statcl_error_argument` for wrong arguments. `statcl_error_density` if the log density fails, has
#' no gradient or a wrong one, is `NaN` or cannot be sampled from; its fields are `parameters`
#' (named, constrained: where it was evaluated), `chain`, `iteration`, `parent` (the error of the
#' function, if it was one), `draws` (the result so far, or `NULL`) and, of a wrong gradient,
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
                      metric = c("diag", "unit"), step_size = NULL, inverse_metric = NULL,
                      jitter = NULL, seed = NULL, workers = 1, batch = NULL,
                      nan = c("stop", "reject"), check_gradient = TRUE, save_warmup = FALSE,
                      refresh = NULL) {
  if (!is.function(log_density)) {
    abort_argument("log_density", sprintf("'log_density' must be a function, not %s",
                                          describe(log_density)))
  }
  chains <- as.integer(check_count(chains, "chains", lower = 1))
  control <- sample_control(warmup, iter, method, adapt_delta, max_depth, leapfrogs, metric,
                            step_size, save_warmup)
  control$nan <- check_choice(nan, c("stop", "reject"), "nan")
  control$check_gradient <- check_flag(check_gradient, "check_gradient")
  control$announce <- is.null(refresh)
  if (is.null(refresh)) {
    refresh <- if (interactive()) max(1, (control$warmup + control$iter) %/% 10) else 0
  }
  control$refresh <- check_count(refresh, "refresh")
  if (!is.null(batch)) check_flag(batch, "batch")
  if (!is.null(seed)) check_count(seed, "seed", lower = -.Machine$integer.max)
  starts <- start_values(init, chains)
  layout <- parameter_layout(starts[[1L]], transform)
  if (inherits(log_density, c("cl_likelihood", "cl_log_posterior")) && is.null(layout$arguments)) {
    abort_argument("init", paste("'init' must be a list with the names of parameters, such as",
                                 "list(alpha = 0, beta = c(0, 0))"))
  }
  control$inverse_metric <- check_inverse_metric(inverse_metric, layout$dimension)
  if (is.null(jitter)) jitter <- if (chains > 1L && single_init(init)) 1 else 0
  jitter <- check_number(jitter, "jitter", lower = 0)
  points <- lapply(starts, function(start) free_start(layout, start))
  states <- stream_states(chains, seed)
  job <- list(log_density = log_density, layout = layout, control = control, jitter = jitter,
              points = points, states = states, call = sys.call(), started = seconds_now(),
              told = new.env(parent = emptyenv()))
  workers <- check_workers(workers, chains)
  if (is.null(batch)) batch <- is.null(workers) && batch_pays(log_density, chains)
  if (batch) return(run_batch(job))
  if (is.null(workers)) run_in_turn(job) else run_in_workers(job, workers)
}

# ---- arguments -----------------------------------------------------------------------------------

sample_control <- function(warmup, iter, method, adapt_delta, max_depth, leapfrogs, metric,
                           step_size, save_warmup) {
  list(warmup = as.integer(check_count(warmup, "warmup")),
       iter = as.integer(check_count(iter, "iter", lower = 1)),
       method = check_choice(method, c("nuts", "hmc"), "method"),
       adapt_delta = check_number(adapt_delta, "adapt_delta", 0.01, 0.999999),
       max_depth = as.integer(check_count(max_depth, "max_depth", 1, 20)),
       leapfrogs = as.integer(check_count(leapfrogs, "leapfrogs", 1)),
       metric = check_choice(metric, c("diag", "unit"), "metric"),
       step_size = if (!is.null(step_size)) check_number(step_size, "step_size", 1e-300, 1e7),
       save_warmup = check_flag(save_warmup, "save_warmup"))
}

check_inverse_metric <- function(x, dimension) {
  if (is.null(x)) return(1)
  right <- is.numeric(x) && length(x) %in% c(1L, dimension) && all(is.finite(x) & x > 0)
  if (!right) {
    abort_argument("inverse_metric", sprintf(
      "'inverse_metric' must be one positive number, or one for each of %d parameters", dimension))
  }
  as.double(x)
}

# Whether lockstep is faster: when reading the data takes longer than R's work around it.
batch_pays <- function(log_density, chains) chains > 1L && likelihood_size(log_density) >= 1e4

# Numbers in x of the largest likelihood in it.
likelihood_size <- function(f) {
  if (inherits(f, "cl_likelihood")) return(as.double(length(environment(f)$x)))
  if (!inherits(f, "cl_log_posterior")) return(0)
  max(0, vapply(environment(f)$terms, likelihood_size, 0))
}

# Whether one value serves all chains.
single_init <- function(init) {
  is.numeric(init) || (is.list(init) && !is.null(names(init)))
}

# One start for each chain, all of one shape.
start_values <- function(init, chains) {
  starts <- if (is.function(init)) {
    lapply(seq_len(chains), init)
  } else if (single_init(init)) {
    rep(list(init), chains)
  } else if (is.list(init) && length(init) == chains) {
    init
  } else {
    abort_argument("init", sprintf(paste("'init' must be a numeric vector, a list with names, a",
                                         "function, or a list of %d of these, not %s"), chains,
                                   describe(init)))
  }
  lapply(starts, check_start)
  shape <- function(x) if (is.list(x)) lapply(x, length) else list(length(x), names(x))
  same <- vapply(starts, function(x) identical(shape(x), shape(starts[[1L]])), NA)
  if (!all(same)) abort_argument("init", "the chains' values in 'init' differ in shape")
  starts
}

check_start <- function(x) {
  parts <- if (is.list(x)) x else list(x)
  if (is.list(x) && (is.null(names(x)) || !all(nzchar(names(x))) || anyDuplicated(names(x)))) {
    abort_argument("init", "the parameters in 'init' must have names, each its own")
  }
  right <- vapply(parts, function(p) is.numeric(p) && !is.object(p) && all(is.finite(p)), NA)
  if (length(parts) == 0L || !all(right)) abort_argument("init", "'init' must hold finite numbers")
  if (sum(lengths(parts)) == 0L) abort_argument("init", "'init' is empty")
}

# ---- the chains' starts --------------------------------------------------------------------------

# The chain with this number, its first point evaluated. With jitter a point of no density is
# drawn again, up to 100 times.
start_chain <- function(job, id, evaluate) {
  stream <- new_stream(job$states[[id]])
  s <- new_chain(job$points[[id]], job$control, stream, id)
  s$layout <- job$layout
  tries <- if (job$jitter > 0) 100L else 1L
  for (i in seq_len(tries)) {
    shift <- job$jitter * (2 * stream$uniform(length(s$at)) - 1)
    s$at <- s$q <- job$points[[id]] + shift
    answer <- evaluate_once(s, evaluate)
    if (!is.null(answer[[2L]])) {
      if (id == 1L && job$control$check_gradient) check_start_gradient(s, evaluate, answer)
      chain_advance(s, answer[[1L]], answer[[2L]])
      return(s)
    }
  }
  abort_density(s, sprintf("the log density cannot be computed at %s",
                           if (tries > 1L) "100 points around 'init'" else "'init'"))
}

# An answer with NULL as gradient where the density could not be computed.
evaluate_once <- function(s, evaluate) {
  rejected <- function(e) list(-Inf, NULL)
  tryCatch(evaluate(s$at),
           statcl_error_not_pd = rejected, statcl_error_singular = rejected,
           statcl_error_nonfinite = rejected, error = function(e) rethrow_density(s, e))
}
