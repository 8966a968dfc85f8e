#!/bin/sh
# SPDX-License-Identifier: MIT
# Fetches NVRTC of several CUDA versions, and what links its output, from the Python package index, for
# tests/unit/test_nvrtcs: some 250 MB to download. Nothing is installed; what cannot be fetched is said and left out.
#
#     tests/fetch-nvrtc.sh [FOLDER]    FOLDER: build/tests/nvrtc, where the tests look for it
set -u
folder=${1:-build/tests/nvrtc}
python=${PYTHON:-python3}
mkdir -p "$folder/wheels" || exit 1

# fetch NAME PACKAGE...: the packages' files below FOLDER/NAME, as they would be installed together.
fetch() {
    name=$1
    shift
    [ -e "$folder/$name/complete" ] && return
    rm -rf "${folder:?}/$name" "$folder/wheels/$name"
    for package in "$@"; do
        if ! "$python" -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
            -d "$folder/wheels/$name" "$package" >"$folder/wheels/$name.log" 2>&1; then
            echo "fetch-nvrtc: $package could not be fetched: $(tail -n 1 "$folder/wheels/$name.log")"
            return
        fi
    done
    mkdir -p "$folder/$name"
    for wheel in "$folder/wheels/$name"/*.whl; do
        "$python" -m zipfile -e "$wheel" "$folder/$name" || return
    done
    rm -rf "$folder/wheels/$name"
    touch "$folder/$name/complete"
    echo "fetch-nvrtc: $name: $*"
}

if ! "$python" -m pip --version >/dev/null 2>&1; then
    echo "fetch-nvrtc: there is no $python with pip, so NVRTC is tested in the installed version only"
    exit 0
fi
fetch cu11 nvidia-cuda-nvrtc-cu11==11.8.89
fetch cu12 nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-nvjitlink-cu12==12.9.86
fetch cu12-old nvidia-cuda-nvrtc-cu12==12.1.105 nvidia-nvjitlink-cu12==12.1.105
fetch cu13 nvidia-cuda-nvrtc==13.0.88 nvidia-nvjitlink==13.0.88
