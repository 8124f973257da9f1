"""What a class has that its objects' meaning depends on: methods, properties, class attributes, an enum's members.

What Python itself generates and keeps of a class (annotations, tables of members, the text) is left away: it follows from
the rest. What is hard is named tuples, enums and dataclasses, whose machinery is among the user's own methods.
"""

import collections
import enum
import functools
import types

KEPT_BY_PYTHON = {"__annotations__", "__doc__", "__module__", "__dict__", "__weakref__", "__dataclass_fields__", "__dataclass_params__",
                  "__orig_bases__", "__parameters__", "__firstlineno__", "__static_attributes__", "__annotate__", "__annotate_func__",
                  "__annotations_cache__", "__abstractmethods__", "_abc_impl", "__qualname__"}
TABLES_OF_ENUM = {"_member_map_", "_value2member_map_", "_unhashable_values_", "_unhashable_values_map_", "_hashable_values_",
                  "_member_names_", "_member_type_", "_value_repr_", "_new_member_"}
OF_FROZEN = {"__setattr__", "__delattr__"}
OF_MEMBER = {"__objclass__", "_sort_order_"}


def is_named_tuple(kind):
    """Whether it reads its items as tuples do: a class of somebody's own may have methods that do not."""
    return hasattr(kind, "_fields") and kind.__bases__ == (tuple,) and not vars(kind).keys() & {"__getitem__", "__iter__", "__getattribute__", "__getattr__"}


def parts(kind):
    """[(name, value)], in the order of names. A value that makes another when it is read stands as the functions that do."""
    is_enum = isinstance(kind, type) and issubclass(kind, enum.Enum)
    members = kind.__members__ if is_enum else {}
    found = []
    for key, part in vars(kind).items():
        if key in KEPT_BY_PYTHON or key in members or (is_enum and key in TABLES_OF_ENUM):
            continue
        if is_named_tuple(kind) and _is_generated(part):
            part = getattr(part, "__defaults__", None)
        elif key in OF_FROZEN and "__dataclass_params__" in vars(kind) and getattr(getattr(part, "__code__", None), "co_filename", "") == "<string>":
            part = "frozen"  # its closure has the class itself, or the one before it had slots
        found.append((key, _readable(part)))
    for name, member in members.items():
        found.append((name, (member.name, *((k, v) for k, v in vars(member).items() if k not in OF_MEMBER))))
    return sorted(found, key=lambda item: item[0])


def _is_generated(part):
    """Of a named tuple: its __new__ and the methods that every one has."""
    function = getattr(part, "__func__", part)
    return isinstance(function, types.FunctionType) and (
        function.__code__.co_filename == collections.__file__ or function.__globals__.get("__name__", "").startswith("namedtuple_"))


def _readable(part):
    if isinstance(part, (property, types.DynamicClassAttribute)):
        return ("property", *([type(part)] if type(part) not in (property, enum.property) else []), part.fget, part.fset, part.fdel)
    if isinstance(part, (staticmethod, classmethod)):
        return (type(part).__name__, part.__func__)
    if type(part) is functools.cached_property:
        return ("cached_property", part.func)
    if type(part).__name__ == "_tuplegetter":
        return ("field", part.__reduce__()[1][0])
    return part
