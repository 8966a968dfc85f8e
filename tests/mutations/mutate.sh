#!/bin/sh
# SPDX-License-Identifier: MIT
# Each patch here breaks one rule of the scheduler or of the order check: `make mutate` applies it to a copy of the tree, builds that, and tells
# which test finds it. One that nothing finds is a failure. `make mutate MUTATIONS="03-join-off-by-one ..."`: only those.
#
# The copy is mutate.build in the build folder; what is not changed since the last time is not built again.
set -u
source=$(cd "${abs_top_srcdir:?run this by make}" && pwd) || exit 1
copy=${abs_top_builddir:?run this by make}/mutate.build
tests="tests/stress/test_forward tests/stress/test_graphs tests/stress/test_order tests/stress/test_short tests/unit/test_template
    tests/unit/test_template_wide tests/unit/test_bell tests/unit/test_wide tests/stress/test_virtual tests/unit/test_scheduler tests/unit/test_queue tests/unit/test_races"
seconds=${MUTATE_SECONDS:-150}

# Times come along, so only what changed since is built again; not after a run that was broken off in a mutation.
[ ! -f "$copy/mutated" ] || rm -rf "$copy"
mkdir -p "$copy/tree" || exit 1
(cd "$source" && tar -cf - --exclude=./build --exclude='./build-*' --exclude=./.git --exclude=./mutate.build .) |
    tar -xf - -C "$copy/tree" || exit 1
if [ ! -f "$copy/Makefile" ]; then
    (cd "$copy/tree" && { [ ! -f Makefile ] || make -s distclean; }) >/dev/null 2>&1
    (cd "$copy" && tree/configure -q CC="$CC") || exit 1
fi

build()
{
    # One after the other: libtool makes the archive anew.
    (cd "$copy" && make -s -j2 all && make -s $tests) >"$copy/build.log" 2>&1
}

# The first test that fails. Its libraries are those of the copy.
caught_by()
{
    for test in $tests; do
        # shellcheck disable=SC2086
        if ! (cd "$copy" && HDRT_LIBEXEC=$copy HOME=$copy XDG_CACHE_HOME=$copy/cache CK_DEFAULT_TIMEOUT=30 \
            timeout "$seconds" "$test") >"$copy/test.log" 2>&1 || grep -q '^not ok' "$copy/test.log"; then
            echo "${test##*/}: $(grep -m 1 -E '^(# (batch|seed|queue|[a-z ]*:)|not ok)' "$copy/test.log" | cut -c 1-90)"
            return 0
        fi
    done
    return 1
}

if ! build; then
    echo "# the tree without mutations does not build: $copy/build.log"
    exit 1
fi
if [ -z "${MUTATIONS:-}" ] && caught=$(caught_by); then
    echo "# the tree without mutations fails $caught"
    exit 1
fi
missed=0 number=0
for patch in "$source"/tests/mutations/*.patch; do
    name=$(basename "$patch" .patch)
    case " ${MUTATIONS:-$name} " in *" $name "*) ;; *) continue ;; esac
    number=$((number + 1))
    : >"$copy/mutated"
    if ! patch -s -p1 -d "$copy/tree" <"$patch" >"$copy/patch.log" 2>&1; then
        echo "not ok $number - $name: does not apply any more: $(head -n 1 "$copy/patch.log")"
        patch -s -R -f -p1 -d "$copy/tree" <"$patch" >/dev/null 2>&1
        missed=$((missed + 1))
        continue
    fi
    if ! build; then
        echo "not ok $number - $name: does not build"
        missed=$((missed + 1))
    elif caught=$(caught_by); then
        echo "ok $number - $name: $caught"
    else
        echo "not ok $number - $name: nothing found it"
        missed=$((missed + 1))
    fi
    patch -s -R -p1 -d "$copy/tree" <"$patch" || exit 1
done
build && rm -f "$copy/mutated"
echo "1..$number"
[ "$missed" -eq 0 ]
