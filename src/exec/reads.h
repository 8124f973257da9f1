// Elements of tensor arguments, read one by one: `prefix[c.b]`, and in maps `document[c.b, j]`.
#pragma once
#include "exec/machine.h"

namespace kw::exec {

// A tensor that is read element by element; null after a fault.
const Global* readable_tensor(const Context& c, const std::string& name);

// Element `offset` of it, as a scalar; the only value of a tensor that has one for all. An i64 that
// no int holds is a fault.
Value element_at(const Context& c, const std::string& name, const Global& tensor, int64_t offset);

}  // namespace kw::exec
