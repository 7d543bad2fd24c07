# The sampler of cl_sample() in R, as a readable reference: its draws are those of src/sample, bit
# for bit. One Markov chain is a state machine that requests evaluations of the log density.
#
# A chain is an environment `s`. `s$at` is the next point to evaluate, NULL at the end;
# chain_advance(s, value, gradient) takes the result and sets the next `s$at`. So one driver can
# evaluate several chains together, stop between any two evaluations and continue later.
#
# The momentum is kept in units in which it is standard normal: p = L' (usual momentum) with the
# inverse mass matrix L L', diagonal, dense or of low rank plus diagonal. A leapfrog step of size e
# is then, with C = e L,
#   p <- p + C' gradient / 2;  q <- q + C p;  p <- p + C' gradient / 2,
# and the products of the U-turn criterion need no mass matrix.
#
# NUTS is the multinomial sampler with the generalised criterion (Betancourt, 2017,
# arXiv:1701.02434, appendix A), with the further checks across the halves of each tree that Stan
# has had since 2.21. The recursion is unrolled: `nodes` hold the finished subtrees on the left of
# the point reached, one for each level, as the ones in the binary digits of the number of points.

largest_error <- 1000 # energy error from which on a trajectory counts as divergent

# `start`: unconstrained. `control`: see sample_control(). `stream`: see new_stream().
reference_chain <- function(start, control, stream, id = 1L) {
  s <- new.env(parent = emptyenv())
  s$id <- id
  s$control <- control
  s$stream <- stream
  s$q <- start
  set_metric(s, control$inverse_metric)
  s$step_size <- if (is.null(control$step_size)) 1 else control$step_size
  s$adapt <- new_adaptation(control, length(start))
  s$iteration <- 0L      # the one in progress
  s$iteration_done <- 0L
  s$waits <- FALSE     # for the other chains, with a pooled metric
  s$rejections <- 0L # points of density zero
  s$failures <- c(0L, 0L) # those where it could not be evaluated: of the warm-up, and after it
  s$evaluations <- 0
  s$records <- new_records(control)
  s$nodes <- vector("list", control$max_depth + 1L)
  s$receive <- receive_first
  s$at <- start
  s
}

# `scale` of the momentum: one number, or one for each parameter; 1 for a metric that is not
# diagonal.
set_metric <- function(s, inverse) {
  s$scale <- if (s$control$metric %in% c("dense", "low-rank")) 1 else sqrt(inverse)
  if (s$control$metric == "low-rank") s$low_rank <- as_low_rank(inverse, length(s$q))
  s$factor <- if (s$control$metric == "dense") lower_factor(inverse)
}

# Of the numbers in control$inverse_metric.
as_low_rank <- function(x, d) {
  if (is.list(x)) return(x)
  rank <- (length(x) - d) / (d + 1)
  list(scale = sqrt(x[seq_len(d)]), values = x[seq_len(rank) + d],
       vectors = matrix(x[-seq_len(d + rank)], d))
}

push <- function(s, p) {
  if (!is.null(s$low_rank)) return(low_rank_times(s$low_rank, p))
  if (is.null(s$factor)) p else factor_times(s$factor, p)
}

pull <- function(s, g) {
  if (!is.null(s$low_rank)) return(low_rank_times(s$low_rank, g, transposed = TRUE))
  if (is.null(s$factor)) g else factor_times(s$factor, g, transposed = TRUE)
}

chain_advance <- function(s, value, gradient) s$at <- s$receive(s, value, gradient)

receive_first <- function(s, value, gradient) {
  s$lp <- value
  s$g <- gradient
  if (s$control$warmup > 0L || is.null(s$control$step_size)) return(begin_search(s))
  begin_transition(s)
}

# ---- the first step size: doubled or halved until a step's acceptance crosses 0.8 ----------------

begin_search <- function(s) {
  s$doubling <- NA
  s$receive <- receive_search
  search_step(s)
}

search_step <- function(s) {
  p <- s$stream$normal(length(s$q))
  s$energy0 <- 0.5 * sum(p * p) - s$lp
  step <- s$step_size * s$scale
  s$half <- 0.5 * step
  s$p <- p + s$half * pull(s, s$g)
  s$q + step * push(s, s$p)
}

receive_search <- function(s, value, gradient) {
  s$evaluations <- s$evaluations + 1
  p <- s$p + s$half * pull(s, gradient)
  change <- s$energy0 - 0.5 * sum(p * p) + value
  good <- !is.na(change) && change > log(0.8)
  if (is.na(s$doubling)) s$doubling <- good
  if (good != s$doubling) {
    restart_averaging(s$adapt, s$step_size, s$control$warmup - s$iteration)
    return(begin_transition(s))
  }
  s$step_size <- s$step_size * if (good) 2 else 0.5
  if (s$step_size > 1e7) abort_flat(s)
  if (s$step_size < 1e-300) abort_steep(s)
  search_step(s)
}

abort_flat <- function(s) stop("no step size is too large")

abort_steep <- function(s) stop("no step size is small enough")

# ---- transitions --------------------------------------------------------------------------------

begin_transition <- function(s) {
  s$iteration <- s$iteration + 1L
  p <- s$stream$normal(length(s$q))
  s$energy0 <- s$energy1 <- 0.5 * sum(p * p) - s$lp
  s$full <- s$step_size * s$scale
  s$leapfrog <- 0L
  s$metropolis <- 0
  s$divergent <- FALSE
  s$depth <- 0L
  if (s$control$method == "hmc") return(begin_static(s, p))
  end <- list(s$q, p, s$g)
  s$ends <- list(end, end)
  s$rho <- p
  s$log_weight <- 0
  s$receive <- receive_leaf
  begin_doubling(s)
}

# Doubles the trajectory on one side.
begin_doubling <- function(s) {
  s$size <- size <- 2L^s$depth
  u <- s$stream$uniform(size + 2L)
  side <- if (u[1L] > 0.5) 2L else 1L
  s$side <- side
  s$log_u <- log(u[-1L])
  s$step <- step <- if (side == 2L) s$full else -s$full
  s$half <- half <- 0.5 * step
  s$leaf <- 0L
  s$tree_weight <- -Inf
  end <- s$ends[[side]]
  s$p <- p <- end[[2L]] + half * pull(s, end[[3L]])
  end[[1L]] + step * push(s, p)
}

receive_leaf <- function(s, value, gradient) {
  kick <- s$half * pull(s, gradient)
  p <- s$p + kick
  energy <- 0.5 * sum(p * p) - value
  weight <- s$energy0 - energy
  if (is.na(weight)) weight <- -Inf
  s$leaf <- leaf <- s$leaf + 1L
  s$leapfrog <- s$leapfrog + 1L
  s$metropolis <- s$metropolis + if (weight > 0) 1 else exp(weight)
  if (weight < -largest_error) {
    s$divergent <- TRUE
    return(end_transition(s))
  }
  # Each leaf replaces the proposal of the subtree with probability proportional to its weight.
  sum <- log_add(s$tree_weight, weight)
  s$tree_weight <- sum
  if (s$log_u[leaf] <= weight - sum) s$proposal <- list(s$at, value, gradient, energy)
  first <- rho <- p
  level <- 1L
  rest <- leaf
  while (rest %% 2L == 0L) {
    left <- s$nodes[[level]]
    if (makes_u_turn(left[[1L]], left[[2L]], left[[3L]], first, p, rho, level == 1L)) {
      return(end_transition(s))
    }
    first <- left[[1L]]
    rho <- left[[3L]] + rho
    level <- level + 1L
    rest <- rest %/% 2L
  }
  if (leaf == s$size) return(end_doubling(s, first, p, rho, gradient))
  s$nodes[[level]] <- list(first, p, rho)
  s$p <- p <- p + kick
  s$at + s$step * push(s, p)
}

# Whether two adjacent trajectories make a U-turn: together, and each with the first point of the
# other. Momenta at their ends and sums of momenta. For single points the three checks are one.
makes_u_turn <- function(first1, last1, rho1, first2, last2, rho2, points) {
  rho <- rho1 + rho2
  if (!(sum(first1 * rho) > 0 && sum(last2 * rho) > 0)) return(TRUE)
  if (points) return(FALSE)
  rho <- rho1 + first2
  if (!(sum(first1 * rho) > 0 && sum(first2 * rho) > 0)) return(TRUE)
  rho <- last1 + rho2
  !(sum(last1 * rho) > 0 && sum(last2 * rho) > 0)
}

end_doubling <- function(s, first, last, rho, gradient) {
  side <- s$side
  near <- s$ends[[side]][[2L]]
  far <- s$ends[[3L - side]][[2L]]
  if (s$log_u[s$size + 1L] < s$tree_weight - s$log_weight) {
    s$q <- s$proposal[[1L]]
    s$lp <- s$proposal[[2L]]
    s$g <- s$proposal[[3L]]
    s$energy1 <- s$proposal[[4L]]
  }
  s$log_weight <- log_add(s$log_weight, s$tree_weight)
  s$depth <- s$depth + 1L
  if (s$depth >= s$control$max_depth ||
        makes_u_turn(far, near, s$rho, first, last, rho, s$size == 1L)) {
    return(end_transition(s))
  }
  s$rho <- s$rho + rho
  s$ends[[side]] <- list(s$at, last, gradient)
  begin_doubling(s)
}

log_add <- function(a, b) {
  if (a > b) a + log1p(exp(b - a)) else if (b == -Inf) b else b + log1p(exp(a - b))
}

# ---- HMC with a fixed number of steps -----------------------------------------------------------

begin_static <- function(s, p) {
  s$half <- 0.5 * s$full
  s$p <- p + s$half * pull(s, s$g)
  s$receive <- receive_static
  s$q + s$full * push(s, s$p)
}

receive_static <- function(s, value, gradient) {
  p <- s$p + s$half * pull(s, gradient)
  s$leapfrog <- s$leapfrog + 1L
  energy <- 0.5 * sum(p * p) - value
  weight <- s$energy0 - energy
  if (is.na(weight)) weight <- -Inf
  s$divergent <- weight < -largest_error
  if (!s$divergent && s$leapfrog < s$control$leapfrogs) {
    s$p <- p + s$half * pull(s, gradient)
    return(s$at + s$full * push(s, s$p))
  }
  s$metropolis <- s$leapfrog * min(1, exp(weight))
  if (log(s$stream$uniform(1L)) < weight) {
    s$q <- s$at
    s$lp <- value
    s$g <- gradient
    s$energy1 <- energy
  }
  end_transition(s)
}

# ---- the end of a transition --------------------------------------------------------------------

end_transition <- function(s) {
  i <- s$iteration
  accept <- s$metropolis / s$leapfrog
  s$records$add(i, s$q, c(accept, s$step_size, s$depth, s$leapfrog, s$divergent, s$energy1, s$lp))
  s$evaluations <- s$evaluations + s$leapfrog
  s$iteration_done <- i
  ends <- FALSE
  if (i <= s$control$warmup) {
    s$step_size <- adapt_step(s$adapt, accept)
    ends <- observe(s$adapt, i, s$q, s$g)
    if (i == s$control$warmup) {
      s$step_size <- final_step(s$adapt)
    }
  }
  if (i == s$control$warmup + s$control$iter) return(NULL)
  if (!ends) return(begin_transition(s))
  if (s$control$pooled) {
    s$waits <- TRUE
    return(s$q)
  }
  end_window(s, window_inverse(s$adapt))
}

end_window <- function(s, inverse) {
  set_metric(s, inverse)
  clear_moments(s$adapt, length(s$q))
  begin_search(s)
}

# Chains that wait for each other go on with the metric of all windows.
pool_reference <- function(chains) {
  count <- length(chains)
  for (k in seq_len(count - 1L)) {
    merge_windows(chains[[1L]]$adapt, chains[[k + 1L]]$adapt, k, count)
  }
  inverse <- window_inverse(chains[[1L]]$adapt)
  for (s in chains) {
    s$waits <- FALSE
    s$at <- end_window(s, inverse)
  }
}

# ---- what is kept -------------------------------------------------------------------------------

# Draws and diagnostics of all iterations, in a closure, because assigning to an element of a vector
# in an environment copies the vector.
new_records <- function(control) {
  total <- control$warmup + control$iter
  first <- if (control$save_warmup) 1L else control$warmup + 1L
  draws <- vector("list", total)
  figures <- matrix(NA_real_, total, length(record_names), dimnames = list(NULL, record_names))
  list(add = function(i, q, row) {
         if (i >= first) draws[[i]] <<- q
         figures[i, ] <<- row
       },
       draws = function() draws, figures = function() figures)
}

# ---- a run --------------------------------------------------------------------------------------

# cl_sample() with chains in R.
sample_in_r <- function(...) {
  with_functions(list(run_in_turn = run_reference, run_batch = run_reference), cl_sample(...))
}

run_reference <- function(job) {
  evaluate <- make_evaluator(job$log_density, job$layout, job$control$nan)
  answer_at <- function(u) {
    rejected <- function(e) list(NaN, NULL)
    tryCatch(evaluate(u), statcl_error_not_pd = rejected, statcl_error_singular = rejected,
             statcl_error_nonfinite = rejected)
  }
  run <- function(s) {
    while (!is.null(s$at) && !s$waits) {
      answer <- answer_at(s$at)
      if (is.null(answer[[2L]])) {
        s$rejections <- s$rejections + 1L
        phase <- 1L + (s$iteration_done >= s$control$warmup)
        s$failures[phase] <- s$failures[phase] + is.nan(answer[[1L]])
        answer <- list(-Inf, numeric(length(s$q)))
      }
      chain_advance(s, answer[[1L]], answer[[2L]])
    }
  }
  chains <- lapply(seq_along(job$points), function(id) reference_start(job, id, answer_at))
  for (s in chains) run(s)
  while (chains[[1L]]$waits) {
    pool_reference(chains)
    for (s in chains) run(s)
  }
  result <- collect_draws(job, lapply(chains, reference_result), complete = TRUE)
  warn_problems(result)
  result
}

reference_start <- function(job, id, answer_at) {
  stream <- new_stream(job$states[[id]])
  s <- reference_chain(job$points[[id]], job$control, stream, id)
  for (i in seq_len(100L)) {
    s$at <- s$q <- job$points[[id]] + job$jitter * (2 * stream$uniform(length(s$at)) - 1)
    answer <- answer_at(s$at)
    if (!is.null(answer[[2L]])) break
  }
  chain_advance(s, answer[[1L]], answer[[2L]])
  s
}

reference_result <- function(s) {
  if (!is.null(s$low_rank)) s$scale <- s$low_rank$scale
  c(mget(c("id", "iteration_done", "rejections", "failures", "evaluations", "step_size", "scale",
         "factor"), envir = s),
    if (!is.null(s$low_rank)) s$low_rank[c("values", "vectors")],
    list(elapsed = 0, warmup_seconds = NA_real_, figures = s$records$figures(),
         draws = matrix(unlist(s$records$draws()), length(s$q))))
}
