"""docs/images/speeds.svg: ours beside the fastest peer, drawn from the table of docs/performance.md.

A few rows of "Variants beside their peers", one run on one GPU. Plain SVG, without a plotting library: two bars a row and
their figures. It has a background of its own in either colour scheme, so that it can be read on any page.
"""
import re

HEADING = "## Variants beside their peers"
# A row of the table, and what the chart calls it.
ROWS = {"full": "full", "causal": "causal", "causal window 1024": "causal, window 1024", "softcap 50, causal": "causal, soft cap 50",
        "ALiBi, slope table": "ALiBi, slopes in a table", "relative table": "relative bias, table", "prefix-LM 1024": "prefix-LM",
        "documents of 1024": "packed documents"}
WIDTH, LEFT, RIGHT, TOP, PITCH, BAR = 800, 178, 178, 62, 40, 14
STYLE = """
  .page { fill: #ffffff; } text { fill: #1f2328; font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
  .title { font-size: 15px; font-weight: 600; } .small { fill: #59636e; font-size: 11.5px; } .end { text-anchor: end; }
  .ours { fill: #1a7f37; } .peer { fill: #afb8c1; } .ratio { font-weight: 600; } .grid { stroke: #d1d9e0; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; } text { fill: #f0f6fc; } .small { fill: #9198a1; }
    .ours { fill: #3fb950; } .peer { fill: #59636e; } .grid { stroke: #3d444d; }
  }
"""


def rows(root):
    """[(label, ours, peer's figure, peer's name, ratio, sustained ratio)], as the table has them."""
    text = (root / "docs/performance.md").read_text().split(HEADING + "\n")[1].split("\n## ")[0]
    found = {}
    for line in re.findall(r"^\| (.*) \|$", text, re.M):
        cells = [cell.strip() for cell in line.split("|")]
        if cells[0] in ROWS:
            peer, name = cells[2].split(" ", 1)
            found[cells[0]] = (ROWS[cells[0]], int(cells[1]), int(peer), name, cells[3], cells[6])
    missing = [name for name in ROWS if name not in found]
    assert not missing, f"docs/performance.md has no row {missing}"
    return [found[name] for name in ROWS]


def page(root):
    """The picture. Bars begin at 0."""
    data = rows(root)
    most = 100 * -(-max(row[1] for row in data) // 100)
    scale = (WIDTH - LEFT - RIGHT) / most
    height = TOP + PITCH * len(data) + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
           'role="img" aria-label="TFLOP/s of kernelwright and of the fastest peer on an H200">',
           f"<style>{STYLE}</style>", f'<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>',
           '<text class="title" x="16" y="26">TFLOP/s on one H200: kernelwright and the fastest peer</text>',
           '<text class="small" x="16" y="45">forward, bf16, B 2, H 16, 8192 queries and keys, D 128; unmasked entries; '
           'bursts of one run, 2026-11-22</text>',
           f'<text class="small end" x="{WIDTH - 16}" y="45">ratio (sustained)</text>']
    bottom = TOP + PITCH * len(data)
    for tick in range(0, most + 1, 200):
        x = LEFT + tick * scale
        out.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}"/>')
        out.append(f'<text class="small" text-anchor="middle" x="{x:.1f}" y="{bottom + 16}">{tick}</text>')
    for n, (label, ours, peer, name, ratio, sustained) in enumerate(data):
        y = TOP + PITCH * n
        out.append(f'<text class="end" x="{LEFT - 10}" y="{y + 19}">{label}</text>')
        for kind, value, at, said in (("ours", ours, y, f"{ours}"), ("peer", peer, y + BAR + 2, f"{peer} {name}")):
            out.append(f'<rect class="{kind}" x="{LEFT}" y="{at}" width="{value * scale:.1f}" height="{BAR}" rx="2"/>')
            out.append(f'<text class="small" x="{LEFT + value * scale + 6:.1f}" y="{at + 11}">{said}</text>')
        out.append(f'<text class="end" x="{WIDTH - 16}" y="{y + 19}"><tspan class="ratio">{ratio}×</tspan> ({sustained}×)</text>')
    out.append(f'<rect class="ours" x="{LEFT}" y="{bottom + 24}" width="10" height="10" rx="2"/>'
               f'<text class="small" x="{LEFT + 16}" y="{bottom + 33}">kernelwright</text>'
               f'<rect class="peer" x="{LEFT + 110}" y="{bottom + 24}" width="10" height="10" rx="2"/>'
               f'<text class="small" x="{LEFT + 126}" y="{bottom + 33}">the fastest peer: FlashAttention-4 (FA4) or '
               'FlexAttention (its FLASH backend)</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
