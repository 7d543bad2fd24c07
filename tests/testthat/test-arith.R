# Elementwise arithmetic and reductions (R/matrix-arith.R) against base R.

skip_on_cran() # long; run by ./dev check

values <- function(m = 13, n = 7) {
  special <- c(0, -0, 1, -1, 0.5, -2.5, 3, 1e300, -1e-300, Inf, -Inf, NA, NaN, 7, 1e-3)
  matrix(rep_len(c(special, sin(1:50) * 10), m * n), m, n)
}

# Equal as numbers: NA and NaN are one, TRUE is 1; small differences of library functions.
expect_same <- function(object, expected, tol = 1e-14) {
  label <- paste(deparse(substitute(object)), collapse = " ")
  object <- unname(as.matrix(object))
  expected <- unname(expected + 0)
  expect(identical(dim(object), dim(expected)), sprintf("%s: shape", label))
  expect(identical(is.na(object), is.na(expected)), sprintf("%s: NA at other indices", label))
  known <- !is.na(expected)
  close <- object == expected |
    (is.finite(expected) & abs(object - expected) <= tol * abs(expected))
  expect(all(close[known]),
         sprintf("%s: %s, not %s", label, format(object[known][!close[known]][1], digits = 17),
                 format(expected[known][!close[known]][1], digits = 17)))
}

pending <- function(x) .Call(r_expr_info, x@handle)$pending

test_each_engine("vectors are recycled as in base R", {
  x <- matrix(1:12 + 0, 4)
  for (v in list(1:4, 1:2, 1:12, 5, 1:6)) {
    expect_same(as_cl(x) - v, x - v)
    expect_same(v / as_cl(x), v / x)
  }
  expect_same(as_cl(x) - as_cl(1:4), x - 1:4)
  expect_same(as_cl(1:4) - as_cl(x), 1:4 - x)
  for (v in list(1:5, 1:8)) { # in part, with a warning
    expect_warning(own <- as_cl(x) + v, class = "statcl_warning_recycled")
    expect_same(own, suppressWarnings(x + v))
  }
  expect_same(as_cl(x) - rowMeans(as_cl(x)), x - rowMeans(x))
  for (v in list(1:13, numeric())) {
    expect_refused("e2", as_cl(x) + v)
    expect_refused("e1", v + as_cl(x))
  }
})

test_each_engine(
  "logarithms to a base, rounding, cumulation and unary operators agree with base R", {
  x <- values()
  for (f in list(cumsum, cumprod, cummax, cummin)) expect_identical(f(as_cl(x)), f(x))
  expect_same(-as_cl(x), -x)
  expect_same(+as_cl(x), +x)
  expect_same(!as_cl(x), !x)
  expect_same(suppressWarnings(log(as_cl(x), 3)), suppressWarnings(log(x, 3)), 1e-13)
  expect_same(log(as_cl(abs(x)), base = 2), log(abs(x), base = 2), 1e-13)
  expect_same(round(as_cl(x), 2), round(x, 2))
  expect_same(signif(as_cl(x), 2), signif(x, 2))
  expect_same(round(as_cl(x) + 0.5), round(x + 0.5))
  for (base in list(-1, 0, 1, Inf, NA)) {
    expect_same(log(as_cl(x), base), suppressWarnings(log(x, base)), 1e-14)
  }
  y <- abs(x) + 0.5
  expect_same(log(as_cl(y), as_cl(y + 1)), suppressWarnings(log(y, y + 1)), 1e-13)
  expect_same(log(as_cl(y), 1:13 + 1), log(y, 1:13 + 1), 1e-13)
  expect_refused("base", log(as_cl(x), base = "e"))
})

# Every member of R's groups on numbers where functions differ most, NA first.
edges <- c(NA, NaN, Inf, -Inf, 0, -0, 1, -1, 0.5, -0.5, 0.25, 1.5, 2.5, -2.5, 2, -2, 3, -3, 5, -5,
           170, -170.5, -30.25, 0.1, 1e-10, 3e-309, 1e-320, 710, -746, 1e15, 1e300, -1e300,
           2^53 + 2)

test_each_engine("the groups Arith, Compare, Logic and Math are complete, including edge cases", {
  x <- matrix(edges)
  pairs <- unname(as.matrix(expand.grid(edges, edges)))
  a <- pairs[, 1L, drop = FALSE]
  b <- pairs[, 2L, drop = FALSE]
  # Not where base R itself loses digits in %% and %/%: tiny and huge numbers.
  plain <- !is.finite(a) | !is.finite(b) |
    (abs(a) <= 1e3 & (abs(b) > 1e-9 | b == 0) & abs(b) <= 1e3)
  for (name in c(getGroupMembers("Arith"), getGroupMembers("Compare"), "&", "|")) {
    f <- get(name)
    here <- if (name %in% c("%%", "%/%")) plain & (abs(a) > 1e-9 | a %in% c(0, NaN)) else TRUE
    here <- which(rep_len(here, length(a)))
    some <- function(x) x[here, , drop = FALSE]
    want <- suppressWarnings(f(some(a), some(b)))
    expect_same(f(as_cl(some(a)), as_cl(some(b))), want, 1e-13)
    expect_same(f(as_cl(some(a)), some(b)), want, 1e-13)
    expect_same(f(some(a), as_cl(some(b))), want, 1e-13)
    for (number in list(NA, 0, 1, -3L, TRUE, Inf)) {
      u <- some(a)[1:40, , drop = FALSE]
      expect_same(f(as_cl(u), number), suppressWarnings(f(u, number)), 1e-13)
      if (name %in% c("%%", "%/%")) next
      expect_same(f(number, as_cl(u)), suppressWarnings(f(number, u)), 1e-13)
    }
  }
  # digamma(1e-320) is NaN in base R, for -Inf; its gamma(170) has 13 digits.
  for (name in getGroupMembers("Math")) {
    f <- get(name)
    usual <- !name %in% c("digamma", "trigamma") | is.na(x) | abs(x) > 1e-300
    y <- x[usual, , drop = FALSE]
    want <- suppressWarnings(f(y))
    got <- suppressWarnings(f(as_cl(y)))
    if (is.null(dim(want))) expect_identical(got, want)
    else expect_same(got, want, if (name == "gamma") 2e-12 else 1e-13)
    if (is.null(dim(want))) next
    expect_true(pending(f(as_cl(y))), info = name)
  }
  for (digits in c(-308, -3, -1, 0, 1, 2, 5, 15, 16, 308)) {
    expect_same(round(as_cl(x), digits), round(x, digits), 0)
    expect_same(signif(as_cl(x), digits), signif(x, digits), 0)
  }
})

test_that("round() to digits agrees with base R to the last bit", {
  x <- c(0.15, 2.675, 1.005, 5.015, (-400:400) / 16, round(sin(1:500) * 100, 3), sin(1:500) * 1e7,
         exp(seq(-20, 20, length.out = 300)))
  each_engine(for (digits in c(-4:6, 10, 14)) {
    expect_identical(as.vector(round(as_cl(x), digits)), round(x, digits))
    expect_identical(cl_map(function(x) round(x, digits), x), round(x, digits))
  })
  x <- c(-0, 0, 5, -5, 1e308, -1.7e308, Inf, -Inf, NaN, 5e-324, 2.123456789123e-300,
         -1.23456789e-310, 6.66e-318)
  far <- c(-400, -309, -308, -1, 0, 1, 300, 308, 309, 312, 315, 323, 324, 400)
  each_engine(for (digits in far) {
    want <- round(x, digits)
    # Base R's powers of ten are some units in the last place off there.
    tol <- if (abs(digits) >= 300) 1e-14 else 0
    for (got in list(as.vector(round(as_cl(x), digits)), cl_map(function(x) round(x, digits), x))) {
      close <- is.nan(got) & is.nan(want) | got == want | abs(got / want - 1) <= tol
      expect(all(close), sprintf("round() to %d digits", digits))
      expect_identical(1 / got == -Inf, 1 / want == -Inf) # the sign of zero
    }
  })
  expect_refused("digits", round(as_cl(x), NA))
})

test_that("special functions are accurate everywhere", {
  table <- read.csv(test_path("..", "reference", "special-functions.csv"))
  for (name in unique(table$name)) {
    rows <- table[table$name == name, ]
    each_engine({
      got <- as.vector(cl_op(name, as_cl(rows$x)))
      # Near a zero that is not at a number, digits are those of 1.
      off <- abs(got - rows$value) / pmax(abs(rows$value), ifelse(rows$near_zero, 1, 0))
      off[got == rows$value] <- 0
      expect_lte(max(off), 4e-15)
    })
  }
})

test_each_engine("Summary agrees with R for missing, infinite and empty values", {
  sets <- list(c(3, -1, 2), c(NA, 1, 2), c(NaN, 1, 0), c(Inf, 1, -2), c(Inf, -Inf, 1), c(NA, NaN),
               c(0, 0), c(-0, 1), numeric(), c(Inf, -Inf, NA), c(1e-200, 1e-200), TRUE)
  sets <- sets[full_or_quick(seq_along(sets), c(2, 3, 5, 6, 9))]
  names <- getGroupMembers("Summary")
  for (x in sets) for (na.rm in c(FALSE, TRUE)) for (name in names) {
    f <- get(name)
    y <- if (name %in% c("any", "all")) x != 0 else x
    want <- suppressWarnings(f(as.vector(y), na.rm = na.rm))
    got <- suppressWarnings(f(as_cl(matrix(x + 0)), na.rm = na.rm))
    expect_identical(is.na(got), is.na(want))
    expect_equal(as.double(got), as.double(want), tolerance = 1e-15)
    more <- suppressWarnings(f(as_cl(matrix(x + 0)), y, na.rm = na.rm))
    expect_equal(as.double(more), as.double(suppressWarnings(f(y, y, na.rm = na.rm))))
  }
})

test_each_engine("zero-sized, tall and wide operands work", {
  for (s in list(c(0, 3), c(3, 0), c(1, 1), c(1, 501), c(501, 1), c(70, 3), c(3, 70))) {
    x <- matrix(seq_len(s[1] * s[2]) + 0, s[1], s[2])
    expect_same(as_cl(x) * 2 + x, x * 3)
    expect_same(exp(-as_cl(x)), exp(-x), 1e-14)
    expect_same(as_cl(x) * seq_len(s[1]), x * seq_len(s[1]))
    expect_same(as_cl(x) - rowSums(as_cl(x)), x - rowSums(x))
    expect_equal(sum(as_cl(x)), sum(x))
    expect_equal(rowSums(as_cl(x)), rowSums(x))
    expect_equal(colMeans(as_cl(x)), colMeans(x))
  }
})

test_each_engine("names are kept as in base R", {
  x <- matrix(1:4 + 0, 2, dimnames = list(c("a", "b"), NULL))
  y <- matrix(1:4 + 0, 2, dimnames = list(NULL, c("u", "v")))
  expect_identical(as.matrix(as_cl(x) + y), x + y)
  expect_identical(as.matrix(y + as_cl(x)), y + x)
  expect_identical(as.matrix(as_cl(x) * 2), x * 2)
  expect_identical(as.matrix(unname(x) + as_cl(y)), unname(x) + y)
  expect_identical(as.matrix(exp(as_cl(x) * 0)), exp(x * 0))
  expect_identical(rowSums(as_cl(x)), rowSums(x))
  expect_identical(colSums(as_cl(y)), colSums(y))
})

test_each_engine("views are kept if the result is known to have them", {
  x <- matrix(sin(1:100), 10)
  l <- as_cl(x, view = "lower")
  s <- as_cl(x, view = "symmetric")
  expect_identical((l * 2)@view, "lower")
  expect_identical((l + l)@view, "lower")
  expect_identical((-l)@view, "lower")
  expect_identical((l + 1)@view, "general")
  expect_identical(exp(l)@view, "general")
  expect_identical(exp(s)@view, "symmetric")
  expect_identical((s + s)@view, "symmetric")
  expect_identical((l * Inf)@view, "general")
  expect_same(l * 2, as.matrix(l) * 2)
  expect_same(exp(l), exp(as.matrix(l)))
  expect_same(l * Inf, as.matrix(l) * Inf)
  expect_same(l * t(l), as.matrix(l) * t(as.matrix(l)))
})

# ---- reductions ---------------------------------------------------------------------------------

test_each_engine("summaries agree with base R", {
  plain <- matrix(sin(1:999) * 100, 37)
  missing <- plain
  missing[c(5, 100)] <- c(NA, NaN)
  truth <- matrix(c(0, 1, 1, NA), 2)
  for (x in list(plain, missing, matrix(5), matrix(-Inf, 2, 2), matrix(c(Inf, -Inf), 1))) {
    scale <- sum(abs(x), na.rm = TRUE)
    for (f in list(sum, min, max, range, mean)) for (na.rm in c(FALSE, TRUE)) {
      # A device may turn NA into NaN on the way.
      want <- f(x, na.rm = na.rm) + 0
      want[is.na(want)] <- NaN
      got <- f(as_cl(x), na.rm = na.rm)
      got[is.na(got)] <- NaN
      expect_close(got, want, 1e-15, scale)
    }
  }
  expect_equal(prod(as_cl(matrix(1:6, 2))), 720)
  expect_identical(sum(as_cl(plain) > 0), sum(plain > 0) + 0)
  expect_identical(any(as_cl(truth)), TRUE)
  expect_identical(all(as_cl(truth)), FALSE)
  expect_identical(any(as_cl(truth * 0)), NA)
  expect_identical(all(as_cl(truth * 0 + 1)), NA)
  expect_identical(all(as_cl(truth * 0 + 1), na.rm = TRUE), TRUE)
  expect_equal(sum(as_cl(plain), 5, plain), sum(plain, 5, plain))
  expect_equal(max(as_cl(matrix(0, 1, 1)), 7, NA, na.rm = TRUE), 7)
  expect_equal(sum(as_cl(matrix(0, 0, 2))), 0)
  expect_equal(mean(as_cl(matrix(0, 0, 2))), NaN)
  expect_warning(expect_equal(max(as_cl(matrix(0, 0, 2))), -Inf))
  expect_refused("na.rm", sum(as_cl(plain), na.rm = NA))
  expect_refused("trim", mean(as_cl(plain), trim = 0.1))
})

test_that("row and column sums and means agree with base R", {
  x <- matrix(sin(1:210), 30, dimnames = list(NULL, letters[1:7]))
  missing <- x
  missing[c(3, 40)] <- NA
  each_engine(for (m in list(x, missing)) for (f in list(rowSums, colSums, rowMeans, colMeans)) {
    expect_equal(f(as_cl(m)), f(m), tolerance = 1e-14)
    expect_equal(f(as_cl(m), na.rm = TRUE), f(m, na.rm = TRUE), tolerance = 1e-14)
  })
  expect_refused("dims", on_host(rowSums(as_cl(x), dims = 2)))
})

test_each_engine("sums and means agree with base R even if partial sums overflow", {
  x <- cbind(c(1e308, 1e308, NA), c(1e308, 1e308, -1e308), c(-1e308, -1.7e308, 1), 1:3)
  y <- as_cl(x)
  expect_identical(mean(as_cl(c(1e308, 1e308))), 1e308)
  expect_equal(mean(y, na.rm = TRUE), mean(x, na.rm = TRUE))
  expect_equal(mean(y[, 2:4]), mean(x[, 2:4]))
  for (f in list(rowSums, colSums, rowMeans, colMeans)) for (na.rm in c(FALSE, TRUE)) {
    expect_equal(f(y, na.rm = na.rm), f(x, na.rm = na.rm))
  }
  expect_equal(sum(y[, 2, drop = FALSE]), sum(x[, 2]))
  expect_equal(sum(y[, 2, drop = FALSE], na.rm = TRUE), sum(x[, 2]))
  expect_identical(sum(as_cl(c(1e308, 1e308))), Inf)
  expect_identical(mean(as_cl(c(Inf, 1))), Inf)
  expect_identical(mean(as_cl(c(Inf, -Inf))), NaN)
})

test_each_engine("sums of many terms are accurate and the same bits each time", {
  x <- matrix(rep_len(c(1e8, 1, -1e8), 3e5), 1000)
  exact <- 1e5
  expect_lt(abs(sum(as_cl(x)) - exact), 1e-16 * sum(abs(x)))
  y <- as_cl(matrix(sin(1:300000), 3000))
  first <- sum(y)
  for (i in 1:5) expect_identical(sum(y), first)
})

test_each_engine("operands that are not numeric are rejected by name", {
  x <- as_cl(diag(2))
  for (bad in list(NULL, "a", 1i, list(1), factor(1), mean, array(1, c(2, 2, 1)))) {
    expect_refused("e2", x + bad)
    expect_refused("e1", bad * x)
  }
  expect_refused("e2", x + diag(3), matrix(1, 1, 1) + x, x == "a")
  expect_fault(x + as_cl(diag(3)), "argument")
})

test_each_engine("a clMatrix as digits is rejected for any x", {
  x <- as_cl(matrix(1:4 / 3, 2))
  for (f in list(round, signif)) {
    for (a in list(matrix(1, 2, 2), 1, 2L, TRUE, NULL, "a", list(1), x)) {
      expect_refused("digits", f(a, x))
    }
  }
})

# Equal, or close; zeros have the same sign.
same_at_ends <- function(got, want) {
  near <- is.finite(want) & want != 0 & abs(got - want) <= 1e-14 * abs(want)
  is.na(got) & is.na(want) | got == want & 1 / got == 1 / want | near
}

test_that("elementwise functions are base R's at the ends of their range", {
  x <- c(-Inf, -1.7e308, -1e17, -2^52 - 1, -7.5, -2, -1, -0.5, -0.3, -1e-90, -1e-310, 0)
  x <- c(x, -rev(x), NaN)
  names <- c("sign", "abs", "floor", "ceiling", "trunc", "round", "sqrt", "sinpi", "cospi", "tanpi",
             "exp", "expm1", "log", "log2", "tanh", "asinh", "gamma", "lgamma")
  operators <- c("%%", "%/%", "^")
  pairs <- expand.grid(a = x, b = c(-Inf, -3, -1, -0.3, 0, 1e-310, 0.3, 1, 2, 3.5, 1e17, Inf))
  # Where base R's remainder has lost its digits, keeps the sign of 0, or the quotient underflows.
  lost <- with(pairs, is.finite(a) & b != 0 & (abs(a / b) > 2^52 | a / b == 0))
  expect_ends <- function(label, got, want) {
    bad <- which(!(same_at_ends(as.vector(got), want) %in% TRUE))
    rows <- cbind(bad, got = got[bad], want = want[bad])
    text <- utils::capture.output(print(utils::head(rows, 4L)))
    expect(length(bad) == 0L, paste(c(label, text), collapse = "\n"))
  }
  each_engine({
    found <- lapply(names, function(name) match.fun(name)(as_cl(x)))
    do.call(cl_eval, found) # in few kernels
    for (k in seq_along(names)) {
      expect_ends(names[k], as.matrix(found[[k]]), suppressWarnings(match.fun(names[k])(x)))
    }
    found <- lapply(operators, function(f) match.fun(f)(as_cl(pairs$a), as_cl(pairs$b)))
    do.call(cl_eval, found)
    for (k in seq_along(operators)) {
      want <- suppressWarnings(match.fun(operators[k])(pairs$a, pairs$b))
      got <- as.matrix(found[[k]])
      if (operators[k] == "%%") got[lost %in% TRUE] <- want[lost %in% TRUE]
      expect_ends(operators[k], got, want)
    }
    expect_identical(as.vector(1 / sinpi(as_cl(c(1, -2)))), c(Inf, Inf))
  })
})
