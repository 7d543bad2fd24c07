"""Shared by the peers_<family>.py scripts: PyTorch on the first CUDA device in double precision, two
ways to take a time, and the line that a measurement prints.
"""
import os
import sys
import time


def torch_on_cuda():
    """PyTorch, set to double precision; ends the script without a word where there is none, or no
    CUDA device."""
    try:
        import torch
    except ImportError:
        sys.exit(0)
    if not torch.cuda.is_available():
        sys.exit(0)
    torch.set_default_dtype(torch.float64)
    return torch


def event_ms(torch, call, times=5):
    """Median milliseconds of `call` by CUDA events: the device's time, after one call that is not
    counted."""
    call()
    torch.cuda.synchronize()
    taken = []
    for _ in range(times):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(end))
    return sorted(taken)[times // 2]


def wall_ms(torch, call, times=5, warmup=2):
    """Median milliseconds of `call` by the clock, with the device finished before and after."""
    for _ in range(warmup):
        call()
    taken = []
    for _ in range(times):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        taken.append(1000 * (time.perf_counter() - start))
    return sorted(taken)[times // 2]


def report(peer, operation, size, ms, rate=float("nan"), unit=""):
    print(f"{peer},{operation},{size},{ms:.4f},{rate:.4g},{unit}", flush=True)


def sizes(default, variable=None):
    """Sizes as arguments of the script, else from an environment variable, else the default."""
    given = sys.argv[1:]
    if not given and variable is not None:
        given = os.environ.get(variable, "").split(",")
    return [int(float(size)) for size in given if size] or list(default)
