// A sum over d of a[.., i, d] b[.., d, j] is looked for in the first output, or in what the first
// output sums. An index of the output that only the left side is read at is a row, one that only
// the right side is read at a column; of several such the last is, and those before are batches of
// that side alone. What is left, at both sides, are batches of both.
#include "operator/families/gemm/recognise.h"

#include <fmt/format.h>

#include <algorithm>

#include "operator/recognise/lengths.h"
#include "operator/recognise/parts.h"

namespace kw::spec {
namespace {

bool reads_at(const ExprPtr& e, const std::string& index) {
  return mentions(e, Kind::index, index);
}

const Output kMatrix = {"o", "bhij"}, kSums = {"sums", "bhi", Rule::row_sum};

ExprPtr index_named(const std::string& name) { return leaf(Kind::index, Type::integer, name); }

class Recogniser {
 public:
  Recogniser(Elements& elements, const Graph& graph, Diagnostics& diagnostics)
      : elements_(elements), graph_(graph), diagnostics_(diagnostics) {}

  std::optional<Form> run() {
    form_.outputs = {kMatrix};
    if (!find()) return std::nullopt;
    form_.name = graph_.name;
    form_.dtype = graph_.dtype;
    form_.arguments = graph_.arguments;
    form_.notes = graph_.notes;
    if (!plain_operands() || !assign() || !sizes() || !operands() || !value() || !second())
      return std::nullopt;
    name_dims();
    form_.product = std::move(product_);
    form_.roundings = elements_.roundings();
    return std::move(form_);
  }

 private:
  bool refuse(const std::string& code, const std::string& why, const std::string& hint = {}) {
    if (!elements_.failed()) diagnostics_.error(code, span_, why).hint = hint;
    return false;
  }

  // Both sides of the one sum of products in e; its node, or -1.
  int product_in(const ExprPtr& e) {
    const std::vector<ExprPtr> reads = reduced_reads(e);
    if (elements_.failed() || reads.size() != 1) return -1;
    const int n = Elements::reduced(reads[0]);
    if (elements_.reduction(n) != Reduction::sum) return -1;
    const ExprPtr d = elements_.index("d", elements_.extent(n));
    std::vector<ExprPtr> sides = elements_.factors(n, reads[0]->args, d);
    if (elements_.failed() || sides.size() != 2) return -1;
    for (const ExprPtr& side : sides)
      if (!reduced_reads(side).empty() || !mentions(side, Kind::read)) return -1;
    read_ = reads[0];
    left_ = sides[0];
    right_ = sides[1];
    return n;
  }

  // The product of the first output, or of what the first output sums.
  bool find() {
    const int out = graph_.outputs[0];
    const Node& node = graph_.nodes[out];
    span_ = node.span;
    for (int d = 0; d < node.rank(); ++d) {
      names_.push_back(fmt::format("x{}", d));
      at_.push_back(elements_.index(names_.back(), node.shape[d]));
    }
    ExprPtr e = elements_.element(out, at_);
    if (elements_.failed()) return false;
    node_ = product_in(e);
    if (node_ >= 0) {
      whole_ = e;
      return true;
    }
    const int sum = elements_.failed() ? -1 : Elements::reduced(e);
    if (sum < 0 || elements_.reduction(sum) != Reduction::sum) return false;
    const ExprPtr j = elements_.index("column", elements_.extent(sum));
    const std::vector<ExprPtr> body = elements_.factors(sum, e->args, j);
    if (elements_.failed() || body.size() != 1) return false;
    node_ = product_in(body[0]);
    if (node_ < 0) return false;
    // A sum of weighted values over keys is attention's: its columns stand in no product.
    for (const std::string& x : names_)
      if (mentions(body[0], Kind::index, x) && !reads_at(left_, x) && !reads_at(right_, x))
        return false;
    whole_ = body[0];
    names_.push_back("column");
    form_.outputs = {kSums};
    return true;
  }

  // Arguments' elements, and numbers, which are factors of the value.
  bool plain_operands() {
    span_ = graph_.nodes[node_].span;
    std::vector<ExprPtr> outside = {leaf(Kind::score, Type::real, "s")};
    double constant = 1;
    for (ExprPtr* side : {&left_, &right_}) {
      std::vector<ExprPtr> factors;
      factors_of(*side, factors, constant);
      ExprPtr own;
      for (const ExprPtr& f : factors) {
        if (!mentions(f, Kind::index, "d")) {
          outside.push_back(f);
        } else if (own || !is_argument_read(f)) {
          return refuse(
              "spec.operand",
              fmt::format("a side of the product is {}, not an argument as it is", print(*side)),
              "compute it before, and pass the result");
        } else {
          own = f;
        }
      }
      if (!own)
        return refuse("spec.operand",
                      fmt::format("{} is the same in all terms of the sum", print(*side)));
      *side = own;
    }
    whole_ = replace(whole_, read_, product(outside, constant));
    return !elements_.failed();
  }

  // Which index is what.
  bool assign() {
    std::vector<std::string> left, right, both;
    for (const std::string& x : names_) {
      const bool a = reads_at(left_, x), b = reads_at(right_, x);
      const ExprPtr& extent = elements_.extents().at(x);
      const bool single = extent->kind == Kind::number && extent->integer == 1;
      if (!a && !b && single) {
        roles_[x] = "";  // a dimension of one
      } else if (!a && !b) {
        return refuse("spec.product", "an output dimension is read in neither side of the product");
      } else {
        (a && b ? both : a ? left : right).push_back(x);
      }
    }
    if (left.empty() || right.empty())
      return refuse("spec.product", "the output has no dimension of rows or none of columns",
                    "one side must be read at rows, the other at columns");
    // (b.mT @ a.mT).mT is a @ b: the left side is the one of the earlier dimension.
    const auto place = [&](const std::string& x) {
      return std::find(names_.begin(), names_.end(), x);
    };
    if (place(right.back()) < place(left.back())) {
      std::swap(left_, right_);
      std::swap(left, right);
    }
    roles_[left.back()] = "i";
    roles_[right.back()] = "j";
    both.insert(both.end(), left.begin(), left.end() - 1);
    both.insert(both.end(), right.begin(), right.end() - 1);
    std::sort(both.begin(), both.end());
    if (both.size() > 2)
      return refuse("spec.product", fmt::format("the product has {} batch dimensions, at most 2 "
                                                "are supported",
                                                both.size()));
    if (!both.empty()) roles_[both[0]] = "b";
    if (both.size() == 2) roles_[both[1]] = "h";
    return in_order();
  }

  bool in_order() {
    std::string order;
    for (const std::string& x : names_) {
      if (roles_[x].empty()) continue;
      order += roles_[x];
      if (x != "column") form_.output_dims.push_back(roles_[x]);
    }
    if (order == "ij" || order == "bij" || order == "bhij") return true;
    return refuse("spec.product",
                  fmt::format("the output's dimensions are {}, where batch, rows, columns is "
                              "supported",
                              fmt::join(form_.output_dims, ", ")),
                  "return the product as it is, and transpose it outside");
  }

  Size named(const ExprPtr& extent, const char* wanted) {
    if (extent->kind == Kind::number) return {"", extent->integer};
    if (extent->kind != Kind::size) return {print(extent), 0};
    return {size_names_.emplace(extent->name, wanted).first->second, 0};
  }

  bool sizes() {
    form_.B = form_.H = form_.G = {"", 1};
    for (const std::string& x : names_) {
      const std::string& role = roles_[x];
      if (role.empty()) continue;
      const char* wanted = role == "b" ? "B" : role == "h" ? "H" : role == "i" ? "M" : "N";
      Size& size = role == "b" ? form_.B : role == "h" ? form_.H : role == "i" ? form_.M : form_.N;
      size = named(elements_.extents().at(x), wanted);
    }
    form_.D = named(elements_.extents().at("d"), "K");
    form_.G = form_.H;
    form_.Dv = form_.N;
    return form_.H.name.empty() ||
           refuse("spec.heads", "the second batch dimension must be a constant",
                  "give products as [B, H, M, K] with a constant H");
  }

  ExprPtr renamed(const ExprPtr& e) const {
    return rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      if (x->kind == Kind::index) {
        const auto found = roles_.find(x->name);
        if (found == roles_.end() || found->second.empty()) return nullptr;
        return index_named(found->second);
      }
      if (x->kind != Kind::size) return nullptr;
      const auto found = size_names_.find(x->name);
      return found == size_names_.end() ? nullptr : leaf(Kind::size, Type::integer, found->second);
    });
  }

  // Each dimension of a side is one index, or 0.
  bool operands() {
    for (const auto& [read, operand] : {std::pair(left_, &product_.a), {right_, &product_.b}}) {
      operand->argument = read->name;
      std::vector<std::string> seen;
      for (const ExprPtr& given : read->args) {
        const ExprPtr e = renamed(given);
        operand->indices.push_back(e);
        if (e->kind == Kind::number && e->integer == 0) continue;
        const bool plain = e->kind == Kind::index;
        if (!plain || std::count(seen.begin(), seen.end(), e->name))
          return refuse("spec.operand",
                        fmt::format("{} is read at {}, where one index a dimension is supported",
                                    read->name, print(e)),
                        "reshape it outside");
        seen.push_back(e->name);
      }
      std::map<std::string, ExprPtr> extents = {{"d", elements_.extents().at("d")}};
      for (const auto& [x, role] : roles_)
        if (!role.empty()) extents[role] = elements_.extents().at(x);
      if (!read_as_long_as_it_is(elements_, *operand, extents, node_, "", diagnostics_))
        return false;
    }
    return has_own_sizes();
  }

  bool has_own_sizes() {
    const std::map<std::string, const char*> of = {
        {"b", "batch entries"}, {"i", "rows"}, {"j", "columns"}};
    for (const std::string& x : names_)
      if (of.count(roles_[x]) &&
          !is_a_size(elements_, elements_.extents().at(x), of.at(roles_[x]), diagnostics_))
        return false;
    return is_a_size(elements_, elements_.extents().at("d"), "terms", diagnostics_);
  }

  bool value() {
    product_.value = renamed(whole_);
    if (mentions(product_.value, Kind::index, "d") || !reduced_reads(product_.value).empty())
      return refuse("spec.product", fmt::format("the output is {}, which is not a function of one "
                                                "element of the product",
                                                print(product_.value)));
    return true;
  }

  // A second output is the sum of the first over its columns.
  bool second() {
    if (graph_.outputs.size() == 1) return true;
    const Node& node = graph_.nodes[graph_.outputs[1]];
    span_ = node.span;
    const auto no = [&] {
      return refuse("spec.product",
                    "the second output is not the sum of the first over its columns",
                    "return (c, c.sum(-1)), or only one of them");
    };
    if (graph_.outputs.size() > 2 || form_.returns(kSums.name)) return no();
    Indices at;
    for (const std::string& x : names_)
      if (roles_[x] != "j") at.push_back(index_named(x));
    while (static_cast<int>(at.size()) < node.rank()) at.push_back(integer(0));  // keepdim
    if (static_cast<int>(at.size()) != node.rank()) return no();
    const ExprPtr e = elements_.element(graph_.outputs[1], at);
    const int n = Elements::reduced(e);
    if (elements_.failed() || n < 0 || elements_.reduction(n) != Reduction::sum) return no();
    std::string column;
    for (const auto& [x, role] : roles_)
      if (role == "j") column = x;
    const std::vector<ExprPtr> body = elements_.factors(n, e->args, index_named(column));
    const ExprPtr first = elements_.element(graph_.outputs[0], at_);
    if (body.size() != 1 || !equal(body[0], first)) return no();
    form_.outputs.push_back(kSums);
    return true;
  }

  // The arguments' dimensions under the sizes' names; other symbols become L1, L2, ...
  void name_dims() {
    int others = 0;
    for (size_t n = 0; n < form_.arguments.size(); ++n)
      for (const ExprPtr& d : elements_.node(static_cast<int>(n)).shape) {
        if (d->kind == Kind::size && !size_names_.count(d->name))
          size_names_[d->name] = fmt::format("L{}", ++others);
        form_.arguments[n].dims.push_back(d->kind == Kind::number ? Size{"", d->integer}
                                                                  : Size{print(renamed(d)), 0});
      }
  }

  Elements& elements_;
  const Graph& graph_;
  Diagnostics& diagnostics_;
  Form form_;
  Product product_;
  Span span_;
  int node_ = -1;                // of the product
  ExprPtr read_, left_, right_;  // its mention, and its sides
  ExprPtr whole_;                // the element of the matrix
  Indices at_;
  std::vector<std::string> names_;            // of the output's indices, and "column"
  std::map<std::string, std::string> roles_;  // "x1" -> "i"; "": a dimension of one
  std::map<std::string, std::string> size_names_;
};

}  // namespace

std::optional<Form> recognise_gemm(const Graph& graph, Diagnostics& diagnostics) {
  Elements elements(graph, diagnostics);
  return Recogniser(elements, graph, diagnostics).run();
}

}  // namespace kw::spec
