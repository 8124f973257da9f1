// What expressions of a form read becomes arguments of the kernel.
//
//   prefix: in i32[B]        a tensor, its dims named by the sizes it shares with q and k
//   S: size                  a size that none of the kernel's letters is
//   window: i32, beta: f32   scalars
#pragma once
#include <map>
#include <set>
#include <string>

#include "transfer/editing/editing.h"
#include "transfer/editing/edits.h"

namespace kw::transfer {

class Arguments {
 public:
  // The letters of the kernel's sizes, that of the operands' columns, and the argument before which
  // scalars stand, for values computed from arguments may use those before them.
  Arguments(Editing& edit, const Letters& letters, std::string columns, std::string scale);

  // Adds what e reads, other than tensors of these names. False after a refusal.
  bool add(const spec::ExprPtr& e, const std::set<std::string>& but = {});
  // e in the kernel's names.
  spec::ExprPtr renamed(const spec::ExprPtr& e) const;

 private:
  Span place(const spec::Expr& read) const;
  bool tensor(const spec::Expr& read);
  bool scalar(const spec::Expr& use);
  std::string new_name(const std::string& user);
  std::string letter(const spec::Size& size, const spec::ExprPtr& index);
  bool insert_before_scale(const std::string& text);

  Editing& edit_;
  const Letters of_;
  const std::string columns_, scale_;
  std::map<std::string, std::string> letters_;  // the user's sizes: the kernel's
  std::map<std::string, std::string> names_;    // the user's arguments: the kernel's
};

}  // namespace kw::transfer
