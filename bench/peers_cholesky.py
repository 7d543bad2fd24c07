"""Cholesky factor, its reverse-mode gradient and triangular solves by PyTorch (cuSOLVER, cuBLAS) on an
NVIDIA GPU, in double precision: the matrix and the sizes of cholesky.R. Prints lines
"peer,operation,size,ms,rate,unit"; nothing without torch or without a CUDA device.

Medians of CUDA events on data that is on the device. The factor is cholesky_ex, which does not wait
for a check of the result; the gradient is autograd's.
"""
import peers

torch = peers.torch_on_cuda()
torch.set_default_device("cuda")


def paper_matrix(n):
    """n - |i - j| off the diagonal, n^2 on it: the matrix of the paper on GPU support in Stan."""
    i = torch.arange(n, dtype=torch.float64)
    a = n - (i[:, None] - i[None, :]).abs()
    a.diagonal().fill_(float(n) * n)
    return a


def time_adjoint(a, adjoint, times):
    leaf = a.clone().requires_grad_(True)
    factor = torch.linalg.cholesky(leaf)
    return peers.event_ms(
        torch, lambda: torch.autograd.grad(factor, leaf, adjoint, retain_graph=True), times)


for n in peers.sizes((128, 256, 512, 1000, 2000, 4000, 8000, 16000, 32000)):
    times = 3 if n > 4000 else 7
    a = paper_matrix(n)
    ms = peers.event_ms(torch, lambda: torch.linalg.cholesky_ex(a), times)
    peers.report("torch", "potrf", n, ms, 1e-9 * n**3 / 3 / ms, "TFLOP/s")
    if n <= 16000:
        adjoint = torch.randn(n, n).tril()
        ms = time_adjoint(a, adjoint, times)
        peers.report("torch", "potrf_adjoint", n, ms, 1e-9 * 2 * n**3 / 3 / ms, "TFLOP/s")
        factor, b, one = torch.linalg.cholesky(a), torch.randn(n, n), torch.randn(n, 1)
        solve = torch.linalg.solve_triangular
        ms = peers.event_ms(torch, lambda: solve(factor, b, upper=False), times)
        peers.report("torch", "trsm", n, ms, 1e-9 * n**3 / ms, "TFLOP/s")
        ms = peers.event_ms(torch, lambda: solve(factor, one, upper=False), times)
        peers.report("torch", "trsv", n, ms, 4e-6 * n**2 / ms, "GB/s")
        eye = torch.eye(n)
        ms = peers.event_ms(torch, lambda: solve(factor, eye, upper=False), times)
        peers.report("torch", "trtri", n, ms, 1e-9 * n**3 / 3 / ms, "TFLOP/s")
        del adjoint, factor, b, one, eye
    del a
    torch.cuda.empty_cache()
