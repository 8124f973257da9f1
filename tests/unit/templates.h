// The texts that a model is asked with (prompts/).
#pragma once
#include "in_clone.h"
#include "propose/propose.h"
#include "support/source.h"

namespace kw::test {

inline propose::Templates templates() {
  const auto read = [](const char* name) {
    return read_source(in_clone("/prompts/") + name)->text;
  };
  return {read("transfer.system.md"), read("transfer.user.md"),
          read("transfer.letters.attention.md"), read("transfer.letters.product.md"),
          read("transfer.letters.rms_norm.md")};
}

}  // namespace kw::test
