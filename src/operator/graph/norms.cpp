// Means, variances and norms over one dimension, opened into sums: what normalises the rows of q
// and k.
//
//   mean(x)                         sum(x) / n
//   var(x), std(x)                  sum((x - mean(x))^2) / (n - correction), and its root
//   norm(x)                         sqrt(sum(x^2))
//   rms_norm(x, [n], w, eps)        x * rsqrt(mean(x^2) + eps) * w
//   layer_norm(x, [n], w, b, eps)   (x - mean(x)) * rsqrt(mean((x - mean(x))^2) + eps) * w + b
// The number of elements must be a constant: a head dimension is.
#include <cfloat>
#include <string_view>

#include "operator/graph/normalise.h"
#include "operator/graph/opener.h"

namespace kw::spec {
namespace {

class NormOpener {
 public:
  NormOpener(Opener& opener, Diagnostics& diagnostics)
      : o_(opener), n_(opener.original()), diagnostics_(diagnostics) {}

  bool open() {
    x_ = n_.args[0].node;
    const bool affine = n_.op == "rms_norm" || n_.op == "layer_norm";
    if (affine ? n_.args[1].list.size() != 1 : !reads_dimension())
      return refuse(fmt::format("aten.{} over several dimensions is not supported", n_.op));
    if (affine) dim_ = static_cast<int>(o_.shape(x_).size()) - 1;
    const ExprPtr extent = o_.shape(x_)[dim_];
    if (extent->kind != Kind::number)
      return refuse(fmt::format("aten.{} is over {} elements, which is not a constant", n_.op,
                                print(extent)));
    count_ = static_cast<double>(extent->integer);
    if (n_.op == "mean") return mean();
    if (n_.op == "var" || n_.op == "std") return variance();
    if (n_.op == "rms_norm") return rms_norm();
    return n_.op == "layer_norm" ? layer_norm() : euclidean();
  }

 private:
  bool refuse(const std::string& why) {
    diagnostics_.error("spec.operator", n_.span, why).hint =
        "supported are means, variances and norms over the head dimension of q, k or v";
    return false;
  }

  bool reads_dimension() {
    const Value& dim = n_.arg(is_norm() ? 2 : 1, "dim");
    const bool one = dim.kind == Value::Kind::list ? dim.list.size() == 1 : dim.is_number();
    if (!one) return false;
    dim_ = wrap(dim.kind == Value::Kind::list ? dim.list[0].integer : dim.integer,
                static_cast<int>(o_.shape(x_).size()));
    return true;
  }
  bool is_norm() const { return n_.op == "norm" || n_.op == "linalg_vector_norm"; }
  bool keeps() const { return n_.shape.size() == o_.shape(x_).size(); }

  std::vector<ExprPtr> kept() const {
    std::vector<ExprPtr> shape = o_.shape(x_);
    shape[dim_] = integer(1);
    return shape;
  }
  // Operators on whole rows, and on one number a row, which keeps its dimension.
  int each(const char* op, Value a, Value b) {
    return o_.add(op, {std::move(a), std::move(b)}, o_.shape(x_));
  }
  int one(const char* op, std::vector<Value> args) { return o_.add(op, std::move(args), kept()); }
  int sum(int of) { return one("sum", {node_value(of), whole(dim_)}); }
  int mean_of(int of) { return one("mul", {node_value(sum(of)), number(1 / count_)}); }
  int square(int of) { return each("mul", node_value(of), node_value(of)); }
  int centred() { return each("sub", node_value(x_), node_value(mean_of(x_))); }
  // What one number a row becomes in the end, with or without its dimension.
  bool becomes(const char* op, std::vector<Value> args) {
    if (keeps()) {
      o_.become(op, std::move(args));
      return true;
    }
    o_.become("squeeze", {node_value(one(op, std::move(args))), whole(dim_)});
    return true;
  }

  bool mean() { return becomes("mul", {node_value(sum(x_)), number(1 / count_)}); }

  // var.dim(x, dim, unbiased, keepdim), var.correction(x, dim, *, correction, keepdim)
  bool variance() {
    const Value& correction = n_.arg(n_.overload == "dim" ? 2 : 99, "correction");
    const double less = correction.is_number() ? correction.real : 1;
    const int squares = sum(square(centred()));
    const std::vector<Value> args = {node_value(squares), number(1 / (count_ - less))};
    if (n_.op == "var") return becomes("mul", args);
    return becomes("sqrt", {node_value(one("mul", args))});
  }

  bool euclidean() {
    const Value& p = n_.arg(1, "ord");
    if (p.is_number() && p.real != 2) return refuse("only the norm of squares is supported");
    return becomes("sqrt", {node_value(sum(square(x_)))});
  }

  // rows * rsqrt(mean(rows^2) + eps), weighted and shifted.
  bool normalised(int rows, const Value& weight, const Value& shift, double eps) {
    const int mean = one("add", {node_value(mean_of(square(rows))), number(eps)});
    Value out = node_value(rows), by = node_value(one("rsqrt", {node_value(mean)}));
    if (weight.kind == Value::Kind::node) {
      out = node_value(each("mul", out, by));
      by = weight;
    }
    if (shift.kind == Value::Kind::node) {
      out = node_value(each("mul", out, by));
      o_.become("add", {out, shift});
    } else {
      o_.become("mul", {out, by});
    }
    return true;
  }
  bool rms_norm() {
    const Value& eps = n_.arg(3, "eps");
    // Unsaid, it is the epsilon of the type that PyTorch computes 16-bit rows in: fp32's.
    return normalised(x_, n_.arg(2, "weight"), {}, eps.is_number() ? eps.real : FLT_EPSILON);
  }
  bool layer_norm() {
    const Value& eps = n_.arg(4, "eps");
    return normalised(centred(), n_.arg(2, "weight"), n_.arg(3, "bias"),
                      eps.is_number() ? eps.real : 1e-5);
  }

  Opener& o_;
  const Node n_;
  Diagnostics& diagnostics_;
  int x_ = -1, dim_ = 0;
  double count_ = 1;
};

}  // namespace

bool open_norm(Opener& opener, Diagnostics& diagnostics) {
  static constexpr std::string_view names[] = {
      "mean", "var", "std", "norm", "linalg_vector_norm", "rms_norm", "layer_norm"};
  for (const std::string_view name : names)
    if (opener.original().op == name) return NormOpener(opener, diagnostics).open();
  return true;
}

}  // namespace kw::spec
