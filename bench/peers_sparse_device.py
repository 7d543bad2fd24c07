# Peers of sparse-device.R: products of sparse matrices in compressed rows by PyTorch and CuPy, both
# by cuSPARSE, in double precision. Prints a line for each measurement:
# peer,operation,size,ms,rate,unit. What is not installed, or fails, is left out and said on stderr.
import os
import sys

import peers

SCALE = float(os.environ.get("STATCL_BENCH_SCALE", "1"))
ROWS = round(1e6 * SCALE)
SIZES = [(ROWS, round(columns * SCALE)) for columns in (1e5, 1e4)]


def say(peer, error):
    print(f"{peer}: {type(error).__name__}: {error}"[:400], file=sys.stderr)


def line(peer, operation, shape, columns, ms, count, starts):
    name = operation + ("" if columns == 1 else f", {columns} columns")
    moved = 12 * count + 4 * starts + 8 * columns * sum(shape)
    peers.report(peer, name, "%dx%d" % shape, ms, 1e-6 * moved / ms, "GB/s")


def run_torch(torch):
    for shape in SIZES:
        count = 10 * ROWS
        at = torch.stack([torch.randint(0, side, (count,), device="cuda") for side in shape])
        value = torch.randn(count, device="cuda")
        rows = torch.sparse_coo_tensor(at, value, shape).coalesce().to_sparse_csr()
        turned = torch.sparse_coo_tensor(at.flip(0), value, shape[::-1]).coalesce().to_sparse_csr()
        for name, a in (("product", rows), ("transposed product", turned)):
            # whole numbers of 32 bits, as elsewhere
            a = torch.sparse_csr_tensor(
                a.crow_indices().int(), a.col_indices().int(), a.values(), a.shape
            )
            for columns in (1, 8):
                b = torch.randn(a.shape[1], columns, device="cuda")
                ms = peers.event_ms(torch, lambda: a @ b, 15)
                line("torch", name, shape, columns, ms, a.values().numel(), a.shape[0])


def run_cupy():
    import cupy
    from cupyx.scipy import sparse

    def event_ms(call, times=15):
        call()
        taken = []
        for _ in range(times):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            call()
            end.record()
            end.synchronize()
            taken.append(cupy.cuda.get_elapsed_time(start, end))
        return sorted(taken)[times // 2]

    for shape in SIZES:
        count = 10 * ROWS
        i, j = (cupy.random.randint(0, side, count).astype("int32") for side in shape)
        a = sparse.coo_matrix((cupy.random.standard_normal(count), (i, j)), shape).tocsr()
        for name, a in (("product", a), ("transposed product", a.T.tocsr())):
            for columns in (1, 8):
                b = cupy.asfortranarray(cupy.random.standard_normal((a.shape[1], columns)))
                b = b[:, 0] if columns == 1 else b
                line("cupy", name, shape, columns, event_ms(lambda: a @ b), a.nnz, a.shape[0])


try:
    run_cupy()
except Exception as error:
    say("cupy", error)
try:
    run_torch(peers.torch_on_cuda())
except Exception as error:
    say("torch", error)
