# SPDX-License-Identifier: Apache-2.0
"""inference.py SECONDS: a small transformer answers one request after another, batch 1, and reads each result.

Prints "ready" after a warm-up. For each line on standard input it measures for SECONDS and prints the requests per
second and a sum of the last result, which is the same in every run.
"""
import os
import sys
import time

import torch


def main():
    seconds = float(sys.argv[1])
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda().half().eval()
    request = torch.randn(1, 64, 256, device='cuda').half()
    with torch.no_grad():
        for _ in range(20):
            model(request)
        torch.cuda.synchronize()
        print('ready', flush=True)
        for _ in sys.stdin:
            count, begin = 0, time.monotonic()
            while time.monotonic() - begin < seconds:
                result = model(request).sum().item()
                count += 1
            took = time.monotonic() - begin
            print(f'{count / took:.1f} {result:.3f}', flush=True)
    # The end of the interpreter takes as long as a measurement.
    os._exit(0)


main()
