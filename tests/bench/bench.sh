#!/bin/sh
# SPDX-License-Identifier: MIT
# hdrt-bench at tiny sizes on the soft driver: every benchmark runs, verifies its values and prints all of its rows.
set -u
bench=$abs_top_builddir/tests/bench/hdrt-bench
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
count=0
result() {
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else
        echo "not ok $count - $2"
        sed 's/^/# /' "$scratch/errors" | head -n 20
    fi
}

for name in launch wait queues latency threads copies; do
    "$bench" --driver=soft --smoke $name >"$scratch/out" 2>"$scratch/errors"
    result $? "$name works"
    [ "$(wc -l <"$scratch/out")" -ge 3 ]
    result $? "$name has rows"
done
"$bench" --driver=soft --smoke --json --check wait >"$scratch/out" 2>"$scratch/errors"
result $? "JSON works"
grep -q '"rows": \[' "$scratch/out" && [ "$(grep -c '"measure": .*"ours": [0-9.e+]*, "raw": [0-9.e+]*, "ratio"' "$scratch/out")" -eq 2 ]
result $? "JSON has both rows"
"$bench" --driver=soft --smoke nothing >"$scratch/out" 2>"$scratch/errors"
[ $? -eq 2 ] && grep -q "no benchmark 'nothing'" "$scratch/errors"
result $? "an unknown benchmark is named"
"$bench" --help >"$scratch/out" 2>"$scratch/errors" && grep -q -- '--check' "$scratch/out"
result $? "help lists the options"
echo "1..$count"
