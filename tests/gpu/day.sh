#!/usr/bin/env bash
# Everything that needs a GPU, in one go, on a machine that has one and no network:
#
#   tests/gpu/day.sh pack FOLDER               where a build is: the wheel, wheels from PyPI, kernels to prove
#   tests/gpu/day.sh run FOLDER OUT [STAGE]... on the GPU machine, in a checkout of the same commit
#
# Stages: selftest prove op snippets installed readme times hf trainer report bench conform; all of them where none is named. Each
# leaves OUT/STAGE.log, which begins with the GPU, its driver and the date; what is kept goes into docs/results/.
# The prover wants the self-test first, on the same machine: prove, installed and report end in exit 3 without it.
# The machine needs PyTorch for CUDA, nvcc for `conform`, and the Python that PYTHON_VERSION names.
set -uo pipefail
cd "$(dirname "$0")/../.."
PYTHON_VERSION=${PYTHON_VERSION:-3.12}
what=${1:?pack or run} folder=$(realpath -m "${2:?FOLDER}")

pack() {
  set -e
  rm -rf "$folder" && mkdir -p "$folder/wheels" "$folder/kernels"
  git describe --always --dirty > "$folder/commit"
  .venv/bin/pip wheel -q . --no-deps --no-build-isolation --no-index -w "$folder/wheels" \
    --config-settings cmake.define.KW_BUILT="$PWD/build"
  .venv/bin/pip download -q -d "$folder/wheels" --only-binary=:all: --python-version "$PYTHON_VERSION" \
    --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 \
    transformers==5.23.0 accelerate==1.15.0 kernels==0.17.2 libclang==18.1.1 pytest
  # What the machine has, and what signs and fetches, which nothing here does: the archive stays small.
  rm -f "$folder"/wheels/{numpy,torch,nvidia,triton,cryptography,hf_xet,pydantic,sigstore,tuf,rfc,dns,secure}*
  uncompressed "$folder"/wheels/*.whl
  make_kernel() { build/kernelwright make "$@" --check quick > /dev/null; }  # the GPU is what proves here
  build/kernelwright make examples/full.py --out "$folder/kernels/full" > /dev/null
  make_kernel examples/prefix_lm.py --out "$folder/kernels/prefix_lm"
  make_kernel tests/propose/differential.py --target sm_90 --proposer model --out "$folder/kernels/differential" \
    --api "folder:$(desk tests/propose/differential.answer.json)"
  for target in sm_90a sm_90; do
    make_kernel examples/causal.py --from sketch --target $target --out "$folder/kernels/sketch_$target"
  done
  on_hopper examples/causal.py --target sm_75 --dtype f16 --out "$folder/kernels/sketch_sm_75"
  for one in gemm gemm_gelu gemm_reduce_sum; do
    make_kernel examples/products/$one.py --target sm_90 --out "$folder/kernels/$one"
  done
  for example in full prefix_lm relative_bias; do in_cute examples/$example.py sm_90 "$folder/kernels/cute_$example"; done
  for example in full causal prefix_lm; do in_cute examples/$example.py sm_90a "$folder/kernels/cute_hopper_$example"; done
  build/kernelwright export hf "$folder/kernels/full" --to "$folder/hub/full" > /dev/null
  build/kernelwright self-test --write "$folder/planted" --target sm_90a
  flash_attention
  # Every kernel has the same prover beside it: the dictionary reaches from one to the next.
  tar -cf - -C "$(dirname "$folder")" "$(basename "$folder")" | xz --lzma2=preset=6,dict=128MiB > "$folder.tar.xz"
  ls -l "$folder.tar.xz"
}

# A kernel for an older GPU, its text compiled for this one.
on_hopper() {
  local made=${*: -1}  # the folder, last
  make_kernel "$@"
  build/kernelwright build "$made/kernel.cu" --target sm_90 --out "$made/kernel.cubin"
  sed -i 's/"target": "sm_[0-9a]*"/"target": "sm_90"/' "$made/launch.json"
}

# A kernel's program in CuTe, in the place of the kernel that it spells (docs/cute.md).
in_cute() {
  make_kernel "$1" --target "$2" --out "$3"
  build/kernelwright lower "$3/kernel.tl" --to cute --target "$2" --out "$3/cute.cu"
  .venv/bin/python tests/python/helpers/cute_build.py "$3/cute.cu" "$2" "$3/kernel.cubin" > /dev/null
}

# The same wheels, for the archive to compress: a third smaller than theirs.
uncompressed() {
  .venv/bin/python - "$@" << 'END'
import sys, zipfile
for path in sys.argv[1:]:
    with zipfile.ZipFile(path) as wheel:
        files = [(info, wheel.read(info)) for info in wheel.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as wheel:
        for info, data in files:
            info.compress_type = zipfile.ZIP_STORED
            wheel.writestr(info, data)
END
}

# Answers as a provider's folder.
desk() {
  local at n=1 answer
  at=$(mktemp -d)
  for answer in "$@"; do cp "$answer" "$at/$(printf %03d $n).answer.json" && n=$((n + 1)); done
  echo "$at"
}

flash_attention() {
  local answers=examples/foreign/flash_attn_2_8/answers sources top
  top=$(mktemp -d)
  sources=$(PYTHONPATH=tests/python/helpers .venv/bin/python -c "import pathlib, flash_attention
print(flash_attention.fetch(pathlib.Path('$top')))")
  build/kernelwright foreign lift examples/foreign/flash_attn_2_8/kernel.json --sources "$sources" \
    --spec examples/full.py --out "$top/lift" --api "folder:$(desk $answers/00*.json)"
  build/kernelwright foreign lower "$top/lift" --program "$top/lift/kernel.tl" --spec examples/full.py \
    --sources "$sources" --target sm_90 --out "$folder/kernels/flash_source" --api "folder:$(desk)" || [ $? = 3 ]
  build/kernelwright transfer "$top/lift/kernel.tl" --spec examples/prefix_lm.py --target sm_80 --keep-order \
    --out "$top/prefix_lm.tl" 2> /dev/null
  build/kernelwright foreign lower "$top/lift" --program "$top/prefix_lm.tl" --spec examples/prefix_lm.py \
    --sources "$sources" --target sm_90 --out "$folder/kernels/flash_prefix_lm" \
    --api "folder:$(desk $answers/lower.answer.json)" || [ $? = 3 ]
}

run() {
  out=$(realpath -m "${1:?OUT}") && shift
  mkdir -p "$out"
  [ -d "$folder" ] || tar -xJf "$folder.tar.xz" -C "$(dirname "$folder")"
  venv=/tmp/kernelwright-day
  if [ ! -x $venv/bin/kernelwright ]; then
    python3 -m venv $venv  # that sees this Python's PyTorch, which may be in an environment of its own
    python3 -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])' \
      > "$(echo $venv/lib/python3*/site-packages)/pytorch.pth"
    $venv/bin/pip install -q --no-index --no-deps "$folder"/wheels/*.whl
  fi
  export PATH=$venv/bin:$PATH PYTHONPYCACHEPREFIX=/tmp/pyc KW_WHEEL KW_FULL=$folder/kernels/full KW_HUB=$folder/hub/full
  unset PYTHONDONTWRITEBYTECODE
  KW_WHEEL=$(ls "$folder"/wheels/kernelwright-*.whl)
  # Tests and benchmarks of this checkout, the package and the program of the wheel: there is no build here.
  rm -rf /tmp/kernelwright-checkout && mkdir /tmp/kernelwright-checkout
  tar -cf - --exclude=./build --exclude=./python --exclude=./.?* . | tar -xf - -C /tmp/kernelwright-checkout
  cd /tmp/kernelwright-checkout || return
  for stage in "${@:-selftest prove op snippets installed readme times hf trainer report bench conform}"; do
    for one in $stage; do
      { head_of_log; time "stage_$one"; echo "exit $?"; } > "$out/$one.log" 2>&1
      echo "$one: $(tail -1 "$out/$one.log")"
    done
  done
}

head_of_log() {
  date -u +"%F %T UTC"
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  python3 -c 'import sys, torch; print("Python", sys.version.split()[0], "PyTorch", torch.__version__)'
  echo "wheel and kernels of commit $(cat "$folder/commit")"
}

stage_selftest() { kernelwright-prove --self-test "$folder/planted"; }
stage_prove() {
  local failed=0 one
  for one in "$folder"/kernels/*/; do echo "== $(basename "$one")" && kernelwright-prove "$one" || failed=1; done
  return $failed
}
stage_op() { python3 -m pytest -v tests/gpu/test_operator.py; }
stage_snippets() { python3 -m pytest -v tests/gpu/test_snippets.py; }
stage_installed() { python3 -m pytest -sv tests/gpu/test_installed.py; }
stage_times() { python3 bench/host_time.py && python3 bench/start_time.py; }
stage_hf() { python3 tests/gpu/huggingface_models.py; }
stage_trainer() { python3 examples/train/huggingface.py run "$out/huggingface.json"; }
# README's first example, pasted into a fresh Python that has the wheel alone.
stage_readme() {
  local at=/tmp/kernelwright-readme
  rm -rf $at && mkdir -p $at
  sed -n '/^```python$/,/^```$/p' README.md | sed '1d;/^```$/,$d' > $at/pasted.py
  (cd $at && KERNELWRIGHT_CACHE=$at/cache python -i < pasted.py && test -d cache)
}
# A report with what this GPU proved and measured.
stage_report() {
  kernelwright make examples/causal.py --gpu --out "$out/causal" &&
    python3 bench/bench.py "causal=$out/causal" --only 'causal B4 H16 S4096 D128' --out "$out/causal.json" --burst &&
    kernelwright report "$out/causal" --bench "$out/causal.json"
}
stage_bench() { python3 bench/bench.py "$folder/kernels/full" "$folder/kernels/prefix_lm" --out "$out/bench.json"; }
stage_conform() { JOBS=16 tests/gpu/build.sh --breaks && JOBS=16 tests/gpu/run.sh --breaks; }

case $what in
  pack) pack ;;
  run) shift 2 && run "$@" ;;
  *) echo "tests/gpu/day.sh pack FOLDER | run FOLDER OUT [STAGE]..." >&2 && exit 2 ;;
esac
