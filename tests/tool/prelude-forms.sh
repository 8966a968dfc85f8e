#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles each expression of prelude-forms.txt by each clang that is here and looks for the instructions it must come
# out as; then the names of prelude-names.txt, which must be there, and the kernels, which must call nothing. Where
# ptxas is found it must accept all of it.
source=${abs_top_srcdir:-.}
table=$source/tests/tool/prelude-forms.txt
prelude=$source/kernels/include/hdrt_device.h
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
number=0

result() { # $1: status, $2: what was checked, $3: a file with the lines that are wrong
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        [ -n "$3" ] && sed 's/^/# /' "$3" | head -40
    fi
}

skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

compile() { # $1: clang, $2: architecture, $3: standard, $4: source
    "$1" -x cuda --cuda-device-only "--cuda-gpu-arch=$2" --cuda-path=/nonexistent -nocudainc -nocudalib -nostdlibinc \
        -Xclang -target-feature -Xclang +ptx75 "-std=$3" -O2 -S -Werror -fno-color-diagnostics -include "$prelude" \
        -o - "$4"
}

set --
for name in "${HDRT_CLANG:-clang-19}" clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
    path=$(command -v "$name") && [ "$path" != "$1" ] && set -- "$@" "$path"
done
if [ $# -eq 0 ]; then
    echo "1..0 # SKIP no clang from 14 to 19 is here"
    exit 0
fi

# The k before the line's number tells which expression a kernel is.
parameters='float f, float g, float h, double d, double e, double c, int i, int j, unsigned u, unsigned v,
    long long l, long long m, unsigned long long q, unsigned long long r, unsigned short s, unsigned short t,
    float *pF, double *pD, int *pI, unsigned *pU, long long *pL, unsigned long long *pQ, unsigned short *pS,
    unsigned char *pC, float4 *pV'
awk -v parameters="$(echo "$parameters" | tr '\n' ' ')" '/^#/ || !NF { next }
    {
        left = $0; sub(/ *=>.*/, "", left)
        type = $1; sub(/^[^ ]* */, "", left)
        printf "extern \"C\" __global__ void k%d(%s *out, %s) { *out = %s; }\n", NR, type, parameters, left
    }' "$table" >"$scratch/forms.cu"

# Prints each table line whose kernel lacks an instruction or calls what is not listed.
compare() { # $1: PTX
    awk -v table="$table" '
        FNR == NR { if ($0 !~ /^#/ && NF) { line[NR] = $0; sub(/.*=>/, "", $0); wanted[NR] = $0 } next }
        /\.entry k[0-9]+\(/ { kernel = $0; sub(/.*\.entry k/, "", kernel); sub(/\(.*/, "", kernel); kernel += 0 }
        kernel {
            text = $0
            gsub(/[{}]/, " ", text)
            count = split(text, word, /[ \t;,()]+/)
            for (i = 1; i <= count; i++) {
                seen[kernel, word[i]] = 1
                if (word[i] ~ /^__nv_[a-z0-9]*$/)
                    called[kernel] = called[kernel] " " word[i]
            }
        }
        END {
            for (k in wanted) {
                count = split(wanted[k], form, " ")
                for (i = 1; i <= count; i++) {
                    found = 0
                    alternatives = split(form[i], either, "|")
                    for (a = 1; a <= alternatives; a++)
                        if ((k, either[a]) in seen) found = 1
                    if (!found) print line[k] ": no " form[i]
                }
                count = split(called[k], form, " ")
                for (i = 1; i <= count; i++)
                    if (index(" " wanted[k] " ", " " form[i] " ") == 0) print line[k] ": calls " form[i]
                if (line[k] == "") print "no line " k
            }
        }' "$table" "$1"
}

awk '/^#/ { next } { for (i = 1; i <= NF; i++) printf "namespace n%d_%d { using ::%s; }\n", NR, i, $i }' \
    "$source/tests/tool/prelude-names.txt" >"$scratch/names.cu"

echo "1..$((6 * $#))"
for clang in "$@"; do
    name=$(basename "$clang")
    compile "$clang" sm_80 c++17 "$scratch/forms.cu" >"$scratch/forms.ptx" 2>"$scratch/wrong" &&
        test "$(grep -c '\.entry k' "$scratch/forms.ptx")" -gt 150
    result $? "$name compiles every expression" "$scratch/wrong"

    compare "$scratch/forms.ptx" >"$scratch/wrong" && test ! -s "$scratch/wrong"
    result $? "$name gives the instructions that the table names" "$scratch/wrong"

    if command -v ptxas >/dev/null; then
        ptxas -arch=sm_90 -c -o /dev/null "$scratch/forms.ptx" >"$scratch/wrong" 2>&1 # -c: calls may stay open
        result $? "ptxas accepts what $name gives" "$scratch/wrong"
    else
        skip "ptxas accepts what $name gives" "no ptxas is here"
    fi

    compile "$clang" sm_80 c++17 "$scratch/names.cu" 2>&1 >/dev/null | grep error: >"$scratch/wrong"
    test ! -s "$scratch/wrong" && test "$(wc -l <"$scratch/names.cu")" -gt 500
    result $? "$name finds every function of prelude-names.txt" "$scratch/wrong"

    : >"$scratch/wrong"
    for file in "$source"/kernels/*.cu; do
        compile "$clang" sm_80 c++14 "$file" >"$scratch/kernel.ptx" 2>>"$scratch/wrong" ||
            echo "$file does not compile" >>"$scratch/wrong"
        grep -o 'call.*' "$scratch/kernel.ptx" | sed "s|^|$file: |" >>"$scratch/wrong"
    done
    test ! -s "$scratch/wrong"
    result $? "$name compiles the kernels, which call nothing" "$scratch/wrong"

    : >"$scratch/wrong"
    for target in sm_70:c++14 sm_75:c++20 sm_86:c++17; do
        echo '__global__ void empty() {}' >"$scratch/empty.cu"
        compile "$clang" "${target%:*}" "${target#*:}" "$scratch/empty.cu" >/dev/null 2>>"$scratch/wrong" ||
            echo "$target fails" >>"$scratch/wrong"
    done
    test ! -s "$scratch/wrong"
    result $? "$name reads the prelude for older and newer devices and standards" "$scratch/wrong"
done
