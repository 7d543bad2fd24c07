# cl_brm(): models of the package brms, sampled here.

#' Bayesian multilevel models by the formulas of brms
#'
#' [brms::brm()] with this package's sampler in the place of Stan's: brms writes the Stan program
#' and its data, [cl_stan()] reads them, [cl_sample()] samples, and the result is a `"brmsfit"`, on
#' which the methods of brms work. No C++ compiler is needed.
#'
#' @param formula,data,... The model, as for [brms::brm()]: `family`, `prior`, `data2`, `autocor`,
#'   `sample_prior`, `knots`, `stanvars`, `save_pars`, `normalize` and others that describe it.
#' @param init As for [brms::brm()]: `NULL` or `"random"`, a number, a named list of parameters of
#'   the program, a list of such lists, one for each chain, or a function that makes one. Parameters
#'   that a list has not start at 0 on the unconstrained scale.
#' @param chains,iter,warmup,thin As for [brms::brm()]: `iter` includes the warm-up.
#' @param seed An integer, or `NULL` or `NA`: the draws then depend on the state of R's generator.
#' @param control A list that may have `adapt_delta` and `max_treedepth`.
#' @param cores,refresh The number of processes, and how often to report, as `workers` and `refresh`
#'   of [cl_sample()].
#' @return An object of class `"brmsfit"`. Its [update()] method samples here too, and so do methods
#'   of brms that fit again, such as [brms::kfold()].
#' @section Errors:
#' `statcl_error_argument` if brms is not installed, and for arguments of [brms::brm()] that choose
#' how it runs Stan, such as `backend`, `algorithm`, `threads`, `inits` and `file`; those of
#' [cl_stan()] and [cl_sample()].
#' @seealso [cl_stan()]; [cl_glmm()] for linear and generalised linear mixed models by maximum
#'   likelihood
#' @export
#' @examplesIf requireNamespace("brms", quietly = TRUE) && interactive()
#' fit <- cl_brm(count ~ zAge + zBase * Trt + (1 | patient), data = brms::epilepsy,
#'               family = poisson(), chains = 2, iter = 1000, seed = 1)
#' summary(fit)
cl_brm <- function(formula, data, ..., init = NULL, chains = 4, iter = 2000,
                   warmup = floor(iter / 2), thin = 1, seed = NULL, control = NULL,
                   cores = getOption("mc.cores", 1), refresh = NULL) {
  brm_start(init, 0)
  brm_control(control)
  check_brm_names(dot_names(...))
  call <- match.call()
  call[c("chains", "iter", "warmup", "thin", "seed", "cores", "refresh")] <- NULL
  call[c("init", "control")] <- list(init, control) # kept in the result for update()
  call[[1L]] <- quote(brms::brm)
  call$empty <- TRUE
  call$backend <- "rstan" # whatever the options of brms say
  call$algorithm <- "sampling"
  call["threads"] <- list(NULL)
  sample_brm(eval(call, parent.frame()), chains, iter, warmup, thin, seed, cores, refresh)
}

#' @rdname cl_brm
#' @param object,formula.,newdata A result of `cl_brm()`, and what to change in it, as for
#'   [brms::update.brmsfit()]; `...` takes arguments of `cl_brm()`.
#' @export
update.statcl_brmsfit <- function(object, formula., newdata = NULL, ...) {
  check_brm_names(setdiff(dot_names(...), "recompile"))
  fit <- NextMethod(recompile = TRUE, empty = TRUE)
  sim <- object$fit@sim
  run <- function(chains = sim$chains, iter = sim$iter,
                  warmup = if (missing(iter)) sim$warmup else floor(iter / 2), thin = sim$thin,
                  seed = NULL, cores = getOption("mc.cores", 1), refresh = NULL, ...) {
    sample_brm(fit, chains, iter, warmup, thin, seed, cores, refresh)
  }
  run(...)
}

dot_names <- function(...) names(list(...))

# Samples the model of a brmsfit without draws.
sample_brm <- function(fit, chains, iter, warmup, thin, seed, cores, refresh) {
  iter <- check_count(iter, "iter", 2)
  warmup <- check_count(warmup, "warmup", 0, iter - 1)
  cores <- check_count(cores, "cores", 1)
  control <- brm_control(fit$stan_args$control)
  code <- as.character(brms::stancode(fit))
  density <- cl_stan(code = code)(unclass(brms::standata(fit)))
  start <- brm_start(fit$stan_args$init, density$dimension)
  draws <- with_brm_hint(start$start, cl_sample(
    density, start$init, chains = chains, warmup = warmup, iter = iter - warmup, thin = thin,
    jitter = start$jitter, seed = if (!anyNA(seed)) seed, workers = cores, refresh = refresh,
    start = start$start, adapt_delta = control$adapt_delta, max_depth = control$max_treedepth))
  fit$fit <- as_stanfit(draws, code, warmup, thin, control, seed, brm_dropped(fit))
  fit <- brms::rename_pars(fit)
  class(fit) <- union("statcl_brmsfit", class(fit))
  fit
}

# Users of formulas have not seen the program, and random starts do not suit some families.
with_brm_hint <- function(start, code) {
  withCallingHandlers(code, statcl_error_density = function(e) {
    hint <- if (start == "random") "; 'init = 0' may be a better start than random ones"
    e$message <- paste0(e$message, "\nbrms::make_stancode() shows the program", hint)
    stop(e)
  })
}

# Arguments of brm() that choose how Stan runs, and others for which a name of brm() is wanted.
brm_refused <- c(
  algorithm = "give brms::stancode() of the fit to cl_stan(), whose result cl_vi() takes",
  backend = "cl_use() chooses the engine", opencl = "cl_use() chooses the engine",
  threads = "'cores' is the number of processes", future = "'cores' is the number of processes",
  workers = "'cores' is the number of processes", inits = "its name is 'init'",
  adapt_delta = "give it in 'control', a list", max_treedepth = "give it in 'control', a list",
  fit = "update() of a fit samples the model again", file = "saveRDS() keeps the fit",
  file_refit = "saveRDS() keeps the fit", file_compress = "saveRDS() keeps the fit",
  save_model = "brms::stancode() of the fit is the program",
  stan_model_args = "no program is compiled", empty = "brms::brm() has it",
  rename = "brms::brm() has it")

check_brm_names <- function(names) {
  refused <- intersect(names, names(brm_refused))
  if (length(refused) > 0L) {
    abort_argument(refused[1L], sprintf("cl_brm() has no argument '%s': %s", refused[1L],
                                        brm_refused[[refused[1L]]]))
  }
  if (!requireNamespace("brms", quietly = TRUE)) {
    abort_argument("formula", "cl_brm() needs the package brms, which writes the program")
  }
  unknown <- setdiff(names, c("", names(formals(cl_brm)), names(formals(brms::brm))))
  if (length(unknown) > 0L) {
    abort_argument(unknown[1L], sprintf("neither cl_brm() nor brms::brm() has an argument '%s'",
                                        unknown[1L]))
  }
}

# brm()'s `control`, complete.
brm_control <- function(control) {
  complete <- list(adapt_delta = 0.8, max_treedepth = 10)
  other <- setdiff(names(control), names(complete))
  unnamed <- length(control) > 0L && is.null(names(control))
  if (!is.null(control) && !is.list(control) || length(other) > 0L || unnamed) {
    abort_argument("control", paste0("'control' must be a list of 'adapt_delta' and ",
                                     "'max_treedepth'",
                                     if (length(other) > 0L) sprintf(", not '%s'", other[1L])))
  }
  utils::modifyList(complete, as.list(control))
}

# brm()'s `init` as `init`, `jitter` and `start` of cl_sample().
brm_start <- function(init, dimension) {
  if (is.null(init) || identical(init, "random")) {
    return(list(init = numeric(dimension), jitter = NULL, start = "random"))
  }
  if (identical(init, "0")) init <- 0
  if (is.numeric(init) && length(init) == 1L) {
    check_number(init, "init", 0)
    return(list(init = numeric(dimension), jitter = init, start = "init"))
  }
  if (is.function(init) && length(formals(init)) == 0L) {
    make <- init
    init <- function(chain) make()
  }
  if (!is.list(init) && !is.function(init)) {
    abort_argument("init", paste("'init' must be \"random\", a number, a named list of parameters,",
                                 "a list of such lists, or a function"))
  }
  list(init = init, jitter = 0, start = "init")
}

# The parameters that brms does not keep.
brm_dropped <- function(fit) {
  tryCatch(utils::getFromNamespace("exclude_pars", "brms")(fit), error = function(e) character())
}

# Draws as an object of class "stanfit" of rstan, without a compiled program.
as_stanfit <- function(fit, code, warmup, thin, control, seed, dropped = character()) {
  all <- dimnames(fit$draws)[[3L]]
  kept <- Filter(function(a) !a$name %in% dropped, fit$arguments)
  names <- vapply(kept, `[[`, "", "name")
  dims <- lapply(kept, function(a) {
    if (!is.null(a$dim)) return(as.double(a$dim))
    if (length(a$index) == 1L && all[a$index] == a$name) numeric() else as.double(length(a$index))
  })
  shown <- all[unlist(lapply(kept, `[[`, "index"))]
  n <- as.double(dim(fit$draws)[1L]) # as in rstan's objects
  chains <- as.double(dim(fit$draws)[2L])
  figures <- fit$diagnostics
  of_chain <- function(j) {
    x <- lapply(stats::setNames(shown, shown), function(name) as.vector(fit$draws[, j, name]))
    attr(x, "mean_pars") <- vapply(unname(x), mean, 0)
    x$lp__ <- figures$log_density[, j]
    attr(x, "mean_lp__") <- mean(x$lp__)
    sampler <- lapply(names(stan_names), function(name) as.double(figures[[name]][, j]))
    attr(x, "sampler_params") <- stats::setNames(sampler, stan_names)
    attr(x, "args") <- list(chain_id = j, iter = n * thin + warmup, warmup = warmup, thin = thin,
                            seed = if (!is.null(seed)) as.integer(seed), method = "sampling",
                            algorithm = "NUTS", init = "random", control = control,
                            sampler_t = "NUTS(diag_e)")
    attr(x, "elapsed_time") <- c(warmup = fit$seconds[[j, 1L]],
                                 sample = fit$seconds[[j, 2L]] - fit$seconds[[j, 1L]])
    x
  }
  samples <- lapply(seq_len(chains), of_chain)
  sim <- list(samples = samples, chains = chains, iter = n * thin + warmup, thin = thin,
              warmup = warmup, n_save = rep(n, chains), warmup2 = rep(0, chains),
              permutation = rep(list(seq_len(n)), chains), pars_oi = c(names, "lp__"),
              dims_oi = c(stats::setNames(dims, names), list(lp__ = numeric())),
              fnames_oi = c(shown, "lp__"), n_flatnames = length(shown) + 1L)
  class_of <- function(name) methods::getClass(name, where = asNamespace("rstan"))
  methods::new(class_of("stanfit"), model_name = "statcl", model_pars = sim$pars_oi,
               par_dims = sim$dims_oi, mode = 0L, sim = sim, inits = list(),
               stan_args = lapply(samples, attr, "args"),
               stanmodel = methods::new(class_of("stanmodel"), model_name = "statcl",
                                        model_code = code),
               date = date(), .MISC = new.env(parent = emptyenv()))
}
