# cl_scan(): arguments, seen before anything runs
step <- function(s, x) s + x
cl_scan(1, 0, 1:3)
cl_scan(step, "a", 1:3)
cl_scan(step, numeric(), 1:3)
cl_scan(step, list(), 1:3)
cl_scan(step, 0, "a")
cl_scan(step, 0, numeric())
cl_scan(step, 0, list(1:3, 1:4))
cl_scan(step, 0)
cl_scan(step, 0, length.out = 0)
cl_scan(step, 0, 1:3, length.out = 3)
cl_scan(step, 0, 1:3, sequences = 1.5)

# what a step returns
cl_scan(function(s, x) c(s, x), 0, 1:3)
cl_scan(function(s, x) list(a = s$a, b = 1), list(a = 1, b = diag(2)), 1:3)
cl_scan(function(s, x) list(s, x), 0, 1:3)
cl_scan(function(s, x) list(b = s$a), list(a = 1), 1:3)
cl_scan(function(s, x) list(state = s, out = "a"), 0, 1:3)
cl_scan(function(s, x) list(state = s, out = seq_len(x)), 0, 1:3)

# in a function that is recorded
traced <- function(f) cl_gradient(f)(a = 1)
traced(function(a) cl_scan(function(s, x) c(s, x), a, 1:3))
traced(function(a) cl_scan(function(s, x) if (s > 0) a else x, a, 1:3))
traced(function(a) sum(cl_scan(function(s, x) s %*% s + a, diag(40), 1:3)))
traced(function(a) sum(unlist(cl_scan(function(s, x) s, as.list(rep(a, 70)), 1:3))))

# cl_ode()
cl_ode(1, 1, 0:1)
cl_ode(function(t, y) y, 1, c(1, 0))
cl_ode(function(t, y) c(y, y), 1, 0:1)
cl_ode(function(t, y) y, "a", 0:1)
cl_ode(function(t, y) y, 1, 0:1, rtol = 1e-3, steps = 5)
cl_ode(function(t, y) y^2, 1, c(0, 2))

# a long loop
cl_gradient(function(a) { for (k in 1:2000) a <- a * 0.5 + 1; a })(a = 1)
