# A program for each construct of Stan and each group of functions that no other file has against
# an R function of the same density: declaration, statement, point, density, and what else
# stan_case() takes.

programs <- list(
  # statements
  profile = list("real u;", "profile(\"part\") { real v = 2 * u; target += v; }", list(u = 0.3),
                 function(p) 2 * p$u),
  target = list("real u;", "target += u; target += -target() * u; u ~ std_normal();",
                list(u = 0.3), function(p) p$u - p$u^2 + dnorm(p$u, log = TRUE)),
  sums = list("vector[2] v; matrix[2, 2] m; array[2] real r;",
              "target += v; target += m; target += square(r); target += {v, 2 * v};",
              list(v = c(0.5, -1), m = matrix(1:4 / 7, 2), r = c(0.2, 3)),
              function(p) 4 * sum(p$v) + sum(p$m) + sum(p$r^2)),
  assignments = list("vector[2] v; real u;", "vector[2] w = v; w .*= v; w -= u; w ./= v + 3;
    w *= u; w /= 4; w += v; matrix[2, 2] m = rep_matrix(u, 2, 2); m *= [[1, 2], [3, 4]];
    target += sum(w) + sum(m);", list(v = c(0.5, -1), u = 0.3),
                     function(p) sum((p$v^2 - p$u) / (p$v + 3) * p$u / 4 + p$v) + 20 * p$u),
  products = list("matrix[2, 2] A; vector[2] v; row_vector[2] r;", "target += sum(A \\ v) +
    sum(r / A) + (r * A)[1] + (A * v)[1] + (v * r)[1, 2] + 2 * (r * v) + (A * A')[1, 2];",
                  list(A = matrix(c(2, 0.5, -0.3, 1.5), 2), v = c(0.3, -1), r = c(2, 0.7)),
                  function(p) with(p, {
                    sum(solve(A, v), solve(t(A), r), sum(r * A[, 1]), sum(A[1, ] * v), v[1] * r[2],
                        2 * sum(r * v), sum(A[1, ] * A[2, ]))
                  })),
  powers = list("vector[2] v; real u;",
                "target += sum(v .^ 2) + sum(v .^ u) + sum(u .^ v) + u ^ 2 ^ k;",
                list(v = c(0.5, 1.2), u = 0.7),
                function(p) sum(p$v^2 + p$v^p$u + p$u^p$v) + p$u^8, data = "int k;",
                values = list(k = 3)),
  foreach = list("matrix[2, 2] m; row_vector[2] r;",
                 "int i = 0; for (x in m) { i += 1; target += i * square(x); } for (x in r)
    target += exp(x); for (a in {{1, 2}, {3, 4}}) for (x in a) target += x * r[1];",
                 list(m = matrix(c(0.1, 0.2, 0.3, 0.4), 2), r = c(0.5, -0.5)),
                 function(p) sum(1:4 * p$m^2) + sum(exp(p$r)) + 10 * p$r[1]),
  jumps = list("real u;", "for (n in 1:4) { if (n == 2) continue; if (n == 4) break;
    target += n * u; } int k = 0; while (k < 3) { k += 1; if (k == 2) continue;
    target += k * u^2; }", list(u = 0.3), function(p) 4 * p$u + 4 * p$u^2),
  scopes = list("real u;", "real v = u; { real w = 2 * v; { real x = w + v; target += x; }
    v = w; } for (i in 1:2) { real x = i * v; if (!(i == 1)) target += x; }", list(u = 0.3),
                function(p) 3 * p$u + 4 * p$u),
  rejections = list("real<lower=0> u;", "if (u > 5) reject(\"u is \", u); if (k > 6)
    fatal_error(\"k\"); target += -u;", list(u = 0.3), function(p) -p$u,
                    data = "int k;", values = list(k = 3)),
  mass_without_constants = list("real<lower=0> l;", "target += poisson_lupmf(3 | l);",
                                list(l = 1.3), function(p) dpois(3, p$l, log = TRUE)),
  old_syntax = list("real<lower=0> s; vector[2] v[3];", "real z[2]; z[1] <- s; z[2] <- v[3, 2];
    # a comment
    increment_log_prob(z[1] * z[2]); v[1] ~ normal(x[1], s);",
                    list(s = 0.8, v = matrix(1:6 / 4, 3)), function(p) {
                      p$s * p$v[3, 2] + sum(dnorm(p$v[1, ], 2, p$s, log = TRUE))
                    }, data = "real x[2];", values = list(x = c(2, 3))),
  void_and_forward = list("real u; vector[3] v;", "target += odd(3, u) + last(v) * v[1:2];
    push_lp(v);", list(u = 0.3, v = c(0.1, 0.5, 2)),
                          function(p) p$u^3 + sum(p$v[2:3] * p$v[1:2]) + sum(p$v^2), functions = "
    real even(int n, real x);
    real odd(int n, real x) { if (n == 1) return x; return x * even(n - 1, x); }
    real even(int n, real x) { return x * odd(n - 1, x); }
    row_vector last(vector v) { int n = size(v); return v[n - 1:n]'; }
    void push_lp(vector v) { if (size(v) > 3) return; for (x in v) target += x^2; }"),
  # constrained parameters on their own scale
  offset = list("real<offset=1, multiplier=2> x; vector<offset=x>[2] y;",
                "x ~ normal(0, 1); y ~ normal(x, 2);", list(x = 0.4, y = c(1, 2)), function(p) {
                  dnorm(p$x, log = TRUE) + sum(dnorm(p$y, p$x, 2, log = TRUE))
                }),
  positive_ordered = list("positive_ordered[3] x; ordered[2] y;",
                          "x ~ gamma(2, 1); y ~ normal(x[:2], 1);",
                          list(x = c(0.5, 1, 3), y = c(-1, 2)), function(p) {
                            sum(dgamma(p$x, 2, 1, log = TRUE), dnorm(p$y, p$x[1:2], log = TRUE))
                          }),
  simplex = list("simplex[3] x; array[2] simplex[2] y;", "x ~ dirichlet([2, 1, 3]');
    target += dot_product(y[1], y[2]);",
                 list(x = c(0.2, 0.3, 0.5), y = rbind(c(0.1, 0.9), c(0.4, 0.6))), function(p) {
                   lgamma(6) - lgamma(3) + sum(c(1, 0, 2) * log(p$x)) + sum(p$y[1, ] * p$y[2, ])
                 }),
  unit_vector = list("unit_vector[2] x;", "target += 2 * x[1] - x[2]^2;", list(x = c(0.6, 0.8)),
                     function(p) 2 * p$x[1] - p$x[2]^2),
  sum_to_zero = list("sum_to_zero_vector[3] x; sum_to_zero_matrix[2, 2] m;",
                     "x ~ normal(0, 2); target += m[1, 2] * x[1];",
                     list(x = c(1, 2, -3), m = matrix(c(1, -1, -1, 1), 2)),
                     function(p) sum(dnorm(p$x, 0, 2, log = TRUE)) + p$m[1, 2] * p$x[1]),
  stochastic = list("column_stochastic_matrix[2, 2] a; row_stochastic_matrix[2, 2] b;",
                    "target += sum(log(a * b));", list(a = matrix(c(0.1, 0.9, 0.3, 0.7), 2),
                                                       b = rbind(c(0.2, 0.8), c(0.5, 0.5))),
                    function(p) sum(log(p$a %*% p$b))),
  # functions
  orders = list("vector<lower=0>[3] v;", "target += sum(falling_factorial(v, 2)) +
    sum(rising_factorial(v, {1, 2, 3})) + sum(lmgamma(3, v + 2)) +
    sum(bessel_first_kind(1, x) .* v) + sum(beta(v, 2));",
                list(v = c(0.3, 1, 2.2)), function(p) {
                  v <- p$v
                  sum(beta(v, 2), v * (v - 1), v[1],
                      v[2] * (v[2] + 1), v[3] * (v[3] + 1) * (v[3] + 2),
                      1.5 * log(pi) * 3, lgamma(v + 2), lgamma(v + 1.5), lgamma(v + 1),
                      besselJ(c(1, 2, 0.5), 1) * v)
                }, data = "vector[3] x;", values = list(x = c(1, 2, 0.5))),
  triangles = list("matrix[2, 2] m; vector[2] v;", "target += sum(mdivide_left_tri_low(m, v)) +
    sum(mdivide_right_tri_low(v', m)) + sum(symmetrize_from_lower_tri(m) * v) +
    sum(mdivide_left_tri_low(m, S)) + sum(mdivide_right_tri_low(S, m));",
                   list(m = matrix(c(2, 0.5, 0, 1.5), 2), v = c(0.3, -1)),
                   structure(function(p) {
                     l <- p$m * lower.tri(p$m, TRUE)
                     s <- l + t(l) - diag(diag(l))
                     S <- matrix(c(2, 0.5, 0.5, 1), 2)
                     sum(solve(l, p$v), solve(t(l), p$v), s %*% p$v, solve(l, S), S %*% solve(l))
                   }, moves = "lower"), data = "matrix[2, 2] S;",
                   values = list(S = matrix(c(2, 0.5, 0.5, 1), 2))),
  solves = list("matrix[2, 2] s; vector[2] v;", "matrix[2, 2] a = s * s';
    target += sum(mdivide_right_spd(v', a)) + sum(mdivide_left_spd(a, s)) +
      sum(mdivide_right_spd(s, a)) + sum(mdivide_left(s, s * a)) + sum(mdivide_right(a, s));",
                list(s = matrix(c(2, 0.5, 0.3, 1.5), 2), v = c(0.3, -1)), function(p) {
                  a <- tcrossprod(p$s)
                  sum(solve(a, p$v), solve(a, p$s), p$s %*% solve(a), a, a %*% solve(p$s))
                }),
  gaussian_processes = list("real<lower=0> a; real<lower=0> r; vector<lower=0>[2] w;",
                            "matrix[3, 3] K = add_diag(gp_matern32_cov(x, a, r), 0.1);
    target += multi_gp_lpdf(y | K, w) + multi_gp_cholesky_lpdf(y | cholesky_decompose(K), w);",
                            list(a = 1.3, r = 0.7, w = c(0.5, 2)), function(p) {
                              d <- sqrt(3) * as.matrix(dist(c(0, 0.4, 1.1))) / p$r
                              K <- p$a^2 * (1 + d) * exp(-d) + diag(0.1, 3)
                              y <- matrix(c(0.3, -1, 0.2, 0.5, 1, 2), 2)
                              2 * sum(1.5 * log(p$w / (2 * pi)) - 0.5 * log(det(K)) -
                                        0.5 * p$w * diag(y %*% solve(K, t(y))))
                            }, data = "array[3] real x; matrix[2, 3] y;",
                            values = list(x = c(0, 0.4, 1.1),
                                          y = matrix(c(0.3, -1, 0.2, 0.5, 1, 2), 2))),
  hidden_markov = list("matrix[2, 3] o; simplex[2] r; row_stochastic_matrix[2, 2] g;",
                       "target += hmm_marginal(o, g, r);",
                       list(o = matrix(c(-1, 0.2, -0.5, -2, 0.3, -1), 2), r = c(0.4, 0.6),
                            g = rbind(c(0.7, 0.3), c(0.2, 0.8))), function(p) {
                              s <- as.matrix(expand.grid(1:2, 1:2, 1:2))
                              log(sum(p$r[s[, 1]] * p$g[s[, 1:2]] * p$g[s[, 2:3]] *
                                        exp(p$o[cbind(s[, 1], 1)] + p$o[cbind(s[, 2], 2)] +
                                              p$o[cbind(s[, 3], 3)])))
                            }),
  sparse = list("vector[4] w; vector[3] b;", "target += sum(square(csr_to_dense_matrix(2, 3, w,
    {1, 3, 2, 3}, {1, 3, 5}) * b)) + dot_self(csr_matrix_times_vector(2, 3, w, {1, 3, 2, 3},
    {1, 3, 5}, b));", list(w = c(1, 2, -1, 0.5), b = c(0.3, -1, 2)), function(p) {
      w <- p$w
      2 * sum((rbind(c(w[1], 0, w[2]), c(0, w[3:4])) %*% p$b)^2)
    }),
  arrays = list("vector[6] v;", "target += to_row_vector(append_array(x, {4.0, 5.0, 7.0})) * v +
    dot_product(v[:3], to_vector(linspaced_int_array(3, 1, 5))) + segment(v, 3, 2)[1];",
                list(v = c(0.3, -1, 2, 0.5, 1, 0.7)), function(p) {
                  sum(p$v * c(1, 2, 9, 4, 5, 7)) + sum(p$v[1:3] * c(1, 3, 5)) + p$v[3]
                }, data = "array[3] real x;", values = list(x = c(1, 2, 9))),
  complex_matrices = list("real a;", "target += a * (w' * k);", list(a = 0.4), function(p) {
    M <- matrix(c(2, 1i, -1, 3 + 1i), 2)
    H <- M + Conj(t(M))
    vectors <- Mod(eigen(H, symmetric = TRUE)$vectors[, 2:1])
    p$a * sum(1:23 * c(eigen(H, symmetric = TRUE)$values[2:1], vectors, svd(M)$d, Mod(svd(M)$u),
                       Mod(svd(M)$v), colSums(Mod(M)^2), rowSums(Mod(M)^2), Re(rowSums(M * H)), 2))
  }, data = "vector[23] w; complex_matrix[2, 2] M; }
    transformed data { complex_matrix[2, 2] H = M + conj(M'); vector[23] k = append_row(append_row(
    append_row(append_row(eigenvalues_sym(H), to_vector(abs(eigenvectors_sym(H)))),
    append_row(singular_values(M), append_row(to_vector(abs(svd_U(M))), to_vector(abs(svd_V(M)))))),
    append_row(to_vector(get_real(columns_dot_self(M))), get_real(rows_dot_self(M)))),
    append_row(get_real(rows_dot_product(M, H)), -get_real(minus(M[1, 1]))));",
  values = list(w = 1:23, M = matrix(c(2, 1i, -1, 3 + 1i), 2))),
  of_data = list("real a;", "target += a * sum(k);", list(a = 0.4), function(p) {
    e <- eigen(matrix(c(2, 1, -1, 3), 2))$values
    p$a * sum(Re(e), Im(e)^2, Re(e), 1 + 20 + 300, c(1, 3, 2), c(1, 3, 4), exp(0.5),
              -log(0.3) / 0.7, 4, 3 + 0 + 1, 60, 200, 30)
  }, data = "matrix[2, 2] A; } transformed data { vector[20] k = rep_vector(0, 20);
    complex_vector[2] e = eigenvalues(A);
    tuple(complex_matrix[2, 2], complex_vector[2]) f = eigendecompose(A);
    complex_matrix[2, 2] V = eigenvectors(A); complex_matrix[2, 2] T = complex_schur_decompose_t(A);
    matrix[2, 3] x = [[1, 0, 2], [0, 3, 0]];
    tuple(vector[3], array[3] int, array[3] int) s = csr_extract(x);
    k[1] = sum(get_real(e)); k[2] = sum(square(get_imag(e))); k[3] = get_real(sum(diagonal(T)));
    k[4] = dot_product(s.1, [1, 10, 100]); k[5] = sum(s.2) + sum(s.3);
    k[6] = sum(abs(A * V - V * diag_matrix(f.2)));
    k[7] = hypergeometric_pFq([2]', [2]', 0.5);
    k[8] = hypergeometric_2F1(1, 1, 2, 0.7); k[9] = hypergeometric_3F2([1, 2, 3]', [2, 3]', 0.75);
    k[10] = size(csr_extract_u(x)) + int_step(negative_infinity()) + is_inf(positive_infinity());
    k[11] = 10 * sum(csr_extract_w(x)); k[12] = 100 * csr_extract_v(x)[3];
    k[13] = x[2] * [1, 10, 100]';",
  values = list(A = matrix(c(2, 1, -1, 3), 2))),
  # functions of functions
  slices = list("vector[4] v; real a;", "target += reduce_sum(part, x, 2, v, a) +
    reduce_sum_static(part, x, 1, v, a);", list(v = c(0.3, 1, -1, 2), a = 0.7),
                function(p) 2 * sum(dnorm(c(1, 2, 3, 4), p$v * p$a, 1.5, log = TRUE)),
                data = "array[4] real x;", values = list(x = 1:4), functions = "
    real part(array[] real x, int from, int to, vector v, real a) {
      return normal_lpdf(x | v[from:to] * a, 1.5); }"),
  shards = list("vector[2] phi; array[2] vector[2] theta;",
                "target += sum(map_rect(shard, phi, theta, x, k));",
                list(phi = c(0.5, 2), theta = rbind(c(1, 0.2), c(0.4, 3))), function(p) {
                  sum(p$phi[1] * p$theta[, 1] * c(1, 3), exp(p$phi[2] * p$theta[, 2] / c(7, 8)))
                }, data = "array[2, 1] real x; array[2, 1] int k;",
                values = list(x = matrix(c(1, 3), 2), k = matrix(c(7, 8), 2)), functions = "
    vector shard(vector phi, vector theta, data array[] real x, data array[] int k) {
      return [phi[1] * theta[1] * x[1], exp(phi[2] * theta[2] / k[1])]'; }"),
  integral = list("real<lower=0> a; real<lower=0> b; real c;",
                  "target += log(integrate_1d(f, 0, positive_infinity(), {a, b}, x, k)) +
    integrate_1d(g, a, c, {b}, x, k, 1e-10);", list(a = 1.5, b = 2, c = 3), function(p) {
      lgamma(p$a) - p$a * log(p$b) + (exp(p$b * p$c) - exp(p$b * p$a)) / p$b * 0.1
    }, data = "array[1] real x; array[1] int k;",
    values = list(x = array(0.1), k = array(1)), functions = "
    real f(real u, real uc, array[] real t, data array[] real x, data array[] int k) {
      return u^(t[1] - k[1]) * exp(-t[2] * u); }
    real g(real u, real uc, array[] real t, data array[] real x, data array[] int k) {
      return x[1] * exp(t[1] * u); }"),
  old_ode = list("real k;", "array[2, 1] real y =
    integrate_ode(f, {k}, 0, {0.5, 1.0}, {k}, {2.0}, {3}); target += sum(y[:, 1]);", list(k = 0.8),
    function(p) sum(6 + (p$k - 6) * exp(-p$k * c(0.5, 1))), functions = "
    array[] real f(real t, array[] real y, array[] real p, data array[] real x,
                   data array[] int i) { return {p[1] * (x[1] * i[1] - y[1])}; }"))

test_that("constructs and groups of functions, a program each", {
  loose <- list(old_ode = 1e-5)
  for (name in names(programs)) {
    slack <- loose[[name]]
    check_stan_case(do.call(stan_case, programs[[name]]), name, if (is.null(slack)) 1e-7 else slack,
                    if (is.null(slack)) 1e-10 else slack)
  }
})

test_that("a Jacobian of the program counts on the unconstrained scale only", {
  for (model in c("jacobian += u; real s = exp(u);", "real s = positive_jacobian(u);")) {
    b <- cl_stan(code = sprintf("functions { real positive_jacobian(real x) { jacobian += x;
      return exp(x); } } parameters { real u; } transformed parameters { %s }
      model { s ~ exponential(1.5); }", model))()
    plain <- dexp(exp(0.3), 1.5, log = TRUE)
    expect_equal(as.vector(b(u = 0.3)), plain)
    found <- b$unconstrained(0.3)
    expect_equal(as.vector(found), plain + 0.3)
    expect_equal(attr(found, "gradient"), 1 - 1.5 * exp(0.3))
    expect_equal(as.vector(b$unconstrained(0.3, jacobian = FALSE)), plain)
  }
})

test_that("included files and generated quantities, against R", {
  folder <- tempfile("include")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  writeLines("real twice(real x) { return 2 * x; }", file.path(folder, "twice.stan"))
  b <- cl_stan(code = "functions {\n#include twice.stan\n}
    parameters { real<lower=0> a; vector[2] v; }
    transformed parameters { vector[2] w = twice(a) * v; }
    model { target += -sum(w); }
    generated quantities { real g = twice(a); array[2] int k; for (i in 1:2) k[i] = v[i] > 0;
      matrix[2, 2] m = v * w'; tuple(real, int) t = (m[1, 2], size(v)); }", include = folder)()
  found <- b(a = 0.3, v = c(1, -2))
  expect_equal(as.vector(found), 0.6)
  expect_equal(attr(found, "gradient"), list(a = 2, v = c(-0.6, -0.6)))
  out <- stan_output_function(environment(b)$state)(c(log(0.3), 1, -2))
  expect_equal(out$g, 0.6)
  expect_equal(c(out$k), c(1, 0))
  expect_equal(out$m, outer(c(1, -2), 0.6 * c(1, -2)))
})
