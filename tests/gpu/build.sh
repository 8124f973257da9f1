#!/bin/sh
# Builds the conformance tests: tests/gpu/build.sh [--breaks]. Needs nvcc, no GPU.
# The program is build/conformance/conformance. --breaks builds beside it one program for each line
# of conformance/breaks.txt: the vocabulary with that one error, which the tests must find.
set -eu
cd "$(dirname "$0")/../.."
out=build/conformance
mkdir -p "$out"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
link="$nvcc -gencode=arch=compute_90a,code=sm_90a -Xlinker -s"
compile="$(command -v ccache || true) $link -std=c++17 -O2 -Xcompiler -Wall"
export compile link out

if [ -z "${2:-}" ]; then
  for family in main scalars maps rows copies products matrices sync clusters blocks lists row_maps sums combine lines ampere; do
    echo "$family"
  done | xargs -P "${JOBS:-2}" -I{} sh -c '$compile -I cuda -c tests/gpu/conformance/{}.cu -o "$out/{}.o"'
  $link "$out"/*.o -o "$out/conformance"
fi
[ "${1:-}" = --breaks ] || exit 0

# name, family, file, function that must be found wrong, sed expression
break_one() {
  set -f
  set -- $1
  name=$1 family=$2 file=$3
  shift 4
  folder="$out/breaks/$name"
  rm -rf "$folder"
  mkdir -p "$folder"
  cp -r cuda/kw "$folder/kw"
  sed -i "$*" "$folder/kw/$file"
  if cmp -s "cuda/kw/$file" "$folder/kw/$file"; then
    echo "breaks.txt: $name changes nothing in cuda/kw/$file" >&2
    exit 1
  fi
  $compile -I "$folder" -c "tests/gpu/conformance/$family.cu" -o "$folder/$family.o"
  set +f
  others=$(ls "$out"/*.o | grep -v "/$family.o")
  $link $others "$folder/$family.o" -o "$folder/conformance"
  rm -r "$folder/kw" "$folder/$family.o"
}
if [ "${2:-}" ]; then
  break_one "$2"
else
  grep -v '^#' tests/gpu/conformance/breaks.txt | tr '\n' '\0' |
    xargs -0 -P "${JOBS:-2}" -I{} sh "$0" --breaks {}
fi
