#!/bin/sh
# SPDX-License-Identifier: MIT
# HDRT_RECORD and hdjit precompile: what an application compiled, compiled again into a cache that is shipped.
. "${abs_top_srcdir:-.}/tests/tool/lib.sh"

expect 1 'none: cannot be opened' "a list that is not there is named" "$HDJIT" precompile none --into ship
echo nonsense >bad
expect 1 'bad:1:[0-9]*: is no line of HDRT_RECORD' "a line that is no JSON is named" "$HDJIT" precompile bad --into ship
printf '\n{"version":2}\n' >bad
expect 1 'bad:2: is of no version' "so is one of another version" "$HDJIT" precompile bad --into ship
echo '{"version":1,"name":"x"}' >bad
expect 1 'bad:1: is no line of HDRT_RECORD: a member is missing' "and one that lacks something" \
    "$HDJIT" precompile bad --into ship
: >nothing
expect 0 '' "an empty list is no error" "$HDJIT" precompile nothing --into ship
says '^0 compiled, 0 there already, 0 failed: ' "and nothing to do"

soft && have_compiler clang || {
    skip "recording and compiling again" "that takes the soft driver and clang"
    finish
}
mkdir app 'app/in clude'
echo '#define N 5' >'app/in clude/n.h'
printf '#include "n.h"\nextern "C" __global__ void one(int *x) { *x = N; }\n' >app/one.cu
printf 'template <int N> __global__ void two(int *x) { *x = N; }\n' >app/two.cu
run() { # with HDRT_CACHE_DIR and so on
    (cd app && "$HDJIT" run one.cu one -I 'in clude' --grid 1 --block 1 out:../x:4 &&
        "$HDJIT" run two.cu 'two<3>' -x 'two<3>' --grid 1 --block 1 out:../y:4)
}
HDRT_RECORD=$scratch/list run >out 2>err
result $? "an application runs with HDRT_RECORD"
[ "$(wc -l <list)" -eq 2 ]
result $? "and each of its compiles is a line"
expect 0 '' "the list is compiled" "$HDJIT" precompile list --into ship -j2
says "^2 compiled, 0 there already, 0 failed: $scratch/ship\$" "all of it"
expect 0 '' "once more" "$HDJIT" precompile list --into ship
says '^0 compiled, 2 there already, 0 failed' "it is all there"
(
    HDRT_CACHE_DIR=$scratch/fresh HDRT_CACHE_READ_ONLY=$scratch/ship
    export HDRT_CACHE_DIR HDRT_CACHE_READ_ONLY
    HDRT_LOG=debug
    export HDRT_LOG
    run >out 2>err
)
result $? "the application runs with the shipped cache and an empty one of its own"
! grep -q 'compile worker' err
result $? "and starts no compiler"
grep 'not from the cache' err | sed 's/^/# /'
expect 0 '' "for other targets" "$HDJIT" precompile list --into ship -arch=sm_75,sm_80
says '^4 compiled' "all of it for each"
rm app/two.cu
expect 1 'two\.cu' "a source that is gone is named" "$HDJIT" precompile list --into ship2
says '^1 compiled, 0 there already, 1 failed' "and the others are compiled"
mv app app2
expect 1 "its folder '.*/app' cannot be entered" "so is a folder" "$HDJIT" precompile list --into ship3
finish
