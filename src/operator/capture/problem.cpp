// One set of arguments: sizes, and numbers drawn for them.
//
// Some sizes belong to an argument alone: a table of blocks has as many as there are blocks, a
// packed mask as many words as its keys need, a cache as many pages as its tables name. What a case
// says of them is where the user's example stood. With more keys than that, the function would read
// outside of its argument, which PyTorch refuses; so such a size grows to what the form reads of
// it. What is read at indices from data cannot be known before the data is: there the size stays.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "operator/evaluate/program.h"
#include "operator/family.h"

namespace kw::spec {
namespace {

// All indices below the extent, or of a long one those at both ends, where monotone and periodic
// functions have their greatest values.
std::vector<int64_t> indices_below(int64_t extent) {
  constexpr int64_t kEnd = 512;
  std::vector<int64_t> out;
  for (int64_t n = 0; n < extent; ++n)
    if (n < kEnd || n >= extent - kEnd) out.push_back(n);
  return out;
}

// The greatest value of an index that mentions coordinates, sizes and scalars alone.
int64_t greatest(const ExprPtr& e, const Extents& extents, const Form& form,
                 const Problem& problem) {
  Program program(e, problem);
  const std::pair<Program::Slot, std::pair<const char*, const Size*>> coordinates[] = {
      {Program::b, {"b", &form.B}},
      {Program::h, {"h", &extents.heads}},
      {Program::i, {"i", &form.M}},
      {Program::j, {"j", &form.N}},
      {Program::d, {"d", &extents.columns}}};
  std::vector<Program::Inputs> at = {{}};
  for (const auto& [slot, named] : coordinates) {
    if (!mentions(e, Kind::index, named.first)) continue;
    std::vector<Program::Inputs> next;
    for (Program::Inputs in : at)
      for (const int64_t n : indices_below(value_of(*named.second, problem.sizes))) {
        in[slot] = static_cast<double>(n);
        next.push_back(in);
      }
    at = std::move(next);
  }
  double out = 0;
  for (const Program::Inputs& in : at) out = std::max(out, program.run(in));
  return static_cast<int64_t>(out);
}

// Whether the problem says what each size and scalar of e is.
bool is_known(const ExprPtr& e, const Problem& problem) {
  if (e->kind == Kind::size) return problem.sizes.count(e->name);
  if (e->kind == Kind::argument) return problem.scalars.count(e->name);
  return std::all_of(e->args.begin(), e->args.end(),
                     [&](const ExprPtr& a) { return is_known(a, problem); });
}

void for_each_read(const ExprPtr& e, const std::function<void(const Expr&)>& visit) {
  if (!e) return;
  if (e->kind == Kind::read) visit(*e);
  for (const ExprPtr& a : e->args) for_each_read(a, visit);
}

// Of each dimension whose size belongs to an argument alone: the size and the index that is read.
void for_each_own(
    const Form& given,
    const std::function<void(const std::string&, const ExprPtr&, const Extents&)>& visit) {
  Form form = given;
  const std::vector<Axis> own = axes(form);
  const auto is_axis = [&](const std::string& size) {
    return std::any_of(own.begin(), own.end(), [&](const Axis& a) { return a.size.name == size; });
  };
  Family::of(form).each_expression(form, [&](ExprPtr& e, const Extents& extents) {
    for_each_read(e, [&](const Expr& read) {
      const Argument* a = given.argument(read.name);
      for (size_t d = 0; a && d < a->dims.size(); ++d)
        if (const std::string& size = a->dims[d].name; !size.empty() && !is_axis(size))
          visit(size, read.args[d], extents);
    });
  });
}

// As many pages as the tables may name.
void grow_to_pages(const Form& given, const Draws& draws, Problem& problem) {
  Form form = given;
  Family::of(form).each_operand(form, [&](Operand& o) {
    const std::optional<Pages> pages = pages_of(o);
    const Argument* a = pages ? given.argument(o.argument) : nullptr;
    const auto how = pages ? draws.arguments.find(pages->table) : draws.arguments.end();
    if (!a || how == draws.arguments.end() || a->dims[pages->page].name.empty()) return;
    int64_t& count = problem.sizes[a->dims[pages->page].name];
    count = std::max(count, how->second.high + 1);
  });
}

// Scalars are known already.
void grow_to_what_is_read(const Form& form, Problem& problem) {
  for_each_own(form, [&](const std::string& size, const ExprPtr& index, const Extents& extents) {
    if (mentions(index, Kind::read) || !problem.sizes.count(size) || !is_known(index, problem))
      return;
    problem.sizes[size] =
        std::max(problem.sizes[size], greatest(index, extents, form, problem) + 1);
  });
}

// Of operands that nothing else reads, where these heads are.
std::map<std::string, Slices> slices_of(const Form& given, const std::vector<int64_t>& heads) {
  Form form = given;
  std::map<std::string, Slices> out;
  std::set<std::string> whole;
  const Family& family = Family::of(form);
  family.each_operand(form, [&](Operand& o) {
    for (size_t d = 0; d < o.indices.size(); ++d) {
      const ExprPtr& e = o.indices[d];
      if (!mentions(e, Kind::index, "h")) continue;
      const bool shared = e->kind == Kind::binary && e->name == "//";
      const auto [slices, is_new] = out.emplace(o.argument, Slices{d, {}});
      if ((!shared && e->kind != Kind::index) || slices->second.dim != d) whole.insert(o.argument);
      for (const int64_t h : heads)
        slices->second.at.push_back(shared ? h / e->args[1]->integer : h);
      return;
    }
    whole.insert(o.argument);
  });
  family.each_expression(form, [&](ExprPtr& e, const Extents&) {
    for_each_read(e, [&](const Expr& read) { whole.insert(read.name); });
  });
  for (const std::string& name : whole) out.erase(name);
  for (auto& [name, slices] : out) {
    std::sort(slices.at.begin(), slices.at.end());
    slices.at.erase(std::unique(slices.at.begin(), slices.at.end()), slices.at.end());
  }
  return out;
}

}  // namespace

int64_t value_of(const Size& size, const std::map<std::string, int64_t>& sizes) {
  if (size.name.empty()) return size.constant;
  const auto found = sizes.find(size.name);
  return found == sizes.end() ? -1 : found->second * size.times;
}

void give(const Size& size, int64_t value, std::map<std::string, int64_t>& sizes) {
  if (!size.name.empty()) sizes[size.name] = (value + size.times - 1) / size.times;
}

std::map<std::string, bool> own_sizes(const Form& form) {
  std::map<std::string, bool> out;
  for_each_own(form, [&](const std::string& size, const ExprPtr& index, const Extents&) {
    const auto known = out.emplace(size, true).first;
    known->second &= !mentions(index, Kind::read);
  });
  return out;
}

std::optional<Problem> make_problem(const Form& form, std::map<std::string, int64_t> sizes,
                                    const Draws& draws, Diagnostics& diagnostics,
                                    const std::vector<int64_t>* heads) {
  Problem out;
  const std::map<std::string, Slices> slices =
      heads ? slices_of(form, *heads) : std::map<std::string, Slices>();
  out.sizes = std::move(sizes);
  for (const Argument& a : form.arguments)
    if (const auto how = draws.arguments.find(a.name); !a.is_tensor && how != draws.arguments.end())
      out.scalars[a.name] = draw(how->second, draws.seed, a.dtype, {}).values[0];
  grow_to_what_is_read(form, out);
  grow_to_pages(form, draws, out);
  for (const Argument& a : form.arguments) {
    if (a.saved) continue;
    const auto how = draws.arguments.find(a.name);
    if (how == draws.arguments.end()) {
      diagnostics.error("spec.problem", a.span,
                        fmt::format("nothing says how to draw argument {}", a.name));
      return std::nullopt;
    }
    std::vector<int64_t> shape;
    for (const Size& d : a.dims) {
      shape.push_back(value_of(d, out.sizes));
      if (shape.back() >= 0) continue;
      diagnostics.error("spec.problem", a.span,
                        fmt::format("size {} of argument {} has no value", d.name, a.name));
      return std::nullopt;
    }
    const auto only = slices.find(a.name);
    if (a.is_tensor)
      out.tensors[a.name] = draw(how->second, draws.seed, a.dtype, shape,
                                 only == slices.end() ? std::nullopt : std::optional(only->second));
  }
  Family::of(form).complete(form, out);
  return out;
}

}  // namespace kw::spec
