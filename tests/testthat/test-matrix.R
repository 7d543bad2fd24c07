# Matrices: making, shape, printing, indexing, binding (R/matrix*.R).

numbers <- function(m, n) matrix(sin(seq_len(m * n)), m, n)

named <- function(m, n) {
  matrix(seq_len(m * n) + 0, m, n,
         dimnames = list(paste0("r", seq_len(m)), paste0("c", seq_len(n))))
}

shapes <- list(c(0, 0), c(0, 3), c(3, 0), c(1, 1), c(1, 7), c(7, 1), c(5, 3), c(65, 33), c(257, 2))

test_each_engine("there and back is exact, at every shape", {
  for (s in shapes) {
    x <- numbers(s[1], s[2])
    expect_identical(as.matrix(as_cl(x)), x)
    expect_equal(dim(as_cl(x)), dim(x))
    expect_equal(length(as_cl(x)), length(x))
  }
})

test_each_engine("special values survive", {
  x <- matrix(c(NA, NaN, Inf, -Inf, -0, 5e-324, .Machine$double.xmax, 1), 2)
  y <- as.matrix(as_cl(x))
  expect_identical(is.nan(y) | is.na(y), is.na(x))
  expect_identical(y[!is.na(y)], x[!is.na(x)])
  expect_identical(1 / y[1, 3], -Inf)
})

test_that("a view reads its triangle and fills the rest", {
  x <- numbers(35, 35)
  lower <- x * lower.tri(x, TRUE)
  upper <- x * upper.tri(x, TRUE)
  symmetric <- lower + t(lower) - diag(diag(x))
  each_engine({
    expect_identical(as.matrix(as_cl(x, view = "lower")), lower)
    expect_identical(as.matrix(as_cl(x, view = "upper")), upper)
    expect_close(as_cl(x, view = "symmetric"), symmetric, 0)
    for (view in c("lower", "upper", "symmetric")) {
      expect_match(format(as_cl(x, view = view)), view)
    }
  })
  expect_refused("view", cl_matrix(1:6, 2, 3, view = "lower"))
})

test_each_engine("integer, logical, vector and data frame become double", {
  expect_identical(as.matrix(as_cl(matrix(1:4, 2))), matrix(c(1, 2, 3, 4), 2))
  expect_identical(as.matrix(as_cl(matrix(c(TRUE, NA), 1))), matrix(c(1, NA), 1))
  expect_identical(as.matrix(as_cl(1:3)), matrix(c(1, 2, 3)))
  frame <- data.frame(a = 1:2, b = 3:4)
  expect_equal(as.matrix(as_cl(frame)), as.matrix(frame))
  expect_identical(dimnames(as_cl(c(u = 1, v = 2))), list(c("u", "v"), NULL))
})

test_that("data that is not numeric is rejected by name", {
  bad <- list(NULL, list(1), "4", "a", 1i, mean, globalenv(), quote(x), raw(2), factor(1:2),
              Sys.Date(), as.difftime(1, units = "secs"), array(1, c(2, 2, 2, 1)),
              data.frame(a = "x"))
  for (x in bad) expect_refused("x", as_cl(x))
  for (x in bad) expect_refused("data", cl_matrix(x))
})

test_that("cl_matrix() recycles like matrix() and rejects data that does not fit", {
  each_engine({
    expect_identical(as.matrix(cl_matrix(1:6, 2)), matrix(1:6 + 0, 2))
    expect_identical(as.matrix(cl_matrix(0, 2, 3)), matrix(0, 2, 3))
    expect_identical(as.matrix(cl_matrix(1:2, ncol = 3, nrow = 2)), matrix(c(1, 2), 2, 3))
    expect_identical(as.matrix(cl_identity(3)), diag(3))
    expect_identical(as.matrix(cl_identity(2, batch = 3)), cbind(diag(2), diag(2), diag(2)))
    expect_identical(as.matrix(cl_zeros(2, 3)), matrix(0, 2, 3))
  })
  for (n in list(-1, NA, 1.5, "2", c(1, 2), NULL, 2^31, Inf)) {
    if (!is.null(n)) expect_refused("nrow", cl_matrix(1, n, 1))
    expect_refused("n", cl_identity(n))
  }
  expect_refused("view", cl_matrix(1, 1, 1, view = "diagonal"))
  expect_refused("dimnames", cl_matrix(1:4, 2, dimnames = list("a", NULL)))
})

test_each_engine("the input is not changed", {
  x <- numbers(3, 3)
  copy <- x + 0
  y <- as_cl(x)
  y[1, 1] <- 99
  diag(y) <- 0
  z <- y * 2
  expect_identical(x, copy)
  whole <- 1:6
  sum(as_cl(whole))
  expect_identical(whole, 1:6)
})

test_each_engine("dimnames are kept, replaced and checked", {
  x <- as_cl(named(2, 3))
  expect_identical(dimnames(x), dimnames(named(2, 3)))
  expect_identical(as.matrix(x), named(2, 3))
  dimnames(x) <- list(NULL, c("u", "v", "w"))
  expect_identical(dimnames(x), list(NULL, c("u", "v", "w")))
  rownames(x) <- c("p", "q")
  expect_identical(dimnames(x), list(c("p", "q"), c("u", "v", "w")))
  dimnames(x) <- NULL
  expect_null(dimnames(x))
  expect_refused("dimnames", dimnames(x) <- list("a", NULL), dimnames(x) <- "a")
})

test_each_engine("conversions agree with as.matrix()", {
  m <- named(3, 2)
  x <- as_cl(m)
  expect_identical(as.vector(x), as.vector(m))
  expect_identical(as.numeric(x), as.numeric(m))
  expect_identical(as.integer(x), as.integer(m))
  expect_identical(as.logical(x), as.logical(m))
  expect_identical(as.array(x), m)
  expect_identical(as.data.frame(x), as.data.frame(m))
  expect_true(is.matrix(x))
  expect_true(is.numeric(x))
  expect_identical(apply(x, 1, sum), apply(m, 1, sum))
  expect_true(all.equal(x, as_cl(m)))
  expect_true(all.equal(x, m))
  expect_type(all.equal(x, as_cl(m + 1)), "character")
})

# ---- printing -----------------------------------------------------------------------------------

test_each_engine("printing shows one line and a corner", {
  x <- as_cl(numbers(20, 9))
  text <- capture.output(print(x))
  expect_match(text[1], "^<clMatrix 20 x 9 double, 1.4 KiB on ")
  expect_length(text, 1 + 1 + 6 + 1)
  expect_match(text[9], "14 rows, 3 columns more")
  expect_identical(capture.output(x), text)
  expect_match(capture.output(str(x)), "clMatrix 20 x 9")
  expect_match(capture.output(print(as_cl(matrix(0, 0, 3)))), "0 x 3")
  expect_length(capture.output(print(as_cl(diag(2)))), 4)
})

test_each_engine("summary() gives range, mean and missing values", {
  s <- summary(as_cl(matrix(c(1, 2, NA, 6), 2)))
  expect_equal(unlist(s[c("min", "mean", "max", "missing")]),
               c(min = 1, mean = 3, max = 6, missing = 1))
  expect_output(print(s), "clMatrix 2 x 2")
  expect_output(print(summary(as_cl(matrix(0, 0, 2)))), "0 x 2")
})

# ---- indexing -----------------------------------------------------------------------------------

test_each_engine("x[i, j] agrees with base R for every kind of index", {
  m <- named(7, 5)
  rows <- list(2, 2:4, c(5, 1, 5), -1, -(2:7), c(TRUE, FALSE), rep(c(TRUE, FALSE), c(3, 4)),
               c("r3", "r1"), integer(), 0, c(0, 2), 7:1, 2.9, -9, factor("b", c("a", "b")))
  columns <- list(3, 1:5, c(2, 2), -5, c("c1", "c5"), FALSE, TRUE)
  x <- as_cl(m)
  for (i in rows) {
    expect_identical(on_base(x[i, ]), m[i, ])
    expect_identical(as.matrix(x[i, , drop = FALSE]), m[i, , drop = FALSE])
    for (j in columns) {
      expect_identical(as.matrix(x[i, j, drop = FALSE]), m[i, j, drop = FALSE])
      expect_identical(on_base(x[i, j]), m[i, j])
    }
  }
  for (j in columns) expect_identical(on_base(x[, j]), m[, j])
  expect_identical(as.matrix(x[, ]), m)
  expect_identical(as.matrix(x[]), m)
})

test_each_engine("x[i] reads values by position, logical or pairs", {
  m <- named(4, 3)
  x <- as_cl(m)
  for (i in list(5, c(1, 12, 1), 13, -1, m > 6, cbind(1:3, 3:1), c(TRUE, FALSE), integer(), NA)) {
    expect_identical(x[i], unname(m[i]))
  }
  expect_refused("i", x[as_cl(m)])
})

test_that("bad subscripts are rejected", {
  x <- on_host(as_cl(named(4, 3)))
  bad <- list(5, "r9", NA_character_, c(1, -1), c(NA, -1), rep(TRUE, 5), list(1), 1i, mean)
  for (i in bad) expect_refused("i", x[i, ])
  expect_refused("j", x[, 4])
  expect_fault(x[1, 1, 1], "argument")
  expect_refused("drop", x[1, , drop = NA])
})

test_each_engine("x[i, j] <- value agrees with base R and makes a new matrix", {
  m <- named(6, 5)
  cases <- list(list(1, 1, 9), list(2:3, 2:4, 1:6), list(c(1, 3), c(5, 2), 1:4), list(-1, 1:2, 0),
                list("r2", "c3", -1), list(1:6, 1:5, matrix(1:30, 6)), list(2:3, 1:5, c(1, 2)),
                list(integer(), 1, 5), list(c(TRUE, FALSE), 2, 1:3))
  for (case in cases) {
    x <- as_cl(m)
    before <- x
    expected <- m
    x[case[[1]], case[[2]]] <- case[[3]]
    expected[case[[1]], case[[2]]] <- case[[3]]
    expect_identical(as.matrix(x), expected)
    expect_identical(as.matrix(before), m)
  }
})

test_each_engine("whole rows, columns, positions and device values can be replaced", {
  m <- named(3, 3)
  x <- as_cl(m)
  x[2, ] <- 1:3
  m[2, ] <- 1:3
  x[, 3] <- 0
  m[, 3] <- 0
  x[5] <- -5
  m[5] <- -5
  expect_identical(as.matrix(x), m)
  x[1:2, 1:2] <- as_cl(diag(2))
  m[1:2, 1:2] <- diag(2)
  expect_identical(as.matrix(x), m)
  x[c(1, 3), c(1, 3)] <- as_cl(matrix(7, 2, 2))
  m[c(1, 3), c(1, 3)] <- 7
  expect_identical(as.matrix(x), m)
  x[m > 5] <- 1
  m[m > 5] <- 1
  x[] <- m * 2
  expect_identical(as.matrix(x), m * 2)
  expect_refused("value", x[1, ] <- 1:2, x[1, 1] <- "a")
  expect_refused("i", x[4, 1] <- 1, x[10] <- 1)
  expect_identical(as.matrix(x), m * 2)
})

test_each_engine("t(), head(), tail() and diag() agree with base R", {
  for (s in shapes) {
    m <- numbers(s[1], s[2])
    expect_identical(as.matrix(t(as_cl(m))), t(m))
    if (all(s > 0)) expect_identical(diag(as_cl(m)), diag(m))
  }
  m <- named(9, 4)
  x <- as_cl(m)
  expect_identical(as.matrix(t(x)), t(m))
  for (n in list(2, -7, 20, c(3, 2), c(NA, 2), 0)) {
    expect_identical(as.matrix(head(x, n)), head(m, n))
    expect_identical(as.matrix(tail(x, n)), tail(m, n))
  }
  y <- numbers(9, 4)
  expect_identical(as.matrix(tail(as_cl(y), 2)), tail(y, 2))
  expect_identical(as.matrix(tail(as_cl(y), 2, keepnums = FALSE)), tail(y, 2, keepnums = FALSE))
  square <- matrix(1:9 + 0, 3, dimnames = list(letters[1:3], letters[1:3]))
  expect_identical(diag(as_cl(square)), diag(square))
  expect_identical(diag(as_cl(square), names = FALSE), diag(square, names = FALSE))
  z <- as_cl(square)
  diag(z) <- 3:1
  diag(square) <- 3:1
  expect_identical(as.matrix(z), square)
  diag(x) <- 0
  diag(m) <- 0
  expect_identical(as.matrix(x), m)
  expect_refused("value", diag(x) <- 1:2)
  expect_identical(format(cl_eval(t(as_cl(square, view = "lower")))[[1]]),
                   format(as_cl(t(square), view = "upper")))
})

test_each_engine("cbind() and rbind() agree with base R", {
  m <- named(3, 2)
  y <- matrix(9, 3, 1)
  x <- as_cl(m)
  expect_identical(as.matrix(cbind(x, y)), cbind(m, y))
  expect_identical(as.matrix(cbind(y, x)), cbind(y, m))
  expect_identical(as.matrix(cbind(x, as_cl(m), y)), cbind(m, m, y))
  expect_identical(as.matrix(rbind(x, m)), rbind(m, m))
  expect_identical(unname(as.matrix(cbind(x, 5))), unname(cbind(m, 5)))
  expect_identical(unname(as.matrix(rbind(1:2, x))), unname(rbind(1:2, m)))
  expect_fault(cbind(x, matrix(1, 2, 2)), "argument")
  expect_fault(rbind(x, matrix(1, 2, 3)), "argument")
  expect_fault(cbind(x, "a"), "argument")
})

test_each_engine("isSymmetric() checks symmetry, names and missing values", {
  m <- crossprod(numbers(40, 33))
  expect_true(isSymmetric(as_cl(m)))
  expect_true(isSymmetric(as_cl(m, view = "symmetric")))
  off <- m
  off[30, 2] <- off[30, 2] * (1 + 1e-6)
  expect_false(isSymmetric(as_cl(off)))
  expect_true(isSymmetric(as_cl(off), tol = 1e-5))
  expect_false(isSymmetric(as_cl(numbers(3, 4))))
  rows <- m
  rownames(rows) <- seq_len(33)
  expect_false(isSymmetric(as_cl(rows)))
  expect_true(isSymmetric(as_cl(rows), check.attributes = FALSE))
})

# ---- handles whose data is gone -----------------------------------------------------------------

# The errors that every use of a freed or restored handle must give.
expect_dead <- function(x, what) {
  expect_error(as.matrix(x), class = paste0("statcl_error_", what))
  expect_error(x + 1, class = paste0("statcl_error_", what))
  expect_error(sum(x), class = paste0("statcl_error_", what))
  expect_error(x %*% x, class = paste0("statcl_error_", what))
  expect_error(cl_chol(x), class = paste0("statcl_error_", what))
  expect_error(x[1, 1], class = paste0("statcl_error_", what))
  expect_error(t(x), class = paste0("statcl_error_", what))
  expect_error(diag(x), class = paste0("statcl_error_", what))
  expect_equal(dim(x), c(2L, 2L))
  expect_output(print(x), "2 x 2")
  expect_output(str(x), "2 x 2")
  expect_output(print(summary(x)), "2 x 2")
  expect_null(cl_free(x))
}

test_that("a freed matrix prints as freed, and freeing it again does nothing", {
  each_engine({
    x <- as_cl(diag(2))
    y <- x * 1
    cl_free(x)
    expect_null(cl_free(x))
    expect_output(print(x), "freed")
    expect_dead(x, "stale")
    expect_identical(as.matrix(y), diag(2))
  })
  expect_refused("x", cl_free(diag(2)))
})

test_that("forged handles are rejected", {
  blank <- new("clMatrix", handle = new("externalptr"), Dim = c(2L, 2L),
               Dimnames = list(NULL, NULL), view = "general")
  expect_fault(as.matrix(blank), "argument")
  expect_fault(blank + 1, "argument")
  expect_fault(blank %*% diag(2), "argument")
  expect_output(print(blank), "not a clMatrix")
  foreign <- blank
  connection <- textConnection("text")
  on.exit(close(connection))
  foreign@handle <- attr(connection, "conn_id")
  expect_fault(as.matrix(foreign), "argument")
  expect_error(new("clMatrix", handle = 1L), "handle")
  listed <- structure(list(handle = 1), class = "clMatrix")
  expect_fault(cl_matmul(listed, diag(2)), "argument")
})

test_that("matrices of two devices do not mix", {
  require_device()
  x <- on_host(as_cl(diag(2)))
  y <- on_device(as_cl(diag(2)))
  expect_fault(x + y, "argument")
  expect_fault(y %*% x, "argument")
  expect_refused("b", cl_tri_solve(x, y))
  expect_fault(cbind(x, y), "argument")
})

test_that("a forked child gets an error at once, and the parent is not affected", {
  skip_on_os("windows")
  require_device()
  x <- on_device(as_cl(diag(2)))
  expect_equal(sum(x), 2)
  job <- parallel::mcparallel({
    class_of <- function(code) tryCatch({
      code
      "none"
    }, error = function(e) class(e)[1L])
    c(class_of(as.matrix(x)), class_of(x + 1), class_of(sum(x)), class_of(print(x)),
      class_of(with_cl(cl_chol(diag(3)), engine = "auto")))
  })
  result <- parallel::mccollect(job, wait = FALSE, timeout = 10)
  if (is.null(result)) tools::pskill(job$pid, tools::SIGKILL)
  fork <- "statcl_error_fork"
  printed <- result[[1L]][result[[1L]] != ""]
  expect_identical(tail(printed, 5L), c(fork, fork, fork, "none", "none"))
  expect_equal(sum(x), 2)
})
