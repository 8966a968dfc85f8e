# SPDX-License-Identifier: MIT
# What the tests of hdjit share; to be sourced. Each script works in a folder of its own and speaks TAP: each check is
# one test, the plan comes last.
HDJIT=${HDJIT:-${abs_top_builddir:?run this by make check}/hdjit}
top=${abs_top_srcdir:?run this by make check}
scratch=$(mktemp -d) || exit 1
trap 'cd /; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
cd "$scratch" || exit 1
number=0

if [ ! -x "$HDJIT" ]; then
    echo "Bail out! $HDJIT is missing"
    exit 1
fi

# The soft driver, or the one that HDRT_TEST_DRIVER names, a cache of this script only, and no messages of another
# language.
HDRT_DRIVER=${HDRT_TEST_DRIVER:-soft}
HDRT_CACHE_DIR=$scratch/cache
LC_ALL=C
export HDRT_DRIVER HDRT_CACHE_DIR LC_ALL

# The leak finder of gcc 12 takes the thread storage of an opened library for something else and dies of it; and the
# thread sanitizer would sleep a second at each end.
ASAN_OPTIONS=intercept_tls_get_addr=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
TSAN_OPTIONS=atexit_sleep_ms=0${TSAN_OPTIONS:+:$TSAN_OPTIONS}
export ASAN_OPTIONS TSAN_OPTIONS

result() { # $1: 0 if it holds, $2: what was checked
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
    fi
}

skip() { # $1: what was to be checked, $2: why not
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

# Runs a command, its output to out and its messages to err, and checks that it ends with a code and that its messages
# match an extended regular expression ("": there are none, "*": any).
expect() { # $1: exit code, $2: expression, $3: what is checked, then the command
    expected=$1 expression=$2 what=$3
    shift 3
    "$@" >out 2>err
    code=$?
    wrong=
    [ "$code" -eq "$expected" ] || wrong="it ended with $code, not $expected"
    case $expression in
    \*) ;;
    '') [ -s err ] && wrong="$wrong; it said something" ;;
    *) grep -Eq -- "$expression" err || wrong="$wrong; it did not say '$expression'" ;;
    esac
    [ -z "$wrong" ]
    result $? "$what"
    if [ -n "$wrong" ]; then
        echo "# $wrong"
        echo "# command: $*"
        sed 's/^/# stderr: /' err | head -n 20
    fi
}

says() { # $1: extended regular expression that a line of out matches, $2: what is checked
    grep -Eq -- "$1" out
    found=$?
    result $found "$2"
    if [ $found -ne 0 ]; then
        echo "# it did not print '$1'"
        sed 's/^/# stdout: /' out | head -n 20
    fi
}

same() { # $1, $2: files, $3: what is checked
    cmp "$1" "$2" >difference 2>&1
    result $? "$3"
    sed 's/^/# /' difference
}

finish() {
    echo "1..$number"
    exit 0
}

soft() {
    [ "$HDRT_DRIVER" = soft ]
}

# Whether this is a sanitizer build, where memory is neither limited nor given back at once.
sanitized() {
    grep -q '^#define HDRT_SANITIZED 1' "$abs_top_builddir/config.h" 2>/dev/null
}

# Whether hdjit finds a clang, or NVRTC.
have_compiler() {
    "$HDJIT" info --json | tr -d ' \n' | grep -q "\"$1\":{\"path\":\""
}

# Ends the script unless there is a compiler for the driver.
need_compiler() { # $1: what the script is about
    if ! have_compiler clang && { soft || ! have_compiler nvrtc; }; then
        echo "1..0 # SKIP $1 needs clang (Debian: clang-19)"
        exit 0
    fi
}
