#include "transfer/families/gemm/edit.h"

#include <fmt/format.h>

#include <algorithm>

#include "tl/traits.h"
#include "transfer/editing/declarations.h"
#include "transfer/editing/edits.h"

namespace kw::transfer::gemm {

using spec::ExprPtr;
using spec::Kind;
using tl::Op;
using tl::Stmt;

Edit::Edit(const tl::Program& source, const spec::Form& the_form, const Target& the_target,
           Diagnostics& said)
    : form(the_form), target(the_target), diagnostics(said) {
  result.program = source;
  for (const char* name : {"i", "j", "c", "n", "k", "me", "steps", "u", "w", "i0"})
    taken.insert(name);
  tl::walk(source.body, [&](const Stmt& s) {
    for (const tl::Field& f : s.fields)
      for (const tl::Item& item : f.items) taken.insert(item.name);
  });
}

bool Edit::refuse(const char* code, const Span& where, const std::string& what,
                  const std::string& hint) {
  diagnostics.error(code, where, what).hint = hint;
  return false;
}

bool Edit::condition(const std::string& holds, const std::string& why) {
  return add_condition(result, holds, why, diagnostics);
}

bool Edit::insert(Found at, const std::string& text) {
  std::optional<Stmt> s = tl::parse_statement(text, diagnostics);
  if (s) at.block->insert(at.block->begin() + at.at, std::move(*s));
  return s.has_value();
}

bool Edit::find_facts() {
  const tl::Program& p = result.program;
  const auto missing = [&](const char* what) {
    return refuse("transfer.kernel", {},
                  fmt::format("this kernel is not a GEMM: it has no {}", what),
                  "kernels/sm80/gemm.cu is one");
  };
  const Stmt* product = find(p, [](const Stmt& s) { return tl::adds_product(s.op); });
  if (!product) return missing("mma_add");
  has_right_rows = tl::traits(product->op).transposed;
  f.acc = tl::base_name(product->acc());
  std::string left = tl::base_name(product->a());
  const Stmt* load =
      find(p, [&](const Stmt& s) { return s.op == Op::load && tl::base_name(s.dst()) == left; });
  if (load) left = tl::base_name(load->src());
  const auto filled_from = [&](const std::string& tile) -> std::string {
    const Stmt* copy =
        find(p, [&](const Stmt& s) { return copies_in(s.op) && tl::base_name(s.dst()) == tile; });
    return copy ? tl::base_name(copy->tensor()) : "";
  };
  f.a = filled_from(left);
  f.b = filled_from(tl::base_name(product->b()));
  if (f.a.empty() || f.b.empty())
    return missing("copies of both operands (cp_async_tile, copy_tile_in, tma_load_tile)");
  const Stmt* store =
      find(p, [&](const Stmt& s) { return s.op == Op::store && tl::base_name(s.src()) == f.acc; });
  if (!store) return missing("store of its accumulator");
  f.o_tile = tl::base_name(store->dst());
  const Stmt* out = find(
      p, [&](const Stmt& s) { return copies_out(s.op) && tl::base_name(s.src()) == f.o_tile; });
  if (!out) return missing("copy_tile_out or tma_store_tile of its output");
  f.o = tl::base_name(out->tensor());
  std::map<std::string, tl::ExprPtr> is;
  same_place(out->src(), store->dst(), is);
  const auto here = [&](const tl::ExprPtr& e) -> tl::ExprPtr {
    const auto at = e->kind == tl::ExprKind::name ? is.find(e->text) : is.end();
    return at == is.end() ? nullptr : at->second;
  };
  f.i0 = tl::rewrite(out->row(), here);
  f.j0 = tl::rewrite(out->column(), here);
  const Stmt *a = declaration_of_argument(p, f.a), *o = declaration_of_argument(p, f.o);
  if (!a || !o || a->dims().size() != 4 || o->dims().size() != 4)
    return missing("operands of four dimensions");
  f.batch = a->dims()[0].name, f.head = a->dims()[1].name;
  f.rows = a->dims()[2].name, f.sum = a->dims()[3].name;
  f.columns = o->dims()[3].name;
  return true;
}

std::vector<int> Edit::dims_of_output(bool columns) const {
  std::vector<int> dims;
  for (const char* role : {"b", "h", "i", "j"}) {
    if (!columns && role[0] == 'j') continue;
    const auto& user = form.output_dims;
    const auto at = std::find(user.begin(), user.end(), role);
    dims.push_back(at == user.end() ? -1 : static_cast<int>(at - user.begin()));
  }
  return dims;
}

bool Edit::bind(const spec::Operand& operand, const std::string& name, const std::string& row,
                const std::string& column) {
  std::vector<int> dims;
  for (const std::string& role : {std::string("b"), std::string("h"), row, column}) {
    int at = -1;
    for (size_t n = 0; n < operand.indices.size(); ++n)
      if (operand.indices[n]->kind == Kind::index && operand.indices[n]->name == role)
        at = static_cast<int>(n);
    dims.push_back(at);
  }
  const spec::Argument* given = form.argument(operand.argument);
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
  if (given && given->dtype != form.dtype)
    return refuse("transfer.dtype", span,
                  fmt::format("{} is {}, the product is of {}", operand.argument,
                              kw::name(given->dtype), kw::name(form.dtype)));
  result.bindings.push_back({name, operand.argument, dims});
  return true;
}

Found Edit::store_place() {
  return place_of(result.program.body, [&](const Stmt& s) {
    return s.op == Op::store && tl::base_name(s.src()) == f.acc;
  });
}

std::string Edit::nothing_beyond_columns() const {
  return fmt::format("map_at {0}[i, j] from ({1}, {2}) = where(j < {3}, {0}[i, j], 0.0)", f.acc,
                     tl::print(f.i0), tl::print(f.j0), f.columns);
}

std::string Edit::fresh(const std::string& name) {
  std::string out = name;
  for (int n = 2; !taken.insert(out).second; ++n) out = fmt::format("{}{}", name, n);
  return out;
}

std::string Edit::fresh_letter() {
  for (const char* letter : {"E", "F", "L", "P", "Q", "R", "S", "T", "U", "V", "W"})
    if (taken.insert(letter).second) return letter;
  return fresh("X");
}

bool Edit::add_argument(Op after, const std::string& text) {
  for (Stmt& s : result.program.body) {
    if (s.op != Op::args) continue;
    size_t at = 0;
    for (size_t n = 0; n < s.body.size(); ++n) {
      const bool computed = s.body[n].op == Op::arg_size && s.body[n].names()[0].expr;
      if (s.body[n].op == after && !computed) at = n + 1;
    }
    return insert({&s.body, at}, text);
  }
  return false;
}

bool Edit::add_arguments(const ExprPtr& e) {
  for (const ExprPtr& a : e->args)
    if (!add_arguments(a)) return false;
  if (e->kind != Kind::read && e->kind != Kind::argument) return true;
  if (names.count(e->name)) return true;
  const spec::Argument* a = form.argument(e->name);
  if (!a)
    return refuse("transfer.read", spec::place_of(e),
                  e->name + " is not an argument of the function");
  const bool readable = a->dtype != Dtype::f64 && a->dtype != Dtype::u32 && a->dtype != Dtype::u8;
  if (!readable)
    return refuse("transfer.dtype", a->span,
                  fmt::format("{} is {}, which this kernel's vocabulary cannot read", e->name,
                              kw::name(a->dtype)),
                  "pass it as torch.float32");
  const std::string own =
      taken.count(e->name) ? fresh(e->name + std::string(spec::kGiven)) : fresh(e->name);
  names[e->name] = own;
  Binding binding{own, e->name, {}};
  if (e->kind == Kind::argument) {
    result.bindings.push_back(binding);
    return add_argument(Op::arg_size, own + (is_float(a->dtype) ? ": f32" : ": i32"));
  }
  std::string dims;
  for (size_t n = 0; n < a->dims.size(); ++n) {
    dims += (n ? ", " : "") + letter_of(a->dims[n], e->args[n]);
    binding.dims.push_back(static_cast<int>(n));
  }
  result.bindings.push_back(binding);
  return add_argument(Op::arg_tensor, fmt::format("{}: in {}[{}]", own, kw::name(a->dtype), dims));
}

// What it is indexed by decides between sizes that are equal.
std::string Edit::letter_of(const spec::Size& size, const ExprPtr& index) {
  const std::pair<const char*, const spec::Size*> known[] = {
      {"b", &form.B}, {"h", &form.H}, {"i", &form.M}, {"j", &form.N}};
  const std::string own[] = {f.batch, f.head, f.rows, f.columns};
  for (size_t n = 0; n < 4; ++n)
    if (index->kind == Kind::index && index->name == known[n].first &&
        size.name == known[n].second->name && size.constant == known[n].second->constant)
      return own[n];
  const auto at = letters.find(size.name);
  if (!size.name.empty() && at != letters.end()) return at->second;
  const std::string letter = fresh_letter();
  if (!size.name.empty()) letters[size.name] = letter;
  add_argument(Op::arg_size, letter + ": size");
  return letter;
}

ExprPtr Edit::renamed(const ExprPtr& e) const { return transfer::renamed(e, letters, names); }

}  // namespace kw::transfer::gemm
