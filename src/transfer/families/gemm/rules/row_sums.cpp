// clang-format off
// The sums of the rows, by CTAs that have whole rows.
//
//   columns: size = ceil_div(N, BN)                  ->  columns: size = 1
//   return w % rows, n, n, ...                       ->  return w % rows, n, ceil_div(N, BN) - 1, ...
//   store acc -> o_s[me]                             ->  row_sum l += acc
//                                                        store acc -> o_s[me]
//   with sums: out f32[B, H, M], a lane sum l, its total stored after the last tile, and elements
//   beyond the last column 0 where their value may be another
//
// When     the function returns them. There are as many CTAs as tiles downwards: the order
//          of additions is always the same, and nothing is added across CTAs.
// Effect   sums in f32 of elements before they are rounded.
//
// The same where tiles of a row are dealt out to anybody: parts, and a pass behind the kernel.
//
//   store acc -> o_s[me][u]  ->  lane_sum l: real[64]
//                                fill l = 0.0
//                                row_sum l += acc
//                                row total_r = total(l): real[64]
//                                store_part total_r -> parts[(c.b * H + c.h) * columns + c.n], rows c.m * BM + me * 64 of M
//                                store acc -> o_s[me][u]
//   with sums: out f32[B, H, M], parts: scratch[B * H * columns * M], and
//   after add_sums, threads 256, w of ceil_div(M, 256) * H * B:
//       add_parts parts of columns by w -> sums
//
// When     as above. A part is the sum over one tile's columns; they are added in their order.
// Effect   as above.
// clang-format on
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "transfer/families/gemm/rules/rules.h"

namespace kw::transfer::gemm {

using spec::Kind;
using tl::Op;
using tl::Stmt;

namespace {

bool sums_in_parts(Edit& edit) {
  if (!knows_its_tile(edit.result.program))
    return edit.refuse(
        "transfer.kernel", {},
        "this kernel does not say how many tiles a row has, and which one it works on",
        "kernels/sm90/gemm.cu has `columns`, and a Block of m, n, h and b");
  const std::string sums = edit.fresh("sums"), parts = edit.fresh("parts"), l = edit.fresh("l"),
                    total = edit.fresh("total_r"), pass = edit.fresh("add_sums");
  if (sums != "sums")
    return edit.refuse("transfer.kernel", {}, "this kernel has a name 'sums' of its own", "");
  const PartOfRows part{edit.f.acc,
                        rows_of(edit.result.program, edit.f.acc),
                        l,
                        total,
                        parts,
                        edit.f.head,
                        tl::print(edit.f.i0),
                        edit.f.rows};
  std::vector<std::string> lines = lines_of(part);
  if (edit.form.product->value->kind != Kind::score)
    lines.insert(lines.begin(), edit.nothing_beyond_columns());
  for (const std::string& line : lines)
    if (!edit.insert(edit.store_place(), line)) return false;
  if (!edit.add_argument(Op::arg_tensor, fmt::format("sums: out f32[{}, {}, {}]", edit.f.batch,
                                                     edit.f.head, edit.f.rows)))
    return false;
  const Found args =
      place_of(edit.result.program.body, [](const Stmt& s) { return s.op == Op::args; });
  std::vector<Stmt>& arguments = (*args.block)[args.at].body;
  if (!edit.insert({&arguments, arguments.size()},
                   fmt::format("{}: scratch[{} * {} * columns * {}]", parts, edit.f.batch,
                               edit.f.head, edit.f.rows)))
    return false;
  edit.result.bindings.push_back({"sums", "", edit.dims_of_output(false)});
  return edit.insert({&edit.result.program.body, edit.result.program.body.size()},
                     fmt::format("after {0}, threads 256, w of ceil_div({1}, 256) * {2} * {3}:\n"
                                 "    add_parts {4} of columns by w -> sums",
                                 pass, edit.f.rows, edit.f.head, edit.f.batch, parts));
}

}  // namespace

bool rule_row_sums(Edit& edit) {
  if (!edit.form.returns("sums")) return true;
  if (const Stmt* loader =
          find(edit.result.program, [](const Stmt& s) { return s.op == Op::warpgroup; }))
    return loader && sums_in_parts(edit);
  Stmt* columns = nullptr;
  Stmt* returns = nullptr;
  for (Stmt& s : edit.result.program.body) {
    if (s.op == Op::args)
      for (Stmt& a : s.body)
        if (a.op == Op::arg_size && a.names()[0].name == "columns") columns = &a;
    if (s.op == Op::def && s.name() == "block_of")
      for (Stmt& r : s.body)
        if (r.op == Op::return_) returns = &r;
  }
  const Found loop = place_of(edit.result.program.body, [](const Stmt& s) {
    return s.op == Op::range_down && tl::print(s.begin()) == "c.last";
  });
  if (!columns || !returns || returns->values().size() != 5 || !loop.block)
    return edit.refuse("transfer.kernel", {}, "this kernel has no loop over the columns of a block",
                       "kernels/sm80/gemm.cu has one");
  const auto fine = [&](Stmt& s, const std::string& text) {
    std::optional<Stmt> own = tl::parse_statement(text, edit.diagnostics);
    if (own) s = std::move(*own);
    return own.has_value();
  };
  std::vector<std::string> parts;
  for (const tl::Item& item : returns->values()) parts.push_back(tl::print(item.expr));
  parts[2] = fmt::format("ceil_div({}, BN) - 1", edit.f.columns);
  if (!fine(*columns, "columns: size = 1") ||
      !fine(*returns, fmt::format("return {}", fmt::join(parts, ", "))))
    return false;
  const std::string sums = edit.fresh("sums"), l = edit.fresh("l"), total = edit.fresh("total_r");
  if (sums != "sums")
    return edit.refuse("transfer.kernel", {}, "this kernel has a name 'sums' of its own", "");
  const std::string width = rows_of(edit.result.program, edit.f.acc);
  const bool may_be_other = edit.form.product->value->kind != Kind::score;
  const Found store = edit.store_place();
  if (!edit.insert(store, fmt::format("row_sum {} += {}", l, edit.f.acc)) ||
      (may_be_other && !edit.insert(store, edit.nothing_beyond_columns())))
    return false;
  const Found at = place_of(edit.result.program.body, [](const Stmt& s) {
    return s.op == Op::range_down && tl::print(s.begin()) == "c.last";
  });
  const Found behind{at.block, at.at + 1};
  if (!edit.insert(behind, fmt::format("store_rows {} -> sums[c.b, c.h, i0]", total)) ||
      !edit.insert(behind, fmt::format("row {} = total({}): real[{}]", total, l, width)) ||
      !edit.insert(at, fmt::format("fill {} = 0.0", l)) ||
      !edit.insert(at, fmt::format("lane_sum {}: real[{}]", l, width)))
    return false;
  edit.result.bindings.push_back({"sums", "", edit.dims_of_output(false)});
  return edit.add_argument(Op::arg_tensor, fmt::format("sums: out f32[{}, {}, {}]", edit.f.batch,
                                                       edit.f.head, edit.f.rows));
}

}  // namespace kw::transfer::gemm
