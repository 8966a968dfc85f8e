#!/bin/sh
# SPDX-License-Identifier: MIT
# hdjit run: arguments of every kind, files, .npy, variables, repeats, and what cannot be launched.
. "${abs_top_srcdir:-.}/tests/tool/lib.sh"
need_compiler "running kernels from source"

cat >kernels.cu <<'END'
__device__ int table[4];
__constant__ int factor;
extern "C" __global__ void numbers(int a, unsigned b, long long c, unsigned long long d, float e, double f, void *out)
{
    *(int *)out = a, ((unsigned *)out)[1] = b, ((long long *)out)[1] = c, ((unsigned long long *)out)[2] = d;
    ((float *)out)[6] = e, ((double *)out)[4] = f;
}
extern "C" __global__ void add(const unsigned char *in, unsigned char *inout, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        inout[i] += in[i];
}
extern "C" __global__ void place(unsigned *out)
{
    unsigned i = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned block = blockIdx.x << 8 | blockIdx.y << 4 | blockIdx.z;
    unsigned thread = threadIdx.x << 8 | threadIdx.y << 4 | threadIdx.z;
    out[i * threads + t] = block << 12 | thread;
}
extern "C" __global__ void variables(int *out)
{
    out[threadIdx.x] = table[threadIdx.x] * factor;
    table[threadIdx.x] = 0;
}
extern "C" __global__ void shared(unsigned char *out, unsigned n)
{
    extern __shared__ unsigned char memory[];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        memory[i] = (unsigned char)i;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = memory[n - 1 - i];
}
extern "C" __global__ void says(int *out) { printf("the kernel says %d\n", 42), *out = 1; }
extern "C" __global__ void none() {}
extern "C" __global__ void outside(int *out) { out[1 << 28] = 1; }
END
hex() {
    od -An -v -tx1 "$1" | tr -d ' \n'
}
run() { # $1: kernel, then more words
    kernel=$1
    shift
    "$HDJIT" run kernels.cu "$kernel" --grid 1 --block 1 "$@"
}

# Numbers of every kind, at their limits.
expect 0 '' "numbers of every kind" \
    run numbers i32:-2 u32:0xfffffffe i64:-3 u64:18446744073709551615 f32:1.5 f64:-0.1 out:n:40
[ "$(hex n)" = feffffff"feffffff"fdffffffffffffff"ffffffffffffffff"0000c03f00000000"9a9999999999b9bf" ]
result $? "come to the kernel as they are"
expect 0 '' "numbers at their limits" \
    run numbers i32:-2147483648 u32:4294967295 i64:-9223372036854775808 u64:0 f32:inf \
    f64:-inf out:n:40
[ "$(hex n)" = 00000080ffffffff"0000000000000080"0000000000000000"0000807f00000000"000000000000f0ff ]
result $? "come to the kernel as they are"
for word in i32:2147483648 i32:-2147483649 i32:1.0 i32: i32:x 'i32: 1' i32:1e3 i32:0x u32:-1 u32:4294967296 \
    i64:9223372036854775808 i64:1L u64:18446744073709551616 u64:+-1 f32:1e39 f32:1e-60 f32: f32:one 'f32: 1' f64:1e400 \
    f64:1.0f; do
    expect 2 "^hdjit: $(printf %s "$word" | sed 's/[+.]/\\&/g'): expected " "'$word' is bad usage" run numbers "$word"
done
for word in 1 i8:1 in: inout: out: out:x out:x: out::4 out:x:4.0 out:x:-4 out:x:4T; do
    expect 2 "^hdjit: '?$word'?.*expected|missing" "'$word' is bad usage" run numbers "$word"
done
expect 2 'out:x:0: 0 bytes: expected 1 or more' "an out: of 0 bytes is bad usage" run says out:x:0

# Files.
printf '\001\002\003\004' >a
printf '\020\020\020\020' >b
cp a a.copy
expect 0 '' "in: and inout:" "$HDJIT" run --block=4 kernels.cu --grid=1 add in:a inout:b u32:4
[ "$(hex b)" = 11121314 ]
result $? "inout: has what the kernel left there"
same a a.copy "in: is as it was"
expect 0 '' "options behind the arguments" "$HDJIT" run kernels.cu add in:a inout:b u32:4 --grid=2 --block=2,1,1
[ "$(hex b)" = 12141618 ]
result $? "have their effect"
mkdir 'odd: folder'
cp a 'odd: folder/ä "b" c'
expect 0 '' "files with odd names" "$HDJIT" run kernels.cu add 'in:odd: folder/ä "b" c' 'out:odd: folder/x:y:4' u32:4 \
    --grid=1 --block=4
same 'odd: folder/x:y' a "out: begins as zeros, and its name may have colons"
"$HDJIT" run kernels.cu add in:- out:-:4 u32:4 --grid=1 --block=4 <a >out 2>err
same out a "- is standard input and output"
cp b link.target
ln -s link.target link
chmod 640 link.target
expect 0 '' "a link as a result" "$HDJIT" run kernels.cu add in:a out:link:4 u32:4 --grid=1 --block=4
[ -L link ] && cmp -s link.target a && [ "$(stat -c %a link.target)" = 640 ]
result $? "stays a link, and its file keeps its mode"
expect 1 'gone: cannot be opened: No such file' "an input that is not there is a failure" run add in:gone out:x:4 u32:4
[ ! -e x ]
result $? "and makes no result"
: >empty
expect 1 'empty: is empty: .*expected 1 byte or more' "an empty input is a failure" run add in:empty out:x:4 u32:4
expect 1 'odd: folder: cannot be read: Is a directory' "a folder as an input is a failure" \
    run add 'in:odd: folder' out:x:4 u32:4
if [ "$(id -u)" -ne 0 ]; then
    cp a secret
    chmod 0 secret
    expect 1 'secret: cannot be opened: Permission denied' "an unreadable input is a failure" \
        run add in:secret out:x:4 u32:4
    chmod 444 secret
    expect 1 'secret: cannot be written: Permission denied' "a file that may not be written is one too" \
        run add in:a out:secret:4 u32:4
else
    skip "an unreadable input is a failure" "root reads everything"
    skip "a file that may not be written is one too" "root writes everything"
fi
expect 1 'nowhere/x: cannot be written: No such file' "a result in no folder is a failure" \
    run add in:a out:nowhere/x:4 u32:4
expect 2 'use the same file' "two results for one file are bad usage" run add inout:a out:a:4 u32:4
expect 2 'source and an argument cannot both be' "two readers of standard input are bad usage" \
    "$HDJIT" run - add in:- out:x:4 u32:4 --grid 1 --block 1
"$HDJIT" run - add in:a out:x:4 u32:4 --grid 1 --block 4 <kernels.cu 2>err && cmp -s x a
result $? "the source from standard input"

# .npy keeps type and shape.
npy() { # $1: version, $2: header, then the data in printf's form
    length=$((${#2} + 1))
    printf "\\223NUMPY\\00$1\\000"
    printf "\\$(printf %03o $((length % 256)))\\$(printf %03o $((length / 256)))"
    [ "$1" = 1 ] || printf '\000\000'
    printf '%s\n' "$2"
    printf "$3"
}
for version in 1 2 3; do
    npy $version "{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2), }" '\001\002\003\004' >in$version.npy
    npy $version "{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2), }" '\002\004\006\010' >want.npy
    cp in$version.npy x.npy
    expect 0 '' ".npy version $version" \
        "$HDJIT" run kernels.cu add in:in$version.npy inout:x.npy u32:4 --grid=1 --block=4
    same x.npy want.npy "keeps its type and shape"
done
cp in1.npy x.npy
expect 0 '' "out: over a .npy of the same size" "$HDJIT" run kernels.cu add in:a out:x.npy:4 u32:4 --grid=1 --block=4
same x.npy in1.npy "keeps its type and shape"
rm x.npy
expect 0 '' "a new .npy" "$HDJIT" run kernels.cu add in:a out:x.npy:4 u32:4 --grid=1 --block=4
grep -aq "'descr': '|u1', 'fortran_order': False, 'shape': (4,)" x.npy
result $? "is an array of bytes"
expect 0 '' "and reads again" "$HDJIT" run kernels.cu add in:x.npy out:y:4 u32:4 --grid=1 --block=4
same y a "as the same bytes"
bad_npy() { # $1: what is wrong, $2: header
    npy 1 "$2" '\001\002\003\004' >bad.npy
    expect 1 "bad.npy: is no .npy file to use: .*$1" "a .npy that is wrong: $2" run add in:bad.npy out:x:4 u32:4
}
bad_npy 'cut off' "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }"
bad_npy 'behind the array' "{'descr': '<u2', 'fortran_order': False, 'shape': (1,), }"
bad_npy 'big-endian' "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }"
bad_npy 'Python objects' "{'descr': '|O8', 'fortran_order': False, 'shape': (2,), }"
bad_npy 'structured' "{'descr': [('x', '<u2')], 'fortran_order': False, 'shape': (2,), }"
bad_npy 'not understood' "{'descr': 'u2', 'fortran_order': False, 'shape': (2,), }"
bad_npy 'malformed' "{'descr': '<u2', 'shape': (2,), }"
bad_npy 'malformed' "{'descr': '<u2', 'fortran_order': Maybe, 'shape': (2,), }"
bad_npy 'malformed' "{'descr': '<u2', 'fortran_order': False, 'shape': (-2,), }"
bad_npy 'malformed' "{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999, 99999999999), }"
bad_npy 'malformed' "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), 'more': 1}"
bad_npy 'malformed' "{'descr': '<u2"
printf '\223NUMPY\001\000\377\377{' >bad.npy
expect 1 'cut off in the header' "a .npy that ends in its header" run add in:bad.npy out:x:4 u32:4
printf 'no' >bad.npy
expect 1 'does not begin as' "a .npy that is none" run add in:bad.npy out:x:4 u32:4

# Geometry.
expect 0 '' "grids and blocks of three dimensions" \
    "$HDJIT" run kernels.cu place out:x:192 --grid 2,1,3 --block 2,4,1
[ "$(hex x | cut -c 1-32)" = 00000000000100001000000010010000 ] && [ "$(hex x | tail -c 8)" = 30211000 ]
result $? "are the kernel's"
expect 0 'the grid 0,1,1 has no blocks: the kernel does not run' "a zero grid is no error, and a line says so" \
    "$HDJIT" run kernels.cu add in:a inout:b u32:4 --grid 0 --block 4
expect 1 "no kernel 'gone' in '.*kernels.cu'; there: .*'add'" "a kernel that is not there is a failure" \
    "$HDJIT" run kernels.cu gone --grid 1 --block 1
expect 1 'numbers.*argument|numbers.*parameter' "too few arguments are a failure" run numbers i32:1
expect 1 'none.*argument|none.*parameter' "too many arguments are a failure" run none i32:1
expect 1 'add.*(parameter|argument) (2|3)|add.*n' "an argument of the wrong size is a failure" \
    run add in:a inout:b u64:4
expect 1 'add.*(float|integer)' "a float for an integer is a failure" run add in:a inout:b f32:4
expect 1 'numbers.*(float|integer)' "an integer for a float is a failure" \
    run numbers i32:1 u32:1 i64:1 u64:1 i32:1 f64:1 out:x:40
expect 1 'none.*1024' "too large a block is a failure" "$HDJIT" run kernels.cu none --grid 1 --block 1025
expect 1 'none.*65535' "too large a grid is a failure" "$HDJIT" run kernels.cu none --grid 1,65536 --block 1
expect 1 'none.*shared' "too much shared memory is a failure" \
    "$HDJIT" run kernels.cu none --grid 1 --block 1 --shared 1G
expect 0 '' "shared memory above the default" \
    "$HDJIT" run kernels.cu shared --grid 1 --block 64 --shared 100000 out:x:100000 u32:100000
[ "$(hex x | cut -c 1-4)" = 9f9e ] && [ "$(wc -c <x)" -eq 100000 ]
result $? "is there"
[ "$(hex b)" = 12141618 ]
result $? "all these failures left the files as they were"

# Kernels and code.
expect 1 'add.*variables|variables.*add' "a kernel that is not there: the message has those that are" run nothing
expect 0 '' "PTX to run" "$HDJIT" compile kernels.cu -o kernels.ptx -arch=sm_80
expect 0 '' "PTX runs" "$HDJIT" run kernels.ptx add in:a out:x:4 u32:4 --grid=1 --block=4
same x a "with the same result"
: >empty.ptx
expect 1 'empty.ptx: is empty' "empty PTX is a failure" "$HDJIT" run empty.ptx add --grid=1 --block=4
echo '.version 7.0 nonsense' >bad.ptx
expect 1 'bad.ptx: cannot be loaded' "PTX that is none is a failure" "$HDJIT" run bad.ptx add --grid=1 --block=4
printf '\177ELF' >bad.cubin
expect 1 'bad.cubin: cannot be loaded' "a cubin that is none is a failure" \
    "$HDJIT" run bad.cubin add --grid=1 --block=4
expect 3 'device 1 cannot be used' "a device that is not there is exit 3" run none --device=1
expect 3 'device 1 cannot be used' "and from the environment" \
    env HDRT_DEVICE=1 "$HDJIT" run kernels.cu none --grid=1 --block=1
if soft; then
    expect 2 "NVRTC's output is for NVIDIA GPUs only" "NVRTC for the soft driver is bad usage, with the reason" \
        run none --compiler=nvrtc
    expect 0 '' "an option wins over the environment" \
        env HDRT_DEVICE=1 HDRT_DRIVER=cuda "$HDJIT" run kernels.cu none --grid=1 --block=1 --device=0 --driver=soft
    expect 0 'taking the soft driver' "the choice of the soft driver is said" \
        env HDRT_DRIVER=auto CUDA_VISIBLE_DEVICES=-1 "$HDJIT" run kernels.cu none --grid=1 --block=1
    [ "$(wc -l <err)" -eq 1 ]
    result $? "in one line"
fi
cp b kept
expect 1 'outside' "a kernel that writes where it may not is a failure" run outside inout:b
same b kept "and the file is as it was"

# What a kernel prints.
expect 0 '' "a kernel's printf" run says out:x:4
grep -q '^the kernel says 42$' out
result $? "goes to standard output"
expect 0 'the kernel says 42' "unless results go there: then to standard error" run says out:-:4
[ "$(hex out)" = 01000000 ]
result $? "and the results are whole"

# Variables, and repeats that begin anew each time.
printf '\001\000\000\000\002\000\000\000\003\000\000\000\004\000\000\000' >table
printf '\003\000\000\000' >factor
expect 0 '' "--set fills globals and constants" \
    "$HDJIT" run kernels.cu variables --set table=table --set=factor=factor out:x:16 --grid 1 --block 4
[ "$(hex x)" = 0300000006000000090000000c000000 ]
result $? "and the kernel sees them"
expect 0 '' "--repeat" \
    "$HDJIT" run kernels.cu variables --set table=table --set=factor=factor out:x:16 --grid 1 --block 4 --repeat 3
[ "$(hex x)" = 0300000006000000090000000c000000 ]
result $? "restores variables"
grep -Eq '^variables: median kernel time [0-9.]+ us, 3 runs, fastest [0-9.]+ us, slowest [0-9.]+ us$' out
result $? "and prints the median kernel time"
printf '\020\020\020\020' >b
expect 0 '' "--repeat with inout:" "$HDJIT" run kernels.cu add in:a inout:b u32:4 --grid=1 --block=4 --repeat 4
[ "$(hex b)" = 11121314 ]
result $? "restores it before each"
expect 1 'has 16 bytes, the file 4' "a file of another size than the variable is a failure" \
    "$HDJIT" run kernels.cu variables --set table=factor out:x:16 --grid 1 --block 4
expect 1 'nothing' "a variable that is not there is a failure" \
    "$HDJIT" run kernels.cu variables --set nothing=factor out:x:16 --grid 1 --block 4

# With the code in the cache no compiler is needed, or started.
expect 0 '' "a kernel in the cache" run none --log=none
expect 0 '*' "runs again" run none --log=debug
! grep -Eqi 'starting (clang|hdrt-cc)|worker [0-9]+ started' err
result $? "without a compiler"
left=$(find . -name '.hdjit-*')
[ -z "$left" ]
result $? "no temporary file is left"
finish
