#include "transfer_random.h"

namespace kw::transfer {

using spec::binary;
using spec::ExprPtr;
using spec::Kind;
using spec::Type;

ExprPtr Predicates::leaf() {
  const auto index = [](const char* name) { return spec::leaf(Kind::index, Type::integer, name); };
  switch (below(9)) {
    case 0:
    case 1:
      return index("i");
    case 2:
      return index("b");
    case 3:
      return spec::leaf(Kind::size, Type::integer, below(2) ? "M" : "N");
    case 4:
      return spec::leaf(Kind::argument, Type::integer, "window");
    case 5:
    case 6:
      return spec::read(below(2) ? "prefix" : "last", Type::integer, {index("b")});
    default:
      return spec::integer(below(300) - 100);
  }
}

ExprPtr Predicates::integer(int depth) {
  if (depth == 0) return leaf();
  const ExprPtr a = integer(depth - 1);
  switch (below(11)) {
    case 0:
      return binary("min", a, integer(depth - 1));
    case 1:
      return binary("max", a, integer(depth - 1));
    case 2:
      return binary("//", a, spec::integer(1 + below(70)));
    case 3:
      return binary("%", a, spec::integer(1 + below(70)));
    case 4:
      return spec::unary("abs", a);
    case 5:
      return binary("*", a, spec::integer(below(5) - 2));
    case 6:
      return binary("-", a, integer(depth - 1));
    case 7:
      return binary(below(2) ? "|" : "^", a, integer(depth - 1));
    case 8:
      return below(2) ? binary("&", a, integer(depth - 1))
                      : binary(below(4) ? ">>" : "<<", a, binary("%", leaf(), spec::integer(9)));
    default:
      return binary("+", a, integer(depth - 1));
  }
}

ExprPtr Predicates::window_and_first() {
  const auto index = [](const char* name) { return spec::leaf(Kind::index, Type::integer, name); };
  const auto some = [&](int64_t most) { return spec::integer(below(most)); };
  const ExprPtr i = index("i"), j = index("j");
  const ExprPtr below_first = binary("<", j, below(2) ? some(200) : integer(1));
  const ExprPtr window = binary("and", binary("<", binary("-", i, some(150)), j),
                                binary("<=", j, binary("+", i, some(100))));
  const ExprPtr both = binary("or", below_first, window);
  if (below(3) == 0) return binary("or", both, binary("<", i, some(50)));
  return below(2) ? both : binary("and", binary("<=", j, i), both);
}

ExprPtr Predicates::predicate(int depth) {
  if (depth > 0 && below(4)) {
    const ExprPtr a = predicate(depth - 1);
    const int64_t kind = below(8);
    if (kind == 0) return spec::unary("not", a);
    if (kind == 1) return spec::where(a, predicate(depth - 1), predicate(depth - 1));
    return binary(kind < 5 ? "or" : "and", a, predicate(depth - 1));
  }
  const ExprPtr j = spec::leaf(Kind::index, Type::integer, "j");
  const char* comparisons[] = {"<", "<=", "<=", "<", ">", ">=", "==", "!="};
  const char* op = comparisons[below(8)];
  switch (below(8)) {
    case 0:  // the row alone
      return binary(op, leaf(), integer(1));
    case 1:
      return binary(op, binary("//", j, spec::integer(1 + below(70))), integer(1));
    case 2:
      return binary(op, spec::unary("abs", binary("-", j, leaf())), integer(1));
    case 3:
      return binary(op, binary("%", j, spec::integer(1 + below(5))), integer(0));
    default:
      return binary(op, j, integer(static_cast<int>(below(3))));
  }
}

}  // namespace kw::transfer
