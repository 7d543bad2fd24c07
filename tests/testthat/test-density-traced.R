# Densities, distribution functions and quantiles as cl_gradient() evaluates them: each argument
# traced alone and all together, over the range of values and at its ends, held against base R.

real <- c(-Inf, -700, -3, 0, 0.3, 40, Inf, NA)
positive <- c(-1, 0, 1e-300, 0.3, 1, 60, Inf, NA)
share <- c(-0.1, 0, 1e-300, 0.3, 1 - 1e-9, 1, 1.2, NA)
log_share <- c(1, 0, -1e-10, -0.3, -50, -600, -Inf, NA)
places <- c(-2, 5)
scales <- c(-1, 0.01, 1, 70)
shapes <- c(-1, 0, 0.01, 1, 70)
counts <- c(-1, 0, 1, 20, 150, 1.5, Inf, NA)

# The values by kind (R/density-table.R).
values_of <- list(
  real = real, positive = positive, share = share, place = places, scale = scales,
  spread = c(scales, 0), shape = shapes, power = shapes[-2], lower = places,
  upper = c(-3, -2, 0, 10), count = c(counts, 3.7), trials = c(0, 5, 150, -1, 2.5),
  order = c(0, 1, 2, 5))

# Base R raises to a power that overflows or underflows.
no_power <- function(g) {
  (g$shape * abs(log(abs(g$x / g$scale))) > 600 & g$x > 0 & g$scale > 0) %in% TRUE
}

flags_of <- function(name) {
  if (grepl("^d", name)) return(list(list(log = TRUE), list(log = FALSE)))
  if (!grepl("^[pq]", name)) return(list(list()))
  all <- expand.grid(lower.tail = c(TRUE, FALSE), log.p = c(TRUE, FALSE))
  lapply(1:4, function(k) as.list(all[k, ]))
}

# The values of name(...) if the arguments `parameters` are parameters and the others are data:
# derivatives with respect to the weights of their sum.
traced_values <- function(name, grid, flags, parameters) {
  given <- lapply(stats::setNames(nm = names(grid)), as.name)
  f <- function() NULL
  formals(f) <- stats::setNames(rep(alist(x = ), length(parameters) + 1), c("w", parameters))
  body(f) <- call("sum", call("*", as.name("w"), as.call(c(as.name(name), given, flags))))
  environment(f) <- list2env(grid, parent = globalenv())
  point <- c(list(w = rep(1, nrow(grid))), as.list(grid)[parameters])
  answer <- suppressWarnings(do.call(cl_gradient(f), point))
  attr(answer, "gradient")$w
}

expect_values_of_r <- function(name, kinds, flags, arguments = values_of[kinds]) {
  names(arguments) <- names(kinds)
  if (grepl("^q", name) && flags$log.p) arguments$p <- log_share
  grid <- expand.grid(arguments, KEEP.OUT.ATTRS = FALSE)
  if (name == "dweibull") grid <- grid[!no_power(grid), ]
  want <- suppressWarnings(do.call(name, c(as.list(grid), flags)))
  small <- if (any(unlist(flags[c("log", "log.p")]))) 1 else 0
  free <- setdiff(names(kinds), data_of(kinds))
  for (parameters in unique(c(as.list(free), list(free)))) {
    got <- traced_values(name, grid, flags, parameters)
    same <- is.na(got) == is.na(want) & (is.na(want) | got == want |
      abs(got - want) <= 1e-12 * pmax(abs(want), small, 1e-295))
    bad <- which(!(same %in% TRUE))
    text <- utils::capture.output(print(utils::head(cbind(grid, got, want)[bad, ], 4)))
    expect(length(bad) == 0, paste(c(paste(name, "by", toString(parameters), "and",
                                           paste(names(flags), flags, collapse = ", ")), text),
                                   collapse = "\n"))
  }
}

test_on_host("values agree with R, whichever argument is a parameter, also at the ends of ranges", {
  for (case in density_cases()) for (flags in flags_of(case$name)) {
    expect_values_of_r(case$name, case$kinds, flags)
  }
  # Forms for few trials and small counts.
  for (flags in flags_of("dbinom")) {
    expect_values_of_r("dbinom", density_table$dbinom$kinds, flags, list(counts, 1, share))
    expect_values_of_r("dpois", density_table$dpois$kinds, flags, list(c(0, 1, 20), shapes))
  }
})

test_that("an infinite value has density zero; an exponential density has a derivative at rate 0", {
  at <- function(f, ...) unlist(lapply(list(...), function(x) as.numeric(cl_gradient(f)(x = x))))
  on_host({
    for (log in c(TRUE, FALSE)) {
      zero <- if (log) -Inf else 0
      expect_identical(at(function(x) dgamma(x, 2, 3, log = log), Inf), zero)
      expect_identical(at(function(x) dchisq(x, 2, log = log), Inf), zero)
      expect_identical(at(function(x) dweibull(x, 2, 3, log), Inf), zero)
      expect_identical(at(function(x) dlogis(x, 2, 3, log), Inf, -Inf), c(zero, zero))
      expect_identical(at(function(x) dgamma(exp(x), 2, 3, log = log), 1e3), zero)
    }
    slope <- cl_gradient(function(rate) sum(dexp(c(-1, 0, 2), rate)))(rate = 0)
    expect_identical(attr(slope, "gradient")$rate, 2)
  })
})

test_that("arguments may be given in all forms of calls of R", {
  x <- matrix(c(0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 2)
  forms <- list(
    function(a) sum(pnorm(x, a, low = FALSE, log = TRUE)), function(a) sum(dgamma(x, 2, sc = a)),
    function(a) sum(dnorm(sd = 2, mean = a, x)), function(a) sum(stats::dnorm(x, a, 2)),
    function(a) sum(do.call("dnorm", list(x, mean = a, 2))), function(a) sum(dnorm(x, a, 1, 1)),
    function(a) sum(dnorm(x, a, log = 0)), function(a) sum(pnorm(x, a, lower.tail = 0, log.p = 1)),
    function(a) sum(sapply(1:3, dnorm, mean = a)), function(a) sum(outer(1:3, a, "dnorm")),
    function(a) sum(x * dnorm(x, c(a, 1), 1)), function(a) sum(x * dnorm(1:2, a * x, 1)),
    function(a) sum(mapply(dnorm, 1:3, a, MoreArgs = list(sd = 2))),
    function(a) sum(dbinom(c(TRUE, FALSE), 1L, a / 3, TRUE)),
    function(a) a + sum(dnorm(numeric(), a)))
  on_host(for (f in forms) expect_equal(as.numeric(cl_gradient(f)(a = 2)), f(2)))
  on_host(for (f in list(function(a) dnorm(1, a, 1, NA), function(a) dnorm(1, a, 1, 2),
                         function(a) dgamma(a, 2, 3, 4), function(a) dnbinom(2, 2, a, a),
                         function(a) dnorm("1", a), function(a) sum(dnorm(factor(1:3), a)),
                         function(a) dnorm(a, mu = 2), function(a) dgamma(a, rate = 2))) {
    expect_refused("f", cl_gradient(f)(a = 0.5))
  })
})

test_that("logarithms of sums of two exponentials, as they may be written", {
  set.seed(1)
  a <- c(2, -800, 3, 700, 1e-300, rnorm(150, 0, 30)) # more than one block of the host's loop
  b <- c(2, 700, -750, 699, -1e-300, rnorm(150, 0, 30))
  w <- rnorm(155)
  ways <- list(
    function(a, b) pmax(a, b) + log1p(exp(-abs(a - b))),
    function(a, b) log1p(exp(-abs(b - a))) + pmax(a, b),
    function(a, b) cl_log_sum_exp(cbind(a, b), 1),
    function(a, b) cl_log_sum_exp(rbind(a, b), 2))
  each_engine({
    for (way in ways) {
      found <- cl_gradient(function(a, b) sum(w * way(a, b)))(a = a, b = b)
      expect_equal(as.vector(found), sum(w * (pmax(a, b) + log1p(exp(-abs(a - b))))))
      expect_equal(attr(found, "gradient"), list(a = w * plogis(a - b), b = w * plogis(b - a)))
    }
    apart <- function(a, b) sum(pmax(a, b) + log1p(exp(-abs(a + b)))) # is another function
    expect_equal(as.vector(cl_gradient(apart)(a = a, b = b)), apart(a, b))
    one <- cl_gradient(function(a) cl_log_sum_exp(c(a, -Inf)))(a = 3)
    expect_equal(c(one, attr(one, "gradient")$a), c(3, 1))
    none <- cl_gradient(function(p) cl_log_sum_exp(c(log(p), log(p) + 1)))
    expect_equal(as.vector(none(p = 0)), -Inf)
  })
})
