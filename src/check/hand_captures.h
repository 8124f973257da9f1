// Captured specs written by hand: the forms of the right programs of tests/wrong, with cases of
// their own and the user's error taken as zero, so that what is accepted is two halves of an ulp.
// For the tests and the self-test, which need no Python.
#pragma once
#include <algorithm>
#include <string>

#include "operator/capture/capture.h"
#include "operator/recognise/recognise.h"

namespace kw::check::hand {

inline spec::ExprPtr at(const char* index) {
  return spec::leaf(spec::Kind::index, spec::Type::integer, index);
}

inline spec::Argument tensor(const std::string& name, Dtype dtype, std::vector<spec::Size> dims) {
  spec::Argument a;
  a.name = name;
  a.dtype = dtype;
  a.is_tensor = true;
  a.dims = std::move(dims);
  return a;
}

// Four query heads, two key heads, D 128; any B, M, N.
inline spec::Form plain_form() {
  using namespace spec;
  Form f;
  f.name = "full";
  f.B = {"B", 0}, f.M = {"M", 0}, f.N = {"N", 0};
  f.H = {"", 4}, f.G = {"", 2}, f.D = f.Dv = {"", 128};
  f.arguments = {tensor("q", Dtype::bf16, {f.B, f.H, f.M, f.D}),
                 tensor("k", Dtype::bf16, {f.B, f.G, f.N, f.D}),
                 tensor("v", Dtype::bf16, {f.B, f.G, f.N, f.D})};
  const ExprPtr group = binary("//", at("h"), integer(2));
  Term t;
  t.q = {"q", {at("b"), at("h"), at("i"), at("d")}};
  t.k = {"k", {at("b"), group, at("j"), at("d")}};
  t.v = {"v", {at("b"), group, at("j"), at("d")}};
  t.score = binary("*", leaf(Kind::score, Type::real, "s"), real(0.08838834764831845));
  f.terms = {t};
  f.output_dims = {"b", "h", "i", "d"};
  return f;
}

// What is read for each query, each key and each pair.
inline void add_reads(spec::Form& f) {
  using namespace spec;
  Term& t = f.terms[0];
  const bool columns = f.name == "columns";
  if (f.name == "documents" || columns) {
    f.arguments.push_back(tensor("own", Dtype::i32, {f.B, f.M}));
    f.arguments.push_back(tensor("document", Dtype::i64, {f.B, f.N}));
    t.keep = binary("and", binary("<=", at("j"), at("i")),
                    binary("==", read("own", Type::integer, {at("b"), at("i")}),
                           read("document", Type::integer, {at("b"), at("j")})));
  }
  if (columns) {
    f.arguments.push_back(tensor("gate", Dtype::f32, {f.B, f.N}));
    t.score = binary("+", t.score, read("gate", Type::real, {at("b"), at("j")}));
  }
  if (f.name == "lists") {
    const auto block = [](const char* index) { return binary("//", at(index), integer(64)); };
    f.arguments.push_back(tensor("own", Dtype::i32, {f.B, {"", 16}}));
    f.arguments.push_back(tensor("kind", Dtype::i64, {f.B, {"", 16}}));
    t.keep = binary("and", binary("<=", at("j"), at("i")),
                    binary("==", read("own", Type::integer, {at("b"), block("i")}),
                           read("kind", Type::integer, {at("b"), block("j")})));
  }
  if (f.name == "table") {
    f.arguments.push_back(tensor("table", Dtype::f32, {f.H, {"", 133}}));
    f.arguments.push_back(tensor("slopes", Dtype::f32, {f.H}));
    const ExprPtr distance = binary("-", at("j"), at("i"));
    const ExprPtr entry =
        binary("+", binary("min", binary("max", distance, integer(-66)), integer(66)), integer(66));
    t.score = binary("+", t.score, read("table", Type::real, {at("h"), entry}));
    t.score = binary("+", t.score,
                     binary("*", read("slopes", Type::real, {at("h")}), unary("float", distance)));
  }
  if (f.name == "pair_bias" || f.name == "pairs") {
    f.arguments.push_back(tensor("bias", Dtype::bf16, {f.B, f.H, f.M, f.N}));
    f.arguments.push_back(tensor("table", Dtype::f32, {f.H, {"", 41}}));
    f.arguments.push_back(tensor("valid", Dtype::boolean, {f.B, f.N}));
    const ExprPtr distance = binary("-", at("j"), at("i"));
    const ExprPtr entry =
        binary("+", binary("min", binary("max", distance, integer(-20)), integer(20)), integer(20));
    t.score = binary("+", t.score, read("bias", Type::real, {at("b"), at("h"), at("i"), at("j")}));
    t.score = binary("+", t.score, read("table", Type::real, {at("h"), entry}));
    t.keep = read("valid", Type::boolean, {at("b"), at("j")});
  }
}

// Rows of q: divided by 1 + their mean square, and weighted; of k: the halves change places, one
// with its sign.
inline void add_rows(spec::Form& f) {
  using namespace spec;
  Term& t = f.terms[0];
  f.arguments.push_back(tensor("weight", Dtype::f32, {f.D}));
  t.keep = binary("<=", at("j"), at("i"));
  const ExprPtr q = read("q", Type::real, {at("b"), at("h"), at("i"), at("d")});
  const ExprPtr mean = binary("*", leaf(Kind::total, Type::real, "0"), real(1.0 / 128));
  const ExprPtr norm = unary("reciprocal", binary("+", mean, real(1)));
  t.q.row = RowMap{{binary("*", q, q)},
                   binary("*", binary("*", q, norm), read("weight", Type::real, {at("d")}))};
  const auto k = [](const ExprPtr& column) {
    return read("k", Type::real, {at("b"), at("h"), at("j"), column});
  };
  const ExprPtr half = integer(64);
  t.k.row = RowMap{{},
                   where(binary("<", at("d"), half), unary("-", k(binary("+", at("d"), half))),
                         k(binary("-", at("d"), half)))};
}

inline spec::Form form_of(const std::string& name) {
  using namespace spec;
  Form f = plain_form();
  // causal_bn80, prefix_lm_decode: other tiles, another text, the same form.
  f.name = name.substr(0, std::min(name.find("_bn"), name.find("_decode")));
  const ExprPtr causal = binary("<=", at("j"), at("i"));
  Term& t = f.terms[0];
  if (f.name == "causal") t.keep = causal;
  if (f.name == "f16") {
    f.dtype = Dtype::f16;
    for (Argument& a : f.arguments) a.dtype = f.dtype;
  }
  if (f.name == "narrow_output") f.Dv = f.arguments[2].dims[3] = {"", 64};
  if (f.name == "prefix_lm") {
    f.arguments.push_back(tensor("prefix", Dtype::i32, {f.B}));
    t.keep = binary("or", causal, binary("<", at("j"), read("prefix", Type::integer, {at("b")})));
  }
  if (f.name == "alibi") {
    f.arguments.push_back(tensor("slopes", Dtype::f32, {f.H}));
    t.keep = causal;
    t.score = binary("+", t.score,
                     binary("*", read("slopes", Type::real, {at("h")}),
                            unary("float", binary("-", at("j"), at("i")))));
  }
  if (f.name == "rows") add_rows(f);
  f.saves = f.name == "saves";
  add_reads(f);
  if (!f.name.ends_with("_bwd")) return f;
  if (!f.name.starts_with("full_")) t.keep = causal;
  if (f.name == "full_mla_bwd") {
    f.D = f.arguments[0].dims[3] = f.arguments[1].dims[3] = {"", 192};
    t.score = binary("*", leaf(Kind::score, Type::real, "s"), real(0.07216878364870322));
  }
  if (f.name == "full_wide_bwd" || f.name == "full_wide_turns_bwd") {
    f.D = f.Dv = {"", 256};
    for (size_t n = 0; n < 3; ++n) f.arguments[n].dims[3] = f.D;
    t.score = binary("*", leaf(Kind::score, Type::real, "s"), real(0.0625));
  }
  if (f.name == "softcap_bwd") {
    f.arguments.push_back(tensor("slopes", Dtype::f32, {f.H}));
    const ExprPtr cap = unary("tanh", binary("*", t.score, real(1.0 / 50)));
    t.score = binary("+", binary("*", real(50), cap),
                     binary("*", read("slopes", Type::real, {at("h")}),
                            unary("float", binary("-", at("j"), at("i")))));
  }
  if (f.name == "weights_bwd") {
    t.normaliser = spec::Normaliser::none;
    t.score = unary("sigmoid", binary("-", t.score, real(2)));
  }
  if (f.name == "divided_bwd") {
    t.normaliser = spec::Normaliser::sum;
    t.score = binary("*", t.score, t.score);
    t.keep = binary("<", at("j"), at("i"));  // the first row has no key
  }
  if (f.name == "log_sums_bwd") f.outputs.push_back({"lse", "bhi", spec::Rule::log_sum});
  if (f.name == "epilogue_bwd") {
    f.arguments.push_back(tensor("gates", Dtype::f32, {f.H}));
    f.epilogue = binary("*", leaf(spec::Kind::output, Type::real, "o"),
                        unary("sigmoid", read("gates", Type::real, {at("h")})));
  }
  if (f.name == "table_bwd") {
    f.arguments.push_back(tensor("table", Dtype::f32, {f.H, {"", 33}}));
    const ExprPtr distance =
        binary("min", binary("max", binary("-", at("j"), at("i")), integer(-16)), integer(16));
    t.score = binary("+", t.score,
                     read("table", Type::real, {at("h"), binary("+", distance, integer(16))}));
  }
  if (f.name == "pairs_bwd") {
    f.arguments.push_back(tensor("bias", Dtype::bf16, {f.H, f.M, f.N}));
    t.score = binary("+", t.score, read("bias", Type::real, {at("h"), at("i"), at("j")}));
  }
  if (f.name == "learned_bwd") {
    f.arguments.push_back(tensor("slopes", Dtype::f32, {f.H}));
    f.arguments.push_back(tensor("bias", Dtype::bf16, {f.B, f.N}));
    f.arguments.push_back(tensor("sinks", Dtype::f32, {f.H}));
    const ExprPtr penalty = binary("*", read("slopes", Type::real, {at("h")}),
                                   unary("float", binary("-", at("j"), at("i"))));
    t.score =
        binary("+", binary("+", t.score, penalty), read("bias", Type::real, {at("b"), at("j")}));
    t.sink = read("sinks", Type::real, {at("h")});
  }
  Diagnostics none;
  return *spec::gradients_of(f, none);
}

inline spec::Capture capture_of(const spec::Form& form) {
  spec::Capture c;
  c.form = form;
  int64_t shapes[][3] = {{1, 64, 64},  {2, 63, 65},   {1, 129, 127}, {2, 200, 77},
                         {1, 40, 520}, {1, 257, 130}, {2, 130, 257}, {1, 1, 1}};
  // Lists of several key blocks, some of which nobody needs.
  if (form.name == "lists") shapes[0][0] = 2, shapes[0][1] = 300, shapes[0][2] = 300;
  for (const auto& [b, m, n] : shapes) {
    spec::GoldenCase g;
    for (const auto& [size, value] : {std::pair{&form.B, b}, {&form.M, m}, {&form.N, n}})
      spec::give(*size, value, g.sizes);
    if (!form.D.name.empty()) g.sizes[form.D.name] = 100 + m;  // of a product
    g.draws.seed = 11 + c.cases.size();
    for (size_t a = 0; a < form.arguments.size(); ++a) {
      Draw d{Draw::Kind::normal, a};
      if (form.arguments[a].name == "prefix")
        d = c.cases.size() % 2 ? Draw{Draw::Kind::integer, a, 1, 0, 20}
                               : Draw{Draw::Kind::integer, a, 1, n / 2, n};
      if (form.arguments[a].dtype == Dtype::boolean) d = {Draw::Kind::integer, a, 1, 0, 1};
      if (form.arguments[a].name == "own" || form.arguments[a].name == "document")
        d = {Draw::Kind::integer, a, 1, 0, 2};
      if (form.name == "lists" && !is_float(form.arguments[a].dtype))
        d = {Draw::Kind::integer, a, 1, 0, 1};
      if (form.N.times > 1 && form.arguments[a].name == "table")  // of pages
        d = {Draw::Kind::integer, a, 1, 0, 9};
      if (form.arguments[a].name == "slopes") d = {Draw::Kind::uniform, a, 0.5};
      g.draws.arguments[form.arguments[a].name] = d;
    }
    g.heads = {0, 3};
    g.own_error = Tensor(Dtype::f64, {b, form.H.constant, spec::value_of(form.M, g.sizes)});
    if (!form.outputs[0].of.empty()) {
      // What PyTorch's own gradients in bf16 are off by, at the median.
      Tensor of_keys(Dtype::f64, {b, form.G.constant, spec::value_of(form.N, g.sizes)});
      for (Tensor* t : {&g.own_error, &of_keys}) t->values.assign(t->values.size(), 0.005);
      g.others.assign(form.outputs.size() - 1, {std::nullopt, std::nullopt, {}});
      g.others[0].own_error = g.others[1].own_error = of_keys;
    }
    c.cases.push_back(std::move(g));
  }
  return c;
}

}  // namespace kw::check::hand
