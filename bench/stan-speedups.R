# The experiments of the paper on GPU support in Stan (Cesnovar et al., sections 4.1 and 4.2) as
# Stan programs: whole runs of cl_sample() on the device and on the host, next to what CmdStan took:
#   Rscript bench/stan-speedups.R [small] [logistic|process]
# Logistic regression by bernoulli_logit_glm, flat priors, one chain of 500 + 500 iterations; a
# Gaussian process of n points with Betancourt's priors, and its predictions at as many new points
# for each draw, one chain of 30 + 10 iterations. Seconds are by the clock, from the data to the
# draws; on the device those of the second of two runs, since CmdStan's leave its compiler out too.
# The host uses all cores, CmdStan one for a chain. A run on the host that would take more than
# STATCL_BENCH_HOST seconds (20) is not made: "~" marks the time of a gradient times the gradients
# of the device's run.
# CmdStan's columns: means of the times in measurementData of bstatcomp/gpu-stan-paper-materials on
# GitHub (commit ac2c4dd), of which the paper's figures 6 and 7 are made: the same program on a
# Core i7-5600U, a Radeon VII and a Titan XP. NA: not measured on the CPU there.
source("bench/common.R")
arguments <- commandArgs(TRUE)
bench_open(character())
invisible(.Call(statcl:::r_profiling, FALSE)) # event times cost several microseconds a launch
small <- "small" %in% arguments || !bench$gpu
longest <- as.numeric(Sys.getenv("STATCL_BENCH_HOST", "20"))

published <- read.table(text = "
model          n    k       cpu    radeon   titan
logistic     256   10    0.0529    3.66     3.62
logistic    1024   10    0.145     3.06     2.61
logistic    4096   10    0.585     3.16     2.70
logistic   16384   10    2.38      3.40     3.81
logistic   65536   10    8.82      4.60     3.99
logistic  262144   10   51.9       9.77     9.69
logistic 1048576   10  243        41.1     49.3
logistic 4194304   10  930       233      151
logistic   10000   16    1.47      3.77     4.43
logistic   10000   32    1.71      3.86     4.36
logistic   10000   64    3.17      4.80     5.58
logistic   10000  128   12.2      10.8     13.8
logistic   10000  256   32.1      11.4     12.4
logistic   10000  512   62.1      14.9     15.6
logistic   10000 1024  171        28.8     28.7
logistic   10000 2048  638        96.8     72.0
process      256    1   35.3      42.4     28.5
process      512    1  229       177      164
process     1024    1 1543      1028     1030
process     2048    1 11160     3240     2920
process     3072    1 35600     6460     7290
process     4096    1    NA    11600    13900
process     6144    1    NA    30300    33600", header = TRUE)

models <- list(
  logistic = list(iterations = c(500, 500), code = "
    data { int<lower=1> k; int<lower=0> n; matrix[n, k] X; array[n] int y; }
    parameters { vector[k] beta; real alpha; }
    model { target += bernoulli_logit_glm_lpmf(y | X, alpha, beta); }",
    data = function(n, k) {
      x <- random_matrix(n, k)
      list(n = n, k = k, X = x, y = as.integer(runif(n) < plogis(3 * x[, 1L] - 2 * x[, 2L] + 1)))
    }),
  process = list(iterations = c(30, 10), code = "
    functions {
      vector predict_rng(array[] real x2, vector y1, array[] real x1, real alpha, real rho,
                         real sigma) {
        int n = rows(y1);
        matrix[n, n] L = cholesky_decompose(add_diag(gp_exp_quad_cov(x1, alpha, rho),
                                                     square(sigma)));
        vector[n] w = mdivide_right_tri_low(mdivide_left_tri_low(L, y1)', L)';
        matrix[n, size(x2)] k12 = gp_exp_quad_cov(x1, x2, alpha, rho);
        matrix[n, size(x2)] v = mdivide_left_tri_low(L, k12);
        return multi_normal_rng(k12' * w, add_diag(gp_exp_quad_cov(x2, alpha, rho) - v' * v,
                                                   1e-10));
      }
    }
    data { int<lower=1> n; array[n] real x; vector[n] y; array[n] real x2; }
    parameters { real<lower=0> rho; real<lower=0> alpha; real<lower=0> sigma; }
    model {
      matrix[n, n] L = cholesky_decompose(add_diag(gp_exp_quad_cov(x, alpha, rho), square(sigma)));
      rho ~ inv_gamma(8.91924, 34.5805); // 1% each below 2 and above 10
      alpha ~ normal(0, 2);
      sigma ~ normal(0, 1);
      y ~ multi_normal_cholesky(rep_vector(0, n), L);
    }
    generated quantities {
      vector[n] f = predict_rng(x2, y, x, alpha, rho, sigma);
      array[n] real y_new = normal_rng(f, sigma);
    }",
    data = function(n, k) {
      x <- runif(n, -10, 10)
      f <- x + 4 * x^2 - x^3 + 100 * sin(2 * x)
      list(n = n, x = x, y = (f - 133.4722) / 400.7542 + rnorm(n, 0, 0.1), x2 = runif(n, -10, 10))
    }))

sampled <- function(model, data, engine) {
  with_cl(engine = engine, {
    start <- seconds()
    fit <- suppressWarnings(cl_sample(cl_stan(code = model$code), data = data, chains = 1, seed = 1,
                                      warmup = model$iterations[1L], iter = model$iterations[2L],
                                      refresh = 0))
    list(seconds = seconds() - start, gradients = sum(fit$evaluations))
  })
}

# Seconds of a gradient on the host.
gradient_on_host <- function(model, data) {
  with_cl(engine = "host", {
    b <- cl_stan(code = model$code)(data)
    u <- numeric(b$dimension)
    b$unconstrained(u)
    start <- seconds()
    b$unconstrained(u + 1e-6)
    seconds() - start
  })
}

run_one <- function(row) {
  model <- models[[row$model]]
  data <- model$data(row$n, row$k)
  device <- NULL
  for (k in 1:2) device <- sampled(model, data, "device")
  expected <- gradient_on_host(model, data) * device$gradients
  host <- if (expected > longest) expected else sampled(model, data, "host")$seconds
  cat(sprintf("| %s | %.0f | %d | %d | %.3g | %s%.3g | %.3g | %.3g | %.3g | %.3g | %.2g | %.2g |\n",
              row$model, row$n, row$k, device$gradients, device$seconds,
              if (expected > longest) "~" else "", host, host / device$seconds, row$cpu, row$radeon,
              row$titan, row$cpu / row$radeon, row$cpu / row$titan))
}

cat(sprintf("%s, and %d cores of the host\n\n", bench$device$name, parallel::detectCores()))
cat("| model | n | k | gradients | device s | host s | host/device | CmdStan CPU s |",
    " Radeon VII s | Titan XP s | CPU/Radeon | CPU/Titan |\n|---|", strrep("---:|", 11L), "\n",
    sep = "")
set.seed(1)
chosen <- intersect(arguments, names(models))
rows <- published[published$model %in% if (length(chosen) > 0L) chosen else names(models), ]
if (small) rows <- rows[rows$n * rows$k <= ifelse(rows$model == "process", 256, 41000), ]
for (i in seq_len(nrow(rows))) run_one(rows[i, ])
