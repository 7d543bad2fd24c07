# Points that a program rejects: values that violate their constraints, and arguments that densities
# do not take. Stan rejects these.

# declaration and value of a transformed parameter of the vector v, a point that is kept and one
# that is not, with what is said.
constraints <- list(
  list("real<lower=0> x = v[1];", c(0.1, 0, 0), c(-0.1, 0, 0), "is -0.1, but must be at least 0"),
  list("vector<upper=1>[3] x = v;", c(0.1, 1, 0), c(0, 0, 2),
       "is 2 at [3], but must be at most 1"),
  list("real<lower=v[2]> x = v[1];", c(1, 0, 0), c(1, 2, 0), "is 1, but must be at least 2"),
  list("simplex[3] x = v;", c(0.2, 0.3, 0.5), c(0.2, 0.3, 0.6), "is not a simplex"),
  list("simplex[3] x = v;", c(0, 0.5, 0.5), c(-0.2, 0.6, 0.6), "is not a simplex"),
  list("array[2] simplex[3] x = {v, [0.2, v[2], 0.5]'};", c(0.1, 0.3, 0.6), c(0.1, 0.4, 0.5),
       "is not a simplex at [2]"),
  list("ordered[3] x = v;", c(-1, 0, 2), c(-1, 2, 2), "is not increasing"),
  list("positive_ordered[3] x = v;", c(1, 2, 3), c(-1, 2, 3), "is not positive and increasing"),
  list("unit_vector[3] x = v;", c(0.6, 0, -0.8), c(0.6, 0, 0.9), "is not a unit vector"),
  list("sum_to_zero_vector[3] x = v;", c(1, 2, -3), c(1, 2, 3), "is not of sum zero"),
  list("sum_to_zero_matrix[2, 2] x = [[v[1], v[2]], [v[2], v[3]]];", c(1, -1, 1), c(1, -1, 2),
       "is not of sum zero"),
  list("cholesky_factor_corr[2] x = [[1, v[3]], [v[1], v[2]]];", c(0.6, 0.8, 0), c(0.6, 0.9, 0),
       "is not the Cholesky factor of a correlation matrix"),
  list("cholesky_factor_cov[2] x = [[1, v[3]], [v[1], v[2]]];", c(3, 2, 0), c(3, -2, 0),
       "is not a Cholesky factor"),
  list("cholesky_factor_cov[2] x = [[1, v[3]], [v[1], v[2]]];", c(3, 2, 0), c(3, 2, 0.1),
       "is not a Cholesky factor"),
  list("corr_matrix[2] x = [[1, v[1]], [v[1], v[2]]];", c(0.5, 1, 0), c(0.5, 0.9, 0),
       "is not a correlation matrix"),
  list("cov_matrix[2] x = [[2, v[1]], [v[2], 1]];", c(0.5, 0.5, 0), c(0.5, 0.6, 0),
       "is not a covariance matrix"),
  list("array[2] cov_matrix[2] x = {[[v[1], 1], [1, 2]], [[2, v[2]], [v[2], 2]]};", c(2, 1, 0),
       c(2, 3, 0), "is not a covariance matrix at [2]"),
  list("array[2] cov_matrix[2] x = {[[v[1], 1], [1, 2]], [[2, 1], [1, 2]]};", c(2, 1, 0),
       c(0.2, 1, 0), "is not a covariance matrix at [1]"),
  list("column_stochastic_matrix[3, 2] x = [v', [0.2, 0.3, 0.5]]';", c(0.1, 0.1, 0.8),
       c(0.1, 0.1, 0.9), "is not column stochastic"),
  list("row_stochastic_matrix[2, 3] x = [v', [0.2, 0.3, 0.5]];", c(0.1, 0.1, 0.8),
       c(0.1, 0.1, 0.9), "is not row stochastic"),
  list("array[2] tuple(ordered[3], real<upper=1>) x = {(v, v[1]), (v, v[2])};", c(-1, 0, 2),
       c(-1, 1.5, 2), "is 1.5, but must be at most 1", ".2"))

test_that("transformed parameters and generated quantities that violate their constraints", {
  for (row in constraints) {
    rejected <- sprintf("line 2: 'x%s' %s", c(row[5][[1]], "")[1], row[[4]])
    b <- cl_stan(code = sprintf("parameters { vector[3] v; }\ntransformed parameters { %s }
                                 model { target += sum(v); }", row[[1]]))()
    good <- b(v = row[[2]])
    expect_equal(as.vector(good), sum(row[[2]]), label = row[[1]])
    expect_identical(attr(good, "gradient")$v, rep(1, 3), label = row[[1]])
    bad <- b$unconstrained(row[[3]])
    expect_false(is.finite(bad), label = row[[1]])
    expect_identical(attr(bad, "rejected"), rejected)
    b <- cl_stan(code = sprintf("parameters { vector[3] v; }\ngenerated quantities { %s }",
                                row[[1]]))()
    values <- environment(b)$state
    draws <- function(v) statcl:::stan_draw_values(values, matrix(v), NULL, TRUE, 20)
    expect_warning(found <- tryCatch(draws(row[[3]]), error = function(e) NULL), rejected,
                   fixed = TRUE, class = "statcl_warning_stan")
  }
})

test_that("parameters on their own scale that violate their constraints", {
  b <- cl_stan(code = "parameters {\nreal<lower=0> a;\nvector<upper=a>[2] b;\nsimplex[2] s; }
    model { target += a + sum(b) + s[1]; }")()
  expect_equal(as.vector(b(a = 2, b = 1:2, s = c(0.3, 0.7))), 5.3)
  check <- function(rejected, ...) {
    found <- b(...)
    expect_identical(as.vector(found), -Inf)
    expect_identical(attr(found, "rejected"), rejected)
    expect_named(attr(found, "gradient"), c("a", "b", "s"))
  }
  check("line 2: 'a' is -1, but must be at least 0", a = -1, b = 1:2, s = c(0.3, 0.7))
  check("line 3: 'b' is 2 at [2], but must be at most 1", a = 1, b = 1:2, s = c(0.3, 0.7))
  check("line 4: 's' is not a simplex", a = 2, b = 1:2, s = c(0.3, 0.8))
})

test_that("arguments of densities and functions that violate what these take", {
  check <- function(term, kept, not) {
    b <- cl_stan(code = sprintf("parameters { vector[3] v; } transformed parameters {
      matrix[2, 2] m = [[2, v[1]], [v[2], 1]]; } model { target += %s; }", term))()
    expect_true(is.finite(b(v = kept)), label = term)
    expect_false(is.finite(b(v = not)), label = term)
  }
  for (f in c("[1, 2]' | [0, 0]', m", "[1, 2]' | 4, [0, 0]', m")) {
    name <- if (grepl("4", f)) "multi_student_t" else "multi_normal"
    check(sprintf("%s_lpdf(%s)", name, f), c(0.5, 0.5, 0), c(0.5, 0.4, 0))
  }
  check("multi_normal_prec_lpdf([1, 2]' | [0, 0]', m)", c(0.5, 0.5, 0), c(0.5, 0.4, 0))
  check("multi_gp_lpdf([[1, 2], [3, 4]] | m, [1, 2]')", c(0.5, 0.5, 0), c(0.5, 0.4, 0))
  check("wishart_lpdf(m | 3, [[1, 0], [0, 1]])", c(0.5, 0.5, 0), c(0.5, 0.4, 0))
  check("inv_wishart_lpdf([[1, 0], [0, 1]] | 3, m)", c(0.5, 0.5, 0), c(0.5, 0.4, 0))
  check("lkj_corr_lpdf(m - [[1, 0], [0, 0]] | 2)", c(0.5, 0.5, 0), c(0.5, 0.4, 0))
  check("lkj_corr_lpdf(m - [[v[3], 0], [0, 0]] | 2)", c(0.5, 0.5, 1), c(0.5, 0.5, 0.9))
  check("lkj_corr_cholesky_lpdf(m | 2)", c(0, 0.5, 0), c(0.1, 0.5, 0))
  check("sum(cholesky_decompose(m))", c(0.5, 0.5, 0), c(0.5, 0.4, 0))
  for (f in c("log_determinant_spd(m)", "sum(inverse_spd(m))", "sum(quad_form_sym(m, m))",
              "sum(eigenvalues_sym(m))", "sum(mdivide_left_spd(m, [1, 2]'))",
              "sum(mdivide_right_spd([1, 2], m))")) {
    check(f, c(0.5, 0.5, 0), c(0.5, 0.4, 0))
  }
  for (f in c("categorical_lpmf(2 | v)", "categorical_lpmf({1, 3} | v)",
              "dirichlet_lpdf(v | [1, 2, 3]')", "multinomial_lpmf({1, 0, 2} | v)",
              "hmm_marginal([[1, 2], [2, 1], [3, 3]], [v', v', v'], [0.1, 0.1, 0.8]')",
              "hmm_marginal([[1, 2], [2, 1], [3, 3]], rep_matrix(1 / 3., 3, 3), v)")) {
    check(f, c(0.2, 0.3, 0.5), c(0.2, 0.3, 0.6))
  }
  for (f in c("ordered_logistic_lpmf(1 | 0.5, v)", "ordered_probit_lpmf({1, 4} | 0.5, v)",
              "ordered_logistic_glm_lpmf({1, 4} | [[0.5], [1]], [1]', v)")) {
    check(f, c(0, 1, 2), c(0, 2, 1))
  }
})

test_that("a sampler that finds no start says what the program rejects", {
  b <- cl_stan(code = "parameters { real a; }\ntransformed parameters { real<upper=-1> b = exp(a); }
    model { a ~ normal(0, 1); }")
  error <- expect_fault(cl_sample(b, data = list(), chains = 1, warmup = 5, iter = 5, seed = 1,
                                  refresh = 0), "density")
  expect_match(conditionMessage(error), "line 2: 'b' is [0-9.]*, but must be at most -1 at a = ")
})
