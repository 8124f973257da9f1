// The GPU draws in the kernel's order of dimensions; the user's may be another.
#pragma once
#include "num/tensor.h"
#include "transfer/transfer.h"

namespace kw::driver {

// Puts what is drawn for the kernel where the user's tensor `name` has it. False when it is there
// already.
bool to_user_order(Tensor& tensor, const std::string& name, const transfer::Result& transferred);

}  // namespace kw::driver
