// verify: does a certificate still hold?
//
// Everything that certificate.json says is done again, from the specification, the program and this
// installation, and each piece is compared with what stands there:
//   files      every file has the hash that is named, there is nothing else, all give the root
//   vocabulary kw/ is this build's: what lifts and compiles is the installation's, never the
//   folder's capture    from/SPEC.py gives the same graph and form expert     from/expert.cu is the
//   text of the corpus, or the sketch's, that is named transfer   the rules, or what no proposer
//   decides, give kernel.tl, its bindings and conditions lens       kernel.cu lifts to kernel.tl;
//   kernel.tl and from/expert.cu give kernel.cu and its patch laws, values, key_blocks, indices,
//   exact, schedules
//              the check of kernel.tl, with its seeds and effort
//   launch     kernel.tl, the conditions and the limits that were proved give launch.json and
//   launch.h prove.json, goldens
//              the specification gives the cases for a GPU, and their values
//   cubin      kernel.cu gives kernel.cubin; where only line tables differ, which name the folder
//   of
//              the compilation, the code counts
//   gpu        the proof was merged for this cubin; where there is a GPU, it is run again
//   report     report.html shows this certificate
//   words      what was not checked, what is trusted, the tools
//
// Of a folder with two kernels (training/halves.h) each is verified so, and then what its
// certificate says of both.
//
// Each item still holds, or changed (was, is), or could not be rerun (why). Refuted: an item that
// the claim rests on changed. Inconclusive: none did, and one could not be rerun, or differs in
// what another compiler or machine may change. Where a file changed nothing is rerun: it would be
// about something else.
#pragma once
#include <string>
#include <vector>

#include "driver/certificate/certificate.h"
#include "driver/make/make.h"

namespace kw::driver {

enum class Standing { holds, changed, not_rerun };
std::string_view name(Standing s);  // "still holds", "changed", "could not be rerun"

struct Item {
  std::string what;
  Standing standing = Standing::holds;
  std::string detail;   // of what changed: "was 64, is 63"; of what could not be rerun: why
  bool remark = false;  // another version of a tool: said, but nothing that the claim rests on
};

struct VerifyOptions {
  std::string certificate;  // the file, or its folder
  bool quick = false;       // hashes; the rest is "could not be rerun"
};

struct Verified {
  Exit exit = Exit::bad_input;
  std::vector<Item> items;
};

// `say` gets each item as it ends. Reports certificate.* where the certificate cannot be read:
// certificate.file (there is none, or something else than a file), certificate.json (not JSON),
// certificate.schema (another version), certificate.form (a field is missing or of another type).
Verified verify(const VerifyOptions& options, const Say& say, Diagnostics& diagnostics);

// A certificate's text, which has the form that `schema` says: docs/certificate.schema.json, or of
// two kernels docs/certificate.training.schema.json.
std::optional<Claims> read_certificate(const SourcePtr& text, const nlohmann::json& schema,
                                       Diagnostics& diagnostics);

// The exit code of a certificate's items.
Exit exit_of(const Claims& was, const std::vector<Item>& items);

// One of these of this version. Reports driver.schema where it is missing.
inline constexpr char kKernelForm[] = "certificate.schema.json";
inline constexpr char kTrainingForm[] = "certificate.training.schema.json";
std::optional<nlohmann::json> certificate_schema(const Home& home, Diagnostics& diagnostics,
                                                 const char* file = kKernelForm);

// The first difference of two JSON values, and how many more: "/rows: was 7560, is 7000 (and 2
// more)"; empty when there is none. Reals that differ by less than 1 % count as the same.
std::string difference(const nlohmann::json& was, const nlohmann::json& is);

}  // namespace kw::driver
