// What operators on the bits of integers simplify to.
//
// Bits of coordinates are a way to write arithmetic: i >> 6 is i // 64, i & 63 is i % 64, both
// exact in two's complement and whatever the sign. They become that, since sums, bounds and
// intervals know quotients and remainders. Bits of data stay bits, as the user wrote them: a word
// of a mask is no number. There are many ways to ask for one bit of a word, (w & (1 << n)) != 0, (w
// >> n) & 1 != 0,
// ((w >> n) & 1).bool(), and all become (w >> n) & 1 == 1, which also spares the kernel 1 << 31, a
// number that its ints do not have.
#include <bit>

#include "operator/expr/fold.h"

namespace kw::spec {
namespace {

constexpr int64_t kLongestShift = 62;  // of what int64_t holds as a power of two

bool is_power_of_two(int64_t x) { return x > 0 && std::has_single_bit(static_cast<uint64_t>(x)); }
bool is_data(const ExprPtr& e) { return mentions(e, Kind::read) || mentions(e, Kind::argument); }

ExprPtr power_of_two(int64_t n) { return integer(int64_t{1} << n); }

// By a constant.
ExprPtr shifted(const std::string& op, const ExprPtr& x, int64_t by) {
  if (by == 0) return x;
  if (by < 0 || by > kLongestShift) return nullptr;
  if (op == "<<") return binary("*", x, power_of_two(by));
  return is_data(x) ? nullptr : binary("//", x, power_of_two(by));
}

// x & c: low bits are a remainder, all but low bits a multiple.
ExprPtr masked(const ExprPtr& x, int64_t c) {
  if (c == 0) return integer(0);
  if (c == -1) return x;
  if (is_data(x)) return nullptr;
  if (c > 0 && is_power_of_two(c + 1)) return binary("%", x, integer(c + 1));
  if (c < 0 && c != INT64_MIN && is_power_of_two(-c))
    return binary("*", binary("//", x, integer(-c)), integer(-c));
  return nullptr;
}

// A count that no word is too short for: PyTorch moves every bit out by others.
bool is_count(const ExprPtr& n) {
  if (is_number(n)) return n->integer >= 0 && n->integer <= kLongestShift;
  return is_binary(n, "%") && is_number(n->args[1]) && n->args[1]->integer >= 1 &&
         n->args[1]->integer <= kLongestShift + 1;
}

// The number of the one bit that e has: 3 of 8, n of 1 << n.
ExprPtr bit_number(const ExprPtr& e) {
  if (is_number(e) && is_power_of_two(e->integer))
    return integer(std::countr_zero(static_cast<uint64_t>(e->integer)));
  return is_binary(e, "<<") && is_number(e->args[0], 1) && is_count(e->args[1]) ? e->args[1]
                                                                                : nullptr;
}

}  // namespace

bool is_bit_operator(const std::string& op) {
  return op == "&" || op == "|" || op == "^" || op == "<<" || op == ">>";
}

ExprPtr bits_of(const std::string& op, const ExprPtr& a, const ExprPtr& b) {
  if (op == "<<" || op == ">>") {
    if (is_number(a, 0)) return a;
    return is_number(b) ? shifted(op, a, b->integer) : nullptr;
  }
  // These three commute: a number stands on the right.
  if (is_number(a) || (!is_number(b) && print(b) < print(a))) return binary(op, b, a);
  if (equal(a, b)) return op == "^" ? integer(0) : a;
  if (!is_number(b)) return nullptr;
  if (op == "&") return masked(a, b->integer);
  if (b->integer == 0) return a;
  if (b->integer != -1) return nullptr;
  return op == "|" ? b : binary("-", b, a);
}

ExprPtr bit_test(bool wants_equal, const ExprPtr& a, const ExprPtr& b) {
  const bool first = is_binary(a, "&");
  const ExprPtr &word = first ? a : b, &value = first ? b : a;
  if (!is_binary(word, "&")) return nullptr;
  for (const bool right : {true, false}) {
    const ExprPtr &bit = word->args[right ? 1 : 0], &of = word->args[right ? 0 : 1];
    const ExprPtr n = bit_number(bit);
    if (!n) continue;
    const bool of_zero = is_number(value, 0);
    if (!of_zero && !equal(value, bit)) continue;
    const bool set = wants_equal != of_zero;
    const ExprPtr lowest = binary("&", binary(">>", of, n), integer(1));
    // What is canonical already stays: (w >> n) & 1 == 1, and == 0.
    if (equal(lowest, word) && wants_equal) return nullptr;
    return binary("==", lowest, integer(set ? 1 : 0));
  }
  return nullptr;
}

}  // namespace kw::spec
