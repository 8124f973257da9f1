"""Small models of Hugging Face's transformers, trained by its Trainer on bytes of this repository's own pages: by our kernels and by
transformers' own attention.

    python examples/train/huggingface.py run curves.json [MODEL...]    # on a Hopper GPU: every model, way and seed; minutes
    python examples/train/huggingface.py plot curves.json curves.svg    # wants matplotlib

Random weights, four layers, 200 steps under bf16 autocast. Each case is something that a user does: texts of many lengths that are
padded, texts packed into one row, gradient checkpointing, gradients that are accumulated. What differs between two ways is one
word, `attn_implementation`; what two runs of one seed may differ by is said in curves.py. The measure beside it is the loss on
texts that were held back, the same for all seeds. sdpa and flex_attention run a few steps, for their speed.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import tempfile
import time
from typing import Callable

import torch
import transformers

import kernelwright.huggingface
from curves import SEEDS, apart, pages, plot, smooth

LENGTH, BATCH, STEPS, WARM, SHORT = 1024, 8, 200, 10, 40
OURS, EAGER = "kernelwright", "eager"
SIZES = dict(vocab_size=256, hidden_size=512, intermediate_size=1536, num_hidden_layers=4, max_position_embeddings=LENGTH,
             bos_token_id=None, eos_token_id=None, pad_token_id=0)


def llama():
    return transformers.LlamaConfig(**SIZES, num_attention_heads=8, num_key_value_heads=2, head_dim=64)


def gemma2():
    """A cap on the scores, and every other layer sees a window."""
    return transformers.Gemma2Config(**SIZES, num_attention_heads=4, num_key_value_heads=2, head_dim=128, query_pre_attn_scalar=128,
                                     sliding_window=256, attn_logit_softcapping=50.0)


def gpt_oss():
    """Learned sinks, every other layer sees a window; four experts of which two are taken."""
    sizes = SIZES | {"intermediate_size": 512}
    return transformers.GptOssConfig(**sizes, num_attention_heads=8, num_key_value_heads=2, head_dim=64, sliding_window=128,
                                     num_local_experts=4, num_experts_per_tok=2, experts_implementation="eager",
                                     rope_parameters={"rope_type": "default", "rope_theta": 10000.0})


# ---- the data


def rows(length):
    """Pieces of the pages that follow each other, all of one length."""
    data, _ = pages()
    return [data[n:n + length].long() for n in range(0, len(data) - length, length)]


def texts(length):
    """Sections of the pages, each cut into pieces of at most `length` bytes: texts of many lengths."""
    data, section = pages()
    found = data.split(torch.unique_consecutive(section, return_counts=True)[1].tolist())
    return [piece.long() for text in found for piece in text.split(length) if len(piece) > 1]


class Texts(torch.utils.data.Dataset):
    def __init__(self, of):
        self.of = of

    def __len__(self):
        return len(self.of)

    def __getitem__(self, n):
        return {"input_ids": self.of[n], "labels": self.of[n]}


def pad(examples):
    """A batch as tokenizers pad it: on the right, with a mask of what counts."""
    def filled(column, value):
        return torch.nn.utils.rnn.pad_sequence(column, batch_first=True, padding_value=value)

    given = [example["input_ids"] for example in examples]
    return {"input_ids": filled(given, 0), "labels": filled([example["labels"] for example in examples], -100),
            "attention_mask": filled([torch.ones_like(x) for x in given], 0)}


@dataclasses.dataclass
class Case:
    config: Callable  # makes it: a model keeps its own
    texts: Callable = rows
    collate: Callable = pad
    peers: tuple = ()  # what else of transformers' computes this attention
    arguments: dict = dataclasses.field(default_factory=dict)  # of TrainingArguments


CASES = {
    "Llama, padded": Case(llama, texts, peers=("sdpa",)),
    "Llama, packed": Case(llama, texts, transformers.DataCollatorWithFlattening(), peers=("sdpa",)),
    "Gemma 2, checkpointed": Case(gemma2, peers=("flex_attention",), arguments={"gradient_checkpointing": True}),
    "gpt-oss, accumulated": Case(gpt_oss, peers=("flex_attention",), arguments={"gradient_accumulation_steps": 2}),
}


# ---- a run


class Clock(transformers.TrainerCallback):
    """When each step ended, and the tokens of each batch: padding is none."""

    def __init__(self, collate):
        self.collate, self.ends, self.tokens = collate, [], []

    def __call__(self, examples):
        self.tokens.append(sum(len(example["input_ids"]) for example in examples))
        return self.collate(examples)

    def on_step_end(self, *_, **__):
        torch.cuda.synchronize() if torch.cuda.is_available() else None
        self.ends.append(time.perf_counter())

    def tokens_a_second(self, batches, warm):
        """Without the first `warm` steps; `batches` to a step."""
        return sum(self.tokens[warm * batches:len(self.ends) * batches]) / (self.ends[-1] - self.ends[warm - 1])


def sinks_of(model):
    return torch.cat([p.detach().float().cpu() for name, p in model.named_parameters() if name.endswith("sinks")] or [torch.zeros(0)])


def train(case, way, seed, steps=STEPS, **arguments):
    """{"losses": of each step, "held_back": the loss on texts that were, "tokens_a_second", "sinks": how far each was moved}"""
    transformers.set_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(case.config(), attn_implementation=way, dtype=torch.float32)
    begun, clock, of = sinks_of(model), Clock(case.collate), case.texts(LENGTH)
    with tempfile.TemporaryDirectory() as folder:
        given = dict(output_dir=folder, max_steps=steps, per_device_train_batch_size=BATCH, per_device_eval_batch_size=BATCH, bf16=True,
                     learning_rate=6e-4, lr_scheduler_type="constant_with_warmup", warmup_steps=30, seed=seed, logging_steps=1,
                     report_to=[], save_strategy="no", disable_tqdm=True, dataloader_pin_memory=False)
        trainer = transformers.Trainer(
            model=model, args=transformers.TrainingArguments(**given | case.arguments | arguments), callbacks=[clock],
            data_collator=clock, train_dataset=Texts(of[:-64]), eval_dataset=Texts(of[-64:]))
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
        held_back = trainer.evaluate()["eval_loss"] if steps == STEPS else None
    return {"losses": [entry["loss"] for entry in trainer.state.log_history if "loss" in entry], "held_back": held_back,
            "tokens_a_second": clock.tokens_a_second(trainer.args.gradient_accumulation_steps, min(WARM, steps - 1)),
            "sinks": (sinks_of(model) - begun).tolist()}


def compare(case):
    """Every seed by our kernels and by eager, which take turns; a few steps by the peers."""
    curves, speeds, held_back, sinks = {}, {}, {}, {}
    for seed in SEEDS:
        for way in (OURS, EAGER):
            found, name = train(case, way, seed), f"{way}, seed {seed}"
            curves[name], held_back[name], sinks[name] = found["losses"], [found["held_back"]], found["sinks"]
            speeds.setdefault(way, []).append(found["tokens_a_second"])
    said = {"tokens_a_second": {way: statistics.median(of) for way, of in speeds.items()}, "apart": apart(curves, smooth, OURS, EAGER),
            "held_back_apart": apart(held_back, torch.tensor, OURS, EAGER)}
    if sinks[name]:
        said["sinks_apart"] = apart(sinks, torch.tensor, OURS, EAGER)
    return said | {"curves": curves, "held_back": held_back, "sinks": sinks}


def run(file, *names):
    report = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "transformers": transformers.__version__, "models": {}}
    write = lambda: pathlib.Path(file).write_text(json.dumps(report))
    cases = {name: case for name, case in CASES.items() if not names or name in names}
    for name, case in cases.items():
        found = report["models"][name] = compare(case)
        write()
        print(name, json.dumps({key: found[key] for key in found if key not in ("curves", "held_back", "sinks")}), flush=True)
    for name, case in cases.items():  # last: what they compile is theirs to answer for
        speeds = report["models"][name]["tokens_a_second"]
        for way in case.peers:
            try:
                speeds[way] = train(case, way, SEEDS[0], SHORT)["tokens_a_second"]
            except Exception as error:
                speeds[way] = f"{type(error).__name__}: {str(error)[:200]}"
            write()
            print(name, way, speeds[way], flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=["run", "plot"])
    parser.add_argument("files", nargs="+")
    asked = parser.parse_args()
    if asked.what == "run":
        kernelwright.huggingface.register(OURS)
        run(*asked.files)
    else:
        plot(*asked.files, "models", {OURS: "tab:red", EAGER: "black"})
