// What the score and the mask read becomes arguments of the kernel (transfer/editing/arguments.h),
// and the step knows of which head its queries are.
//
//   step advance(x: index, first: bool):       ->   step advance(x: index, first: bool):
//       let m = queries.first + x % ...               let m = queries.first + x % ...
//                                                     let h = c.g * group + x // queries.count
//
// When     the score or the mask reads something, or computes with the number of the head; or the
//          gradient of what is read is asked for, which is summed by heads.
// Effect   none: elements are read as they are.
#include "transfer/editing/arguments.h"

#include <algorithm>

#include "transfer/editing/rows.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {

using spec::ExprPtr;
using spec::Kind;

namespace {
// What the rows of q, k and v become, and what their gradients do.
bool add_rows(Edit& edit, Arguments& arguments) {
  using spec::Gradients;
  const auto of = spec::operands(edit.term);
  const char* names[] = {"q", "k", "v"};
  for (size_t n = 0; n < Gradients::kOperands; ++n) {
    const auto& back = edit.form.gradients->rows[n];
    if (!back) continue;
    const std::string name = names[n];
    Edit::OfRows rows{
        name, edit.fresh({name + "_rows"}), "d" + name, edit.fresh({"d" + name + "_rows"}), {}, {},
        n};
    const char* row = n ? "j" : "i";
    const auto before = named_rows(arguments, *of[n]->row, *of[n], name, row),
               behind = named_rows(arguments, *back, *of[n], name, row,
                                   {{Gradients::kOfRows[n], rows.of_rows}});
    if (!before || !behind) return false;
    rows.before = *before;
    rows.behind = *behind;
    edit.of_rows.push_back(std::move(rows));
  }
  return true;
}
}  // namespace

bool rule_arguments(Edit& edit) {
  Arguments arguments(edit, kLetters, "D", "scale");
  using Of = spec::Gradients::Of;
  const ExprPtr &score = edit.term.score, &keep = edit.term.keep;
  if (!arguments.add(score) || !arguments.add(keep)) return false;
  edit.score = arguments.renamed(score);
  edit.keep = keep ? arguments.renamed(keep) : nullptr;
  bool of_head =
      spec::mentions(score, Kind::index, "h") || (keep && spec::mentions(keep, Kind::index, "h"));
  for (spec::Gradients::Learned l : edit.form.gradients->learned) {
    if (l.of == Of::sink && !arguments.add(edit.term.sink)) return false;
    if (l.of == Of::sink) edit.sink = arguments.renamed(edit.term.sink);
    if (l.of == Of::epilogue && !arguments.add(l.slope)) return false;
    of_head = of_head || l.of == Of::score;
    l.slope = arguments.renamed(l.slope);
    if (l.element) l.element = arguments.renamed(l.element);
    edit.learned.push_back(std::move(l));
  }
  if (const ExprPtr& by = edit.form.gradients->of_epilogue) {
    if (!arguments.add(by)) return false;
    edit.of_epilogue = arguments.renamed(by);
  }
  if (!add_rows(edit, arguments)) return false;
  std::vector<tl::Stmt>& step = *edit.places()->step;
  const bool has_head = std::any_of(step.begin(), step.end(), [](const tl::Stmt& s) {
    return s.op == tl::Op::let && s.names().at(0).name == "h";
  });
  return !of_head || has_head ||
         edit.insert({&step, 1}, "let h = c.g * group + x // queries.count");
}

}  // namespace kw::transfer::bwd
