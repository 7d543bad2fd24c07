# What a new user may try with cl_gradient(): the right answer or an error with a class and a clear
# message.

refused <- function(f, ..., says, argument = "f") {
  e <- expect_fault(cl_gradient(f)(...), "argument", argument = argument)
  expect_match(conditionMessage(e), says, fixed = TRUE)
}

test_that("time series are data, and other classes of data are named", {
  series <- ts(c(1, 2, 4), start = 2000)
  on_host({
    for (f in list(function(a) sum((series - a)^2) + sum(a * series > 2) + time(series)[1],
                   function(a) sum(dnorm(series, a, 1, log = TRUE)) + sum(-series + series * 2),
                   function(a) sum(dmvnorm(c(1, 2, 4), a, diag(3), TRUE)) + a %% 2,
                   function(a) sum(lag(series, -1) * c(1, a, 2)))) {
      want <- if ("dmvnorm" %in% all.names(body(f))) sum(dnorm(series, 3, log = TRUE)) + 1 else f(3)
      expect_equal(as.numeric(cl_gradient(f)(a = 3)), want)
    }
  })
  day <- as.Date("2026-01-02")
  group <- factor(c("u", "v"))
  table <- data.frame(x = 1:2)
  on_host({
    refused(function(a) sum(day - a), 1, says = "at 'day - a': an object of class \"Date\"")
    refused(function(a) sum(a * group), 1, says = "at 'a * group': an object of class \"factor\"")
    refused(function(a) sum(table * a), 1, says = "use as.matrix()")
    expect_equal(as.numeric(cl_gradient(function(a) sum(a[group]) + (Sys.Date() > day))(1:2)), 4)
  })
})

test_that("what needs a value, or is not available, is refused by name", {
  on_host({
    refused(function(a) switch(a, 1, 2), 1, says = "'switch' needs the value of a traced value")
    refused(function(a) if (isTRUE(all.equal(a, 1))) a else 0, 1, says = "all.equal()")
    refused(function(a) pt(a, 3), 1, says = "pt() may not be available for traced values")
    refused(function(a) rnorm(1, a), 1, says = "rnorm() may not be available")
    refused(function(a) if (NA) a else 0, 1, says = "missing value where TRUE/FALSE needed")
    deeper <- function(x) deeper(x + 1)
    refused(function(a) deeper(a), 1, says = "calls are nested too deeply")
  })
})

test_that("parameters under other names than those of the function", {
  model <- cl_gradient(function(mu, tau) mu^2 + tau)
  listed <- cl_gradient(function(p) p$x + p$s)
  on_host({
    expect_equal(model(2, 1), structure(5, gradient = list(mu = 4, tau = 1)))
    expect_equal(model(tau = 1, 2), model(2, 1))
    for (f in list(model, cl_hessian(model), function(...) cl_map_gradient(model, ...))) {
      e <- expect_fault(f(mu = 1, sigma = 2), "argument", argument = "...")
      expect_identical(conditionMessage(e),
                       "'f' has no parameter 'sigma': its parameters are 'mu', 'tau'")
      expect_fault(f(1, 2, 3), "argument", argument = "...")
    }
    e <- expect_fault(listed(list(x = 1)), "argument", argument = "f")
    expect_match(conditionMessage(e), "is a name missing", fixed = TRUE)
    e <- expect_fault(listed(c(x = 1, s = 2)), "argument", argument = "f")
    expect_match(conditionMessage(e), "call the model with a named list", fixed = TRUE)
    expect_equal(as.numeric(listed(x = 1, s = 2)), 3)
  })
})

test_that("parts of lists and environments are found by `$`", {
  data <- list(y = c(1, 2), more = list(n = 3), call = quote(a + b), name = as.name("y"))
  place <- new.env()
  place$k <- 5
  frame <- data.frame(x = c(1, 4))
  on_host({
    f <- cl_gradient(function(a) {
      l <- list()
      l$a <- a
      l$b$c <- a^2
      sum(data$y) * l$a + l$b$c + data$more$n + place$k + sum(frame$x) + length(data$call) +
        is.name(data$name)
    })
    expect_equal(f(2), structure(6 + 4 + 3 + 5 + 5 + 3 + 1, gradient = list(a = 7)))
  })
})

test_that("update() takes each variable once, and numbers for numbers", {
  y <- c(1, 2, 3)
  f <- cl_gradient(function(mu) sum((y - mu)^2))
  on_host({
    before <- f(mu = 1)
    for (wrong in list(1:4, matrix(1:3, 1), letters[1:3], list(1, 2, 3), NULL)) {
      expect_fault(update(f, y = wrong), "argument", argument = "y")
    }
    expect_fault(update(f, y = 1:3, y = 4:6), "argument", argument = "...")
    expect_identical(f(mu = 1), before)
    update(f, y = c(FALSE, TRUE, TRUE))
    expect_equal(as.numeric(f(mu = 1)), 1)
  })
})

test_that("a model works from a file and in other processes", {
  f <- local({
    y <- c(1, 2, 3)
    cl_gradient(function(mu) sum((y - mu)^2))
  })
  on_host({
    want <- f(mu = 1)
    file <- tempfile()
    on.exit(unlink(file))
    saveRDS(f, file)
    expect_identical(readRDS(file)(mu = 1), want)
    expect_equal(as.numeric(update(readRDS(file), y = c(2, 2, 2))(mu = 1)), 3)
    skip_on_os("windows")
    expect_identical(parallel::mclapply(1:2, function(i) f(mu = 1), mc.cores = 2),
                     list(want, want))
  })
})
