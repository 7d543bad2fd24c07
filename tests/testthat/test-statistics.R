# Statistics of matrices (R/matrix-statistics.R).

sample_matrix <- function() {
  x <- cbind(a = sin(1:40) + 3, b = cos(1:40)^3 * 100, c = (1:40)^2 / 50)
  rownames(x) <- paste0("r", 1:40)
  x
}

quiet <- suppressMessages

test_that("var(), cov() and cor() agree with base R, on the device and symmetric", {
  x <- sample_matrix()
  y <- cbind(u = log(1:40), v = sqrt(40:1))
  each_engine({
    d <- as_cl(x)
    e <- as_cl(y)
    for (f in list(var, cov, cor)) {
      got <- expect_silent(f(d))
      expect_s4_class(got, "clMatrix")
      expect_identical(got@view, "symmetric")
      expect_equal(as.matrix(got), f(x), tolerance = 1e-13)
      expect_equal(as.matrix(f(d, e)), f(x, y), tolerance = 1e-13)
      expect_equal(as.matrix(f(x, e)), f(x, y), tolerance = 1e-13)
      expect_equal(as.matrix(f(d, y)), f(x, y), tolerance = 1e-13)
      expect_equal(as.matrix(f(d, 1:40)), f(x, 1:40), tolerance = 1e-13)
      expect_equal(as.matrix(f(d, use = "complete.obs")), f(x, use = "complete.obs"),
                   tolerance = 1e-13)
      expect_equal(as.matrix(f(d[, 1, drop = FALSE])), f(x[, 1, drop = FALSE]), tolerance = 1e-13)
      expect_equal(as.matrix(quiet(f(d[1, , drop = FALSE]))), f(x[1, , drop = FALSE]))
      expect_refused("y", f(d, 1:3), f(d, "a"))
    }
    expect_identical(diag(cor(d)), c(a = 1, b = 1, c = 1))
    # Neither a large mean nor large and small units lose digits.
    expect_equal(as.matrix(cov(as_cl(x + 1e8))), cov(x + 1e8), tolerance = 1e-12)
    wide <- x %*% diag(c(1e200, 1, 1e-200))
    expect_equal(as.matrix(cor(as_cl(wide))), cor(x), tolerance = 1e-12, ignore_attr = TRUE)
    constant <- cbind(1:5, 2)
    expect_warning(got <- cor(as_cl(constant)), "standard deviation is zero")
    expect_equal(as.matrix(got), suppressWarnings(cor(constant)))
    holes <- x
    holes[3, 2] <- NA
    h <- as_cl(holes)
    for (f in list(var, cov, cor)) expect_equal(as.matrix(f(h)), f(holes))
    for (use in c("complete.obs", "pairwise.complete.obs", "na.or.complete")) {
      expect_equal(as.matrix(quiet(cov(h, use = use))), cov(holes, use = use))
    }
    expect_equal(as.matrix(quiet(var(h, na.rm = TRUE))), var(holes, na.rm = TRUE))
    expect_fault(quiet(cov(h, use = "all.obs")), "argument")
    expect_refused("use", cov(h, use = "some"))
    for (method in c("kendall", "spearman")) {
      expect_equal(as.matrix(quiet(cor(d, method = method))), cor(x, method = method))
    }
    expect_refused("method", cor(d, method = "other"))
    expect_equal(sd(d), sd(x))
    expect_equal(as.matrix(cov2cor(cov(d))), cor(x), tolerance = 1e-13)
  })
  expect_identical(cov(x, y), stats::cov(x, y)) # base R's matrices go to base R
  expect_error(cor(letters), "supply both")
})

test_that("which() gives the indices of true elements", {
  x <- sample_matrix()
  each_engine({
    d <- as_cl(x)
    for (limit in c(-Inf, 3.5, 31.9, 99, 1e9)) {
      expect_identical(which(d > limit), unname(which(x > limit)))
      expect_identical(which(d > limit, arr.ind = TRUE), which(x > limit, arr.ind = TRUE))
      expect_identical(which(d > limit, arr.ind = TRUE, useNames = FALSE),
                       which(x > limit, arr.ind = TRUE, useNames = FALSE))
    }
    expect_identical(which(as_cl(matrix(c(NA, 1, 0, -2), 2))), c(2L, 4L))
    expect_identical(which(as_cl(matrix(0, 0, 3))), integer())
    expect_refused("arr.ind", which(d, arr.ind = NA))
  })
  expect_identical(which(c(a = TRUE, b = FALSE)), c(a = 1L))
  expect_error(which(1), "not logical")
})

test_that("sweep() and scale() agree with base R, and stay on the device", {
  x <- sample_matrix()
  each_engine({
    d <- as_cl(x)
    expect_equal(as.matrix(sweep(d, 2, colMeans(d))), sweep(x, 2, colMeans(x)))
    expect_equal(as.matrix(sweep(d, 1, 1:40, "*")), sweep(x, 1, 1:40, "*"))
    expect_equal(as.matrix(sweep(d, 2, as_cl(1:3), function(a, b) pmax(a, b))),
                 sweep(x, 2, 1:3, function(a, b) pmax(a, b)))
    expect_equal(as.matrix(sweep(d, 2, 7)), sweep(x, 2, 7, check.margin = FALSE))
    expect_equal(sweep(x, 2, as_cl(1:3)), sweep(x, 2, 1:3))
    expect_warning(sweep(d, 2, 1:2), "STATS")
    expect_refused("STATS", sweep(d, 2, "a"))
    holes <- x
    holes[3, 2] <- NA
    for (y in list(x, holes, x[1, , drop = FALSE])) for (center in list(TRUE, FALSE, 1:3)) {
      for (scale in list(TRUE, FALSE, 4:6)) {
        got <- scale(as_cl(y), center, scale)
        want <- scale(y, center, scale)
        expect_s4_class(got, "clMatrix")
        expect_equal(as.matrix(got), want, ignore_attr = c("scaled:center", "scaled:scale"))
        for (name in c("scaled:center", "scaled:scale")) {
          expect_equal(attr(got, name), attr(want, name), ignore_attr = "names")
        }
      }
    }
    expect_refused("scale", scale(d, TRUE, "a"))
  })
  expect_identical(sweep(x, 2, 1:3), base::sweep(x, 2, 1:3))
})

test_each_engine("diff() agrees with base R", {
  x <- sample_matrix()
  d <- as_cl(x)
  for (lag in c(1, 2, 7, 20)) for (times in 1:3) {
    want <- diff(x, lag, times)
    got <- diff(d, lag, times)
    if (is_cl(got)) got <- as.matrix(got)
    expect_equal(got, want)
  }
  expect_refused("lag", diff(d, 0))
  expect_refused("differences", diff(d, 1, 0.5))
})

test_each_engine("functions that work on a copy agree with base R, and report it once", {
  x <- sample_matrix()
  holes <- replace(x, 7, NA)
  d <- as_cl(x)
  quiet({
    expect_identical(sort(d), sort(x))
    expect_identical(sort(as_cl(holes), decreasing = TRUE, na.last = TRUE),
                     replace(sort(holes, decreasing = TRUE, na.last = TRUE), 120, NaN))
    expect_identical(order(d), order(x))
    expect_identical(order(d, decreasing = TRUE), order(x, decreasing = TRUE))
    expect_identical(median(d), median(x))
    expect_identical(median(as_cl(holes)), NA_real_)
    expect_identical(median(as_cl(holes), na.rm = TRUE), median(holes, na.rm = TRUE))
    expect_identical(quantile(d), quantile(x))
    expect_identical(quantile(d, c(0.1, 0.9), type = 6, names = FALSE),
                     quantile(x, c(0.1, 0.9), type = 6, names = FALSE))
    expect_fault(quantile(as_cl(holes)), "argument")
    expect_equal(mad(d), mad(x))
    expect_equal(IQR(d), IQR(x))
    expect_s4_class(rowsum(d, rep(c("v", "u"), 20)), "clMatrix")
    expect_equal(as.matrix(rowsum(d, rep(c("v", "u"), 20), reorder = FALSE)),
                 rowsum(x, rep(c("v", "u"), 20), reorder = FALSE))
  })
  few <- round(x / 20)
  e <- as_cl(few)
  quiet({
    expect_identical(as.matrix(unique(e)), unique(few))
    expect_identical(duplicated(e), duplicated(few))
    expect_identical(anyDuplicated(e), anyDuplicated(few))
    expect_identical(cut(e, 3), cut(few, 3))
    expect_identical(c(table(e)), c(table(few)))
  })
  expect_identical(as.matrix(aperm(d)), t(x))
  expect_identical(as.matrix(aperm(d, 1:2)), x)
  expect_identical(apply(d, 2, range), apply(x, 2, range))
  rm(list = ls(announced_copies), envir = announced_copies)
  expect_message(sort(d), "sort\\(\\) of a clMatrix", class = "statcl_message_copy")
  expect_silent(sort(d))
  expect_message(median(d), "median")
})

test_that("attaching the package masks no function of R with a message", {
  code <- paste("library(statcl); x <- c(b = 3, a = 1);",
                "stopifnot(identical(pmin(x, 2), base::pmin(x, 2)),",
                "identical(pmax(Sys.Date(), NA, na.rm = TRUE), Sys.Date()))")
  output <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE,
                    stderr = TRUE, env = paste0("R_LIBS=", paste(.libPaths(), collapse = ":")))
  expect_identical(as.character(output), character())
  expect_null(attr(output, "status"))
  # Base R handles all other arguments, including errors.
  expect_error(pmin(), "no arguments")
  expect_warning(pmax(1:3, 1:2), "fractionally recycled")
  expect_identical(pmin(c("b", "a"), "aa"), base::pmin(c("b", "a"), "aa"))
  expect_identical(pmax(factor(1:2, ordered = TRUE), NA, na.rm = TRUE),
                   base::pmax(factor(1:2, ordered = TRUE), NA, na.rm = TRUE))
})
