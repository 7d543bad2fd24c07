"""Batches of small matrices by torch.linalg on an NVIDIA GPU, in double precision: the matrices and
sizes of batch.R. Prints lines "peer,operation,size,ms,rate,unit"; nothing without torch or without
a CUDA device.

Each time is the median of CUDA events around a call on data that is on the device. The forms that
do not wait for a check of the result are taken where there are any (inv_ex, cholesky_ex, solve_ex).
"""
import peers

torch = peers.torch_on_cuda()
torch.set_default_device("cuda")

SIZES = ((3, 1000000), (8, 200000), (16, 200000), (32, 100000), (64, 10000), (128, 2000))
PRODUCTS = ((16, 200000), (17, 190000), (32, 100000), (33, 100000), (48, 30000), (64, 10000),
            (100, 4000), (127, 2000), (128, 2000))


def time_all(calls, n, batch):
    for operation, (size, call) in calls.items():
        ms = peers.event_ms(torch, call)
        peers.report("torch", operation, f"{n}x{n}x{batch}", ms, 1e-6 * size * batch / ms, "GB/s")


for n, batch in SIZES:
    a = torch.randn(batch, n, n)
    s = a @ a.transpose(1, 2) + torch.eye(n)
    b = torch.randn(batch, n, 1)
    calls = {
        "batch inverse": (16 * n * n, lambda: torch.linalg.inv_ex(s)),
        "batch chol": (16 * n * n, lambda: torch.linalg.cholesky_ex(s)),
        "batch solve": (8 * n * (n + 2), lambda: torch.linalg.solve_ex(s, b)),
        "batch det": (8 * n * n, lambda: torch.linalg.det(s)),
        "batch matmul": (16 * n * n, lambda: s @ s),
    }
    time_all(calls, n, batch)
    del a, s, b

for n, batch in PRODUCTS:
    a, b = torch.randn(batch, n, n), torch.randn(batch, n, n)
    # Rows first here: what R calls a b is b a of the transposed matrices in memory.
    calls = {
        "batch a b": (24 * n * n, lambda: b @ a),
        "batch a' b": (24 * n * n, lambda: b @ a.transpose(1, 2)),
        "batch a b'": (24 * n * n, lambda: b.transpose(1, 2) @ a),
    }
    time_all(calls, n, batch)
    del a, b
