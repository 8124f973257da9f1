"""Models of transformers, small and random, on attention as huggingface.py writes it down.

Here the functions run as they are, on the CPU: what is tested is that each model's layer and mask come
out as the right function. On a GPU `tests/gpu/huggingface_models.py` runs the kernels.
"""

import copy

import pytest
import torch
import transformers

import kernelwright
from kernelwright import huggingface
from kernelwright.compiling.kinds import Kinds
from kernelwright.errors import ArgumentError, SpecError

SIZES = dict(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=512)
MODELS = {
    "llama": lambda: transformers.LlamaConfig(**SIZES),
    "gemma2": lambda: transformers.Gemma2Config(
        **SIZES, sliding_window=16, attn_logit_softcapping=5.0, query_pre_attn_scalar=16),
    "gpt_oss": lambda: transformers.GptOssConfig(
        **SIZES, sliding_window=16, num_local_experts=2, num_experts_per_tok=1)}


@pytest.fixture
def compiled(monkeypatch):
    """Functions run as they are; gives those that would have been compiled."""
    functions = []

    def compile(function, example_inputs, *, strict=False, **options):
        functions.append(function)  # padding's own rows see no key: NaN in PyTorch, 0 in a kernel
        return lambda *inputs: function(*inputs).nan_to_num()

    monkeypatch.setitem(vars(kernelwright), "compile", compile)
    monkeypatch.setattr(huggingface, "_kinds", Kinds())
    huggingface.register("kernelwright")
    return functions


def two_models(config):
    """The same random weights, with eager's attention and with ours."""
    def make(attention):  # a model keeps its configuration and reads the attention's name there
        return transformers.AutoModelForCausalLM.from_config(
            copy.deepcopy(config), attn_implementation=attention).eval()

    torch.manual_seed(0)
    eager, ours = make("eager"), make("kernelwright")
    for name, parameter in eager.named_parameters():
        if name.endswith("sinks"):
            torch.nn.init.normal_(parameter)
    assert eager.config._attn_implementation == "eager"
    ours.load_state_dict(eager.state_dict())
    return eager, ours


def difference(a, b, rows=slice(None)):
    return (a.logits[rows] - b.logits[rows]).abs().max().item()


def agree_in_chunks(eager, ours, lengths, caches):
    for chunk in torch.randint(128, (1, sum(lengths))).split(lengths, dim=1):
        a = eager(chunk, past_key_values=caches[0], use_cache=True)
        b = ours(chunk, past_key_values=caches[1], use_cache=True)
        assert difference(a, b) < 1e-4


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_the_logits_are_eagers(name, compiled):
    eager, ours = two_models(MODELS[name]())
    tokens = torch.randint(128, (2, 40))
    assert difference(eager(tokens), ours(tokens)) < 1e-4
    assert compiled


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("side", ["left", "right"])
@torch.no_grad()
def test_padding_is_no_key(name, side, compiled):
    eager, ours = two_models(MODELS[name]())
    tokens, valid = torch.randint(128, (2, 40)), torch.ones(2, 40, dtype=torch.long)
    valid[1, slice(0, 15) if side == "left" else slice(25, 40)] = 0
    a, b = eager(tokens, attention_mask=valid), ours(tokens, attention_mask=valid)
    assert difference(a, b, valid.bool()) < 1e-4


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_a_prompt_may_come_in_chunks(name, compiled):
    """With a cache: queries are fewer than keys, and a window's cache forgets its first keys."""
    eager, ours = two_models(MODELS[name]())
    caches = [transformers.DynamicCache(config=model.config) for model in (eager, ours)]
    agree_in_chunks(eager, ours, [24, 30, 5, 1], caches)


@torch.no_grad()
def test_a_static_cache_has_room_behind_the_last_key(compiled):
    eager, ours = two_models(MODELS["llama"]())
    caches = [transformers.StaticCache(config=m.config, max_cache_len=64) for m in (eager, ours)]
    agree_in_chunks(eager, ours, [16, 8], caches)


@torch.no_grad()
def test_packed_sequences_do_not_see_each_other(compiled):
    eager, ours = two_models(MODELS["llama"]())
    tokens, places = torch.randint(128, (1, 40)), torch.cat([torch.arange(25), torch.arange(15)])[None]
    a = eager(tokens, position_ids=places, use_cache=False)
    assert difference(a, ours(tokens, position_ids=places, use_cache=False)) < 1e-4
    assert difference(a, ours(tokens, use_cache=False)) > 1e-2  # else nothing was packed


@torch.no_grad()
def test_layers_of_one_kind_share_a_kernel(compiled):
    _, ours = two_models(MODELS["gemma2"]())
    for length in (20, 33, 40):
        ours(torch.randint(128, (1, length)))
    assert len(compiled) == 2  # sliding and full


@torch.no_grad()
def test_the_tokens_that_generate_gives_are_eagers(compiled):
    eager, ours = two_models(MODELS["gpt_oss"]())
    tokens = torch.randint(128, (1, 20))
    options = dict(max_new_tokens=12, do_sample=False)
    assert eager.generate(tokens, **options).tolist() == ours.generate(tokens, **options).tolist()


def test_a_mask_that_is_not_known_is_refused_by_name(compiled):
    def every_second(batch, head, query, key):
        return key % 2 == 0

    with pytest.raises(SpecError, match="every_second"):
        huggingface.attention_mask(1, 8, 8, mask_function=every_second)
    both = transformers.masking_utils.or_masks(transformers.masking_utils.causal_mask_function, every_second)
    with pytest.raises(SpecError, match="or_mask"):
        huggingface.attention_mask(1, 8, 8, mask_function=both)


def test_another_predicate_of_a_known_ones_name_is_refused(compiled):
    def later(batch, head, query, key):
        return key <= query + 1

    later.__module__, later.__qualname__ = "transformers.masking_utils", "causal_mask_function"
    with pytest.raises(SpecError, match="causal_mask_function is not one of"):
        huggingface.attention_mask(1, 8, 8, mask_function=later)
    later.__qualname__ = "sliding_window_overlay.<locals>.inner_mask"
    with pytest.raises(SpecError, match="inner_mask is not one of"):
        huggingface.attention_mask(1, 8, 8, mask_function=later)


def test_a_window_without_an_end_ahead_is_refused_where_queries_do_not_end_with_the_keys(compiled):
    window = transformers.masking_utils.sliding_window_overlay(3)
    assert huggingface.attention_mask(1, 8, 8, mask_function=window).window == 3
    with pytest.raises(SpecError, match="last query is at place 5 of 8"):
        huggingface.attention_mask(1, 1, 8, q_offset=4, mask_function=window)


def test_a_mask_of_four_dimensions_is_refused(compiled):
    with pytest.raises(ArgumentError, match="attention_mask has 4 dimensions"):
        huggingface.attention_mask(1, 8, 8, attention_mask=torch.ones(1, 1, 8, 8, dtype=torch.bool))


@torch.no_grad()
def test_a_mask_of_the_callers_own_is_refused(compiled):
    _, ours = two_models(MODELS["llama"]())
    with pytest.raises(ArgumentError, match="attention_mask is a Tensor of the"):
        ours(torch.randint(128, (1, 8)), attention_mask=torch.zeros(1, 1, 8, 8))


def test_dropout_is_refused(compiled):
    q = torch.zeros(1, 2, 4, 8)
    with pytest.raises(ArgumentError, match="dropout is 0.1; it should be 0"):
        huggingface.attention_forward(torch.nn.Module(), q, q, q, None, dropout=0.1)


def layer(**keywords):
    q, k, v = (torch.randn(1, 4, 8, 16) for _ in range(3))
    return huggingface.attention_forward(torch.nn.Identity(), q, k, v, None, **keywords), (q, k, v)


@pytest.mark.parametrize("name", ["cu_seq_lens_q", "block_indices", "indices", "a_keyword_of_tomorrow"])
def test_a_keyword_that_is_not_known_is_refused_by_its_name(compiled, name):
    with pytest.raises(ArgumentError, match=name):
        layer(**{name: torch.zeros(2, dtype=torch.int32)})
    layer(**{name: None})


def test_the_sinks_have_two_names(compiled):
    sinks = torch.randn(4)
    torch.manual_seed(1)
    one, _ = layer(sinks=sinks)
    torch.manual_seed(1)
    other, _ = layer(s_aux=sinks)
    assert torch.equal(one[0], other[0])
    torch.manual_seed(1)
    assert not torch.allclose(layer()[0][0], one[0])


def test_is_causal_and_the_window_count_where_there_is_no_mask(compiled):
    torch.manual_seed(1)
    (out, _), (q, k, v) = layer(is_causal=True, sliding_window=3)
    i, j = torch.arange(8)[:, None], torch.arange(8)
    scores = (q @ k.mT / 4).masked_fill((j > i) | (i - j >= 3), -torch.inf)
    torch.testing.assert_close(out.transpose(1, 2), scores.softmax(-1) @ v)


def test_the_window_of_an_encoder_reaches_as_far_ahead(compiled):
    """transformers gives FlashAttention (W - 1, W - 1)."""
    torch.manual_seed(1)
    (out, _), (q, k, v) = layer(is_causal=False, sliding_window=3)
    distance = (torch.arange(8)[:, None] - torch.arange(8)).abs()
    scores = (q @ k.mT / 4).masked_fill(distance >= 3, -torch.inf)
    torch.testing.assert_close(out.transpose(1, 2), scores.softmax(-1) @ v)
    with pytest.raises(ArgumentError, match="sliding_window is 0; it should be 1 or more"):
        layer(is_causal=False, sliding_window=0)


def test_two_tensors_of_sinks_are_refused_by_both_names(compiled):
    sinks = torch.randn(4)
    layer(sinks=sinks, s_aux=sinks)
    with pytest.raises(ArgumentError, match="s_aux is given beside sinks"):
        layer(sinks=sinks, s_aux=torch.randn(4))


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_generate_makes_the_masks_of_a_static_cache_itself(name, compiled):
    eager, ours = two_models(MODELS[name]())
    tokens, seen = torch.randint(128, (2, 20)), torch.ones(2, 20, dtype=torch.long)
    seen[1, :5] = 0
    options = dict(max_new_tokens=8, do_sample=False, pad_token_id=0, eos_token_id=None, attention_mask=seen, cache_implementation="static")
    assert eager.generate(tokens, **options).tolist() == ours.generate(tokens, **options).tolist()
    assert compiled


def test_a_mask_that_was_made_for_another_layer_is_refused(compiled):
    window = transformers.masking_utils.sliding_window_causal_mask_function(4)
    made = huggingface.attention_mask(1, 8, 8, mask_function=window)
    assert huggingface.attention_mask(1, 8, 8, mask_function=window, attention_mask=made) is made
    with pytest.raises(ArgumentError, match="Mask of another layer"):
        huggingface.attention_mask(1, 8, 8, mask_function=transformers.masking_utils.causal_mask_function, attention_mask=made)


def test_t5_keeps_its_bias(compiled):
    config = transformers.T5Config(vocab_size=128, d_model=64, d_kv=16, d_ff=64, num_layers=2, num_heads=4,
                                   dropout_rate=0.0)
    made = []
    for attention in ("eager", "kernelwright"):
        torch.manual_seed(0)
        made.append(transformers.T5EncoderModel._from_config(  # it keeps its configuration
            copy.deepcopy(config), attn_implementation=attention).eval())
    for name, parameter in made[0].named_parameters():
        if "relative_attention_bias" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    made[1].load_state_dict(made[0].state_dict())
    tokens = torch.randint(0, 128, (2, 20), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        want, got = (model(input_ids=tokens).last_hidden_state for model in made)
    assert compiled
    assert (want - got).abs().max() <= 1e-4 * want.abs().max()


def test_every_keyword_of_every_model_is_known():
    """Each keyword that a modelling file passes to the attention interface is an argument here, is without effect for a
    stated reason, or is refused by name."""
    import ast
    import inspect
    import pathlib

    known = set(inspect.signature(huggingface.attention_forward).parameters) | set(huggingface._WITHOUT_EFFECT)
    refused = {"cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "indices", "block_indices"}
    seen = {}
    for path in pathlib.Path(transformers.__file__).parent.glob("models/*/modeling_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "attention_interface":
                seen.update({k.arg: path.name for k in node.keywords if k.arg})
    assert len(seen) > 10
    assert not {name: file for name, file in seen.items() if name not in known | refused}
