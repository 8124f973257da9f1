#!/bin/sh
# Runs kernels under compute-sanitizer, each at three ragged shapes, from the repository's root:
#
#   tests/gpu/memcheck.sh [--tool memcheck|racecheck|synccheck|initcheck] FOLDER...
#   tests/gpu/memcheck.sh --plant FOLDER...   # builds each with a store past the end of lse; needs nvcc
#   tests/gpu/memcheck.sh --self-test         # and these must be found; needs the GPU, no compiler
#
# A FOLDER is what `kernelwright make` wrote. The machine needs compute-sanitizer (CUDA toolkit), the
# driver, numpy and libkernelwright_launch.so (KERNELWRIGHT_LAUNCH says where). JOBS processes at a
# time, 4 by default, each within LIMIT seconds (120); SHAPES, lines of M and N, replaces the three.
# One line for each kernel and shape; exit status 0: all have 0 errors.
set -u
here=$(dirname "$0")
planted=$here/../../build/memcheck
shapes=${SHAPES:-1 65
77 129
300 513}
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

# The whole log of one run on standard output: tool, folder, M, N.
log() {
  timeout -k 10 "${LIMIT:-120}" "$sanitizer" --tool "$1" --target-processes all \
    --error-exitcode 99 "${PYTHON:-python3}" "$here/exact_launch.py" "$2" "$3" "$4" 2>&1
}

# Clean is what ended well, and what the tool has counted no error in. One write, so that lines of
# several processes do not mix.
judge() {
  said=$(log "$@")
  status=$?
  errors=$(printf '%s\n' "$said" | sed -n 's/.*SUMMARY: \([0-9]*\) .*/\1/p' | tail -1)
  title=$(printf '%-28s M %-4s N %-4s' "$2" "$3" "$4")
  if [ "$status" = 0 ] && [ "$errors" = 0 ]; then
    echo "$title 0 errors"
    return 0
  fi
  printf '%s\n' "$title ${errors:-no count of} errors (exit $status)
$(printf '%s\n' "$said" | head -20)"
  return 1
}

plant() {
  planted=$planted/$(basename "$1")
  rm -rf "$planted"
  mkdir -p "$planted"
  cp -r "$1/kernel.cu" "$1/launch.json" "$1/kw" "$planted/" || return 2
  sed -i 's/if (i < rows) to(/if (i <= rows) to(/' "$planted/kw/ops/copies.cuh"
  if cmp -s "$1/kw/ops/copies.cuh" "$planted/kw/ops/copies.cuh"; then
    echo "$1: kw/ops/copies.cuh has no bound of rows to break" >&2
    return 2
  fi
  target=$(sed -n 's/.*"target": *"\([a-z0-9_]*\)".*/\1/p' "$planted/launch.json")
  $(command -v nvcc || echo /usr/local/cuda/bin/nvcc) -cubin -std=c++20 "-arch=$target" \
    -I "$planted" -o "$planted/kernel.cubin" "$planted/kernel.cu" && echo "planted: $planted"
}

self_test() {
  missed=0 tried=0
  for folder in "$planted"/*/; do
    [ -e "$folder/kernel.cubin" ] || continue
    tried=$((tried + 1))
    said=$(log memcheck "${folder%/}" 77 129)
    if printf '%s\n' "$said" | grep -m 1 'Invalid __global__ write'; then
      echo "found: the store past the end of lse, $folder"
    else
      printf '%s\n' "$said" | head -20
      echo "NOT found: the store past the end of lse, $folder"
      missed=$((missed + 1))
    fi
  done
  [ "$tried" -gt 0 ] || echo "nothing is planted: tests/gpu/memcheck.sh --plant FOLDER"
  [ "$tried" -gt 0 ] && [ "$missed" = 0 ]
}

tool=memcheck
case ${1:-} in
  --one) shift; judge "$@"; exit ;;
  --plant) shift; for folder in "$@"; do (plant "$folder") || exit 2; done; exit ;;
  --tool) tool=$2; shift 2 ;;
esac
if [ ! -x "$sanitizer" ]; then
  echo "no compute-sanitizer on PATH; it is part of the CUDA toolkit" >&2
  exit 2
fi
case ${1:-} in
  --self-test) self_test; exit ;;
  '' | -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
for folder in "$@"; do
  echo "$shapes" | while read -r queries keys; do
    printf '%s\0%s\0%s\0%s\0' "$tool" "$folder" "$queries" "$keys"
  done
done | xargs -0 -n 4 -P "${JOBS:-4}" sh "$0" --one
status=$?
[ "$status" = 0 ] && echo "$tool: 0 errors in every kernel and shape" && exit 0
echo "$tool: NOT clean"
exit 1
