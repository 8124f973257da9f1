"""The table that tests/unit/num/dtype.cpp holds e4m3 against is PyTorch's own.

A row: a code, its value, and the codes of three numbers between it and the next value: just below the
halfway point, on it, just above. 480 would follow 448; from halfway to it on PyTorch gives NaN, 0x7f.
"""

import numpy as np
import torch

from kernelwright_cli import ROOT

TABLE = ROOT / "tests/unit/e4m3_rows.inc"


def rows():
    values = torch.arange(127, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    nexts = torch.cat([values[1:], torch.tensor([480.0])])
    middle = ((values + nexts) / 2).numpy()
    beside = np.nextafter(middle, np.float32(0)), middle, np.nextafter(middle, np.float32(np.inf))
    codes = [torch.from_numpy(x).to(torch.float8_e4m3fn).view(torch.uint8).tolist() for x in beside]
    return [f"{{{code}, {value}f, {', '.join(map(str, three))}}},\n"
            for code, (value, *three) in enumerate(zip(values.tolist(), *codes))]


def test_the_table_is_what_pytorch_gives():
    assert TABLE.read_text() == "".join(rows())


def test_every_code_and_its_negative_come_back():
    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    back = codes.view(torch.float8_e4m3fn).double().to(torch.float8_e4m3fn).view(torch.uint8)
    assert (back == codes).all()
