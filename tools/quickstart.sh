#!/bin/sh
# SPDX-License-Identifier: MIT
# From a fresh checkout to a kernel's result, or to all tests: see usage below. Needs a POSIX shell and nothing else;
# what it builds goes to build/ beside configure, and it installs packages only when run as root.
set -eu

usage() {
    cat <<'EOF'
usage: tools/quickstart.sh run     build libhdrt, run a kernel over 16 MiB of text, verify the result
       tools/quickstart.sh check   build libhdrt and run all of its tests

Both install the packages that are missing if they may (as root, with apt-get, dnf or pacman), or print the one
command that does. HDRT_BUILD names another build folder than ./build.
EOF
}

say() { printf 'quickstart: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# have_FEATURE: is it there? Each answers for one line of the package table.
have_program() { command -v "$1" >/dev/null 2>&1; }
have_module() { have_program pkg-config && pkg-config --exists "$1" 2>/dev/null; }
have_header() { have_cc && printf '#include <%s>\n' "$1" | "${CC:-cc}" -E - >/dev/null 2>&1; }
have_cc() { have_program "${CC:-cc}"; }
# From 16 on they know the soft driver's device, sm_90, which some tests want; from 14 on they will do where nothing can be
# installed.
have_clang() {
    [ -n "${HDRT_CLANG:-}" ] && return 0
    for version in 22 21 20 19 18 17 16; do
        have_program "clang-$version" && return 0
    done
    if have_program clang; then
        version=$(clang -dumpversion)
        [ "${version%%.*}" -lt 16 ] || return 0
    fi
    [ "$(id -u)" -ne 0 ] && { have_program clang-15 || have_program clang-14 || have_program clang; }
}

# feature test | Debian, Ubuntu | Fedora | Arch
packages() {
    column=$1
    while IFS='|' read -r test apt dnf pacman; do
        # shellcheck disable=SC2086 # the table's first column is a command and its argument
        set -- $test
        "$@" || case $column in apt) echo "$apt" ;; dnf) echo "$dnf" ;; pacman) echo "$pacman" ;; esac
    done <<'EOF'
have_cc|gcc libc6-dev|gcc glibc-devel|gcc
have_header stdio.h|libc6-dev|glibc-devel|glibc
have_program make|make|make|make
have_program autoreconf|autoconf|autoconf|autoconf
have_program automake|automake|automake|automake
have_program libtoolize|libtool|libtool|libtool
have_program pkg-config|pkg-config|pkgconf-pkg-config|pkgconf
have_module libsodium|libsodium-dev|libsodium-devel|libsodium
have_module jansson|libjansson-dev|jansson-devel|jansson
have_header uthash.h|uthash-dev|uthash-devel|uthash
have_module check|check|check-devel|check
have_clang|CLANG|clang|clang
EOF
}

# The newest clang that this release has; any from 14 on will do.
apt_clang() {
    for version in 19 18 17 16 15 14; do
        if apt-cache show "clang-$version" >/dev/null 2>&1; then
            echo "clang-$version"
            return
        fi
    done
    echo clang
}

set_up() {
    if have_program apt-get; then
        manager=apt; command="apt-get install -y --no-install-recommends"
    elif have_program dnf; then
        manager=dnf; command="dnf install -y"
    elif have_program pacman; then
        manager=pacman; command="pacman -S --needed --noconfirm"
    else
        manager=none; command=
    fi
    if [ "$manager" = none ]; then
        missing=$(packages apt | sed 's/^CLANG$/clang/' | sort -u | tr '\n' ' ')
        [ -z "$missing" ] || die "please install what Debian calls: $missing"
        return
    fi
    missing=$(packages "$manager" | tr ' ' '\n' | sort -u | tr '\n' ' ')
    [ -n "${missing% }" ] || return 0
    root=no
    [ "$(id -u)" -ne 0 ] || root=yes
    if [ "$manager" = apt ]; then
        [ "$root" = no ] || { say "apt-get update"; DEBIAN_FRONTEND=noninteractive apt-get update -qq; }
        case " $missing " in *" CLANG "*) missing=$(echo " $missing " | sed "s/ CLANG / $(apt_clang) /") ;; esac
    fi
    # shellcheck disable=SC2086 # one blank between words
    set -- $missing
    missing=$*
    if [ "$root" = no ]; then
        say "these packages are missing, and only root can install them. As root, run:"
        printf '\n    %s %s\n\n' "$command" "$missing" >&2
        exit 1
    fi
    say "$command $missing"
    # shellcheck disable=SC2086 # lists of words
    DEBIAN_FRONTEND=noninteractive $command $missing >&2
}

build() {
    have_program nproc && jobs=$(nproc) || jobs=2
    if [ ! -x "$top/configure" ]; then
        say "autogen.sh"
        "$top/autogen.sh" >"$top/autogen.log" 2>&1 || { cat "$top/autogen.log" >&2; die "autogen.sh failed"; }
        rm -f "$top/autogen.log"
    fi
    mkdir -p "$build"
    cd "$build"
    if [ ! -f Makefile ]; then
        say "configure"
        "$top/configure" -q >configure.log 2>&1 || { cat configure.log >&2; die "configure failed"; }
    fi
    say "make"
    make -s -j"$jobs" >make.log 2>&1 || { tail -n 50 make.log >&2; die "make failed; all of it is in $build/make.log"; }
}

# A real text of at least 16 MiB: this machine's headers, over and over if they are few.
sample() {
    limit=$((16 * 1024 * 1024))
    : >sample.txt
    while [ "$(wc -c <sample.txt)" -lt $limit ]; do
        find /usr/include "$top/lib" "$top/include" -type f -name '*.h' -exec cat {} + 2>/dev/null >>sample.txt
        [ -s sample.txt ] || die "no header files found for a sample text"
    done
}

run() {
    set_up
    build
    say "a sample text from this machine's headers"
    sample
    say "hdjit pipe $top/kernels/upper.cu upper --stats <sample.txt >result.txt"
    ./hdjit pipe "$top/kernels/upper.cu" upper --stats <sample.txt >result.txt
    LC_ALL=C tr "a-z" "A-Z" <sample.txt >expected.txt
    cmp result.txt expected.txt || die "the result differs from tr's"
    bytes=$(wc -c <result.txt)
    rm -f sample.txt result.txt expected.txt
    echo "verified: $((bytes)) bytes identical to tr"
}

# Sums automake's counts; what could not run counts as failed.
check() {
    set_up
    build
    say "make check"
    status=0
    make check >check.log 2>&1 || status=$?
    grep -E '^(PASS|FAIL|SKIP|XFAIL|XPASS|ERROR): ' check.log | grep -v '^PASS' | sort | sed 's/^/  /' || true
    count() { sed -n "s/^# $1: *\\([0-9][0-9]*\\)\$/\\1/p" check.log | awk '{ n += $1 } END { print n + 0 }'; }
    passed=$(($(count PASS) + $(count XFAIL)))
    failed=$(($(count FAIL) + $(count XPASS) + $(count ERROR)))
    skipped=$(count SKIP)
    if [ $status -ne 0 ] && [ $failed -eq 0 ]; then
        tail -n 50 check.log
        failed=1
    fi
    [ $failed -eq 0 ] || say "logs are in $build/tests; all output in $build/check.log"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ] && [ "$passed" -gt 0 ]
}

top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
build=${HDRT_BUILD:-$top/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
case ${1:-} in
run | check) [ $# -eq 1 ] || { usage >&2; exit 2; }; "$1" ;;
-h | --help) usage ;;
*) usage >&2; exit 2 ;;
esac
