# What .ci/cluster.sh runs: each kind of work on three hosts, by a cluster of the parallel package,
# by a plan of the future package and by daemons of mirai, compared with this process.
library(statcl)
cl_use(engine = "host")
remote <- Sys.getenv("CLUSTER_REMOTE")
net <- Sys.getenv("CLUSTER_NET")
name <- Sys.getenv("CLUSTER_NAME")
failures <- 0L

cluster <- function() {
  parallel::makePSOCKcluster(paste0(net, ".", 1:3), master = paste0(net, ".254"), rshcmd = remote,
                             user = "root", homogeneous = TRUE, useXDR = FALSE)
}

# Bytes from this process to the hosts, and back.
bytes <- function() {
  of <- function(what) {
    files <- sprintf("/sys/class/net/%s-v%d/statistics/%s_bytes", name, 1:3, what)
    sum(vapply(files, function(file) as.double(readLines(file)), 0))
  }
  c(sent = of("tx"), received = of("rx"))
}

# A daemon of mirai on each host.
daemons <- function() {
  url <- sprintf("tcp://%s.254:%d", net, 20000L + Sys.getpid() %% 10000L)
  mirai::daemons(url = url)
  command <- shQuote(sprintf("exec Rscript -e 'mirai::daemon(\"%s\")'", url))
  for (i in 1:3) system(sprintf("%s -l root %s.%d %s", remote, net, i, command), wait = FALSE)
  until <- Sys.time() + 30
  while (mirai::status()$connections < 3 && Sys.time() < until) Sys.sleep(0.1)
  "mirai"
}

# Kills the R process of host 2 after some seconds, from another process, unless the file is removed
# before.
kill_later <- function(seconds) {
  file.create(file <- tempfile())
  system(sprintf("(sleep %g; [ -e %s ] && kill -9 $(ip netns pids %s-2)) > /dev/null 2>&1", seconds,
                 file, name), wait = FALSE)
  file
}

set.seed(1)
x <- matrix(rnorm(20000), 2000)
y <- rbinom(2000, 1, plogis(x[, 1]))
likelihood <- cl_likelihood("bernoulli_logit", y, x)
posterior <- cl_log_posterior(likelihood, ~ dnorm(beta, log = TRUE))
simulate <- function() {
  mu <- rnorm(1)
  list(parameters = list(mu = mu), data = rnorm(20, mu))
}
model <- function(y) cl_gradient(function(mu) sum(dnorm(y, mu, log = TRUE)) + dnorm(mu, log = TRUE))

data <- data.frame(x, y = y)
short <- data.frame(x = runif(60))
short$y <- sin(6 * short$x) + rnorm(60, sd = 0.2)
works <- list(
  chains = function(workers) {
    cl_sample(posterior, list(alpha = 0, beta = numeric(10)), chains = 6, warmup = 300, iter = 900,
              seed = 1, workers = workers, batch = FALSE, refresh = 0)$draws
  },
  calibration = function(workers) {
    cl_calibrate(simulate, model, replicates = 400, seed = 1, workers = workers, refresh = 0)$ranks
  })
works$folds <- function(workers) {
  fit <- cl_glm(y ~ ., family = "bernoulli_logit", data = data)
  cl_cv(fit, folds = 12, seed = 1, workers = workers)$pointwise
}
works$multistarts <- function(workers) {
  set.seed(1)
  coef(cl_gp(y ~ x, short, starts = 12, workers = workers))
}

# FALSE if the run has ended before the kill, which fails if it is the last trial.
check <- function(what, kind, run, workers, expected, kill, last = TRUE) {
  told <- character()
  before <- bytes()
  seconds <- system.time(result <- withCallingHandlers({
    if (kill > 0) {
      file <- kill_later(kill)
      on.exit(unlink(file))
    }
    tryCatch(run(workers), error = identity)
  }, statcl_warning_worker = function(w) {
    told <<- c(told, conditionMessage(w))
    invokeRestart("muffleWarning")
  }))[[3]]
  moved <- (bytes() - before) / 1024
  same <- !inherits(result, "error") && identical(result, expected)
  killed <- kill == 0 || length(told) > 0
  cat(sprintf("%-12s %-9s %-7s %6.1f s  %7.0f kB sent %7.0f kB received  %s%s\n", what, kind,
              if (kill > 0) "killed" else "", seconds, moved[1], moved[2],
              if (same) "equal" else "DIFFERENT", if (kill > 0 && length(told) == 0)
                " (ended before the kill)" else ""))
  if (inherits(result, "error")) cat("  ", conditionMessage(result), "\n")
  for (text in told) cat("  ", text, "\n")
  if (!same || last && !killed) failures <<- failures + 1L
  killed
}

for (what in names(works)) {
  run <- works[[what]]
  alone <- system.time(expected <- run(1))[[3]]
  cat(sprintf("%-12s %-9s         %6.1f s\n", what, "alone", alone))
  for (kind in c("parallel", "future", "mirai")) {
    if (kind != "parallel" && !requireNamespace(kind, quietly = TRUE)) {
      cat(kind, "is not installed\n")
      next
    }
    nodes <- if (kind != "mirai") cluster()
    workers <- if (kind == "mirai") daemons() else nodes
    if (kind == "future") {
      future::plan(future::cluster, workers = nodes)
      workers <- "future"
    }
    time <- system.time(check(what, kind, run, workers, expected, 0))[[3]]
    # these end too soon for a kill in their middle
    kill <- max(0.3, 0.25 * time)
    for (trial in if (!what %in% c("folds", "multistarts")) 1:4) {
      if (check(what, kind, run, workers, expected, kill, trial == 4)) break
      kill <- kill / 3 # the machine was busier before
    }
    if (kind == "future") future::plan(future::sequential)
    if (kind == "mirai") mirai::daemons(0)
    for (i in c(1, 3)[!is.null(nodes)]) try(parallel::stopCluster(nodes[i]), silent = TRUE)
  }
}
if (failures > 0) {
  cat(failures, "failed\n")
  quit(status = 1)
}
