# Grouped conditioning: a block's members are conditioned on all earlier rows of the block. Held
# against a plain version in R, and against exact processes.

vecchia_graph <- statcl:::vecchia_graph

settings <- function(n, p = 2L) {
  set.seed(n)
  x <- matrix(stats::runif(p * n), n, dimnames = list(NULL, letters[seq_len(p)]))
  list(x = x, y = sin(6 * x[, 1L]) + rowSums(x) + 0.1 * stats::rnorm(n))
}

# The blocks: of each its rows, as rows of x in the order of the approximation, and which of these
# are members.
blocks_of <- function(f) {
  graph <- vecchia_graph(f)
  lapply(seq_len(ncol(graph$blocks)), function(b) {
    code <- stats::na.omit(graph$blocks[, b])
    list(at = code %/% 2L + 1L, rows = graph$order[code %/% 2L + 1L], member = code %% 2L == 1L)
  })
}

# The log density by its definition: each member given all earlier rows of its block, for a known
# mean and several outputs; with y NULL the sum of the logarithms of their variances.
plain_grouped <- function(y, covariance, blocks) {
  total <- 0
  for (block in blocks) {
    for (i in which(block$member)) {
      own <- block$rows[i]
      near <- block$rows[seq_len(i - 1L)]
      mean <- numeric(ncol(y))
      variance <- covariance[own, own]
      if (length(near) > 0L) {
        weights <- solve(covariance[near, near], covariance[near, own])
        mean <- drop(crossprod(y[near, , drop = FALSE], weights))
        variance <- variance - sum(weights * covariance[near, own])
      }
      total <- total + sum(stats::dnorm(y[own, ], mean, sqrt(variance), log = TRUE))
    }
  }
  total
}

covariance_at <- function(kernel, par, x, weights = 1, variance = 0) {
  kernel <- statcl:::with_parameters(kernel, par[names(coef(kernel))])
  as.matrix(cl_cov(x, kernel = kernel)) +
    diag(par[["noise"]]^2 / weights + variance, nrow(x))
}

# The information by its formula: of each member's block up to it, less that without it, with
# derivatives by differences.
plain_information <- function(covariance, par, blocks) {
  slopes <- lapply(seq_along(par), function(i) {
    h <- 1e-5 * par[[i]]
    (covariance(replace(par, i, par[[i]] + h)) - covariance(replace(par, i, par[[i]] - h))) /
      (2 * h)
  })
  k <- covariance(par)
  of <- function(rows) {
    if (length(rows) == 0L) return(0)
    moved <- lapply(slopes, function(s) solve(k[rows, rows], s[rows, rows]))
    outer(seq_along(par), seq_along(par),
          Vectorize(function(i, j) sum(moved[[i]] * t(moved[[j]])) / 2))
  }
  total <- 0
  for (block in blocks) {
    for (i in which(block$member)) {
      total <- total + of(block$rows[seq_len(i)]) - of(block$rows[seq_len(i - 1L)])
    }
  }
  total
}

kernels <- list(
  matern32 = k_matern32(sd = 1.3, lengthscale = c(0.3, 0.5)),
  exp_quad = k_exp_quad(lengthscale = 0.2),
  exponential = k_exponential(lengthscale = 0.7),
  sum = k_matern32(lengthscale = 0.3, columns = 1) + k_periodic(period = 0.4, columns = 2) +
    k_white(sd = 0.3),
  product = k_rational_quadratic(alpha = 0.7) * k_matern52(columns = 2) + k_linear(sd = 0.5))

test_that("blocks partition the observations and have the neighbours of their members", {
  for (m in c(1L, 7L, 20L, 50L)) {
    d <- settings(700L)
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

test_that("likelihoods equal their definition, and have the derivatives that they say", {
  each_engine({
    for (name in names(kernels)) {
      for (n in full_or_quick(c(1L, 2L, 33L, 130L), c(2L, 130L))) {
        kernel <- kernels[[name]]
        d <- settings(n)
        y <- cbind(d$y, d$y^2)
        f <- cl_gp_likelihood(y, d$x, kernel, mean = 0.3, approx = "vecchia", neighbours = 9,
                              grouped = TRUE)
        par <- c(coef(kernel), noise = 0.2)
        value <- f(par)
        expect_close(as.numeric(value),
                     plain_grouped(y - 0.3, covariance_at(kernel, par, d$x), blocks_of(f)), 1e-10)
        expect_equal(as.numeric(f(par, gradient = FALSE)), as.numeric(value), tolerance = 1e-13)
        check <- cl_check_gradient(f, par)
        expect_lt(max(abs(check$error)), 1e-5)
      }
    }
  })
})

test_that("blocks of all sizes give what single observations give", {
  each_engine({
    for (m in full_or_quick(c(1, 14, 20, 31, 47, 48, 70), c(20, 48))) {
      d <- settings(200L)
      f <- cl_gp_likelihood(d$y, d$x, kernels$matern32, mean = "constant", approx = "vecchia",
                            neighbours = m, grouped = TRUE)
      par <- c(coef(kernels$matern32), noise = 0.2)
      y <- matrix(d$y - attr(f(par), "mean"))
      expect_close(as.numeric(f(par)),
                   plain_grouped(y, covariance_at(kernels$matern32, par, d$x), blocks_of(f)),
                   1e-10)
      expect_lt(max(abs(cl_check_gradient(f, par)$error)), 1e-5)
    }
  })
})

test_that("with all earlier points as neighbours the likelihood is exact", {
  each_engine({
    d <- settings(60L)
    par <- c(coef(kernels$sum), noise = 0.2)
    for (beta in c("profile", "integrate")) {
      for (mean in list(0, "constant", "linear")) {
        y <- cbind(d$y, d$y^2)
        make <- function(...) {
          cl_gp_likelihood(y, d$x, kernels$sum, mean = mean, beta = beta,
                           weights = 1 + d$x[, 1], variance = d$x[, 2] / 50, ...)
        }
        expect_equal(make(approx = "vecchia", neighbours = 59, grouped = TRUE)(par), make()(par),
                     tolerance = 1e-9)
      }
    }
  })
})

test_that("the information is that of the conditional distributions", {
  each_engine({
    for (kernel in kernels[full_or_quick(names(kernels), c("matern32", "sum", "product"))]) {
      for (m in c(6, 20)) {
        d <- settings(60L)
        weights <- 1 + d$x[, 1L]
        variance <- d$x[, 2L] / 50
        y <- cbind(d$y, d$y^2)
        f <- cl_gp_likelihood(y, d$x, kernel, mean = "linear", beta = "integrate",
                              weights = weights, variance = variance, approx = "vecchia",
                              neighbours = m, grouped = TRUE)
        par <- c(coef(kernel), noise = 0.2)
        found <- f(par, information = TRUE)
        check <- cl_check_gradient(f, par)
        expect_lt(max(abs(check$error)), 1e-5)
        expect_equal(attr(found, "gradient"), attr(f(par), "gradient"), tolerance = 1e-10)
        covariance <- function(par) covariance_at(kernel, par, d$x, weights, variance)
        right <- 2 * plain_information(covariance, par, blocks_of(f)) # of two outputs
        scale <- sqrt(outer(diag(right), diag(right)))
        expect_lt(max(abs(attr(found, "information") - right) / scale), 1e-6)
      }
    }
  })
})

test_that("the divergence from the exact process is never larger, and mostly far smaller", {
  n <- 400L
  ratio <- c()
  for (name in names(kernels)) {
    for (m in c(3, 8, 15)) {
      d <- settings(n)
      kernel <- kernels[[name]]
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

test_that("far points, and points that coincide", {
  each_engine({
    d <- settings(300L)
    d$x[2L, ] <- 1e160 # squares overflow
    f <- cl_gp_likelihood(d$y, d$x, k_matern32(), mean = "constant", approx = "vecchia",
                          neighbours = 8, grouped = TRUE)
    par <- c(1, 0.3, 0.2)
    expect_true(all(is.finite(attr(f(par, information = TRUE), "information"))))
    expect_lt(max(abs(cl_check_gradient(f, par)$error)), 1e-5)
    d$x[7L, ] <- d$x[8L, ]
    f <- cl_gp_likelihood(d$y, d$x, k_matern32(), approx = "vecchia", neighbours = 8,
                          grouped = TRUE)
    expect_fault(f(c(1, 0.3, 0)), "not_pd")
    expect_true(is.finite(f(par)))
  })
})

test_that("fits use grouped likelihoods, and their methods work", {
  d <- as.data.frame(settings(250L))
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
  d <- settings(80L)
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
  d <- settings(20L)
  expect_fault(cl_gp_likelihood(d$y, d$x, k_matern32(), grouped = TRUE), "argument",
               argument = "grouped")
  expect_fault(cl_gp(d$x, d$y, k_matern32(), approx = "vecchia", grouped = NA),
               "argument", argument = "grouped")
  expect_fault(cl_gp(d$x, rpois(20, 3), k_matern32(), approx = "vecchia", grouped = TRUE,
                     family = "poisson_log"), "argument", argument = "grouped")
})

test_that("value, gradient and information are GpGp's for the same order and blocks", {
  skip_if_not(nzchar(system.file(package = "GpGp")), "GpGp is not installed")
  d <- settings(300L)
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
