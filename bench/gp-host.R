# The host engine next to what one would use without statcl: the log marginal likelihood of a
# Gaussian process with its gradient, at the same parameters, on the same cores. co2 (468
# observations, one input) and 2000 points in three inputs, squared exponential kernel with a
# lengthscale each.
#
# Rows `gp_host_*`: "R host ms" is statcl's host engine; "peer ms" plain R as DiceKriging computes
# it, one matrix dK for each parameter, with R's own BLAS; the comments between add rstan's
# gradient of the same model (STATCL_BENCH_STAN=1, if rstan is there: it compiles a minute) and
# kernlab's gausspr(), which computes neither likelihood nor gradient, only one factorisation and
# its weights. STATCL_BENCH_SIZES="500" takes other sizes than 2000.

host_sizes <- as.numeric(strsplit(Sys.getenv("STATCL_BENCH_SIZES", "2000"), ",")[[1L]])

# Value and gradient by the textbook: C, its factor, its inverse, dC for each parameter.
plain_likelihood <- function(y, x) {
  squares <- lapply(seq_len(ncol(x)), function(j) outer(x[, j], x[, j], "-")^2)
  n <- length(y)
  function(par) {
    l <- par[seq_len(ncol(x)) + 1L]
    r2 <- Reduce(`+`, Map(function(s, li) s / li^2, squares, l))
    k <- par[[1L]]^2 * exp(-0.5 * r2)
    root <- chol(k + diag(par[[length(par)]]^2, n))
    inverse <- chol2inv(root)
    a <- inverse %*% y
    weight <- tcrossprod(a) - inverse
    by_k <- weight * k
    structure(-sum(y * a) / 2 - sum(log(diag(root))) - n * log(2 * pi) / 2,
              gradient = c(sum(by_k) / par[[1L]],
                           mapply(function(s, li) sum(by_k * s) / 2 / li^3, squares, l),
                           sum(diag(weight)) * par[[length(par)]]))
  }
}

stan_model_code <- "
data { int<lower=1> n; int<lower=1> p; vector[n] y; row_vector[p] x[n]; }
parameters { real<lower=0> scale; vector<lower=0>[p] lengthscale; real<lower=0> noise; }
model {
  matrix[n, n] c;
  for (j in 1:n) {
    c[j, j] = square(scale) + square(noise);
    for (i in (j + 1):n) {
      c[i, j] = square(scale) * exp(-0.5 * dot_self((x[i] - x[j]) ./ lengthscale'));
      c[j, i] = c[i, j];
    }
  }
  target += multi_normal_cholesky_lpdf(y | rep_vector(0, n), cholesky_decompose(c));
}"
with_stan <- Sys.getenv("STATCL_BENCH_STAN") == "1" && requireNamespace("rstan", quietly = TRUE)
if (with_stan) {
  # Debian's package BH leaves Boost where the compiler finds it
  if (!nzchar(system.file("include", package = "BH"))) {
    rstan::rstan_options(boost_lib = "/usr/include")
  }
  stan_model <- rstan::stan_model(model_code = stan_model_code)
}

stan_likelihood <- function(y, x) {
  empty <- suppressWarnings(suppressMessages(utils::capture.output(
    fit <- rstan::sampling(stan_model, list(n = length(y), p = ncol(x), y = y, x = x), chains = 0)),
    classes = "message"))
  function(par) rstan::grad_log_prob(fit, log(par), adjust_transform = FALSE)
}

# The least milliseconds of each, taken in turn, so that other work on the machine hits all alike.
in_turn <- function(runs, times = 5L) {
  taken <- vapply(seq_len(times), function(i) {
    vapply(runs, function(run) {
      start <- seconds()
      run()
      1000 * (seconds() - start)
    }, 0)
  }, numeric(length(runs)))
  apply(matrix(taken, length(runs), dimnames = list(names(runs), NULL)), 1L, min)
}

host_problem <- function(name, y, x, par) {
  ours <- with_cl(cl_gp_likelihood(y, x, k_exp_quad(lengthscale = rep(1, ncol(x)))),
                  engine = "host")
  plain <- plain_likelihood(y, x)
  stopifnot(all.equal(as.vector(ours(par)), as.vector(plain(par)), tolerance = 1e-9),
            all.equal(unname(attr(ours(par), "gradient")), attr(plain(par), "gradient"),
                      tolerance = 1e-6))
  runs <- list(ours = function() ours(par), plain = function() plain(par))
  if (with_stan) {
    stan <- stan_likelihood(y, x)
    stopifnot(all.equal(as.vector(stan(par)), unname(attr(ours(par), "gradient") * par),
                        tolerance = 1e-6))
    runs$stan <- function() stan(par)
  }
  if (requireNamespace("kernlab", quietly = TRUE)) {
    # one lengthscale is all that its kernel has
    runs$kernlab <- function() {
      kernlab::gausspr(x, y, kernel = "rbfdot", kpar = list(sigma = 0.5 / par[[2L]]^2),
                       var = (par[[length(par)]] / par[[1L]])^2, scaled = FALSE, fit = FALSE)
    }
    held <- c(sd = par[[1L]], lengthscale = par[[2L]], noise = par[[length(par)]])
    runs$cl_gp <- function() {
      with_cl(cl_gp(x, y, k_exp_quad(), mean = 0, ard = FALSE, fixed = held), engine = "host")
    }
  }
  ms <- in_turn(runs)
  add_row(data.frame(operation = paste0("gp_host_", name), size = as.character(length(y)),
                     device_ms = NA_real_, wall_ms = ms[["ours"]], rate = "",
                     peer_ms = ms[["plain"]], host_ms = ms[["ours"]], floor_ms = NA_real_,
                     stringsAsFactors = FALSE), "wall")
  words <- c(stan = "rstan's gradient %.1f ms", kernlab = "kernlab's gausspr() %.1f ms",
             cl_gp = "cl_gp() with these parameters %.1f ms")
  words <- words[names(words) %in% names(ms)]
  if (length(words) > 0L) {
    cat("<!-- ", paste(sprintf(words, ms[names(words)]), collapse = "; "), " -->\n", sep = "")
  }
}

note_peers("Peer of `gp-host`: R without statcl.")
y <- as.vector(co2)
host_problem("co2", y - mean(y), cbind(as.vector(time(co2))),
             c(sd = 15, lengthscale = 2, noise = 2))
for (n in host_sizes) {
  x <- matrix(10 * runif(3 * n), n)
  host_problem("ard3", as.vector(scale(sin(x[, 1]) + x[, 2] / 5 + rnorm(n, sd = 0.3))), x,
               c(sd = 1, lengthscale.1 = 1, lengthscale.2 = 1.5, lengthscale.3 = 2, noise = 0.3))
}
