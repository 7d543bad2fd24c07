# Sizes in Stan programs: values that do not fit are errors, none is recycled or cut.

values <- list(a = c(0.1, 0.2), b = c(1, 2, 3, 4), M = matrix(1:6 / 3, 2), r = 0.5, s = 1.2)
frame <- "data { array[4] int y; array[2] int z; matrix[4, 2] X; }
  parameters { vector[2] a; vector[4] b; matrix[2, 3] M; real r; real s; } model { %s }"
data <- list(y = c(1, 2, 3, 1), z = c(1, 2), X = matrix(1:8 / 10, 4))
at <- function(model) suppressMessages(do.call(cl_stan(code = sprintf(frame, model))(data), values))

test_that("arguments of densities and functions", {
  wrong <- c(
    "y ~ ordered_logistic(a, [-1, 1]')", "z ~ ordered_logistic(b, [-1, 1]')",
    "y ~ ordered_probit(a, [-1, 1]')", "z ~ ordered_probit(b, [-1, 1]')",
    "y ~ ordered_probit(b, {[-1, 1]', [-1, 1]'})", "y ~ ordered_logistic(b, {[-1, 1]', [-1, 1]'})",
    "z ~ poisson_log_glm(X, r, a)", "y ~ poisson_log_glm(X, a, a)",
    "y ~ neg_binomial_2_log_glm(X, r, a, exp(a))",
    "y ~ categorical_logit_glm(X, rep_vector(0, 4), M)",
    "z ~ categorical_logit_glm(X, rep_vector(0, 3), M)",
    "b ~ multi_student_t(4, a, identity_matrix(4))",
    "b ~ multi_student_t(4, b, identity_matrix(2))", "b ~ multi_normal(b, identity_matrix(2))",
    "{a, a} ~ multi_normal({a, a, a}, identity_matrix(2))",
    "b ~ multi_normal(b, rep_matrix(1.0, 4, 2))",
    "b ~ multi_normal_cholesky(a, identity_matrix(2))",
    "target += multi_gp_lpdf(M | identity_matrix(3), exp(b))", "target += multinomial_lpmf(y | a)",
    "target += log_mix([0.1, 0.2, 0.3, 0.4]', a)", "target += sum(append_row(M, a'))",
    "target += sum(append_row(a', b'))", "target += sum(append_col(M, b))",
    "target += sum(append_col(a, b))", "target += sum(add_diag(identity_matrix(4), a))",
    "target += sum(diag_pre_multiply(a, rep_matrix(r, 4, 2)))",
    "target += sum(diag_post_multiply(rep_matrix(r, 2, 4), a))",
    "target += sum(quad_form_diag(rep_matrix(r, 4, 4), a))",
    "target += sum(gp_exp_quad_cov({a, a}, 1.0, {1.0, 2.0, 3.0}))", "target += trace(M)",
    "target += sum(csr_matrix_times_vector(2, 4, a, {1, 2, 3}, {1, 2, 3}, b))",
    "target += sum(csr_matrix_times_vector(2, 4, a, {1, 2}, {1, 3}, b))",
    "target += sum(csr_matrix_times_vector(2, 4, a, {1, 2}, {1, 2, 3}, a))",
    "target += sum(csr_to_dense_matrix(2, 4, b, {1, 2}, {1, 2, 3}))",
    sprintf("target += sum(%s)", c("fmax(a, b)", "pow(b, a)", "fma(a, b, r)", "beta(exp(a), b)",
                                   "atan2(a, b)", "log_sum_exp(a, b)", "lchoose(b, a)",
                                   "falling_factorial(a, y)")))
  on_host(for (model in wrong) {
    e <- tryCatch(at(paste0(model, ";")), error = identity)
    expect_s3_class(e, "statcl_error_stan")
    expect_match(conditionMessage(e), "sizes differ: [0-9]+ and [0-9]+", label = model)
  })
  on_host({
    csr <- "target += sum(csr_matrix_times_vector(2, 4, a, {1, 9}, {1, 2, 3}, b));"
    expect_error(at(csr), "index 9 of 'v' is out of bounds", class = "statcl_error_stan")
    for (part in c("head({a, a}, 3)", "tail({a, a}, 3)", "segment({a, a}, 0, 2)")) {
      expect_error(at(sprintf("target += sum(%s[1]);", part)), "out of bounds",
                   class = "statcl_error_stan")
    }
  })
})

test_that("assignments", {
  zero <- "matrix[3, 3] A = rep_matrix(0, 3, 3);"
  on_host({
    for (model in paste0(c("A[1:2, 1:3] = rep_matrix(r, 3, 2);", "A[1:2] = rep_matrix(r, 3, 2);",
                           "A = M;", "vector[3] q; q = b;", "array[2] vector[2] q; q = {b, b};",
                           "array[2] vector[2] q; q = {a, a, a};"))) {
      expect_error(at(paste(zero, model)), "is assigned to", class = "statcl_error_stan",
                   label = model)
      plain <- sprintf("transformed data { matrix[3, 3] A = rep_matrix(0, 3, 3); %s }",
                       gsub("[ab]([,};])", "[1, 2, 3, 4]'\\1",
                            gsub("= M", "= rep_matrix(1, 2, 3)", gsub("\\br\\b", "1", model))))
      expect_error(cl_stan(code = plain)(list()), "is assigned to", class = "statcl_error_stan",
                   label = plain)
    }
    expect_equal(c(at("matrix[2, 3] A; A = M; A[1] = A[2]; vector[0] e; e = b[2:1];
                       target += sum(A) + sum(e);")), sum(2 * values$M[2, ]))
    for (v in c("vector[3] v = X[n]';", "vector[3] v; v = X[n]';")) {
      expect_error(at(sprintf("for (n in 1:4) { %s target += sum(v) * r; }", v)),
                   "size 2 is assigned to a variable of size 3", class = "statcl_error_stan")
    }
    # of sizes that differ by a condition, only one is taken
    expect_equal(c(at("target += sum(r > 0 ? a : b);")), 0.3)
    expect_equal(c(at("target += sum(r < 0 ? a : b);")), 10)
  })
})

test_that("values at sizes and places that are easily wrong", {
  on_host({
    v <- function(e) c(at(sprintf("target += %s;", e)))
    expect_equal(v("sum(symmetrize_from_lower_tri([[r, 5], [s, 2]]) * [1, 10]')"),
                 0.5 + 12 + 1.2 + 20)
    expect_equal(v("sum(add_diag(rep_matrix(r, 3, 2), a)) + sum(add_diag(M, s))"), 3.3 + 7 + 2.4)
    expect_equal(v("sum(lmgamma(2, b))"), sum(log(pi) / 2 + lgamma(1:4) + lgamma(1:4 - 0.5)))
    expect_equal(v(paste("falling_factorial(-s, 3) + rising_factorial(-s, 2) * 10 +",
                         "falling_factorial(s, 0)")),
                 -1.2 * -2.2 * -3.2 + 10 * -1.2 * -0.2 + 1)
    expect_equal(v("sum(falling_factorial(b, y))"), 1 + 2 + 6 + 4)
    expect_equal(v("elt_divide(7, 2) + rising_factorial(5, 2) % 7 + elt_multiply(2, 3) / 4"), 6)
    five <- "{{{{{1, 2}, {3, 4}}}}}"
    expect_equal(v(sprintf("to_array_1d(%s)[3] + to_int(%s)[1, 1, 1, 2, 2]", five, five)), 7)
    cuts <- rbind(c(-1, 1), c(0, 1), c(-2, 0.5), c(0, 2))
    p <- pnorm(cbind(cuts, Inf) - 1:4) - pnorm(cbind(-Inf, cuts) - 1:4)
    expect_equal(v("ordered_probit_lpmf(y | b, {[-1, 1]', [0, 1]', [-2, 0.5]', [0, 2]'})"),
                 sum(log(p[cbind(1:4, data$y)])))
    p <- plogis(cbind(cuts, Inf) - 0.5) - plogis(cbind(-Inf, cuts) - 0.5)
    expect_equal(v("ordered_logistic_lpmf(y | r, {[-1, 1]', [0, 1]', [-2, 0.5]', [0, 2]'})"),
                 sum(log(p[cbind(1:4, data$y)])))
    one <- function(y, m) v(sprintf("multi_student_t_lpdf(%s | 4, %s, identity_matrix(2))", y, m))
    expect_equal(one("a", "{[1, 2]', [0, 3]'}"), one("a", "[1, 2]'") + one("a", "[0, 3]'"))
    expect_equal(v("multi_normal_lpdf(rep_array(a, 0) | a, identity_matrix(2))"), 0)
    expect_equal(v("multinomial_lpmf({2, 0} | [1, 0]') + r"), 0.5)
    for (none in c("pareto_type_2_lpdf(0.1 | s, 2, 1)", "exp_mod_normal_lpdf(r | 0, -s, 1)",
                   "von_mises_lpdf(r | 0, -s)", "gumbel_lcdf(r | 0, -s)", "rayleigh_lccdf(-s | 1)",
                   "double_exponential_lccdf(r | 0, -s)", "frechet_lcdf(s | 1, -s)",
                   "pareto_lcdf(1.0 | s, 1)")) {
      expect_false(is.finite(v(none)), label = none)
    }
    expect_equal(v("pareto_lccdf(1.0 | s, 1)"), 0)
    expect_error(at("1 ~ categorical([0.5, 0.6]');"), "not a simplex", class = "statcl_error_stan")
    expect_error(at("target += sum(cholesky_decompose([[2, 1], [0, 2]]));"), "not symmetric",
                 class = "statcl_error_stan")
  })
})

test_that("random numbers have the size of their arguments", {
  code <- "data { int N; } transformed data {
    array[N] real x = normal_rng(rep_vector(0, N), 1);
    array[N] int k = neg_binomial_2_rng(rep_vector(2, N), rep_vector(3, N));
    array[%s] real z = gamma_rng(rep_vector(2, N), {1.0, 2.0}); } parameters { real a; }"
  for (n in c(0, 1, 2)) {
    home <- environment(cl_stan(code = sprintf(code, "2 * (N > 0)"))(list(N = n)))$state$home
    expect_equal(lengths(mget(c("x", "k", "z"), envir = home)), c(x = n, k = n, z = 2 * (n > 0)))
  }
  expect_error(cl_stan(code = sprintf(code, "N"))(list(N = 3)), "sizes differ: 3 and 2",
               class = "statcl_error_stan")
})

test_that("sizes and bounds call functions of the program", {
  b <- cl_stan(code = "functions { int twice(int n) { return 2 * n; }
      real low(int n) { return -n; } }
    data { int n; vector<lower=low(n)>[twice(n)] y; }
    transformed data {
      array[twice(n) + 1] real<upper=low(-n)> z = rep_array(1, twice(n) + 1);
    }
    parameters { vector<lower=low(n)>[twice(n)] mu; }
    model { y ~ normal(mu, 1); }
    generated quantities { vector<lower=low(n)>[twice(n)] v = mu + size(z); }")(
      list(n = 2, y = c(1, -2, 0, 3)))
  mu <- c(0, 1, -1.5, 2)
  expect_equal(as.vector(b(mu = mu)), sum(dnorm(c(1, -2, 0, 3), mu, log = TRUE)))
  fit <- cl_sample(b, chains = 1, warmup = 30, iter = 5, seed = 1, refresh = 0)
  expect_equal(fit$draws[, 1, "v[4]"], fit$draws[, 1, "mu[4]"] + 5)
  expect_identical(unname(fit$bounds[, 1]), rep(-2, 8))
})
