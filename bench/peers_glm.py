"""Log likelihood and gradient of logistic regression by hand in PyTorch on an NVIDIA GPU, in double
precision, with the sizes of glm.R. Prints lines "peer,operation,size,ms,rate,unit"; nothing without
torch or without a CUDA device.

Parameters come from the host and value and gradient go there, as in glm.R. Medians by the clock.
"""
import peers

torch = peers.torch_on_cuda()

SIZES = ((10000, 10), (100000, 10), (1000000, 10), (100000, 100), (1000000, 100), (100000, 500),
         (1000000, 1000))


for n, p in SIZES:
    x = torch.randn(n, p, device="cuda")
    y = (torch.rand(n, device="cuda") < 0.5).double()
    signs = 2 * y - 1
    beta = torch.randn(p) / p**0.5

    def by_hand():
        eta = x @ beta.cuda() + 0.1
        residual = y - torch.sigmoid(eta)
        value = torch.nn.functional.logsigmoid(signs * eta).sum()
        return torch.cat((value[None], residual.sum()[None], x.t() @ residual)).tolist()

    ms = peers.wall_ms(torch, by_hand, 200 if n * p <= 1e7 else 20, warmup=5)
    peers.report("torch", "bernoulli_logit_by_hand", f"{n}x{p}", ms, 8e-6 * n * (p + 1) / ms, "GB/s")
    del x, y, signs
