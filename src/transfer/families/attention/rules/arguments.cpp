// What the score, the mask, the sink and the epilogue read becomes arguments of the kernel.
//
//   prefix: in i32[B]        a tensor, its dims named by the sizes it shares with q and k
//   S: size                  a size that none of the kernel's letters is
//   window: i32, beta: f32   scalars
//
// When     the score or the mask reads it, at any indices. What they read at the batch and the head
//          alone becomes one `let` for each block of the output; other reads stay where they are.
// Effect   none: elements are read as they are. Types that the vocabulary cannot read are refused.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "support/cpp_words.h"
#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

// An operand's own elements, in its row map, until they have the kernel's name.
constexpr const char* kOwn = "%own";

void walk(const ExprPtr& e, const std::function<void(const spec::Expr&)>& f) {
  if (!e) return;
  f(*e);
  for (const ExprPtr& a : e->args) walk(a, f);
}

class Arguments {
 public:
  explicit Arguments(Edit& edit) : edit_(edit) {
    const spec::Form& form = edit.form;
    const Facts& f = edit.facts;
    const std::pair<const spec::Size*, std::string> known[] = {{&form.N, f.keys},
                                                               {&form.M, f.queries},
                                                               {&form.G, f.groups},
                                                               {&form.H, f.heads},
                                                               {&form.B, f.batch}};
    for (const auto& [size, letter] : known)
      if (!size->name.empty()) letters_[size->name] = letter;
  }

  bool apply() {
    const spec::ExprPtr& score = edit_.term.score;
    const spec::ExprPtr& keep = edit_.term.keep;
    for (const ExprPtr& e : {score, keep, edit_.term.sink, edit_.form.epilogue})
      if (!add_arguments(e)) return false;
    if (!row(edit_.term.q, edit_.facts.q, "i", edit_.q_row) ||
        !row(edit_.term.k, edit_.facts.k, "j", edit_.k_row) ||
        !row(edit_.term.v, edit_.facts.v, "j", edit_.v_row))
      return false;
    edit_.score = renamed(score);
    edit_.keep = keep ? renamed(keep) : nullptr;
    edit_.sink = edit_.term.sink ? renamed(edit_.term.sink) : nullptr;
    edit_.epilogue = edit_.form.epilogue ? renamed(edit_.form.epilogue) : nullptr;
    return true;
  }

 private:
  Edit& edit_;
  std::map<std::string, std::string> letters_;  // the user's sizes: the kernel's
  std::map<std::string, std::string> names_;    // the user's arguments: the kernel's

  Span place(const spec::Expr& read) const {
    const spec::Argument* a = edit_.form.argument(read.name);
    return read.span.known() || !a ? read.span : a->span;
  }
  bool add_arguments(const ExprPtr& e) {
    bool fine = true;
    walk(e, [&](const spec::Expr& x) {
      if (!fine) return;
      if (x.kind == Kind::read && x.name != kOwn) fine = tensor(x);
      if (x.kind == Kind::argument) fine = scalar(x);
    });
    return fine;
  }
  bool row(const spec::Operand& operand, const std::string& argument, const char* row,
           std::optional<spec::RowMap>& out);
  bool tensor(const spec::Expr& read);
  bool scalar(const spec::Expr& use);
  std::string new_name(const std::string& user);
  std::string letter(const spec::Size& size, const ExprPtr& index);
  bool add(tl::Op after, const std::string& text);
  bool add_before_scale(const std::string& text);
  ExprPtr renamed(const ExprPtr& e) const;
};

// What an operand's rows become, with its own elements as the kernel's argument has them: [b, h,
// row, column], whatever the user's order.
bool Arguments::row(const spec::Operand& operand, const std::string& argument, const char* row,
                    std::optional<spec::RowMap>& out) {
  if (!operand.row) return true;
  size_t column = 0;
  while (!(operand.indices[column]->kind == Kind::index && operand.indices[column]->name == "d"))
    ++column;
  const auto own = [&](const ExprPtr& e) {
    return spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      if (x->kind != Kind::read || x->name != operand.argument) return nullptr;
      const auto index = [](const char* name) {
        return spec::leaf(Kind::index, spec::Type::integer, name);
      };
      return spec::read(kOwn, x->type, {index("b"), index("h"), index(row), x->args[column]});
    });
  };
  const auto named = [&](const ExprPtr& e) {
    return spec::rewrite(renamed(e), [&](const ExprPtr& x) -> ExprPtr {
      const bool is_own = x->kind == Kind::read && x->name == kOwn;
      return is_own ? spec::read(argument, x->type, x->args) : nullptr;
    });
  };
  std::vector<ExprPtr> all = operand.row->sums;
  all.push_back(operand.row->element);
  for (ExprPtr& e : all) {
    e = own(e);
    if (!add_arguments(e)) return false;
  }
  for (ExprPtr& e : all) e = named(e);
  out = spec::RowMap{{all.begin(), all.end() - 1}, all.back()};
  return true;
}

std::string Arguments::new_name(const std::string& user) {
  std::string name;
  for (const char c : user)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') name += c;
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0]))) name = "given_" + name;
  const bool reserved = is_cpp_word(name) || name == "kw" || name == "real";
  const std::string given = name + std::string(spec::kGiven);
  name = reserved ? edit_.fresh({given}) : edit_.fresh({name, given});
  names_[user] = name;
  return name;
}

// Puts an argument after the last of this kind, or first.
bool Arguments::add(tl::Op after, const std::string& text) {
  std::vector<tl::Stmt>& args = args_of(edit_.program).body;
  size_t at = 0;
  for (size_t n = 0; n < args.size(); ++n)
    if (args[n].op == after) at = n + 1;
  return edit_.insert({&args, at}, text);
}

// Values computed from arguments may use those before them, and the scale is one.
bool Arguments::add_before_scale(const std::string& text) {
  std::vector<tl::Stmt>& args = args_of(edit_.program).body;
  const tl::Stmt* scale = declaration_of_argument(edit_.program, edit_.facts.scale);
  return edit_.insert({&args, static_cast<size_t>(scale - args.data())}, text);
}

// The letter of one dimension: what it is indexed by decides between sizes that are equal.
std::string Arguments::letter(const spec::Size& size, const ExprPtr& index) {
  const spec::Form& form = edit_.form;
  const Facts& f = edit_.facts;
  const auto same = [&](const spec::Size& other) {
    return size.name == other.name && size.constant == other.constant;
  };
  if (index->kind == Kind::index && index->name == "b" && same(form.B)) return f.batch;
  if (index->kind == Kind::index && index->name == "h" && same(form.H)) return f.heads;
  if (index->kind == Kind::binary && index->name == "//" && same(form.G)) return f.groups;
  if (index->kind == Kind::index && index->name == "h" && same(form.G)) return f.groups;
  if (spec::mentions(index, Kind::index, "d") && same(form.D)) return f.dim;
  const auto known = letters_.find(size.name);
  if (!size.name.empty() && known != letters_.end()) return known->second;
  const std::string free = edit_.fresh({"S", "R", "T", "C", "E", "L", "P", "Q", "U", "V", "W"});
  if (!size.name.empty()) letters_[size.name] = free;
  return add(tl::Op::arg_size, free + ": size") ? free : "";
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
  return add(tl::Op::arg_tensor,
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
  return add_before_scale(own + (real ? ": f32" : ": i32"));
}

ExprPtr Arguments::renamed(const ExprPtr& e) const {
  return spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    const auto& names = x->kind == Kind::size ? letters_ : names_;
    if (x->kind != Kind::size && x->kind != Kind::argument && x->kind != Kind::read) return nullptr;
    const auto found = names.find(x->name);
    if (found == names.end() || found->second == x->name) return nullptr;
    spec::Expr out = *x;
    out.name = found->second;
    return std::make_shared<const spec::Expr>(std::move(out));
  });
}

}  // namespace

bool rule_arguments(Edit& edit) { return Arguments(edit).apply(); }

}  // namespace kw::transfer
