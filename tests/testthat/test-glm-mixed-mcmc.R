# Models with random effects by sampling.

test_that("partial correlations have the density of the correlation matrix", {
  correlations <- function(u) {
    a <- mixed_roots(rep(1, 3), u, function(v, j) v[j])
    l <- matrix(0, 3, 3)
    for (i in 1:3) l[i, seq_len(i)] <- unlist(a[[i]])
    tcrossprod(l)[c(2, 3, 6)]
  }
  of <- function(u) { # det(C) times the Jacobian
    slope <- vapply(1:3, function(j) {
      h <- replace(numeric(3), j, 1e-5)
      (correlations(u + h) - correlations(u - h)) / 2e-5
    }, numeric(3))
    r <- correlations(u)
    c <- matrix(c(1, r[1], r[2], r[1], 1, r[3], r[2], r[3], 1), 3)
    log(det(c)) + log(abs(det(slope)))
  }
  d <- data.frame(g = rep(1:4, each = 5), x = sin(1:20), z = cos(1:20), y = cos(3 * 1:20))
  designs <- random_designs(list(list(columns = quote(x + z), group = quote(g))),
                            model.frame(y ~ x + z + g, d))
  x <- cbind("(Intercept)" = 1)[rep(1, 20), , drop = FALSE]
  glm <- new_glm_problem("normal_id", x, list(y = d$y), NULL, 1L)
  target <- mixed_target(list(glm = glm, family = "normal_id", designs = designs, x = x, kept = 1L),
                         list(beta = 0.1, vcov = matrix(0.3), sigma = 0.8))
  at <- function(r, z = 0) {
    start <- target$init
    start$r1 <- r
    start$z1[] <- z
    do.call(target$density, start)
  }
  u <- list(c(0.3, -0.5, 0.7), c(-1, 0.2, 0.1))
  expect_equal(at(u[[1]]) - at(u[[2]]), of(u[[1]]) - of(u[[2]]), tolerance = 1e-7)
  # the likelihood and the densities of effects
  start <- target$init
  start$z1 <- sin(1:12)
  s <- exp(start$s1[1]) / target$scale[[1]]
  b <- matrix(start$z1, 4) * rep(s, each = 4)
  eta <- 0.1 + rowSums(designs[[1]]$x * b[d$g, ])
  expect_equal(do.call(target$density, start) - at(numeric(3)),
               sum(dnorm(d$y, eta, 0.8, log = TRUE) - dnorm(d$y, 0.1, 0.8, log = TRUE)) -
                 sum(start$z1^2) / 2)
})

test_that("draws agree with the fit by maximum likelihood where data are many", {
  set.seed(4)
  n <- full_or_quick(600, 300)
  d <- data.frame(g = rep(1:30, length.out = n), x = rnorm(n))
  d$y <- 1 + d$x / 2 + rnorm(30)[d$g] + rnorm(30, 0, 0.5)[d$g] * d$x + rnorm(n)
  short <- list(seed = 1, chains = 2, warmup = 200, iter = 250)
  a <- suppressWarnings(cl_glm(y ~ x + (x | g), d, "normal_id", "mcmc", control = short))
  b <- cl_glm(y ~ x + (x | g), d, "normal_id")
  expect_lt(max(abs(coef(a) - coef(b)) / sqrt(diag(vcov(b)))), 0.3)
  expect_equal(sqrt(diag(vcov(a))), sqrt(diag(vcov(b))), tolerance = 0.3)
  expect_equal(fitted(a), fitted(b), tolerance = 0.1)
  expect_equal(sigma(a), sigma(b), tolerance = 0.05)
  expect_equal(a$random$g, b$random$g, tolerance = 0.15)
  expect_equal(colnames(as.matrix(a$draws)),
               c("(Intercept)", "x", "sd_g__(Intercept)", "sd_g__x", "cor_g__(Intercept).x",
                 "sigma"))
  expect_output(print(summary(a)), "R-hat")
  expect_equal(dim(simulate(a, 2, seed = 1)), c(n, 2L))
  expect_equal(confint(a), t(apply(as.matrix(a$draws)[, 1:2], 2, quantile, c(0.025, 0.975))),
               ignore_attr = TRUE)
  expect_refused("...", anova(a, b))
  d$k <- rpois(n, exp(d$y / 3))
  for (family in c("poisson_log", "neg_binomial_2_log")) {
    short <- list(seed = 2, chains = 1, warmup = 100, iter = 150)
    count <- suppressWarnings(cl_glm(k ~ x + (1 | g), d, family, "mcmc", control = short))
    ml <- suppressWarnings(cl_glm(k ~ x + (1 | g), d, family))
    expect_lt(max(abs(coef(count) - coef(ml)) / sqrt(diag(vcov(ml)))), 0.6)
  }
})
