// Whether an operand is read as long as it is.
//
// A kernel takes q, k and v from the user's tensors, and their dimensions are the form's sizes.
// Keys that a function joins with others (torch.cat) or pads (F.pad) have a length that no argument
// has: the element is a choice between the argument and something else, `where(j < N, k[b, h, j,
// d], 0)`, and N + 1 is the form's number of keys. Nothing behind the form can say that. Neither
// can it where only some of an argument's heads, rows or batch entries are read, for a launch takes
// all of them.
#include "operator/recognise/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "operator/expr/linear.h"

namespace kw::spec {
namespace {

bool fits(const ExprPtr& given, const ExprPtr& read, bool columns) {
  const Linear beyond = add(linear(read), linear(given), -1);
  return beyond.is_constant() && (columns ? beyond.constant <= 0 : beyond.constant == 0);
}

// The first node that is like the argument but for the length at d: what made it longer or shorter.
Span made_by(const Elements& elements, const Node& argument, size_t d, const ExprPtr& length,
             int otherwise) {
  for (const Node& n : elements.graph().nodes)
    if (n.rank() == argument.rank() && n.span.source && n.op != argument.op &&
        equal(n.shape[d], length))
      return n.span;
  return elements.node(otherwise).span;
}

// An argument's dimension that the size is made of: "dimension 2 of x".
std::string part_of(const Elements& elements, const ExprPtr& size) {
  const std::vector<Argument>& all = elements.graph().arguments;
  for (size_t n = 0; n < all.size(); ++n) {
    const std::vector<ExprPtr>& shape = elements.node(static_cast<int>(n)).shape;
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d]->kind == Kind::size && mentions(size, Kind::size, shape[d]->name))
        return fmt::format("dimension {} of {}", d, all[n].name);
  }
  return "others";
}

}  // namespace

bool is_a_size(const Elements& elements, const ExprPtr& size, const std::string& of,
               Diagnostics& diagnostics) {
  if (size->kind == Kind::number || size->kind == Kind::size) return true;
  Span span = elements.node(elements.graph().outputs[0]).span;
  for (const Node& n : elements.graph().nodes) {
    const auto is_it = [&](const ExprPtr& d) { return equal(d, size); };
    if (n.op != "argument" && std::any_of(n.shape.begin(), n.shape.end(), is_it)) {
      span = n.span;
      break;
    }
  }
  diagnostics
      .error("spec.operand", span,
             fmt::format("the number of {} is computed of {}; a kernel takes its sizes from its "
                         "operands, each by itself",
                         of, part_of(elements, size)))
      .hint = "join or pad outside what is shorter, and pass the result";
  return false;
}

bool read_as_long_as_it_is(const Elements& elements, const Operand& operand,
                           const std::map<std::string, ExprPtr>& extents, int product,
                           const std::string& of_keys, Diagnostics& diagnostics) {
  const std::vector<Argument>& all = elements.graph().arguments;
  size_t place = 0;
  while (place < all.size() && all[place].name != operand.argument) ++place;
  if (place == all.size()) return true;
  const Node& argument = elements.node(static_cast<int>(place));
  for (size_t d = 0; d < operand.indices.size() && d < argument.shape.size(); ++d) {
    const ExprPtr& e = operand.indices[d];
    const bool grouped = e->kind == Kind::binary;  // h // n
    const std::string role = grouped ? "h" : e->kind == Kind::index ? e->name : "";
    const auto found = extents.find(role);
    ExprPtr read = integer(1);  // at 0 alone
    if (found != extents.end())
      read = grouped ? integer(found->second->integer / e->args[1]->integer) : found->second;
    if (fits(argument.shape[d], read, role == "d")) continue;
    const Linear more = add(linear(read), linear(argument.shape[d]), -1);
    const bool longer = !more.is_constant() || more.constant > 0;
    const std::string said =
        more.is_constant()
            ? fmt::format("were {} by {}", longer ? "longer" : "shorter", std::abs(more.constant))
            : "had another length";
    std::string hint = "join, pad or cut it outside, and pass the result";
    if (longer && role == "j" && !of_keys.empty()) hint += "; " + of_keys;
    diagnostics
        .error("spec.operand", made_by(elements, argument, d, read, product),
               fmt::format("dimension {} of {} is used as if it {}; a kernel takes its operands as "
                           "they are given",
                           d, operand.argument, said))
        .hint = hint;
    return false;
  }
  return true;
}

}  // namespace kw::spec
