// A product as a person would write it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "operator/families/gemm/gemm.h"

namespace kw::spec::gemm {
namespace {

std::string operand(const Operand& o) {
  std::vector<std::string> indices;
  for (const ExprPtr& e : o.indices) indices.push_back(spec::print(e));
  return fmt::format("{}[{}]", o.argument, fmt::join(indices, ", "));
}

}  // namespace

std::string print(const Form& form) {
  std::string sizes, any;
  for (const auto& [letter, index, size, of_kernel] : axes(form)) {
    const bool absent = (letter == "B" || letter == "H") && size.constant == 1;
    if (size.name.empty() && !absent)
      sizes += fmt::format(", {} {}", letter, size.constant);
    else if (!size.name.empty() && any.find(size.name) == std::string::npos)
      any += (any.empty() ? "; any " : ", ") + size.name;
  }
  const Product& p = *form.product;
  std::string out = fmt::format("{}: {}, a product of matrices{}{}\n", form.name,
                                kw::name(form.dtype), sizes, any);
  out += fmt::format("  s       sum over d of {} * {}\n", operand(p.a), operand(p.b));
  out += "  value   " + spec::print(p.value) + "\n";
  if (form.returns("o")) out += "  gives   each value\n";
  if (form.returns("sums"))
    out += fmt::format("  {}    the sum of each row's values\n",
                       form.returns("o") ? "also " : "gives");
  return out;
}

}  // namespace kw::spec::gemm
