# Grouped conditioning: a block's members are conditioned on all earlier rows of the block. Held
# against a plain version in R, and against exact processes.

test_that("blocks partition the observations and have the neighbours of their members", {
  for (m in c(1L, 7L, 20L, 50L)) {
    d <- scattered(700L)
    f <- with_cl(cl_gp_likelihood(d$y, d$x, k_matern32(), approx = "vecchia", neighbours = m,
                                  grouped = TRUE), engine = "host")
    graph <- vecchia_graph(f)
    blocks <- blocks_of(f)
    members <- unlist(lapply(blocks, function(b) b$at[b$member]))
    expect_identical(sort(members), 1:700)
    expect_lt(length(blocks), 700)
    expect_output(print(f), sprintf("%d neighbours, in %d blocks", m, length(blocks)))
    sizes <- vapply(blocks, function(b) length(b$at), 0L)
    expect_lte(max(sizes), c(32, 32, 64, 102)[match(m, c(1, 7, 20, 50))])
    expect_false(is.unsorted(rev(sizes)))
    # the work by squares is not above that of the points apart
    apart <- colSums(!is.na(graph$neighbours)) + 1
    expect_lt(sum(sizes^2), sum(apart^2))
    for (b in blocks) {
      expect_false(is.unsorted(b$at, strictly = TRUE))
      own <- b$at[b$member]
      expect_setequal(b$at, c(own, stats::na.omit(as.vector(graph$neighbours[, own]))))
    }
  }
  # the same graph apart, and on any number of threads the same blocks
  apart <- vecchia_graph(cl_gp_likelihood(d$y, d$x, k_matern32(), approx = "vecchia",
                                          neighbours = 50))
  expect_identical(apart[1:2], graph[1:2])
  expect_length(apart$blocks, 0L)
})

test_each_engine("blocks of all sizes give what single observations give", {
  for (m in full_or_quick(c(1, 14, 20, 31, 47, 48, 70), c(20, 48))) {
    d <- scattered(200L)
    kernel <- vecchia_kernels$matern32
    f <- cl_gp_likelihood(d$y, d$x, kernel, mean = "constant", approx = "vecchia",
                          neighbours = m, grouped = TRUE)
    par <- c(coef(kernel), noise = 0.2)
    y <- matrix(d$y - attr(f(par), "mean"))
    expect_close(as.numeric(f(par)),
                 plain_vecchia(y, covariance_at(kernel, par, d$x), blocks_of(f)), 1e-10)
    expect_lt(max(abs(cl_check_gradient(f, par)$error)), 1e-5)
  }
})

test_that("the divergence from the exact process is never larger, and mostly far smaller", {
  n <- 400L
  ratio <- c()
  for (kernel in vecchia_kernels) {
    for (m in c(3, 8, 15)) {
      d <- scattered(n)
      par <- c(coef(kernel), noise = 0.1)
      exact <- cl_gp_likelihood(numeric(n), d$x, kernel)(par, FALSE)
      # each conditional distribution is one of the process: the divergence is the difference at 0
      of <- function(grouped) {
        f <- cl_gp_likelihood(numeric(n), d$x, kernel, approx = "vecchia", neighbours = m,
                              grouped = grouped)
        as.numeric(exact) - as.numeric(f(par, FALSE))
      }
      together <- of(TRUE)
      apart <- of(FALSE)
      expect_gt(together, -1e-9)
      expect_lte(together, apart * (1 + 1e-9))
      ratio <- c(ratio, together / apart)
    }
  }
  expect_lt(stats::median(ratio), 0.8)
})

test_each_engine("points that coincide", {
  d <- scattered(300L)
  d$x[7L, ] <- d$x[8L, ]
  f <- cl_gp_likelihood(d$y, d$x, k_matern32(), approx = "vecchia", neighbours = 8,
                        grouped = TRUE)
  expect_fault(f(c(1, 0.3, 0)), "not_pd")
  expect_true(is.finite(f(c(1, 0.3, 0.2))))
})

test_that("fits use grouped likelihoods, and their methods work", {
  d <- as.data.frame(scattered(250L))
  names(d) <- c("a", "b", "y")
  fit <- cl_gp(y ~ a + b, d, k_matern32(), approx = "vecchia", neighbours = 8, starts = 1,
               grouped = TRUE)
  expect_output(print(fit), "8 neighbours, grouped")
  f <- statcl:::gp_function(statcl:::gp_problem(fit))
  expect_equal(as.numeric(f(fit$par)), as.numeric(logLik(fit)), tolerance = 1e-10)
  expect_gt(ncol(vecchia_graph(f)$blocks), 0L)
  names <- names(fit$par)
  information <- attr(f(fit$par, information = TRUE), "information")
  expect_equal(vcov(fit)[names, names], solve(information), tolerance = 1e-8)
  # what is given the data: not grouped, and close to the exact process
  exact <- cl_gp(y ~ a + b, d, k_matern32(), fixed = fit$par, starts = 1, method = "ml")
  expect_equal(predict(fit), predict(exact), tolerance = 0.05)
  expect_equal(fitted(fit), fitted(exact), tolerance = 0.05)
  expect_equal(dim(simulate(fit, 2, seed = 1, newdata = d[1:5, ])), c(5L, 2L))
  again <- update(fit, starts = 1)
  expect_true(again$vecchia$grouped)
  plain <- cl_gp(y ~ a + b, d, k_matern32(), approx = "vecchia", neighbours = 8, starts = 1)
  expect_false(isTRUE(all.equal(coef(plain), coef(fit), tolerance = 1e-6)))
})

test_that("leave-one-out predictions with an estimated mean are those of one distribution", {
  d <- scattered(80L)
  make <- function(grouped) {
    f <- cl_gp_likelihood(d$y, d$x, k_matern32(), mean = "linear", approx = "vecchia",
                          neighbours = 6, grouped = grouped)
    statcl:::vecchia_condition(f, c(1, 0.3, 0.1))
  }
  expect_equal(make(TRUE)$loo(), make(FALSE)$loo(), tolerance = 1e-12)
  expect_false(isTRUE(all.equal(make(TRUE)$beta, make(FALSE)$beta, tolerance = 1e-6)))
  expect_false(isTRUE(all.equal(make(TRUE)$value, make(FALSE)$value, tolerance = 1e-6)))
})

test_that("'grouped' without an approximation, or with other observations, is an error", {
  d <- scattered(20L)
  expect_refused("grouped", cl_gp_likelihood(d$y, d$x, k_matern32(), grouped = TRUE))
  expect_refused("grouped", cl_gp(d$x, d$y, k_matern32(), approx = "vecchia", grouped = NA))
  expect_fault(cl_gp(d$x, rpois(20, 3), k_matern32(), approx = "vecchia", grouped = TRUE,
                     family = "poisson_log"), "argument", argument = "grouped")
})

test_that("value, gradient and information are GpGp's for the same order and blocks", {
  skip_if_not(nzchar(system.file(package = "GpGp")), "GpGp is not installed")
  d <- scattered(300L)
  f <- cl_gp_likelihood(d$y, d$x, k_matern32(), mean = "constant", approx = "vecchia",
                        neighbours = 12, grouped = TRUE)
  blocks <- blocks_of(f)
  each <- function(of) lapply(blocks, of)
  order <- vecchia_graph(f)$order
  peer <- getExportedValue("GpGp", "vecchia_grouped_profbeta_loglik_grad_info")(
    c(1.44, 0.3 / sqrt(3), 0.04 / 1.44), "matern15_isotropic", d$y[order], matrix(1, 300),
    d$x[order, ],
    list(all_inds = unlist(each(function(b) b$at)),
         last_ind_of_block = cumsum(lengths(each(function(b) b$at))),
         global_resp_inds = unlist(each(function(b) b$at[b$member])),
         local_resp_inds = unlist(each(function(b) which(b$member))),
         last_resp_of_block = cumsum(unlist(each(function(b) sum(b$member))))))
  # variance, range and ratio of the nugget by sd, lengthscale and noise
  by <- rbind(c(1 / 2.4, 0, 0), c(0, sqrt(3), 0), c(0.2 / 2.88, 0, 0.5 * 1.44 / 0.2))
  each_engine({
    g <- cl_gp_likelihood(d$y, d$x, k_matern32(), mean = "constant", approx = "vecchia",
                          neighbours = 12, grouped = TRUE)
    found <- g(c(sd = 1.2, lengthscale = 0.3, noise = 0.2), information = TRUE)
    expect_close(as.numeric(found), peer$loglik, 1e-9)
    expect_equal(drop(t(by) %*% attr(found, "gradient")), as.vector(peer$grad), tolerance = 1e-9)
    expect_equal(unname(t(by) %*% attr(found, "information") %*% by), peer$info,
                 tolerance = 1e-9)
  })
})
