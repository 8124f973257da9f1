"""Whether nobody but the caller sees a call: then it need not go through PyTorch's dispatcher.

The dispatcher lets others take part in an operator's call: torch.compile and torch.export record it,
modes and functorch's transformations (vmap, grad) replace it, a profiler names it. Where none of them
is there, all that it does for plain tensors is to find our function again, which takes longer than the
function itself. Several of these questions have no public name; in a PyTorch that lacks one, every call
goes through the dispatcher."""

import torch

_NAMES = ("_len_torch_dispatch_stack", "_len_torch_function_stack", "_get_tracing_state")
_known = (all(hasattr(torch._C, name) for name in _NAMES) and hasattr(torch.autograd, "_profiler_enabled")
          and hasattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack"))

if _known:
    from torch._C import _get_tracing_state, _len_torch_dispatch_stack, _len_torch_function_stack
    from torch._C._functorch import peek_interpreter_stack
    from torch.autograd import _profiler_enabled
    from torch.compiler import is_compiling

    def may_skip_dispatcher():
        """False while a call is traced, profiled, or in the scope of a mode or a transformation."""
        return not (is_compiling() or _len_torch_dispatch_stack() or _len_torch_function_stack()
                    or peek_interpreter_stack() is not None or _get_tracing_state() is not None
                    or _profiler_enabled())
else:
    def may_skip_dispatcher():
        """False: this PyTorch does not say."""
        return False
