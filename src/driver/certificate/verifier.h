// The items of verify (verify.h), one function each: what was hashed, what is known by then of the
// folder, and what has been said.
//
//   verify.cpp          the order, the files, words
//   verify_source.cpp   from the specification to the kernel's text
//   verify_results.cpp  what was found of the kernel, and what it is launched and proved with
#pragma once
#include <future>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/certificate/verify.h"

namespace kw::driver {

// A folder whose certificate names its files: those first, and what the certificate says only where
// they are the ones.
class FolderVerifier {
 public:
  virtual ~FolderVerifier() = default;
  std::vector<Item> run(bool quick);

 protected:
  using Json = nlohmann::json;

  FolderVerifier(std::filesystem::path folder, const Claims& was, const Say& say)
      : folder_(std::move(folder)), claims_(was), was_(nlohmann::json(was)), say_(say) {}

  virtual void all() = 0;
  // Files, and folders of files, that are compared as a whole: "kw/".
  virtual std::vector<std::string> compared_whole() const = 0;

  void add(const std::string& what, Standing standing, const std::string& detail = "",
           bool remark = false);
  void holds(const std::string& what) { add(what, Standing::holds); }
  void compare(const std::string& what, const Json& was, const Json& is) {
    say_same(what, difference(was, is));
  }
  // "" is a part that is as it was.
  void say_same(const std::string& what, const std::string& differs) {
    add(what, differs.empty() ? Standing::holds : Standing::changed, differs);
  }
  void nothing_more(const std::string& why) { add("readings", Standing::not_rerun, why); }
  std::string text_of(const std::string& file) const;  // as it was hashed; it counts as read

  const std::filesystem::path folder_;
  const Claims& claims_;
  const Json was_;
  const Say& say_;
  StageClock clock_;
  std::vector<Item> items_;
  Tree tree_;

 private:
  bool files();
  void unread();

  mutable std::set<std::string> read_;
};

// Of one kernel.
class Verifier : public FolderVerifier {
 public:
  Verifier(const Tools& tools, std::filesystem::path folder, const Claims& was, const Say& say)
      : FolderVerifier(std::move(folder), was, say), tools_(tools) {}

 private:
  // A stage that gave nothing: the machine's lack, or the input's fault, which is a change.
  void failed_at(const std::string& what, const Diagnostics& d);

  // ---- what there is
  SourcePtr source_of(const std::string& file) const { return make_source(file, text_of(file)); }
  // The entry of /checked with this id; null where the certificate has none.
  Json was_checked(const std::string& id) const;
  Json was_verdict() const;
  bool by_hand() const;
  std::optional<std::string> own_expert(Start start) const;
  check::Effort effort() const;
  std::vector<tl::ExprPtr> requirements() const;

  // ---- the items, in their order
  void all() override;
  std::vector<std::string> compared_whole() const override;
  void capture();
  bool read_program();
  bool read_expert();
  void transfer();
  void begin_proof();
  void lens();
  void check();
  void launch();
  void proof();
  void cubin();
  void words();
  void gpu();
  void tools();

  const Tools& tools_;
  TemporaryFolder scratch_;
  std::optional<tl::Program> program_, lifted_expert_;
  SourcePtr expert_;
  bool plain_ = true;  // the expert's text computes plain attention
  std::optional<spec::Capture> capture_;
  CapturedGraph graph_;
  std::optional<transfer::Result> transferred_;
  std::optional<check::Report> report_;
  std::optional<lower::LaunchPlan> plan_;
  std::string compiler_;
  std::future<Diagnostics> rows_;  // last: it ends before what it reads
};

}  // namespace kw::driver
