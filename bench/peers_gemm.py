"""Products of square matrices by PyTorch (cuBLAS) on an NVIDIA GPU, in double precision, with the sizes
of gemm.R. Prints lines "peer,operation,size,ms,rate,unit"; nothing without torch or without a CUDA
device. Medians of CUDA events on data that is on the device. A cuBLAS that emulates double precision by
integers does so by environment variables, so a second process has the lines "torch emulated"; they come
only if its results differ from the native ones, as another cuBLAS ignores the variables.
"""
import os
import subprocess
import sys

import peers

torch = peers.torch_on_cuda()
torch.set_default_device("cuda")
emulated = os.environ.get("CUBLAS_EMULATE_DOUBLE_PRECISION") == "1"
torch.manual_seed(1)
a, b = torch.randn(4096, 4096), torch.randn(4096, 4096)
result = (a @ b).sum().item().hex() + (a @ b)[17, 19].item().hex()
del a, b
if emulated and result == os.environ.get("BENCH_NATIVE_RESULT"):
    sys.exit(0)
name = "torch emulated" if emulated else "torch"

for n in peers.sizes((1024, 2048, 4096, 8192)):
    a, b = torch.randn(n, n), torch.randn(n, n)
    calls = {"gemm": (2 * n**3, lambda: a @ b), "crossprod": (n**3, lambda: a.t() @ a)}
    for operation, (flops, call) in calls.items():
        ms = peers.event_ms(torch, call, 7)
        peers.report(name, operation, n, ms, 1e-9 * flops / ms, "TFLOP/s")
    del a, b

if emulated:
    sys.exit(0)
sys.stdout.flush()
subprocess.run([sys.executable, __file__], check=False, env=dict(
    os.environ, CUBLAS_EMULATE_DOUBLE_PRECISION="1", CUBLAS_EMULATION_STRATEGY="eager",
    BENCH_NATIVE_RESULT=result))

for n, k in ((100000, 100), (1000000, 100)):
    x, beta = torch.randn(n, k), torch.randn(k)
    ms = peers.event_ms(torch, lambda: x @ beta, 7)
    peers.report("torch", "matrix-vector", f"{n}x{k}", ms, 8e-6 * n * k / ms, "GB/s")
    ms = peers.event_ms(torch, lambda: x.t() @ x, 7)
    peers.report("torch", "crossprod", f"{n}x{k}", ms, 1e-9 * n * k**2 / ms, "TFLOP/s")
    del x, beta
