#!/bin/sh
# SPDX-License-Identifier: MIT
# The kernels' tests with every clang that is here, not only with the newest, which the library would choose.
programs='test_corpus test_corpus_algorithms test_corpus_numbers test_corpus_language test_halves test_groups'
count=0

for version in 14 15 16 17 18 19; do
    HDRT_CLANG=$(command -v "clang-$version") || continue
    export HDRT_CLANG
    for program in $programs; do
        count=$((count + 1))
        if said=$("tests/unit/$program" 2>&1) && printf '%s\n' "$said" | grep -q '^ok ' &&
            ! printf '%s\n' "$said" | grep -q '^not ok '; then
            echo "ok $count - $program with clang-$version"
        else
            echo "not ok $count - $program with clang-$version"
            printf '%s\n' "$said" | grep -v '^ok ' | sed 's/^/# /'
        fi
    done
done
if [ "$count" = 0 ]; then
    echo '1..0 # SKIP no clang-N is here'
else
    echo "1..$count"
fi
