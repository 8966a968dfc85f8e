#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CuPy's warm start, to be set beside that of tests/bench/warm on the same machine in the same run.

    python3 warm_cupy.py [--processes=20] [--warm=PATH-OF-warm]

Each process is fresh and has a filled cache; its time goes from asking for the module to having the kernel, the
context being there already, as in tests/bench/warm. With --warm that program runs with --driver=cuda right after, and
the ratio of the fastest to the fastest is printed.
"""
import os
import subprocess
import sys
import tempfile

ONE = r"""
import time
import cupy
cupy.cuda.Device(0).use()
cupy.cuda.runtime.free(0)
source = '''
extern "C" __global__ void kernel(float *p, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = a * p[i];
}
'''
began = time.perf_counter()
kernel = cupy.RawModule(code=source).get_function("kernel")
print((time.perf_counter() - began) * 1e3)
"""


def option(name, default):
    for argument in sys.argv[1:]:
        if argument.startswith("--%s=" % name):
            return argument.split("=", 1)[1]
    return default


def measure(cache):
    environment = dict(os.environ, CUPY_CACHE_DIR=cache)
    output = subprocess.run([sys.executable, "-c", ONE], env=environment, check=True, capture_output=True, text=True)
    return float(output.stdout)


def main():
    processes = int(option("processes", "20"))
    warm = option("warm", None)
    with tempfile.TemporaryDirectory() as cache:
        cold = measure(cache)
        times = sorted(measure(cache) for _ in range(processes))
    print("CuPy, no header              %8.3f ms  (slowest of %d: %.3f; cold: %.1f)" % (times[0], processes, times[-1], cold))
    if not warm:
        return 0
    ours = subprocess.run([warm, "--driver=cuda", "--processes=%d" % processes], check=True, capture_output=True, text=True)
    print(ours.stdout, end="")
    fastest = float(ours.stdout.splitlines()[0].split("ms")[0].split()[-1])
    print("libhdrt is %.1f times as fast" % (times[0] / fastest))
    return 0


if __name__ == "__main__":
    sys.exit(main())
