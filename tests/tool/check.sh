#!/bin/sh
# SPDX-License-Identifier: MIT
# hdjit run and pipe --check: a kernel of each kind of fault, what is said of it, and the exit code; and kernels that
# are in order.
. "${abs_top_srcdir:-.}/tests/tool/lib.sh"
need_compiler "kernels from source"

cat >faults.cu <<'END'
extern "C" __global__ void past(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i + 16] = in[i];
}
extern "C" __global__ void before(float *out)
{
    out[(int)threadIdx.x - 1] = 1;
}
extern "C" __global__ void odd(char *out)
{
    *(int *)(out + 2) = 1;
}
extern "C" __global__ void freed(float *out)
{
    float *mine = (float *)malloc(64);
    mine[0] = out[0];
    out[0] = mine[0];
    free(mine);
    out[1] = ((volatile float *)mine)[0];
}
extern "C" __global__ void tile(const float *in, float *out)
{
    __shared__ float values[64];
    if (threadIdx.x < 48)
        values[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    float mirrored = values[63 - threadIdx.x];
    out[threadIdx.x] = 2 * mirrored;
}
extern "C" __global__ void stuck(float *out)
{
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;" ::: "memory");
    else
        asm volatile("bar.sync 2, 64;" ::: "memory");
    out[threadIdx.x] = 1;
}
struct item {
    char letter;
    int number;
};
extern "C" __global__ void items(int *out)
{
    __shared__ item first[64], second[64];
    unsigned t = threadIdx.x;
    first[t].letter = (char)t;
    first[t].number = (int)t;
    __syncthreads();
    second[t] = first[63 - t];
    __syncthreads();
    out[t] = second[t].letter + second[t].number;
}
extern "C" __global__ void backwards(const unsigned char *in, unsigned char *out, unsigned long long n)
{
    __shared__ unsigned char piece[256];
    unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
    if (i < n)
        piece[threadIdx.x] = in[i];
    __syncthreads();
    if (i < n)
        out[i] = piece[255 - threadIdx.x] + 1;
}
END
head -c 256 /dev/zero >zeros
cp zeros kept
checked() { # what follows run --check=memory,race,init faults.cu
    "$HDJIT" run --driver=soft --check=memory,race,init --grid=1 --block=64 faults.cu "$@"
}

expect 2 'works with the soft driver only.*--driver=soft' "--check with another driver is bad usage" \
    "$HDJIT" run --driver=cuda --check=memory --grid=1 --block=1 faults.cu odd out:x:4
expect 2 "--check is 'memory,nonsense': 'nonsense' is no check: expected words out of memory, race and init" \
    "an unknown check is bad usage" "$HDJIT" run --check=memory,nonsense --grid=1 --block=1 faults.cu odd out:x:4
expect 2 "'' is no check" "and so is none between commas" "$HDJIT" run --check=memory, --grid=1 --block=1 faults.cu odd
expect 2 '--check=memory is not an option' "other commands have no checks" "$HDJIT" compile --check=memory faults.cu

# Kernels in order.
expect 0 '' "saxpy is clean" "$HDJIT" run --driver=soft --check=memory,race,init --grid=1 --block=64 \
    "$top/kernels/saxpy.cu" saxpy f32:2 in:zeros inout:kept u64:64
expect 0 '' "a structure with a gap may be copied" checked items out:x:256
LC_ALL=C tr a-z A-Z <"$top/README.md" >want
expect 0 '' "a pipe in order" \
    "$HDJIT" pipe --driver=soft --check=memory,race,init --batch=1K "$top/kernels/upper.cu" upper <"$top/README.md"
same out want "gives its output"

# Faults.
expect 1 "out of bounds: kernel 'past' at .*faults.cu:4 \(PTX line [0-9]+\), block \(0,0,0\) thread \(48,0,0\)" \
    "an overrun is reported" checked past in:zeros inout:kept i32:64
grep -q 'out of bounds write of 4 bytes at address 0x[0-9a-f]*: 0 bytes past allocation #[0-9]* of 256 bytes' err
result $? "with the place in the memory"
grep -q '^    it is the memory of argument 2, inout:kept$' err
result $? "and the argument"
grep -q '^hdjit: --check: 1 report$' err
result $? "and the number of reports"
same kept zeros "a run with reports leaves files as they were"
expect 1 "out of bounds: kernel 'before' at .*faults.cu:8 .*4 bytes before allocation" "an underrun is reported" \
    checked before inout:kept
expect 1 "misaligned: kernel 'odd' at .*faults.cu:12 .*misaligned write of 4 bytes" "a misaligned access is reported" \
    checked odd inout:kept
expect 1 "use after free: kernel 'freed' at .*faults.cu:20 .*byte 0 of allocation .*which was freed" \
    "a use after free is reported" checked freed inout:kept
expect 1 "uninitialised read: kernel 'tile' at .*faults.cu:28 .*thread \(0,0,0\): uses 4 bytes at 0xfc of shared" \
    "an uninitialised read is reported" checked tile in:zeros inout:kept
grep -q '^    the use is at .*faults.cu:29 (PTX line [0-9]*)$' err
result $? "and where the value is used"
same kept zeros "that too leaves files as they were"
expect 0 '' "without its check it is not looked for" \
    "$HDJIT" run --driver=soft --check=memory --grid=1 --block=64 faults.cu tile in:zeros inout:kept
expect 1 "deadlock: kernel 'stuck' .*32 threads of warp 0 wait at barrier 1.*faults.cu:34" "a deadlock is reported" \
    checked stuck inout:kept
grep -q '32 threads of warp 1 wait at barrier 2.*faults.cu:36' err
result $? "with all who wait"
expect 1 "uninitialised read: kernel 'backwards' at .*faults.cu:[0-9]+ " "a pipe's kernel is checked" \
    sh -c 'head -c 300 /dev/zero | "$1" pipe --driver=soft --check=init faults.cu backwards' sh "$HDJIT"
[ "$(wc -c <out)" -eq 300 ]
result $? "what it wrote is written"
finish
