// The kinds fall into a few shapes: one word, one expression, a list of words, a list of names with
// values. What is left (params, access, dims, map) has a function of its own.
#include "tl/syntax/holes.h"

#include <array>

#include "tl/syntax/maps.h"
#include "tl/syntax/precedence.h"

namespace kw::tl {
namespace {

struct Spelled {
  std::string_view cuda, tl;
};
constexpr std::array<Spelled, 11> kTypes = {{{"kw::real", "real"},
                                             {"float", "f32"},
                                             {"int", "i32"},
                                             {"element", "element"},
                                             {"bool", "bool"},
                                             {"kw::i64", "i64"},
                                             {"kw::bf16", "bf16"},
                                             {"kw::f16", "f16"},
                                             {"kw::e4m3", "e4m3"},
                                             {"kw::index", "index"},
                                             {"kw::size", "size"}}};
constexpr size_t kElementTypes = 9;  // the first ones

std::string cuda_type(const std::string& tl) {
  for (const Spelled& t : kTypes)
    if (t.tl == tl) return std::string(t.cuda);
  return tl;
}

bool one_of(std::string_view kind, std::initializer_list<std::string_view> kinds) {
  for (std::string_view k : kinds)
    if (k == kind) return true;
  return false;
}

enum class Shape { word, list, expression, operand, exprs, valued, other };

Shape shape_of(std::string_view kind) {
  if (one_of(kind, {"word", "new", "record", "fn", "step"})) return Shape::word;
  if (one_of(kind, {"news", "dims"})) return Shape::list;
  if (one_of(kind, {"expr", "size", "sum", "atom"})) return Shape::expression;
  if (one_of(kind, {"tensor", "tiled", "filled", "workspace", "scratch", "queue", "accumulator",
                    "operand", "left", "row", "column", "diagonal", "lane_sum", "line", "vector",
                    "shared", "slot", "barrier"}))
    return Shape::operand;
  if (kind == "exprs") return Shape::exprs;
  if (one_of(kind, {"inits", "lets", "rows", "values"})) return Shape::valued;
  return Shape::other;
}

int level_of(std::string_view kind) {
  return kind == "size" || kind == "sum" ? kSum : kind == "atom" ? kPrimary : kAny;
}

// ---- reading

// A type's name, in TL's words.
std::string read_type(Reader& r, bool element_only) {
  const std::string prefix = r.cuda() && r.peek() == "kw" && r.peek(1) == "::" ? "kw::" : "";
  if (!prefix.empty()) r.at += 2;
  const std::string text = prefix + r.identifier();
  if (r.failed()) return {};
  for (size_t i = 0; i < (element_only ? kElementTypes : kTypes.size()); ++i)
    if ((r.cuda() ? kTypes[i].cuda : kTypes[i].tl) == text) return std::string(kTypes[i].tl);
  const bool record = prefix.empty() && !element_only && cuda_type(text) == text;
  if (!record) r.fail("'" + text + "' is not a type that may stand here");
  return text;
}

template <class One>
bool read_commas(Reader& r, Field& field, One one) {
  do {
    const size_t first = r.at;
    Item item;
    one(item);
    if (r.failed()) return false;
    item.span = r.span(first);
    field.items.push_back(std::move(item));
  } while (r.take(","));
  return true;
}

bool read_word(Reader& r, Field& field) {
  return read_commas(r, field, [&](Item& item) { item.name = r.identifier(); });
}

bool read_one(Reader& r, Field& field, const std::function<void(Item&)>& fill) {
  const size_t first = r.at;
  Item item;
  fill(item);
  if (r.failed()) return false;
  item.span = r.span(first);
  field.items.push_back(std::move(item));
  return true;
}

bool read_valued(Reader& r, const std::string& kind, const Stmt& stmt, Field& field) {
  std::string type;
  if (kind == "lets" && r.cuda()) type = read_type(r, false);
  const bool here = kind == "inits" || kind == "lets";
  const bool value_here = here || kind == "rows" || r.cuda();
  const bool read = read_commas(r, field, [&](Item& item) {
    const size_t first = r.at;
    item.name = r.identifier();
    item.span = r.span(first);
    if (value_here && r.take("=")) item.expr = r.expr(kAny);
    if (here && !item.expr) r.fail("expected '=' and the value of '" + item.name + "'");
    if (!r.failed() && item.expr) r.names.add(symbol_of(stmt, item, r.names));
  });
  if (read && kind == "values" && field.items.size() > 1)
    for (const Item& item : field.items)
      if (item.expr) return r.fail("an argument with a value stands alone: '" + item.name + "'");
  return read;
}

// The value after an argument's type, in TL.
bool read_value(Reader& r, Field& field) {
  if (!r.take("=")) return true;
  if (field.items.size() != 1) return r.fail("an argument with a value stands alone");
  field.items[0].expr = r.expr(kAny);
  return !r.failed();
}

bool read_tiles(Reader& r, Field& field) {
  return read_commas(r, field, [&](Item& item) {
    item.name = r.identifier();
    if (!r.take("[")) return;
    item.expr = r.expr(kAny);
    r.expect("]");
  });
}

bool read_dims(Reader& r, Field& field) {
  return read_commas(r, field, [&](Item& item) {
    if (!r.cuda()) {
      item.name = r.identifier();
      return;
    }
    const std::string t = r.peek();
    if (t.size() != 3 || t[0] != '\'' || !is_identifier(t.substr(1, 1))) {
      r.fail("expected a dimension's letter in quotes, found '" + t + "'");
      return;
    }
    ++r.at;
    item.name = t.substr(1, 1);
  });
}

bool read_params(Reader& r, Field& field) {
  return read_commas(r, field, [&](Item& item) {
    if (r.cuda()) {
      item.type = read_type(r, false);
      item.name = r.identifier();
    } else {
      item.name = r.identifier();
      if (r.expect(":")) item.type = read_type(r, false);
    }
    if (item.type == "element") r.fail("'element' is not a parameter's type");
  });
}

bool read_access(Reader& r, Field& field) {
  return read_one(r, field, [&](Item& item) {
    item.name = "out";
    const bool scratch = r.cuda() ? r.peek(2) == "scratch" : r.peek() == "scratch";
    if (r.take(r.cuda() ? "const" : "in")) {
      item.name = "in";
    } else if (scratch) {
      item.name = "scratch";
      r.at += r.cuda() ? 3 : 1;  // kw::scratch
      if (r.cuda()) r.expect("<");
    } else if (!r.cuda()) {
      r.take("out") || r.fail("expected 'in', 'out' or 'scratch', found '" + r.peek() + "'");
    }
    item.type = read_type(r, true);
    if (scratch && r.cuda()) r.expect(">");
  });
}

bool read_string(Reader& r, Field& field) {
  const std::string text = r.peek();
  if (text.size() < 2 || text.front() != '"' || text.back() != '"')
    return r.fail("expected a quoted string, found '" + text + "'");
  return read_one(r, field, [&](Item& item) {
    ++r.at;
    item.name = text.substr(1, text.size() - 2);
  });
}

bool read_exprs(Reader& r, Field& field) {
  if (r.peek() == ")" || r.peek() == "}" || r.peek().empty()) return true;  // none
  return read_commas(r, field, [&](Item& item) { item.expr = r.expr(kAny); });
}

// kw::index or a record's name.
bool read_result(Reader& r, Field& field) {
  return read_one(r, field, [&](Item& item) {
    item.name = read_type(r, false);
    if (!r.failed() && item.name != "index" && cuda_type(item.name) != item.name)
      r.fail("a function returns an index or a record, no '" + item.name + "'");
  });
}

bool is_indexed(std::string_view kind) {
  return one_of(kind, {"shared", "slot", "barrier", "left"});
}

}  // namespace

bool read_hole(Reader& r, const std::string& kind, const Stmt& stmt, Field& field) {
  switch (shape_of(kind)) {
    case Shape::word:
      return read_one(r, field, [&](Item& item) { item.name = r.identifier(); });
    case Shape::list:
      return kind == "dims" ? read_dims(r, field) : read_word(r, field);
    case Shape::expression:
      return read_one(r, field, [&](Item& item) {
        item.expr = kind == "atom" && is_integer(r.peek()) ? r.number()
                    : kind == "atom"                       ? r.operand(false)
                                                           : r.expr(level_of(kind));
      });
    case Shape::operand:
      return read_one(r, field, [&](Item& item) { item.expr = r.operand(is_indexed(kind)); });
    case Shape::exprs:
      return read_exprs(r, field);
    case Shape::valued:
      return read_valued(r, kind, stmt, field);
    case Shape::other:
      break;
  }
  if (kind == "num") return read_one(r, field, [&](Item& item) { item.expr = r.number(); });
  if (kind == "string") return read_string(r, field);
  if (kind == "type")
    return read_one(r, field, [&](Item& item) { item.name = read_type(r, true); });
  if (kind == "result") return read_result(r, field);
  if (kind == "value") return read_value(r, field);
  if (kind == "tiles") return read_tiles(r, field);
  if (kind == "params") return read_params(r, field);
  if (kind == "access") return read_access(r, field);
  return read_map(r, stmt, field);
}

// ---- writing

namespace {

template <class One>
std::string commas(const Field& field, One one) {
  std::string out;
  for (const Item& item : field.items) out += (out.empty() ? "" : ", ") + one(item);
  return out;
}

std::string name_of(const Item& item) { return item.name; }

std::string let_type(CudaWriter& w, Scope names, const Field& field) {
  Type type;
  for (const Item& item : field.items) {
    const Type own = type_of(item.expr, names);
    if (type.kind != Type::unknown && !(own == type))
      w.fail("'" + item.name + "' and '" + field.items[0].name + "' differ in type");
    type = own;
    Symbol s;
    s.name = item.name;
    s.type = own;
    names.add(std::move(s));
  }
  switch (type.kind) {
    case Type::integer:
      return "int ";
    case Type::real:
      return "kw::real ";
    case Type::boolean:
      return "bool ";
    case Type::record:
      return type.name + " ";
    default:
      w.fail("the type of '" + field.items[0].name + "' is neither a scalar nor a record");
  }
  return {};
}

std::string write_valued(CudaWriter& w, const std::string& kind, const Stmt& stmt,
                         const Field& field) {
  const Scope before = w.names;
  const std::string text = commas(field, [&](const Item& item) {
    if (!item.expr) return item.name;
    // In C a name stands for itself in its own value.
    if (mentions(item.expr, item.name))
      w.fail("the value of '" + item.name + "' mentions an outer '" + item.name + "'");
    std::string out = item.name + " = " + w.expr(item.expr);
    w.names.add(symbol_of(stmt, item, w.names));
    return out;
  });
  return (kind == "lets" ? let_type(w, before, field) : "") + text;
}

std::string write_step(CudaWriter& w, const std::string& name) {
  const Symbol* s = w.names.find(name);
  if (!s || s->category != Category::step)
    w.fail("'" + name + "' is not a kw:: function or a step of this kernel");
  return name;
}

}  // namespace

std::string write_tl_hole(const std::string& kind, const Field& field) {
  const auto valued = [](const Item& item) {
    return item.expr ? item.name + " = " + print(item.expr) : item.name;
  };
  switch (shape_of(kind)) {
    case Shape::word:
    case Shape::list:
      return commas(field, name_of);
    case Shape::expression:
      return print(field.items[0].expr, level_of(kind));
    case Shape::operand:
    case Shape::exprs:
      return commas(field, [](const Item& i) { return print(i.expr); });
    case Shape::valued:
      return commas(field, kind == "values" ? name_of : +valued);
    case Shape::other:
      break;
  }
  if (kind == "string") return "\"" + field.items[0].name + "\"";
  if (kind == "type" || kind == "result") return field.items[0].name;
  if (kind == "value") {
    const ExprPtr& value = field.items[0].expr;
    return value ? " = " + print(value) : "";
  }
  if (kind == "tiles")
    return commas(
        field, [](const Item& i) { return i.expr ? i.name + "[" + print(i.expr) + "]" : i.name; });
  if (kind == "params") return commas(field, [](const Item& i) { return i.name + ": " + i.type; });
  if (kind == "access") return field.items[0].name + " " + field.items[0].type;
  return print(field.items[0].expr);  // num, map
}

std::string write_cuda_hole(CudaWriter& w, const std::string& kind, const Stmt& stmt,
                            const Field& field, const Lambda* lambda) {
  switch (shape_of(kind)) {
    case Shape::word:
      return kind == "step" ? write_step(w, field.items[0].name) : field.items[0].name;
    case Shape::list:
      return commas(field, [&](const Item& i) {
        if (kind != "dims") return i.name;
        if (i.name.size() != 1)
          w.fail("a dimension is one letter in CUDA, and '" + i.name + "' is not");
        return "'" + i.name + "'";
      });
    case Shape::expression:
      return w.expr(field.items[0].expr, level_of(kind));
    case Shape::operand:
    case Shape::exprs:
      return commas(field, [&](const Item& i) { return w.expr(i.expr); });
    case Shape::valued:
      return write_valued(w, kind, stmt, field);
    case Shape::other:
      break;
  }
  if (kind == "num") return field.items[0].expr->text;
  if (kind == "string") return "\"" + field.items[0].name + "\"";
  if (kind == "type" || kind == "result") return cuda_type(field.items[0].name);
  if (kind == "tiles")
    return commas(field, [&](const Item& i) {
      return i.expr ? i.name + "[" + w.expr(i.expr) + "]" : i.name;
    });
  if (kind == "params")
    return commas(field, [](const Item& i) { return cuda_type(i.type) + " " + i.name; });
  if (kind == "access") {
    const Item& access = field.items[0];
    const std::string type = cuda_type(access.type);
    return access.name == "scratch" ? "kw::scratch<" + type + ">"
           : access.name == "in"    ? "const " + type
                                    : type;
  }
  return write_map(w, stmt, field, lambda);
}

}  // namespace kw::tl
