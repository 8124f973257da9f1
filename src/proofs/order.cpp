#include "proofs/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "proofs/names.h"
#include "proofs/solver/sexpr.h"
#include "tl/scope/functions.h"
#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::proofs {
namespace {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

using Size = std::multiset<std::string>;  // of which factors it is the product
using Digits = std::vector<int>;          // by number, the lowest first

// What is left of a size without another's factors; nothing where it lacks some.
std::optional<Size> without(Size size, const Size& part) {
  for (const std::string& f : part) {
    const auto at = size.find(f);
    if (at == size.end()) return std::nullopt;
    size.erase(at);
  }
  return size;
}

Size joined(Size a, const Size& b) {
  a.insert(b.begin(), b.end());
  return a;
}

class Order : private Names {
 public:
  Order(const tl::Program& program, const std::map<std::string, Term>& sizes, const Blocks& blocks,
        Vocabulary& vocabulary)
      : Names(program, sizes, blocks, vocabulary) {}

  std::string run() {
    scope_ = module();
    tl::walk(program_.body, [&](const Stmt& s) { statement(s); });
    for (const Stmt& s : program_.body)
      if (s.op == Op::args)
        for (const Stmt& a : s.body)
          if (a.op == Op::arg_size)
            for (const tl::Item& d : a.names())
              if (d.expr) arguments_[d.name] = d.expr;
    const Stmt* function = nullptr;
    for (const Stmt& s : program_.body)
      if (s.op == Op::def && is_block_function(s)) function = &s;
    if (!function || counts_.size() != 1 || !arguments_.count(*counts_.begin()))
      open("there is no one function or number of blocks");
    else
      follow(*function, arguments_.at(*counts_.begin()));
    return open_;
  }

  // After run(), where that has seen an order.
  std::string falling() const {
    if (!numbers_.empty()) return "a CTA has several blocks";
    if (turned_ || parted(rows_).size() != 1) return "which blocks of rows are launched first";
    return "";
  }

 private:
  // The numbers that blocks are taken by: of a loop, or the launch's own.
  void statement(const Stmt& s) {
    if (tl::is(s.op, tl::Family::tiles)) {
      if (s.has(tl::Hole::index)) numbers_.insert(s.items(tl::Hole::index)[0].name);
      tl::each_expression(s, [&](const ExprPtr& e) { count(e); });
    }
    if (s.op != Op::let) return;
    for (const tl::Item& d : s.names()) {
      const Stmt* f = d.expr->kind == ExprKind::call ? function_of(d.expr->text) : nullptr;
      if (!f || !is_block_function(*f)) continue;
      const ExprPtr& w = d.expr->args[0];
      if (w->kind == ExprKind::call && tl::numbers_blocks(w->text))
        count(w->args[0]);
      else if (w->kind != ExprKind::name || !numbers_.count(w->text))
        open(fmt::format("the block of number `{}`", tl::print(w)));
    }
  }

  // A name of how many there are; other names of such a statement are queues and parameters.
  void count(const ExprPtr& e) {
    if (e->kind != ExprKind::name) return open(fmt::format("as many blocks as `{}`", tl::print(e)));
    const auto is_size = [&](const Stmt& a) {
      return a.op == Op::arg_size &&
             std::any_of(a.names().begin(), a.names().end(),
                         [&](const tl::Item& d) { return d.name == e->text && d.expr; });
    };
    for (const Stmt& s : program_.body)
      if (s.op == Op::args && std::any_of(s.body.begin(), s.body.end(), is_size))
        counts_.insert(e->text);
  }

  // ---- digits
  struct Digit {
    Size size;
    int low = -1, high = -1;  // what it was parted into
    Digits of;                // what it was joined of, in another order of factors
  };

  int digit(Size size, Digits of = {}) {
    digits_.push_back({std::move(size), -1, -1, std::move(of)});
    return int(digits_.size()) - 1;
  }

  Size size_of(const Digits& d) const {
    Size all;
    for (const int n : d) all = joined(all, digits_[n].size);
    return all;
  }

  // With what each was parted into in its place.
  Digits parted(const Digits& d) const {
    Digits out;
    for (const int n : d) {
      if (digits_[n].low < 0) {
        out.push_back(n);
        continue;
      }
      for (const int half : parted({digits_[n].low, digits_[n].high})) out.push_back(half);
    }
    return out;
  }

  // The digits below a size, and those above it.
  std::optional<std::pair<Digits, Digits>> parts(const Digits& whole, const Size& size) {
    Digits low, high = parted(whole);
    Size left = size;
    while (!left.empty()) {
      if (high.empty()) return std::nullopt;
      const int n = high.front();
      high.erase(high.begin());
      if (const auto more = without(left, digits_[n].size)) {
        left = *more;
        low.push_back(n);
        continue;
      }
      const auto above = without(digits_[n].size, left);
      if (above) {
        const int below = digit(left), rest = digit(*above);
        digits_[n].low = below;
        digits_[n].high = rest;
        low.push_back(below);
        high.insert(high.begin(), rest);
        return std::pair(low, high);
      }
      if (!section_.empty() && left.count(section_)) {  // it divides the heads of all entries
        const auto others = without(digits_[n].size, heads_);
        if (!others) return std::nullopt;
        digits_[n].size = joined(*others, Size{section_, "sections"});
      } else if (size_of(whole) == Size{section_, "sections"}) {
        const auto known = joined_.find(parted(whole));
        const int all = known != joined_.end() ? known->second : digit(heads_, parted(whole));
        joined_[parted(whole)] = all;
        return parts({all}, size);
      } else {
        return std::nullopt;
      }
      high.insert(high.begin(), n);
    }
    return std::pair(low, high);
  }

  // ---- expressions
  // The launcher, and the device, double a section until it is large enough: it must be of
  // something, in 64 bits. Of the factors of a product each size is one at most.
  static bool is_positive(const ExprPtr& e, std::set<std::string>& factors) {
    if (e->kind == ExprKind::integer) return e->text.size() < 7 && std::stoll(e->text) > 0;
    if (e->kind == ExprKind::name) return factors.insert(e->text).second;
    if (e->kind != ExprKind::binary && e->text != "ceil_div") return false;
    if (e->text == "//") return tl::print(e) == "H // G";
    if (e->text != "+" && e->text != "*" && e->text != "ceil_div") return false;
    std::set<std::string> others = e->text == "*" ? std::set<std::string>{} : factors;
    std::set<std::string>& second = e->text == "*" ? factors : others;
    if (!is_positive(e->args[0], factors) || !is_positive(e->args[1], second)) return false;
    factors.merge(others);
    return true;
  }

  std::optional<Size> size(const ExprPtr& e) {
    if (e->kind == ExprKind::name && e->text == section_name_) return Size{section_};
    if (e->kind == ExprKind::name && sizes_here_.count(e->text)) return sizes_here_.at(e->text);
    if (e->kind == ExprKind::binary && e->text == "*") {
      const auto a = size(e->args[0]), b = size(e->args[1]);
      if (a && b) return joined(*a, *b);
    }
    const Term t = eval(e, scope_);
    if (t.sort != Term::integer) return std::nullopt;
    Size out;
    for (const std::string& f : factors_of(read_term(t.text)))
      if (f != "1") out.insert(f);
    return out;
  }

  std::optional<Digits> digits(const ExprPtr& e) {
    if (e->kind == ExprKind::name) {
      const auto known = here_.find(e->text);
      return known == here_.end() ? std::nullopt : std::optional(known->second);
    }
    if (e->kind != ExprKind::binary) return std::nullopt;
    const ExprPtr &a = e->args[0], &b = e->args[1];
    if (e->text == "%" || e->text == "//") {
      const auto whole = digits(a);
      const auto by = size(b);
      const auto two = whole && by ? parts(*whole, *by) : std::nullopt;
      return !two ? std::nullopt : std::optional(e->text == "%" ? two->first : two->second);
    }
    if (e->text == "+" && a->kind == ExprKind::binary && a->text == "*") {
      const auto high = digits(a->args[0]), low = digits(b);
      const auto by = size(a->args[1]);
      if (!high || !low || !by || size_of(*low) != *by) return std::nullopt;
      Digits all = *low;
      all.insert(all.end(), high->begin(), high->end());
      return all;
    }
    // rows - 1 - m: from the last to the first.
    if (e->text == "-" && a->kind == ExprKind::binary && a->text == "-" &&
        a->args[1]->kind == ExprKind::integer && a->args[1]->text == "1") {
      const auto of = digits(b);
      const auto all = size(a->args[0]);
      turned_ = true;
      return of && all && size_of(*of) == *all ? of : std::nullopt;
    }
    return std::nullopt;
  }

  void follow(const Stmt& function, const ExprPtr& blocks) {
    for (const auto& [name, e] : arguments_)
      if (e->kind == ExprKind::call && e->text == "heads_at_once")
        if (const auto heads = size(e->args[3])) {
          for (size_t n = 0; n < 3; ++n)
            if (std::set<std::string> once; !is_positive(e->args[n], once))
              return open(fmt::format("a section by `{}`, which may be 0 or beyond 64 bits",
                                      tl::print(e->args[n])));
          section_name_ = name;
          section_ = "section of heads";
          heads_ = *heads;
        }
    const auto all = size(blocks);
    if (!all) return open(fmt::format("as many blocks as `{}`", tl::print(blocks)));
    const int w = digit(*all);
    here_[function.params()[0].name] = {w};
    for (const Stmt& s : function.body) {
      if (s.op == Op::let) {
        for (const tl::Item& d : s.names())
          if (const auto of = digits(d.expr))
            here_[d.name] = *of;
          else if (const auto known = size(d.expr))
            sizes_here_[d.name] = *known;
          else
            return open(fmt::format("the digits `{}`", tl::print(d.expr)));
      }
      if (s.op == Op::return_) give(s, w);
    }
  }

  void give(const Stmt& s, int w) {
    const ExprPtr rows = tl::call("ceil_div", {tl::name(sides_.rows), tl::name(sides_.tile)});
    const ExprPtr wanted[] = {rows, tl::name(sides_.heads), tl::name("B")};
    std::multiset<int> used;
    for (size_t n = 0; n < 3; ++n) {
      const auto of = digits(s.values()[n].expr);
      if (!of || size_of(*of) != size(wanted[n]))
        return open(fmt::format("the block `{}`", tl::print(s.values()[n].expr)));
      if (n == 0) rows_ = *of;
      for (const int d : *of) used.insert(d);
    }
    std::multiset<int> all;
    for (const int d : used)
      for (const int part : parted({d})) all.insert(part);
    std::set<int> once(all.begin(), all.end());
    if (once.size() != all.size() || !is_covered(w, once))
      open("a number has digits that no block of the output has, or two");
  }

  bool is_covered(int n, const std::set<int>& used) const {
    if (used.count(n)) return true;
    if (digits_[n].low >= 0)
      return is_covered(digits_[n].low, used) && is_covered(digits_[n].high, used);
    for (size_t k = 0; k < digits_.size(); ++k) {
      const Digits& of = digits_[k].of;
      if (std::find(of.begin(), of.end(), n) != of.end()) return is_covered(int(k), used);
    }
    return false;
  }

  Scope scope_;
  std::map<std::string, ExprPtr> arguments_;
  std::set<std::string> numbers_, counts_;
  std::vector<Digit> digits_;
  std::map<Digits, int> joined_;
  std::map<std::string, Digits> here_;
  std::map<std::string, Size> sizes_here_;
  std::string section_name_, section_;
  Size heads_;
  Digits rows_;          // of the block of rows
  bool turned_ = false;  // some number is counted from the last
};

}  // namespace

std::string disorder(const tl::Program& program, const std::map<std::string, Term>& sizes,
                     const Blocks& blocks, Vocabulary& vocabulary) {
  return Order(program, sizes, blocks, vocabulary).run();
}

std::string falling(const tl::Program& program, const std::map<std::string, Term>& sizes,
                    const Blocks& blocks, Vocabulary& vocabulary) {
  Order order(program, sizes, blocks, vocabulary);
  const std::string why = order.run();
  return why.empty() ? order.falling() : why;
}

}  // namespace kw::proofs
