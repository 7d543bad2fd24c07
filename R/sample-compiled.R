# Log densities of cl_sample() that can be compiled: transforms, their Jacobians and the density
# become one program of the unconstrained vector, and chains run without R between evaluations.

# ---- the compiled density ------------------------------------------------------------------------

# The program for chain `id` of this job in this process, with its record; NULL if there is none.
# `answer`: the evaluator's result at the unconstrained vector u, with which the program must agree.
job_program <- function(job, u, answer, id = 1L) {
  kept <- job$compiled
  if (!identical(kept$pid, Sys.getpid())) {
    target <- compile_density(job$log_density, job$layout, u, answer, isTRUE(job$batch),
                              job$evaluations)
    kept$shares <- if (is.null(job$devices)) list(target) else share_target(target, job, u, answer)
    kept$pid <- Sys.getpid()
  }
  kept$shares[[(id - 1L) %% length(kept$shares) + 1L]]
}

# A target for each of the job's devices; each has its own memory.
share_target <- function(target, job, u, answer) {
  if (is.null(target)) {
    abort_argument("devices", paste("'devices' needs a density that runs without R, see",
                                    "?cl_sample: use 'workers' for others"))
  }
  lapply(seq_along(job$devices), function(k) {
    share <- share_copy(target, mark_opened(job$devices[k]), length(u))
    both <- .Call(r_target_run, share, u)
    if (!agree(both[1L], answer[[1L]]) || !agree(both[-1L], answer[[2L]])) {
      statcl_abort("density", sprintf("'log_density' has another value on device %s",
                                      device_table()$id[job$devices[k] + 1L]),
                   argument = "log_density")
    }
    c(share, share = k)
  })
}

share_copy <- function(target, where, length) {
  make <- function(of, where) {
    .Call(r_program_make, where, of$nodes, of$data, as.double(length), of$output)
  }
  state <- target$state
  if (is.null(state)) {
    if (where != target$where) target$program <- make(target, where)
    return(target)
  }
  if (!is.null(target$rest)) target$program <- make(target$rest, -1L)
  at <- device_table()[where + 1L, ]
  if (!identical(.Call(r_glm_info, state$handle)$device, sprintf("%s (%s)", at$name, at$id))) {
    x <- if (is_cl(state$x)) as.matrix(state$x) else state$x
    target$likelihood <- .Call(r_glm_new, state$family, state$y, state$trials, state$weights, x,
                               where)
  }
  target
}

compile_density <- function(f, layout, u, answer, batch = FALSE, evaluations = NULL) {
  tryCatch({
    target <- likelihood_target(f, layout, u, batch)
    if (is.null(target) && !batch_reads_once(f, batch)) {
      target <- density_program(f, layout, u, evaluations)
    }
    if (is.null(target)) return(NULL)
    both <- .Call(r_target_run, target, u)
    if (agree(both[1L], answer[[1L]]) && agree(both[-1L], answer[[2L]])) target
  }, error = function(e) NULL)
}

# Whether one pass over the data of a likelihood can serve all chains; a program needs one each.
batch_reads_once <- function(f, batch) {
  if (batch && inherits(f, "cl_log_posterior")) {
    return(any(vapply(environment(f)$terms, batch_reads_once, NA, batch)))
  }
  batch && inherits(f, "cl_likelihood")
}

# The core's target for a likelihood on a device or in lockstep, with a program of its priors; NULL
# if the density is not such a sum.
likelihood_target <- function(f, layout, u, batch) {
  terms <- if (inherits(f, "cl_log_posterior")) environment(f)$terms else list(f)
  own <- vapply(terms, inherits, NA, "cl_likelihood")
  if (sum(own) != 1L || is.null(layout$arguments)) return(NULL)
  state <- environment(terms[[which(own)]])
  at <- likelihood_places(terms[[which(own)]], layout)
  info <- .Call(r_glm_info, state$handle)
  if (is.null(at) || is.null(info) || (info$host && !batch)) return(NULL)
  names <- vapply(layout$arguments, `[[`, "", "name")
  others <- terms[!own]
  on_host <- vapply(others, function(t) inherits(t, "formula") || identical(density_engine(t), -1L),
                    NA)
  if (!all(on_host)) return(NULL)
  overrides <- do.call(c, c(list(list()), lapply(others, density_overrides)))
  rest <- if (length(others) + length(layout$blocks) > 0L) {
    trace_program(lapply(others, plain_term, names), layout, u, overrides, -1L)
  }
  list(program = rest$program, likelihood = state$handle, at = at,
       priors = if (!is.null(rest)) prior_slopes(rest, u), rows = NROW(state$x), state = state,
       rest = rest)
}

# Priors that the steps of trajectories on a device can follow (kernels/include/leapfrog.h): those
# of independent parameters x with the derivative (m - x) / (a + b (x - m)^2), as of sums of normal
# densities (b = 0), or of one of Student's t. A row m, a, b for each, from derivatives at some
# points; at each point of a trajectory the core compares them with the program. NULL: there are
# others.
prior_slopes <- function(rest, u) {
  slope <- function(x) .Call(r_target_run, rest, x)[-1L]
  off <- c(-4, -1.5, -0.5, 1, 2.5, 7)
  at <- vapply(off, function(d) slope(u + d), u)
  dim(at) <- c(length(u), length(off))
  if (!all(is.finite(at))) return(NULL)
  size <- do.call(pmax, asplit(abs(at), 2L))
  same <- function(x, y, size) isTRUE(all(abs(x - y) <= 1e-9 * pmax(size, abs(y))))
  all <- vapply(seq_along(u), function(i) {
    g <- at[i, ]
    if (all(g == 0)) return(c(0, Inf, 0))
    a <- -diff(range(off)) / (g[length(g)] - g[1L])
    if (same(g[1L] + (off[1L] - off) / a, g, size[i])) return(c(u[i] + off[1L] + a * g[1L], a, 0))
    # off = m - g (a + b m^2) + 2 b m g off - b g off^2
    k <- tryCatch(qr.solve(cbind(1, -g, g * off, -g * off^2), off), error = function(e) NULL)
    if (is.null(k)) rep(NaN, 3L) else c(u[i] + k[1L], k[2L] - k[4L] * k[1L]^2, k[4L])
  }, numeric(3L))
  fits <- function(x) {
    off <- x - all[1L, ]
    same(-off / (all[2L, ] + all[3L, ] * off^2), slope(x), size)
  }
  near <- all[1L, ] + sqrt(abs(all[2L, ]))
  near[is.infinite(near)] <- u[is.infinite(near)]
  if (fits(u + 3 * sin(seq_along(u)^2)) && fits(near)) t(all)
}

# Positions of alpha, beta and sigma or phi in the unconstrained vector; NULL if one of them is
# transformed, except by the logarithm of sigma or phi.
likelihood_places <- function(f, layout) {
  state <- environment(f)
  if (has_classes(state$family)) return(NULL)
  names <- vapply(layout$arguments, `[[`, "", "name")
  aux <- aux_parameter(state$family)
  sizes <- c(1L, NCOL(state$x), 1L)
  logged <- FALSE
  places <- integer()
  for (k in 1:3) {
    a <- match(c("alpha", "beta", aux)[k], names, incomparables = NA)
    index <- if (is.na(a)) integer() else layout$arguments[[a]]$index
    free <- match(index, layout$free_x)
    b <- Find(function(b) identical(as.integer(b$x), as.integer(index)), layout$blocks)
    if (k == 3L && !is.null(b) && identical(c(b$lower, b$upper), c(0, Inf))) {
      logged <- TRUE
      free <- NULL
      index <- b$u
    } else {
      index <- layout$free_u[free]
    }
    if (anyNA(c(free, index)) || !length(index) %in% c(if (k == 1L) 0L, if (k != 3L || !is.na(aux))
      sizes[k] else 0L)) return(NULL)
    places <- c(places, if (length(index) > 0L) index[1L] - 1L else 0L, length(index))
  }
  as.integer(c(layout$dimension, places, logged))
}

agree <- function(x, y) isTRUE(max(abs(x - y)) <= 1e-7 * (1 + max(abs(y))))

density_program <- function(f, layout, u, evaluations = NULL) {
  where <- density_engine(f, evaluations)
  if (is.null(where)) return(NULL)
  session$notes$density <- where
  state <- environment(f)
  if (inherits(f, "cl_gradient") && length(layout$blocks) == 0L && !is.null(state$program) &&
        is.null(program_order(state, layout))) {
    if (state$where != where) move_program(state, where)
    return(c(list(program = state$program, likelihood = NULL, at = NULL, where = state$where),
             state$known[[1L]][c("nodes", "data", "output")]))
  }
  terms <- density_terms(f, layout)
  overrides <- density_overrides(f)
  if (is.null(terms) || anyDuplicated(names(overrides)) > 0L) return(NULL)
  trace_program(terms, layout, u, overrides, where, is_rolled(f))
}

# list(program, likelihood, at) as the core reads a target, with the record of the program.
trace_program <- function(terms, layout, u, overrides, where, roll = TRUE) {
  model <- unconstrained_model(terms, layout)
  trace <- trace_function(model, list(u = u), overrides = overrides, more = transform_masks(layout))
  output <- model_output(model, trace)
  if (is.null(output)) return(NULL)
  nodes <- node_columns(trace$tape, roll)
  program <- .Call(r_program_make, where, nodes, trace$tape$data, as.double(length(u)), output)
  list(program = program, likelihood = NULL, at = NULL, where = where, nodes = nodes,
       data = trace$tape$data, output = output)
}

most_copied <- 2^28 # bytes of data that are copied for the program

# Where the program runs: NULL if it cannot be compiled, or its data are too large for another copy
# of them. `evaluations`: how many will follow, for a compiled function, whose engine is chosen
# again; NULL: where it is evaluated now.
density_engine <- function(f, evaluations = NULL) {
  state <- environment(f)
  if (inherits(f, "cl_gradient")) {
    if (state$retrace || is.null(state$program)) return(NULL)
    bytes <- .Call(r_program_facts, state$program)[["bytes"]]
    if (bytes > most_copied) return(NULL)
    if (is.null(state$cost) || is.null(evaluations)) return(state$where)
    return(sampler_engine(state, evaluations))
  }
  if (inherits(f, "cl_likelihood")) {
    info <- .Call(r_glm_info, state$handle)
    return(if (isTRUE(info$host) && 8 * length(state$x) <= most_copied) -1L)
  }
  if (!inherits(f, "cl_log_posterior")) return(NULL)
  # formulas run on the engine of the other terms
  others <- Filter(function(term) !inherits(term, "formula"), state$terms)
  if (length(others) == 0L) return(-1L)
  engines <- lapply(others, density_engine, evaluations)
  if (any(lengths(engines) == 0L) || length(unique(engines)) > 1L) NULL else engines[[1L]]
}

# Before so many evaluations, in all, of a sampler of so many chains, which stay where they begin:
# takes likelihoods to the device if that pays, and back if samplers are slower there.
settle_densities <- function(f, evaluations, chains = 1L) {
  state <- environment(f)
  if (inherits(f, "cl_gradient")) {
    state$stays <- is_paced_slower(state$paces, chains)
    state$counted <- FALSE
  }
  settle <- if (inherits(f, "cl_likelihood") && is.environment(state$engine)) state$engine$settle
  if (is.function(settle)) { # others are refused later
    settle(evaluations, mapped_vectors(list(likelihood = f, rows = NROW(state$x)), chains))
  }
  if (inherits(f, "cl_log_posterior")) {
    for (term in state$terms) settle_densities(term, evaluations, chains)
  }
}

# After a sampler of so many chains, with the seconds of all and the evaluations of each.
pace_densities <- function(f, seconds, evaluations, chains) {
  state <- environment(f)
  where <- if (is.null(session$notes$density)) state$where else session$notes$density
  if (inherits(f, "cl_gradient") && !is.null(where)) {
    state$paces <- add_pace(state$paces, where, chains, seconds, evaluations)
  } else if (inherits(f, "cl_likelihood") && is.function(state$engine$pace)) {
    vectors <- mapped_vectors(list(likelihood = f, rows = NROW(state$x)), chains)
    state$engine$pace(seconds, evaluations, vectors)
  } else if (inherits(f, "cl_log_posterior")) {
    for (term in state$terms) pace_densities(term, seconds, evaluations, chains)
  }
}

# The engine of a compiled function for so many evaluations, those of all chains. What the host
# takes longer for these than a device counts before the next sampler, as for evaluations from R:
# after some samplers the function moves. A sampler may ask twice, and counts once.
sampler_engine <- function(state, evaluations) {
  auto <- session$engine == "auto"
  if (auto && forked()) return(state$where) # devices are the parent's
  if (auto && isTRUE(state$stays) && !is_asked_for("program")) return(-1L)
  choice <- choose_engine(state$cost, evaluations, ahead = TRUE)
  if (choice$where >= 0L || choice$gain == 0) return(choice$where)
  if (state$where < 0L && state$gain > 0 && !is.null(state$at)) {
    count_evaluation(state, state$at)
    if (!isTRUE(state$counted)) state$saved <- state$saved + 1e-6 * choice$gain * evaluations
    state$counted <- TRUE
  }
  state$where
}

# Which engine evaluates the density, and why (R/base-engine-text.R): where density_program() put it
# since the job began, else where it is now.
density_note <- function(f) {
  state <- environment(f)
  if (inherits(f, "cl_gradient")) {
    where <- if (is.null(session$notes$density)) state$where else session$notes$density
    if (!is.null(where)) return(program_note(state$cost, where, state$gain))
  }
  if (inherits(f, "cl_likelihood")) return(likelihood_note(state))
  if (inherits(f, "cl_log_posterior")) {
    terms <- Filter(function(term) !inherits(term, "formula"), state$terms)
    if (length(terms) == 0L) return(engine_note("none"))
    return(density_note(terms[[which.max(vapply(terms, likelihood_size, 0))]]))
  }
  list(where = "host", why = "function")
}

# Functions of the list of constrained parameters that can be traced, whose sum is the density.
density_terms <- function(f, layout) {
  if (is.null(layout$arguments)) {
    if (!inherits(f, "cl_gradient")) return(NULL)
    g <- environment(f)$f
    return(list(function(parameters) g(parameters[[1L]])))
  }
  names <- vapply(layout$arguments, `[[`, "", "name")
  terms <- if (inherits(f, "cl_log_posterior")) environment(f)$terms else list(f)
  lapply(terms, plain_term, names)
}

# Whether loops of the density are rolled.
is_rolled <- function(f) {
  if (inherits(f, "cl_gradient")) return(environment(f)$roll)
  !inherits(f, "cl_log_posterior") || all(vapply(environment(f)$terms, is_rolled, NA))
}

# The data that update() has replaced, of all compiled functions in the density.
density_overrides <- function(f) {
  if (inherits(f, "cl_gradient")) return(environment(f)$overrides)
  if (inherits(f, "cl_log_posterior")) {
    do.call(c, c(list(list()), lapply(environment(f)$terms, density_overrides)))
  }
}

# The functions of this package that transforms call, for traced values.
transform_masks <- function(layout) {
  called <- unlist(lapply(layout$blocks, function(b) c(names_in(b$value), names_in(b$jacobian))))
  used <- c("corr_factor", "corr_factor_jacobian")
  lapply(mget(used[used %in% called], envir = topenv()), looking_up)
}

plain_term <- function(term, names) {
  listed <- FALSE
  if (inherits(term, "formula")) {
    used <- used_parameters(term, names)
    g <- as.function(c(stats::setNames(rep(list(quote(expr = )), length(used)), used),
                       call("sum", term[[2L]])), envir = environment(term))
  } else if (inherits(term, "cl_likelihood")) {
    used <- intersect(names, names(formals(term)))
    g <- traced_likelihood(term)
  } else {
    state <- environment(term)
    known <- gradient_names(term, names)
    used <- if ("..." %in% known) names else intersect(names, known)
    g <- state$f
    listed <- isTRUE(state$listed)
  }
  function(parameters) {
    given <- parameters[used]
    if (listed) g(given) else do.call("g", given, quote = TRUE)
  }
}

# The log density as a function of the unconstrained vector, to be traced.
unconstrained_model <- function(densities, layout) {
  blocks <- layout$blocks
  values <- lapply(blocks, `[[`, "value")
  jacobians <- lapply(blocks, `[[`, "jacobian")
  flags <- lapply(blocks, `[[`, "flags")
  parts <- lapply(blocks, `[[`, "u")
  assemble <- if (is.null(layout$arguments)) vector_assembler(layout) else list_assembler(layout)
  function(u) {
    total <- 0
    constrained <- vector("list", length(values))
    for (k in seq_along(values)) {
      part <- u[parts[[k]]]
      value <- values[[k]](part)
      constrained[[k]] <- value
      # log(0) where rounding has put a value on its bound: zero density
      total <- total + jacobians[[k]](part, value) + sum(log(flags[[k]](value)))
    }
    parameters <- assemble(u, constrained)
    for (k in seq_along(densities)) total <- total + densities[[k]](parameters)
    total
  }
}

# function(u, constrained) giving the list of parameters; `constrained`: the values of the blocks.
vector_assembler <- function(layout) {
  free <- layout$free_u
  order <- order(c(layout$free_x, unlist(lapply(layout$blocks, `[[`, "x"))))
  function(u, constrained) {
    x <- u[free]
    for (value in constrained) x <- c(x, value)
    list(x[order])
  }
}

# A parameter has a block of its own, or none.
list_assembler <- function(layout) {
  arguments <- layout$arguments
  names <- vapply(arguments, `[[`, "", "name")
  firsts <- vapply(layout$blocks, function(b) b$x[1L], 0)
  block <- vapply(arguments, function(a) match(a$index[1L], firsts), 0L)
  free <- lapply(arguments, function(a) layout$free_u[match(a$index, layout$free_x)])
  function(u, constrained) {
    parameters <- lapply(seq_along(arguments), function(i) {
      value <- if (is.na(block[i])) u[free[[i]]] else constrained[[block[i]]]
      as_argument(value, arguments[[i]])
    })
    names(parameters) <- names
    parameters
  }
}

# ---- chains --------------------------------------------------------------------------------------

# run_chain() for chains with a program: on threads, or in lockstep; devices run at the same time.
# It returns for reports, and for points whose value is NaN, which R judges.
run_compiled <- function(chains, evaluate, until = Inf, lockstep = FALSE) {
  place <- function(chains) vapply(chains, function(s) max(1L, s$program$share), 0L)
  most <- tabulate(place(chains))
  control <- chains[[1L]]$control
  running <- Filter(function(s) !is.null(s$at) && !s$waits, chains)
  repeat {
    if (length(running) == 0L) {
      running <- Filter(function(s) !is.null(s$at), chains)
      if (length(running) == 0L) return(invisible())
      pool_chains(running)
    }
    running <- running[order(place(running))]
    shares <- split(running, place(running))
    targets <- lapply(shares, function(share) share[[1L]]$program)
    done <- vapply(running, `[[`, 0L, "iteration_done")
    vectors <- rep(1L, length(shares))
    if (lockstep) {
      vectors <- mapply(mapped_vectors, targets, lengths(shares), most[as.integer(names(shares))])
    }
    # In lockstep a device whose program has one chain fewer waits for the others.
    seconds <- if (length(shares) > 1L) 0.05 else report_seconds
    stops <- .Call(r_chains_run, lapply(running, `[[`, "native"), unname(targets),
                   lengths(shares, FALSE), as.integer(vectors),
                   as.integer(next_multiple(done, control)),
                   min(seconds, until - seconds_now()))
    for (i in seq_along(running)) judge_compiled(running[[i]], stops[i], done[i], evaluate)
    keep_checkpoint(chains[[1L]]$checkpoint)
    running <- Filter(function(s) !is.null(s$at) && !s$waits, running)
    if (seconds_now() > until) return(invisible())
  }
}

judge_compiled <- function(s, stop, reported, evaluate) {
  ended <- judge_stop(s, stop)
  if (!is.null(s$progress) && s$iteration_done > reported) {
    s$started <- seconds_now()
    report(s)
  }
  if (ended) {
    s$at <- NULL
  } else if (stop == 2L) {
    answer <- evaluate_once(s, function(u) {
      if (!is.null(s$program$share)) .Call(r_target_run, s$program, u) # the device may have failed
      evaluate(u)
    })
    .Call(r_chain_step, s$native, answer[[1L]], answer[[2L]], 0L)
  }
}

# The number of points that the program evaluates at once for `count` of `most` chains; a program is
# compiled for each such number, so there are few.
mapped_vectors <- function(of, count, most) {
  if (count == 1L) return(1L)
  # Some kernels keep a number for each row and point.
  if (!is.null(of$likelihood)) return(min(count, max(most_vectors, min(128, 2^24 %/% of$rows))))
  sizes <- halves_of(min(most, most_vectors))
  size <- if (count > sizes[1L]) sizes[1L] else min(sizes[sizes >= count])
  .Call(r_program_map, of$program, of$nodes, of$data, of$output, size)
  size
}
