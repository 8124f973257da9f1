"""A cubin with one entry and no code, as bytes (see tests/unit/tiny_cubin.h)."""

import struct


def tiny_cubin(entry, parameter_bytes):
    names = ["", ".shstrtab", ".strtab", ".symtab", ".text." + entry, ".nv.info." + entry]
    table = "".join(name + "\0" for name in names).encode()
    starts = [sum(len(n) + 1 for n in names[:i]) for i in range(len(names))]
    symbol = struct.pack("<IBBHQQ", 1, 0x12, 0x10, 4, 0, 16)  # global function, a kernel entry
    contents = [b"", table, b"\0" + entry.encode() + b"\0", bytes(24) + symbol, bytes(16),
                struct.pack("<BBHIHHI", 4, 0x17, 12, 0, 0, 0, parameter_bytes << 18)]
    types = [0, 3, 3, 2, 1, 0x70000000]
    body, sections = b"", b""
    for i, content in enumerate(contents):
        link = 2 if i == 3 else 0
        sections += struct.pack("<IIQQQQIIQQ", starts[i], types[i], 0, 0, 64 + len(body),
                                len(content), link, 0, 0, 0)
        body += content
    ident = b"\x7fELF" + bytes([2, 1, 1, 0x41, 8]) + bytes(7)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 90 << 8,
                                 64, 0, 0, 64, 6, 1)
    return header + body + sections
