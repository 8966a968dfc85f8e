#!/bin/sh
# SPDX-License-Identifier: MIT
# hdjit pipe: sizes around the batch, slow, vanished and full ends, statistics, arguments.
. "${abs_top_srcdir:-.}/tests/tool/lib.sh"
need_compiler "kernels from source"

upper=$top/kernels/upper.cu
seq 1 20000 | sed 's/.*/line & of a text with UPPER and lower case letters/' >text
bytes=$(wc -c <text)
upper_case() {
    LC_ALL=C tr a-z A-Z
}

for size in 0 1 4095 4096 4097 8192 12288 12289 16385; do
    head -c $size text >in
    upper_case <in >want
    for depth in 1 2 3; do
        "$HDJIT" pipe "$upper" upper --batch=4K --depth=$depth <in >got 2>err && [ ! -s err ] && cmp -s got want
        result $? "$size bytes in batches of 4096, $depth slots"
    done
    cat in | "$HDJIT" pipe "$upper" upper --batch=4K 2>err | cat >got
    same got want "$size bytes through pipes"
done
upper_case <text >want
expect 0 '' "a whole text, default batch" "$HDJIT" pipe "$upper" upper <text
same out want "byte for byte"
(head -c 100 text; sleep 0.3; tail -c +101 text) | "$HDJIT" pipe --batch=1K "$upper" upper 2>err >out
same out want "a slow writer"
"$HDJIT" pipe --batch=1K "$upper" upper <text 2>err | (sleep 0.3; cat) >out
same out want "a slow reader"
"$HDJIT" pipe "$upper" upper --batch=1000 --block=32 --grid=100,1,1 <text >out 2>err
same out want "a block and a grid of one's own"
"$HDJIT" pipe "$upper" upper --batch=1000 --block=8,4 <text >out 2>err
[ $? -eq 0 ] && [ "$(wc -c <out)" -eq "$bytes" ]
result $? "a block of two dimensions"

"$HDJIT" pipe "$top/kernels/xor.cu" xor_bytes u32:0xa55a1234 <text 2>err |
    "$HDJIT" pipe "$top/kernels/xor.cu" xor_bytes u32:0xa55a1234 >out 2>>err
same out text "xor twice is nothing, with an argument"
"$HDJIT" compile "$upper" -o upper.ptx -arch=sm_80 2>err
expect 0 '' "PTX as the file" "$HDJIT" pipe upper.ptx upper <text
same out want "byte for byte"

cat >more.cu <<'END'
__device__ unsigned char add;
extern "C" __global__ void count(const unsigned char *in, unsigned char *out, unsigned long long n, unsigned *bins,
                                 const unsigned char *map)
{
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&bins[in[i]], 1);
        out[i] = map[in[i]];
    }
}
extern "C" __global__ void says(const unsigned char *in, unsigned char *out, unsigned long long n)
{
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i == 0)
        printf("a batch of %llu\n", n);
    if (i < n)
        out[i] = in[i] + add;
}
extern "C" __global__ void fault(const unsigned char *in, unsigned char *out, unsigned long long n)
{
    out[1 << 30] = in[0];
}
extern "C" __global__ void other(int a, float b) {}
END
i=0
while [ $i -lt 256 ]; do
    printf "\\$(printf %03o $(((i + 1) % 256)))"
    i=$((i + 1))
done >map
expect 0 '' "arguments that are files" "$HDJIT" pipe more.cu count --batch=64K out:bins:1024 in:map <text
tr '\001-\377\000' '\000-\377' <out >back
same back text "in: is a table for every batch"
newlines=$(od -An -v -tu4 -j40 -N4 bins | tr -d ' ')
[ "$newlines" -eq 20000 ]
result $? "out: collects over all batches"
head -c 3000 text >in
"$HDJIT" pipe more.cu says --batch=1000 <in >out 2>err
same out in "a kernel that prints"
[ "$(grep -c '^a batch of 1000$' err)" -eq 3 ]
result $? "prints to standard error"
printf '\001' >one
"$HDJIT" pipe more.cu says --set add=one <in 2>err | tr '\001-\377\000' '\000-\377' >out
same out in "--set fills a variable"

expect 1 'pipe passes' "a kernel of another form is a failure, before any input" \
    "$HDJIT" pipe more.cu other i32:1 </dev/null
expect 1 'count.*upper|upper' "a kernel that is not there: the message has those that are" \
    "$HDJIT" pipe "$upper" lower </dev/null
expect 1 'upper.*1024' "too large a block is a failure" "$HDJIT" pipe "$upper" upper --block=2000 <in
! grep -q 'pipe passes' err
result $? "and no word of arguments, which fit"
expect 1 'bytes of shared memory' "too much shared memory is a failure" "$HDJIT" pipe "$upper" upper --shared=16M <in
! grep -q 'pipe passes' err
result $? "and no word of arguments there"
expect 1 'pipe passes' "an argument too many has the word" "$HDJIT" pipe "$upper" upper u32:1 <in
expect 0 'the grid 0,1,1 has no blocks' "a zero grid is said" "$HDJIT" pipe "$upper" upper --grid=0 <in
expect 1 'fault|batch' "a fault is a failure, and ends" timeout 30 "$HDJIT" pipe more.cu fault --batch=1K <text
if soft; then
    expect 2 "NVRTC's output is for NVIDIA GPUs only" "NVRTC for the soft driver is bad usage, with the reason" \
        "$HDJIT" pipe "$upper" upper --compiler=nvrtc <in
fi

# The ends.
{ "$HDJIT" pipe "$upper" upper --batch=4K <text 2>err; echo $? >code; } | head -c 1000 >out
head -c 1000 want >want.head
same out want.head "a reader that has enough"
[ "$(cat code)" -eq 0 ] && [ ! -s err ]
result $? "ends it silently"
mkfifo feed
{ timeout 30 "$HDJIT" pipe "$upper" upper <feed 2>err; echo $? >code; } | true &
exec 7>feed
wait $!
exec 7>&-
tries=0
while [ ! -s code ] && [ $tries -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
[ "$(cat code)" -eq 0 ] && [ ! -s err ]
result $? "even while it waits for input"
if [ -w /dev/full ]; then
    "$HDJIT" pipe "$upper" upper <text >/dev/full 2>err
    [ $? -eq 1 ] && grep -q 'standard output: cannot be written: No space' err
    result $? "a full disk is a failure with a message"
else
    skip "a full disk is a failure with a message" "there is no /dev/full"
fi
"$HDJIT" pipe "$upper" upper <text >&- 2>err
[ $? -eq 1 ] && grep -q 'standard output: cannot be written' err
result $? "a closed standard output is a failure with a message"
"$HDJIT" pipe "$upper" upper <&- >out 2>err
[ $? -eq 1 ] && grep -q 'standard input: cannot be read' err
result $? "a closed standard input too"
"$HDJIT" pipe "$upper" upper <"$scratch" >out 2>err
[ $? -eq 1 ] && grep -q 'standard input: cannot be read: Is a directory' err
result $? "and a folder as standard input"

# Statistics.
"$HDJIT" pipe "$upper" upper --batch=64K --stats <text >out 2>err
same out want "with --stats the same bytes"
for line in "^bytes  *$bytes in " '^seconds  *[0-9.]+$' '^GB/s  *[0-9.]+$' '^device part  *[0-9.]+ s' \
    '^copy in  *[0-9.]+ s' '^kernel  *[0-9.]+ s' '^copy out  *[0-9.]+ s' '^timeline of batches [0-9]+ to [0-9]+' \
    '^  copy in  \|[ 0-9]{72}\|$' '^  kernel   \|[ 0-9]{72}\|$' '^  copy out \|[ 0-9]{72}\|$'; do
    grep -Eq "$line" err
    result $? "--stats has a line like '$line'"
done
expect 0 '^bytes  *0 in 0 batches' "--stats of nothing" "$HDJIT" pipe "$upper" upper --stats </dev/null
expect 0 '^ratio  *[0-9.]+ = ' "--measure needs no input" "$HDJIT" pipe "$upper" upper --measure=1M --batch=64K
grep -q '^bytes  *1048576 in 16 batches' err && [ ! -s out ]
result $? "and writes none"

# Memory does not grow with the input: the same peak after 2 and after 35 megabytes.
peak() {
    sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$pid/status" 2>/dev/null
}
feed() { # $1: how often the text
    i=0
    while [ $i -lt "$1" ]; do
        cat text
        i=$((i + 1))
    done >&7
}
if sanitized; then
    skip "memory stays flat" "a sanitizer keeps freed memory"
else
    "$HDJIT" pipe "$top/kernels/xor.cu" xor_bytes u32:0 --batch=64K <feed >/dev/null 2>err &
    pid=$!
    exec 7>feed
    feed 2
    before=$(peak)
    feed 30
    after=$(peak)
    exec 7>&-
    wait
    [ -n "$before" ] && [ -n "$after" ] && [ "$after" -le $((before + 4096)) ]
    result $? "memory stays flat: $before kB after 2 pieces, $after kB after 32"
fi

left=$(find . -name '.hdjit-*')
[ -z "$left" ]
result $? "no temporary file is left"
finish
