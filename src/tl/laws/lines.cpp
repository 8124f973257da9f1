// Lines: whole rows of tensors in a warpgroup's registers. A body over lines reads nothing but
// their elements at the column that it is at (laws/types.cpp reports that), and all of them have
// the same columns.
#include <algorithm>
#include <functional>

#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

constexpr int64_t kMostLineColumns = 16384;

// The lines that a body reads, in the order of the text.
std::vector<const Symbol*> lines_read(const Check& c, const ExprPtr& body) {
  std::vector<const Symbol*> out;
  const std::function<void(const ExprPtr&)> visit = [&](const ExprPtr& e) {
    if (e->kind == ExprKind::index && e->args[0]->kind == ExprKind::name) {
      const Symbol* s = c.scope.find(e->args[0]->text);
      if (s && s->category == Category::line) out.push_back(s);
    }
    for (const ExprPtr& part : e->args) visit(part);
  };
  visit(body);
  return out;
}

void line_fits(Check& c, const char* label, const Symbol& line, const Symbol& other,
               const std::optional<int64_t>& has) {
  const std::optional<int64_t> due = c.extent(&line, 0);
  if (!due || !has || *due == *has) return;
  c.broken(label, c.stmt.span,
           fmt::format("`{}` has {} columns, `{}` has {}", line.name, *due, other.name, *has))
      .notes.push_back({fmt::format("`{}` is declared here", other.name), other.span});
}

// The columns of a tensor's rows: its last dimension, where that is a parameter.
std::optional<int64_t> columns_of_rows(const Check& c, const Symbol& tensor) {
  return tensor.dims.empty() ? std::nullopt : c.constant(name(tensor.dims.back()));
}

// What a tensor's elements are called by a line that holds them.
std::string held_by_line(const std::string& element) { return element == "f32" ? "real" : element; }

}  // namespace

void law_line(Check& c) {
  static constexpr std::string_view types[] = {"element", "bf16", "f16", "real"};
  const std::string& type = c.stmt.type();
  if (std::find(std::begin(types), std::end(types), type) == std::end(types))
    c.broken("C1", c.stmt.items(Hole::type)[0].span,
             fmt::format("a line holds {}, this one {}", fmt::join(types, " or "), type));
  const std::optional<int64_t> columns = c.constant(c.stmt.columns());
  if (columns && (*columns % 8 || *columns <= 0 || *columns > kMostLineColumns))
    c.broken("C2", c.stmt.columns()->span,
             fmt::format("{} columns: not a multiple of 8 up to {}", *columns, kMostLineColumns));
  if (!c.warpgroups_block())
    c.broken("C3", c.stmt.span, "`line` stands outside the warpgroups block");
}

void law_set_line(Check& c) {
  const Symbol& t = *c.find(c.stmt.target());
  const ExprPtr& body = c.stmt.value();
  if (body->kind != ExprKind::index) {
    c.broken("C2", body->span, fmt::format("`{}` is no read of a tensor", print(body)));
    return;
  }
  const Symbol* from = c.find(body->args[0]);
  if (!from || from->category != Category::tensor) {
    c.broken("C2", body->span, fmt::format("`{}` is no read of a tensor", print(body)));
    return;
  }
  if (held_by_line(from->element) != t.element)
    c.broken("C2", body->span,
             fmt::format("`{}` holds {}, `{}` {}", from->name, from->element, t.name, t.element))
        .notes.push_back({fmt::format("`{}` is declared here", from->name), from->span});
  const auto mentions_j = [](const ExprPtr& e) { return mentions(e, "j"); };
  if (!body->args.back()->is_name("j"))
    c.broken("C3", body->args.back()->span,
             fmt::format("the last index is `{}`", print(body->args.back())));
  else if (std::any_of(body->args.begin(), body->args.end() - 1, mentions_j))
    c.broken("C3", body->span, fmt::format("`{}` has j twice", print(body)));
  line_fits(c, "C4", t, *from, columns_of_rows(c, *from));
}

void law_map_line(Check& c) {
  const Symbol& t = *c.find(c.stmt.target());
  for (const Symbol* line : lines_read(c, c.stmt.value()))
    line_fits(c, "C3", t, *line, c.extent(line, 0));
}

void law_sum_line(Check& c) {
  const std::vector<const Symbol*> lines = lines_read(c, c.stmt.value());
  if (lines.empty())
    c.broken("C1", c.stmt.value()->span, fmt::format("`{}` reads no line", print(c.stmt.value())));
  for (const Symbol* line : lines) line_fits(c, "C2", *lines[0], *line, c.extent(line, 0));
}

void law_store_line(Check& c) {
  const Symbol &line = *c.find(c.stmt.src()), &tensor = *c.find(c.stmt.tensor());
  if (!tensor.written || tensor.dims.size() != 4 || tensor.element != line.element)
    c.broken("C1", c.stmt.tensor()->span,
             fmt::format("`{}` holds {}, `{}` is `{} {}` with {} dimensions", line.name,
                         line.element, tensor.name, tensor.written ? "out" : "in", tensor.element,
                         tensor.dims.size()))
        .notes.push_back({"declared here", tensor.span});
  else
    line_fits(c, "C2", line, tensor, columns_of_rows(c, tensor));
}

}  // namespace kw::tl
