# Peers of lazy.R: CuPy's fused kernels and PyTorch's compiled functions, in double precision. Prints
# a line for each measurement: peer,operation,size,ms,rate,unit. What is not installed, or fails, is
# left out and said on stderr.
import statistics
import sys

SIZES = (10**7, 10**8)


def say(peer, error):
    print(f"{peer}: {type(error).__name__}: {error}"[:400], file=sys.stderr)


def line(peer, operation, size, ms, arrays):
    """`arrays` counts the arrays of `size` doubles that have to be read or written."""
    print(f"{peer},{operation},{size},{ms:.6g},{8e-6 * arrays * size / ms:.6g},GB/s", flush=True)


# Expressions in both libraries' common dialect: xp is the library. The same as in lazy.R.
def expressions(xp):
    return {
        "add": (lambda x, y: x + y, 3),
        "exp": (lambda x, y: xp.exp(x), 2),
        "residuals": (lambda x, y: (y - x * 0.7) ** 2 * 0.5 - 1.0, 3),
        "gauss": (lambda x, y: xp.exp(-(x - y) * (x - y) / 0.5) / 1.2533, 3),
        "chain of 10": (chain_of_10, 3),
        "sum of squares": (lambda x, y: ((y - x * 0.7) ** 2).sum(), 2),
    }


def chain_of_10(x, y):
    z = x
    for _ in range(5):
        z = z * y
        z = z + y
    return z


def median_ms(event, synchronize, elapsed, run, times=15):
    for _ in range(3):
        run()
    synchronize()
    taken = []
    for _ in range(times):
        start, end = event(), event()
        start.record()
        value = run()
        end.record()
        end.synchronize()
        taken.append(elapsed(start, end))
        del value
    return statistics.median(taken)


def run_torch():
    import torch

    device = torch.device("cuda")
    timing = (
        lambda: torch.cuda.Event(enable_timing=True),
        torch.cuda.synchronize,
        lambda start, end: start.elapsed_time(end),
    )
    for size in SIZES:
        x = torch.rand(size, dtype=torch.float64, device=device)
        y = torch.rand(size, dtype=torch.float64, device=device)
        for name, (f, arrays) in expressions(torch).items():
            try:
                compiled = torch.compile(f)
                ms = median_ms(*timing, lambda: compiled(x, y))
                line("torch_compile", name, size, ms, arrays)
            except Exception as error:  # a compiler may be missing
                say(f"torch_compile {name}", error)
        columns = x.view(-1, 10**4)  # as R stores a matrix of 10,000 rows
        for name, f, arrays in (
            ("row sums", lambda: columns.sum(0), 1),
            ("column sums", lambda: columns.sum(1), 1),
            ("transposed", lambda: columns.t().contiguous(), 2),
        ):
            line("torch", name, size, median_ms(*timing, f), arrays)
        del x, y, columns
        torch.cuda.empty_cache()


def run_cupy():
    import cupy

    def sum_of_squares(x, y):  # a reduction inside cupy.fuse() has to be a function of the library
        return cupy.sum((y - x * 0.7) ** 2)

    timing = (
        cupy.cuda.Event,
        cupy.cuda.Device().synchronize,
        cupy.cuda.get_elapsed_time,
    )
    for size in SIZES:
        x = cupy.random.rand(size)
        y = cupy.random.rand(size)
        for name, (f, arrays) in expressions(cupy).items():
            try:
                f = sum_of_squares if name == "sum of squares" else f
                fused = cupy.fuse(kernel_name="fused_" + name.replace(" ", "_"))(f)
                ms = median_ms(*timing, lambda: fused(x, y))
                line("cupy_fuse", name, size, ms, arrays)
            except Exception as error:
                say(f"cupy_fuse {name}", error)
        del x, y
        cupy.get_default_memory_pool().free_all_blocks()


# "cupy" or "torch" as an argument runs that one only.
for run in (run_cupy, run_torch):
    try:
        if len(sys.argv) < 2 or run.__name__ == "run_" + sys.argv[1]:
            run()
    except Exception as error:
        say(run.__name__, error)
