#!/bin/sh
# SPDX-License-Identifier: MIT
# The kernels' tests with every clang that is here, not only with the newest, which the library would choose; for the
# device's own architecture and for the oldest.
newer='test_halves'
programs='test_corpus test_corpus_algorithms test_corpus_numbers test_corpus_language test_groups'
count=0

run() { # $1: program, $2: architecture, or nothing for the device's
    count=$((count + 1))
    if [ -n "$2" ]; then
        HDRT_TEST_ARCH=$2
        export HDRT_TEST_ARCH
    else
        unset HDRT_TEST_ARCH
    fi
    if said=$("tests/unit/$1" 2>&1) && printf '%s\n' "$said" | grep -q '^ok ' &&
        ! printf '%s\n' "$said" | grep -q '^not ok '; then
        echo "ok $count - $1 with clang-$version${2:+ for $2}"
    else
        echo "not ok $count - $1 with clang-$version${2:+ for $2}"
        printf '%s\n' "$said" | grep -v '^ok ' | sed 's/^/# /'
    fi
}

for version in 14 15 16 17 18 19; do
    HDRT_CLANG=$(command -v "clang-$version") || continue
    export HDRT_CLANG
    for program in $programs $newer; do
        run "$program" ''
    done
    for program in $programs; do
        run "$program" sm_70
    done
done
if [ "$count" = 0 ]; then
    echo '1..0 # SKIP no clang-N is here'
else
    echo "1..$count"
fi
