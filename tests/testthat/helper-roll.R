# Random programs with loops: the text of functions of a (five numbers), b and s, which use the data
# of roll_data().

roll_data <- function(n) {
  list(n = n, x = round(stats::rnorm(n), sample(c(0, 1, 6), 1L)), y = stats::rnorm(n),
       k = sample(5L, n, replace = TRUE), z = matrix(stats::rnorm(4 * n), n),
       p = sample(n), q = c(1L, vapply(seq_len(n)[-1L], function(i) sample(i - 1L, 1L), 0L)))
}

random_loop <- function() {
  pick <- function(...) sample(c(...), 1L)
  known <- character() # numbers of this iteration
  carried <- character()
  filled <- character() # vectors with an element for each iteration
  atom <- function() {
    always <- c("x[i]", "y[i]", "b", "s", "a[k[i]]", "a[2]", "0.7", "z[i, 2]", "i / n")
    pick(always, known, known, if (length(carried)) paste0("0.3 * ", carried))
  }
  expression <- function(depth = 2L) {
    if (depth == 0L) return(atom())
    one <- function() expression(depth - 1L)
    switch(sample(9L, 1L),
           sprintf("(%s + %s)", one(), one()), sprintf("(%s - %s)", one(), one()),
           sprintf("(%s * %s)", one(), one()), sprintf("tanh(%s)", one()),
           sprintf("exp(0.1 * sin(%s))", one()), sprintf("%s / (1 + %s^2)", one(), one()),
           sprintf("ifelse(%s > 0.1, %s, %s)", one(), one(), one()),
           sprintf("(if (x[i] > 0) %s else %s)", one(), one()), atom())
  }
  bounded <- function() sprintf("tanh(%s)", expression())
  statement <- function() {
    name <- paste0(letters[20L + length(known) %% 6L], length(known))
    switch(sample(17L, 1L),
      {
        text <- sprintf("%s <- %s", name, bounded())
        known <<- c(known, name)
        text
      },
      sprintf("total <- total + %s", expression()),
      sprintf("total <- total - %s * %s", expression(1L), expression(1L)),
      "total <- total + dnorm(y[i], b + 0.1 * x[i], exp(s), log = TRUE)",
      sprintf("c1 <- 0.5 * c1 + 0.4 * %s", bounded()),
      sprintf("c2 <- tanh(c2 + %s)", expression()),
      sprintf("e[i + 2] <- 0.4 * e[i + 1] - 0.3 * e[i] + 0.5 * %s", bounded()),
      sprintf("w[i] <- %s", expression()),
      sprintf("m[i, %d] <- %s", sample(3L, 1L), expression()),
      sprintf("for (j in 1:4) { h <- %s; total <- total + tanh(a[j] * h * z[i, j]) }",
              expression(1L)),
      sprintf("total <- total + sum(a[1:4] * z[i, ]) * %s", expression(1L)),
      sprintf("if (i %%%% 3 == 0) total <- total + %s", expression(1L)),
      sprintf("w[p[i]] <- %s", expression(1L)),
      # iterations that differ in an operation, or in what they read, but not in their number
      sprintf("c1 <- %s * (if (x[i] > 0) tanh(c1 + b) else sin(c1 + b))", pick("0.5", "y[i]")),
      "c2 <- tanh(0.3 + (if (y[i] > 0) c1 else c2) * s)",
      sprintf("total <- total + (if (x[i] > 0) exp(s * %s) else cos(s * %s))", atom(), atom()),
      sprintf("w[i] <- tanh(w[q[i]] + %s)", expression(1L)))
  }
  carried <- sample(c("c1", "c2", "e[i + 1]", "g[2]"), sample(0:3, 1L))
  body <- character()
  for (r in seq_len(sample(5L, 1L))) body <- c(body, statement())
  if (stats::runif(1L) < 0.3) {
    body <- c(body, "g <- c(0.6 * g[1] + 0.2 * tanh(g[2]) * b, 0.3 * g[1] + 0.1 * y[i])")
  }
  if (stats::runif(1L) < 0.2) {
    body <- c(body, "for (j in 1:3) r[j] <- tanh(0.5 * r[j] + a[j] * x[i])")
  }
  if (stats::runif(1L) < 0.2) {
    body <- c(body, "r <- c(log(sum(exp(r + a[1:3]))), tanh(sum(r * b)), 0.3 * r[1] + y[i] * s)")
  }
  rest <- sample(c("sum(w)", "c1 * b", "c2", "sum(dnorm(e, s, 1, log = TRUE))", "sum(m %*% a[1:3])",
                   "e[n]", "sum(w[3:7] * w[1:5])", "sum(g * a[1:2])", "tanh(sum(r))", "w[4] * s"),
                 sample(4L, 1L))
  c("total <- 0; c1 <- b; c2 <- 0.1; e <- numeric(n + 2); w <- numeric(n) + 0.5",
    "m <- matrix(0, n, 3); g <- a[1:2]; r <- c(0.1, 0.2, b)",
    sprintf("for (i in 1:n) {\n  %s\n}", paste(body, collapse = "\n  ")),
    paste("total +", paste(rest, collapse = " + ")))
}

# Loops that only one check of the pass refuses, or that need one kind of sum.
special_loops <- list(
  "h <- 0; for (i in 1:n) { b <- tanh(0.3 + (if (i %% 3 == 1) b else s) * s); h <- h + b }; h",
  paste("h <- 0; for (i in 1:n) {",
        "b <- tanh((if (i == 1) 0.5 else b) + (if (i == 1) s else b) * s); h <- h + b }; h"),
  paste("h <- 0; for (i in 1:n) {",
        "b <- if (i %% 5 < 2) tanh(b + s) * s else sin(b + s) * s; h <- h + b }; h"),
  "g <- a[1:3]; for (i in 1:n) g <- g + a[2:4] * x[i] * y[i]; g[2] + b",
  "for (i in 1:n) b <- tanh(s * y[i]) - b; b",
  "for (i in 1:n) b <- b + tanh(s * k[i]); b",
  "h <- 0; for (i in 1:n) { b <- tanh(s * b + a[k[i]]); h <- h + b }; h",
  "h <- 0; for (i in 1:n) h <- h + y[i] * max(c(b - 0.3, s + 0.2, a[k[i]] + y[i] - 9)); h",
  "h <- 0; for (i in 1:n) h <- h + cl_log_sum_exp(c(b * y[i], a[k[i]], s)); h",
  "w <- numeric(n); for (i in 1:n) w[i] <- tanh(s + a[k[i]] * y[p[i]]); sum(w[p] * y) + w[2]",
  paste("h <- 0; for (i in 1:n) { l <- 0; for (j in 1:4)",
        "l <- l - exp(a[1 + (i %/% 2 * j) %% 4]); h <- h + l * y[i] - tanh(l) }; h"),
  paste("w <- numeric(n); w[1] <- 1.3; for (i in 2:n)",
        "w[i] <- sqrt(0.1 + exp(b) * y[i]^2 + s^2 * w[i - 1]^2); sum(w * y) + w[n]"),
  paste("w <- c(exp(b), numeric(n - 1)); for (i in 2:n)",
        "w[i] <- 1.5 + tanh(w[i - 1] * a[4] + a[2] * a[3]^i); sum(log(w[1:3])) + sum(log(w) * y)"),
  paste("w <- c(exp(b), numeric(n - 1)); v <- log(w[1]); for (i in 2:n)",
        "w[i] <- 1.5 + tanh(w[i - 1] * v); h <- v; for (i in 2:n) h <- h + log(w[i]) * y[i]; h"),
  # first values are read as results are: two states; one that is read at the end only; a lag
  paste("u <- exp(b); v <- exp(s); h <- 0; for (i in 1:n) { h <- h + log(u) * y[i] + cos(v) * x[i]",
        "d <- 0.5 * u + 0.1 * tanh(v); v <- 0.6 * v + 0.1 / u; u <- d }; h + u", sep = "\n"),
  paste("u <- exp(b); w <- exp(s); h <- 0; for (i in 1:n) { h <- h + log(u) * y[i]",
        "w <- tanh(w + u); u <- 0.5 * u + 0.1 * w }; h + w", sep = "\n"),
  paste("w <- c(exp(b), exp(s), numeric(n - 2)); for (i in 3:n)",
        "w[i] <- 1.5 + tanh(w[i - 1] * a[4] + a[2] * w[i - 2]); sum(log(w) * y)"),
  # no derivative behind the end: sqrt(0)
  paste("u <- (n - 1) * exp(b - b); h <- 0; for (i in 1:n) { h <- h + cos(u) * y[i]",
        "u <- u - 1 + (s - s) * a[1] * sqrt(u) }; h * s", sep = "\n"),
  # a last iteration that ends early: lags, vectors, and log(0) behind the end
  paste("w <- numeric(n); v <- w; w[1] <- b; w[2] <- s; for (i in 3:n) {",
        "w[i] <- tanh(a[1] * v[i - 1] + a[2] * w[i - 2] + y[i]);",
        "if (i < n) v[i] <- exp(w[i] * s) }\nsum(w * y) + v[5] + v[n - 1]"),
  paste("l <- a[1:2]; for (i in 1:n) { e <- l + y[i] * s; if (i < n)",
        "l <- c(cl_log_sum_exp(e + a[1:2]), cl_log_sum_exp(e * b)) }; sum(e * a[2:3])"),
  paste("h <- 0; for (i in 1:n) { w <- (i < n) * y[i]^2 * (b^2 + 1); h <- h + w * y[i]",
        "if (i < n) b <- tanh(log(w)) * s }; h + w * a[1]", sep = "\n"),
  # inputs that are only added, to each other and to others, and one that is a factor too
  paste("h <- 0; for (i in 1:n) { h <- tanh(0.5 * h + s * x[i] + a[1] + b * y[i] + a[2] + y[i])",
        "s <- 0.3 * (s - b * x[i] - 0.1 * x[i]) }; h + s", sep = "\n"),
  paste("h <- 0; for (i in 1:n) { d <- b * y[i]; e <- s * x[i] + 1",
        "h <- tanh(0.5 * h + e + d) + 0.1 * h * d }; h", sep = "\n"),
  # a first and a last one that differ
  paste("h <- 0; for (i in 1:n) {",
        "s <- if (i %in% c(1, n)) exp(s * b) else tanh(s * b + y[i]); h <- h + s^2 }; h + s"))

loop_function <- function(lines, data) {
  f <- function(a, b, s) NULL
  body(f) <- parse(text = sprintf("{\n%s\n}", paste(lines, collapse = "\n")))[[1L]]
  environment(f) <- list2env(data, parent = globalenv())
  f
}

# The largest difference between the program rolled and as it was recorded.
roll_error <- function(f, point) {
  whole <- function(roll) {
    model <- cl_gradient(f, roll = roll)
    found <- suppressWarnings(do.call(model, point))
    c(found, unlist(attr(found, "gradient")))
  }
  recorded <- whole(FALSE)
  max(abs(whole(TRUE) - recorded) / (1 + abs(recorded)))
}
