// What a made folder must hold, derived again and held against what it holds: one function for each
// part that verify compares by its text. Each says what differs, in two facts, or nothing ("").
//
// What is derived comes from the specification, the program and this installation, never from the
// part that is judged; so a part that was changed together with its hash is found all the same.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "driver/certificate/certificate.h"
#include "driver/environment/home.h"
#include "operator/capture/capture.h"
#include "tl/program.h"
#include "transfer/tile_database.h"
#include "transfer/transfer.h"

namespace kw::driver {

using Texts = std::map<std::string, std::string>;  // of the folder's files, by name

// kw/ of the folder against this installation's. A forged function there would be compiled into a
// cubin that is right for it.
std::string other_vocabulary(const Home& home, const Texts& files);

// from/graph.json against the graph that was captured now, but for what each capture has of its
// own: times, versions, the file's place and the values of examples.
std::string other_graph(const std::string& was, const std::string& is);

// What the certificate says of the change from the expert's text to the kernel.
struct Proposal {
  const tl::Program& expert;
  bool plain;  // the expert's text (by_rules.h)
  const tl::Program& kernel;
  std::string proposer;
  std::string target;
  std::vector<transfer::Tiles> shipped;  // the tile database's rows
};
// The transfer once more; its program is `kernel`. By the rules where they are the proposer, or
// where a person edited what they wrote: `by_rules` is then the program before the edits. Where a
// model proposed, what no proposer decides. `differs` says where the rules give another program;
// nothing is returned where they refuse (reported), or differ.
std::optional<transfer::Result> transferred_again(const Proposal& proposal,
                                                  const std::optional<tl::Program>& by_rules,
                                                  const spec::Form& form, std::string& differs,
                                                  Diagnostics& diagnostics);

// from/attempts.json, where a model proposed: whether it answered the attempt that was accepted.
std::string other_attempts(const std::string& proposer, const Texts& files);

// Of prove.json and prove/: what differs from what was written again into `again`.
struct OtherProof {
  std::string cases;    // of prove.json, which must be the same to the byte
  std::string goldens;  // of the arrays
  // Of arrays that are not the same to the bit, and differ by less than 1e-9, or, where they are
  // made of the user's own errors, by less than 1 %: another C library or PyTorch may have done it.
  std::string nearly;
};
OtherProof other_proof(const Texts& files, const std::filesystem::path& again);

}  // namespace kw::driver
