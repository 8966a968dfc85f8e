#!/bin/sh
# SPDX-License-Identifier: MIT
# In a program that runs with more rights than its caller, the caller's environment decides nothing. Needs root, to
# make such a program.
probe=${abs_top_builddir:-.}/tests/unit/privileged_probe
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

skip() {
    echo "1..0 # SKIP $1"
    exit 0
}
[ -x "$probe" ] || skip "the tests were not built"
command -v setpriv >/dev/null || skip "setpriv (util-linux) is needed"
[ "$(id -u)" -eq 0 ] || skip "only root can make a set-user-id program for another user to run"
chmod 755 "$scratch"
cp "$probe" "$scratch/probe" && chmod 4755 "$scratch/probe" || skip "cannot copy the probe"
[ -x "$scratch/probe" ] || skip "cannot make the probe executable"

run() { # $1: user id
    HDRT_DRIVER=soft HDRT_LIBEXEC=/evil HDRT_CACHE_DIR=/evil HDRT_NVRTC=/evil HDRT_CLANG=/evil HDRT_LOG=debug \
        setpriv --reuid="$1" --clear-groups "$scratch/probe" >"$scratch/out" 2>"$scratch/err"
}
run 65534 || skip "the probe does not run as another user: $(head -n 1 "$scratch/err")"
grep -q '^privileged 1' "$scratch/out" || skip "set-user-id programs get no rights here (a nosuid file system?)"

echo 1..3
if grep -q '^uses HDRT_' "$scratch/out" || grep -q /evil "$scratch/out" || ! grep -q '^driver 1$' "$scratch/out"; then
    echo "not ok 1 - a privileged program uses nothing of its environment"
    sed 's/^/# /' "$scratch/out"
else
    echo "ok 1 - a privileged program uses nothing of its environment"
fi
if [ -s "$scratch/err" ]; then echo "not ok 2 - nor does it log"; else echo "ok 2 - nor does it log"; fi
run 0
if grep -q '^uses HDRT_CLANG' "$scratch/out" && grep -q "HDRT_LIBEXEC '/evil'" "$scratch/out"; then
    echo "ok 3 - without privilege the same program does"
else
    echo "not ok 3 - without privilege the same program does"
    sed 's/^/# /' "$scratch/out"
fi
