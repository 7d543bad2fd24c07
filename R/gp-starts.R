# Where the search of a fit starts: points spread over the ranges of the parameters, periods of the
# periodogram, and points around an optimum from which there may be a better one; and how many.

# The schedule of a search: the steps of nlminb() from each starting point, from the better ones
# (`middle`), from the best of these (`last`), and from points around the best one. A few steps
# separate bad starts from good ones but do not rank the good ones, so stages have fewer points and
# more steps each. A likelihood with a period has dozens of optima, and that of a Toeplitz matrix
# takes little time: `points` starts, of which the share `middle` and the share `last` continue.
# For other likelihoods `starts` determines the points, see search_trials(). `inputs` are further
# points with many inputs. The numbers were found by trial: bench/gp-optima.R halves and doubles
# each of them and counts the fits that miss the best optimum, of 115; gp-designs.R covers `inputs`.
# Of the usual schedule, `start_steps` is the only number that matters there: 3 fits miss it with 2
# steps, 1 with 4 and none with 8; each other number, halved or doubled, leaves that 1. Of the one
# for Toeplitz matrices, 7 miss it with half of `period_points`, 6 and 5 with half and twice
# `start_steps`, and 1 with twice `period_points` or either change of `points`. The distances
# (`apart`) have joined the list since, and are not in these counts.
#
# A point that is nearer to a better one than a distance does not continue (apart_rows()). Most
# parameters are logarithms there. Points that are screened keep a factor of 3 between them
# (`screen_apart`; 1.6 for Toeplitz matrices, as periods are close to each other), which spreads few
# starts over a range. After some steps, points within 10% of each other (`start_apart`) have met,
# and one of them is enough; before the few long searches, points within 35% (`last_apart`).
search_effort <- list(
  usual = list(start_steps = 4L, middle_steps = 6L, last_points = 3L, last_steps = 30L,
               around_points = 3L, around_steps = 15L, inputs_steps = 40L,
               inputs_last_steps = 100L, screen_apart = 1.2, start_apart = 0.1, last_apart = 0.3),
  toeplitz = list(points = 40L, period_points = 320L, start_steps = 8L, middle = 0.3,
                  middle_steps = 25L, last = 0.075, last_steps = 80L, around_points = 20L,
                  around_steps = 10L, around_last_points = 5L, screen_apart = 0.5,
                  start_apart = 0.1))

# Rows of a subset that finds the region of an optimum: it shows lengthscales down to some hundredth
# of the range, and its likelihood takes a few milliseconds.
rough_size <- 250L

# Whether a subset of this size saves enough: time grows with the cube of the size, here by 3.4.
has_subset <- function(n, size) n > 1.5 * size

# Multiples of it modulo 1 fill the unit interval evenly, and coincide with no period.
golden_ratio <- (sqrt(5) - 1) / 2

# Points that fill the unit cube evenly, one a row (Roberts' additive recurrence).
even_points <- function(n, d) {
  root <- stats::uniroot(function(g) g^(d + 1) - g - 1, c(1, 2), tol = 1e-14)$root
  (0.5 + outer(seq_len(n) - 1, root^-seq_len(d))) %% 1
}

# Starting points on the scale of the search, one in each row: the user's first, then `count` spread
# points. Periods are taken in turn from the guesses; every second value of a parameter of k_user()
# is that of the kernel.
search_design <- function(space, count) {
  free <- which(space$free)
  u <- even_points(count, length(free))
  points <- matrix(0, count, nrow(space))
  block <- 1L # so that all pairs of guesses of two parameters occur
  for (k in seq_along(free)) {
    s <- space[free[k], ]
    low <- max(min(s$from, s$high), s$low)
    high <- max(min(s$to, s$high), s$low)
    spread <- if (s$log) low^(1 - u[, k]) * high^u[, k] else low + (high - low) * u[, k]
    guess <- s$guess[[1L]]
    if (length(guess) > 0L) {
      at <- 1L + ((seq_len(count) - 1L) %/% block) %% length(guess)
      spread <- ifelse(is.na(guess[at]), spread, pmin(pmax(guess[at], s$low), s$high))
      block <- block * length(guess)
    }
    points[, free[k]] <- spread
  }
  points <- t(apply(points, 1L, function(p) search_point(space, p)))
  if (length(free) == 1L) points <- t(points)
  start <- search_start(space, points[1L, ])
  rbind(start, points, deparse.level = 0)
}

# Whether the inputs of each free parameter can be without effect: lengthscales, but not those of a
# periodic kernel.
is_reach <- function(space) (space$role == "lengthscale" & !is.na(space$width))[space$free]

# Further starting points of a fit with many inputs, whose optimum may be far from all others: with
# equal lengthscales, with about equal ones, and with some so long that their inputs have no effect.
# More inputs need more points; many observations `n` need fewer. NULL with few inputs. The numbers
# were found by trial on the experiments of bench/gp-designs.R.
search_inputs <- function(space, starts, n) {
  reach <- is_reach(space)
  inputs <- sum(reach)
  if (inputs < 5L) return(NULL)
  count <- starts * ceiling((6 + 0.4 * inputs) * min(1, 100 / n))
  points <- utils::tail(search_design(space, count), count)
  # pseudo-random numbers: in so many dimensions there are too few even points
  k <- as.double(seq_len(count * (inputs + 1L)))
  u <- matrix((k * (k + 1) / 2 * golden_ratio) %% 1, count)
  own <- u[, -1L, drop = FALSE]
  typical <- log(0.1) + (seq_len(count) - 0.5) / count * log(100)
  kind <- seq_len(count) %% 6L + 1L
  lengths <- typical + c(0, 0.5, 0, 1, 0, 0.5)[kind] * stats::qnorm(own)
  none <- kind > 3L & kind != 5L & (own + 0.5) %% 1 < u[, 1L]
  lengths[none] <- log(100)
  points[, reach] <- lengths + rep(log(space$to[space$free][reach]), each = count)
  sd <- space$role[space$free] == "sd"
  points[, sd] <- points[, sd] + pmax(typical, 0)
  within_bounds(points, search_bounds(space))
}

within_bounds <- function(points, bounds) t(pmin(pmax(t(points), bounds$lower), bounds$upper))

# The user's starting point, completed with defaults; NULL if there is none.
search_start <- function(space, default) {
  free <- space$free
  start <- space$start[free]
  if (all(is.na(start))) return(NULL)
  start <- pmin(pmax(start, space$low[free]), space$high[free])
  replace(default, !is.na(start), to_search(start, space$log[free])[!is.na(start)])
}

# For each parameter the values that starting points take in turn, NA for one of its range.
search_guesses <- function(space, parts, problem) {
  kernel <- problem$kernel
  lapply(seq_len(nrow(space)), function(i) {
    role <- space$role[i]
    own <- space$in_kernel[i]
    if (role == "user") return(c(own, NA))
    if (role != "period") return(numeric())
    used <- find_columns(kernel$terms[[parts$term[i]]]$columns, ncol(problem$x),
                         colnames(problem$x))
    found <- if (length(used) == 1L) {
      find_periods(problem$x[, used], problem$y - problem$mean$centre)
    }
    # a given period is used as often as all others together; 1 is the kernel's default
    if (own == 1) c(found, own, NA) else c(rbind(own, c(found, NA)))
  })
}

# Periods of y along t: peaks of the periodogram of the residuals of a parabola, by height and by
# height above the neighbouring frequencies, and their multiples.
find_periods <- function(t, y) {
  gap <- typical_gap(t)
  width <- diff(range(t))
  if (length(unique(t)) < 8L || gap == 0) return(NULL)
  gap <- max(gap, width / 16384)
  z <- (t - min(t)) / width
  y <- stats::lm.fit(cbind(1, z, z^2), y)$residuals
  cell <- factor(1 + round((t - min(t)) / gap), levels = seq_len(1 + round(width / gap)))
  cells <- tapply(y, cell, mean)
  cells[is.na(cells)] <- 0
  size <- stats::nextn(8L * length(cells), 2L)
  power <- Mod(stats::fft(c(cells, numeric(size - length(cells)))))^2
  power <- log(power[2:(size %/% 2L)] + 1e-12 * max(power))
  period <- size * gap / seq_along(power)
  above <- power - stats::runmed(power, 2L * min(64L, (length(power) - 1L) %/% 4L) + 1L)
  inner <- seq(2L, length(power) - 1L)
  peak <- inner[power[inner] > power[inner - 1L] & power[inner] >= power[inner + 1L] &
                  period[inner] < 0.7 * width]
  if (length(peak) == 0L) return(NULL)
  best <- rbind(peak[order(-power[peak])], peak[order(-above[peak])])
  found <- period[unique(c(best))]
  found <- utils::head(found, 3L)
  c(found, 2 * found[1L])
}

# The median distance between neighbouring values of t that differ.
typical_gap <- function(t) {
  t <- sort(unique(t))
  if (length(t) < 2L) 0 else stats::median(diff(t))
}

# Points from which there may be a better optimum than `at`: other lengthscales or periods together
# with more or less noise, and `at` with some coordinates of other starting points.
search_around <- function(space, at, round) {
  roles <- space$role[space$free]
  bounds <- search_bounds(space)
  guess <- space$guess[space$free]
  moves <- list()
  reach <- log(ifelse(is_reach(space), space$to[space$free], NA))
  for (k in which(roles %in% c("lengthscale", "period", "alpha"))) {
    to <- at[k] + log(if (roles[k] == "period") c(0.5, 2) else c(1 / 16, 1 / 4, 4, 16))
    # an input without effect gets an effect, or loses it
    if (!is.na(reach[k])) {
      to <- c(to, reach[k] + log(if (at[k] > reach[k] + 2) c(0.5, 2) else 100))
    }
    if (roles[k] == "period") to <- c(to, log(guess[[k]]))
    moves <- c(moves, lapply(unique(to[!is.na(to)]), function(v) replace(at, k, v)))
  }
  points <- do.call(rbind, moves)
  noise <- which(roles == "noise")
  if (length(noise) == 1L && !is.null(points)) {
    points <- do.call(rbind, lapply(c(0, -1.5, 1.5), function(by) {
      points[, noise] <- points[, noise] + by
      points
    }))
  }
  if (length(at) > 1L) {
    count <- 12L * length(at)
    mixed <- utils::tail(search_design(space, round * count), count)
    kept <- utils::tail(even_points(round * count, length(at) + 1L), count)[, -1L] < 0.5
    mixed[kept] <- at[col(mixed)[kept]]
    points <- rbind(points, mixed)
  }
  if (is.null(points)) return(NULL)
  within_bounds(points, bounds)
}

# A function that gives second derivatives: first `curvature`, then this with an update by the
# change of the gradient in every step (Broyden, Fletcher, Goldfarb and Shanno; damped as by
# Powell).
learnt_curvature <- function(target, curvature) {
  last <- NULL
  function(at) {
    slope <- target$gradient(at)
    if (!is.null(last)) {
      step <- at - last$at
      across <- as.vector(curvature %*% step)
      expected <- sum(step * across)
      found <- slope - last$slope
      if (is.finite(sum(found)) && expected > 0) {
        share <- sum(step * found) / expected
        if (share < 0.2) found <- found + (across - found) * (0.2 - share) / (1 - share)
        curvature <<- curvature - tcrossprod(across) / expected +
          tcrossprod(found) / sum(step * found)
      }
    }
    last <<- list(at = at, slope = slope)
    curvature
  }
}
