// The cases that prove a kernel of gradients on a GPU.
#pragma once
#include "driver/proof/writer.h"

namespace kw::driver::families {

bool write_gradient_cases(const std::filesystem::path& folder, const spec::Capture& capture,
                          const transfer::Result& transferred, Diagnostics& diagnostics);

}  // namespace kw::driver::families
