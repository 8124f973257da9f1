#include "graph_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace kw::fuzz {
namespace {

using Json = nlohmann::json;
using spec::ExprPtr;
using spec::Node;
using spec::Value;

// ---- Python

std::string real_text(double x) {
  if (std::isinf(x)) return x < 0 ? "float('-inf')" : "float('inf')";
  const std::string text = fmt::format("{}", x);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string type_text(Dtype t) {
  switch (t) {
    case Dtype::bf16:
      return "torch.bfloat16";
    case Dtype::f16:
      return "torch.float16";
    case Dtype::f32:
      return "torch.float32";
    case Dtype::i32:
      return "torch.int32";
    case Dtype::boolean:
      return "torch.bool";
    default:
      return "torch.int64";
  }
}

std::string text_of(const spec::Graph& g, const Value& v) {
  switch (v.kind) {
    case Value::Kind::none:
      return "None";
    case Value::Kind::boolean:
      return v.integer ? "True" : "False";
    case Value::Kind::integer:
      return std::to_string(v.integer);
    case Value::Kind::real:
      return real_text(v.real);
    case Value::Kind::text:
      return fmt::format("\"{}\"", v.text);
    case Value::Kind::node:
      return g.nodes[v.node].name;
    case Value::Kind::size:
      return spec::print(v.size);
    case Value::Kind::dtype:
      return type_text(v.dtype);
    case Value::Kind::list: {
      std::vector<std::string> items;
      for (const Value& x : v.list) items.push_back(text_of(g, x));
      return fmt::format("{}", fmt::join(items, ", "));
    }
  }
  return "";
}

bool is_method(const std::string& op) {
  for (const char* name : {"view", "reshape", "expand", "to", "repeat_interleave", "unsqueeze"})
    if (op == name) return true;
  return false;
}

std::string call_text(const spec::Graph& g, const Node& n) {
  std::vector<std::string> args;
  for (const Value& v : n.args) args.push_back(text_of(g, v));
  if (n.op == "index") return fmt::format("{}[{}]", args[0], args[1]);
  if (n.op == "einsum") return fmt::format("torch.einsum({}, {})", args[0], args[1]);
  std::string keywords;
  for (const auto& [name, v] : n.kwargs) keywords += fmt::format(", {}={}", name, text_of(g, v));
  if (n.op == "scaled_dot_product_attention")
    return fmt::format("F.{}({}{})", n.op, fmt::join(args, ", "), keywords);
  if (is_method(n.op)) {
    const std::string self = args[0];
    args.erase(args.begin());
    return fmt::format("{}.{}({}{})", self, n.op, fmt::join(args, ", "), keywords);
  }
  if (n.args.size() == 1 && n.args[0].kind == Value::Kind::list)
    args[0] = fmt::format("[{}]", args[0]);
  return fmt::format("torch.{}({}{})", n.op, fmt::join(args, ", "), keywords);
}

// ---- JSON

constexpr int kFirstLine = 7;  // of the function's operators in python_of()

Json json_of(const ExprPtr& e) {
  if (e->kind == spec::Kind::number) return e->integer;
  if (e->kind == spec::Kind::size) return e->name;
  Json out = {e->name};
  for (const ExprPtr& a : e->args) out.push_back(json_of(a));
  return out;
}

Json json_of(const spec::Graph& g, const Value& v) {
  switch (v.kind) {
    case Value::Kind::none:
      return nullptr;
    case Value::Kind::boolean:
      return v.integer != 0;
    case Value::Kind::integer:
      return v.integer;
    case Value::Kind::real:
      if (std::isinf(v.real)) return {{"number", v.real < 0 ? "-inf" : "inf"}};
      return v.real;
    case Value::Kind::text:
      return v.text;
    case Value::Kind::node:
      return {{"node", g.nodes[v.node].name}};
    case Value::Kind::size:
      return {{"size", json_of(v.size)}};
    case Value::Kind::dtype:
      return {{"dtype", name(v.dtype)}};
    case Value::Kind::list: {
      Json out = Json::array();
      for (const Value& x : v.list) out.push_back(json_of(g, x));
      return out;
    }
  }
  return nullptr;
}

Json shape_of(const Node& n) {
  Json out = Json::array();
  for (const ExprPtr& d : n.shape) out.push_back(json_of(d));
  return out;
}

}  // namespace

std::string python_of(const spec::Graph& g, const std::string& sizes, const std::string& example) {
  std::vector<std::string> arguments, outputs;
  for (const spec::Argument& a : g.arguments) arguments.push_back(a.name);
  for (const int n : g.outputs) outputs.push_back(g.nodes[n].name);
  std::string text =
      fmt::format("import torch\nimport torch.nn.functional as F\n\n\ndef {}({}):\n    {}\n",
                  g.name, fmt::join(arguments, ", "), sizes);
  for (const Node& n : g.nodes)
    if (n.op != "argument") text += fmt::format("    {} = {}\n", n.name, call_text(g, n));
  return text + fmt::format("    return {}\n\n\ndef example_inputs():\n{}",
                            fmt::join(outputs, ", "), example);
}

std::string json_of(const spec::Graph& g) {
  Json out = {{"name", g.name},           {"file", g.name + ".py"},     {"line", 5},
              {"dtype", name(g.dtype)},   {"arguments", Json::array()}, {"nodes", Json::array()},
              {"outputs", Json::array()}, {"notes", Json::array()}};
  for (size_t a = 0; a < g.arguments.size(); ++a) {
    const spec::Argument& given = g.arguments[a];
    const Node& n = g.nodes[a];
    Json value = nullptr;
    if (!given.is_tensor) value = given.value;
    out["arguments"].push_back({{"name", given.name},
                                {"node", n.name},
                                {"dtype", name(given.dtype)},
                                {"tensor", given.is_tensor},
                                {"dims", shape_of(n)},
                                {"stride_order", given.stride_order},
                                {"value", value},
                                {"line", 5},
                                {"column", 1}});
  }
  int line = kFirstLine;
  for (const Node& n : g.nodes) {
    if (n.op == "argument") continue;
    Json args = Json::array(), kwargs = Json::object();
    for (const Value& v : n.args) args.push_back(json_of(g, v));
    for (const auto& [key, v] : n.kwargs) kwargs[key] = json_of(g, v);
    out["nodes"].push_back({{"name", n.name},
                            {"op", "aten." + n.op},
                            {"args", args},
                            {"kwargs", kwargs},
                            {"dtype", name(n.dtype)},
                            {"shape", shape_of(n)},
                            {"line", line++},
                            {"column", 1}});
  }
  for (const int n : g.outputs) out["outputs"].push_back(g.nodes[n].name);
  return out.dump();
}

}  // namespace kw::fuzz
