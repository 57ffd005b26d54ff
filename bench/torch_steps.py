#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs of PyTorch do again and again: torch_steps.py NAME STEPS prints NAME, the median of
a step in milliseconds, and ms. A step reads its loss; a token is read as transformers' generate() does.

NAME: torch_conv_step, torch_bf16_step, generate_token; startup_torch multiplies two matrices and ends.
"""
import statistics
import sys
import time

WARM_UP = 5


def conv_step(torch):
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(64, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(64, 3, 32, 32, device='cuda'), torch.randint(0, 10, (64,), device='cuda')

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def bf16_step(torch):
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda().bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    tokens = torch.randn(8, 256, 1024, device='cuda', dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(tokens).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def generate(torch, count):
    """The time of a token, in milliseconds: twice as many tokens less so many."""
    import transformers
    config = transformers.GPT2Config(n_layer=12, n_embd=1024, n_head=16, vocab_size=32000, n_positions=2048)
    model = transformers.GPT2LMHeadModel(config).cuda().bfloat16().eval()
    prompt = torch.randint(0, 32000, (1, 16), device='cuda')

    def seconds(tokens):
        begin = time.perf_counter()
        model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, use_cache=True,
                       pad_token_id=0, disable_compile=True)
        torch.cuda.synchronize()
        return time.perf_counter() - begin
    seconds(2 * count)
    return statistics.median((seconds(2 * count) - seconds(count)) / count * 1000 for _ in range(3))


def median_step(step, count):
    times = []
    for i in range(-WARM_UP, count):
        begin = time.perf_counter()
        step()
        if i >= 0:
            times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    name, count = sys.argv[1], int(sys.argv[2])
    import torch
    torch.manual_seed(1)
    if name == 'startup_torch':
        matrix = torch.ones(64, 64, device='cuda')
        print(name, (matrix @ matrix).sum().item(), 'sum')
    elif name == 'generate_token':
        print(name, generate(torch, count), 'ms')
    else:
        make = {'torch_conv_step': conv_step, 'torch_bf16_step': bf16_step}[name]
        print(name, median_step(make(torch), count), 'ms')


if __name__ == '__main__':
    main()
