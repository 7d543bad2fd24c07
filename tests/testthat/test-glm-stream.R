# Fits by blocks: the same numbers as in memory, at several sizes of blocks, and what is refused.

rows_of <- function(data, size, change = identity) {
  at <- 0
  pass <- 0
  function(reset = FALSE) {
    if (reset) {
      at <<- 0
      pass <<- pass + 1
      return(NULL)
    }
    if (at >= nrow(data)) return(NULL)
    rows <- seq(at + 1, min(at + size, nrow(data)))
    at <<- at + length(rows)
    if (pass > 2) change(data[rows, ]) else data[rows, ]
  }
}

expect_same_fit <- function(fit, whole, tol = 1e-9) {
  error <- sqrt(diag(vcov(whole)))
  expect_lt(max(0, abs(coef(fit) - coef(whole))[names(error)] / error), 1e-7)
  expect_equal(vcov(fit), vcov(whole), tolerance = 1e-7)
  for (name in c("deviance", "null.deviance", "aux", "logLik")) {
    expect_equal(fit[[name]], whole[[name]], tolerance = tol, label = name)
  }
  for (name in c("df.residual", "df.null", "rank", "nobs", "levels", "kind", "converged", "assign",
                 "contrasts", "xlevels")) {
    expect_equal(fit[[name]], whole[[name]], label = name)
  }
}

data <- function() {
  set.seed(5)
  n <- 400
  d <- data.frame(a = rnorm(n), b = runif(n), g = sample(c("u", "v", "w"), n, TRUE),
                  h = factor(sample(c("lo", "hi"), n, TRUE), c("lo", "hi", "none")),
                  e = runif(n), k = sample(1:4, n, TRUE), size = sample(2:9, n, TRUE))
  d$g[1:150] <- sample(c("w", "v"), 150, TRUE)
  eta <- 0.3 + 0.4 * d$a - d$b + 0.3 * (d$g == "w") + d$e / 4
  d$count <- rpois(n, exp(eta))
  d$many <- rnbinom(n, 2, mu = exp(eta + 1))
  d$z <- rbinom(n, 1, plogis(eta))
  d$s <- rbinom(n, d$size, plogis(eta))
  d$r <- eta + rnorm(n)
  d$pos <- rgamma(n, 3, 3 / exp(eta))
  d$ok <- factor(ifelse(d$z == 1, "yes", "no"))
  d
}

test_that("all families have the numbers of the fit in memory and of glm()", {
  d <- data()
  calls <- list(
    quote(cl_glm(z ~ a + b + g, d)), quote(cl_glm(ok ~ a + g * h, d, binomial)),
    quote(cl_glm(cbind(s, size - s) ~ a + b, d, "binomial_logit", weights = k)),
    quote(cl_glm(s ~ a + b, d, "binomial_logit", trials = size)),
    quote(cl_glm(s / size ~ a, d, binomial("probit"), weights = size)),
    quote(cl_glm(r ~ a + b + g + factor(k), d, "normal_id", weights = e, offset = b)),
    quote(cl_glm(count ~ a + g + offset(e), d, "poisson_log", subset = k > 1)),
    quote(cl_glm(count ~ a + h, d, quasipoisson, weights = k)),
    quote(cl_glm(pos ~ a + b, d, Gamma("log"), weights = k, offset = e)),
    quote(cl_glm(pos ~ b, d, inverse.gaussian("log"), weights = k, mustart = pos + 0.1)),
    quote(cl_glm(pos ~ b, d, gaussian("log"), weights = k)),
    quote(cl_glm(count ~ 0 + g, d, poisson("sqrt"), start = rep(1, 3))),
    quote(cl_glm(many ~ a + g, d, "neg_binomial_2_log")),
    quote(cl_glm(z ~ 1, d)), quote(cl_glm(r ~ 0, d, "normal_id")))
  sizes <- full_or_quick(c(1, 7, 150, 1000), c(37, 1000))
  each_engine({
    for (call in calls) {
      whole <- eval(call)
      for (size in sizes) {
        call$block <- size
        fit <- eval(call)
        expect_s3_class(fit, "cl_glm_stream")
        expect_equal(fit$blocks, ceiling(400 / size))
        expect_same_fit(fit, whole)
      }
    }
    fit <- cl_glm(many ~ a + g, d, MASS::negative.binomial(2), block = 50)
    peer <- glm(many ~ a + g, MASS::negative.binomial(2), d, epsilon = 1e-15)
    expect_lt(max(abs(coef(fit) - coef(peer)) / sqrt(diag(vcov(peer)))), 1e-7)
    expect_equal(c(deviance(fit), AIC(fit)), c(deviance(peer), AIC(peer)), tolerance = 1e-10)
  })
})

test_each_engine("badly conditioned columns keep the digits of QR", {
  whole <- cl_glm(Employed ~ ., longley, "normal_id")
  for (size in c(1, 5, 16)) {
    fit <- cl_glm(Employed ~ ., longley, "normal_id", block = size)
    expect_equal(coef(fit), coef(whole), tolerance = 1e-13)
    expect_equal(c(vcov(fit), fit$deviance), c(vcov(whole), whole$deviance), tolerance = 1e-10)
  }
  set.seed(2)
  n <- 30000 # above the size at which a factor is cheap
  d <- data.frame(a = rnorm(n), b = rnorm(n), c = rnorm(n), e = rnorm(n))
  d$near <- d$a + 1e-6 * d$b
  d$twice <- 2 * d$a
  d$y <- rbinom(n, 1, plogis(d$c))
  expect_equal(cl_glm(y ~ a + c + e + twice + b, data = d, block = 2e4)$stream$sums[[2L]], n)
  fit <- cl_glm(y ~ a + near + c + e + twice, data = d, block = 26000)
  # to the last digit, where glm() may go to and fro between two of them
  peer <- suppressWarnings(glm(y ~ a + near + c + e, binomial, d, epsilon = 1e-15))
  error <- sqrt(diag(vcov(peer)))
  expect_equal(names(coef(fit))[is.na(coef(fit))], "twice")
  expect_lt(max(abs(coef(fit)[1:5] - coef(peer)) / error), 1e-8)
  expect_equal(sqrt(diag(vcov(fit)))[1:5], error, tolerance = 1e-7)
})

test_that("numbers in quotes, as factors are written, are numbers in every block of a file", {
  path <- tempfile(fileext = ".csv")
  on.exit(unlink(path))
  d <- data.frame(y = c(3, 1, 4, 1, 5, 9), x = factor(c(2, 7, 1, 8, 2, 8)))
  write.csv(d, path, row.names = FALSE)
  d$x <- as.numeric(as.character(d$x))
  on_host(expect_equal(coef(cl_glm(y ~ x, path, gaussian, block = 2)), coef(lm(y ~ x, d))))
})

test_that("functions, files, connections and Arrow readers are read in blocks", {
  open_before <- nrow(showConnections())
  d <- data()
  d$a[c(3, 170)] <- NA
  path <- tempfile(fileext = ".csv")
  on.exit(unlink(path))
  write.csv(d, path, row.names = FALSE)
  each_engine({
    whole <- cl_glm(count ~ a + g + log(size), d, "poisson_log", na.action = na.exclude)
    reader <- function() {
      read <- rows_of(d, 90)
      structure(list2env(list(read_next_batch = function() read())), class = "RecordBatchReader")
    }
    text <- function() textConnection(readLines(path))
    sources <- list(rows_of(d, 111), path, file(path), gzfile(path), text(), reader())
    for (source in sources) {
      fit <- cl_glm(count ~ a + g + log(size), source, "poisson_log", na.action = na.exclude,
                    block = 60)
      expect_same_fit(fit, whole)
      expect_equal(as.vector(fit$na.action), c(3, 170))
      if (inherits(source, "textConnection")) close(source)
    }
    expect_equal(predict(fit, d, "response"), predict(whole, d, "response"))
    expect_refused("object", fitted(fit))
    fit <- cl_glm(count ~ a + g, path, "poisson_log", xlev = list(g = c("w", "u", "v")))
    expect_equal(names(coef(fit)), c("(Intercept)", "a", "gu", "gv"))
  })
  expect_equal(nrow(showConnections()), open_before)
})

test_that("Arrow tables are read", {
  skip_if_not_installed("arrow")
  table <- getExportedValue("arrow", "arrow_table")(data())
  expect_same_fit(cl_glm(count ~ a + g, table, "poisson_log"),
                  cl_glm(count ~ a + g, data(), "poisson_log"))
})

# A package with the name of arrow and the functions of it that are used, in a library of its own:
# as_record_batch_reader() of a table gives a reader of batches, which as.data.frame() reads.
fake_arrow <- function(library) {
  home <- file.path(library, "source", "arrow")
  dir.create(file.path(home, "R"), recursive = TRUE)
  writeLines(c("Package: arrow", "Version: 0.0.1", "Title: Tables in Batches",
               "Description: For tests.", "License: GPL-3"), file.path(home, "DESCRIPTION"))
  writeLines(c("export(as_record_batch_reader)", "S3method(as.data.frame, RecordBatch)"),
             file.path(home, "NAMESPACE"))
  writeLines(c(
    "as.data.frame.RecordBatch <- function(x, ...) x$rows",
    "as_record_batch_reader <- function(x) {",
    "  at <- 0",
    "  structure(list2env(list(read_next_batch = function() {",
    "    if (at >= nrow(x$rows)) return(NULL)",
    "    rows <- seq(at + 1, min(at + 70, nrow(x$rows)))",
    "    at <<- max(rows)",
    "    structure(list(rows = x$rows[rows, ]), class = c(\"RecordBatch\", \"ArrowTabular\"))",
    "  })), class = c(\"RecordBatchReader\", \"ArrowObject\", \"R6\"))",
    "}"), file.path(home, "R", "arrow.R"))
  log <- tempfile()
  system2(file.path(R.home("bin"), "R"), c("CMD", "INSTALL", "--no-test-load", "--no-byte-compile",
                                           paste0("--library=", library), home), log, log)
}

test_that("tables with Arrow's functions are read in their batches", {
  if (nzchar(system.file(package = "arrow"))) skip("the package arrow is here")
  library <- tempfile("library-")
  dir.create(library)
  before <- .libPaths()
  on.exit({
    if (isNamespaceLoaded("arrow")) unloadNamespace("arrow")
    .libPaths(before)
    unlink(library, recursive = TRUE)
  })
  expect_identical(fake_arrow(library), 0L)
  .libPaths(c(library, before))
  table <- structure(list(rows = data()), class = c("Table", "ArrowTabular", "ArrowObject", "R6"))
  each_engine({
    fit <- cl_glm(count ~ a + g, table, "poisson_log")
    expect_identical(fit$stream$sums[[1L]], as.double(nrow(data())))
    expect_same_fit(fit, cl_glm(count ~ a + g, data(), "poisson_log"))
    expect_equal(fitted(fit), unname(fitted(cl_glm(count ~ a + g, data(), "poisson_log"))),
                 ignore_attr = TRUE)
  })
})

test_that("blocks may be empty, lack a level, or have only missing values of a column", {
  d <- data()
  d$a[1:50] <- NA
  read <- rows_of(d, 50)
  blocks <- function(reset = FALSE) {
    block <- read(reset = reset)
    if (!is.null(block) && all(is.na(block$a))) block$a <- NA # logical
    block
  }
  expect_same_fit(cl_glm(count ~ a + g, blocks, "poisson_log"),
                  cl_glm(count ~ a + g, d, "poisson_log"))
  empty <- 0
  blocks <- function(reset = FALSE) {
    if (reset) empty <<- 0
    empty <<- empty + 1
    if (!reset && empty %% 2 == 0) return(d[0, ])
    read(reset = reset)
  }
  expect_same_fit(cl_glm(z ~ a + b, blocks), cl_glm(z ~ a + b, d))
  weight <- replace(d$k, 1:120, 0)
  d$weight <- weight
  expect_same_fit(cl_glm(count ~ a + b, d, "poisson_log", weights = weight, block = 40),
                  cl_glm(count ~ a + b, d, "poisson_log", weights = weight))
})

test_that("methods work without the rows, or read them again", {
  d <- data()
  d$b[c(1, 77)] <- NA
  whole <- cl_glm(count ~ a + b + g, d, "poisson_log", na.action = na.exclude)
  fit <- cl_glm(count ~ a + b + g, d, "poisson_log", na.action = na.exclude, block = 70)
  expect_equal(coef(summary(fit)), coef(summary(whole)), tolerance = 1e-8)
  expect_output(print(fit), "Fit of 6 blocks of rows", fixed = TRUE)
  expect_output(print(summary(fit)), "null deviance")
  expect_equal(confint(fit), confint(whole), tolerance = 1e-8)
  expect_equal(c(AIC(fit), BIC(fit)), c(AIC(whole), BIC(whole)))
  plain <- function(v) unname(v)
  for (f in list(fitted, residuals, hatvalues, cooks.distance, weights, predict,
                 function(x) residuals(x, "pearson"), function(x) weights(x, "working"),
                 function(x) predict(x, type = "response"))) {
    expect_equal(plain(f(fit)), plain(f(whole)), tolerance = 1e-7)
  }
  expect_equal(predict(fit, d[2:9, ], se.fit = TRUE), predict(whole, d[2:9, ], se.fit = TRUE),
               tolerance = 1e-8)
  expect_equal(as.data.frame(anova(fit)), as.data.frame(anova(whole)), tolerance = 1e-8)
  small <- update(fit, . ~ . - g)
  expect_equal(as.data.frame(anova(small, fit)),
               as.data.frame(anova(update(whole, . ~ . - g), whole)), tolerance = 1e-8)
  if (requireNamespace("generics", quietly = TRUE)) {
    expect_equal(generics::tidy(fit, conf.int = TRUE), generics::tidy(whole, conf.int = TRUE),
                 tolerance = 1e-7)
    expect_equal(generics::glance(fit), generics::glance(whole))
  }
  gamma <- cl_glm(pos ~ a, d, Gamma("log"), block = 99)
  expect_output(print(summary(gamma)), "dispersion: ")
  expect_equal(as.data.frame(anova(gamma)),
               as.data.frame(anova(cl_glm(pos ~ a, d, Gamma("log")))), tolerance = 1e-8)
  for (f in list(model.frame, model.matrix, plot, simulate, influence, rstudent,
                 function(x) confint(x, method = "profile"))) {
    expect_fault(f(fit), "argument")
  }
  expect_refused("object", fitted(update(fit, model = FALSE)))
})

test_that("a data frame whose model matrix is too large goes by blocks by itself", {
  d <- data()
  old <- options(statcl.glm_memory = 8 * 16 * 400)
  on.exit(options(old))
  expect_s3_class(cl_glm(z ~ a + b + g, d), "cl_glm_stream")
  options(statcl.glm_memory = 1e6)
  expect_false(inherits(cl_glm(z ~ a + b + g, d), "cl_glm_stream"))
  options(statcl.glm_memory = 1)
  expect_false(inherits(cl_glm(z ~ poly(a, 2), d), "cl_glm_stream"))
  expect_false(inherits(cl_glm(z ~ a, d, method = "firth"), "cl_glm_stream"))
})

test_that("what cannot be fitted by blocks is refused", {
  d <- data()
  expect_refused("formula", cl_glm(z ~ poly(a, 2), d, block = 50),
                 cl_glm(z ~ splines::ns(a, 3), d, block = 50), cl_glm(z ~ scale(a), d, block = 50),
                 cl_glm(z ~ a, d, weights = k / mean(k), block = 50),
                 cl_glm(z ~ a, d, subset = rank(b) > 9, block = 50))
  knots <- c(-1, 0, 1)
  fixed <- z ~ splines::ns(a, knots = knots, Boundary.knots = c(-3, 3)) + scale(b, 1, 2) +
    poly(e, 2, raw = TRUE)
  expect_same_fit(cl_glm(fixed, d, block = 50), cl_glm(fixed, d))
  expect_refused("family", cl_glm(h ~ a, d, "categorical_logit", block = 50),
                 cl_glm(pos ~ a, d, cl_family("beta"), block = 50))
  expect_refused("method", cl_glm(z ~ a, d, method = "map", block = 50))
  expect_refused("formula", cl_glm(count ~ a | b, d, cl_family("zip"), block = 50))
  expect_refused("block", cl_glm(z ~ a, d, block = 0))
  expect_refused("data", cl_glm(z ~ a, "no such file"), cl_glm(z ~ a, function(reset) NULL),
                 cl_glm(z ~ a, function(reset) 1), cl_glm(z ~ a, function(reset) stop("lost")),
                 cl_glm(z ~ a, d[0, ], block = 5), cl_glm(z ~ a, d, subset = k > 9, block = 5))
  expect_refused("y", cl_glm(k ~ a, d, block = 50),
                 cl_glm(1 / (k - 1) ~ a, d, "normal_id", block = 50),
                 cl_glm(a ~ b, d, "poisson_log", block = 50))
  expect_fault(cl_glm(z ~ I(1 / (k - 1)), d, block = 50), "nonfinite", argument = "x")
})

test_that("blocks that differ, and data that change, are refused", {
  open_before <- nrow(showConnections())
  old <- options(statcl.glm_cache = 0)
  on.exit(options(old))
  d <- data()
  later <- function(change) rows_of(d, 100, change)
  fault <- function(source, formula = z ~ a + b, argument = "data", ...) {
    expect_fault(cl_glm(formula, source, ...), "argument", argument = argument)
  }
  fault(later(function(block) block[-1, ]))
  fault(later(function(block) transform(block, z = 1 - z)))
  fault(later(function(block) transform(block, a = a + 1)))
  fault(later(function(block) block[names(block) != "b"]))
  fault(later(function(block) transform(block, b = as.character(b))))
  fault(rows_of(d, 100), z ~ a + g, "formula", xlev = list(g = c("u", "v")))
  path <- tempfile(fileext = ".csv")
  on.exit(unlink(path), add = TRUE)
  writeLines(c("z,a", "1,2", "0,1", "1,3", "0,5\" pipe"), path)
  fault(path, z ~ a, block = 2)
  expect_equal(nrow(showConnections()), open_before)
  open <- file(path, "rt")
  expect_error(cl_glm(z ~ a, open, block = 2), class = "statcl_error_argument")
  expect_true(isOpen(open))
  close(open)
})

test_that("separation and perfect fits warn, progress is shown", {
  d <- data.frame(x = 1:40, y = rep(0:1, each = 20), line = 2 * (1:40) + 1)
  expect_warning(cl_glm(y ~ x, d, block = 15), class = "statcl_warning_separation")
  expect_warning(fit <- cl_glm(line ~ x, d, "normal_id", block = 15),
                 class = "statcl_warning_boundary")
  expect_equal(unname(coef(fit)), c(1, 2), tolerance = 1e-14)
  expect_warning(cl_glm(I((2 - y) / 3) ~ x, d, binomial, block = 15, weights = rep(2, nrow(d))[x]),
                 class = "statcl_warning_counts")
  s <- list2env(list(progress = TRUE, due = function() TRUE, done = 0, started = 0,
                     source = list(rows = 40)))
  expect_message(show_stream(s, "search", d[1:10, ]), "10 of 40 rows")
})

test_that("blocks are kept between passes where they fit, with the same numbers", {
  d <- data()
  d$w <- rep(c(0, 1, 2, 0.5), length.out = nrow(d))
  d$o <- d$a / 10
  reads <- 0
  counted <- function() {
    inner <- rows_of(d, 100)
    function(reset = FALSE) {
      if (reset) reads <<- reads + 1
      inner(reset = reset)
    }
  }
  old <- options(statcl.glm_cache = NULL)
  on.exit(options(old))
  each_engine(for (family in list("bernoulli_logit", "normal_id", "neg_binomial_2_log",
                                  binomial("probit"))) {
    formula <- if (identical(family, "neg_binomial_2_log")) count ~ a + b + g else z ~ a + b + g
    fit <- function() {
      reads <<- 0
      fit <- suppressWarnings(cl_glm(formula, counted(), family, offset = o, weights = w,
                                     progress = FALSE))
      c(list(reads = reads), fit[c("coefficients", "vcov", "deviance", "null.deviance", "logLik",
                                   "aux", "iterations", "df.residual")])
    }
    kept <- fit()
    options(statcl.glm_cache = 0)
    read <- fit()
    options(statcl.glm_cache = 20000) # less than all blocks take
    part <- fit()
    options(statcl.glm_cache = NULL)
    expect_identical(kept[-1L], read[-1L])
    expect_identical(part, read)
    expect_true(kept$reads < read$reads)
    expect_true(kept$reads <= 4)
  })
})
