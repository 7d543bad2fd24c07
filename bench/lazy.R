# Lazy arithmetic: expressions as one kernel next to kernels written by hand (cl_kernel()), one
# kernel an operation, and the fused kernels of CuPy and PyTorch (peers_lazy.py); what a call costs;
# likelihoods as plain expressions; the host engine next to base R, with the memory that both take
# meanwhile.

rows <- sizes(gpu = 1e4, cpu = 1e3)
lengths <- sizes(gpu = c(1e7, 1e8), cpu = 1e5)
computed <- function(x) {
  cl_eval(x)
  x
}
uniform <- function(n) as_cl(matrix(rep_len(runif(min(n, 1e6)), n), rows))

# A kernel written by hand for matrices of one shape: `body` gives r from the numbers a and b.
by_hand <- function(body, inputs = c("a", "b")) {
  source <- sprintf("
__kernel void run(%s, __global double *out, int out_ld, int rows, int columns) {
  const int i = get_global_id(0), j = get_global_id(1);
  if (i >= rows || j >= columns) return;
  %s
  out[i + j * (long)out_ld] = %s;
}", paste0("__global const double *", inputs, "_, int ", inputs, "_ld", collapse = ", "),
    paste0("const double ", inputs, " = ", inputs, "_[i + j * (long)", inputs, "_ld];",
           collapse = " "), body)
  kernel <- cl_kernel(source, "run", c(setNames(rep_len("in", length(inputs)), inputs), out = "out",
                                       rows = "int", columns = "int"))
  function(...) {
    size <- dim(..1)
    kernel(..., out = size, rows = size[1L], columns = size[2L], global = size, local = c(256, 1))
  }
}

# Intermediate results are freed at once: R's collector would do it later, in the time that is
# taken.
chain <- function(x, y, steps, each = FALSE) {
  z <- x
  for (k in seq_len(steps)) {
    last <- z
    z <- if (k %% 2 == 1) z * y else z + y
    if (each) cl_eval(z)
    if (each && k > 1) cl_free(last)
  }
  z
}

# What is measured many times, results freed at once; what is to be compared, in turn.
lazily <- function(operation, size, run, ...) {
  measure(operation, size, run, ..., times = 15L, drop = free_value)
}
in_turn <- function(runs, size, ...) {
  measure_in_turn(runs, size, ..., times = 15L, drop = free_value)
}

for (n in lengths) {
  size <- sprintf("%.0f", n) # as the peers write it
  x <- uniform(n)
  y <- uniform(n)
  copy <- by_hand("a", "a")
  lazily("copy, by hand", size, function() copy(x), bytes = 16 * n)
  # (a) single operations
  add <- by_hand("a + b")
  in_turn(list("add" = function() computed(x + y), "add, by hand" = function() add(x, y)), size,
          bytes = 24 * n, peers = c("add", "add"))
  exponential <- by_hand("exp(a)", "a")
  in_turn(list("exp" = function() computed(exp(x)), "exp, by hand" = function() exponential(x)),
          size, bytes = 16 * n, peers = c("exp", "exp"))
  # (b) sequences
  for (steps in c(2, 4, 6, 8, 10)) {
    lazily(paste("chain of", steps), size, function() computed(chain(x, y, steps)), bytes = 24 * n)
    lazily(sprintf("chain of %d, a kernel each", steps), size,
           function() chain(x, y, steps, each = TRUE), bytes = 24 * n * steps)
  }
  # (c) expressions
  lazily("residuals", size, function() computed((y - x * 0.7)^2 * 0.5 - 1), bytes = 24 * n)
  lazily("gauss", size, function() computed(exp(-(x - y) * (x - y) / 0.5) / 1.2533), bytes = 24 * n)
  lazily("sum of squares", size, function() sum((y - x * 0.7)^2), bytes = 16 * n)
  lazily("row sums", size, function() computed(cl_reduce(x, margin = "rows")), bytes = 8 * n)
  lazily("column sums", size, function() computed(cl_reduce(x, margin = "cols")), bytes = 8 * n)
  lazily("transposed", size, function() computed(t(x)), bytes = 16 * n)
  lazily("two results", size, function() cl_eval(x * y + 1, cl_reduce((x - y)^2)), bytes = 24 * n)
  rm(x, y)
  gc()
}

# Bayesian linear regression: residuals over sigma, which the gradient needs, and their sum of
# squares; by hand a row of X to a work-item, and a second kernel that adds what the groups leave.
regression <- "
__kernel void run(__global const double *y, int y_ld, __global const double *x, int x_ld,
                  __global const double *beta, int beta_ld, double alpha, double scale,
                  __global double *out, int out_ld, __global double *part, int part_ld,
                  int n, int k) {
  __local double sums[256];
  const int i = get_global_id(0), l = get_local_id(0);
  double r = 0.0;
  if (i < n) {
    double mu = alpha;
    for (int j = 0; j < k; j++) mu += x[i + j * (long)x_ld] * beta[j];
    r = (y[i] - mu) * scale;
    out[i] = r;
  }
  sums[l] = r * r;
  for (int step = 128; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < step) sums[l] += sums[l + step];
  }
  if (l == 0) part[get_group_id(0)] = sums[0];
}

__kernel void total(__global const double *part, int part_ld, __global double *out, int out_ld,
                    int n) {
  __local double sums[256];
  const int l = get_local_id(0);
  double sum = 0.0;
  for (int i = l; i < n; i += 256) sum += part[i];
  sums[l] = sum;
  for (int step = 128; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < step) sums[l] += sums[l + step];
  }
  if (l == 0) *out = sums[0];
}"
shape <- sizes(gpu = c(1e6, 50), cpu = c(1e4, 10))
n <- shape[1L]
k <- shape[2L]
x <- as_cl(random_matrix(n, k))
y <- as_cl(rnorm(n))
beta <- as_cl(rnorm(k))
size <- sprintf("%.0fx%.0f", n, k)
hand <- cl_kernel(regression, "run", c(
  y = "in", x = "in", beta = "in", alpha = "double", scale = "double", out = "out", part = "out",
  n = "int", k = "int"))
hand_total <- cl_kernel(regression, "total", c(part = "in", out = "out", n = "int"))
groups <- ceiling(n / 256)
by_hand_regression <- function() {
  made <- hand(y, x, beta, 0.3, 1 / 1.7, c(n, 1), c(groups, 1), n, k, global = n, local = 256)
  list(made, hand_total(made$part, c(1, 1), groups, global = 256, local = 256))
}
r <- (y - x %*% beta - 0.3) / 1.7
stopifnot(all.equal(sum(r^2), as.vector(by_hand_regression()[[2L]])))
in_turn(list(
  "Bayesian linear regression" = function() {
    r <- (y - x %*% beta - 0.3) / 1.7
    cl_eval(r, cl_reduce(r^2))
  },
  "Bayesian linear regression, by hand" = by_hand_regression), size, bytes = 8 * n * (k + 2))

# Likelihoods of the table in R/family-table.R as plain expressions, value only, next to the
# family's own pass.
counts <- as.double(rpois(n, 2))
success <- as.double(counts > 1)
b <- rnorm(k) / k
families <- list(
  normal_id = list(y = counts, expression = function(y, eta, constant) {
    -sum(((y - eta) / 1.7)^2) / 2 - constant
  }, constant = n * (log(1.7) + log(2 * pi) / 2), own = list(sigma = 1.7)),
  poisson_log = list(y = counts, expression = function(y, eta, constant) {
    sum(y * eta - exp(eta)) - constant
  }, constant = sum(lgamma(counts + 1))),
  bernoulli_logit = list(y = success, expression = function(y, eta, constant) {
    sum(y * eta - cl_log1p_exp(eta))
  }, constant = 0))
for (family in names(families)) {
  it <- families[[family]]
  y <- as_cl(it$y)
  f <- cl_likelihood(family, it$y, x)
  arguments <- c(list(0.1, b), it$own, list(gradient = NULL))
  expression <- function() it$expression(y, x %*% b + 0.1, it$constant)
  own <- function() do.call(f, arguments)
  stopifnot(all.equal(expression(), as.vector(own())))
  runs <- list(expression, own)
  names(runs) <- paste(family, c("as an expression", "of cl_likelihood()"))
  in_turn(runs, size, bytes = 8 * n * (k + 1), by = "wall")
}
rm(x, y, f)
gc()

# (d) Building an expression of 10 operations and launching its kernel, compiled before: one call in
# a loop of many, with and without waiting for the value. Without event times, which cost a launch
# as much again: the next matrix opens a context.
.Call(statcl:::r_profiling, FALSE)
x <- as_cl(matrix(runif(100), 10))
y <- as_cl(matrix(runif(100), 10))
ten <- function() exp(-((x - y)^2 * 0.5 + x) / 2 + y) * x - 1
overhead <- function(operation, run, times = 1e4) {
  if (!is_wanted(operation, "10x10")) return(invisible())
  for (i in 1:100) run()
  cl_sync()
  start <- seconds()
  for (i in seq_len(times)) run()
  wall <- 1000 * (seconds() - start) / times
  cl_sync()
  add_row(data.frame(operation = operation, size = "10x10", device_ms = NA_real_, wall_ms = wall,
                     rate = sprintf("%.1f us a call", 1000 * wall), peer_ms = NA_real_,
                     host_ms = NA_real_, floor_ms = NA_real_, stringsAsFactors = FALSE), "wall")
}
overhead("10 operations, built only", ten)
overhead("10 operations, built and launched", function() cl_eval(ten()))
overhead("10 operations and their sum as a number", function() sum(ten()))
.Call(statcl:::r_profiling, TRUE)
rm(x, y)

# The host engine next to base R: milliseconds, and the most memory that each takes in addition to
# the operands.
host_expressions <- list(
  "sum((y - x * b)^2)" = function(x, y) sum((y - x * 0.7)^2),
  "log density of normals" = function(x, y) {
    sum(-0.5 * ((y - x) / 1.3)^2 - log(1.3) - 0.5 * log(2 * pi))
  },
  "logistic deviance" = function(x, y) sum(log1p(exp(-abs(x))) + pmax(x, 0) - x * y),
  "Huber loss" = function(x, y) {
    r <- abs(y - x)
    sum(pmin(r, 0.5)^2 * 0.5 + 0.5 * (r - pmin(r, 0.5)))
  },
  "Student t score" = function(x, y) {
    r <- y - x
    sum(5 * r / (4 + r * r) * x - 0.1 * x^2)
  },
  "range of a polynomial" = function(x, y) range(((x * 0.3 + y) * x - 0.7) * x + y * y - 1))

# Bytes of R's vectors at the most while `run` runs, besides those that were there.
base_memory <- function(run) {
  before <- gc(reset = TRUE)[2L, 1L]
  run()
  8 * (gc()[2L, 5L] - before)
}

own_memory <- function(run) {
  before <- cl_memory()$peak[1L]
  live <- cl_memory()$live[1L]
  run()
  max(cl_memory()$peak[1L] - max(before, live), 0)
}

with_cl({
  n <- if (bench$gpu) 1e7 else 1e6
  plain_x <- matrix(runif(n), rows)
  plain_y <- matrix(runif(n), rows)
  x <- as_cl(plain_x)
  y <- as_cl(plain_y)
  for (name in names(host_expressions)) {
    operation <- paste("host:", name)
    if (!is_wanted(operation, sprintf("%.0f", n))) next
    f <- host_expressions[[name]]
    stopifnot(all.equal(f(x, y), f(plain_x, plain_y)))
    ours <- time_host(function() f(x, y), 5L)
    base <- time_host(function() f(plain_x, plain_y), 5L)
    memory <- sprintf("%.1f MB, base R %.0f MB", base_memory(function() f(x, y)) / 1e6 +
                        own_memory(function() f(x, y)) / 1e6,
                      base_memory(function() f(plain_x, plain_y)) / 1e6)
    add_row(data.frame(operation = operation, size = sprintf("%.0f", n),
                       device_ms = NA_real_, wall_ms = ours, rate = memory, peer_ms = base,
                       host_ms = base, floor_ms = NA_real_, stringsAsFactors = FALSE), "wall")
  }
}, engine = "host")
