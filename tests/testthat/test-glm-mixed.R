# Models with random effects: against nlme, and against values of glmmTMB, whose log likelihoods
# have 11 digits and whose estimates have 5 or 6.

# cl_glm() accepts random effects in its formula.
mixed <- function(...) suppressMessages(cl_glm(...))
errors <- function(fit) unname(sqrt(diag(vcov(fit))))

test_that("linear models are those of nlme, by maximum likelihood and REML", {
  skip_if_not_installed("nlme")
  o <- as.data.frame(nlme::Orthodont)
  exact <- nlme::lmeControl(msTol = 1e-12, tolerance = 1e-12, opt = "nlminb")
  each_engine(for (method in c("ml", "reml")) {
    a <- mixed(distance ~ age + Sex + (age | Subject), o, "normal_id", method)
    b <- nlme::lme(distance ~ age + Sex, o, ~ age | Subject, method = toupper(method),
                   control = exact)
    expect_close(a$logLik, as.numeric(logLik(b)), 1e-9)
    expect_equal(unname(coef(a)), unname(nlme::fixef(b)), tolerance = 1e-6)
    expect_equal(sigma(a), b$sigma, tolerance = 1e-5)
    # lme() divides by degrees of freedom in a way of its own
    expect_equal(errors(a) / errors(a)[2], unname(sqrt(diag(b$varFix)) / sqrt(b$varFix[2, 2])),
                 tolerance = 1e-4)
    u <- a$random$Subject
    expect_equal(unname(u), unname(as.matrix(nlme::ranef(b)[rownames(u), ])), tolerance = 1e-4)
    expect_equal(unname(a$variances$Subject), unname(unclass(nlme::getVarCov(b))), tolerance = 1e-4,
                 ignore_attr = TRUE)
    expect_equal(unname(fitted(a)), as.vector(fitted(b)), tolerance = 1e-6)
  })
  m <- as.data.frame(nlme::Machines)
  a <- mixed(score ~ Machine + (1 | Worker / Machine), m, "normal_id", "reml")
  b <- nlme::lme(score ~ Machine, m, ~ 1 | Worker / Machine, control = exact)
  expect_close(a$logLik, as.numeric(logLik(b)), 1e-9)
  expect_equal(names(a$random), c("Machine:Worker", "Worker"))
  expect_equal(c(a$variances[[1]], a$variances[[2]], sigma(a)^2),
               as.numeric(nlme::VarCorr(b)[c(4, 2, 5), 1]), tolerance = 1e-4)
})

test_that("crossed, weighted and uncorrelated effects of linear models", {
  skip_if_not_installed("nlme")
  m <- as.data.frame(nlme::Machines)
  a <- mixed(score ~ 1 + (1 | Worker) + (1 | Machine), m, "normal_id")
  expect_close(a$logLik, -153.078388434, 1e-9)
  expect_equal(unname(c(coef(a), errors(a))), c(59.65, 4.00524459), tolerance = 1e-6)
  expect_equal(c(a$variances$Worker, a$variances$Machine), c(25.0631937, 35.0388824),
               tolerance = 1e-5)
  # the marginal density by its covariance matrix
  o <- as.data.frame(nlme::Orthodont)
  o$w <- rep(c(0.5, 1, 3, 2), length.out = nrow(o))
  a <- suppressMessages(cl_glm(distance ~ age + (1 + age || Subject), o, "normal_id", weights = w,
                               offset = age / 2))
  z <- model.matrix(~ 0 + Subject, o)
  v <- a$variances[[1]][1] * tcrossprod(z) + a$variances[[2]][1] * tcrossprod(z * o$age) +
    diag(sigma(a)^2 / o$w)
  root <- chol(v)
  x <- model.matrix(~ age, o)
  left <- backsolve(root, o$distance - o$age / 2 - x %*% coef(a), transpose = TRUE)
  expect_close(a$logLik, -sum(log(diag(root))) - sum(left^2) / 2 - nrow(o) / 2 * log(2 * pi), 1e-10)
  expect_equal(unname(vcov(a)), unname(solve(crossprod(backsolve(root, x, transpose = TRUE)))),
               tolerance = 1e-8)
  expect_equal(length(a$variances), 2L)
  expect_equal(a$df, 5)
})

test_that("Laplace's approximation is that of glmmTMB", {
  skip_if_not_installed("MASS")
  b <- transform(MASS::bacteria, late = week > 2)
  each_engine({
    a <- mixed(y ~ trt + late + (1 | ID), b, binomial)
    expect_close(a$logLik, -96.1306868179, 1e-10)
    expect_equal(unname(coef(a)), c(3.548093109, -1.366729414, -0.782711705, -1.598532881),
                 tolerance = 1e-6)
    expect_equal(errors(a), c(0.696175985, 0.677138431, 0.683256698, 0.476011515), tolerance = 1e-6)
    expect_equal(a$variances$ID[1], 1.54359382103, tolerance = 1e-6)
  })
  a <- mixed(y ~ trt + late + (1 | ID), b, binomial("probit"))
  expect_close(a$logLik, -95.9706311612, 1e-9)
  expect_equal(unname(coef(a)), c(2.034275168, -0.779381238, -0.456302808, -0.897948191),
               tolerance = 1e-5)
  expect_equal(errors(a), c(0.378115921, 0.391832049, 0.392236706, 0.261327307), tolerance = 1e-5)
  a <- mixed(y ~ lbase * trt + lage + V4 + (1 | subject), MASS::epil, "poisson_log")
  expect_close(a$logLik, -665.474426071, 1e-10)
  expect_equal(errors(a), c(0.1052865888, 0.13086214, 0.1476523788, 0.3463373175, 0.0545836888,
                            0.202787495), tolerance = 2e-5)
  a <- mixed(y ~ lbase + trt + (period | subject), MASS::epil, "poisson_log")
  expect_close(a$logLik, -658.304966529, 1e-10)
  expect_equal(c(a$variances$subject), c(0.492715964, -0.074514665, -0.074514665, 0.024233665),
               tolerance = 1e-5)
  a <- mixed(y ~ lbase * trt + lage + V4 + (1 | subject), MASS::epil, "neg_binomial_2_log")
  expect_close(a$logLik, -624.957119337, 1e-10)
  expect_equal(unname(c(a$aux, a$variances$subject)), c(7.41809671, 0.215300902578),
               tolerance = 1e-4)
  expect_equal(errors(a)[2], 0.1303830779, tolerance = 1e-4)
})

test_that("Gamma responses, and crossed and nested counts", {
  skip_if_not_installed("nlme")
  o <- as.data.frame(nlme::Orthodont)
  a <- mixed(distance ~ age + Sex + (1 | Subject), o, Gamma("log"))
  expect_close(a$logLik, -216.244285878, 1e-8)
  expect_equal(unname(coef(a)), c(2.9134599647, 0.0272489739, -0.097717369), tolerance = 1e-5)
  expect_equal(errors(a), c(0.03404395512, 0.00252868353, 0.03063315756), tolerance = 1e-4)
  expect_equal(unname(sqrt(a$aux)), 0.0588094871, tolerance = 1e-5)
  m <- as.data.frame(nlme::Machines)
  each_engine({
    a <- mixed(round(score) ~ 1 + (1 | Machine / Worker), m, "poisson_log")
    expect_close(a$logLik, -177.874401504, 1e-10)
    expect_equal(c(a$variances[["Worker:Machine"]], a$variances$Machine),
                 c(0.00521174278905, 0.00767225273268), tolerance = 1e-5)
  })
})

test_that("large crossed designs are the same on both engines", {
  set.seed(1)
  n <- 4000
  d <- data.frame(a = sample(300, n, TRUE), b = sample(220, n, TRUE), c = sample(4, n, TRUE))
  d$x <- rnorm(n)
  d$y <- d$x + rnorm(300)[d$a] + rnorm(220)[d$b] + rnorm(n)
  fits <- list()
  each_engine(fits <- c(fits, list(mixed(y ~ x + (1 | a) + (1 | b) + (1 | c), d, "normal_id"))))
  fit <- fits[[1]]
  for (other in fits[-1]) {
    expect_close(other$logLik, fit$logLik, 1e-10)
    expect_equal(coef(other), coef(fit), tolerance = 1e-7)
  }
  expect_true(fit$converged)
  expect_equal(nrow(fit$random$a), 300)
})

test_that("variances of 0 are reported, and dependent columns have the coefficient NA", {
  d <- data.frame(g = rep(1:5, 4), x = 1:20)
  d$y <- rep(c(-1, 1, 2, -2), each = 5) + d$x / 10
  expect_message(a <- cl_glm(y ~ x + I(2 * x) + (1 | g), d, "normal_id"), "boundary")
  expect_true(a$singular)
  expect_equal(a$variances$g[1], 0)
  line <- lm(y ~ x, d)
  expect_equal(unname(coef(a)[1:2]), unname(coef(line)), tolerance = 1e-8)
  expect_true(is.na(coef(a)[[3]]))
  expect_close(a$logLik, as.numeric(logLik(line)), 1e-9)
  expect_output(print(a), "singular")
})

test_that("small models have the deviance and gradient of the dense marginal likelihood", {
  set.seed(7)
  n <- 90
  d <- data.frame(a = factor(sample(9, n, TRUE)), b = factor(sample(5, n, TRUE)), x = rnorm(n),
                  z = runif(n))
  y <- 3 + d$x + rnorm(9)[d$a] + rnorm(5)[d$b] * d$x + rnorm(n)
  w <- runif(n, 0.5, 2)
  x <- cbind(1, d$x)
  for (bars in list(quote((x | a)), quote((x + z | a) + (x | b)), quote((1 | b) + (0 + x | b)),
                    quote((z | a) + (1 | b) + (0 + z | b)))) {
    designs <- random_designs(random_terms(random_bars(bars)), model.frame(y ~ x + z + a + b, d))
    for (reml in c(FALSE, TRUE)) {
      problem <- normal_problem(designs, x, y, w, reml)
      expect_false(is.null(problem$small))
      model <- problem$model
      deviance <- function(theta) {
        v <- diag(1 / w)
        lambda <- theta_lambda(model, theta)
        for (k in seq_along(model$blocks)) {
          block <- model$blocks[[k]]
          zl <- (block$x / sqrt(w)) %*% lambda[[k]]
          v <- v + tcrossprod(zl) * outer(block$g, block$g, "==")
        }
        inverse <- solve(v)
        gram <- t(x) %*% inverse %*% x
        left <- y - x %*% solve(gram, t(x) %*% inverse %*% y)
        df <- n - reml * 2
        as.numeric(determinant(v)$modulus) + reml * log(det(gram)) +
          df * (1 + log(2 * pi) + log(sum(left * (inverse %*% left)) / df))
      }
      theta <- rnorm(nrow(model$at), 0.3)
      for (theta in list(theta, theta * (model$at[, 3L] > 1L), replace(theta, 1L, -0.6))) {
        at <- normal_deviance(problem, theta)
        expect_close(at$value, deviance(theta), 1e-10)
        slope <- vapply(seq_along(theta), function(j) {
          step <- function(h) deviance(replace(theta, j, theta[j] + h))
          (8 * (step(1e-3) - step(-1e-3)) - step(2e-3) + step(-2e-3)) / 12e-3
        }, 0)
        expect_close(normal_slope(problem, at), slope, 1e-6, scale = max(abs(slope), 1))
      }
    }
  }
})

test_that("sparse and dense parts of a crossed design give the same fit", {
  skip_if_not_installed("Matrix")
  set.seed(2)
  n <- 3000
  d <- data.frame(a = sample(600, n, TRUE), b = sample(200, n, TRUE), x = rnorm(n))
  d$y <- d$x + rnorm(600)[d$a] + (rnorm(200)[d$b]) * (1 + d$x) + rnorm(n)
  w <- runif(n)
  for (bars in list(quote((x | a) + (1 | b)), quote((1 | a) + (x | b)))) {
    model <- mixed_model(random_designs(random_terms(random_bars(bars)),
                                        model.frame(y ~ x + a + b, d)))
    expect_true(model$sparse)
    theta <- c(1, 0.2, 0.7, 0.5)
    parts <- lapply(c(TRUE, FALSE), function(sparse) {
      model$sparse <- sparse
      f <- mixed_factor(model, mixed_gram(model, w, cbind(1, d$x)), theta_lambda(model, theta))
      plain <- mixed_factor(model, mixed_gram(model, w), theta_lambda(model, theta))
      v <- lapply(model$blocks, function(b) matrix(seq_len(b$L * b$K), b$L))
      list(f$log_det, unname(f$r), unlist(mixed_solve(model, plain, v)), inverse_rows(model, plain),
           inverse_rows(model, f, cbind(1, d$x)))
    })
    expect_equal(parts[[1]], parts[[2]], tolerance = 1e-10)
  }
})

test_that("the gradient from traces of the inverse is that by rows, on sparse crossed designs", {
  skip_if_not_installed("Matrix")
  set.seed(31)
  n <- 4000
  d <- data.frame(a = factor(c(1:900, sample(900, n - 900, TRUE))),
                  b = factor(c(1:300, sample(300, n - 300, TRUE))), k = factor(sample(7, n, TRUE)),
                  x = rnorm(n))
  y <- rnorm(900)[d$a] / 2 + rnorm(300)[d$b] + d$x + rnorm(n)
  designs <- lapply(c("a", "b", "k"), function(g) {
    list(group = g, factor = d[[g]], x = cbind(`(Intercept)` = rep(1, n)))
  })
  for (reml in c(FALSE, TRUE)) {
    problem <- normal_problem(designs, cbind(1, d$x), y, NULL, reml)
    expect_true(problem$model$sparse)
    dense <- problem
    dense$model$sparse <- FALSE
    dense$gram <- mixed_gram(dense$model, further = cbind(problem$q, problem$y))
    for (theta in list(c(0.4, 0.9, 0.2), c(0.01, 3, 1), c(1, 0.5, 0), c(0.002, 0.4, 0.5))) {
      at <- normal_deviance(problem, theta)
      peer <- normal_deviance(dense, theta)
      expect_close(at$value, peer$value, 1e-12)
      expect_close(at$f$r, peer$f$r, 1e-10, scale = max(abs(peer$f$r)))
      slope <- determinant_slopes(problem$model, problem$gram, at$f, 2 * reml)
      expect_length(slope, 3L)
      expect_close(normal_slope(problem, at), normal_slope(dense, peer), 1e-8,
                   scale = max(abs(normal_slope(dense, peer)), 1))
    }
    low <- normal_deviance(problem, c(1e-5, 0.4, 0.5))
    expect_null(determinant_slopes(problem$model, problem$gram, low$f, 0))
  }
})
