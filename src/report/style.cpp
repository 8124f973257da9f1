// How the page looks: colours once, for light and for dark; then the page from top to bottom; last,
// narrow windows and paper. Fonts are the reader's own.
#include "report/style.h"

namespace kw::report {

Markup style_sheet() {
  return html(R"css(
:root{--paper:#fff;--ink:#1c2228;--soft:#5b6670;--line:#dde2e7;--panel:#f5f7f9;--link:#0b5cad;
--good:#1a7f4b;--good-bg:#e6f4ec;--unsure:#8a5a00;--unsure-bg:#fdf2d9;--bad:#b3261e;--bad-bg:#fce8e6;
--skipped:#eef1f4;--full:#7cc4a4;--partial:#fbd38a;--kept:#c46a12;--grid:#ffffff;
--add:#dff5e6;--add-ink:#0c5a30;--add-mark:#a5e3bb;--del:#fdeae8;--del-mark:#f6bfb9;--tl:#4a5a86;
--product:#6aa5e0;--compute:#f0b27a;--copy:#8fc98f;--wait:#e6eaee;--mark:#fff0b8;
--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media (prefers-color-scheme:dark){:root{--paper:#14181c;--ink:#e3e8ec;--soft:#98a4af;--line:#303840;
--panel:#1c2228;--link:#7fb8f0;--good:#6fd09b;--good-bg:#14301f;--unsure:#f0c063;--unsure-bg:#352a10;
--bad:#ff9a92;--bad-bg:#3c1a18;--skipped:#262d34;--full:#2f8f68;--partial:#8a6420;--kept:#f7b955;
--grid:#14181c;--add:#12301f;--add-ink:#a8e6c0;--add-mark:#1f5c39;--del:#38201f;--del-mark:#6d2f2b;
--tl:#a4b4e6;--product:#3a78b8;--compute:#a8682c;--copy:#3f7f46;--wait:#2a323a;--mark:#4d420f}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",
Roboto,"Helvetica Neue","DejaVu Sans",sans-serif;overflow-wrap:break-word}
main,.inner,footer{max-width:1480px;margin:0 auto;padding:0 28px}
h1{font-size:30px;line-height:1.2;margin:0;font-family:var(--mono)}
h2{font-size:19px;margin:0 0 10px} h3{font-size:15px;margin:18px 0 6px}
p,ul,dl{margin:0 0 10px} a{color:var(--link)} ul{padding-left:20px}
code,pre{font-family:var(--mono);font-size:13px}
pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:10px 12px;margin:0 0 10px;
white-space:pre-wrap;overflow-wrap:anywhere}
section{padding:22px 0;border-top:1px solid var(--line)} section.summary{border-top:0}
.note,figcaption{color:var(--soft);font-size:14px} .note p,figcaption p{margin:0}
.absent{background:var(--panel);border:1px dashed var(--line);border-radius:6px;padding:10px 12px}
header{border-top:6px solid;padding:18px 0 16px}
header.good{border-color:var(--good);background:var(--good-bg)}
header.unsure{border-color:var(--unsure);background:var(--unsure-bg)}
header.bad{border-color:var(--bad);background:var(--bad-bg)}
.brand{color:var(--soft);font-size:13px;margin:0 0 2px}
.verdict{font-size:21px;margin:8px 0 12px;max-width:60em}
.verdict .sign{display:inline-block;width:1.5em;height:1.5em;line-height:1.5em;border-radius:50%;text-align:center;
color:var(--paper);font-weight:700}
.good .sign{background:var(--good)} .unsure .sign{background:var(--unsure)} .bad .sign{background:var(--bad)}
.good .verdict strong{color:var(--good)} .unsure .verdict strong{color:var(--unsure)}
.bad .verdict strong{color:var(--bad)}
.chips,.rules,.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:8px;margin:0 0 4px}
.chip{border:1px solid var(--line);border-radius:99px;padding:2px 12px;font-size:14px;background:var(--paper)}
.chip.good{border-color:var(--good)} .chip.bad{border-color:var(--bad);color:var(--bad)}
.chip.unsure{border-color:var(--unsure)} .chip.open{border-style:dashed;border-color:var(--soft)}
.rules li{background:var(--panel);border:1px solid var(--line);border-radius:5px;padding:1px 9px;font-size:14px}
.rules .note{border:0;background:none;padding:1px 0}
.words h2{margin-top:18px} .words h2:first-child{margin-top:0}
.summary{display:grid;grid-template-columns:minmax(300px,5fr) 8fr;gap:36px}
.failure{display:grid;grid-template-columns:8fr 5fr;gap:36px;border-top:0} .failure>*{min-width:0}
.numbers{font-size:16px} .numbers td,.numbers th{padding:4px 28px 4px 0;font-family:var(--mono)}
.numbers .got{color:var(--bad);font-weight:700} .difference{font-size:17px;font-weight:600}
.findings{padding:0;list-style:none} .advice{padding-left:20px} .advice li{padding-bottom:8px}
.excerpt{border:1px solid var(--line);border-radius:6px;overflow:hidden}
.excerpt code{display:block;white-space:pre-wrap;overflow-wrap:anywhere;padding:1px 8px 1px 52px;
position:relative;min-height:1.5em}
.excerpt code::before{content:attr(data-line);position:absolute;left:0;width:40px;text-align:right;color:var(--soft)}
.excerpt .blamed{background:var(--del-mark);font-weight:700} .unsure .blamed{background:var(--mark)}
figure{margin:0}
svg{display:block;width:100%;height:auto;font-family:inherit}
svg.mask{max-width:430px;max-height:430px;border:1px solid var(--line);border-radius:3px;fill:none}
svg .skipped{fill:var(--skipped)} svg .full{stroke:var(--full)} svg .partial{stroke:var(--partial)}
svg .kept{stroke:var(--kept)} svg .lines{stroke:var(--grid)}
.legend{flex-direction:column;gap:2px;margin:10px 0} .legend.kinds{flex-direction:row;gap:18px}
.swatch{display:inline-block;width:13px;height:13px;border-radius:3px;margin-right:8px;vertical-align:-1px;
border:1px solid var(--line)}
.swatch.skipped{background:var(--skipped)} .swatch.full{background:var(--full)}
.swatch.partial{background:linear-gradient(135deg,var(--partial) 50%,var(--kept) 50%)}
.swatch.product{background:var(--product)} .swatch.compute{background:var(--compute)}
.swatch.copy{background:var(--copy)} .swatch.wait{background:var(--wait)}
.formula{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:12px 16px;font-family:var(--mono);
font-size:16px}
.formula div{display:grid;grid-template-columns:5.5em 1fr;padding:2px 0}
.formula dt{color:var(--soft);font-size:14px} .formula dd{margin:0;overflow-wrap:anywhere}
mark{background:var(--mark);color:inherit;border-radius:3px;padding:1px 5px}
.lines strong{font-size:22px} .lines{margin-bottom:6px}
.share{height:9px;background:var(--skipped);border-radius:5px;overflow:hidden;margin:0 0 14px}
.share span{display:block;height:100%;background:var(--kept)}
.limits{display:grid;grid-template-columns:2fr 1fr;gap:36px}
.checked,.unchecked,.trusted{list-style:none;padding:0}
.checked li,.unchecked li,.trusted li{padding:3px 0 3px 26px;position:relative;font-size:15px}
.checked li::before,.unchecked li::before,.trusted li::before{position:absolute;left:2px;font-weight:700}
.checked li.yes::before{content:"✓";color:var(--good)} .checked li.no::before{content:"✗";color:var(--bad)}
.unchecked li::before{content:"○";color:var(--unsure)} .trusted li::before{content:"·";color:var(--soft)}
.columns{display:grid;grid-template-columns:1fr 1fr;gap:20px} .columns>*{min-width:0}
.masks{grid-template-columns:repeat(auto-fill,minmax(280px,1fr))} .masks svg{max-width:280px}
details{margin:6px 0} summary{cursor:pointer;color:var(--link)}
.diff{border:1px solid var(--line);border-radius:6px;overflow:hidden}
.row{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1.12fr) minmax(0,.9fr)}
.row.head{background:var(--panel);font-size:13px;font-weight:600;border-bottom:1px solid var(--line)}
.row.head span{padding:5px 10px}
.row code{font-size:11.5px;line-height:1.45;white-space:pre-wrap;overflow-wrap:anywhere;padding:1px 8px 1px 40px;
position:relative;min-height:1.45em;tab-size:4}
.row code[data-line]::before{content:attr(data-line);position:absolute;left:0;width:32px;text-align:right;
color:var(--soft);opacity:.75}
.row .tl{padding:1px 8px;color:var(--tl);border-left:1px solid var(--line)} .tl span{display:block}
.tl .gone{text-decoration:line-through;opacity:.65}
.changed .old{background:var(--del)} .changed .new{background:var(--add)}
.changed .none{background:repeating-linear-gradient(135deg,transparent 0 5px,var(--skipped) 5px 6px)}
del{background:var(--del-mark);text-decoration:none;border-radius:2px}
ins{background:var(--add-mark);text-decoration:none;border-radius:2px}
.same{margin:0} .same>summary{background:var(--panel);font-size:12.5px;padding:3px 12px;
border-top:1px solid var(--line);border-bottom:1px solid var(--line)}
.before{border-left:3px solid var(--del-mark)} .after{border-left:3px solid var(--add-mark)}
.wide{overflow-x:auto} svg.pipeline{min-width:900px;font-size:9px;fill:var(--ink)}
.pipeline .product rect{fill:var(--product)} .pipeline .compute rect{fill:var(--compute)}
.pipeline .copy rect{fill:var(--copy)} .pipeline .wait rect{fill:var(--wait)}
.grid{stroke:var(--line);fill:none} .axis{fill:var(--soft);font-size:10px} .track{font-size:12px}
svg.roofline{max-width:760px;fill:var(--ink)} .roof{fill:none;stroke:var(--ink);stroke-width:2}
.point{fill:var(--kept)} .label{font-size:11px}
table{border-collapse:collapse;font-size:14px;margin:0 0 10px}
th,td{text-align:left;padding:3px 14px 3px 0;border-bottom:1px solid var(--line);font-weight:400;vertical-align:top}
thead th,.facts th{color:var(--soft)} .hashes code{font-size:11px;overflow-wrap:anywhere}
.bars{width:100%;max-width:760px} .bars td:nth-child(2){width:55%}
.bar{display:block;height:14px;margin-top:4px;background:var(--wait);border-radius:3px} .ours .bar{background:var(--kept)}
.ours th{font-weight:700}
dt{font-weight:600} dd{margin:0 0 4px 18px}
footer{color:var(--soft);font-size:13px;border-top:1px solid var(--line);padding-top:14px;padding-bottom:26px}
@media (max-width:1100px){.row{grid-template-columns:1fr 1fr}
.row .tl{grid-column:1/-1;border-left:0;padding-left:40px} .row .tl:empty{display:none}
.row.head span:last-child{display:none}}
@media (max-width:760px){main,.inner,footer{padding-left:14px;padding-right:14px}
.summary,.limits,.columns,.failure{grid-template-columns:minmax(0,1fr);gap:20px} .verdict{font-size:18px} h1{font-size:24px}
.row,.row.head{grid-template-columns:minmax(0,1fr)} .row:not(.changed) .old,.row .none,.row.head span:first-child{display:none}
.formula div{grid-template-columns:1fr} .formula{font-size:14px}}
@page{margin:12mm}
@media print{:root{color-scheme:light} body{font-size:12px} section{padding:12px 0} h2,h3,summary{break-after:avoid}
header,svg,.row code,.share,.swatch,.sign,del,ins,mark,.bar{-webkit-print-color-adjust:exact;print-color-adjust:exact}
.summary{grid-template-columns:2fr 3fr;gap:20px} .limits{grid-template-columns:2fr 1fr;gap:20px}
.formula div{grid-template-columns:5em 1fr} .formula,.formula dt{font-size:11px} .verdict{font-size:16px} .lines strong{font-size:17px}
.checked li,.unchecked li,.trusted li,.note,figcaption,.legend{font-size:11.5px}
.formula,figure,li,tr,.row{break-inside:avoid} .wide{overflow:visible} svg.pipeline{min-width:0}}
)css");
}

}  // namespace kw::report
