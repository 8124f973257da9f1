#include "tl/maps.h"

#include <algorithm>
#include <set>

#include "tl/precedence.h"

namespace kw::tl {
namespace {

std::string coordinate_type(Op op) {
  return op == Op::map_at ? "int" : op == Op::map_real ? "kw::coordinate" : "";
}

std::string target_of(const Stmt& stmt) {
  const ExprPtr& t = stmt.expr("t");
  return t->kind == ExprKind::name ? t->text : "";
}

bool read_real_parameter(Reader& r, std::string& name) {
  r.expect("kw");
  r.expect("::");
  r.expect("real");
  name = r.identifier();
  for (const Reader::Parameter& p : r.parameters)
    if (p.name == name) return r.fail("two parameters are called '" + name + "'");
  return !r.failed();
}

// `, int i, int j`, or kw::coordinate
bool read_coordinates(Reader& r, const std::string& type) {
  for (const char* n : {"i", "j"}) {
    r.expect(",");
    if (type == "kw::coordinate") {
      r.expect("kw");
      r.expect("::");
      r.expect("coordinate");
    } else {
      r.expect(type);
    }
    if (!r.expect(n)) return false;
    r.parameters.push_back({n, name(n)});
  }
  return true;
}

// A row vector's value under a name that no program has, until the vector itself is read.
std::string placeholder(size_t k) { return "$" + std::to_string(k); }

bool read_parameters(Reader& r, const Stmt& stmt, Lambda& lambda) {
  const std::string target = target_of(stmt);
  for (const char* t : {"[", "&", "]", "("}) r.expect(t);
  if (!read_real_parameter(r, lambda.element)) return false;
  const ExprPtr i = name("i"), j = name("j");
  r.parameters.push_back({lambda.element, stmt.op == Op::map_rows ? index(name(target), {i})
                                                                  : index(name(target), {i, j})});
  const std::string type = coordinate_type(stmt.op);
  if (!type.empty() && !read_coordinates(r, type)) return false;
  while (r.take(",")) {
    const std::string vector = placeholder(lambda.vectors.size());
    std::string parameter;
    if (!read_real_parameter(r, parameter)) return false;
    lambda.vectors.push_back({vector, parameter});
    r.parameters.push_back({parameter, index(name(vector), {i})});
    Symbol s;
    s.name = vector;
    s.category = Category::row;
    r.names.add(std::move(s));
  }
  return r.expect(")");
}

bool read_lambda(Reader& r, const Stmt& stmt, Field& field) {
  Lambda lambda;
  const size_t first = r.at;
  if (!read_parameters(r, stmt, lambda)) return false;
  r.expect("{");
  r.expect("return");
  ExprPtr body = r.expr(kAny);
  r.expect(";");
  r.expect("}");
  r.parameters.clear();
  for (auto& [vector, parameter] : lambda.vectors) {
    r.expect(",");
    const ExprPtr given = r.operand(false);
    if (r.failed()) return false;
    const std::string local = vector;  // clang before 16 captures no structured binding
    body = rewrite(
        body, [&](const ExprPtr& e) { return e->is_name(local) ? name(given->text) : nullptr; });
    vector = given->text;
  }
  if (r.failed()) return false;
  r.lambda = std::move(lambda);
  field.items.push_back({"", "", body, r.span(first)});
  return true;
}

// Bare names that a body has in CUDA: a parameter of the same name would hide them.
void outer_names(const ExprPtr& e, std::set<std::string>& out) {
  if (e->kind == ExprKind::name) out.insert(e->text);
  if (e->kind == ExprKind::call) out.insert(e->text);
  for (const ExprPtr& a : e->args) outer_names(a, out);
}

std::string fresh(std::string wanted, const std::set<std::string>& taken) {
  for (int k = 2; taken.count(wanted); ++k) wanted = wanted.substr(0, 1) + std::to_string(k);
  return wanted;
}

Lambda choose_names(const std::string& target, const std::vector<std::string>& vectors,
                    const ExprPtr& body, const Lambda* wanted) {
  std::set<std::string> taken = {"i", "j", "args", "shared", "kw", "float"};
  outer_names(body, taken);
  // The map's own target and vectors appear as parameters only.
  taken.erase(target);
  for (const std::string& v : vectors) taken.erase(v);
  Lambda lambda;
  lambda.element = fresh(wanted ? wanted->element : "x", taken);
  taken.insert(lambda.element);
  for (const std::string& v : vectors) {
    std::string name = v.substr(0, 1);
    if (wanted)
      for (const auto& [vector, parameter] : wanted->vectors)
        if (vector == v) name = parameter;
    name = fresh(name, taken);
    taken.insert(name);
    lambda.vectors.push_back({v, name});
  }
  return lambda;
}

}  // namespace

bool read_map(Reader& r, const Stmt& stmt, Field& field) {
  if (r.cuda()) return read_lambda(r, stmt, field);
  const size_t first = r.at;
  ExprPtr body = r.expr(kAny);
  if (body) field.items.push_back({"", "", body, r.span(first)});
  return !r.failed();
}

std::string write_map(CudaWriter& w, const Stmt& stmt, const Field& field, const Lambda* lambda) {
  const ExprPtr& body = field.items.at(0).expr;
  const std::string type = coordinate_type(stmt.op);
  const std::string target = target_of(stmt);
  const std::vector<std::string> vectors = vectors_of(body, target, w.names);
  MapBody map{target, stmt.op == Op::map_rows, !type.empty(),
              choose_names(target, vectors, body, lambda)};
  std::string text = "[&](kw::real " + map.lambda.element;
  if (!type.empty()) text += ", " + type + " i, " + type + " j";
  for (const auto& [vector, parameter] : map.lambda.vectors) text += ", kw::real " + parameter;
  w.map = &map;
  text += ") { return " + w.expr(body) + "; }";
  w.map = nullptr;
  for (const auto& [vector, parameter] : map.lambda.vectors) text += ", " + vector;
  return text;
}

}  // namespace kw::tl
