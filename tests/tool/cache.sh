#!/bin/sh
# SPDX-License-Identifier: MIT
# hdjit cache: what its commands print, remove and explain.
. "${abs_top_srcdir:-.}/tests/tool/lib.sh"

expect 0 '' "the folder is printed" "$HDJIT" cache path
says "^$scratch/cache\$" "as HDRT_CACHE_DIR has it"
expect 1 'there is no cache: ' "without a folder there is no path" "$HDJIT" cache path --cache-dir=off
expect 0 '' "nothing there yet is no error: stats" "$HDJIT" cache stats
says '^size  *0 bytes of at most 1\.0 GiB, 0 files' "and the sizes are 0"
for command in list verify trim clear; do
    expect 0 '' "nor for $command" "$HDJIT" cache $command
done
[ ! -e cache ]
result $? "and none of them makes the folder"
expect 0 '' "the limit is the environment's" env HDRT_CACHE_LIMIT=512M "$HDJIT" cache stats
says 'of at most 512\.0 MiB' "and shown"
expect 0 '' "without a cache stats says so" env HDRT_CACHE_DIR=off "$HDJIT" cache stats
says '^folder  *none' "in its first line"

mkdir open
chmod 777 open
expect 0 'open: not used: .*written by other users' "a folder that is refused is a line" \
    env HDRT_CACHE_DIR="$PWD/open" "$HDJIT" cache path

printf '#include "h.h"\nextern "C" __global__ void one(int *x) { *x = N; }\n' >one.cu
echo '#define N 1' >h.h
have_compiler clang || {
    skip "the cache in use" "there is no clang (Debian: clang-19)"
    finish
}
one() { # $1: command of cache or "compile", then options
    verb=$1
    shift
    if [ "$verb" = compile ]; then
        "$HDJIT" compile one.cu -o one.ptx -arch=sm_80 --compiler=clang "$@"
    else
        "$HDJIT" cache explain one.cu -arch=sm_80 --compiler=clang "$@"
    fi
}

expect 0 '' "a new source is explained" one explain
says 'one\.cu: would be compiled: this source was never compiled like this' "as new"
[ ! -e one.ptx ]
result $? "and nothing is compiled"
one compile 2>err
expect 0 '' "after its compile" one explain
says '^one\.cu: found: no compiler would run' "it would be found"
image=$(sed -n 's/^image  *//p' out)
[ -f "$image" ]
result $? "in a file that is named and there"
says '^last compile because this source was never' "and why it was compiled is told"
expect 0 '' "another option" one explain -DX=2
says "option: '-DX=2' now, none before" "is named"
expect 0 '' "another target" one explain -arch=sm_75
says "target: 'sm_80' before, 'sm_75' now" "is named, with both"
sed -i 's/= N/= N + 0/' one.cu
expect 0 '' "another source" one explain
says '^  source' "is told"
sed -i 's/= N + 0/= N/' one.cu
expect 0 '' "undone" one explain
says ': found' "is found again"
echo '#define N 2' >h.h
expect 0 '' "another header" one explain
says "/h\.h: has other contents" "is named"
rm h.h
expect 0 '' "a header that is gone" one explain
says "/h\.h: is no longer there" "is named"
mkdir first
echo '#define N 3' >h.h
one compile -I first -I . 2>err
cp one.cu first/two.cu
printf '#include <h.h>\nextern "C" __global__ void one(int *x) { *x = N; }\n' >one.cu
one compile -I first -I . 2>err
echo '#define N 4' >first/h.h
expect 0 '' "a header that now shadows another" one explain -I first -I .
says "/first/h\.h: was not there" "is named"
rm first/h.h
expect 0 '' "and when it is gone" one explain -I first -I .
says ': found' "the old code is found again"
expect 0 '' "the JSON" one explain -DX=2 --json
says '"hit": false' "has the result"
says '"now": "-DX=2"' "and the difference"
expect 1 'none\.cu' "a source that is not there is named" "$HDJIT" cache explain none.cu -arch=sm_80
expect 2 'zulu' "an option that the compiler does not take is named" one explain --compiler-option=--zulu
"$HDJIT" cache explain - -arch=sm_80 --compiler=clang <one.cu >out 2>err
says '^<stdin>: would be compiled' "standard input is a source too"
if soft; then
    expect 0 '' "as a program would look" "$HDJIT" cache explain one.cu -I . --for-device
    says 'one\.cu: would be compiled' "it is not there yet"
    "$HDJIT" run one.cu one -I . --grid 1 --block 1 out:x:4 >out 2>err
    expect 0 '' "after its run" "$HDJIT" cache explain one.cu -I . --for-device
    says 'one\.cu: found' "it would be found"
fi

expect 0 '' "the code is listed" "$HDJIT" cache list
says "^[0-9]{4}-[0-9][0-9]-[0-9][0-9] .* sm_80 .*/one\.cu -I[^ ]*/first -I[^ ]*/\.: one\$" "with target, source, options and kernels"
[ "$(wc -l <out)" -ge 3 ]
result $? "one line for each"
expect 0 '' "as JSON, too" "$HDJIT" cache list --json
says '"kind": "manifest"' "with the manifests"
expect 0 '' "the counters" "$HDJIT" cache stats
says '^compiles  *[1-9]' "have the compiles"
says '^ *[1-9][0-9]*   this source was never compiled like this' "and their reasons"
expect 0 '' "as JSON, too" "$HDJIT" cache stats --json
says '"HDRT_CACHE_NEW": [1-9]' "with all the reasons"
expect 0 '' "and are set to zero" "$HDJIT" cache stats --zero
"$HDJIT" cache stats >out 2>err
says '^compiles  *0 ' "after that they are 0"

expect 0 '' "all files are good" "$HDJIT" cache verify
says ': 0 bad, 0 removed$' "and counted"
printf 'x' | dd of="$image" bs=1 seek=100 conv=notrunc 2>/dev/null
expect 1 '' "a damaged one is exit 1" "$HDJIT" cache verify
says "^$image: the entry's digest does not fit its bytes" "and named"
expect 1 '' "as JSON, too" "$HDJIT" cache verify --json
says '"bad_files": 1' "with its number"
expect 0 '' "it can be removed" "$HDJIT" cache verify --repair
says ': 1 bad, 1 removed$' "which is told"
expect 0 '' "and then all is good" "$HDJIT" cache verify
says ': 0 bad, 0 removed$' "again"
before=$("$HDJIT" cache list | wc -l)
expect 0 '' "trimming to a size" "$HDJIT" cache trim --max-size=4K
says '^removed [1-9][0-9]* of [1-9][0-9]* files' "removes files"
[ "$("$HDJIT" cache list | wc -l)" -lt "$before" ]
result $? "of code"
one compile -I . 2>err
expect 0 '' "trimming by age" "$HDJIT" cache trim --max-age=1w
says '^removed 0 of' "leaves what is new"
# libdevice is a file like others: what is in it counts, where it is linked, and nothing else of it. One of our own.
clang=
for candidate in clang-19 clang clang-18 clang-17 clang-16 clang-15 clang-14; do
    command -v $candidate >/dev/null 2>&1 && { clang=$candidate; break; }
done
make_libdevice() { # $1: what erff gives
    mkdir -p cuda/nvvm/libdevice
    echo "float __nv_erff(float x) { return x + $1; }" |
        $clang --target=nvptx64-nvidia-cuda -O1 -emit-llvm -c -x c - -o cuda/nvvm/libdevice/libdevice.10.bc 2>/dev/null
}
echo 'extern "C" __global__ void e(float *x) { *x = erff(*x); }' >e.cu
e() {
    verb=$1
    shift
    case $verb in
    compile) CUDA_HOME=$PWD/cuda "$HDJIT" compile e.cu -o e.ptx -arch=sm_80 --compiler=clang ;;
    *) CUDA_HOME=$PWD/cuda "$HDJIT" cache explain "$@" -arch=sm_80 --compiler=clang ;;
    esac
}
if make_libdevice 3 && e compile 2>err; then
    touch -d '2 hours ago' cuda/nvvm/libdevice/libdevice.10.bc
    e compile
    cp e.ptx first.ptx
    expect 0 '' "libdevice with another time" e explain e.cu
    says '^e\.cu: found' "is the same"
    make_libdevice 4
    touch -d '2 hours ago' cuda/nvvm/libdevice/libdevice.10.bc
    expect 0 '' "with other contents, of the same size and time" e explain e.cu
    says 'libdevice\.10\.bc: has other contents' "it is not"
    e compile
    ! cmp -s e.ptx first.ptx
    result $? "and other code comes of it"
    make_libdevice 3
    expect 0 '' "as it was" e explain e.cu
    says '^e\.cu: found' "the old code is there"
    CUDA_HOME=$PWD/cuda "$HDJIT" compile one.cu -I . -o one.ptx -arch=sm_80 --compiler=clang 2>err
    make_libdevice 5
    expect 0 '' "where it is not linked" e explain one.cu -I .
    says '^one\.cu: found' "its contents do not count"
else
    skip "libdevice" "this clang makes no code for NVIDIA GPUs"
fi
expect 0 '' "clearing" "$HDJIT" cache clear
[ -z "$("$HDJIT" cache list)" ]
result $? "removes all code"
expect 0 '' "and the next compile works" one compile -I .
finish
