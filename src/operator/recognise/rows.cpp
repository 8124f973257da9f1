// A side of a product as an operand: which argument it is, and what its rows become.
//
// The argument is the one that is read with the most indices: q[b, h, i, d], beside weights w[d]
// and rotations cos[i, d]. It may be read at any column, at other rows not at all. Sums over the
// columns (a norm) become numbered totals, the inner ones first, so that a mean within a variance
// is one of them. What is only read as it is has no row map.
#include "operator/recognise/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "operator/recognise/parts.h"

namespace kw::spec {
namespace {

bool mentions_index(const ExprPtr& e, const std::string& name) {
  return mentions(e, Kind::index, name);
}

void argument_reads(const ExprPtr& e, std::vector<ExprPtr>& out) {
  if (is_argument_read(e)) out.push_back(e);
  for (const ExprPtr& a : e->args) argument_reads(a, out);
}

// How many dimensions are read at some index; of arguments that are read alike the user's first is
// the operand.
int indices_of(const ExprPtr& read) {
  int count = 0;
  for (const ExprPtr& a : read->args) count += a->kind != Kind::number;
  return count;
}

class Reader {
 public:
  Reader(Elements& elements, const std::string& column, int node, Diagnostics& diagnostics)
      : elements_(elements), column_(column), node_(node), diagnostics_(diagnostics) {}

  std::optional<OperandRow> read(const ExprPtr& side) {
    const ExprPtr element = with_totals(side);
    if (refused_ || elements_.failed()) return std::nullopt;
    if (!find_argument(element)) return std::nullopt;
    if (!equal(element, out_.read)) out_.map = RowMap{sums_, element};
    return out_;
  }

 private:
  ExprPtr refuse(int node, const std::string& why, const std::string& hint) {
    if (!refused_ && !elements_.failed() && !diagnostics_.has_errors())
      diagnostics_.error("spec.operand", elements_.node(node).span, why).hint = hint;
    refused_ = true;
    return real(0);
  }

  // Sums over columns become totals, from the inside out.
  ExprPtr with_totals(const ExprPtr& e) {
    return rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      const int n = Elements::reduced(x);
      if (n < 0 || refused_) return nullptr;
      const ExprPtr extent = elements_.extent(n), columns = elements_.extents().at(column_);
      if (elements_.reduction(n) != Reduction::sum || !equal(extent, columns))
        return refuse(
            n,
            fmt::format("a row of q or k is changed by aten.{} over an index of length {}",
                        elements_.node(n).op, print(extent)),
            "supported are sums and means over the head dimension, as norms take them; "
            "compute anything else outside, and pass the result");
      const ExprPtr body =
          with_totals(elements_.body(n, x->args, leaf(Kind::index, Type::integer, column_)));
      return total(n, body);
    });
  }

  ExprPtr total(int node, const ExprPtr& body) {
    size_t at = 0;
    while (at < sums_.size() && !equal(sums_[at], body)) ++at;
    if (at == kMostSums)
      return refuse(node, fmt::format("a row needs more than {} different sums", kMostSums),
                    "compute some of them outside, and pass the result");
    if (at == sums_.size()) sums_.push_back(body);
    return leaf(Kind::total, Type::real, std::to_string(at));
  }

  bool find_argument(const ExprPtr& element) {
    std::vector<ExprPtr> reads;
    argument_reads(element, reads);
    for (const ExprPtr& sum : sums_) argument_reads(sum, reads);
    std::erase_if(reads, [&](const ExprPtr& r) { return !mentions_index(r, column_); });
    if (reads.empty()) return fail("is computed from no argument that is read at its columns");
    const auto before = [&](const ExprPtr& a, const ExprPtr& b) {
      const int more = indices_of(a) - indices_of(b);
      return more ? more > 0 : place(a) < place(b);
    };
    const ExprPtr first = *std::min_element(reads.begin(), reads.end(), before);
    const auto column = [&](const ExprPtr& r) {
      const auto at = [&](const ExprPtr& a) { return mentions_index(a, column_); };
      return std::count_if(r->args.begin(), r->args.end(), at) == 1
                 ? std::find_if(r->args.begin(), r->args.end(), at) - r->args.begin()
                 : -1;
    };
    if (column(first) < 0)
      return fail(
          fmt::format("reads {}, of which one dimension is not the head dimension", print(first)));
    const auto own = [&](const ExprPtr& r) {
      std::vector<ExprPtr> at = r->args;
      if (column(first) < static_cast<int64_t>(at.size()))
        at[column(first)] = leaf(Kind::index, Type::integer, column_);
      return spec::read(r->name, r->type, at);
    };
    out_.read = own(first);
    for (const ExprPtr& r : reads)
      if (r->name == first->name && !equal(own(r), out_.read))
        return fail(
            fmt::format("reads {} at two rows: {} and {}", r->name, print(first), print(r)));
    return true;
  }

  bool fail(const std::string& what) {
    refuse(node_, "a factor of the product " + what,
           "an operand's row may be computed from itself, at any column, and from other arguments; "
           "compute anything else outside, and pass the result");
    return false;
  }

  size_t place(const ExprPtr& read) const {
    const std::vector<Argument>& all = elements_.graph().arguments;
    return std::find_if(all.begin(), all.end(),
                        [&](const Argument& a) { return a.name == read->name; }) -
           all.begin();
  }

  Elements& elements_;
  const std::string column_;
  const int node_;
  Diagnostics& diagnostics_;
  std::vector<ExprPtr> sums_;
  OperandRow out_;
  bool refused_ = false;
};

}  // namespace

std::optional<OperandRow> read_operand(Elements& elements, const ExprPtr& side,
                                       const std::string& column, int node,
                                       Diagnostics& diagnostics) {
  return Reader(elements, column, node, diagnostics).read(side);
}

}  // namespace kw::spec
