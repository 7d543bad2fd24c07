# Matern kernels of any order, points on the Earth, and factors.

matern_formula <- function(r, nu) {
  u <- sqrt(2 * nu) * r
  ifelse(u == 0, 1, 2^(1 - nu) / gamma(nu) * u^nu * besselK(u, nu))
}

# Derivatives of sum(w * cl_cov()) by differences of fourth order on the host.
slopes <- function(f, v) slopes_of(f, v, 1e-4 * pmax(1, abs(v)))

check_slopes <- function(kernel, x1, x2, inputs = TRUE) {
  w <- matrix(cos(seq_len(nrow(x1) * nrow(x2))), nrow(x1))
  sum_at <- function(p, x1, x2) {
    on_host(sum(w * cl_cov(x1, x2, do.call(update, c(list(kernel), as.list(p))))))
  }
  p <- coef(kernel)
  by_par <- slopes(function(v) sum_at(stats::setNames(v, names(p)), x1, x2), p)
  like <- function(v, x) array(v, dim(x), dimnames(x))
  each_engine({
    found <- cl_cov_adjoint(w, x1, x2, kernel, inputs = inputs)
    if (!inputs) found <- list(parameters = found)
    expect_equal(unname(found$parameters), by_par, tolerance = 1e-7)
    if (inputs) {
      expect_equal(c(found$x1), slopes(function(v) sum_at(p, like(v, x1), x2), c(x1)),
                   tolerance = 1e-7)
      expect_equal(c(found$x2), slopes(function(v) sum_at(p, x1, like(v, x2)), c(x2)),
                   tolerance = 1e-7)
    }
  })
}

test_that("Matern kernels of any order agree with besselK()", {
  r <- c(0, 10^seq(-8, 1.5, length.out = 30))
  each_engine(for (nu in c(0.05, 0.3, 0.51, 1, 1.2, 2, 3, 3.5, 7.25, 15.5, 30)) {
    found <- drop(cl_cov(r, 0, k_matern(nu, 2)))
    want <- 4 * matern_formula(r, nu)
    expect_lt(max(abs(found - want) / want), 2e-13)
  })
  expect_identical(k_matern(0.5, 2, 3), k_exponential(2, 3))
  expect_identical(k_matern(1.5, 2, 3), k_matern32(2, 3))
  expect_identical(k_matern(2.5, 2, 3), k_matern52(2, 3))
  on_host({ # at the neighbours of half-integers, and beyond the range of exp()
    expect_equal(cl_cov(r, 0, k_matern(2.5 + 1e-7)), cl_cov(r, 0, k_matern52()), tolerance = 1e-6)
    expect_identical(cl_cov(1e200, 0, k_matern(3.3))[1], 0)
  })
  k <- k_matern(1.2, lengthscale = 3) + k_matern(7)
  expect_identical(eval(parse(text = paste(format(k), collapse = "+"))), k)
  set.seed(2)
  x <- matrix(rnorm(24), ncol = 2)
  for (nu in c(0.3, 1.7, 3.5)) {
    check_slopes(k_matern(nu, 1.3, c(0.8, 1.1)), x[1:5, ], x[6:12, ])
  }
  expect_refused("nu", k_matern(0), k_matern(101))
})

arc_length <- function(a, b) {
  a <- a * pi / 180
  b <- b * pi / 180
  half <- function(u, v) sin((u - v) / 2)^2
  h <- outer(a[, 2], b[, 2], half) +
    outer(cos(a[, 2]), cos(b[, 2])) * outer(a[, 1], b[, 1], half)
  2 * 6371.0088 * asin(pmin(sqrt(h), 1))
}

test_that("distances on the Earth agree with the haversine formula", {
  set.seed(1)
  at <- cbind(z = rnorm(40), lon = runif(40, -180, 180), lat = runif(40, -90, 90))
  arc <- arc_length(at[, -1], at[, -1])
  chord <- 2 * 6371.0088 * sin(arc / 2 / 6371.0088)
  along <- c("lon", "lat")
  exponential <- k_exponential(2, 1500, along, "great_circle")
  matern <- k_matern32(1, 900, along, "chordal")
  each_engine({
    expect_close(cl_cov(at, kernel = exponential), unname(4 * exp(-arc / 1500)), 1e-12)
    u <- sqrt(3) * chord / 900
    expect_close(cl_cov(at, kernel = exponential * k_exp_quad(columns = "z") + matern),
                 unname(4 * exp(-arc / 1500) * exp(-outer(at[, 1], at[, 1], `-`)^2 / 2) +
                          (1 + u) * exp(-u)), 1e-12)
  })
  # the poles, the date line, and opposite points
  ends <- cbind(c(0, 90, 180, -180, 0), c(90, 90, 0, 0, 0))
  radius <- 6371.0088
  on_host(expect_equal(cl_cov(ends, kernel = k_exponential(1, radius, distance = "great_circle")),
                       exp(-arc_length(ends, ends) / radius), tolerance = 1e-7))
  check_slopes(exponential * k_exp_quad(columns = "z"), at[1:5, ], at[6:12, ])
  check_slopes(k_matern(1.7, 1, 900, along, "chordal"), at[1:5, ], at[6:12, ])
  expect_identical(eval(parse(text = format(exponential))), exponential)
  expect_refused("distance", k_matern32(distance = "great_circle"))
  expect_refused("columns", k_exponential(columns = 1, distance = "chordal"),
                 cl_cov(at, kernel = k_exponential(distance = "chordal")))
  expect_refused("x", cl_cov(cbind(0, 91), kernel = k_exponential(distance = "chordal")),
                 plot(exponential))
})

test_each_engine("fits of points on the Earth agree with the formula, with and without Vecchia", {
  q <- quakes[seq(1, 1000, 12), ]
  arc <- arc_length(as.matrix(q[c("long", "lat")]), as.matrix(q[c("long", "lat")]))
  held <- c(sd = 0.3, lengthscale = 150, noise = 0.3)
  fit <- cl_gp(mag ~ long + lat, q, k_exponential(distance = "great_circle"), mean = 4.6,
               fixed = held, method = "ml")
  c <- 0.09 * exp(-arc / 150) + diag(0.09, nrow(q))
  r <- q$mag - 4.6
  want <- -sum(r * solve(c, r)) / 2 - determinant(c)$modulus[1] / 2 - nrow(q) / 2 * log(2 * pi)
  expect_equal(as.numeric(logLik(fit)), want, tolerance = 1e-10)
  new <- data.frame(long = c(170, 181), lat = c(-20, -18))
  slope <- predict(fit, new, gradient = TRUE)$gradient
  for (name in names(new)) {
    moved <- function(by) predict(fit, replace(new, name, new[[name]] + by))
    expect_equal(slope[, name], (moved(1e-4) - moved(-1e-4)) / 2e-4, tolerance = 1e-5)
  }
  near <- cl_gp(mag ~ long + lat, q, k_exponential(distance = "great_circle"), mean = 4.6,
                fixed = held, approx = "vecchia", neighbours = nrow(q) - 1)
  expect_equal(logLik(near)[1], logLik(fit)[1], tolerance = 1e-9)
  expect_equal(predict(near, new), predict(fit, new), tolerance = 1e-6)
})

test_that("kernels of factors agree with their formulas", {
  set.seed(5)
  x <- cbind(a = rnorm(24), b = sample(1:3, 24, TRUE), c = sample(1:2, 24, TRUE))
  differ <- function(column) outer(x[, column], x[, column], `!=`)
  low <- k_factor("b", "low_rank", rank = 2, levels = c("u", "v", "w"))
  load <- matrix(c(0.5, -1, 2, 0.3, 0.1, -0.7), 3)
  own <- c(0.2, 0.4, 0.9)
  low <- update(low, stats::setNames(c(load, own), names(coef(low))))
  expect_named(coef(low), c("load.u:1", "load.v:1", "load.w:1", "load.u:2", "load.v:2", "load.w:2",
                            "own.u", "own.v", "own.w"))
  between <- tcrossprod(load) + diag(own^2)
  each_engine({
    expect_close(cl_cov(x, kernel = k_factor(c("b", "c"), sd = 2, lengthscale = c(0.7, 3))),
                 4 * exp(-differ("b") / 0.7 - differ("c") / 3), 1e-14)
    gower <- k_factor(c("a", "b"), "gower", lengthscale = c(0.7, 3))
    expect_close(cl_cov(x, kernel = gower),
                 exp(-abs(outer(x[, "a"], x[, "a"], `-`)) / 0.7 -
                       abs(outer(x[, "b"], x[, "b"], `-`)) / 3), 1e-14)
    k <- cl_cov(x, kernel = low * k_exp_quad(columns = "a"))
    expect_close(k, between[x[, "b"], x[, "b"]] * exp(-outer(x[, "a"], x[, "a"], `-`)^2 / 2), 1e-13)
    expect_close(as.matrix(cl_cov(as_cl(x), as_cl(x[1:5, ]), low)),
                 between[x[, "b"], x[1:5, "b"]], 1e-13)
  })
  check_slopes(k_factor(c("a", "c"), "gower", lengthscale = c(1, 2)), x[1:9, ], x[10:24, ])
  check_slopes(k_factor("b") * k_exp_quad(columns = "a"), x[1:9, ], x[10:24, ], inputs = FALSE)
  check_slopes(low * k_exp_quad(columns = "a"), x[1:9, ], x[10:24, ], inputs = FALSE)
  expect_output(print(low), "k_factor(\"b\", \"low_rank\", rank = 2)", fixed = TRUE)
  expect_refused("columns", k_factor(NULL), k_factor(c("a", "b"), "low_rank"))
  expect_fault(cl_cov(x[, "a", drop = FALSE], kernel = k_factor("a", "low_rank", levels = 3)),
               "argument", argument = "x")
})

test_that("fits have factors as inputs", {
  d <- transform(mtcars, cyl = factor(cyl), am = am == 1)
  held <- c(sd1 = 5, lengthscale1 = 1.5, sd2 = 3, lengthscale2 = 0.8, noise = 2)
  kernel <- k_matern52() + k_factor("cyl")
  each_engine({
    fit <- cl_gp(mpg ~ wt + cyl, d, kernel, mean = 20, fixed = held, method = "ml")
    c <- on_host(cl_cov(d$wt, kernel = k_matern52(5, 1.5))) +
      9 * exp(-outer(d$cyl, d$cyl, `!=`) / 0.8) + diag(4, 32)
    expect_close(unname(fitted(fit)), d$mpg - 4 * solve(c, d$mpg - 20), 1e-9)
    frame <- cl_gp(d[c("wt", "cyl")], d$mpg, kernel, mean = 20, fixed = held, method = "ml")
    new <- data.frame(wt = 3, cyl = c("8", "4"))
    expect_equal(unname(predict(frame, new)), unname(predict(fit, new)))
  })
  on_host({
    expect_identical(colnames(fit$x), c("wt", "cyl"))
    expect_error(predict(fit, data.frame(wt = 3, cyl = "5")), "new level")
    expect_refused("newdata", predict(frame, data.frame(wt = 3, cyl = "5")))
    expect_identical(predict(fit, new, gradient = TRUE)$gradient[, "cyl"], c(`1` = 0, `2` = 0))
    expect_identical(nobs(update(fit, newdata = d[1:2, ])), 34L)
    expect_identical(coef(update(fit, newdata = d[1:2, ], refit = TRUE)), coef(fit))
    grDevices::pdf(NULL)
    drawn <- plot(fit)
    at <- data.frame(wt = drawn$x, cyl = drawn$level)
    expect_equal(drawn$fit, unname(predict(fit, at)), ignore_attr = TRUE)
    expect_equal(plot(frame)$fit, drawn$fit)
    grDevices::dev.off()
    mixed <- cl_gp(mpg ~ wt + cyl + am, d, k_factor(c("wt", "cyl", "am"), "gower"), starts = 1,
                   method = "ml")
    expect_named(mixed$par, c("sd", "lengthscale.wt", "lengthscale.cyl", "lengthscale.am", "noise"))
    expect_identical(mixed$kernel$terms[[1]]$factors, c("cyl", "am"))
    plain <- cl_gp(mpg ~ wt + cyl, d, starts = 1, method = "ml")
    expect_identical(colnames(plain$x), c("wt", "cyl6", "cyl8"))
    expect_refused("kernel", cl_gp(mpg ~ cyl, d, k_factor("cyl") * k_matern52()))
    expect_refused("mean", cl_gp(mpg ~ wt + cyl, d, kernel, mean = "linear"),
                   cl_gp(d[c("wt", "cyl")], d$mpg, kernel, mean = ~wt))
  })
})

test_that("several outputs are a factor kernel times another (coregionalisation)", {
  d <- data.frame(x = rep(1:15 / 5, 2), output = rep(c("a", "b"), each = 15))
  set.seed(3)
  d$value <- sin(3 * d$x) * ifelse(d$output == "a", 1, -2) + rnorm(30, sd = 0.1)
  kernel <- k_factor("output", "low_rank") * k_exp_quad(columns = "x")
  held <- c(load1.a = 1.1, load1.b = -2, own1.a = 0.3, own1.b = 0.2, sd2 = 1, lengthscale2 = 0.6,
            noise = 0.1)
  b <- tcrossprod(c(1.1, -2)) + diag(c(0.09, 0.04))
  code <- ifelse(d$output == "a", 1, 2)
  full <- b[code, code] * exp(-outer(d$x, d$x, `-`)^2 / 2 / 0.36)
  rest <- setdiff(1:30, 20)
  weights <- solve(full[rest, rest] + diag(0.01, 29), cbind(d$value[rest], full[rest, 20]))
  each_engine({
    fit <- cl_gp(value ~ x + output, d[-20, ], kernel, mean = 0, fixed = held, method = "ml")
    found <- predict(fit, d[20, ], se.fit = TRUE)
    expect_close(unname(found$fit), sum(full[20, rest] * weights[, 1]), 1e-8)
    expect_close(unname(found$se.fit)^2, full[20, 20] - sum(full[20, rest] * weights[, 2]), 1e-7)
  })
  on_host({
    free <- cl_gp(value ~ x + output, d[-20, ], kernel, mean = 0, starts = 1, method = "ml")
    alone <- cl_gp(value ~ x, d[setdiff(16:30, 20), ], k_exp_quad(), mean = 0, starts = 1,
                   method = "ml")
    expect_lt(predict(free, d[20, ], se.fit = TRUE)$se.fit,
              predict(alone, d[20, ], se.fit = TRUE)$se.fit)
    expect_lt(prod(free$par[c("load1.a", "load1.b")]), 0)
    expect_lt(max(abs(free$gradient[!names(free$gradient) %in% free$at_bound])), 1e-2)
    expect_refused("kernel", cl_gp(value ~ x + output, d, kernel, approx = "vecchia"))
  })
})
