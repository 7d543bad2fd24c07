# Data of Stan programs, and errors.

fault_of <- function(code) tryCatch(code, statcl_error = identity)

test_that("data are read from lists, environments and files", {
  m <- cl_stan(code = "data { int N; array[N] int k; vector[N] y; matrix[2, N] x;
    array[2, N] real a; array[2] vector[N] v; array[0] int e; real r; }
    parameters { real b; }
    model { target += b * (sum(k) + sum(y) + sum(x) + sum(a[1]) + sum(v[2]) + r); }")
  d <- list(N = 3, k = 1:3, y = c(0.5, 1, 2), x = matrix(1:6, 2), a = matrix(7:12, 2),
            v = matrix(1:6 / 2, 2), r = -1)
  want <- with(d, sum(k) + sum(y) + sum(x) + sum(a[1, ]) + sum(v[2, ]) + r)
  expect_equal(as.vector(m(d)(b = 1)), want)
  expect_equal(as.vector(m(list2env(d))(b = 1)), want)
  file <- tempfile(fileext = ".R")
  dump(names(d), file, envir = list2env(d))
  expect_equal(as.vector(m(file)(b = 1)), want)
  json <- tempfile(fileext = ".json")
  writeLines('{"N": 3, "k": [1, 2, 3], "y": [0.5, 1, 2.0e0], "x": [[1,3,5],[2,4,6]], "r": -1,
    "a": [[7, 9, 11], [8, 10, 12]], "v": [[0.5, 1.5, 2.5], [1, 2, 3]], "e": []}', json)
  expect_equal(as.vector(m(json)(b = 1)), want)
  b <- update(m(d), r = 5)
  expect_equal(as.vector(b(b = 1)), want + 6)
})

test_that("files hold numbers, and nothing else is read or run", {
  read <- function(text) {
    file <- tempfile()
    on.exit(unlink(file))
    writeLines(text, file)
    stan_data_file(file)
  }
  expect_identical(read("a <- structure(c(-1, NaN), .Dim = 2L)\nb = -(1:2); c <- Inf"),
                   list(a = structure(c(-1, NaN), dim = 2L), b = -(1:2), c = Inf))
  expect_identical(read('{"a": ["Inf", "-Infinity", "NaN"], "b": [true, false], "c": -Infinity}'),
                   list(a = c(Inf, -Inf, NaN), b = c(TRUE, FALSE), c = -Inf))
  expect_identical(read('{"a": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], "b": [[], []], "c": [[7]]}'),
                   list(a = aperm(array(1:8 + 0, c(2, 2, 2))), b = matrix(numeric(), 2, 0),
                        c = matrix(7)))
  for (text in c("a <- 1; message(\"x\", 3)", "a <- system(\"true\")", "assign(\"a\", 3)", "a == 3",
                 "a <- b", "a <- ", '{"a": f(1)}', '{"a": 1 + 1}', '{"a": [1, 2}', '{"a"; 1}')) {
    fault <- expect_fault(read(text), "argument", argument = "data")
    expect_match(conditionMessage(fault), "cannot be read")
  }
  expect_fault(stan_data_file("nowhere.json"), "argument", argument = "data")
})

test_that("faults of data name the variable", {
  m <- cl_stan(code = "data { int<lower=1> N; vector<lower=0>[N] y; simplex[2] s; }
    parameters { real b; } model { b ~ normal(0, 1); }")
  good <- list(N = 2, y = c(1, 2), s = c(0.5, 0.5))
  fault <- function(...) {
    e <- fault_of(m(utils::modifyList(good, list(...))))
    expect_s3_class(e, "statcl_error_stan")
    c(e$variable, conditionMessage(e))
  }
  expect_match(fault(y = NULL)[2], "data 'y' is missing")
  expect_match(fault(y = 1:3)[2], "data 'y' has the size 3, but must have 2")
  expect_match(fault(y = c(1, -1))[2], "is -1 at [2], but must be at least 0", fixed = TRUE)
  expect_match(fault(N = 1.5)[2], "whole numbers")
  expect_match(fault(N = 2^31)[2], "at most 2147483647, but has 2147483648")
  expect_match(fault(N = NaN)[2], "whole numbers")
  expect_match(fault(N = 0)[2], "at least 1")
  expect_match(fault(s = c(0.5, 0.6))[2], "not a simplex")
  expect_match(fault(y = c("a", "b"))[2], "must be numeric")
  expect_equal(fault(y = c(1, NA))[1], "y")
  expect_match(fault(y = c(NA, NaN))[2], "missing values")
})

test_that("errors name the line", {
  line_of <- function(code) {
    e <- fault_of(code)
    expect_s3_class(e, "statcl_error_stan")
    e$line
  }
  program <- "parameters {\n real a;\n}\nmodel {\n a ~ %s;\n}"
  expect_equal(line_of(cl_stan(code = sprintf(program, "norml(0, 1)"))), 5)
  expect_equal(line_of(cl_stan(code = sprintf(program, "wiener(1, 1)"))), 5)
  out <- cl_stan(code = "data {\n int N;\n}\nparameters {\n vector[3] a;\n}\nmodel {\n target += 1;
  target += a[N];\n}")
  e <- fault_of(out(list(N = 4))(a = 1:3))
  expect_equal(e$line, 9)
  expect_match(conditionMessage(e), "'a' is out of bounds")
  wrong <- cl_stan(code = "data { int N; }\ntransformed data {\n vector[N] z;\n z[N + 1] = 2;\n}
  parameters { real a; }")
  expect_equal(line_of(wrong(list(N = 2))), 4)
  e <- fault_of(out(list(N = 1))(b = 1))
  expect_match(conditionMessage(e), "the parameter 'a' is missing")
})

test_that("bounds, and names that stand twice", {
  two <- cl_stan(code = "data { real<lower=0> x; vector[2] lo; vector<lower=lo>[2] v; }")
  wrong <- function(pattern, ...) {
    e <- fault_of(two(utils::modifyList(list(x = 1, lo = 1:2, v = 2:3), list(...))))
    expect_match(conditionMessage(e), pattern)
  }
  wrong("'x' is NaN, but must be at least 0", x = NaN)
  wrong("'x' is -1e-13, but must be at least 0", x = -1e-13)
  wrong("'v' is 1 at .2., but must be at least 2", v = c(5, 1))
  e <- fault_of(two(list(x = 1, lo = 1:2, v = 2:3, x = 2)))
  expect_match(conditionMessage(e), "'data' has 'x' twice")
  three <- cl_stan(code = "data { vector[2] lo; vector<lower=lo>[4] v; }")
  expect_match(conditionMessage(fault_of(three(list(lo = 1:2, v = 5:8)))),
               "'v' has 4 elements, but a bound of 2")
  expect_s3_class(two(list(x = 1, lo = c(-Inf, -Inf), v = c(NaN, 1))), "cl_stan_density")
})

test_that("categories, sizes and rejected data are checked", {
  fault <- function(code, data = list(), point = NULL) {
    b <- function() cl_stan(code = code)(data)
    e <- fault_of(if (is.null(point)) b() else do.call(b(), point))
    expect_s3_class(e, "statcl_error_stan")
    conditionMessage(e)
  }
  code <- "data { array[3] int y; } parameters { vector[2] p; ordered[2] c; } model { %s }"
  point <- list(p = c(0.4, 0.6), c = c(-1, 1))
  for (model in c("y ~ categorical(p);", "y ~ categorical_logit(p);",
                  "for (i in 1:3) y[i] ~ categorical_logit(p * i);")) {
    for (y in c(0, 3)) {
      expect_match(fault(sprintf(code, model), list(y = c(1, y, 2)), point),
                   sprintf("a category is %d, but must be from 1 to 2", y))
    }
  }
  for (model in c("y ~ ordered_logistic(p[1], c);", "y ~ ordered_probit(p[1], c);")) {
    expect_match(fault(sprintf(code, model), list(y = c(1, 0, 3)), point), "from 1 to 3")
  }
  expect_match(fault(sprintf(code, "y ~ multinomial(p);"), list(y = 1:3), point), "sizes differ")
  expect_match(fault("data { int N; } parameters { vector[N] z; }", list(N = -1)),
               "'z' cannot be declared: a size is -1")
  for (size in c("rep_vector(a, N)", "rep_matrix(a, 2, N)", "rep_matrix([a]', N)",
                 "rep_array(a, N, 2)[1]", "linspaced_vector(N, 0, a)", "ones_vector(N) * a")) {
    code <- "data { int N; } parameters { real a; } model { target += sum(%s); }"
    expect_match(fault(sprintf(code, size), list(N = -1), list(a = 1)), "a size is -1")
  }
  for (op in c("/", "%", "%/%")) {
    expect_match(fault(sprintf("data { int k; } transformed data { int q = 3 %s k; }", op),
                       list(k = 0)), "an integer is divided by zero")
  }
  expect_match(fault("transformed data { reject(\"no \", 3); }"), "reject: no 3")
  expect_match(fault("model { target += 1; }", list(), list()), "no parameters")
})

test_that("names and bounds of what a program draws", {
  state <- environment(cl_stan(code = "parameters { matrix[2, 2] m; array[2] vector[2] v;
    positive_ordered[2] o; simplex[3] s; }")())$state
  expect_identical(statcl:::stan_free_names(state$parameters),
                   c("m[1,1]", "m[2,1]", "m[1,2]", "m[2,2]", "v[1,1]", "v[1,2]", "v[2,1]", "v[2,2]",
                     "o[1]", "o[2]", "s.1", "s.2"))
  drawn <- statcl:::stan_drawn(state, lapply(state$parameters, `[[`, "d"), FALSE)
  expect_identical(unname(drawn$bounds),
                   cbind(rep(c(-Inf, 0), c(8, 5)), rep(c(Inf, 1), c(10, 3))))
})
