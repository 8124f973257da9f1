#include "propose/anonymous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "operator/family.h"
#include "propose/family.h"
#include "support/cpp_words.h"

namespace kw::propose {
namespace {

using spec::ExprPtr;
using spec::Kind;

// What CUDA text of ours has names for itself.
constexpr std::array<std::string_view, 6> kTextsOwn = {"args", "element", "kw",
                                                       "real", "shared",  "warpgroup"};
std::string given_name(size_t n) { return fmt::format("v{}", n); }

class Renamer {
 public:
  explicit Renamer(const spec::Form& form) {
    for (size_t n = 0; n < form.arguments.size(); ++n)
      names_[form.arguments[n].name] = given_name(n);
  }

  const std::string& operator()(const std::string& user) const {
    const auto found = names_.find(user);
    return found == names_.end() ? user : found->second;
  }

  void change(ExprPtr& e) const {
    if (!e) return;
    e = spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      spec::Expr out = *x;
      if (out.kind == Kind::read || out.kind == Kind::argument) out.name = (*this)(out.name);
      out.span = {};
      return std::make_shared<const spec::Expr>(std::move(out));
    });
  }

  // What it is read at; what becomes of its rows is an expression of the form.
  void change(spec::Operand& operand) const {
    operand.argument = (*this)(operand.argument);
    for (ExprPtr& e : operand.indices) change(e);
  }

  template <class Value>
  std::map<std::string, Value> keys(const std::map<std::string, Value>& from) const {
    std::map<std::string, Value> out;
    for (const auto& [name, value] : from) out[(*this)(name)] = value;
    return out;
  }

 private:
  std::map<std::string, std::string> names_;
};

std::string size_text(const spec::Size& s) {
  return s.name.empty() ? std::to_string(s.constant) : s.name;
}

std::string argument_text(const spec::Argument& a) {
  if (!a.is_tensor) return fmt::format("  {}: {}\n", a.name, name(a.dtype));
  std::vector<std::string> dims;
  for (const spec::Size& s : a.dims) dims.push_back(size_text(s));
  return fmt::format("  {}: {}[{}]\n", a.name, name(a.dtype), fmt::join(dims, ", "));
}

void rename(tl::ExprPtr& e, const std::map<std::string, std::string>& names) {
  if (!e) return;
  e = tl::rewrite(e, [&](const tl::ExprPtr& x) -> tl::ExprPtr {
    const auto found = x->kind == tl::ExprKind::name ? names.find(x->text) : names.end();
    return found == names.end() ? nullptr : tl::name(found->second);
  });
}

std::set<std::string> names_in(const tl::Program& program) {
  std::set<std::string> out;
  const std::function<void(const tl::ExprPtr&)> collect = [&](const tl::ExprPtr& e) {
    if (!e) return;
    out.insert(e->text);
    for (const tl::ExprPtr& a : e->args) collect(a);
  };
  tl::walk(program.body, [&](const tl::Stmt& s) {
    out.insert(std::string(tl::word(s.op)));
    for (const tl::Field& f : s.fields)
      for (const tl::Item& item : f.items) out.insert(item.name), collect(item.expr);
  });
  return out;
}

// A name of the user's in a kernel: Python's letters that are C's too.
std::string kernel_name(const std::string& user, const std::set<std::string>& taken) {
  std::string name;
  for (const char c : user)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') name += c;
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0]))) return {};
  const bool reserved =
      is_cpp_word(name) || std::find(kTextsOwn.begin(), kTextsOwn.end(), name) != kTextsOwn.end();
  if (name == user && !reserved && !taken.count(name)) return name;
  name = user + std::string(spec::kGiven);
  return taken.count(name) || name.size() != user.size() + spec::kGiven.size() ? "" : name;
}

}  // namespace

namespace families {
#define FAMILY(word) const Family& word();
#include "operator/families.def"
}  // namespace families

const Family& Family::of(const spec::Form& form) {
  switch (spec::family_of(form)) {
#define FAMILY(word)           \
  case spec::FamilyName::word: \
    return families::word();
#include "operator/families.def"
  }
  return families::attention();
}

std::string operand_text(const std::string& kernel, const spec::Operand& o) {
  std::vector<std::string> indices;
  for (const ExprPtr& e : o.indices) indices.push_back(spec::print(e));
  return fmt::format("  {} is {}[{}]\n", kernel, o.argument, fmt::join(indices, ", "));
}

spec::Capture anonymous(const spec::Capture& capture) {
  spec::Capture out = capture;
  spec::Form& form = out.form;
  const Renamer renamed(capture.form);
  form.name = Family::of(form).nameless();
  form.notes.clear();
  form.built_in.clear();  // their values are in the expressions
  form.roundings.assign(form.roundings.size(), {});
  for (spec::Argument& a : form.arguments) a.name = renamed(a.name), a.span = {};
  const spec::Family& family = spec::Family::of(form);
  family.each_operand(form, [&](spec::Operand& o) { renamed.change(o); });
  family.each_expression(form, [&](ExprPtr& e, const spec::Extents&) { renamed.change(e); });
  out.source = make_source("the function", "");
  for (spec::GoldenCase& c : out.cases) c.draws.arguments = renamed.keys(c.draws.arguments);
  out.lengths.clear();
  for (const auto& [name, times] : capture.lengths) out.lengths[renamed(name)] = times;
  return out;
}

tl::Program with_names(tl::Program program, const spec::Form& form) {
  std::set<std::string> taken = names_in(program);
  std::map<std::string, std::string> names;
  for (size_t n = 0; n < form.arguments.size(); ++n) {
    if (!taken.count(given_name(n))) continue;
    const std::string name = kernel_name(form.arguments[n].name, taken);
    if (name.empty()) continue;  // the program keeps ours; the binding says whose it is
    names[given_name(n)] = name;
    taken.insert(name);
  }
  tl::walk(program.body, [&](tl::Stmt& s) {
    for (tl::Field& f : s.fields)
      for (tl::Item& item : f.items) {
        const auto found = names.find(item.name);
        if (found != names.end()) item.name = found->second;
        rename(item.expr, names);
      }
  });
  return program;
}

std::string describe(const spec::Form& form) {
  std::string out = spec::print(form);
  out += "arguments:\n";
  for (const spec::Argument& a : form.arguments) out += argument_text(a);
  out += fmt::format("the kernel's arguments, with b < {}, h < {}, i < {}, j < {}:\n",
                     size_text(form.B), size_text(form.H), size_text(form.M), size_text(form.N));
  return out + Family::of(form).operands(form);
}

}  // namespace kw::propose
