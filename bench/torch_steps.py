#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The repeated steps of PyTorch programs: torch_steps.py NAME STEPS prints NAME, the median of
a step in milliseconds, and ms. A step reads its loss; a token is read as transformers' generate() does,
and for each 20 tokens of STEPS it makes 60, as time_of_token() does.
torch_steps.py NAME serve prints "ready" after its setup, and then does the same for each line of its input, with
the steps that fit in the number of seconds of the line, at least 5.

NAME: torch_conv_step, torch_bf16_step, generate_token; startup_torch multiplies two matrices and ends.
"""
import statistics
import sys
import time

WARM_UP = 5
# Of each measurement of a program that has rested.
WARM_AGAIN = 2
STEPS_MIN, STEPS_MAX = 5, 40
TOKENS = 20


def conv_net(torch):
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(64, 10)).cuda()


def conv_step(torch):
    model = conv_net(torch)
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


def generation(torch):
    """Returns seconds(tokens): the time to generate this number of tokens."""
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
    return seconds


def time_of_token(seconds, count):
    """In milliseconds: the time for 2 COUNT tokens less that for COUNT."""
    return (seconds(2 * count) - seconds(count)) / count * 1000


def measure_time(step):
    begin = time.perf_counter()
    step()
    return (time.perf_counter() - begin) * 1000


def median_step(step, count):
    for _ in range(WARM_UP):
        step()
    return statistics.median(measure_time(step) for _ in range(count))


def steps_in(step, seconds):
    """The times of the steps that fit in SECONDS, after some that are not counted."""
    for _ in range(WARM_AGAIN):
        step()
    end, times = time.perf_counter() + seconds, []
    while len(times) < STEPS_MIN or (len(times) < STEPS_MAX and time.perf_counter() < end):
        times.append(measure_time(step))
    return times


def tokens_in(seconds_of, seconds):
    end, times = time.perf_counter() + seconds, []
    while not times or time.perf_counter() < end:
        times.append(time_of_token(seconds_of, TOKENS))
    return times


def serve(name, once):
    """once(seconds): returns the times, in milliseconds, that were measured in about this number of seconds."""
    print('ready', flush=True)
    for line in sys.stdin:
        print(name, statistics.median(once(float(line))), 'ms', flush=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    name, serves = sys.argv[1], sys.argv[2] == 'serve'
    count = 0 if serves else int(sys.argv[2])
    import torch
    torch.manual_seed(1)
    if name == 'startup_torch':
        matrix = torch.ones(64, 64, device='cuda')
        print(name, (matrix @ matrix).sum().item(), 'sum')
    elif name == 'generate_token':
        seconds = generation(torch)
        seconds(2 * TOKENS)
        if serves:
            serve(name, lambda budget: tokens_in(seconds, budget))
        else:
            rounds = range(max(1, count // TOKENS))
            print(name, statistics.median(time_of_token(seconds, TOKENS) for _ in rounds), 'ms')
    else:
        step = {'torch_conv_step': conv_step, 'torch_bf16_step': bf16_step}[name](torch)
        if serves:
            median_step(step, 1)
            serve(name, lambda budget: steps_in(step, budget))
        else:
            print(name, median_step(step, count), 'ms')


if __name__ == '__main__':
    main()
