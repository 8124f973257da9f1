#include "operator/families/rms_norm/recognise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "operator/recognise/parts.h"
#include "operator/recognise/rows.h"

namespace kw::spec {
namespace {

const std::string kColumn = "d";

// Reads of arguments in e, each once.
void reads_of(const ExprPtr& e, std::vector<ExprPtr>& out) {
  if (is_argument_read(e) &&
      std::none_of(out.begin(), out.end(), [&](const ExprPtr& r) { return equal(r, e); }))
    out.push_back(e);
  for (const ExprPtr& a : e->args) reads_of(a, out);
}

// What a root is taken of in e that mentions a sum; null where none is.
ExprPtr under_root(const ExprPtr& e) {
  const bool root = (e->kind == Kind::unary && (e->name == "rsqrt" || e->name == "sqrt")) ||
                    (e->kind == Kind::binary && e->name == "**");
  if (root && mentions(e->args[0], Kind::total)) return e->args[0];
  for (const ExprPtr& a : e->args)
    if (const ExprPtr found = under_root(a)) return found;
  return nullptr;
}

// What is added to a sum's share: a number or an argument; 0 where nothing is.
ExprPtr added(const ExprPtr& e) {
  if (e->kind == Kind::binary && e->name == "+")
    for (const size_t n : {0, 1})
      if (!mentions(e->args[n], Kind::total)) return e->args[n];
  return real(0);
}

// Whether it is made of sums, products, roots and powers alone: then a few numbers tell it from
// another formula. A condition, a bound or a step may lie where no number of ours does.
bool is_smooth(const ExprPtr& e) {
  static const std::set<std::string> smooth = {"+",     "-",    "*",          "/",    "**",
                                               "rsqrt", "sqrt", "reciprocal", "float"};
  const bool operation = e->kind == Kind::binary || e->kind == Kind::unary;
  if (e->kind == Kind::where || (operation && !smooth.contains(e->name))) return false;
  if (!operation) return true;
  return std::all_of(e->args.begin(), e->args.end(), is_smooth);
}

class NormRecogniser {
 public:
  NormRecogniser(Elements& elements, const Graph& graph, Diagnostics& diagnostics)
      : elements_(elements), graph_(graph), diagnostics_(diagnostics) {}

  std::optional<Form> run() {
    form_.name = graph_.name;
    form_.dtype = graph_.dtype;
    form_.arguments = graph_.arguments;
    form_.notes = graph_.notes;
    if (!find() || !assign() || !matches() || !second()) return std::nullopt;
    name_dims();
    form_.norm = std::move(norm_);
    form_.roundings = elements_.roundings();
    return std::move(form_);
  }

 private:
  bool refuse(const std::string& why) {
    if (!elements_.failed() && !diagnostics_.has_errors())
      diagnostics_.error("spec.rms_norm", node().span, why).hint =
          "supported is x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight, of x or "
          "of a sum of two, which may be the second output";
    return false;
  }

  const Node& node() const { return graph_.nodes[graph_.outputs[0]]; }

  // The indices of the output, its last the column; its element as a row map.
  bool find() {
    const int rank = node().rank();
    if (rank < 2 || node().shape[rank - 1]->kind != Kind::number) return false;
    for (int d = 0; d < rank; ++d) {
      names_.push_back(d + 1 == rank ? kColumn : fmt::format("x{}", d));
      at_.push_back(elements_.index(names_.back(), node().shape[d]));
    }
    const ExprPtr e = elements_.element(graph_.outputs[0], at_);
    if (elements_.failed()) return false;
    const std::vector<ExprPtr> sums = reduced_reads(e);
    if (sums.empty() ||
        !std::all_of(sums.begin(), sums.end(), [&](const ExprPtr& s) { return is_of_row(s); }))
      return false;
    const auto row = read_operand(elements_, e, kColumn, graph_.outputs[0], diagnostics_);
    if (!row || !row->map) return false;
    row_ = *row->map;
    return under_root(row_.element) != nullptr;  // nothing else is a norm that is written wrongly
  }

  // A sum over the columns of the row: the same for each column of the output.
  bool is_of_row(const ExprPtr& sum) {
    const int n = Elements::reduced(sum);
    return elements_.reduction(n) == Reduction::sum && !mentions(sum, Kind::index, kColumn) &&
           equal(elements_.extent(n), node().shape.back()) &&
           elements_.factors(n, sum->args, at_.back()).size() == 1;
  }

  // x, residual and weight among the reads, and what the dimensions are.
  bool assign() {
    std::vector<ExprPtr> reads;
    reads_of(row_.element, reads);
    for (const ExprPtr& sum : row_.sums) reads_of(sum, reads);
    const auto place = [&](const ExprPtr& read) {
      size_t n = 0;
      while (n < form_.arguments.size() && form_.arguments[n].name != read->name) ++n;
      return n;
    };
    std::sort(reads.begin(), reads.end(),
              [&](const ExprPtr& a, const ExprPtr& b) { return place(a) < place(b); });
    std::vector<ExprPtr> rows;
    for (const ExprPtr& r : reads) {
      const bool whole = std::equal(r->args.begin(), r->args.end(), at_.begin(), at_.end(), equal);
      const bool column = r->args.size() == 1 && equal(r->args[0], at_.back());
      if (!whole && (!column || weight_))
        return refuse(
            fmt::format("the output reads {}, which is neither an element of its own row "
                        "nor the weight of its column",
                        print(r)));
      if (whole)
        rows.push_back(r);
      else
        weight_ = r;
    }
    if (rows.empty() || rows.size() > 2 || !weight_)
      return refuse(fmt::format("the output is computed from {} rows and {}", rows.size(),
                                weight_ ? "a weight" : "no weight"));
    x_ = rows[0];
    if (rows.size() == 2) residual_ = rows[1];
    const int lead = node().rank() - 1;
    if (lead > 3) return refuse("the output has more dimensions before its last than three");
    const char* roles[] = {"b", "h", "i"};
    for (int d = 0; d < lead; ++d) roles_[names_[d]] = d + 1 == lead ? "i" : roles[d];
    roles_[kColumn] = kColumn;
    for (const std::string& x : names_) form_.output_dims.push_back(roles_[x]);
    form_.B = form_.H = form_.N = {"", 1};
    for (int d = 0; d < lead; ++d) {
      const std::string role = roles_[names_[d]];
      Size& size = role == "b" ? form_.B : role == "h" ? form_.H : form_.M;
      size = named(node().shape[d], role == "b" ? "B" : role == "h" ? "H" : "M");
    }
    form_.D = form_.Dv = {"", node().shape.back()->integer};
    form_.G = form_.H;
    return form_.H.name.empty() ||
           refuse("the second of four dimensions is not a constant: it stands for heads");
  }

  // Whether the element and its sums are what they should be, for numbers in the place of reads.
  bool matches() {
    const ExprPtr root = under_root(row_.element);
    norm_.eps = root ? added(root) : nullptr;
    const auto is_eps = [&] {
      return norm_.eps && (norm_.eps->kind == Kind::number || norm_.eps->kind == Kind::argument);
    };
    norm_.sum = residual_ ? binary("+", x_, residual_) : x_;
    const ExprPtr total = leaf(Kind::total, Type::real, "0");
    if (!is_eps() || row_.sums.size() != 1 || !is_smooth(row_.element) ||
        !is_smooth(row_.sums[0]) || !alike(row_.sums[0], binary("*", norm_.sum, norm_.sum)) ||
        !alike(row_.element,
               binary("*",
                      binary("*", norm_.sum,
                             unary("rsqrt",
                                   binary("+",
                                          binary("*", total, real(1.0 / double(form_.D.constant))),
                                          norm_.eps))),
                      weight_)))
      return refuse(fmt::format("the output is {}, which is not the RMS normalisation of its row",
                                print(row_.element)));
    norm_.row = {{renamed(row_.sums[0])}, renamed(row_.element)};
    norm_.x = operand(x_);
    if (residual_) norm_.residual = operand(residual_);
    norm_.weight = operand(weight_);
    norm_.sum = renamed(norm_.sum);
    return true;
  }

  bool alike(const ExprPtr& a, const ExprPtr& b) const {
    for (int n = 0; n < 5; ++n) {
      const double left = at_numbers(a, n), right = at_numbers(b, n);
      if (!(std::fabs(left - right) <= 1e-12 * std::max(std::fabs(left), std::fabs(right))))
        return false;
    }
    return true;
  }

  // e where each read, index and size is a number of its own, and the sum and scalars are positive
  // ones.
  double at_numbers(const ExprPtr& e, int n) const {
    Scope scope;
    int64_t next = 3 + n;
    for (const std::string& x : names_) scope.indices[x] = next += 5 + n;
    rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      const auto letters = int64_t(std::hash<std::string>()(x->name) % 97);
      if (x->kind == Kind::size) scope.indices.emplace(x->name, 100 + letters * (n + 3));
      return nullptr;
    });
    scope.totals = {37.5 + 101 * n};
    for (const Argument& a : form_.arguments)
      if (!a.is_tensor) scope.scalars[a.name] = 0.01 * (n + 1);
    scope.read = [&](const std::string& name, const std::vector<int64_t>&) {
      const double own = name == x_->name ? 1.25 : name == weight_->name ? 0.75 : 2.125;
      return own + 0.5 * n * own;
    };
    return evaluate(e, scope);
  }

  // A second output is the sum that is normalised.
  bool second() {
    form_.outputs = {{"y", "bhid"}};
    if (graph_.outputs.size() == 1) return true;
    const Node& given = graph_.nodes[graph_.outputs[1]];
    if (graph_.outputs.size() > 2 || given.rank() != node().rank() || !residual_ ||
        !alike(elements_.element(graph_.outputs[1], at_), binary("+", x_, residual_)))
      return refuse("the second output is not the sum that the first normalises");
    form_.outputs.push_back({"h", "bhid"});
    return !elements_.failed();
  }

  Size named(const ExprPtr& extent, const char* wanted) {
    if (extent->kind == Kind::number) return {"", extent->integer};
    if (extent->kind != Kind::size) return {print(extent), 0};
    return {size_names_.emplace(extent->name, wanted).first->second, 0};
  }

  ExprPtr renamed(const ExprPtr& e) const {
    return rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      if (x->kind == Kind::index) {
        const auto found = roles_.find(x->name);
        return found == roles_.end() ? nullptr : leaf(Kind::index, Type::integer, found->second);
      }
      if (x->kind != Kind::size) return nullptr;
      const auto found = size_names_.find(x->name);
      return found == size_names_.end() ? nullptr : leaf(Kind::size, Type::integer, found->second);
    });
  }

  Operand operand(const ExprPtr& read) const {
    Operand out{read->name, {}, {}};
    for (const ExprPtr& a : read->args) out.indices.push_back(renamed(a));
    return out;
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
  Norm norm_;
  RowMap row_;  // before its indices have their names
  ExprPtr x_, residual_, weight_;
  Indices at_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> roles_;       // "x1" -> "i"
  std::map<std::string, std::string> size_names_;  // "s25" -> "M"
};

}  // namespace

std::optional<Form> recognise_rms_norm(const Graph& graph, Diagnostics& diagnostics) {
  Elements elements(graph, diagnostics);
  return NormRecogniser(elements, graph, diagnostics).run();
}

}  // namespace kw::spec
