x <- as_cl(matrix(1:6, 3))
host <- with_cl(as_cl(matrix(1:6, 3)), engine = "host")
source <- "__kernel void scale(double a, __global const double *x, int x_ld, __global double *y,
                               int y_ld, int n) {
             int i = get_global_id(0);
             if (i < n) y[i] = a * x[i];
           }"
scale <- cl_kernel(source, "scale", c(a = "double", x = "in", y = "out", n = "int"))
wrong <- cl_kernel(source, "scale", c(a = "int", x = "in", y = "out", n = "int"))
few <- cl_kernel(source, "scale", c(a = "double", y = "out"))
broken <- "__kernel void f(__global double *y, int y_ld) { y[0] = }"

cl_use("cpu", engine = "never")
cl_kernel(source, "nothing", c(y = "out"))
cl_kernel(broken, "f", c(y = "out"))
cl_kernel(1, "scale", c(y = "out"))
cl_kernel(source, "2", c(y = "out"))
cl_kernel(source, "scale", "out")
cl_kernel(source, "scale", c(x = "in"))
scale(1, 2)
scale(1:2, x, c(3, 2), 6, global = 6)
scale(1, 2, c(3, 2), 6, global = 6)
scale(1, x, 3, 6, global = 6)
scale(1, x, c(3, 0), 6, global = 6)
scale(1, x, c(3, 2), 1.5, global = 6)
scale(1, x, c(3, 2), 6, global = 0)
scale(1, x, c(3, 2), 6, global = 1:4)
scale(1, x, c(3, 2), 6, global = 6, local = c(2, 2))
scale(1, x, c(3, 2), 6, global = 6, local = 1e6)
scale(1, host, c(3, 2), 6, global = 6)
wrong(1, x, c(3, 2), 6, global = 6)
few(1, c(3, 2), global = 6)
x + host
cl_matmul(x, as_cl(matrix(1, 5, 5)))
cl_chol(as_cl(-diag(3)))
cl_tri_solve(as_cl(diag(3) * 0), 1:3)
cl_sample(function(a) structure(-a^2, gradient = -2 * a), 0, chains = 1, iter = 5, devices = "all")
