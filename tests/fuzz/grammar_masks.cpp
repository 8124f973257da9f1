// Masks: what people say of which keys a query sees, and and, or and not of it. What a mask is made
// of is chosen before any operator is written, since it may need arguments: a Make writes it later.
#include <fmt/format.h>

#include "grammar_writer.h"

namespace kw::fuzz {

void Writer::choose_mask() {
  if (dice_.once_in(6)) {
    f_.mask = "none";
    return;
  }
  mask_ = predicate(static_cast<int>(dice_.one_of<int64_t>({0, 0, 1, 1, 2})), f_.mask);
}

Writer::Make Writer::predicate(int depth, std::string& name) {
  if (depth > 0) {
    std::string a_name, b_name;
    const Make a = predicate(depth - 1, a_name);
    if (dice_.once_in(5)) {
      name = "not " + a_name;
      const char* op = dice_.one_of({"logical_not", "bitwise_not"});
      return [this, a, op] { return g_.unary(op, a()); };
    }
    const Make b = predicate(depth - 1, b_name);
    const bool either = dice_.once_in(2);
    name = "combined";
    const char* op = either ? dice_.one_of({"logical_or", "bitwise_or"})
                            : dice_.one_of({"logical_and", "bitwise_and"});
    return [this, a, b, op] {
      const int x = a();
      return g_.binary(op, x, b());
    };
  }
  return atom(name);
}

Writer::Make Writer::compare(const char* op, const Make& a, const Make& b) {
  return [this, op, a, b] {
    const int x = a();
    return g_.binary(op, x, b());
  };
}

// Bits of coordinates, and of a word that each batch entry has.
Writer::Make Writer::bits(std::string& name, int64_t c) {
  if (dice_.once_in(2)) {
    name = "bits of coordinates";
    return [this, c, op = dice_.one_of({"bitwise_and", "bitwise_or", "bitwise_xor"})] {
      const int far = g_.integer("bitwise_right_shift", j_, c % 4);
      return g_.integer("ne", g_.integer("bitwise_and", g_.binary(op, i_, far), c), 0);
    };
  }
  name = "words";
  const int words =
      argument("words", Dtype::i32, {B_},
               {Draw::Kind::integer, 0, 1, -(int64_t{1} << 31), (int64_t{1} << 31) - 1},
               "torch.tensor([-2, 23130], dtype=torch.int32)");
  return [this, words, whole = dice_.once_in(2)] {
    const int at = g_.integer("remainder", j_, 32), word = over_batch(words);
    if (whole) {  // the bit in its place
      const int bit = g_.binary("bitwise_left_shift", fuzz::whole(1), node(at));
      return g_.integer("ne", g_.binary("bitwise_and", word, bit), 0);
    }
    const int moved = g_.binary("bitwise_right_shift", word, at);
    return g_.integer("eq", g_.integer("bitwise_and", moved, 1), 1);
  };
}

Writer::Make Writer::atom(std::string& name) {
  const auto pick = [&](const char* n) { name = n; };
  const Make i = [this] { return i_; }, j = [this] { return j_; };
  const int64_t c = dice_.between(1, 40), r = dice_.between(2, 6);
  switch (dice_.below(27)) {
    case 0:
    case 1:
    case 2:
      pick("causal");
      return dice_.once_in(2) ? compare("le", j, i) : compare("ge", i, j);
    case 3:
      pick("causal");
      return [this] { return g_.triangle("tril", g_.full("ones", {M_, N_}, Dtype::boolean), 0); };
    case 4:
      pick("triangle");
      return [this, c] {
        return g_.triangle("triu", g_.full("ones", {M_, N_}, Dtype::boolean), c % 9 - 4);
      };
    case 5:
      pick("strict");
      return compare(dice_.one_of({"lt", "gt"}), j, i);
    case 6:
    case 7:
    case 8:
      pick("window");
      return [this, c, abs = dice_.once_in(2)] {
        const int d = g_.binary("sub", i_, j_);
        return g_.integer(abs ? "le" : "lt", abs ? g_.unary("abs", d) : d, c);
      };
    case 9:
    case 10: {
      pick("prefix");
      const int p = per_batch("prefix");
      return [this, p] { return g_.binary("lt", j_, over_batch(p)); };
    }
    case 11: {
      pick("start");
      const int p = per_batch("start");
      return [this, p] { return g_.binary("ge", j_, over_batch(p)); };
    }
    case 12: {
      pick("prefix and distance");
      const int p = per_batch("prefix");
      return [this, p, c] {
        return g_.binary("le", j_, g_.binary("add", i_, g_.integer("sub", over_batch(p), c)));
      };
    }
    case 13:
    case 14:
      pick("blocks");
      return [this, c, op = dice_.one_of({"le", "eq", "ge"})] {
        const int a = g_.integer("floor_divide", j_, c);
        return g_.binary(op, a, g_.integer("floor_divide", i_, c));
      };
    case 15:
      pick("dilated");
      return [this, r] {
        return g_.integer("eq", g_.integer("remainder", g_.binary("sub", i_, j_), r), 0);
      };
    case 16:
      if (dice_.once_in(2)) return bits(name, c);
      pick("dilated");
      return [this, r] { return g_.integer("ne", g_.integer("remainder", j_, r), 1); };
    case 17:
      pick("first keys");
      return [this, c] { return g_.integer("lt", j_, c % 10); };
    case 18:
      pick("rows");
      return [this, c, op = dice_.one_of({"lt", "ge"})] { return g_.integer(op, i_, c % 10); };
    case 19: {
      pick("per head");
      const int p = per_head("limit");
      return [this, p] { return g_.binary("lt", j_, over_heads(p)); };
    }
    case 20: {
      pick("argument");
      const int w = whole_number("window", dice_.between(0, 30));
      return [this, w] { return g_.binary("lt", g_.binary("sub", i_, j_), w); };
    }
    case 21: {
      pick("gathered");
      const int table = argument("table", Dtype::i32, {constant(4)}, lengths(),
                                 "torch.tensor([3, 20, 41, 70], dtype=torch.int32)");
      const int kind = argument("kind", Dtype::i32, {B_}, {Draw::Kind::integer, 0, 1, 0, 3},
                                "torch.tensor([1, 2], dtype=torch.int32)");
      return
          [this, table, kind] { return g_.binary("lt", j_, over_batch(g_.index(table, {kind}))); };
    }
    case 22:
      pick("aligned at the end");
      return [this] {
        const int last = g_.binary("add", node(i_), size(spec::binary("-", N_, M_)));
        return g_.binary("le", j_, last);
      };
    case 25:
      pick("some heads");
      return [this, r] {
        const int h = over_heads(g_.arange(constant(f_.H)));
        const int some = g_.integer("eq", g_.integer("remainder", h, r), 0);
        return g_.binary("logical_or", some, g_.binary("le", j_, i_));
      };
    case 23: {
      if (!dice_.once_in(3)) return atom(name);
      pick("per row");
      const int ends = argument("ends", Dtype::i32, {B_, M_}, lengths(),
                                "torch.randint(0, 80, (2, 48), dtype=torch.int32)");
      return [this, ends] {
        Shape s(static_cast<size_t>(score_rank_), constant(1));
        s[0] = B_;
        s[s.size() - 2] = M_;
        return g_.binary("lt", j_, g_.view("view", ends, s));
      };
    }
    case 24: {
      if (!dice_.once_in(3)) return atom(name);
      pick("documents");
      const int keep = argument("padding", Dtype::boolean, {B_, N_},
                                {Draw::Kind::integer, 0, 1, 0, 1}, "torch.rand(2, 80) < 0.7");
      return [this, keep] {
        Shape s(static_cast<size_t>(score_rank_), constant(1));
        s[0] = B_;
        s.back() = N_;
        return g_.view("view", keep, s);
      };
    }
    default:
      pick("minimum");
      return [this, c] {
        const int bound = g_.integer("add", i_, c % 5 - 2);
        const int least = g_.binary(c % 2 ? "minimum" : "maximum", bound,
                                    g_.integer("mul", g_.integer("floor_divide", i_, 8), 8));
        return g_.binary("le", j_, least);
      };
  }
}

}  // namespace kw::fuzz
