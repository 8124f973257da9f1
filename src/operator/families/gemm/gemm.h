// What the parts of this family share: gemm.cpp is its class, the others are its longer methods.
#pragma once
#include "operator/family.h"

namespace kw::spec::gemm {

std::string print(const Form& form);
std::unique_ptr<Truth> truth(const Form& form, const Problem& problem);
ExactHead exact(const Form& form, const Problem& named, const exact::Algebra& algebra, int64_t b,
                int64_t h);

}  // namespace kw::spec::gemm
