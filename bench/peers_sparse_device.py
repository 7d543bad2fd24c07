# Peers of sparse-device.R: products of sparse matrices in compressed rows by PyTorch and CuPy, both
# by cuSPARSE, in double precision. Prints a line for each measurement:
# peer,operation,size,ms,rate,unit. What is not installed, or fails, is left out and said on stderr.
import os
import sys

import peers

SCALE = float(os.environ.get("STATCL_BENCH_SCALE", "1"))
ROWS = round(1e6 * SCALE)
SIZES = [(ROWS, round(columns * SCALE), local) for columns, local in ((1e5, 0), (1e5, 1), (1e4, 0))]
EACH = 10  # elements of a row


def say(peer, error):
    print(f"{peer}: {type(error).__name__}: {error}"[:400], file=sys.stderr)


def line(peer, operation, shape, local, columns, ms, count, starts):
    name = operation + ("" if columns == 1 else f", {columns} columns")
    moved = 12 * count + 4 * starts + 8 * columns * sum(shape)
    size = "%dx%d" % shape + (" local" if local else "")
    peers.report(peer, name, size, ms, 1e-6 * moved / ms, "GB/s")


def places(m, n, local, element, random):
    """Rows and columns of the elements 0, 1, ... as in sparse-device.R."""
    if not local:
        return random(m), random(n)
    row, number = element // EACH, element % EACH
    return row, row * (n - 3 * EACH) // (m - 1) + 3 * number + random(3)


def run_torch(torch):
    for m, n, local in SIZES:
        shape = (m, n)
        element = torch.arange(EACH * ROWS, device="cuda")
        at = torch.stack(places(m, n, local, element, lambda top: torch.randint_like(element, top)))
        value = torch.randn(EACH * ROWS, device="cuda")
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
                line("torch", name, shape, local, columns, ms, a.values().numel(), a.shape[0])


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

    for m, n, local in SIZES:
        shape = (m, n)
        count = EACH * ROWS
        at = places(m, n, local, cupy.arange(count), lambda top: cupy.random.randint(0, top, count))
        i, j = (side.astype("int32") for side in at)
        a = sparse.coo_matrix((cupy.random.standard_normal(count), (i, j)), shape).tocsr()
        for name, a in (("product", a), ("transposed product", a.T.tocsr())):
            for columns in (1, 8):
                b = cupy.asfortranarray(cupy.random.standard_normal((a.shape[1], columns)))
                b = b[:, 0] if columns == 1 else b
                ms = event_ms(lambda: a @ b)
                line("cupy", name, shape, local, columns, ms, a.nnz, a.shape[0])


try:
    run_cupy()
except Exception as error:
    say("cupy", error)
try:
    run_torch(peers.torch_on_cuda())
except Exception as error:
    say("torch", error)
