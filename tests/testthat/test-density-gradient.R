# Gradients of densities and distribution functions within cl_gradient(), by every argument that is
# a number, against central differences; and at the ends of their supports.

skip_on_cran() # long; run by ./dev check

test_on_host("densities, distribution functions and quantiles have correct gradients", {
  for (case in density_cases()) expect_case_slopes(case)
  for (log in c(TRUE, FALSE)) { # data and numbers in other places
    flag <- list(log = log)
    share <- points$share
    count <- points$count
    counts <- list(x = count)
    expect_slope("dgamma", list(x = points$positive, scale = 1.3), c(shape = 3, flag))
    expect_slope("dbeta", list(x = share), c(shape1 = 2, shape2 = 0.6, flag))
    expect_slope("dbinom", list(prob = 0.3), c(counts, size = 10, flag))
    expect_slope("dbinom", list(prob = share), c(list(x = c(1, 0, 1, 0, 1)), size = 1, flag))
    expect_slope("dbinom", list(prob = 0.4), c(list(x = c(1, 0, 1, 0, 1)), size = 1, flag))
    expect_slope("dbinom", list(prob = 0.02 + 0.01 * share), c(counts, size = 200, flag))
    expect_slope("dpois", list(lambda = 100 + 10 * share), c(list(x = 105 + count), flag))
    expect_slope("dmultinom", list(prob = share), c(counts, flag))
  }
})

test_on_host("densities of vectors and matrices have correct gradients", {
  set.seed(1)
  s <- crossprod(matrix(rnorm(9), 3)) + diag(3)
  x <- matrix(rnorm(12), 4)
  expect_slope("dmvnorm", list(x = x, mean = c(1, 2, 3)), list(Sigma = s, log = TRUE))
  expect_slope("dmvnorm", list(mean = c(1, 2, 3), chol = chol(s)), list(x = x, log = TRUE))
  expect_slope("dordlogit", list(eta = c(0.1, 0.2, 3, 0.4), cuts = c(-1, 0.4, 1)),
               list(x = c(1, 2, 3, 4), log = TRUE))
  expect_slope("dlkj", list(L = t(chol(cov2cor(s))), eta = 1.5), list(log = TRUE))
  both <- list(function(m, a) sum(dmvnorm(x, m, (a + t(a)) / 2, TRUE)),
               function(m, a) sum(dmvnorm(x, m, precision = (a + t(a)) / 2, log = TRUE)),
               function(m, a) dwishart(crossprod(x) + diag(m), 4.5 + m[1], (a + t(a)) / 2, TRUE))
  for (f in both) {
    model <- cl_gradient(f)
    point <- list(m = c(1, 2, 3), a = s)
    got <- unlist(attr(do.call(model, point), "gradient"))
    expect_equal(unname(got), unlist(differences(model, point)), tolerance = 1e-7)
  }
})

# Value and gradient.
at_point <- function(f, ...) {
  found <- cl_gradient(f)(...)
  c(as.numeric(found), unlist(attr(found, "gradient"), use.names = FALSE))
}

test_on_host("outside the support the logarithm is -Inf and the gradient 0", {
  never <- c(-Inf, 0, 0, 0)
  for (x in c(-1, 0)) {
    expect_identical(at_point(function(x, a, b) dgamma(x, a, b, log = TRUE), x, 2, 3), never)
    expect_identical(at_point(function(x, a, b) dlnorm(x, a, b, TRUE), x, 2, 3), never)
    expect_identical(at_point(function(x, a, b) dweibull(x, a, b, TRUE), x, 2, 3), never)
    expect_identical(at_point(function(x, a, b) dbeta(x, a, b, log = TRUE), x, 2, 3), never)
    expect_identical(at_point(function(x, a, b) pweibull(x, a, b, log.p = TRUE), x, 2, 3), never)
    expect_identical(at_point(function(x, a, b) pgamma(x, a, b, log.p = TRUE), x, 2, 3), never)
    expect_identical(at_point(function(x, a, b) pbeta(x, a, b, log.p = TRUE), x, 2, 3), never)
    expect_identical(at_point(function(x, a) pexp(x, a, log.p = TRUE), x, 2), never[-4])
  }
  expect_identical(at_point(function(x, a, b) dunif(x, a, b, TRUE), 7, 2, 3), never)
  expect_identical(at_point(function(x, a) dexp(x, a, TRUE), -1, 2), never[-4])
  expect_equal(at_point(function(a, b) sum(dgamma(c(-1, 2), a, b, log = TRUE)), 2, 3),
               c(-Inf, log(6) - digamma(2), 2 / 3 - 2))
  expect_equal(at_point(function(m, s) sum(pnorm(c(-Inf, Inf), m, s)), 0, 1), c(1, 0, 0))
})

test_on_host("probabilities 0 and 1 and means 0 are valid if they agree with the data", {
  expect_equal(at_point(function(p) sum(dbinom(c(0, 0), 3, p, TRUE)), c(0, 0.5)),
               c(3 * log(0.5), -3, -6))
  expect_equal(at_point(function(p) sum(dbinom(c(1, 1, 0), 1, p, TRUE)), c(1, 0.5, 0)),
               c(log(0.5), 1, 2, -1))
  expect_equal(at_point(function(p) sum(dbinom(c(5, 0), 1000, p, TRUE)), c(0.5, 0)),
               c(dbinom(5, 1000, 0.5, TRUE), -1980, -1000))
  expect_equal(at_point(function(l) sum(dpois(c(0, 2), l, TRUE)), c(0, 1)), c(-1 - log(2), -1, 1))
  expect_equal(at_point(function(l) sum(dpois(c(0, 200), l, TRUE)), c(0, 1)),
               c(dpois(200, 1, TRUE), -1, 199))
  expect_equal(at_point(function(p) sum(dgeom(c(0, 2), p, TRUE)), c(1, 0.5)),
               c(3 * log(0.5), 1, -2))
  expect_equal(at_point(function(p) dmultinom(c(0, 2, 3), prob = p, log = TRUE), c(0, 0.5, 0.5)),
               c(log(10 / 32), -5, -1, 1))
  # exp() and plogis() that underflow
  expect_equal(at_point(function(a) sum(dpois(c(0, 2), exp(a), TRUE)), c(-800, -800)),
               c(-1600 - log(2), 0, 2))
  expect_equal(at_point(function(a) sum(dbinom(c(1, 1, 0), 1, plogis(a), TRUE)),
                        c(8, -8, 8) * 99),
               c(-1584, 0, 1, -1))
})

test_on_host("densities are accurate far into both tails", {
  expect_equal(at_point(function(q) pnorm(q, log.p = TRUE), -1e5), c(-5000000012.4318615, 1e5))
  expect_equal(at_point(function(q) plogis(q, log.p = TRUE), -1e5), c(-1e5, 1))
  expect_equal(at_point(function(q) pcauchy(q, log.p = TRUE), -1e5), c(-12.65765535, 1e-5))
  expect_equal(at_point(function(q) pexp(q, log.p = TRUE), 1e-300), c(log(1e-300), 1e300))
  upper <- at_point(function(q, a, b) pbeta(q, a, b, lower.tail = FALSE, log.p = TRUE),
                    1 - 1e-10, 2, 100)
  expect_equal(upper[1], pbeta(1 - 1e-10, 2, 100, lower.tail = FALSE, log.p = TRUE))
  h <- 1e-4
  tail <- function(a, b) pbeta(1 - 1e-10, a, b, lower.tail = FALSE, log.p = TRUE)
  expect_equal(upper[3], (tail(2 + h, 100) - tail(2 - h, 100)) / (2 * h), tolerance = 1e-6)
  expect_equal(upper[4], (tail(2, 100 + h) - tail(2, 100 - h)) / (2 * h), tolerance = 1e-6)
})

test_on_host("data may have the name of a function", {
  sd <- 2
  beta <- c(1, 2, 3)
  expect_equal(at_point(function(m) dnorm(1, m, sd, TRUE), 0), c(dnorm(1, 0, 2, TRUE), 0.25))
  expect_equal(at_point(function(m) sum(beta * m) * beta(m, 1) + sd(c(m, -m)), 2),
               c(6 + sqrt(8), sqrt(2)))
  model <- cl_gradient(function(m) dnorm(1, m, sd, TRUE))
  expect_equal(as.numeric(model(m = 0)), dnorm(1, 0, 2, TRUE))
  update(model, sd = 3)
  expect_equal(as.numeric(model(m = 0)), dnorm(1, 0, 3, TRUE))
})
