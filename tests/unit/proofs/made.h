// What the rules make of a form, as text that a test may change.
#pragma once
#include <gtest/gtest.h>

#include "proofs/proofs.h"
#include "transfer_form.h"

namespace kw::proofs {

inline constexpr char kCausal[] = "score s * 0.125\nkeep j <= i\n";

struct Made {
  spec::Form form;
  std::string text;
};

// What the rules make of a form.
inline Made made_of(spec::Form form, const std::string& target = "sm_90a", bool in_order = false) {
  Made made{std::move(form), ""};
  Diagnostics d;
  auto [kernel, machine] = transfer::start_of(made.form, target);
  machine.deterministic = in_order;
  const auto result = transfer::transfer(kernel, made.form, machine, d);
  EXPECT_TRUE(result) << render(d);
  if (result) made.text = tl::print(result->program);
  return made;
}

inline Made made_of(const std::string& lines, const std::string& target = "sm_90a") {
  return made_of(transfer::form_of(lines), target);
}

inline const Solver& solver() {
  static Solver one;
  static const bool found = one.load(Solver::candidates());
  EXPECT_TRUE(found) << one.why();
  return one;
}

inline Report proved(const Made& made) {
  Diagnostics d;
  const auto program = tl::parse(make_source("program.tl", made.text), d);
  EXPECT_TRUE(program) << render(d);
  return prove_attention(*program, made.form, solver());
}

// The same program with one text in another's place, once or everywhere.
inline Made with(Made made, const std::string& from, const std::string& to) {
  EXPECT_NE(made.text.find(from), std::string::npos) << from << " in\n" << made.text;
  for (size_t at = made.text.find(from); at != std::string::npos;
       at = made.text.find(from, at + to.size()))
    made.text.replace(at, from.size(), to);
  return made;
}

}  // namespace kw::proofs
