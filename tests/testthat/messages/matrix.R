m <- matrix(c(2, 1, 1, 3), 2)
x <- as_cl(m)
tall <- as_cl(matrix(1:6, 3))
freed <- as_cl(m)
gone <- cl_free(freed)

# making matrices
as_cl("a")
as_cl(list(1, 2))
as_cl(mean)
as_cl(quote(x))
as_cl(NULL)
as_cl(Sys.Date())
as_cl(array(1, c(2, 2, 2)), view = "lower")
as_cl(matrix(1:6, 3), view = "symmetric")
as_cl(m, view = "diagonal")
as_cl(structure(1, class = "integer64"))
cl_matrix(1:5, 2, 2)
cl_matrix(1:3, 2, 4)
cl_matrix(1, -1, 2)
cl_matrix(1, 2.5, 2)
cl_matrix(1, 2^31, 1)
cl_matrix(1, 2^31 - 1, 2^31 - 1)
cl_identity("two")
cl_zeros(2, NA)
cl_free(m)
structure(1, class = "clMatrix") + x
freed + 1
as.matrix(freed)
cl_eval(m)

# shape and names
dimnames(x) <- 1
dimnames(x) <- list(c("a", "b", "c"), NULL)
dim(x) <- 4
dim(x) <- c(3, 3)
diag(x) <- 1:3
diag(x, nrow = 3)
t(x)[["a"]]
head(x, "two")
aperm(x, 3:1)
sweep(x, 3, 1)
scale(x, center = 1:3)
subset(x, 1:2)

# subscripts
x[1, 2, 3]
x[3, 1]
x["a", 1]
x[c(-1, 1), 1]
x[list(1), 1]
x[as_cl(5), 1]
x[as_cl(1:2 + 0.5), 1]
x[c(TRUE, FALSE, TRUE), 1]
x[list(1)]
x[matrix(c(-1, 1), 1)]
x[[5]]
x[[1, 2, 3]]
x[[, 1]]
x[[1, ]]
x[[as_cl(1)]]
x[1, 1] <- "a"
x[1, ] <- numeric()
x[, 1] <- 1:3
x[c(NA, 1), 1] <- 1:2
x[1, 2, 3] <- 1
x[1:4] <- 1:3
x[5] <- numeric()
x[[1]] <- 1:2
x[[1]] <- numeric()
x[-5, 3]

# binding
cbind(x, 1:3)
cbind(x, tall)
rbind(x, matrix(1, 1, 3))

# arithmetic
x + tall
x + 1:3
x + 1:5
x + "a"
x > list()
round(x, "a")
round(x, x)
signif(x, 1:2)
atan2(x, "a")
cl_ifelse(x, "a", 1)
cl_op("nothing", x)
cl_op("add", x)
pmin(x, tall)
crossprod(x, tall)
x %*% tall
cl_matmul(m, matrix(1, 3, 1))
mean(x, trim = 0.1)
rowSums(x, dims = 2)
rowsum(x, 1)
cor(x, method = "kendall")
cor(x, use = "none")
cor(x, tall)
cor(NULL, x)

cor(as_cl(c(1, 1, 1)), as_cl(1:3))
var(x, na.rm = "a")
norm(x, "Z")
rcond(x, "Z")
cl_pnorm(x, lower.tail = NA)
cl_erf("a")

# factors and solutions
cl_chol(matrix(0, 0, 0))
cl_chol(matrix(1:6, 3))
cl_chol(-m)
cl_chol(m, jitter = -1)
cl_chol(m * NA)
chol(x, pivot = TRUE)
chol(as_cl(-m))
solve(as_cl(matrix(0, 2, 2)))
solve(as_cl(matrix(1, 2, 2)))
solve(as_cl(diag(c(1, 1e-30))))
solve(x, tall)
chol2inv(x, size = 3)
chol2inv(as_cl(matrix(1:6, 2)), size = 3)
cl_chol_adjoint(t(chol(m)), matrix(1, 3, 3))
cl_tri_solve(m, 1:3)
cl_tri_solve(matrix(1:6, 3), 1:3)
cl_tri_solve(matrix(0, 2, 2), 1:2)
cl_tri_inverse(matrix(1:6, 3))
cl_tri_solve_adjoint(m, m, matrix(1, 2, 3))
cl_tri_solve_adjoint(m, matrix(1, 3, 3), m)
backsolve(x, 1:3)
backsolve(x, 1:2, k = 3)
backsolve(as_cl(matrix(1:6, 2)), 1:3, k = 3)
backsolve(1, x, k = 2)
determinant(tall)
