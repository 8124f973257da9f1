#include <fmt/format.h>

#include <numeric>
#include <sstream>
#include <stdexcept>

#include "in_clone.h"
#include "operator/recognise/recognise.h"
#include "support/targets.h"
#include "tl/program.h"
#include "transfer_form.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;
using spec::Type;

std::runtime_error wrong(const std::string& what) { return std::runtime_error(what); }

Type type_of(Dtype t) {
  return t == Dtype::boolean ? Type::boolean : is_float(t) ? Type::real : Type::integer;
}

ExprPtr name_of(const std::string& name, const spec::Form* form) {
  if (name == "s") return spec::leaf(Kind::score, Type::real, "s");
  if (name == "s2") return spec::score_leaf(1);
  if (name == "o") return spec::leaf(Kind::output, Type::real, "o");
  if (name.starts_with("sum")) return spec::leaf(Kind::total, Type::real, name.substr(3));
  if (name.size() == 1 && std::islower(static_cast<unsigned char>(name[0])))
    return spec::leaf(Kind::index, Type::integer, name);
  if (name == "true" || name == "false") return spec::boolean(name == "true");
  if (const spec::Argument* a = form ? form->argument(name) : nullptr)
    return spec::leaf(Kind::argument, type_of(a->dtype), name);
  return spec::leaf(Kind::size, Type::integer, name);
}

ExprPtr of(const tl::ExprPtr& e, const spec::Form* form) {
  const auto arg = [&](size_t n) { return of(e->args[n], form); };
  switch (e->kind) {
    case tl::ExprKind::integer:
      return spec::integer(std::stoll(e->text));
    case tl::ExprKind::real:
      return spec::real(std::stod(e->text));
    case tl::ExprKind::name:
      return name_of(e->text, form);
    case tl::ExprKind::index: {
      std::vector<ExprPtr> at;
      for (size_t n = 1; n < e->args.size(); ++n) at.push_back(arg(n));
      const spec::Argument* a = form ? form->argument(e->args[0]->text) : nullptr;
      return spec::read(e->args[0]->text, a ? type_of(a->dtype) : Type::integer, at);
    }
    case tl::ExprKind::call:
      if (e->text == "f32") return spec::unary("float", arg(0));
      if (e->args.size() == 1) return spec::unary(e->text, arg(0));
      return spec::binary(e->text, arg(0), arg(1));
    case tl::ExprKind::binary:
      return spec::binary(e->text, arg(0), arg(1));
    case tl::ExprKind::unary:
      return spec::unary(e->text, arg(0));
    case tl::ExprKind::where:
      return spec::where(arg(0), arg(1), arg(2));
    default:
      throw wrong("no such expression in a form: " + tl::print(e));
  }
}

spec::Size size_of(const std::string& text) {
  if (std::isdigit(static_cast<unsigned char>(text[0]))) return {"", std::stoll(text)};
  return {text, 0};
}

// "i32[B, 4]" or "f32"
void read_argument(spec::Form& form, const std::string& name, std::string type) {
  spec::Argument a;
  a.name = name;
  const size_t bracket = type.find('[');
  if (bracket != std::string::npos) {
    a.is_tensor = true;
    std::string dims = type.substr(bracket + 1, type.size() - bracket - 2);
    for (char& c : dims) c = c == ',' ? ' ' : c;
    std::istringstream in(dims);
    for (std::string d; in >> d;) {
      a.dims.push_back(d == "H" ? form.H : size_of(d));
      a.stride_order.push_back(static_cast<int>(a.stride_order.size()));
    }
    type.resize(bracket);
  }
  const auto dtype = dtype_named(type);
  if (!dtype) throw wrong("no such type: " + type);
  a.dtype = *dtype;
  form.arguments.push_back(std::move(a));
}

std::vector<ExprPtr> indices_of(const std::string& text, const spec::Form& form) {
  std::istringstream in(text);
  std::vector<ExprPtr> out;
  for (std::string word; in >> word;) out.push_back(expr_of(word, &form));
  return out;
}

// Of "q_row" and "q_sum", what the rows of q become.
spec::RowMap& row_of(spec::Term& term, const std::string& key) {
  spec::Operand& operand = key[0] == 'q' ? term.q : key[0] == 'k' ? term.k : term.v;
  if (!operand.row) operand.row.emplace();
  return *operand.row;
}

// "x" or "x + residual": the rows of an RMS normalisation, in the place of attention.
void become_norm(spec::Form& form, const std::string& rows) {
  const bool sum = rows == "x + residual";
  if (!sum && rows != "x") throw wrong("no such rows: " + rows);
  form.terms.clear();
  form.arguments.clear();
  form.H = form.N = {"", 1};
  for (const char* name : {"x", "residual", "weight"})
    if (sum || std::string(name) != "residual") form.arguments.push_back({name, Dtype::bf16, true});
  const std::vector<ExprPtr> at = indices_of("b i d", form);
  spec::Norm norm;
  norm.x = {"x", at};
  if (sum) norm.residual = {"residual", at};
  norm.weight = {"weight", indices_of("d", form)};
  norm.eps = spec::real(1e-6);
  form.norm = std::move(norm);
  form.output_dims = {"b", "i", "d"};
  form.outputs = {{"y", "bhid"}};
  if (sum) form.outputs.push_back({"h", "bhid"});
}

// What only norms have: columns, eps, types, and whether the sum is returned.
bool read_norm_line(spec::Form& form, const std::string& key, const std::string& rest) {
  if (key == "eps") {
    form.norm->eps = expr_of(rest, &form);
  } else if (key == "columns") {
    form.D = form.Dv = size_of(rest);
  } else if (key == "returns") {
    form.outputs.resize(rest == "y" ? 1 : 2);
  } else if (key == "dtype" || key == "weight_dtype") {
    const Dtype dtype = dtype_named(rest).value();
    if (key == "dtype") form.dtype = dtype;
    for (spec::Argument& a : form.arguments)
      if (key == "dtype" || a.name == "weight") a.dtype = dtype;
  } else {
    return false;
  }
  return true;
}

// "product": of a[b, h, i, d] and b[b, h, d, j], of any K.
void become_product(spec::Form& form) {
  form.terms.clear();
  form.outputs = {{"o", "bhij"}};
  form.output_dims = {"b", "h", "i", "j"};
  form.H = form.G = {"", 4};
  form.D = {"K", 0};
  form.Dv = form.N;
  form.arguments.clear();
  for (const char* name : {"a", "b"}) form.arguments.push_back({name, Dtype::bf16, true});
  form.product.emplace();
  form.product->a = {"a", indices_of("b h i d", form), {}};
  form.product->b = {"b", indices_of("b h d j", form), {}};
  form.product->value = spec::leaf(Kind::score, Type::real, "s");
}

// What only products have: their sides' indices, of which the last is contiguous, and outputs.
bool read_product_line(spec::Form& form, const std::string& key, const std::string& rest) {
  spec::Operand* side = key == "a_dims"   ? &form.product->a
                        : key == "b_dims" ? &form.product->b
                                          : nullptr;
  const spec::Output sums{"sums", "bhi", spec::Rule::row_sum};
  if (side) {
    side->indices = indices_of(rest, form);
    std::vector<int>& order = form.argument(side->argument) == &form.arguments[0]
                                  ? form.arguments[0].stride_order
                                  : form.arguments[1].stride_order;
    order.resize(side->indices.size());
    std::iota(order.begin(), order.end(), 0);
  } else if (key == "b_contiguous") {
    form.arguments[1].stride_order.resize(form.product->b.indices.size());
    form.arguments[1].stride_order.back() = std::stoi(rest);
  } else if (key == "value") {
    form.product->value = expr_of(rest, &form);
  } else if (key == "also_sums") {
    form.outputs.push_back(sums);
  } else if (key == "only_sums") {
    form.outputs = {sums};
  } else if (key == "batches") {
    form.B = size_of(rest.substr(0, rest.find(' ')));
    form.H = form.G = size_of(rest.substr(rest.find(' ') + 1));
  } else {
    return false;
  }
  return true;
}

// The last line: those of what the lines before it say.
void become_gradients(spec::Form& form) {
  const auto dims = [&](const std::string& name, std::vector<spec::Size> sizes) {
    for (spec::Argument& a : form.arguments)
      if (a.name == name) a.dims = std::move(sizes);
  };
  dims("q", {form.B, form.H, form.M, form.D});
  dims("k", {form.B, form.G, form.N, form.D});
  dims("v", {form.B, form.G, form.N, form.Dv});
  Diagnostics d;
  const auto of = spec::gradients_of(form, d);
  if (!of) throw wrong(render(d));
  form = *of;
}

// As many key heads as query heads: nothing is shared.
void leave_alone(spec::Form& form) {
  form.G = form.H;
  for (spec::Term& term : form.terms)
    for (spec::Operand* o : {&term.k, &term.v}) o->indices[1] = expr_of("h");
}

// "pages table 16": keys and values of k[table[b, j // 16], h // 4, j % 16, d].
void lie_in_pages(spec::Form& form, const std::string& rest) {
  const size_t space = rest.find(' ');
  const std::string table = rest.substr(0, space), rows = rest.substr(space + 1);
  form.N = {"T", 0, std::stoll(rows)};
  read_argument(form, table, "i32[B, T]");
  for (spec::Operand* o : {&form.terms.front().k, &form.terms.front().v}) {
    o->indices[0] = spec::read(table, Type::integer, {expr_of("b"), expr_of("j // " + rows)});
    o->indices[2] = expr_of("j % " + rows);
  }
}

void read_line(spec::Form& form, const std::string& key, const std::string& rest) {
  if (key == "pages") return lie_in_pages(form, rest);
  if (key == "norm") return become_norm(form, rest);
  if (key == "gradients") return become_gradients(form);
  if (key == "alone") return leave_alone(form);
  if (key == "saves") return void(form.saves = true);
  if (key == "deterministic") return;  // of the transfer
  if (form.norm && read_norm_line(form, key, rest)) return;
  if (key == "product") return become_product(form);
  if (form.product && read_product_line(form, key, rest)) return;
  if (key == "argument") {
    const size_t space = rest.find(' ');
    return read_argument(form, rest.substr(0, space), rest.substr(space + 1));
  }
  if (key == "dtype") {
    form.dtype = dtype_named(rest).value();
    return;
  }
  if (key == "output") {
    std::istringstream in(rest);
    form.output_dims.clear();
    for (std::string d; in >> d;) form.output_dims.push_back(d);
    return;
  }
  if (key == "log_sums") {
    form.outputs.push_back({"lse", "bhi", spec::Rule::log_sum});
    return;
  }
  if (key == "queries" || key == "keys") {
    (key == "queries" ? form.M : form.N) = size_of(rest);
    return;
  }
  if (form.terms.empty()) throw wrong("a product has no " + key);
  spec::Term& term = form.terms.front();
  if (key == "score") {
    term.score = expr_of(rest, &form);
  } else if (key == "keep") {
    term.keep = expr_of(rest, &form);
  } else if (key == "epilogue") {
    form.epilogue = expr_of(rest, &form);
  } else if (key == "q_row" || key == "k_row" || key == "v_row") {
    row_of(term, key).element = expr_of(rest, &form);
  } else if (key == "q_sum" || key == "k_sum" || key == "v_sum") {
    row_of(term, key).sums.push_back(expr_of(rest, &form));
  } else if (key == "dims") {
    term.q.indices = indices_of(rest, form);
  } else if (key == "head_dim") {
    std::istringstream in(rest);
    std::string of_keys, of_values;
    in >> of_keys;
    if (!(in >> of_values)) of_values = of_keys;
    form.D = size_of(of_keys), form.Dv = size_of(of_values);
  } else if (key == "fp8") {
    std::istringstream in(rest);
    for (std::string name; in >> name;)
      for (spec::Argument& a : form.arguments)
        if (a.name == name) a.dtype = Dtype::e4m3;
  } else if (key == "terms") {
    form.terms.resize(std::stoul(rest), term);
  } else if (key == "products") {
    for (size_t n = 1; n < std::stoul(rest); ++n) term.more.push_back({term.q, term.k, 64});
  } else if (key == "normaliser") {
    if (rest != "sum" && rest != "none") throw wrong("no such normaliser: " + rest);
    term.normaliser = rest == "sum" ? spec::Normaliser::sum : spec::Normaliser::none;
  } else if (key == "sink") {
    term.sink = expr_of(rest, &form);
  } else if (key == "finite_mask") {
    term.finite_mask = true;
  } else {
    throw wrong("a form has no " + key);
  }
}

}  // namespace

ExprPtr expr_of(const std::string& text, const spec::Form* form) {
  Diagnostics d;
  const tl::ExprPtr e = tl::parse_expr(text, d);
  if (!e) throw wrong(render(d));
  return of(e, form);
}

spec::Form form_of(const std::string& text) {
  spec::Form form;
  form.name = "test";
  form.B = {"B", 0};
  form.H = {"", 32};
  form.G = {"", 8};
  form.M = {"M", 0};
  form.N = {"N", 0};
  form.D = form.Dv = {"", 128};
  form.output_dims = {"b", "h", "i", "d"};
  for (const char* name : {"q", "k", "v"}) form.arguments.push_back({name, Dtype::bf16, true});
  spec::Term term;
  term.q = {"q", indices_of("b h i d", form)};
  term.k = {"k", {expr_of("b"), expr_of("h // 4"), expr_of("j"), expr_of("d")}};
  term.v = {"v", term.k.indices};
  form.terms.push_back(term);
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t space = line.find(' ');
    read_line(form, line.substr(0, space),
              space == std::string::npos ? "" : line.substr(space + 1));
  }
  return form;
}

Target target_of(const std::string& name, int tried, const std::string& tiles) {
  const TargetLimits* target = find_target(name);
  if (!target) throw wrong("no target " + name);
  if (target->folder.empty()) return {name, {}, tried};
  Diagnostics d;
  const SourcePtr text =
      read_source(in_clone(fmt::format("/kernels/{}/{}", target->folder, tiles)));
  if (!text) return {name, {}, tried};
  const auto shipped = read_tiles(text, d);
  if (!shipped) throw wrong(render(d));
  return {name, shipped->rows, tried};
}

Target sm_90a(int tried) { return target_of("sm_90a", tried); }

tl::Program kernel_of(const std::string& target, const std::string& family) {
  Diagnostics d;
  const std::string_view folder = find_target(target)->folder;
  const std::string file = !folder.empty()    ? fmt::format("corpus/{}_{}.tl", folder, family)
                           : family == "gemm" ? "corpus/sm75_gemm.tl"
                                              : "sm75/attention_d128.tl";
  const auto program = tl::parse(read_source(in_clone("/tests/") + file), d);
  if (!program) throw wrong(render(d));
  return *program;
}

Start start_of(const spec::Form& form, const std::string& target, const std::string& name) {
  const bool hopper = find_target(target)->hopper;
  const std::string own = !name.empty()     ? name
                          : form.norm       ? form.norm->residual ? "add_rms_norm" : "rms_norm"
                          : form.product    ? "gemm"
                          : !form.gradients ? "attention_fwd"
                          : !hopper         ? "attention_bwd"
                          : form.D.constant != form.Dv.constant || form.D.constant == 96
                              ? "attention_bwd_mla"
                          : form.D.constant > 128 ? "attention_bwd_wide"
                                                  : "attention_bwd";
  const std::string text = form.norm ? "sm_80" : target;  // one text for all targets
  Start start{kernel_of(text, own),
              target_of(text, 0, own == "attention_fwd" ? "tiles.json" : own + ".tiles.json")};
  start.target.name = target;
  return start;
}

}  // namespace kw::transfer
