# Subscripts: random calls compared with base R, and calls that must be rejected before any work.

skip_on_cran() # long; run by ./dev check

# ---- random calls -------------------------------------------------------------------------------

pick <- function(...) {
  choices <- list(...)
  choices[[sample.int(length(choices), 1L)]]
}

random_matrix <- function() {
  m <- sample(c(0:3, 5L, 7L), 1)
  n <- sample(c(0:3, 4L, 6L), 1)
  x <- matrix(round(rnorm(m * n), 2), m, n)
  x[sample.int(length(x), min(length(x), 1))] <- pick(0, 1, NA, -Inf, -0)
  if (runif(1) < 0.5) {
    sides <- list(sprintf("r%d", seq_len(m)), sprintf("c%d", seq_len(n)))
    if (m > 1 && runif(1) < 0.2) sides[[1]][2] <- pick("", "r1", NA)
    if (runif(1) < 0.3) sides[sample(2, 1)] <- list(NULL)
    if (runif(1) < 0.2 && n > 0) names(sides) <- c("side", "")
    dimnames(x) <- sides
  }
  x
}

# A subscript of 1 .. n; `names` may be NULL.
random_subscript <- function(n, names, single = FALSE) {
  some <- sample(0:5, 1)
  at <- if (n > 0) sample.int(n, some, replace = TRUE) else integer()
  pick(at, at, at + 0.7, -at, sort(at), seq_len(n), rev(seq_len(n)), c(0, at), c(at, NA),
       NULL, NA, TRUE, FALSE, integer(), rep(NA_integer_, 2), runif(n) < 0.5,
       c(TRUE, FALSE), c(TRUE, NA), sample(c(TRUE, FALSE, NA), n, replace = TRUE),
       rep(TRUE, n + 2), n + 1, n + 0.5, c(at, n + 3), 2e8, 3e9, c(1, -1), c(NA, -1),
       if (n > 0 && !is.null(names)) names[sample.int(n, some, replace = TRUE)] else "nobody",
       NA_character_, "", factor(sample(letters[1:3], 2, replace = TRUE), letters[1:3]),
       matrix(at, 1), 1i, list(1), Inf, NaN)
}

# A subscript for all of x.
random_index <- function(x) {
  if (runif(1) < 0.5) return(random_subscript(length(x), NULL, TRUE))
  rows <- sample.int(max(nrow(x), 1), 3, replace = TRUE)
  columns <- sample.int(max(ncol(x), 1), 3, replace = TRUE)
  pick(cbind(rows, columns), cbind(rows, columns) + 0.5, cbind(c(rows, NA), c(columns, 1)),
       cbind(c(rows, 0), c(columns, 1)), cbind(rows, ncol(x) + 1), cbind(-1, columns),
       cbind(2, 3e9), cbind(rownames(x)[rows], colnames(x)[columns]), cbind("r1", "c9"), x > 0,
       x == 1, is.na(x), x, matrix(TRUE, 1, 2), matrix(0, 0, 2), cbind(rows, columns, 1))
}

random_value <- function(k) {
  k <- min(k, 100)
  pick(9, 9L, NA, TRUE, numeric(), seq_len(k) + 0.5, rep(1:2, length.out = max(k, 1)), 1:2, 1:3,
       matrix(-3, 1, 1), matrix(seq_len(k) + 0, k, 1), Inf)
}

# Base R warns that numbers beyond all integers are NA; subscripts beyond the end are rejected where
# base R extends the matrix to a longer vector.
beyond <- function(...) {
  any(vapply(list(...), function(i) is.numeric(i) && any(abs(i) > 1e8, na.rm = TRUE), NA))
}

test_each_engine("random parts agree with base R", {
  set.seed(11)
  for (round in seq_len(full_or_quick(600, 200))) {
    m <- random_matrix()
    i <- random_subscript(nrow(m), rownames(m))
    j <- random_subscript(ncol(m), colnames(m))
    if (beyond(i, j)) {
      expect_fault(as_cl(m)[i, j], "argument")
      next
    }
    here <- deparse(list(m, i, j))
    expect_call_as_base(quote(x[i, j]), list(x = m), environment(), label = here)
    expect_call_as_base(quote(x[i, , drop = FALSE]), list(x = m), environment(), label = here)
    expect_call_as_base(quote(x[, j]), list(x = m), environment(), label = here)
  }
})

test_each_engine("random values by one subscript agree with base R", {
  set.seed(12)
  for (round in seq_len(full_or_quick(600, 200))) {
    m <- random_matrix()
    i <- random_index(m)
    here <- deparse(list(m, i))
    if (is.matrix(i) && beyond(i)) {
      if (all(is.finite(i))) expect_refused("i", as_cl(m)[i])
    } else {
      expect_same_outcome(outcome(as_cl(m)[i]), outcome(unname(m[i])), here)
    }
  }
})

test_each_engine("random single elements agree with base R", {
  set.seed(13)
  for (round in seq_len(full_or_quick(400, 150))) {
    m <- random_matrix()
    i <- random_subscript(length(m), NULL)
    k <- random_subscript(nrow(m), rownames(m))
    j <- random_subscript(ncol(m), colnames(m))
    here <- deparse(list(m, i, k, j))
    expect_call_as_base(quote(x[[i]]), list(x = m), environment(), label = here)
    expect_call_as_base(quote(x[[k, j]]), list(x = m), environment(), label = here)
  }
})

# Evaluates a replacement in x on both sides; base R may return a longer vector, or another type.
replaced_as_base <- function(code, m, home, label) {
  change <- bquote({
    .(code)
    x
  })
  base <- outcome(eval(change, list(x = m), home))
  own <- outcome(eval(change, list(x = as_cl(m)), home))
  if (!base$failed && (!identical(dim(base$value), dim(m)) || !is.numeric(base$value))) {
    return(expect_s3_class(own$value, "statcl_error_argument"))
  }
  expect_same_outcome(own, base, c(deparse(code), "for", label))
}

test_each_engine("random replacements agree with base R", {
  set.seed(14)
  for (round in seq_len(full_or_quick(800, 250))) {
    m <- random_matrix()
    i <- random_subscript(nrow(m), rownames(m))
    j <- random_subscript(ncol(m), colnames(m))
    value <- random_value(pick(1, nrow(m), length(m), 2))
    if (beyond(i, j)) {
      x <- as_cl(m)
      expect_fault(x[i, j] <- 1, "argument")
      next
    }
    here <- deparse(list(m, i, j, value))
    replaced_as_base(quote(x[i, j] <- value), m, environment(), here)
    replaced_as_base(quote(x[i, ] <- value), m, environment(), here)
    replaced_as_base(quote(x[] <- value), m, environment(), here)
  }
})

test_each_engine("random replacements by one subscript agree with base R", {
  set.seed(15)
  for (round in seq_len(full_or_quick(800, 250))) {
    m <- random_matrix()
    i <- random_index(m)
    value <- random_value(pick(1, 2, 3, length(m)))
    here <- deparse(list(m, i, value))
    if (beyond(i)) {
      x <- as_cl(m)
      if (all(is.finite(i))) expect_fault(x[i] <- 1, "argument")
      next
    }
    replaced_as_base(quote(x[i] <- value), m, environment(), here)
    replaced_as_base(quote(x[[i]] <- value), m, environment(), here)
  }
})

test_each_engine("random combinations agree with base R", {
  set.seed(16)
  for (round in seq_len(full_or_quick(300, 100))) {
    m <- random_matrix()
    y <- random_matrix()
    v <- random_value(pick(nrow(m), ncol(m), 2))
    w <- random_value(pick(nrow(m), ncol(m), 1))
    if (length(w) > 0 && is.null(dim(w)) && runif(1) < 0.4) {
      names(w) <- paste0("n", seq_along(w))
    }
    here <- deparse(list(m, y, v, w))
    for (code in expression(cbind(x, w), cbind(w, x), cbind(x, v, w), cbind(v, x, k = w),
                            rbind(x, w), rbind(w, x, v), cbind(x, y), rbind(y, x), rbind(x, x, w),
                            c(x, w), c(v, x), append(x, w, 1), outer(x, w), x %o% c(1, 2))) {
      label <- c(deparse(code), "for", here)
      expect_call_as_base(code, list(x = m), environment(), label = label)
    }
  }
})

# ---- conditions as device matrices --------------------------------------------------------------

test_each_engine("a device matrix of 1 and 0 is a logical subscript", {
  m <- matrix(c(1, -2, 0, 4, NA, 6), 2, dimnames = list(c("a", "b"), NULL))
  for (x in list(m, m[0, ], m[, 2, drop = FALSE])) {
    expect_as_base(x[x > 0], x = x)
    expect_as_base(x[x > 0 & x < 5], x = x)
    expect_as_base(x[is.na(x)], x = x)
  }
  x <- as_cl(m)
  for (value in list(0, NA, -1L, as_cl(matrix(7)))) {
    y <- x
    y[y < 0] <- value
    expected <- m
    expected[m < 0] <- if (is_cl(value)) 7 else value
    expect_identical(on_base(y), expected)
    y <- x
    y[is.na(y)] <- value
    expected <- m
    expected[is.na(m)] <- if (is_cl(value)) 7 else value
    expect_identical(on_base(y), expected)
  }
  y <- x
  y[is.na(y) | y < 0] <- c(8, 9)
  expected <- m
  expected[is.na(m) | m < 0] <- c(8, 9)
  expect_identical(on_base(y), expected)
  l <- as_cl(matrix(1:4 + 0, 2), view = "lower")
  l[l == 0] <- 5
  expect_identical(on_base(l), matrix(c(1, 2, 5, 4), 2))
  expect_identical(on_base(x[x[, 1, drop = FALSE] > 0, ]), m["a", ])
  expect_identical(on_base(x[, as_cl(c(1, 0, 1))]), m[, c(1, 3)])
  x[x[, 1, drop = FALSE] > 0, 2] <- 5
  expect_identical(x[["a", 2]], 5)
  for (bad in list(quote(x[as_cl(m)]), quote(x[as_cl(m)] <- 0), quote(x[as_cl(3), ]),
                   quote(x[as_cl(c(1, 2)), ]), quote(x[[as_cl(1)]]))) {
    expect_error(eval(bad), class = "statcl_error_argument")
  }
})

# ---- before anything is done --------------------------------------------------------------------

test_each_engine("subscripts are checked before anything is allocated or computed", {
  wrong <- expression(y[2e8] <- 1, y[3e9] <- 1, y[1, 3e9] <- 1, y[[2e8]] <- 1,
                      y[cbind(1, 2e8)] <- 1, y["a"] <- 1, y[2e8, ], y[[3e9]], y[13] <- 1,
                      y[4, 1] <- 1, y[[1, 5]], y["a", ], y[c(1, 2e8)] <- 1:2, subset(y, 1:3))
  y <- as_cl(matrix(0, 3, 4)) + 1
  gc(reset = TRUE)
  before <- sum(gc()[, 2])
  for (code in wrong) expect_error(eval(code), class = "statcl_error_argument")
  expect_lt(sum(gc()[, 6]) - before, 100) # MiB
  expect_true(is_pending(y))
  expect_identical(y[2e8], NA_real_)
})
