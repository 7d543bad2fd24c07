# Names and dimnames in traced functions: loops over names(), and indices by name.

squares <- function(q, pick = setdiff(names(q), "")) {
  total <- 0
  for (k in pick) total <- total + match(k, pick) * q[[k]]^2
  total
}

test_that("names of vectors follow R's rules", {
  p <- c(a = 0.3, b = -0.2, c = 0.7)
  m <- matrix(1:6 / 2, 2, dimnames = list(c("r1", "r2"), c("A", "B", "C")))
  cases <- list(
    function(p) squares(p * 2), function(p) squares(1 - exp(p)), function(p) squares(-p),
    function(p) squares(c(u = 1, v = 2) * p[[1]]), function(p) squares(p[1] + c(u = 1, v = 2)),
    function(p) squares(ifelse(p > 0, p, 2 * p)), function(p) squares(c(p[1:2], x = p[[3]])),
    function(p) squares(c(u = p, 1)), function(p) squares(unlist(list(x = p[1:2], y = p[[3]]))),
    function(p) squares(plogis(p)) + squares(dnorm(1, p, 2)) + squares(pnorm(p, 1:3)),
    function(p) squares(rev(p)) + squares(head(p * 1, 2)) + squares(rep(p, 2), "b"),
    function(p) squares(cumsum(p)) + squares(cumprod(p)) + squares(pmax(p, 0.1)),
    function(p) squares(vapply(names(p), function(k) p[[k]]^2, 0)),
    function(p) squares(sapply(c(u = 1, v = 2), function(z) z * p[["a"]])),
    function(p) squares(sapply(c(u = 1, v = 2), function(z) z * p[1])),
    function(p) squares(tapply(p[c(1, 2, 3, 1)], c("x", "y", "x", "y"), sum)),
    function(p) squares(rowSums(m * p[[1]])) + squares(colMeans(m * p[[2]])),
    function(p) squares(apply(m * p[[1]], 2, function(v) v[["r1"]] * sum(v))),
    function(p) squares(as.list(p + 1)) + squares((p + 1)["b"]) + length(names(p * 2)),
    function(p) {
      q <- stats::setNames(p, c("x", "y", "z")) + 1
      q["y"] <- q[["z"]] * 3
      squares(q) + if (is.null(names(as.vector(q))) && identical(names(q)[2], "y")) p[["a"]] else 0
    },
    function(p) {
      q <- p
      names(q) <- c("x", "y", "z")
      squares(p) * squares(q) # the names of p are as they were
    })
  on_host(for (f in cases) holds(f, p = p))
})

test_that("dimnames of arrays follow R's rules", {
  p <- c(a = 0.3, b = -0.2, c = 0.7, d = 0.4)
  m <- matrix(1:6 / 2, 2, dimnames = list(c("r1", "r2"), c("A", "B", "C")))
  by_row <- function(q, column = 1) {
    total <- 0
    for (k in rownames(q)) total <- total * 2 + q[k, column]^2
    total
  }
  by_column <- function(q) if (is.null(colnames(q))) stop("no names") else by_row(t(q))
  cases <- list(
    function(p) by_row(m * p[[1]]) + by_column(p[[2]] + m), function(p) by_row(m %*% p[1:3]),
    function(p) by_column(crossprod(m * p[[1]])) + by_row(tcrossprod(m, m * p[[2]]), "r2"),
    function(p) by_column(cbind(u = p, v = p^2)) + by_row(cbind(p, w = 1:4)),
    function(p) by_column(rbind(p, 2 * p)) + sum(rbind(p, 2 * p)["p", ]),
    function(p) by_column(matrix(p, 2, dimnames = list(NULL, c("x", "y")))),
    function(p) sum(array(p, c(2, 2), list(c("x", "y"), NULL))["y", ]^2),
    function(p) {
      q <- matrix(p, 2)
      colnames(q) <- c("x", "y")
      q[1, "x"] <- q[2, "y"] * 5
      if (is.null(rownames(q))) by_column(q) + sum(q[, "x"]^2) else 0
    },
    function(p) by_row(outer(p, c(x = 1, y = 2)), "y") + outer(p, c(x = 1, y = 2))["b", "x"],
    function(p) by_row(sapply(c(u = 1, v = 2), function(z) z * p), "v"),
    function(p) by_row(rowsum(p, c("x", "y", "x", "y"))) + by_row(sweep(m, 1, p[1:2]), "B"),
    function(p) by_row(apply(m * p[[1]], 2, function(v) v / sum(v^2)), "C"))
  on_host({
    for (f in cases) holds(f, p = p)
    holds(function(M) by_row(M) * by_column(M) + M["r1", "B"] + M[cbind("r2", "C")], M = m)
    # recorded again for parameters with other names
    model <- cl_gradient(function(M) sum(M[, "A"]^2))
    expect_equal(as.numeric(model(m)), sum(m[, "A"]^2))
    colnames(m) <- c("B", "C", "A")
    expect_equal(as.numeric(model(m)), sum(m[, "A"]^2))
    by_name <- cl_gradient(function(M) by_row(M))
    points <- array(m, c(2, 3, 1), c(dimnames(m), list(NULL)))
    expect_equal(as.numeric(cl_map_gradient(by_name, points)),
                 by_row(m))
    refused(function(M) M["r1", 1] + M["r3", 1], m, says = "subscript out of bounds")
  })
})

test_that("proportions() and qr.solve() of traced values", {
  on_host({
    holds(function(p) sum(proportions(outer(exp(p), 1:3, `+`), 1)[, 1]^2), p = c(0.2, 0.5))
    holds(function(p) sum(prop.table(p + 3)^2) + sum(qr.solve(matrix(c(3, p, 1), 2), 1:2)),
          p = c(0.2, 0.5))
  })
})

test_that("parameters of cl_tmb() have their names", {
  nll <- function(parms) {
    getAll(parms)
    total <- M["r1", "B"]^2 * sum(M^2)
    for (k in names(b)) total <- total + match(k, c("x", "y")) * (b[[k]] - 1)^2
    total
  }
  M <- matrix(1:4 / 3, 2, dimnames = list(c("r1", "r2"), c("A", "B")))
  on_host(for (map in list(list(), list(b = factor(c(NA, 1))))) {
    o <- cl_tmb(nll, list(b = c(x = 0.2, y = 0.4), M = M), map = map)
    expect_equal(o$fn(o$par), 1 * sum(M^2) + 0.8^2 + 2 * 0.6^2)
    expect_equal(o$gr(o$par)[length(o$par) - 4L], 4 * (0.4 - 1))
  })
})

test_that("states and inputs of recursions have names, as in a loop", {
  step <- function(s, x, a) {
    total <- 0
    for (name in names(s)) total <- total + s[[name]] * if (name == "u") a else 2
    c(v = s[["u"]] + total / 10, u = 0.5 * s[["v"]] + x[["e"]])
  }
  x <- cbind(e = 1:4 / 4, f = 4:1)
  loop <- function(a) {
    s <- c(u = 1, v = 2)
    for (i in 1:4) s <- step(s, x[i, ], a)
    sum(s[c("u", "v")] * c(1, 10))
  }
  scan <- function(a) sum(cl_scan(step, c(u = 1, v = 2), x, a = a) * c(1, 10))
  expect_equal(scan(0.3), loop(0.3))
  on_host({
    f <- cl_gradient(scan)
    expect_equal(as.vector(f(0.3)), loop(0.3))
    expect_equal(attr(f(0.3), "gradient")$a, (loop(0.3 + 1e-5) - loop(0.3 - 1e-5)) / 2e-5,
                 tolerance = 1e-8)
    # the record holds for the names that it was made with
    start <- cl_gradient(function(s) sum(cl_scan(function(s) c(u = s[["u"]], v = 2 * s[["v"]]), s,
                                                 length.out = 2)))
    expect_equal(as.vector(start(c(u = 1, v = 5))), 21)
    expect_equal(as.vector(start(c(v = 5, u = 1))), 21)
    # an equation
    prey <- function(a) {
      sum(cl_ode(function(t, y) c(y[["prey"]] * a, -y[["pred"]]), c(prey = 1, pred = 2), 0:2))
    }
    expect_equal(as.vector(cl_gradient(prey)(0.5)), prey(0.5), tolerance = 1e-8)
  })
})

test_that("data that have the name of a function further out", {
  d <- e <- function(x) 2 * x
  make <- function() {
    d <- matrix(1:4, 2)
    function(a) sum(d[, 2]) * e(a)
  }
  expect_equal(as.vector(cl_gradient(make())(3)), 42)
})
