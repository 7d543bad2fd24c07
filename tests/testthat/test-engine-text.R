# Fits say which engine did the work, and why (R/base-engine-text.R).

line_of <- function(x) grep("^engine: ", capture.output(print(x)), value = TRUE)

groups <- data.frame(g = rep(1:8, each = 5), x = sin(1:40), y = cos(1:40))

all_fits <- function() {
  d <- data.frame(x = sin(1:40), y = rep(c(0, 1, 1, 0, 1), 8), g = groups$g)
  density <- cl_gradient(function(a) sum(dnorm(d$x, a, log = TRUE)))
  density(a = 0.1)
  nll <- function(p) -sum(dnorm(d$x, p$a, 1, log = TRUE))
  draws <- function(f, init) {
    cl_sample(f, init, chains = 1, warmup = 20, iter = 20, seed = 1, refresh = 0)
  }
  glm <- cl_glm(y ~ x, d, "bernoulli_logit")
  gp <- cl_gp(1:15, sin(1:15), starts = 1)
  batch <- cl_batch_lm(y ~ x, groups, group = groups$g)
  sampled <- draws(density, list(a = 0))
  laplace <- suppressWarnings(cl_laplace(density, list(a = 0), draws = 10))
  list(glm = glm, glm_summary = summary(glm), normal = cl_glm(x ~ y, d, "normal_id"),
       beta = cl_glm(I(x / 3 + 0.5) ~ y, d, cl_family("beta")), gp = gp, gp_summary = summary(gp),
       batch = batch, batch_summary = summary(batch), density = density,
       likelihood = cl_likelihood("bernoulli_logit", d$y, d$x),
       draws = sampled, draws_summary = summary(sampled), mode = cl_optimise(density, list(a = 0)),
       approximation = laplace, approximation_summary = summary(laplace),
       cv = cl_cv(glm, folds = 4, seed = 1), cv_summary = summary(cl_cv(gp, "loo")),
       tmb = cl_tmb(nll, list(a = 0), silent = TRUE))
}

test_each_engine("each fit prints the engine that was asked for", {
  host <- session$engine == "host"
  right <- if (host) "^engine: host \\(chosen by cl_use\\(\\)\\)$" else
    "^engine: device .+ \\(chosen by cl_use\\(\\)\\)$"
  fits <- suppressMessages(all_fits())
  for (name in names(fits)) {
    line <- line_of(fits[[name]])
    expect_length(line, 1L)
    expect_match(line, right, info = name)
  }
})

test_that("without a GPU it is the host", {
  skip_if(default_device() >= 0L || names_device())
  lines <- vapply(with_cl(all_fits(), engine = "auto"), line_of, "")
  expect_setequal(lines, "engine: host (no GPU is in use)")
})

test_each_engine("random effects, functions of R and data on a device are told apart", {
  fit <- cl_glmm(y ~ x + (1 | g), groups, family = "normal_id")
  expect_match(line_of(fit), "host")
  expect_match(line_of(summary(fit)), "host")
  density <- function(x) structure(-sum(x^2) / 2, gradient = -x)
  draws <- cl_sample(density, c(a = 1), chains = 1, warmup = 20, iter = 20, seed = 1, refresh = 0)
  expect_identical(line_of(draws), "engine: host (the log density is an R function)")
  x <- as_cl(matrix(groups$x))
  place <- if (state_of(x)$host) "host" else "device .+"
  expect_match(line_of(cl_glm(x, groups$y, "normal_id")),
               sprintf("^engine: %s \\(the data are there\\)$", place))
})

test_that("by default the sentence has the size, and what the host still waits for", {
  with_thresholds(c(glm_fit = 100, gp = 10, batch = 1e9, program = 10), {
    d <- data.frame(x = sin(1:40), y = rep(c(0, 1, 1, 0, 1), 8))
    expect_identical(line_of(cl_batch_lm(y ~ x, groups, group = groups$g)),
                     "engine: host (size 64 is below 1,000,000,000, \"batch\" in cl_thresholds())")
    fit <- function() cl_glm(y ~ x, d, "bernoulli_logit") # 40 * (2 + 25)
    expect_identical(line_of(fit()),
                     "engine: host (kernels for the device are not built yet, see ?cl_use)")
    session$owed$glm_fit <- 1e6
    session$notes$glm_fit <- list(1080, -1L, 1, "glm_fit")
    session$waits <- "glm_fit"
    expect_identical(engine_line(engine_note("glm_fit")),
                     "engine: host (kernels for the device are being built)\n")
    session$waits <- character()
    expect_lt(calls_until(fit, function() is_built("glm_fit")), 20)
    expect_match(line_of(fit()), "^engine: device .+ \\(size 1,080 is above 100, \"glm_fit\" in ")
    kind <- shape_kind("glm_fit ml bernoulli_logit", c(40, 2))
    key <- function(where) times_key(kind, 1080, where)
    session$times[[key(-1L)]] <- c(least = 1e-9, all = 1e-9, calls = 1)
    session$times[[key(test_device())]] <- c(least = 1, all = 9, calls = 9, mean = Inf)
    expect_identical(line_of(fit()), "engine: host (such calls took longer on the device)")
    session$refused$glm_fit <- "no"
    expect_match(line_of(fit()), "do not compile")
    session$refused <- list()
    old <- options(statcl.thresholds = c(glm_fit = 10))
    on.exit(options(old))
    expect_match(line_of(fit()), "^engine: device .+ \\(by the option statcl.thresholds\\)$")
  })
})
