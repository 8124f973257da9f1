"""Where a tensor stands that a function reaches: how to read it at each call, and how to put another there while the function
is traced.

Calls read a place through a plain function (`reader`) whose one global or closure variable is the
user's own, so that torch.compile reads it as it would in the user's code, guards and all.
"""

import builtins
import dataclasses
import functools
import types


@dataclasses.dataclass
class Place:
    """Where a tensor stands. `get()` reads it, `set(value)` puts another there, `reader` is get() as
    a function without arguments that torch.compile can follow. Places of one `where` are the same."""
    name: str
    reader: object
    set: object
    where: tuple

    def get(self):
        return self.reader()


def in_cell(name, cell):
    def at():
        return cell

    code = at.__code__.replace(co_freevars=(name,), co_name=name)
    reader = types.FunctionType(code, {"__builtins__": builtins}, name, None, (cell,))
    return Place(name, reader, lambda value: setattr(cell, "cell_contents", value),
                 (id(cell),))


def in_globals(name, space):
    reader = types.FunctionType(compile(f"lambda: {name}", "<kernelwright>", "eval").co_consts[0], space)
    return Place(name, reader, functools.partial(space.__setitem__, name), (id(space), name))


def in_container(place, key):
    base = place.reader

    def put(value):
        whole = base()
        if isinstance(whole, tuple):
            items = [*whole[:key], value, *whole[key + 1:]]
            place.set(type(whole)(*items) if hasattr(whole, "_fields") else tuple(items))
        else:
            whole[key] = value

    return Place(f"{place.name}_{key}", lambda: base()[key], put, (*place.where, key))


def in_attribute(place, owner, key):
    base = place.reader if place else (lambda: owner)
    name = f"{place.name}_{key}" if place else key
    return Place(name, lambda: getattr(base(), key), lambda value: setattr(owner, key, value),
                 (id(owner), key))
