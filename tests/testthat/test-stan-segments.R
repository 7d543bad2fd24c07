# Loops of Stan programs over segments of different lengths, in groups of one length
# (R/stan-lanes.R), against R functions of the same sums.

set.seed(1)
n <- 40L
sizes <- rep_len(c(2L, 3L, 1L, 3L), n)
starts <- rep_len(c(1L, 3L, 6L, 2L), n)
given <- list(N = n, m = sizes, pos = starts, y = rep_len(c(1L, 0L, 1L, 2L), n), v = sin(1:n))
point <- c(0.3, -0.4, 0.8, 0.1, -0.9, 0.5, 0.2)
parts <- function(x) lapply(1:n, function(i) x[starts[i] + seq_len(sizes[i]) - 1L])

# A program with this model block, whose log density is `want`.
expect_segments <- function(model, want, functions = "", transformed = "") {
  code <- sprintf(paste("functions { %s } data { int N; array[N] int m; array[N] int pos;",
                        "array[N] int y; vector[N] v; } transformed data { %s }",
                        "parameters { vector[7] b; } model { %s }"), functions, transformed, model)
  bound <- cl_stan(code = code)(given)
  found <- bound$unconstrained(point)
  expect_equal(as.numeric(found), want(point), tolerance = 1e-12)
  slope <- vapply(1:7, function(k) {
    h <- replace(numeric(7), k, 1e-4)
    (want(point + h) - want(point - h)) / 2e-4
  }, 0)
  expect_equal(as.vector(attr(found, "gradient")), slope, tolerance = 1e-6)
  expect_equal(as.numeric(bound(b = point)), want(point), tolerance = 1e-12)
}

test_that("segments of several lengths are computed in groups", {
  each_engine({
    expect_segments("for (i in 1:N) target += sum(segment(b, pos[i], m[i])) * v[i];",
                    function(b) sum(vapply(parts(b), sum, 0) * given$v))
  })
  with_cl(engine = "host", {
    expect_segments("for (i in 1:N) target += log_sum_exp(segment(b, pos[i], m[i]) - v[i]);",
                    function(b) sum(vapply(parts(b), function(p) log(sum(exp(p))), 0) - given$v))
    expect_segments(
      paste("vector[N] e; for (i in 1:N) { vector[m[i]] p = segment(b, pos[i], m[i]);",
            "e[i] = dot_self(p); } target += dot_product(e, v);"),
      function(b) sum(vapply(parts(b), function(p) sum(p^2), 0) * given$v))
    expect_segments(
      paste("for (i in 1:N)", "target += pcm(y[i] % 2, b[1 + i % 7],",
            "segment(b, pos[i], m[i]));"),
      function(b) {
        sum(mapply(function(p, y, t) {
          u <- cumsum(c(0, t - p))
          u[y %% 2L + 1L] - log(sum(exp(u)))
        }, parts(b), given$y, b[1L + 1:n %% 7L]))
      },
      functions = paste("real pcm(int y, real t, vector q) { vector[rows(q) + 1] u;",
                        "vector[rows(q) + 1] p; u = append_row(rep_vector(0.0, 1), t - q);",
                        "p = softmax(cumulative_sum(u)); return categorical_lpmf(y + 1 | p); }"))
  })
})

test_that("segments whose sizes are not known before the loop are computed one by one", {
  with_cl(engine = "host", {
    # a size that the loop itself assigns
    expect_segments(
      "array[N] int k; for (i in 1:N) { k[i] = m[i]; target += sum(segment(b, pos[i], k[i])); }",
      function(b) sum(vapply(parts(b), sum, 0)))
    expect_segments("target += s * b[1];", function(b) b[1] * sum(vapply(1:n, function(i) {
      sum(given$v[starts[i] + seq_len(sizes[i]) - 1L])
    }, 0)), transformed = paste("array[N] int k = rep_array(1, N); real s = 0; for (i in 1:N)",
                                "{ k[i] = m[i]; s += sum(segment(v, pos[i], k[i])); }"))
    # a vector that the loop assigns, and one that each step changes
    expect_segments(
      paste("vector[N] e = v; for (i in 2:(N - 3)) e[i] = sum(segment(e, i - 1, m[i])) / 4 + b[1];",
            "target += sum(e);"),
      function(b) {
        e <- given$v
        for (i in 2:(n - 3L)) e[i] <- sum(e[i - 1L + seq_len(sizes[i]) - 1L]) / 4 + b[1]
        sum(e)
      })
    # a condition that guards a size, a size of an inner loop, and a value of the last step
    expect_segments(
      "for (i in -2:N) if (i > 0) target += sum(segment(b, pos[i], m[i])) * v[i];",
      function(b) sum(vapply(parts(b), sum, 0) * given$v))
    expect_segments(
      paste("for (i in 1:(N - 2)) for (j in 1:2)",
            "target += sum(segment(b, 1 + i % 3, m[i + j]));"),
      function(b) {
        sum(outer(1:(n - 2L), 1:2, Vectorize(function(i, j) {
          sum(b[i %% 3L + seq_len(sizes[i + j])])
        })))
      })
    expect_segments(
      paste("real last; for (i in 1:N) { last = sum(segment(b, pos[i], m[i])); target += last; }",
            "target += last;"),
      function(b) {
        all <- vapply(parts(b), sum, 0)
        sum(all) + all[n]
      })
  })
  expect_error(expect_segments("for (i in 1:N) target += sum(segment(b, pos[i] + 4, m[i]));", sum),
               "index 8 of 'b' is out of bounds|out of bounds")
})

test_that("a loop over segments records a few operations", {
  code <- paste("data { int N; array[N] int m; array[N] int pos; } parameters { vector[7] b; }",
                "model { for (i in 1:N) target += log_sum_exp(segment(b, pos[i], m[i])); }")
  counts <- vapply(c(1L, 50L), function(times) {
    data <- list(N = times * n, m = rep(sizes, times), pos = rep(starts, times))
    bound <- cl_stan(code = code)(data)
    bound$unconstrained(point)
    length(environment(statcl:::stan_vector_density(environment(bound)$state))$nodes$kind)
  }, 0L)
  expect_identical(counts[1L], counts[2L])
})
