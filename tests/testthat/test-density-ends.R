# Log densities and distribution functions at the ends of the ranges of their arguments, as
# cl_gradient() evaluates them, and their gradients: against tests/reference/densities.csv, of 17
# digits, by one function for each; and against base R.

table <- read.csv(test_path("..", "reference", "densities.csv"), colClasses = c(name = "character"))
columns <- c("a", "b", "c")

# The arguments in the order of the table's columns: those of R's function.
arguments_of <- function(name) {
  if (name == "dbinom_logit") return(c("x", "size", "prob"))
  of <- setdiff(names(formals(sub("_.*", "", name))), c("ncp", "log", "lower.tail", "log.p"))
  if (grepl("gamma", name)) of <- setdiff(of, "scale")
  if (grepl("nbinom", name)) of <- setdiff(of, if (grepl("prob", name)) "mu" else "prob")
  of
}

# The values and gradients of all rows of one name. The last argument of dbinom_logit is a logit.
traced_rows <- function(name, rows) {
  names <- arguments_of(name)
  given <- columns[seq_along(names)]
  free <- !is.na(unlist(rows[1, paste0("by_", given)]))
  values <- stats::setNames(as.list(rows[given]), names)
  call <- stats::setNames(lapply(names, as.name), names)
  if (name == "dbinom_logit") call$prob <- quote(plogis(prob))
  f <- function() NULL
  formals(f) <- stats::setNames(rep(alist(x = ), sum(free) + 1L), c("weight", names[free]))
  flags <- list(log = TRUE)
  if (grepl("^p", name)) flags <- list(lower.tail = !grepl("upper", name), log.p = TRUE)
  if (grepl("^q", name)) flags <- list(lower.tail = !grepl("upper", name))
  density <- as.name(sub("_.*", "", name))
  body(f) <- call("sum", call("*", quote(weight), as.call(c(density, call, flags))))
  environment(f) <- list2env(values, parent = globalenv())
  at <- c(list(weight = rep(1, nrow(rows))), values[free])
  slopes <- attr(do.call(cl_gradient(f), at), "gradient")
  found <- stats::setNames(slopes[names[free]], paste0("by_", given[free]))
  c(list(value = slopes$weight), found)
}

# Errors in units of the last place of the value, or of what one rounding of each argument changes.
# A sum of logarithms of numbers of any size has an error of its own.
expect_units <- function(name, rows, most) {
  found <- traced_rows(name, rows)
  for (what in names(found)) {
    want <- rows[[what]]
    unit <- 10^rows[[sub("value|by", "unit", what)]]
    # A tail's slope is exp() of a difference of two logarithms, as far as 1e5.
    if (grepl("^p", name) && what != "value") {
      unit <- unit + 2^-53 * pmin(abs(rows$value), 1e5) * abs(want)
    }
    off <- abs(found[[what]] - want) / pmax(unit, if (what == "value") 4e-15 else 1e-300)
    off[found[[what]] == want] <- 0
    far <- abs(want) > 1e300 | what != "value" & abs(rows$value) > 1e300 # beyond the range
    bad <- which(!(off <= most) & !(far & !is.nan(found[[what]]) | what != "value" & far))
    text <- utils::capture.output(print(utils::head(
      cbind(rows[columns], got = found[[what]], want, off)[bad, ], 4L), digits = 15))
    label <- sprintf("%s, %s is off:", name, what)
    expect(length(bad) == 0L, paste(c(label, text), collapse = "\n"))
  }
}

test_that("log densities and gradients have full precision far out in all arguments", {
  check <- function(names) {
    for (name in names) expect_units(name, table[table$name == name, ], 64)
  }
  on_host(check(unique(table$name)))
  few <- c("dgamma", "dt", "dnbinom", "pbeta", "pnbinom_upper")
  on_device(check(full_or_quick(unique(table$name), few))) # a kernel each
})

test_on_host("nothing is NaN where base R has a number or an infinity", {
  ends <- c(0, 1e-320, 1e-300, 0.3, 1, 70, 1e300, Inf)
  places <- c(-Inf, -3, 0, 0.5, 1e200, Inf)
  shares <- c(0, 1e-300, 0.3, 1 - 2^-53, 1)
  counts <- c(0, 1, 3, 150, 1e6)
  by_kind <- list(real = places, place = places, lower = places, upper = places, positive = ends,
                  scale = ends, spread = ends, shape = ends, power = ends, share = shares,
                  count = counts, trials = counts)
  check <- function(name, kinds, flags) {
    grid <- expand.grid(by_kind[kinds], KEEP.OUT.ATTRS = FALSE)
    names(grid) <- columns[seq_along(grid)]
    of <- stats::setNames(grid, names(kinds))
    want <- suppressWarnings(do.call(sub("_.*", "", name), c(of, flags)))
    for (k in names(grid)) grid[[paste0("by_", k)]] <- 1
    grid[paste0("by_", columns[seq_along(kinds)][kinds %in% c("count", "trials")])] <- NA
    upper <- if (isFALSE(flags$lower.tail)) "_upper"
    found <- suppressWarnings(traced_rows(paste0(name, upper), grid))
    bad <- is.nan(found$value) & !is.nan(want)
    # Infinite numbers and scales together; an infinite size with a probability of 1.
    if (name == "dnorm") bad <- bad & grid$c < Inf
    if (name == "dweibull") bad <- bad & grid$b < Inf
    if (name == "dnbinom_prob") bad <- bad & !(grid$b == Inf & grid$c == 1)
    rows <- cbind(grid[seq_along(of)], got = found$value, want)[bad, ]
    text <- utils::capture.output(print(utils::head(rows, 4L)))
    expect(!any(bad), paste(c(name, text), collapse = "\n"))
  }
  for (case in density_cases()) {
    if (!grepl("^[dpq]", case$name) || !exists(case$name, asNamespace("stats"))) next
    if (grepl("gamma", case$name) && "scale" %in% names(case$kinds)) next # as by the rate
    by_prob <- grepl("nbinom", case$name) && "prob" %in% names(case$kinds)
    name <- paste0(case$name, if (by_prob) "_prob")
    flags <- list(list(log = TRUE))
    if (grepl("^[pq]", name)) {
      flags <- lapply(c(TRUE, FALSE), function(lower) {
        c(list(lower.tail = lower), if (grepl("^p", name)) list(log.p = TRUE))
      })
    }
    for (f in flags) check(name, case$kinds, f)
  }
})

test_that("tails of gamma variables keep their digits at large and small shapes", {
  d <- expand.grid(k = c(-9, -1, 0, 1, 9, 100), shape = c(2e4, 1e6, 1e10, 1e15))
  d$q <- d$shape + d$k * sqrt(d$shape)
  d <- rbind(d[c("q", "shape")], data.frame(
    q = c(1e20, 5e5, 0.1, 2e3, 1e8, 0.5, 1.5, 1e-300, 70),
    shape = c(5, 2, 1e6, 1e6, 1e6, 1e-20, 1e-20, 0.3, 1e-300)))
  tails <- list(lower = cl_gradient(function(w, q, a) sum(w * pgamma(q, a, log.p = TRUE))),
                upper = cl_gradient(function(w, q, a) {
                  sum(w * pgamma(q, a, lower.tail = FALSE, log.p = TRUE))
                }))
  on_host(for (tail in names(tails)) {
    base <- function(q, a) stats::pgamma(q, a, lower.tail = tail == "lower", log.p = TRUE)
    got <- attr(tails[[tail]](rep(1, nrow(d)), d$q, d$shape), "gradient")
    want <- base(d$q, d$shape)
    expect_lt(max(ifelse(got$w == want, 0, abs(got$w / want - 1))), 1e-11)
    # By q, against differences.
    at <- d$q > 0 & d$shape > 1 & d$shape < 1e11 & d$q < 1e12
    h <- 1e-4 * sqrt(d$q)
    slope <- (base(d$q + h, d$shape) - base(d$q - h, d$shape)) / (2 * h)
    expect_equal(got$q[at], slope[at], tolerance = 1e-5)
    expect_false(anyNA(got$q) || anyNA(got$a))
    # The expansion and the series agree on the derivative by the shape.
    near <- attr(tails[[tail]](rep(1, 2), c(1.01e4, 1.01e4), 1e4 + c(0, 1e-6)), "gradient")
    expect_equal(near$a[1], near$a[2], tolerance = 1e-7)
  })
})
