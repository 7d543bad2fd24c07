# Calls that a new user of cl_gradient() may try: the correct result, or an error with a class and a
# clear message.

test_that("time series are data, and other classes of data are named", {
  series <- ts(c(1, 2, 4), start = 2000)
  on_host({
    # numbers are aligned by time
    refused(function(a) sum((series - exp(a * lag(series, -1)))^2), 1, says = "different times")
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

test_that("functions that need a value, or are not available, are rejected by name", {
  on_host({
    refused(function(a) switch(a, 1, 2), 1, says = "'switch' needs the value of a traced value")
    refused(function(a) if (isTRUE(all.equal(a, 1))) a else 0, 1, says = "all.equal()")
    refused(function(a) pf(a, 3, 4), 1, says = "pf() may not be available for traced values")
    refused(function(a) qcauchy(a), 1, says = "qcauchy() may not be available")
    refused(function(a) if (NA) a else 0, 1, says = "missing value where TRUE/FALSE needed")
    deeper <- function(x) deeper(x + 1)
    refused(function(a) deeper(a), 1, says = "calls are nested too deeply")
  })
})

test_that("parameters under other names than the function's", {
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

test_that("a model can be saved, and used in other processes", {
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

test_that("errors of traced values do not end in the handlers of the function", {
  on_host({
    refused(function(a) tryCatch(if (a > 0) a else -a, error = function(e) 0), 1,
            says = "at 'if (a > 0) a else -a': 'if' needs the value")
    refused(function(a) {
      r <- try(a[a > 0], silent = TRUE)
      if (inherits(r, "try-error")) 0 else sum(r)
    }, 1, says = "an index cannot be a traced value")
    refused(function(a) cl_scan(function(s, x) tryCatch(if (s > 0) s else x, error = identity),
                                a, 1:3), 1, says = "cl_scan() records its step once")
    holds(function(a) tryCatch(stop("x"), error = function(e) a * 2), a = 1)
    holds(function(a) tryCatch(a %*% 1:5, error = function(e) sum(a)), a = c(1, 2))
    holds(function(a) tryCatch(warning("x"), warning = function(w) a * 3), a = 1)
    holds(function(a) {
      tryCatch(return(a * 5), finally = NULL)
      0
    }, a = 1)
  })
})

test_that("a traced value has the class of a number", {
  on_host({
    for (f in list(function(a) if (class(a) == "numeric") a else 0,
                   function(a) if (inherits(a, "numeric") && is(a, "numeric")) a else 0,
                   function(a) if (is.object(a) || !is.null(attributes(a))) 0 else a,
                   function(a) if (storage.mode(a) == "double") unclass(a) else 0,
                   function(a) if (is.logical(a > 0) && !is.logical(a)) Re(a) else 0,
                   function(a) {
                     g <- function(v) UseMethod("g")
                     g.numeric <- function(v) v^2
                     g.default <- function(v) 0
                     g(a)
                   })) holds(f, a = 1.5)
    holds(function(a) if (inherits(a, "matrix") && "array" %in% class(a)) sum(a) else 0,
          a = diag(2))
    holds(function(a) sum(structure(a, dim = c(2, 2))[1, ]), a = c(1, 2, 3, 4))
    refused(function(a) {
      class(a) <- "own"
      a
    }, 1, says = "'class<-' is not available")
    refused(function(a) {
      g <- function(v) UseMethod("g")
      g.factor <- function(v) v
      g(a)
    }, 1, says = "call one by its whole name")
  })
})

test_that("traced values stay within the function", {
  place <- new.env()
  alone <- new.env(parent = emptyenv())
  kept <- list()
  keep <- function(v) kept[["a"]] <<- v
  on_host({
    says <- "outside of 'f': return it instead"
    refused(function(a) {
      place$k <- a
      a
    }, 1, says = says)
    refused(function(a) {
      alone[["k"]] <- a
      a
    }, 1, says = says)
    refused(function(a) assign("k", a, envir = place), 1, says = says)
    refused(function(a) {
      keep(a)
      a
    }, 1, says = says)
    expect_identical(list(ls(place), ls(alone), kept), list(character(), character(), list()))
    holds(function(a) {
      e <- new.env(parent = emptyenv())
      e[["k"]] <- a
      e$j <- a^2
      for (i in 1:2) assign(paste0("z", i), a * i)
      s <- 0
      add <- function(v) s <<- s + v
      add(z1 + z2)
      e$k * e$j + s
    }, a = 1.5)
  })
})

test_that("functions by name, and those that make functions", {
  y <- c(0.3, -1, 2)
  made <- Vectorize(function(m, s) sum(dnorm(y, m, s, log = TRUE)))
  on_host({
    for (f in list(function(a) sum(match.fun("dnorm")(y, a, 1, log = TRUE)),
                   function(a) sum(stats:::dnorm(y, a, 1, log = TRUE)),
                   function(a) sum(getExportedValue("stats", "dnorm")(y, a)),
                   function(a) sum(do.call("dnorm", list(y, mean = a)), get("dlogis")(y, a)),
                   function(a) sum(made(c(a, 2 * a), 2)),
                   function(a) {
                     kernel <- Vectorize(function(i, j) a^2 * exp(-(i - j)^2 / 2))
                     sum(outer(1:3, 1:3, kernel))
                   },
                   function(a) sum(poisson()$linkinv(a * y), binomial("cloglog")$linkinv(a * y)),
                   function(a) sum(sapply(c("dnorm", "dlogis"), function(d) match.fun(d)(a))))) {
      holds(f, a = 0.7)
    }
    refused(function(a) sum(Filter(function(v) v > 0, a)), c(1, 2), says = "Filter() needs")
    refused(function(a) {
      g <- function(u) u
      g(u = a, u = 2)
    }, 1, says = "matched by multiple actual arguments")
  })
})

test_that("elements of parameters have names", {
  y <- c(0.3, -1, 2)
  model <- cl_gradient(function(par) sum(dnorm(y, par["mu"], exp(par[["ls"]]), log = TRUE)))
  on_host({
    want <- sum(dnorm(y, 1, exp(0.2), log = TRUE))
    expect_equal(as.numeric(model(c(mu = 1, ls = 0.2))), want)
    expect_equal(as.numeric(model(c(ls = 0.2, mu = 1))), want) # recorded again
    expect_equal(as.numeric(model(c(0.2, 1))), want)
    holds(function(par) with(as.list(par), b1 * s) + sum(par[grep("^b", names(par))]^2),
          par = c(b1 = 1, b2 = 2, s = 3))
    holds(function(par) {
      par["s"] <- exp(par["s"])
      v <- c(u = 1, w = 2)
      v["u"] <- par[["b"]]
      v[["u"]] * v["w"] + par["s"] + sapply(c(p = 1, q = 2), function(i) par[["b"]] * i)[["q"]]
    }, par = c(b = 1, s = 0.3))
    refused(function(par) unname(par)["b"], c(b = 1), says = "use numbers for indices")
    refused(function(par) par[["c"]], c(b = 1), says = "subscript out of bounds")
  })
})

test_that("traced values can be shown", {
  said <- character()
  f <- cl_gradient(function(a, b) {
    said <<- capture.output({
      print(a)
      cat("a is", a, "\n")
      str(list(a))
      cat(sprintf("%5.2f and %d", a, 3L), paste(b), toString(b), format(b), "\n")
      print(ls.str())
    })
    a + sum(b)
  })
  retraced <- cl_gradient(function(a) {
    said <<- capture.output(print(a), cat(sprintf("%.1f\n", a)))
    a
  }, retrace = TRUE)
  on_host({
    expect_equal(as.numeric(f(1, diag(2))), 3)
    expect_identical(said[c(1, 2, 5)], c("<traced: 1 number>", "a is <traced: 1 number> ",
      "<traced: 1 number> and 3 <traced: 2 x 2> <traced: 2 x 2> <traced: 2 x 2> "))
    expect_match(said, "<traced: 1 number>", fixed = TRUE, all = FALSE)
    retraced(1.5)
    expect_identical(said, c("[1] 1.5", "1.5"))
    refused(function(a) sum(data.frame(m = a)$m), 1, says = "use a list")
    for (f in list(function(a) summary(a)[1], function(a) if (anyNA(a)) 0 else a)) {
      refused(f, 1, says = "needs the value of a traced value")
    }
  })
})

test_that("what is moved, chosen and summed by group", {
  group <- c(1, 2, 1, 3, 2, 3)
  other <- c(1, 1, 0, 1, 0, 1)
  x <- c(0.5, -1, 0.3, 1.5, -0.2, 0.9)
  on_host({
    for (f in list(function(a) sum(tapply(a, list(group, other), sum)^2, na.rm = TRUE),
                   function(a) tapply(a, group, cumsum)[[2]][2],
                   function(a) sum(replace(a, a > 2.5, 1) * 1:6) + sum(replace(x, x > 1, a[2])),
                   function(a) sum(embed(a, 2)^2) + sum(toeplitz(a)[1:2, ]^2),
                   function(a) sum(exp(-seq(0, a[1], length.out = 5))),
                   function(a) sum(unlist(append(list(1), a[1]))),
                   function(a) {
                     z <- x
                     z[a[1] > x] <- 0
                     sum(z * a)
                   })) holds(f, a = 1:6 + 0.25)
    holds(function(a) {
      sum(apply(a, c(1, 3), sum)^2) + sum(apply(a, 3, function(m) nrow(m) * m[1, 2])) +
        sum(apply(a, 2:3, range) * 1:16) +
        sum(sapply(1:2, function(i) a[, , 1] * i, simplify = "array")[1, , 2])
    }, a = array(sin(1:16), c(2, 2, 4)))
    skip_if_not_installed("Matrix")
    holds(function(a) sum((Matrix::Diagonal(3, 2) %*% a)^2), a = c(1, 2, 3))
    holds(function(a) sum((Matrix::Diagonal(3) * a)^2), a = c(1, 2, 3))
    own <- as_cl(diag(3))
    refused(function(a) sum(own * a), c(1, 2, 3), says = "use as.matrix()")
  })
})

test_that("missing data that all steps of a recursion share", {
  z <- c(1, NA, 2)
  on_host({
    for (step in list(function(s, x) s * 0.5 + x + sum(ifelse(is.na(z), 0, z * s)),
                      function(s, x) s * 0.5 + x + mean(z * s, na.rm = TRUE),
                      function(s, x) s * 0.5 + x + sum(dnorm(z, s, 1)[!is.na(z)]),
                      function(s, x, z) s * 0.5 + x + sum(z * s, na.rm = TRUE),
                      function(s, x, z) {
                        q <- z * s
                        q[is.na(z)] <- 0
                        s * 0.5 + sum(q)
                      })) {
      more <- if ("z" %in% names(formals(step))) list(z = z)
      holds(function(a) do.call(cl_scan, c(list(step, a, c(0.1, 0.2, 0.3)), more)), a = 0.5)
    }
    both <- rbind(c(1, NA), c(2, 3))
    holds(function(a) sum(cl_scan(function(s, x, z) s * a + x + sum(z * a, na.rm = TRUE), 0, 1:3,
                                  sequences = 2, z = both)), a = 0.5)
  })
})

test_that("besselK() has R's values, and those of more digits, for every order", {
  x <- c(1e-10, 0.3, 1.2, 1.25, 2, 7, 60, 700)
  nu <- c(0, 0.25, 17.4, 0.5001, 1, 33.3, 59.75, 12.499)
  # by mpmath
  want <- c(23.141782447913047, 1.9546530988058694, 7.5943932828620228e+17, 1.121032272332558,
            1.0334768470686886, 2.1487171157145573e+20, 162792616354.05223, 0.052949295716257532)
  places <- 10^seq(-10, 2.84, length.out = 60)
  each_engine({
    model <- cl_gradient(function(a, w) sum(besselK(a, nu, TRUE) * w))
    got <- attr(model(x, 0 * x), "gradient")$w
    expect_lt(max(abs(got / want - 1)), 3e-15)
    for (order in full_or_quick(c(0, 0.3, 1, 2.6, 21.8, 60), c(0.3, 21.8))) {
      k <- besselK(places, order)
      some <- is.finite(k) & k > 1e-300
      model <- cl_gradient(function(a) sum(log(besselK(a, order))))
      slope <- -(besselK(places, abs(order - 1)) + besselK(places, order + 1)) / 2 / k
      some <- some & is.finite(slope)
      expect_equal(as.numeric(model(places[some])), sum(log(k[some])), tolerance = 1e-13)
      expect_equal(attr(model(places[some]), "gradient")$a, slope[some], tolerance = 1e-12)
    }
  })
  on_host(expect_fault(cl_gradient(function(a, nu) besselK(a, nu))(1, 2), "argument",
                       argument = "f"))
})

test_that("kernels that a user wrote take traced parameters and points", {
  cauchy <- function(x1, x2, par) {
    par[["s"]]^2 / (1 + cl_distance(x1, x2, squared = TRUE) / par[["l"]]^2)
  }
  x <- c(0.1, 0.5, 1.4)
  on_host({
    holds(function(s, l) {
      sum(cl_cov(x, kernel = k_user(cauchy, c(s = s, l = l)) + k_constant(0.5)) * 1:9)
    }, s = 1.2, l = 0.4)
    holds(function(z) sum(cl_cov(z, x, k_user(cauchy, c(s = 1, l = 2))) * 1:6), z = c(0.3, 2))
  })
})

# Long parameters go to the engine, and their derivatives to R, without a copy on the host.
each_engine({
  test_that("long parameters next to short ones, and integers", {
    f <- cl_gradient(function(a, x, s, y, m) {
      sum(x^2) * s[1] + a * sum(y) + s[2] - 2 * sum(log(diag(chol(m))))
    })
    x <- as.double(1:20000) / 1000
    y <- matrix(1:17000, 100)
    s <- c(3, 4)
    m <- diag(2, 2)
    got <- lapply(1:2, function(turn) f(a = 2, x = x, s = s, y = y, m = m))
    expect_identical(got[[2]], got[[1]])
    slope <- attr(got[[1]], "gradient")
    expect_close(as.vector(got[[1]]), 3 * sum(x^2) + 2 * sum(y) + 4 - 2 * log(2), 1e-12)
    expect_identical(slope[c("x", "y")], list(x = 6 * x, y = matrix(2, 100, 170)))
    expect_close(slope$a, sum(y), 1e-12)
    expect_close(slope$s, c(sum(x^2), 1), 1e-12)
    none <- f(a = 2, x = x, s = s, y = y, m = -m)
    expect_true(all(is.nan(c(none, unlist(attr(none, "gradient"))))))
  })
})

test_that("variables and missing arguments may have the names of replaced functions", {
  inside <- function(mean, sd = c(1, 2)) function(x) sum(x * sd) + sd(c(1, 2, 4))
  other <- local({
    dnorm <- function(x) -x^2
    function(x) sum(dnorm(x))
  })
  p <- c(0.5, -1)
  for (f in list(inside(), inside(3, 5:6), other)) {
    expect_close(as.numeric(cl_gradient(f)(p)), f(p))
  }
})

test_that("what has no derivatives is refused by name, with what to use instead", {
  curve <- splinefun(1:3, c(1, 4, 9))
  line <- approxfun(1:3, c(1, 4, 9))
  of <- function(name) paste0(name, "() is not available for traced values")
  within <- function(x) (x - 1)^2
  expect_close(as.numeric(cl_gradient(function(a) a * integrate(within, 0, 1)$value)(2)), 2 / 3)
  for (case in list(
    list(function(a) integrate(function(x) x * a, 0, 1)$value, "integrate"),
    list(function(a) integrate(within, 0, a)$value, "integrate"),
    list(function(a) stats::uniroot(function(x) x - a, c(0, 2))$root, "uniroot"),
    list(function(a) optimise(function(x) (x - a)^2, c(0, 2))$minimum, "optimise"),
    list(function(a) optim(0, function(x) (x - a)^2, method = "BFGS")$par, "optim"),
    list(function(a) nlminb(0, function(x) (x - a)^2)$par, "nlminb"),
    list(function(a) splinefun(1:3, a * 1:3)(1.5), "splinefun"),
    list(function(a) curve(a), "splinefun"), list(function(a) line(a), "approxfun"),
    list(function(a) approx(1:3, a * 1:3, 1.5)$y, "approx"))) {
    refused(case[[1]], 1.2, says = of(case[[2]]))
  }
  for (f in list(function(a) sum(rnorm(3, a)), function(a) a * stats::runif(1),
                 function(a) a * sample(3)[1], function(a) a * sum(replicate(2, rexp(1))))) {
    refused(f, 1, says = "draw them outside of 'f', as data")
  }
  set.seed(1)
  x <- rnorm(1)
  set.seed(1)
  expect_identical(rnorm(1), x) # outside of f
})

test_that("checks for missing values are refused with what to do", {
  for (f in list(function(a) if (is.na(a)) 0 else a, function(a) if (any(is.nan(a))) 0 else a,
                 function(a) if (anyNA(a)) 0 else a, function(a) if (!is.finite(a)) 0 else a,
                 function(a) { stopifnot(!is.na(a)); a }, function(a) sum(a[is.finite(a)]),
                 function(a) if (is.numeric(a) && !is.na(a)) a else 0)) {
    refused(f, 1, says = "leave out a check for NA, NaN or Inf")
  }
  expect_equal(cl_gradient(function(a) ifelse(is.na(a), 0, a^2))(3),
               structure(9, gradient = list(a = 6)))
})

test_that("sparse matrices as data", {
  skip_if_not_installed("Matrix")
  sparse <- Matrix::sparseMatrix(c(1, 2, 2), c(1, 1, 3), x = 1:3)
  dense <- as.matrix(sparse)
  crossprod <- Matrix::crossprod
  rowSums <- Matrix::rowSums
  holds(function(a) sum((sparse %*% a)^2) + sum(crossprod(sparse, a[1:2])), a = c(1, 2, 3))
  expect_equal(as.numeric(cl_gradient(function(a) {
    sum(rowSums(sparse) * a[1:2]) + sum(as.matrix(crossprod(sparse)) %*% a)
  })(c(1, 2, 3))), sum(base::rowSums(dense) * 1:2) + sum(base::crossprod(dense) %*% 1:3))
  holds(function(a) sum((sparse * a)^2), a = c(1, 2))
})
