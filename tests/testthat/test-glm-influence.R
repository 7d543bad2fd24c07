# Leverages, standardised residuals, terms: those of glm() and lm().

exact <- list(epsilon = 1e-15, maxit = 50) # glm() to the last digit

pairs_of_fits <- function() {
  holes <- mtcars
  holes$hp[c(3, 9)] <- NA
  cars <- cbind(mtcars, times = rep(c(1, 2, 0, 3), 8))
  list(
    binary = list(cl_glm(am ~ wt + hp, data = mtcars),
                  glm(am ~ wt + hp, data = mtcars, family = binomial, control = exact)),
    counts = list(cl_glm(cbind(ncases, ncontrols) ~ agegp + unclass(alcgp), data = esoph,
                         family = "binomial_logit"),
                  glm(cbind(ncases, ncontrols) ~ agegp + unclass(alcgp), data = esoph,
                      family = binomial, control = exact)),
    offset = list(cl_glm(carb ~ factor(cyl) * wt + offset(log(disp)), data = cars,
                         family = "poisson_log", weights = times),
                  glm(carb ~ factor(cyl) * wt + offset(log(disp)), data = cars,
                      family = poisson, weights = times, control = exact)),
    missing = list(cl_glm(mpg ~ wt + hp, data = holes, family = "normal_id", weights = cyl,
                          na.action = na.exclude),
                   glm(mpg ~ wt + hp, data = holes, weights = cyl, na.action = na.exclude)),
    aliased = list(cl_glm(mpg ~ wt + I(2 * wt) + qsec, data = mtcars, family = "normal_id"),
                   glm(mpg ~ wt + I(2 * wt) + qsec, data = mtcars)))
}

test_that("leverages, residuals and distances are those of glm()", {
  for (fits in pairs_of_fits()) {
    ours <- fits[[1]]
    rs <- fits[[2]]
    close <- function(f, ...) expect_equal(f(ours, ...), f(rs, ...), tolerance = 1e-6)
    close(hatvalues)
    close(rstandard)
    close(rstandard, type = "pearson")
    close(rstudent)
    close(cooks.distance)
    close(dfbeta)
    close(dfbetas)
    for (part in c("hat", "coefficients", "sigma", "dev.res", "pear.res")) {
      expect_equal(influence(ours)[[part]], influence(rs)[[part]], tolerance = 1e-6)
    }
    expect_null(influence(ours, do.coef = FALSE)$coefficients)
    for (type in c("working", "deviance", "pearson", "response")) close(residuals, type = type)
  }
})

test_that("an observation with leverage 1 has no standardised residual", {
  data <- data.frame(y = c(1, 2, 4, 3), g = factor(c("a", "a", "b", "a")))
  ours <- cl_glm(y ~ g, data = data, family = "normal_id")
  expect_equal(unname(hatvalues(ours)[3]), 1)
  expect_true(is.nan(rstandard(ours)[3]))
  expect_true(is.nan(cooks.distance(ours)[3]))
  expect_true(all(is.finite(rstandard(ours)[-3])))
})

test_that("terms and partial residuals are those of glm()", {
  for (fits in pairs_of_fits()) {
    ours <- fits[[1]]
    rs <- fits[[2]]
    expect_equal(residuals(ours, "partial"), residuals(rs, "partial"), tolerance = 1e-6,
                 ignore_attr = TRUE)
    a <- predict(ours, type = "terms", se.fit = TRUE)
    b <- suppressWarnings(predict(rs, type = "terms", se.fit = TRUE))
    expect_equal(a$fit, b$fit, tolerance = 1e-6, ignore_attr = "constant") # lost by na.exclude
    rs$na.action <- NULL
    expect_equal(attr(a$fit, "constant"), attr(predict(rs, type = "terms"), "constant"),
                 tolerance = 1e-6)
    expect_equal(a$se.fit, b$se.fit, tolerance = 1e-6)
  }
  fits <- pairs_of_fits()$binary
  new <- data.frame(wt = c(2, 3), hp = c(100, 150))
  expect_equal(predict(fits[[1]], new, type = "terms", terms = "hp"),
               predict(fits[[2]], new, type = "terms", terms = "hp"), tolerance = 1e-6)
})

test_that("what has no leverages says so", {
  classes <- cl_glm(factor(gear) ~ wt, data = mtcars, family = "categorical_logit")
  expect_refused("model", hatvalues(classes))
  expect_refused("terms", predict(pairs_of_fits()$binary[[1]], type = "terms", terms = "cyl"))
})
