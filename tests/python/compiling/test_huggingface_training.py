"""Models of transformers under its Trainer, on attention as huggingface.py writes it down.

Most of it runs as test_huggingface.py does: functions as they are, on the CPU, so what is tested is what Trainer makes of a layer,
and what the layer asks of a kernel. The last tests launch kernels on the stand-in driver of tests/fake_cuda
(huggingface_on_fake_cuda.py). On a GPU `examples/train/huggingface.py` holds whole curves against eager's.
"""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest
import torch
import transformers

import kernelwright
from kernelwright import huggingface
from kernelwright.compiling.kinds import Kinds
from kernelwright.errors import ArgumentError
from kernelwright_cli import ROOT
from test_compile import FAKE
from test_huggingface import MODELS, two_models

CLOSE = 2e-3  # of losses of 5: eager rounds its scores to bf16, and our function its weights


@pytest.fixture
def calls(monkeypatch):
    """Functions run as they are; gives what each call was given: (types of q, k and v; names of what needs a gradient)."""
    calls = []

    def compile(function, example_inputs, **options):
        assert not torch.compiler.is_compiling()

        def call(*given):
            if not torch.compiler.is_compiling():
                named = dict(zip(("q", "k", "v", "scale", "valid", "document", "sinks", "bias"), given))
                wanted = {n for n, x in named.items() if isinstance(x, torch.Tensor) and x.requires_grad and torch.is_grad_enabled()}
                calls.append(({x.dtype for x in given[:3]}, wanted))
            return function(*given).nan_to_num()
        return call

    monkeypatch.setitem(vars(kernelwright), "compile", compile)
    monkeypatch.setattr(huggingface, "_kinds", Kinds())
    huggingface.register("kernelwright")
    return calls


class Texts(torch.utils.data.Dataset):
    """Sixteen texts of 20 to 35 tokens."""

    def __len__(self):
        return 16

    def __getitem__(self, n):
        tokens = torch.randint(1, 128, (20 + n,), generator=torch.Generator().manual_seed(n))
        return {"input_ids": tokens, "labels": tokens}


def padded(examples):
    tokens = torch.nn.utils.rnn.pad_sequence([e["input_ids"] for e in examples], batch_first=True)
    return {"input_ids": tokens, "labels": tokens.masked_fill(tokens == 0, -100), "attention_mask": (tokens != 0).long()}


def trainer_of(model, folder, collator=padded, **arguments):
    given = dict(output_dir=str(folder), max_steps=3, per_device_train_batch_size=4, bf16=True, use_cpu=True, report_to=[], logging_steps=1,
                 save_strategy="no", disable_tqdm=True, learning_rate=5e-3, lr_scheduler_type="constant") | arguments
    return transformers.Trainer(model=model, args=transformers.TrainingArguments(**given), data_collator=collator,
                                train_dataset=Texts(), eval_dataset=Texts())


def losses(model, folder, **arguments):
    trainer = trainer_of(model, folder, **arguments)
    trainer.train()
    return torch.tensor([e["loss"] for e in trainer.state.log_history if "loss" in e])


def curves_agree(config, folder, **arguments):
    eager, ours = two_models(config)
    want, got = losses(eager, folder, **arguments), losses(ours, folder, **arguments)
    assert len(got) == 3 and want[0] - want[-1] > 10 * CLOSE, want  # else nothing was learned
    assert (want - got).abs().max() < CLOSE, (want, got)
    return eager, ours


@pytest.mark.parametrize("name", MODELS)
def test_a_model_trains_as_eagers_does(name, calls, tmp_path):
    """Padded texts, accumulated gradients, bf16 autocast."""
    eager, ours = curves_agree(MODELS[name](), tmp_path, gradient_accumulation_steps=2)
    wanted = {"q", "k", "v", "sinks"} if name == "gpt_oss" else {"q", "k", "v"}
    assert len(calls) == 3 * 2 * 2 and all(call == ({torch.bfloat16}, wanted) for call in calls)
    for (key, a), b in zip(eager.named_parameters(), ours.parameters()):
        if key.endswith("sinks"):
            assert not a.isnan().any() and (a - b).abs().max() < 5e-3


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_layers_train(reentrant, calls, tmp_path):
    curves_agree(MODELS["gpt_oss"](), tmp_path, activation_checkpointing=True, activation_checkpointing_kwargs={"use_reentrant": reentrant})
    with_gradients = sum(bool(wanted) for _, wanted in calls)
    assert (len(calls), with_gradients) == (3 * 2 * 2, 3 * 2 if reentrant else 3 * 2 * 2)


def test_a_traced_model_trains(calls, tmp_path):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    curves_agree(MODELS["llama"](), tmp_path, torch_compile=True, torch_compile_backend="aot_eager")
    assert len(calls) == 1  # the first of all; the others were traced
    reasons = " ".join(torch._dynamo.utils.counters["graph_break"])
    assert "attention_mask" in reasons and "attention_forward" not in reasons
    torch._dynamo.reset()


def test_packed_texts_train_and_do_not_see_each_other(calls, tmp_path):
    """All that reach the model are positions that begin anew."""
    flat = transformers.DataCollatorWithFlattening()
    _, ours = curves_agree(MODELS["llama"](), tmp_path, collator=flat)
    batch = flat([Texts()[0], Texts()[1]])
    with torch.no_grad():
        packed = ours(input_ids=batch["input_ids"], position_ids=batch["position_ids"], use_cache=False).logits[:, 20:]
        alone = ours(input_ids=Texts()[1]["input_ids"][None], use_cache=False).logits
    assert (packed - alone).abs().max() < 1e-4


def test_ends_of_packed_texts_are_refused_by_name(calls, tmp_path):
    """What FlashAttention would take in the place of a mask."""
    flat = transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True)
    with pytest.raises(ArgumentError, match="cu_seq_lens_q is given"):
        losses(two_models(MODELS["llama"]())[1], tmp_path, collator=flat)


def test_evaluation_asks_for_no_gradient(calls, tmp_path):
    eager, ours = two_models(MODELS["gpt_oss"]())
    want, got = (trainer_of(model, tmp_path).evaluate()["eval_loss"] for model in (eager, ours))
    assert abs(want - got) < CLOSE and calls and all(not wanted for _, wanted in calls)


def test_dropout_is_refused_where_a_model_is_trained_and_none_where_it_is_evaluated(calls, tmp_path):
    config = MODELS["llama"]()
    config.attention_dropout = 0.1
    trainer = trainer_of(two_models(config)[1], tmp_path)
    assert trainer.evaluate()["eval_loss"] > 0
    with pytest.raises(ArgumentError, match="dropout is 0.1; it should be 0\n  help: to train, set it to 0 .*attention_dropout"):
        trainer.train()


@torch.no_grad()
def test_weights_are_refused_and_what_experts_say_is_not(calls):
    _, ours = two_models(MODELS["gpt_oss"]())
    tokens = torch.randint(128, (1, 8))
    with pytest.raises(ArgumentError, match="output_attentions is True.*\n  help: .*eager"):
        ours(tokens, output_attentions=True)
    assert ours(tokens, output_attentions=False, output_router_logits=True).aux_loss is not None


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_a_mask_of_four_dimensions_is_refused(dtype, calls):
    _, ours = two_models(MODELS["llama"]())
    with pytest.raises(ArgumentError, match="attention_mask is a Tensor of the caller's own"):
        ours(torch.randint(128, (1, 8)), attention_mask=torch.ones(1, 1, 8, 8, dtype=dtype))


def test_operands_are_left_alone_without_autocast(calls):
    x = torch.randn(1, 2, 4, 8)
    huggingface.attention_forward(torch.nn.Module(), x, x, x, None)
    with torch.autocast("cpu", torch.float16):
        huggingface.attention_forward(torch.nn.Module(), x, x, x, None)
    assert [types for types, _ in calls] == [{torch.float32}, {torch.float16}]


def test_operands_in_fp32_are_refused_with_what_a_trainer_takes(monkeypatch, tmp_path):
    monkeypatch.setenv("KERNELWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface, "_kinds", Kinds())
    x = torch.randn(1, 2, 4, 64)
    with pytest.raises(ArgumentError, match="query, key, value are bfloat16 and float32; .*\n  help: train with bf16=True"):
        huggingface.attention_forward(torch.nn.Module(), x, x, x.bfloat16(), None, _options={"target": "sm_90a"})


def test_replicas_that_begin_at_once_make_one_kernel(monkeypatch):
    """DataParallel calls a layer of each replica from a thread of its own."""
    made = []

    def compile(function, example_inputs, **options):
        made.append(function)
        time.sleep(0.2)
        return function

    monkeypatch.setitem(vars(kernelwright), "compile", compile)
    monkeypatch.setattr(huggingface, "_kinds", Kinds())
    x, found = torch.randn(1, 2, 4, 8), []
    threads = [threading.Thread(target=lambda: found.append(huggingface.attention_forward(torch.nn.Module(), x, x, x, None)))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and len(found) == 4


# ---- kernels, on the stand-in driver


def run(cache, *words, **environment):
    here = pathlib.Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{here}", "KERNELWRIGHT_CACHE": str(cache), **environment}
    done = subprocess.run([sys.executable, "-W", "ignore", here / "huggingface_on_fake_cuda.py", *words], env=environment,
                          text=True, capture_output=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    if not (FAKE / "libcuda.so.1").exists():
        pytest.skip("the stand-in driver is not built: ninja -C build fake_cuda")
    cache = tmp_path_factory.mktemp("cache") / "kernelwright"
    run(cache, "--cold")
    return run(cache, LD_LIBRARY_PATH=str(FAKE), FAKE_CUDA_ATTENTION="1")


@pytest.mark.parametrize("way", ["evaluated", "eager", "checkpointed", "checkpointed_reentrant", "traced_first", "traced_whole"])
def test_gradients_under_autocast_are_by_kernels_and_the_functions(launched, way):
    assert launched[way] < 0.01  # the stand-in rounds nothing but inputs and gradients
    assert [name.split("_")[1] for name in launched["ran"]] == ["forward", "backward"]
