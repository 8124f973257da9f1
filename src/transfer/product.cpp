// The rules of a product, in their order; docs/rules.md has a row for each.
//
// Places are found by structure: the product is what is added to the accumulator that is stored,
// its operands are what the copies fill that it reads, the output is where the tile goes that it is
// stored in. So the rules are the same for texts whose threads copy and multiply alike and for one
// with a loader; the sums of rows alone differ, by whole rows or by a pass behind the kernel.
#include "transfer/product.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "support/lines.h"
#include "transfer/coordinates.h"
#include "transfer/edit.h"
#include "transfer/product_places.h"
#include "transfer/product_rows.h"
#include "transfer/product_tiles.h"
#include "transfer/spell.h"
#include "transfer/write_map.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;
using tl::Op;
using tl::Stmt;

class ProductEdit {
 public:
  ProductEdit(const tl::Program& source, const spec::Form& form, const Target& target,
              Diagnostics& diagnostics)
      : form_(form), target_(target), diagnostics_(diagnostics) {
    result_.program = source;
    for (const char* name : {"i", "j", "c", "n", "k", "me", "steps", "u", "w", "i0"})
      taken_.insert(name);
    tl::walk(source.body, [&](const Stmt& s) {
      for (const tl::Field& f : s.fields)
        for (const tl::Item& item : f.items) taken_.insert(item.name);
    });
  }

  std::optional<Result> begin() {
    if (!find_facts() || !rule_tiles() || !rule_product() || !rule_batches() ||
        !rule_right_rows() || !rule_matrix())
      return std::nullopt;
    if (form_.product->returns_sums)
      result_.bindings.push_back({"sums", "", dims_of_output(false)});
    return std::move(result_);
  }

  std::optional<Result> run() {
    if (!find_facts()) return std::nullopt;
    const std::pair<const char*, bool (ProductEdit::*)()> rules[] = {
        {"tiles", &ProductEdit::rule_tiles},     {"product", &ProductEdit::rule_product},
        {"batches", &ProductEdit::rule_batches}, {"right_rows", &ProductEdit::rule_right_rows},
        {"value", &ProductEdit::rule_value},     {"row_sums", &ProductEdit::rule_row_sums},
        {"matrix", &ProductEdit::rule_matrix}};
    const tl::Program source = result_.program;
    for (const auto& [name, rule] : rules) {
      const tl::Program before = result_.program;
      if (!(this->*rule)()) return std::nullopt;
      const Change c = change(before, result_.program);
      if (!c.removed.empty() || !c.added.empty())
        result_.rules.push_back({name, joined(c.removed), joined(c.added)});
    }
    const Change all = change(source, result_.program);
    result_.statements_removed = static_cast<int>(all.removed.size());
    result_.statements_added = static_cast<int>(all.added.size());
    return std::move(result_);
  }

 private:
  bool refuse(const char* code, const Span& where, const std::string& what,
              const std::string& hint = {}) {
    diagnostics_.error(code, where, what).hint = hint;
    return false;
  }

  Span place(const ExprPtr& e) const {
    if (e->span.known()) return e->span;
    for (const ExprPtr& a : e->args)
      if (const Span s = place(a); s.known()) return s;
    return {};
  }

  bool condition(const std::string& holds, const std::string& why) {
    const tl::ExprPtr read = tl::parse_expr(holds, diagnostics_);
    if (read) result_.conditions.push_back({read, why});
    return read != nullptr;
  }

  bool insert(Found at, const std::string& text) {
    std::optional<Stmt> s = tl::parse_statement(text, diagnostics_);
    if (s) at.block->insert(at.block->begin() + at.at, std::move(*s));
    return s.has_value();
  }

  bool find_facts() {
    const tl::Program& p = result_.program;
    const auto missing = [&](const char* what) {
      return refuse("transfer.kernel", {},
                    fmt::format("this kernel is no product of matrices: it "
                                "has no {}",
                                what),
                    "kernels/sm80/gemm.cu is one");
    };
    const Stmt* product = find(p, [](const Stmt& s) { return is_product(s.op); });
    if (!product) return missing("gemm_add");
    has_right_rows_ =
        product->op == Op::gemm_add_transposed || product->op == Op::gemm_add_transposed_async;
    f_.acc = tl::base_name(product->expr("c"));
    std::string left = tl::base_name(product->expr("a"));
    const Stmt* load = find(
        p, [&](const Stmt& s) { return s.op == Op::load && tl::base_name(s.expr("d")) == left; });
    if (load) left = tl::base_name(load->expr("s"));
    const auto filled_from = [&](const std::string& tile) -> std::string {
      const Stmt* copy = find(
          p, [&](const Stmt& s) { return copies_in(s.op) && tl::base_name(s.expr("d")) == tile; });
      return copy ? tl::base_name(copy->expr("m")) : "";
    };
    f_.a = filled_from(left);
    f_.b = filled_from(tl::base_name(product->expr("b")));
    if (f_.a.empty() || f_.b.empty())
      return missing("copies of both operands (copy_tile_async, copy_tile_in, load_tile_async)");
    const Stmt* store = find(p, [&](const Stmt& s) {
      return s.op == Op::store && tl::base_name(s.expr("s")) == f_.acc;
    });
    if (!store) return missing("store of its accumulator");
    f_.o_tile = tl::base_name(store->expr("d"));
    const Stmt* out = find(p, [&](const Stmt& s) {
      return copies_out(s.op) && tl::base_name(s.expr("s")) == f_.o_tile;
    });
    if (!out) return missing("copy_tile_out or store_tile_async of its output");
    f_.o = tl::base_name(out->expr("m"));
    std::map<std::string, tl::ExprPtr> is;
    same_place(out->expr("s"), store->expr("d"), is);
    const auto here = [&](const tl::ExprPtr& e) -> tl::ExprPtr {
      const auto at = e->kind == tl::ExprKind::name ? is.find(e->text) : is.end();
      return at == is.end() ? nullptr : at->second;
    };
    f_.i0 = tl::rewrite(out->expr("r"), here);
    f_.j0 = tl::rewrite(out->expr("j"), here);
    const Stmt *a = declaration_of_argument(p, f_.a), *o = declaration_of_argument(p, f_.o);
    if (!a || !o || a->items("s").size() != 4 || o->items("s").size() != 4)
      return missing("operands of four dimensions");
    f_.batch = a->items("s")[0].name, f_.head = a->items("s")[1].name;
    f_.rows = a->items("s")[2].name, f_.sum = a->items("s")[3].name;
    f_.columns = o->items("s")[3].name;
    return true;
  }

  bool rule_tiles() { return product_tiles(result_, target_, diagnostics_); }

  // What the rules take for granted, the element type, and which argument is which.
  //
  //   element bf16  ->  element f16
  //
  // When     always. A left side whose rows do not follow each other in memory (a transposed one)
  //          is refused: 16 bytes of a row are copied at once.
  // Effect   none.
  bool rule_product() {
    const spec::Product& p = *form_.product;
    right_rows_ = has_right_rows_ || sums_along_rows(p.b, form_);
    if (!bind(p.a, f_.a, "i", "d") ||
        !(right_rows_ ? bind(p.b, f_.b, "j", "d") : bind(p.b, f_.b, "d", "j")))
      return false;
    if (p.returns_matrix) result_.bindings.push_back({f_.o, "", dims_of_output(true)});
    for (Stmt& s : result_.program.body)
      if (s.op == Op::element && s.word("t") != kw::name(form_.dtype)) {
        std::optional<Stmt> own =
            tl::parse_statement(fmt::format("element {}", kw::name(form_.dtype)), diagnostics_);
        if (!own) return false;
        s = std::move(*own);
      }
    const std::pair<const spec::Size*, std::string> sizes[] = {{&form_.B, f_.batch},
                                                               {&form_.H, f_.head},
                                                               {&form_.M, f_.rows},
                                                               {&form_.N, f_.columns},
                                                               {&form_.D, f_.sum}};
    std::map<std::string, std::string> seen;
    for (const auto& [size, letter] : sizes) {
      if (size->name.empty()) {
        if (!condition(fmt::format("{} == {}", letter, size->constant),
                       "the function fixes this size"))
          return false;
        continue;
      }
      const auto [at, fresh] = seen.emplace(size->name, letter);
      if (!fresh && !condition(fmt::format("{} == {}", letter, at->second),
                               "the function has one size for both"))
        return false;
      letters_.emplace(size->name, letter);
    }
    for (const std::string& letter : {f_.sum, f_.columns})
      if ((letter == f_.sum || !right_rows_ || p.returns_matrix) &&
          !condition(letter + " % 8 == 0", "16 bytes of a row are copied at once"))
        return false;
    return true;
  }

  std::vector<int> dims_of_output(bool columns) const {
    std::vector<int> dims;
    for (const char* role : {"b", "h", "i", "j"}) {
      if (!columns && role[0] == 'j') continue;
      const auto& user = form_.output_dims;
      const auto at = std::find(user.begin(), user.end(), role);
      dims.push_back(at == user.end() ? -1 : static_cast<int>(at - user.begin()));
    }
    return dims;
  }

  bool bind(const spec::Operand& operand, const std::string& name, const std::string& row,
            const std::string& column) {
    std::vector<int> dims;
    for (const std::string& role : {std::string("b"), std::string("h"), row, column}) {
      int at = -1;
      for (size_t n = 0; n < operand.indices.size(); ++n)
        if (operand.indices[n]->kind == Kind::index && operand.indices[n]->name == role)
          at = static_cast<int>(n);
      dims.push_back(at);
    }
    const spec::Argument* given = form_.argument(operand.argument);
    const Span span = given ? given->span : Span{};
    if (dims[2] < 0 || dims[3] < 0)
      return refuse("transfer.operand", span,
                    fmt::format("{} is not read at both {} and {}", operand.argument, row, column));
    if (given && !given->stride_order.empty() && given->stride_order.back() != dims[3])
      return refuse(
          "transfer.operand", span,
          fmt::format("{} is given with its dimension {} contiguous, the kernel copies rows "
                      "along dimension {}",
                      operand.argument, given->stride_order.back(), dims[3]),
          "pass it with that dimension contiguous: x.mT.contiguous().mT");
    if (given && given->dtype != form_.dtype)
      return refuse("transfer.dtype", span,
                    fmt::format("{} is {}, the product is of {}", operand.argument,
                                kw::name(given->dtype), kw::name(form_.dtype)));
    result_.bindings.push_back({name, operand.argument, dims});
    return true;
  }

  // A side without a batch is the same for all of them.
  //
  //   b: in element[B, H, K, N]                        ->  b: in element[E, F, K, N]
  //   copy_tile_async b[c.b, c.h, k * BK, n * BN] ...  ->  copy_tile_async b[0, 0, k * BK, n * BN]
  //   with E, F: size
  //
  // When     the function reads the side at no batch (or head), while the other side has one.
  // Effect   none.
  bool rule_batches() {
    for (const auto& [operand, name] :
         {std::pair(&form_.product->a, f_.a), {&form_.product->b, f_.b}})
      if (!shared(*operand, name)) return false;
    return true;
  }

  bool shared(const spec::Operand& operand, const std::string& name) {
    const auto lacks = [&](const char* index, const spec::Size& size) {
      const bool one = size.name.empty() && size.constant == 1;
      return !one && std::none_of(operand.indices.begin(), operand.indices.end(),
                                  [&](const ExprPtr& e) { return e->name == index; });
    };
    const bool no_batch = lacks("b", form_.B), no_head = lacks("h", form_.H);
    if (!no_batch && !no_head) return true;
    const Stmt* declared = declaration_of_argument(result_.program, name);
    std::string dims;
    std::vector<std::string> added;
    for (size_t n = 0; n < 4; ++n) {
      std::string letter = declared->items("s")[n].name;
      if ((n == 0 && no_batch) || (n == 1 && no_head)) {
        letter = fresh_letter();
        added.push_back(letter);
      }
      dims += (n ? ", " : "") + letter;
    }
    const bool tiled = declared->op == Op::arg_tiled;
    const Found at = place_of(result_.program.body, [&](const Stmt& s) { return &s == declared; });
    at.block->erase(at.block->begin() + at.at);
    if (!insert(at, fmt::format("{}: {}in element[{}]", name, tiled ? "tiled " : "", dims)))
      return false;
    for (const std::string& letter : added) {
      if (!add_argument(Op::arg_size, letter + ": size") ||
          !condition(letter + " == 1", "this side is the same in all batches"))
        return false;
    }
    tl::walk(result_.program.body, [&](Stmt& s) {
      if (!copies_in(s.op) || tl::base_name(s.expr("m")) != name) return;
      if (no_batch) s.items("b").at(0).expr = tl::integer(0);
      if (no_head) s.items("h").at(0).expr = tl::integer(0);
    });
    return true;
  }

  // A right side that is given with the sum along its rows, as the weights of torch.nn.Linear are.
  //
  //   b: in element[B, H, K, N]                        ->  b: in element[B, H, N, K]
  //   tile b_s: ring(STAGES) of element[BK, BN]        ->  tile b_s: ring(STAGES) of element[BN,
  //   BK] copy_tile_async b[.., k * BK, n * BN] -> b_s[k]  ->  copy_tile_async b[.., n * BN, k *
  //   BK] -> b_s[k] gemm_add acc += a_r @ b_s[k]                     ->  gemm_add_transposed acc +=
  //   a_r @ b_s[k].T
  //
  // When     the dimension of the right side that is contiguous is the one that is summed over.
  // Effect   none.
  bool rule_right_rows() {
    if (!right_rows_ || has_right_rows_) return true;
    return sum_along_right_rows(result_.program, f_.b, diagnostics_) ||
           refuse(
               "transfer.kernel", {},
               fmt::format("this kernel has no ring of tiles that `{}` alone is copied to and one "
                           "product reads",
                           f_.b),
               "kernels/sm80/gemm.cu has one");
  }

  // What becomes of an element of the product before it is rounded.
  //
  //   store acc -> o_s[me]  ->  map_at acc[i, j] from (i0, n * BN) = max(acc[i, j] + bias[j], 0.0)
  //                             store acc -> o_s[me]
  //   with bias: in bf16[N]
  //
  // When     the value is more than the product itself.
  // Effect   one rounding in f32 for each operation, before the output is rounded.
  bool rule_value() {
    const ExprPtr& value = form_.product->value;
    if (value->kind == Kind::score) return true;
    if (!add_arguments(value)) return false;
    Spelling how;
    const tl::ExprPtr i = tl::name("i"), j = tl::name("j");
    how.score = tl::index(tl::name(f_.acc), {i, j});
    how.indices = {{"i", i},
                   {"j", j},
                   {"b", tl::field(tl::name("c"), "b")},
                   {"h", tl::field(tl::name("c"), "h")}};
    const bool coordinates = has_coordinate(value);
    const auto body = spell(renamed(value), how, diagnostics_);
    if (!body) return false;
    return insert(store_place(),
                  map_text(coordinates ? Coordinates::integer : Coordinates::none, f_.acc,
                           tl::print(f_.i0), tl::print(f_.j0), tl::print(*body)));
  }

  Found store_place() {
    return place_of(result_.program.body, [&](const Stmt& s) {
      return s.op == Op::store && tl::base_name(s.expr("s")) == f_.acc;
    });
  }

  // The sums of the rows, by thread blocks that have whole rows.
  //
  //   columns: size = ceil_div(N, BN)                  ->  columns: size = 1
  //   return w % rows, n, n, ...                       ->  return w % rows, n, ceil_div(N, BN) - 1,
  //   ... store acc -> o_s[me]                             ->  row_sum l += acc
  //                                                        store acc -> o_s[me]
  //   with sums: out f32[B, H, M], a partial l, its total stored after the last tile, and elements
  //   beyond the last column 0 where their value may be another
  //
  // When     the function returns them. There are as many thread blocks as tiles downwards: the
  // order
  //          of additions is always the same, and nothing is added across thread blocks.
  // Effect   sums in f32 of elements before they are rounded.
  bool rule_row_sums() {
    if (!form_.product->returns_sums) return true;
    if (const Stmt* loader =
            find(result_.program, [](const Stmt& s) { return s.op == Op::worker; }))
      return loader && sums_in_parts();
    Stmt* columns = nullptr;
    Stmt* returns = nullptr;
    for (Stmt& s : result_.program.body) {
      if (s.op == Op::args)
        for (Stmt& a : s.body)
          if (a.op == Op::arg_size && a.items("d")[0].name == "columns") columns = &a;
      if (s.op == Op::def && s.word("n") == "block_of")
        for (Stmt& r : s.body)
          if (r.op == Op::return_) returns = &r;
    }
    const Found loop = place_of(result_.program.body, [](const Stmt& s) {
      return s.op == Op::descend && tl::print(s.expr("a")) == "c.last";
    });
    if (!columns || !returns || returns->items("a").size() != 5 || !loop.block)
      return refuse("transfer.kernel", {}, "this kernel has no loop over the columns of a block",
                    "kernels/sm80/gemm.cu has one");
    const auto fine = [&](Stmt& s, const std::string& text) {
      std::optional<Stmt> own = tl::parse_statement(text, diagnostics_);
      if (own) s = std::move(*own);
      return own.has_value();
    };
    std::vector<std::string> parts;
    for (const tl::Item& item : returns->items("a")) parts.push_back(tl::print(item.expr));
    parts[2] = fmt::format("ceil_div({}, BN) - 1", f_.columns);
    if (!fine(*columns, "columns: size = 1") ||
        !fine(*returns, fmt::format("return {}", fmt::join(parts, ", "))))
      return false;
    const std::string sums = fresh("sums"), l = fresh("l"), total = fresh("total_r");
    if (sums != "sums")
      return refuse("transfer.kernel", {}, "this kernel has a name 'sums' of its own", "");
    const std::string width = rows_of(result_.program, f_.acc);
    const bool may_be_other = form_.product->value->kind != Kind::score;
    const Found store = store_place();
    if (!insert(store, fmt::format("row_sum {} += {}", l, f_.acc)) ||
        (may_be_other && !insert(store, nothing_beyond_columns())))
      return false;
    const Found at = place_of(result_.program.body, [](const Stmt& s) {
      return s.op == Op::descend && tl::print(s.expr("a")) == "c.last";
    });
    const Found behind{at.block, at.at + 1};
    if (!insert(behind, fmt::format("store_rows {} -> sums[c.b, c.h, i0]", total)) ||
        !insert(behind, fmt::format("row {} = total({}): real[{}]", total, l, width)) ||
        !insert(at, fmt::format("fill {} = 0.0", l)) ||
        !insert(at, fmt::format("partial {}: real[{}]", l, width)))
      return false;
    result_.bindings.push_back({"sums", "", dims_of_output(false)});
    return add_argument(Op::arg_tensor,
                        fmt::format("sums: out f32[{}, {}, {}]", f_.batch, f_.head, f_.rows));
  }

  // The same where tiles of a row are dealt out to anybody: parts, and a pass behind the kernel.
  //
  //   store acc -> o_s[me][u]  ->  partial l: real[64]
  //                                fill l = 0.0
  //                                row_sum l += acc
  //                                row total_r = total(l): real[64]
  //                                store_part total_r -> parts[(c.b * H + c.h) * columns + c.n],
  //                                    rows c.m * BM + me * 64 of M
  //                                store acc -> o_s[me][u]
  //   with sums: out f32[B, H, M], parts: scratch[B * H * columns * M], and
  //   after add_sums, threads 256, w of ceil_div(M, 256) * H * B:
  //       add_parts parts of columns by w -> sums
  //
  // When     as above. A part is the sum over one tile's columns; they are added in their order.
  // Effect   sums in f32 of elements before they are rounded.
  bool sums_in_parts() {
    if (!knows_its_tile(result_.program))
      return refuse("transfer.kernel", {},
                    "this kernel does not say how many tiles a row has, and which one it works on",
                    "kernels/sm90/gemm.cu has `columns`, and a Block of m, n, h and b");
    const std::string sums = fresh("sums"), parts = fresh("parts"), l = fresh("l"),
                      total = fresh("total_r"), pass = fresh("add_sums");
    if (sums != "sums")
      return refuse("transfer.kernel", {}, "this kernel has a name 'sums' of its own", "");
    const PartOfRows part{
        f_.acc, rows_of(result_.program, f_.acc), l, total, parts, f_.head, tl::print(f_.i0),
        f_.rows};
    std::vector<std::string> lines = lines_of(part);
    if (form_.product->value->kind != Kind::score)
      lines.insert(lines.begin(), nothing_beyond_columns());
    for (const std::string& line : lines)
      if (!insert(store_place(), line)) return false;
    if (!add_argument(Op::arg_tensor,
                      fmt::format("sums: out f32[{}, {}, {}]", f_.batch, f_.head, f_.rows)))
      return false;
    const Found args =
        place_of(result_.program.body, [](const Stmt& s) { return s.op == Op::args; });
    std::vector<Stmt>& arguments = (*args.block)[args.at].body;
    if (!insert({&arguments, arguments.size()}, fmt::format("{}: scratch[{} * {} * columns * {}]",
                                                            parts, f_.batch, f_.head, f_.rows)))
      return false;
    result_.bindings.push_back({"sums", "", dims_of_output(false)});
    return insert({&result_.program.body, result_.program.body.size()},
                  fmt::format("after {0}, threads 256, w of ceil_div({1}, 256) * {2} * {3}:\n"
                              "    add_parts {4} of columns by w -> sums",
                              pass, f_.rows, f_.head, f_.batch, parts));
  }

  // What becomes of zeros beyond the last column may be another value.
  std::string nothing_beyond_columns() const {
    return fmt::format("map_at {0}[i, j] from ({1}, {2}) = where(j < {3}, {0}[i, j], 0.0)", f_.acc,
                       tl::print(f_.i0), tl::print(f_.j0), f_.columns);
  }

  // A matrix that nobody asks for is not written.
  //
  //   store acc -> o_s[me]; sync_worker me; copy_tile_out o_s[me] -> o[...] by 1  ->  (nothing)
  //   without o and o_s
  //
  // When     the function returns row sums alone.
  // Effect   none.
  bool rule_matrix() {
    if (form_.product->returns_matrix) return true;
    const Found store = store_place();
    store.block->erase(store.block->begin() + store.at);
    store_nothing(result_.program, f_.o, f_.o_tile);
    return true;
  }

  // ---- arguments of the value

  std::string fresh(const std::string& name) {
    std::string out = name;
    for (int n = 2; !taken_.insert(out).second; ++n) out = fmt::format("{}{}", name, n);
    return out;
  }
  std::string fresh_letter() {
    for (const char* letter : {"E", "F", "L", "P", "Q", "R", "S", "T", "U", "V", "W"})
      if (taken_.insert(letter).second) return letter;
    return fresh("X");
  }

  bool add_argument(Op after, const std::string& text) {
    for (Stmt& s : result_.program.body) {
      if (s.op != Op::args) continue;
      size_t at = 0;
      for (size_t n = 0; n < s.body.size(); ++n) {
        const bool computed = s.body[n].op == Op::arg_size && s.body[n].items("d")[0].expr;
        if (s.body[n].op == after && !computed) at = n + 1;
      }
      return insert({&s.body, at}, text);
    }
    return false;
  }

  bool add_arguments(const ExprPtr& e) {
    for (const ExprPtr& a : e->args)
      if (!add_arguments(a)) return false;
    if (e->kind != Kind::read && e->kind != Kind::argument) return true;
    if (names_.count(e->name)) return true;
    const spec::Argument* a = form_.argument(e->name);
    if (!a) return refuse("transfer.read", place(e), e->name + " is no argument of the function");
    const bool readable = a->dtype != Dtype::f64 && a->dtype != Dtype::u32 && a->dtype != Dtype::u8;
    if (!readable)
      return refuse("transfer.dtype", a->span,
                    fmt::format("{} is {}, which this kernel's vocabulary cannot read", e->name,
                                kw::name(a->dtype)),
                    "pass it as torch.float32");
    const std::string own =
        taken_.count(e->name) ? fresh(e->name + std::string(spec::kGiven)) : fresh(e->name);
    names_[e->name] = own;
    Binding binding{own, e->name, {}};
    if (e->kind == Kind::argument) {
      result_.bindings.push_back(binding);
      return add_argument(Op::arg_size, own + (is_float(a->dtype) ? ": f32" : ": i32"));
    }
    std::string dims;
    for (size_t n = 0; n < a->dims.size(); ++n) {
      dims += (n ? ", " : "") + letter_of(a->dims[n], e->args[n]);
      binding.dims.push_back(static_cast<int>(n));
    }
    result_.bindings.push_back(binding);
    return add_argument(Op::arg_tensor,
                        fmt::format("{}: in {}[{}]", own, kw::name(a->dtype), dims));
  }

  // What it is indexed by decides between sizes that are equal.
  std::string letter_of(const spec::Size& size, const ExprPtr& index) {
    const std::pair<const char*, const spec::Size*> known[] = {
        {"b", &form_.B}, {"h", &form_.H}, {"i", &form_.M}, {"j", &form_.N}};
    const std::string letters[] = {f_.batch, f_.head, f_.rows, f_.columns};
    for (size_t n = 0; n < 4; ++n)
      if (index->kind == Kind::index && index->name == known[n].first &&
          size.name == known[n].second->name && size.constant == known[n].second->constant)
        return letters[n];
    const auto at = letters_.find(size.name);
    if (!size.name.empty() && at != letters_.end()) return at->second;
    const std::string letter = fresh_letter();
    if (!size.name.empty()) letters_[size.name] = letter;
    add_argument(Op::arg_size, letter + ": size");
    return letter;
  }

  ExprPtr renamed(const ExprPtr& e) const {
    return spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      const auto& names = x->kind == Kind::size ? letters_ : names_;
      if (x->kind != Kind::size && x->kind != Kind::argument && x->kind != Kind::read)
        return nullptr;
      const auto found = names.find(x->name);
      if (found == names.end() || found->second == x->name) return nullptr;
      spec::Expr out = *x;
      out.name = found->second;
      return std::make_shared<const spec::Expr>(std::move(out));
    });
  }

  const spec::Form& form_;
  const Target& target_;
  Diagnostics& diagnostics_;
  Result result_;
  ProductFacts f_;
  bool right_rows_ = false;      // the right side is read [N, K]
  bool has_right_rows_ = false;  // and the kernel does so
  std::set<std::string> taken_;
  std::map<std::string, std::string> letters_, names_;  // the user's: the kernel's
};

}  // namespace

std::optional<Result> transfer_product(const tl::Program& source, const spec::Form& form,
                                       const Target& target, Diagnostics& diagnostics) {
  return ProductEdit(source, form, target, diagnostics).run();
}

std::optional<Result> begin_product(const tl::Program& source, const spec::Form& form,
                                    const Target& target, Diagnostics& diagnostics) {
  return ProductEdit(source, form, target, diagnostics).begin();
}

}  // namespace kw::transfer
