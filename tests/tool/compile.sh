#!/bin/sh
# SPDX-License-Identifier: MIT
# hdjit compile: kinds, targets, streams, odd files and names, and everything that can be wrong with source or compiler.
. "${abs_top_srcdir:-.}/tests/tool/lib.sh"

kernel='extern "C" __global__ void one(int *x) { *x = 1; }'
printf '%s\n' "$kernel" >one.cu

# Without any compiler.
no_compiler() {
    "$HDJIT" "$@" --nvrtc="$scratch/no-nvrtc" --clang="$scratch/no-clang"
}
cp one.cu kept.ptx
expect 4 'no-clang' "no compiler at all is exit 4" no_compiler compile one.cu -o kept.ptx -arch=sm_80
same kept.ptx one.cu "and what was there stays"
expect 4 'one.cu' "for run too" no_compiler run one.cu one --grid 1 --block 1 out:x:4
expect 4 'one.cu' "for pipe too" no_compiler pipe one.cu one
expect 4 'no-nvrtc' "a cubin without NVRTC is exit 4" no_compiler compile one.cu -o one.cubin -arch=sm_80

have_compiler clang || {
    skip "compiling with clang" "there is no clang (Debian: clang-19)"
    finish
}

expect 0 '' "PTX by its ending" "$HDJIT" compile one.cu -o one.ptx -arch=sm_80
grep -q '^\.target sm_80' one.ptx && grep -q 'entry one' one.ptx
result $? "it is PTX for the target asked for"
expect 0 '' "options stand before the file too" "$HDJIT" --driver soft compile -arch sm_75 -o two.ptx one.cu
grep -q '^\.target sm_75' two.ptx
result $? "for another target"
expect 0 '' "another ending is PTX from clang" "$HDJIT" compile one.cu -o one.out -arch=sm_80
same one.out one.ptx "and the same code"
expect 0 '' "--ptx in spite of the ending" "$HDJIT" compile one.cu --ptx -o one.cubin -arch=sm_80
same one.cubin one.ptx "gives PTX"
expect 0 '' "to standard output" "$HDJIT" compile one.cu -o - -arch=sm_80
same out one.ptx "the same code"
"$HDJIT" compile - -o stdin.ptx -arch=sm_80 <one.cu 2>err
result $? "from standard input"
grep -q 'entry one' stdin.ptx
result $? "the same kernel"

expect 0 '*' "without -arch, the soft driver's target" "$HDJIT" compile one.cu -o default.ptx
grep -q '^\.target sm_90' default.ptx || grep -q 'sm_' err
result $? "is its own, or a line says what it was lowered to"
expect 0 'compiling for sm_80' "without -arch and a device, sm_80, and a line says so" \
    env HDRT_DRIVER=auto CUDA_VISIBLE_DEVICES=-1 "$HDJIT" compile one.cu -o default.ptx --compiler=clang
grep -q '^\.target sm_80' default.ptx
result $? "and that is what it is"
expect 3 'the cuda driver cannot be used' "a driver asked for that is not there is exit 3" \
    env CUDA_VISIBLE_DEVICES=-1 "$HDJIT" compile one.cu -o default.ptx --driver=cuda
expect 3 'device 7 cannot be used' "so is a device" "$HDJIT" compile one.cu -o default.ptx --device=7
expect 2 'sm_1000' "a target that no compiler knows names it" "$HDJIT" compile one.cu -o x.ptx -arch=sm_1000
expect 2 'sandy' "a target of no such form names it" "$HDJIT" compile one.cu -o x.ptx -arch=sandy

cat >options.cu <<'END'
#if !defined(A) || A != 3 || defined(B)
#error the macros did not come through
#endif
#include "there.h"
extern "C" __global__ void one(int *x) { *x = THERE; }
END
mkdir 'folder with spaces'
echo '#define THERE 4' >'folder with spaces/there.h'
expect 0 '' "-I, -D, -U and -std come through" "$HDJIT" compile options.cu -o options.ptx -DA=3 -D B -U B \
    -I 'folder with spaces' -std=c++17 -lineinfo --use_fast_math -arch=sm_80
expect 1 'there.h' "a missing header is an error that names it" "$HDJIT" compile options.cu -o x.ptx -DA=3 -arch=sm_80
grep -Eq '^options\.cu:4:[0-9]+: error: ' err || grep -Eq '/options\.cu:4:[0-9]+: error: ' err
result $? "with file, line and column"
expect 2 'zulu' "an option that no compiler takes is bad usage and named" \
    "$HDJIT" compile one.cu -o x.ptx --compiler-option=--zulu -arch=sm_80
expect 2 'maxrregcount' "a value that the option does not take names it" \
    "$HDJIT" compile one.cu -o x.ptx --maxrregcount=many -arch=sm_80

printf 'extern "C" __global__ void k(int *x) {\n    *x = wrong;\n}\n' >wrong.cu
cp one.ptx kept.ptx
expect 1 'wrong\.cu:2:10: error: .*wrong' "an error has file, line and column" \
    "$HDJIT" compile wrong.cu -o kept.ptx -arch=sm_80
grep -q '^hdjit: wrong.cu does not compile$' err
result $? "and a last line says what did not compile"
same kept.ptx one.ptx "and what was there stays"
printf 'extern "C" __global__ void k(int *x) {\n#warning look here\n}\n' >warning.cu
expect 0 'warning\.cu:2:[0-9]+: warning: .*look here' "a warning is shown" \
    "$HDJIT" compile warning.cu -o x.ptx -arch=sm_80
expect 0 'warning\.cu:2:[0-9]+: warning: .*look here' "and again when the code comes from the cache" \
    "$HDJIT" compile warning.cu -o x.ptx -arch=sm_80

mkfifo pipe.h
printf '#include "pipe.h"\n%s\n' "$kernel" >includes.cu
expect 1 'pipe\.h' "a named pipe as a header is an error that names it" \
    timeout 30 "$HDJIT" compile includes.cu -o x.ptx -arch=sm_80
mkfifo pipe.cu
expect 1 'pipe\.cu' "a named pipe as a source is an error that names it" \
    timeout 30 "$HDJIT" compile pipe.cu -o x.ptx -arch=sm_80
expect 1 'none\.cu' "so is a source that is not there" "$HDJIT" compile none.cu -o x.ptx -arch=sm_80
expect 1 'folder with spaces' "and a folder" "$HDJIT" compile 'folder with spaces' -o x.ptx -arch=sm_80

printf '\357\273\277%s\n' "$kernel" >mark.cu
expect 0 '' "a byte-order mark is accepted" "$HDJIT" compile mark.cu -o x.ptx -arch=sm_80
printf 'extern "C" __global__ void one(int *x)\r\n{\r\n    *x = 1; // \\\r\n}\r\n}\r\n' >lines.cu
expect 0 '' "so are lines that end in CR LF" "$HDJIT" compile lines.cu -o x.ptx -arch=sm_80
for name in 'with spaces' "with 'quotes\"" 'größe' '-dash' 'a=b' 'semi;colon$HOME'; do
    mkdir -p "./$name"
    cp one.cu "./$name/$name.cu"
    expect 0 '' "a path with '$name' works" \
        "$HDJIT" compile -arch=sm_80 -o "./$name/$name.ptx" -- "./$name/$name.cu"
    [ -s "./$name/$name.ptx" ]
    result $? "and is written"
done
expect 1 'nowhere/x.ptx: cannot be written: No such file' "a folder that is not there is named" \
    "$HDJIT" compile one.cu -o nowhere/x.ptx -arch=sm_80
expect 1 'folder with spaces: cannot be written: Is a directory' "so is a folder as OUT" \
    "$HDJIT" compile one.cu -o 'folder with spaces' -arch=sm_80
if [ -w /dev/full ]; then
    expect 1 '/dev/full: cannot be written: No space' "a full disk is a failure" \
        "$HDJIT" compile one.cu -o /dev/full -arch=sm_80
fi
"$HDJIT" compile one.cu -o - -arch=sm_80 >&- 2>err
[ $? -eq 1 ] && grep -q 'standard output: cannot be written' err
result $? "no standard output is a failure"

# Compilers that misbehave.
fake() { # $1: name, $2: what it does when it is to compile
    printf '#!/bin/sh\ncase "$*" in *--version*) echo "clang version 19.0.0"; exit 0;; esac\n%s\n' "$2" >"$1"
    chmod +x "$1"
}
fake crash 'kill -SEGV $$'
fake hang 'exec sleep 1000'
fake ends 'exit 3'
fake parent 'echo $PPID >"$0.pid"; exec sleep 1000'
expect 1 'crash|signal|SEGV|Segmentation' "a compiler that crashes is a failure" \
    "$HDJIT" compile one.cu -o x.ptx -arch=sm_80 --clang=./crash --no-cache
expect 5 'did not finish within 500 ms' "a compiler that hangs is exit 5" \
    timeout 60 "$HDJIT" compile one.cu -o x.ptx -arch=sm_80 --clang=./hang --time-limit=0.5 --no-cache
expect 1 'one.cu' "a compiler that only fails is a failure" \
    "$HDJIT" compile one.cu -o x.ptx -arch=sm_80 --clang=./ends --no-cache
if sanitized; then
    skip "a compiler that runs out of memory is a failure" "there are no memory limits in a sanitizer build"
else
    expect 1 'memory' "a compiler that runs out of memory is a failure" \
        timeout 60 "$HDJIT" compile one.cu -o x.ptx -arch=sm_80 --memory-limit=48M --no-cache
fi
if sanitized || ! have_compiler clang; then
    skip "a memory limit of one byte is named" "that takes clang, and no sanitizer"
else
    expect 1 'ended under a memory limit of 1 bytes.*--memory-limit' "a memory limit of one byte is named" \
        timeout 60 "$HDJIT" compile one.cu -o x.ptx -arch=sm_80 --memory-limit=1 --no-cache --compiler=clang
fi
printf '#!/bin/sh\ncase "$*" in *--version*) exit 0;; esac\nexec cat /dev/zero\n' >endless
chmod +x endless
expect 1 "more than (2048|4096) bytes, the file size limit of this process" "a file size limit is named" \
    timeout 60 sh -c 'ulimit -f 4; exec "$0" compile one.cu -o x.ptx -arch=sm_80 --no-cache --clang=./endless' "$HDJIT"
(cat one.cu; yes '// padding' | head -n 1000) >long.cu
expect 1 "long.cu.*no memory object for the source: File too large" "and for a source that is too long for it" \
    timeout 60 sh -c 'ulimit -f 4; exec "$0" compile long.cu -o x.ptx -arch=sm_80 --no-cache --clang=./endless' "$HDJIT"

# The worker killed in the middle of a compile.
"$HDJIT" compile one.cu -o killed.ptx -arch=sm_80 --clang=./parent --no-cache 2>err &
tries=0
while [ ! -s parent.pid ] && [ $tries -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
kill -9 "$(cat parent.pid)" 2>/dev/null
result $? "the worker is there to be killed"
wait $!
[ $? -eq 1 ] && [ ! -e killed.ptx ] && grep -q 'one.cu' err
result $? "a worker killed in mid-compile is a failure"
expect 0 '' "and the next compile works" "$HDJIT" compile one.cu -o killed.ptx -arch=sm_80 --no-cache

left=$(find . -name '.hdjit-*')
[ -z "$left" ]
result $? "no temporary file is left"
finish
