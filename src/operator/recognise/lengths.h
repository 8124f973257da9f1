// Whether an operand is read as long as it is, and a size is its own.
#pragma once
#include "operator/recognise/recognise.h"

namespace kw::spec {

// operand: its indices under the form's names. extents: of b, h, i, j and d, as the graph has them.
// The columns may be some of the first: values that are columns of the keys. Refuses spec.operand,
// at what padded, joined or cut the argument, or else at the node `product`. of_keys: what the hint
// says of longer keys beside, or "".
bool read_as_long_as_it_is(const Elements& elements, const Operand& operand,
                           const std::map<std::string, ExprPtr>& extents, int product,
                           const std::string& of_keys, Diagnostics& diagnostics);

// Whether a size of the form is a number or any: not one more than another, or twice it. of:
// "keys", for the message. Refuses spec.operand at the first node that has the size.
bool is_a_size(const Elements& elements, const ExprPtr& size, const std::string& of,
               Diagnostics& diagnostics);

}  // namespace kw::spec
