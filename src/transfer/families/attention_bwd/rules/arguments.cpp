// What the score and the mask read becomes arguments of the kernel (transfer/editing/arguments.h),
// and the step knows of which head its queries are.
//
//   step advance(x: i32, first: bool):       ->   step advance(x: i32, first: bool):
//       let m = queries.first + x % ...               let m = queries.first + x % ...
//                                                     let h = c.g * group + x // queries.count
//
// When     the score or the mask reads something, or computes with the number of the head; or the
//          gradient of what is read is asked for, which is summed by heads.
// Effect   none: elements are read as they are.
#include "transfer/editing/arguments.h"

#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {

using spec::ExprPtr;
using spec::Kind;

bool rule_arguments(Edit& edit) {
  Arguments arguments(edit, kLetters, "D", "scale");
  const ExprPtr &score = edit.term.score, &keep = edit.term.keep;
  if (!arguments.add(score) || !arguments.add(keep)) return false;
  edit.score = arguments.renamed(score);
  edit.keep = keep ? arguments.renamed(keep) : nullptr;
  bool of_head =
      spec::mentions(score, Kind::index, "h") || (keep && spec::mentions(keep, Kind::index, "h"));
  for (spec::Gradients::Learned l : edit.form.gradients->learned) {
    if (l.of_sink && !arguments.add(edit.term.sink)) return false;
    if (l.of_sink) edit.sink = arguments.renamed(edit.term.sink);
    of_head = of_head || !l.of_sink;
    l.slope = arguments.renamed(l.slope);
    edit.learned.push_back(std::move(l));
  }
  return !of_head ||
         edit.insert({edit.places()->step, 1}, "let h = c.g * group + x // queries.count");
}

}  // namespace kw::transfer::bwd
