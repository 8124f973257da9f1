// A product as a person would write it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "spec/form.h"

namespace kw::spec {
namespace {

std::string operand(const Operand& o) {
  std::vector<std::string> indices;
  for (const ExprPtr& e : o.indices) indices.push_back(print(e));
  return fmt::format("{}[{}]", o.argument, fmt::join(indices, ", "));
}

}  // namespace

std::string print_product(const Form& form) {
  std::string sizes, any;
  const std::pair<const char*, const Size*> all[] = {
      {"B", &form.B}, {"H", &form.H}, {"M", &form.M}, {"N", &form.N}, {"K", &form.D}};
  for (const auto& [letter, size] : all) {
    const bool absent = (letter[0] == 'B' || letter[0] == 'H') && size->constant == 1;
    if (size->name.empty() && !absent)
      sizes += fmt::format(", {} {}", letter, size->constant);
    else if (!size->name.empty() && any.find(size->name) == std::string::npos)
      any += (any.empty() ? "; any " : ", ") + size->name;
  }
  const Product& p = *form.product;
  std::string out = fmt::format("{}: {}, a product of matrices{}{}\n", form.name,
                                kw::name(form.dtype), sizes, any);
  out += fmt::format("  s       sum over d of {} * {}\n", operand(p.a), operand(p.b));
  out += "  value   " + print(p.value) + "\n";
  if (p.returns_matrix) out += "  gives   each value\n";
  if (p.returns_sums)
    out +=
        fmt::format("  {}    the sum of each row's values\n", p.returns_matrix ? "also " : "gives");
  return out;
}

}  // namespace kw::spec
