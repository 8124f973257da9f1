// report.html of a folder for training: both kernels on one page, what each gradient was held
// against, what passes between the launches and what that takes of memory. The halves' own pages,
// with their changes line by line, are a link away.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "operator/form.h"

namespace kw::report {

struct TrainingFacts {
  nlohmann::ordered_json certificate;  // of the folder, without the page and the root
  struct Half {
    std::string name;
    nlohmann::ordered_json certificate;
    std::optional<spec::Form> form;
  };
  Half forward, backward;
  std::string user_text;
};

std::string training_page(const TrainingFacts& facts);

}  // namespace kw::report
