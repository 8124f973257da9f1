"""The attention inside modules: what stands around the kernels, and how it is called.

No kernel is made here: a region is captured, which is what mostly refuses one, and its own function stands in for the kernel. So what is
held against eager is the cutting and the putting together, in every number. test_inside_made.py makes kernels."""

import pytest
import torch
import torch.nn.functional as F
from attention_modules import HOW, MinGPT, Cross, GPT2, Guarded, Llama, ViT, hidden
from torch import nn
from torch.utils._pytree import tree_leaves

from kernelwright.capture import capture, live_function
from kernelwright.capture.dependencies import Dependencies
from kernelwright.capture.diagnostic import Problem
from kernelwright.compiling.inside.inside import compile_inside
from kernelwright.errors import ArgumentError, SpecError


def judge(function, values):
    """Captures, and gives the function itself."""
    spec, _ = live_function.user_spec(function, values, Dependencies(function).places)
    try:
        capture.capture(spec, None, [(1, 5, 5)])
    except Problem as problem:
        raise SpecError(problem.message, spec.file, problem.line, problem.column, problem.code, problem.hint or None) from None
    return function


def inside(target, args, keywords=None, dtype=None, strict=False):
    return compile_inside(target, args, keywords or {}, judge, dtype, strict)


@pytest.fixture(scope="module")
def compiled():
    made = {}

    def of(name):
        if name not in made:
            make, arguments, keywords = HOW[name]
            torch.manual_seed(0)
            module = make().eval().to(torch.bfloat16)
            module = module.half() if name == "plain" else module
            args = tuple(x.half() if name == "plain" else x for x in arguments(2, 40))
            made[name] = module, inside(module, args if len(set(map(id, arguments(2, 40)))) > 1 else (args[0],) * len(args), keywords)
        return made[name]

    return of


def called(name, batch, length):
    _, arguments, keywords = HOW[name]
    args = arguments(batch, length)
    args = tuple(x.half() if name == "plain" else x for x in args)
    return args, keywords


def assert_same(got, due, limit=0.0):
    got, due = tree_leaves(got), tree_leaves(due)
    assert len(got) == len(due)
    for a, b in zip(got, due):
        if isinstance(b, torch.Tensor):
            assert a.dtype == b.dtype and a.shape == b.shape
            assert (a.double() - b.double()).norm() <= limit * b.double().norm()
        else:
            assert a == b


@pytest.mark.parametrize("name", HOW)
def test_it_is_the_module_for_the_example_and_for_other_sizes(compiled, name):
    module, fast = compiled(name)
    for batch, length in ((2, 40), (3, 57), (1, 30)):
        args, keywords = called(name, batch, length)
        assert_same(fast(*args, **keywords), module(*args, **keywords), limit=2e-3 if "mha" in name else 0)


@pytest.mark.parametrize("name", HOW)
def test_torch_compile_takes_it_whole(compiled, name):
    module, fast = compiled(name)
    args, keywords = called(name, 2, 48)
    traced = torch.compile(fast, fullgraph=True, backend="eager")
    assert_same(traced(*args, **keywords), module(*args, **keywords), limit=2e-3 if "mha" in name else 0)


@pytest.mark.parametrize("name", sorted(HOW.keys() - {"plain"}))
def test_gradients_come_to_the_parameters(compiled, name):
    module, fast = compiled(name)
    args, keywords = called(name, 2, 32)

    def gradients(call):
        module.zero_grad()
        out = [x for x in tree_leaves(call(*args, **keywords)) if isinstance(x, torch.Tensor) and x.requires_grad]
        sum(x.float().square().mean() for x in out).backward()
        return {key: p.grad for key, p in module.named_parameters()}

    due, got = gradients(module), gradients(fast)
    for key in due:
        assert (due[key] is None) == (got[key] is None), key
        assert due[key] is None or torch.equal(due[key], got[key]), key


@pytest.mark.parametrize("name", sorted(HOW.keys() - {"plain"}))
def test_a_step_of_an_optimizer_is_seen(compiled, name):
    module, fast = compiled(name)
    args, keywords = called(name, 2, 32)
    state = {key: value.clone() for key, value in module.state_dict().items()}
    try:
        with torch.no_grad():
            for p in module.parameters():
                p.mul_(0.5).add_(0.01)
        assert_same(fast(*args, **keywords), module(*args, **keywords), limit=2e-3 if "mha" in name else 0)
        for part in module.modules():  # other tensors in the place of the parameters
            for key, p in list(part._parameters.items()):
                if p is not None:
                    setattr(part, key, nn.Parameter(p.detach() * 1.25))
        assert_same(fast(*args, **keywords), module(*args, **keywords), limit=2e-3 if "mha" in name else 0)
    finally:
        module.load_state_dict(state)


def test_equal_attentions_are_one_kernel_and_others_two(compiled):
    _, fast = compiled("two")
    assert fast.plan.kernels == 2 and len(fast.kernels) == 1

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = GPT2(), ViT()

        def forward(self, x):
            return self.b(self.a(x))

    module = Both().eval().bfloat16()
    fast = inside(module, (hidden(2, 40),))
    assert len(fast.kernels) == 2
    assert_same(fast(hidden(3, 33)), module(hidden(3, 33)))


def test_the_plan_says_where_each_operator_runs_and_why(compiled):
    _, fast = compiled("gpt2")
    text = str(fast.plan)
    assert text.index("before") < text.index("kernel 1") < text.index("behind")
    where = {o.name: o.where for o in fast.plan.operators}
    assert where["scaled_dot_product_attention"] == "kernel 1" and where["layer_norm"] == "before" and where["add"] == "behind"
    assert all(o.reason for o in fast.plan.operators if o.where != "kernel 1")
    assert all("attention_modules.py:" in o.place for o in fast.plan.operators if o.name in ("linear", "add"))
    q = next(c for c in fast.plan.crossings if c.name == "q")
    assert (q.shape, q.dtype, q.bytes) == ((2, 40, 4, 64), "bfloat16", 2 * 40 * 4 * 64 * 2)


def test_no_view_of_qkv_is_in_the_kernel_and_a_rotation_is(compiled):
    _, fast = compiled("llama")
    inner = [o.name for o in fast.plan.operators if o.where == "kernel 1"]
    assert "cat" in inner and "neg" in inner and "view" not in inner and "split_with_sizes" not in inner
    assert [c.name for c in fast.plan.crossings[:3]] == ["q", "k", "v"]


def test_strict_refuses_what_is_outside_and_takes_what_is_whole():
    module = GPT2().eval().bfloat16()
    with pytest.raises(SpecError, match="attention_modules.py:.*layer_norm is not part of the attention kernel"):
        inside(module, (hidden(2, 40),), strict=True)
    args, _ = called("plain", 2, 40)
    assert inside(HOW["plain"][0](), args, strict=True).plan.whole


def test_fp32_is_cast_at_the_border_and_back():
    torch.manual_seed(0)
    module = MinGPT().eval()
    x = hidden(2, 40, torch.float32)
    fast = inside(module, (x,), dtype=torch.bfloat16)
    notes = [c.note for c in fast.plan.crossings]
    assert notes[:3] == ["cast to bfloat16"] * 3 and notes[-1] == "cast back to float32"
    assert fast(x).dtype == torch.float32
    assert_same(fast(x), module(x), limit=1e-2)
    with pytest.raises(SpecError, match="float32.*\n.*dtype=torch.bfloat16"):
        inside(module, (x,))


def test_dropout_in_training_is_refused_by_its_line_and_in_evaluation_it_is_none():
    with pytest.raises(SpecError, match="attention_modules.py:.*probability 0.1, since the module is in training mode"):
        inside(GPT2().train().bfloat16(), (hidden(2, 40),))
    module = GPT2().eval().bfloat16()
    fast = inside(module, (hidden(2, 40),))
    module.train()
    with pytest.raises(ArgumentError, match="in training mode; it should be in evaluation mode"):
        fast(hidden(2, 40))


def test_a_module_whose_mode_is_nothing_to_it_trains():
    module = GPT2(dropout=0.0).eval().bfloat16()
    fast = inside(module, (hidden(2, 40),))
    module.train()
    assert_same(fast(hidden(2, 40)), module(hidden(2, 40)))


def test_guards_are_written_out():
    torch.manual_seed(0)
    module = Guarded().eval()
    fast = inside(module, (hidden(2, 40, torch.float32),))
    x = hidden(3, 50, torch.float32).requires_grad_()
    assert_same(fast(x), module(x))
    due, got = (torch.autograd.grad(call(x).square().mean(), x)[0] for call in (module, fast))
    assert torch.equal(due, got)


class Heads(nn.Module):
    """Makes q, k and v of one projection, and what `of` makes of them is the output."""

    def __init__(self, of, groups=4):
        super().__init__()
        self.q, self.kv, self.of, self.groups = nn.Linear(256, 256), nn.Linear(256, 2 * groups * 64), of, groups

    def forward(self, x):
        q = self.q(x).view(*x.shape[:2], 4, 64)
        return self.of(q, *self.kv(x).view(*x.shape[:2], 2, self.groups, 64).unbind(2))


def einsum(q, k, v):
    weights = (torch.einsum("bihd,bjhd->bhij", q, k) * 0.125).softmax(-1)
    return torch.einsum("bhij,bjhd->bihd", weights, v)


def groups_apart(q, k, v):
    q = q.unflatten(2, (2, 2)).permute(0, 2, 3, 1, 4)
    k, v = (x.transpose(1, 2)[:, :, None] for x in (k, v))
    return ((q @ k.mT * 0.125).softmax(-1) @ v).permute(0, 3, 1, 2, 4)


def batches_of_heads(q, k, v):
    q, k, v = (x.transpose(1, 2).flatten(0, 1) for x in (q, k, v))
    return torch.bmm(torch.bmm(q, k.transpose(1, 2)).mul(0.125).softmax(-1), v).unflatten(0, (-1, 4))


def written(q, k, v):
    scores = q.transpose(1, 2) @ k.transpose(1, 2).mT
    scores *= 0.125
    scores.masked_fill_(torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu_(1), -torch.inf)
    out = scores.softmax(-1) @ v.transpose(1, 2)
    out += 1
    return out


def columns_first(q, k, v):
    q, k, v = (x.permute(0, 2, 3, 1).contiguous().mT for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v)


def log_sums(q, k, v):
    scores = q.transpose(1, 2) @ k.transpose(1, 2).mT * 0.125
    return scores.softmax(-1) @ v.transpose(1, 2), scores.logsumexp(-1)


def a_literal(q, k, v):
    q = q * torch.tensor([0.5, 2.0]).repeat(32).to(q.dtype)
    return F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), scale=0.3)


def twice(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(F.scaled_dot_product_attention(q, k, v) * 0.5, k, v)


def one_from_the_other(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    a, b = (F.softmax(x @ y.mT * 0.125, -1) @ v for x, y in ((q, k), (k, q)))
    return a - 0.3 * b


@pytest.mark.parametrize("of", [einsum, batches_of_heads, written, columns_first, log_sums, a_literal, twice, one_from_the_other])
def test_attention_may_be_written_in_many_ways(of):
    torch.manual_seed(0)
    module = Heads(of).bfloat16()
    fast = inside(module, (hidden(2, 40),))
    for x in (hidden(2, 40), hidden(3, 57)):
        assert_same(fast(x), module(x), limit=2e-3)
    assert not {"linear"} & {o.name for o in fast.plan.operators if o.where.startswith("kernel")}


def heads_by_a_view(q, k, v):
    b, s, _ = q.shape
    q, k, v = (x.view(b, -1, 8, 64).transpose(1, 2) for x in (q, k, v))
    return ((q @ k.mT / 8).softmax(-1) @ v).transpose(1, 2).reshape(b, s, 512)


def heads_by_a_chunk(qkv):
    b, s, _ = qkv.shape
    q, k, v = (x.view(b, s, 8, 64).transpose(1, 2) for x in qkv.chunk(3, -1))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, s, 512)


def multi_head(q, k, v, w, b, wo, bo):
    return F.multi_head_attention_forward(q, k, v, 512, 8, w, b, None, None, False, 0.0, wo, bo, need_weights=False)[0]


@pytest.mark.parametrize("function, widths", [(heads_by_a_view, [512] * 3), (heads_by_a_chunk, [1536]), (multi_head, [512] * 3)])
def test_how_wide_heads_are_is_the_examples_where_a_view_leaves_it_open(function, widths):
    def args(batch, length):
        shapes = [(length, batch, w) if function is multi_head else (batch, length, w) for w in widths]
        shapes += [(1536, 512), (1536,), (512, 512), (512,)] if function is multi_head else []
        torch.manual_seed(batch)
        return tuple(torch.randn(s, dtype=torch.bfloat16) * (0.05 if len(s) < 3 else 1) for s in shapes)
    fast = inside(function, args(2, 40))
    assert fast.plan.kernels == 1
    for given in (args(2, 40), args(3, 57)):
        assert_same(fast(*given), function(*given), limit=2e-3)
    wide = tuple(torch.cat((x, x), -1) if x.dim() == 3 else x for x in args(2, 40))
    with pytest.raises(ArgumentError, match=f"have {widths[0]}"):
        fast(*wide)


def test_heads_in_two_dimensions_are_one_to_the_kernel():
    module = Heads(groups_apart, groups=2).bfloat16()
    fast = inside(module, (hidden(2, 40),))
    assert_same(fast(hidden(3, 33)), module(hidden(3, 33)))
    assert ".flatten(" in fast.text and ".unflatten(" in fast.text


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.norm = nn.Linear(256, 768), nn.LayerNorm(64)

    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 4, 64).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(self.norm(q), k, v)


def test_a_norm_of_rows_is_in_the_kernel_where_its_weight_is_not_learned():
    module = Normed().bfloat16()
    for learned, where in ((True, "before"), (False, "kernel 1")):
        module.norm.requires_grad_(learned)
        fast = inside(module, (hidden(2, 40),))
        norm = next(o for o in fast.plan.operators if o.name == "layer_norm")
        assert norm.where == where and ("no kernel gives that" in norm.reason) == learned
        assert_same(fast(hidden(3, 33)), module(hidden(3, 33)))


class Columns(nn.Module):
    """What convolutions give: [B, H, D, S]."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(256, 768)

    def forward(self, x):
        q, k, v = self.qkv(x).mT.contiguous().unflatten(1, (3, 4, 64)).unbind(1)
        weights = (q.mT @ k * 0.125).softmax(-1)
        return v @ weights.mT


def test_rows_whose_last_dimension_is_their_length_are_turned_and_copied_and_the_plan_says_so():
    module = Columns().bfloat16()
    fast = inside(module, (hidden(2, 40),))
    assert_same(fast(hidden(3, 33)), module(hidden(3, 33)))
    assert [c.shape[-1] for c in fast.plan.crossings] == [64, 40, 40, 40]  # of the user's tensors
    assert fast.text.count(".mT") >= 3 and "made contiguous" in {c.note for c in fast.plan.crossings}


# ---- what a call must be


@pytest.mark.parametrize("name, change, said", [
    ("gpt2", lambda x: (x[..., :128],), "x has 128 in dimension 2; it should have 256"),
    ("gpt2", lambda x: (x.float(),), "x is float32; it should be bfloat16"),
    ("gpt2", lambda x: (x[0],), "x has 2 dimensions; it should have 3"),
    ("mingpt", lambda x: (hidden(2, 600),), "x is of a size for which"),
    ("cross", lambda x: (x, hidden(3, 20, width=128)), "context has 3 in dimension 0; it should have 2"),
    ("mha", lambda x: (x, x.clone(), x), "key is another tensor than query"),
])
def test_a_call_of_another_kind_is_refused_by_name(compiled, name, change, said):
    _, fast = compiled(name)
    with pytest.raises(ArgumentError, match=said):
        fast(*change(hidden(2, 40)), **HOW[name][2])


def test_keys_and_values_of_a_cache_have_one_length():
    class Cached(Heads):
        def __init__(self):
            super().__init__(None)

        def forward(self, x, past):
            q = self.q(x).view(*x.shape[:2], 4, 64).transpose(1, 2)
            k, v = (t.transpose(1, 2) for t in self.kv(x).view(*x.shape[:2], 2, 4, 64).unbind(2))
            k, v = (torch.cat(pair, 2) for pair in zip(past, (k, v)))
            return F.scaled_dot_product_attention(q, k, v), (k, v)

    def cache(batch, length):
        return tuple(x.transpose(1, 2) for x in hidden(batch, length).view(batch, length, 4, 64)[None].repeat(2, 1, 1, 1, 1))

    module = Cached().bfloat16()
    fast = inside(module, (hidden(2, 40), cache(2, 17)))
    assert_same(fast(hidden(3, 33), cache(3, 9)), module(hidden(3, 33), cache(3, 9)))
    with pytest.raises(ArgumentError, match="past_1_ has 8 in dimension 2; it should have 9"):
        fast(hidden(3, 33), (cache(3, 9)[0], cache(3, 8)[1]))


def test_another_module_in_the_place_of_one_is_refused():
    module = GPT2().eval().bfloat16()
    fast = inside(module, (hidden(2, 40),))
    module.c_attn = nn.Linear(256, 768).bfloat16()
    with pytest.raises(ArgumentError, match="c_attn is another module than when it was compiled"):
        fast(hidden(2, 40))


def test_a_flag_is_the_examples(compiled):
    _, fast = compiled("mha")
    x = hidden(2, 40)
    with pytest.raises(ArgumentError, match="need_weights is True; it should be False"):
        fast(x, x, x)


def test_a_decision_on_a_length_holds_for_each_call():
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = ViT()

        def forward(self, x):
            if x.shape[1] > 20:
                return self.layer(x)
            return self.layer(x * 2)

    module = Branches().bfloat16()
    fast = inside(module, (hidden(2, 40),))
    assert_same(fast(hidden(2, 30)), module(hidden(2, 30)))
    with pytest.raises(ArgumentError, match="x is of a size for which"):
        fast(hidden(2, 10))


def test_a_table_may_be_as_long_as_it_is(compiled):
    module, fast = compiled("mingpt")
    for length in (512, 1):
        assert_same(fast(hidden(2, length)), module(hidden(2, length)))


# ---- what is refused


def test_what_holds_no_attention_is_refused_with_its_products():
    module = nn.Sequential(nn.Linear(WIDTH := 256, 512), nn.ReLU(), nn.Linear(512, WIDTH)).bfloat16()
    with pytest.raises(SpecError, match="contains no attention: it has 2 products of matrices"):
        inside(module, (hidden(2, 40),))


def test_the_reason_is_the_cores_at_the_users_line():
    class Selects(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(256, 768)

        def forward(self, x):
            q, k, v = self.qkv(x).view(*x.shape[:2], 3, 4, 64).permute(2, 0, 3, 1, 4)
            scores = (q @ k.mT).sort(-1)[0]
            return scores.softmax(-1) @ v

    with pytest.raises(SpecError, match=r"test_inside.py:\d+:1: .*selects by value"):
        inside(Selects().bfloat16(), (hidden(2, 40),))


def test_weights_that_are_given_back_are_refused():
    def both(x, w):
        q, k, v = (x @ w).view(*x.shape[:2], 3, 4, 64).permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT).softmax(-1)
        return weights @ v, weights

    with pytest.raises(SpecError, match="softmax gives is read by the output, too, and a kernel keeps neither"):
        inside(both, (hidden(2, 40), torch.randn(256, 768).bfloat16()))


def test_a_write_that_others_see_is_refused():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = ViT()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x):
            self.calls.add_(1)
            return self.layer(x)

    with pytest.raises(SpecError, match="writes into .*calls.*which others see"):
        inside(Counts().bfloat16(), (hidden(2, 40),))


def test_what_data_decide_is_refused_at_its_line():
    class Decides(ViT):
        def forward(self, x):
            return super().forward(x) if x.sum() > 0 else x

    with pytest.raises(SpecError, match=r"test_inside.py:\d+:1: what happens next depends on a tensor's value"):
        inside(Decides().bfloat16(), (hidden(2, 40),))


def test_functions_and_methods_are_taken_like_modules():
    weight = torch.randn(256, 768).bfloat16() * 0.05

    def function(x, *, scale=None):
        q, k, v = (x @ weight).view(*x.shape[:2], 3, 4, 64).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, scale=scale).transpose(1, 2).flatten(2)

    fast = inside(function, (hidden(2, 40),), {"scale": 0.25})
    assert_same(fast(hidden(3, 31), scale=0.25), function(hidden(3, 31), scale=0.25))
    weight.mul_(0.5)
    assert_same(fast(hidden(3, 31), scale=0.25), function(hidden(3, 31), scale=0.25))
    module = Llama().bfloat16()
    fast = inside(module.forward, (hidden(2, 40),))
    assert_same(fast(hidden(3, 31)), module(hidden(3, 31)))


def test_the_modules_forward_can_be_put_in_its_place():
    module = Cross().bfloat16()
    args = (hidden(2, 40), hidden(2, 20, width=128))
    due = module(*args)
    module.forward = inside(module, args)
    assert_same(module(*args), due)
    assert set(module.state_dict()) == set(Cross().state_dict())
