"""Small random models of transformers on kernels of ours: are the logits right, how fast is a prompt?

    python tests/gpu/huggingface_models.py [--layers 4] [--length 4096] [--rounds 7]

Needs a GPU, PyTorch, transformers and a built kernelwright. For each model (Llama, Gemma 2 with its cap
and window, gpt-oss with its sinks and window) three copies have the same weights: eager attention in
fp32, which is the truth; eager attention in bf16; ours in bf16. A logit row of ours may be off by at
most twice what eager's own is off by in bf16, in relative L2 over its vocabulary, whole prompts, padded
ones and prompts in chunks. Then a prompt's tokens per second beside transformers' own attention,
interleaved, medians of all rounds: sdpa, or flex_attention where sdpa cannot say what the model does
(Gemma 2's cap, gpt-oss's sinks).

Exit status 0: every row holds; 1: one does not.
"""

import argparse
import copy
import statistics
import sys
import time
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from kernelwright import huggingface  # noqa: E402


def configurations(layers):
    common = dict(vocab_size=4096, num_hidden_layers=layers, max_position_embeddings=32768)
    return {
        "Llama": transformers.LlamaConfig(
            **common, hidden_size=2048, intermediate_size=4096, num_attention_heads=32,
            num_key_value_heads=8, head_dim=64),
        "Gemma 2": transformers.Gemma2Config(
            **common, hidden_size=2048, intermediate_size=4096, num_attention_heads=16,
            num_key_value_heads=8, head_dim=128, query_pre_attn_scalar=128, sliding_window=1024,
            attn_logit_softcapping=50.0),
        "gpt-oss": transformers.GptOssConfig(
            **common, hidden_size=2048, intermediate_size=512, num_attention_heads=64,
            num_key_value_heads=8, head_dim=64, sliding_window=128, num_local_experts=4,
            num_experts_per_tok=4)}  # all: which expert is chosen would hang on the last bit


def models(config, peer):
    """The same weights four times: truth in fp32, eager in bf16, the peer in bf16, ours in bf16."""
    torch.manual_seed(0)

    def make(attention, dtype):  # a model keeps its configuration and reads the attention's name there
        return transformers.AutoModelForCausalLM.from_config(
            copy.deepcopy(config), attn_implementation=attention, dtype=dtype).cuda().eval()

    made = [make("eager", torch.float32)]
    for name, parameter in made[0].named_parameters():
        if name.endswith("sinks"):
            torch.nn.init.normal_(parameter)
        parameter.data = parameter.data.to(torch.bfloat16).float()
    for attention in ("eager", peer, "kernelwright"):
        made.append(make(attention, torch.bfloat16))
        made[-1].load_state_dict(made[0].state_dict())
    return made


def rows_off(logits, truth):
    """Relative L2 of each row's error."""
    return (logits.double() - truth).norm(dim=-1) / truth.norm(dim=-1)


def hold(name, case, truth, eager, ours):
    """Prints a line; True where every row is within twice eager's error, or half an ulp of bf16."""
    truth = truth.double()
    of_eager, of_ours = rows_off(eager, truth), rows_off(ours, truth)
    accepted = 2 * of_eager.clamp(min=2**-9)
    worst = (of_ours / accepted).max().item()
    print(f"{name:8} {case:18} rows {of_ours.numel():6}  eager off {of_eager.median():.2e}  "
          f"ours {of_ours.median():.2e}  worst {worst:.2f} of what is accepted", flush=True)
    return worst <= 1


def logits(name, truth, eager, ours, vocabulary):
    tokens = torch.randint(vocabulary, (2, 700), device="cuda")
    yield hold(name, "whole", *(model(tokens).logits for model in (truth, eager, ours)))
    valid = torch.ones_like(tokens)
    valid[1, :150] = 0
    yield hold(name, "padded left", *(model(tokens, attention_mask=valid).logits[valid.bool()]
                                      for model in (truth, eager, ours)))
    parts = []
    for model in (truth, eager, ours):
        cache = transformers.DynamicCache(config=model.config)
        parts.append(torch.cat([model(part, past_key_values=cache, use_cache=True).logits
                                for part in tokens.split([400, 299, 1], dim=1)], dim=1))
    yield hold(name, "in chunks", *parts)


def seconds(model, tokens):
    torch.cuda.synchronize()
    started = time.perf_counter()
    model(tokens, use_cache=False, logits_to_keep=1)
    torch.cuda.synchronize()
    return time.perf_counter() - started


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    huggingface.register()
    good = True
    print(torch.cuda.get_device_name(), "transformers", transformers.__version__)
    for name, config in configurations(arguments.layers).items():
        peer = "sdpa" if name == "Llama" else "flex_attention"
        truth, eager, beside, ours = models(config, peer)
        good &= all(list(logits(name, truth, eager, ours, config.vocab_size)))
        del truth, eager
        tokens = torch.randint(config.vocab_size, (2, arguments.length), device="cuda")
        times = {"kernelwright": [], peer: []}
        for model in (ours, beside) * 2:
            seconds(model, tokens)
        for _ in range(arguments.rounds):
            times["kernelwright"].append(seconds(ours, tokens))
            times[peer].append(seconds(beside, tokens))
        speed = {k: tokens.numel() / statistics.median(v) for k, v in times.items()}
        print(f"{name:8} prompts of 2 x {arguments.length}: " + ", ".join(
            f"{k} {v:.0f} tokens/s ({min(times[k]) * 1e3:.1f} to {max(times[k]) * 1e3:.1f} ms)"
            for k, v in speed.items()), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
