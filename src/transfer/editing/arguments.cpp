#include "transfer/editing/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "support/cpp_words.h"
#include "transfer/editing/declarations.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

void walk(const ExprPtr& e, const std::function<void(const spec::Expr&)>& f) {
  if (!e) return;
  f(*e);
  for (const ExprPtr& a : e->args) walk(a, f);
}

}  // namespace

Arguments::Arguments(Editing& edit, const Letters& letters, std::string columns, std::string scale)
    : edit_(edit), of_(letters), columns_(std::move(columns)), scale_(std::move(scale)) {
  const spec::Form& form = edit.form;
  const std::pair<const spec::Size*, std::string> known[] = {{&form.N, of_.keys},
                                                             {&form.M, of_.queries},
                                                             {&form.G, of_.groups},
                                                             {&form.H, of_.heads},
                                                             {&form.B, of_.batch}};
  for (const auto& [size, letter] : known)
    if (!size->name.empty() && size->times == 1) letters_[size->name] = letter;
}

bool Arguments::add(const ExprPtr& e, const std::set<std::string>& but) {
  bool fine = true;
  walk(e, [&](const spec::Expr& x) {
    if (!fine) return;
    if (x.kind == Kind::read && !but.contains(x.name)) fine = tensor(x);
    if (x.kind == Kind::argument) fine = scalar(x);
  });
  return fine;
}

Span Arguments::place(const spec::Expr& read) const {
  const spec::Argument* a = edit_.form.argument(read.name);
  return read.span.known() || !a ? read.span : a->span;
}

std::string Arguments::new_name(const std::string& user) {
  std::string name;
  for (const char c : user)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') name += c;
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0]))) name = "given_" + name;
  // d is a diagonal's own name in TL.
  const bool reserved = is_cpp_word(name) || name == "kw" || name == "real" || name == "d";
  const std::string given = name + std::string(spec::kGiven);
  name = reserved ? edit_.fresh({given}) : edit_.fresh({name, given});
  names_[user] = name;
  return name;
}

bool Arguments::insert_before_scale(const std::string& text) {
  std::vector<tl::Stmt>& args = edit_.program.find(tl::Op::args)->body;
  const tl::Stmt* scale = declaration_of_argument(edit_.program, scale_);
  return edit_.insert({&args, static_cast<size_t>(scale - args.data())}, text);
}

// The letter of one dimension: what it is indexed by decides between sizes that are equal.
std::string Arguments::letter(const spec::Size& size, const ExprPtr& index) {
  const spec::Form& form = edit_.form;
  const auto same = [&](const spec::Size& other) {
    return size.name == other.name && size.constant == other.constant;
  };
  if (index->kind == Kind::index && index->name == "b" && same(form.B)) return of_.batch;
  if (index->kind == Kind::index && index->name == "h" && same(form.H)) return of_.heads;
  if (index->kind == Kind::binary && index->name == "//" && same(form.G)) return of_.groups;
  if (index->kind == Kind::index && index->name == "h" && same(form.G)) return of_.groups;
  if (spec::mentions(index, Kind::index, "d") && same(form.D)) return columns_;
  const auto known = letters_.find(size.name);
  if (!size.name.empty() && known != letters_.end()) return known->second;
  const std::string free = edit_.fresh({"S", "R", "T", "C", "E", "L", "P", "Q", "U", "V", "W"});
  if (!size.name.empty()) letters_[size.name] = free;
  return edit_.insert(edit_.behind_arguments(tl::Op::arg_size), free + ": size") ? free : "";
}

bool Arguments::tensor(const spec::Expr& read) {
  if (names_.contains(read.name)) return true;
  const spec::Argument* a = edit_.form.argument(read.name);
  if (!a || a->dims.size() != read.args.size())
    return edit_.refuse("transfer.read", place(read),
                        fmt::format("{} is read with {} indices, but has {} dimensions", read.name,
                                    read.args.size(), a ? a->dims.size() : 0),
                        "");
  if (a->dtype == Dtype::f64 || a->dtype == Dtype::u32 || a->dtype == Dtype::u8)
    return edit_.refuse("transfer.dtype", a->span,
                        fmt::format("{} is {}, which this kernel's vocabulary cannot read",
                                    read.name, name(a->dtype)),
                        is_float(a->dtype) ? "pass it as torch.float32" : "pass it as torch.int32");
  std::string dims;
  Binding binding{new_name(read.name), read.name, {}};
  for (size_t n = 0; n < a->dims.size(); ++n) {
    const std::string l = letter(a->dims[n], read.args[n]);
    if (l.empty()) return false;
    dims += (n ? ", " : "") + l;
    binding.dims.push_back(static_cast<int>(n));
  }
  edit_.result.bindings.push_back(binding);
  return edit_.insert(edit_.behind_arguments(tl::Op::arg_tensor),
                      fmt::format("{}: in {}[{}]", binding.argument, kw::name(a->dtype), dims));
}

bool Arguments::scalar(const spec::Expr& use) {
  if (names_.contains(use.name)) return true;
  const spec::Argument* a = edit_.form.argument(use.name);
  const bool number = a && (a->dtype == Dtype::i64 || a->dtype == Dtype::i32 || is_float(a->dtype));
  if (!number)
    return edit_.refuse("transfer.dtype", place(use),
                        fmt::format("the scalar {} is not a number", use.name),
                        "supported are int and float");
  const std::string own = new_name(use.name);
  edit_.result.bindings.push_back({own, use.name, {}});
  const bool real = is_float(a->dtype);
  for (const char* bound : {"{} > -{}", "{} < {}"})
    if (!real && !edit_.condition(fmt::format(fmt::runtime(bound), own, 1 << 29),
                                  "positions are computed in 32 bits"))
      return false;
  return insert_before_scale(own + (real ? ": f32" : ": i32"));
}

ExprPtr Arguments::renamed(const ExprPtr& e) const {
  return kw::transfer::renamed(e, letters_, names_);
}

}  // namespace kw::transfer
