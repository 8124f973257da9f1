// A user's arguments become a program's: operands as their family has them in the program's order
// of dimensions, with the heads of the case; everything else by its name (Form::user_name).
#include <fmt/format.h>

#include <algorithm>

#include "check/family.h"

namespace kw::check {

using spec::Form;
using spec::Problem;
using tl::Item;
using tl::Op;
using tl::Stmt;

namespace {

// Picks the case's heads along the dimensions that are heads in the program's signature.
Tensor pick_heads(const Tensor& from, const std::vector<Item>& dims, const Form& form,
                  const Case& c, const std::vector<int64_t>& key_heads) {
  std::vector<std::vector<int64_t>> picks;
  std::vector<int64_t> shape;
  for (size_t d = 0; d < from.shape.size(); ++d) {
    std::vector<int64_t> pick;
    if (dims[d].name == "H" && from.shape[d] == form.H.constant)
      pick = c.heads;
    else if (dims[d].name == "G" && from.shape[d] == form.G.constant)
      pick = key_heads;
    else
      for (int64_t x = 0; x < from.shape[d]; ++x) pick.push_back(x);
    shape.push_back(int64_t(pick.size()));
    picks.push_back(std::move(pick));
  }
  Tensor to(from.dtype, shape);
  std::vector<int64_t> at(shape.size());
  for (int64_t n = 0; n < to.count(); ++n) {
    int64_t rest = n;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at[d] = picks[d][rest % shape[d]];
    to.values[n] = from.values[from.offset(at)];
  }
  return to;
}

// An integer argument may be narrower in the kernel as long as its values fit.
bool convert(Tensor& t, Dtype to) {
  if (t.dtype == to) return true;
  if (is_float(t.dtype) || is_float(to)) return false;
  for (double v : t.values)
    if (round_to(to, v) != v) return false;
  t.dtype = to;
  return true;
}

// The user's other arguments, each under the name that the program gives it.
class Binder {
 public:
  Binder(const Form& form, const Problem& problem, const Case& c,
         const std::vector<int64_t>& key_heads, exec::Launch& launch, Diagnostics& diagnostics)
      : form_(form),
        problem_(problem),
        case_(c),
        key_heads_(key_heads),
        launch_(launch),
        diagnostics_(diagnostics) {}

  bool bind(const Stmt& s) {
    const bool tensor = s.op == Op::arg_tiled || s.op == Op::arg_tensor;
    if (s.op == Op::arg_workspace || s.op == Op::arg_scratch) return true;
    if (tensor && s.access()[0].name != "in") return true;
    for (const Item& d : s.names())
      if (tensor ? !launch_.tensors.count(d.name) && !bind_tensor(s, d.name)
                 : !d.expr && !bind_scalar(s, d.name))
        return false;
    return true;
  }

 private:
  bool refuse(const Stmt& s, const std::string& message) {
    diagnostics_.error("check.binding", s.span, message);
    return false;
  }

  bool bind_tensor(const Stmt& s, const std::string& name) {
    const auto user = problem_.tensors.find(form_.user_name(name));
    const std::vector<Item>& dims = s.dims();
    if (user == problem_.tensors.end() || user->second.shape.size() != dims.size())
      return refuse(s, fmt::format("the kernel reads {} with {} dimensions and the function has no "
                                   "such argument",
                                   name, dims.size()));
    Tensor t = pick_heads(user->second, dims, form_, case_, key_heads_);
    const std::string& type = s.access()[0].type;
    const std::optional<Dtype> to = type == "element" ? form_.dtype
                                    : type == "real"  ? Dtype::f32
                                                      : dtype_named(type);
    if (!to || !convert(t, *to))
      return refuse(s, fmt::format("{} is {} in the kernel and {} in the function", name, type,
                                   kw::name(user->second.dtype)));
    launch_.tensors[name] = std::move(t);
    return true;
  }

  bool bind_scalar(const Stmt& s, const std::string& name) {
    const auto scalar = problem_.scalars.find(form_.user_name(name));
    const auto size = problem_.sizes.find(name);
    if (scalar != problem_.scalars.end())
      bind_user_scalar(name, scalar->second);
    else if (size != problem_.sizes.end())
      launch_.scalars[name] = double(size->second);
    else if (s.op != Op::arg_size)  // a size may come from a tensor's shape
      return refuse(s,
                    fmt::format("the kernel takes {} and the function has no such argument", name));
    return true;
  }

  void bind_user_scalar(const std::string& name, double value) {
    launch_.scalars[name] = value;
    const spec::Argument* a = form_.argument(form_.user_name(name));
    if (a && is_float(a->dtype)) launch_.named.insert(name);
  }

  const Form& form_;
  const Problem& problem_;
  const Case& case_;
  const std::vector<int64_t>& key_heads_;
  exec::Launch& launch_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<exec::Launch> bind(const tl::Program& program, const Form& form,
                                 const Problem& problem, const Case& c, Diagnostics& diagnostics) {
  const int64_t ratio = form.H.constant / form.G.constant;
  std::vector<int64_t> key_heads;
  for (int64_t h : c.heads)
    if (key_heads.empty() || key_heads.back() != h / ratio) key_heads.push_back(h / ratio);
  exec::Launch launch;
  launch.grid = c.grid;
  Family::of(form).bind(program, form, problem, c, key_heads, launch);

  const Stmt* args = program.find(Op::args);
  if (!args) {
    diagnostics.error("check.binding", {}, "the program takes no arguments");
    return std::nullopt;
  }
  Binder binder(form, problem, c, key_heads, launch, diagnostics);
  for (const Stmt& s : args->body)
    if (!binder.bind(s)) return std::nullopt;
  return launch;
}

}  // namespace kw::check
