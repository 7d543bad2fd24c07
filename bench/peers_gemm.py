"""Products of square matrices by PyTorch (cuBLAS) on an NVIDIA GPU, in double precision, with the sizes
of gemm.R. Prints lines "peer,operation,size,ms,rate,unit"; nothing without torch or without a CUDA
device. Medians of CUDA events on data that is on the device.
"""
import peers

torch = peers.torch_on_cuda()
torch.set_default_device("cuda")

for n in peers.sizes((1024, 2048, 4096, 8192)):
    a, b = torch.randn(n, n), torch.randn(n, n)
    calls = {"gemm": (2 * n**3, lambda: a @ b), "crossprod": (n**3, lambda: a.t() @ a)}
    for operation, (flops, call) in calls.items():
        ms = peers.event_ms(torch, call, 7)
        peers.report("torch", operation, n, ms, 1e-9 * flops / ms, "TFLOP/s")
    del a, b

for n, k in ((100000, 100), (1000000, 100)):
    x, beta = torch.randn(n, k), torch.randn(k)
    ms = peers.event_ms(torch, lambda: x @ beta, 7)
    peers.report("torch", "matrix-vector", f"{n}x{k}", ms, 8e-6 * n * k / ms, "GB/s")
    ms = peers.event_ms(torch, lambda: x.t() @ x, 7)
    peers.report("torch", "crossprod", f"{n}x{k}", ms, 1e-9 * n * k**2 / ms, "TFLOP/s")
    del x, beta
