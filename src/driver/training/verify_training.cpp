// First all files of the whole tree, the halves' certificates among them. Then what is said of
// both, derived again from the two: in no time, so halves that do not belong together are found at
// once. Last each half as a folder of its own (certificate/verifier.h), by the text of its
// certificate that was hashed; what is said of both rests on that.
#include <fmt/format.h>

#include "driver/certificate/verifier.h"
#include "driver/training/training.h"
#include "report/page.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

class TrainingVerifier : public FolderVerifier {
 public:
  TrainingVerifier(const Tools& tools, const Json& schema, fs::path folder, const Claims& was,
                   const Say& say)
      : FolderVerifier(std::move(folder), was, say), tools_(tools), schema_(schema) {}

 private:
  void all() override {
    std::optional<Half> halves[2];
    for (size_t n = 0; n < kHalves.size(); ++n) {
      Diagnostics d;
      halves[n] = half_of(kHalves[n], d);
      if (!halves[n]) return add(kHalves[n], Standing::changed, d.all().back().message);
    }
    const Claims claims[2] = {halves[0]->claims, halves[1]->claims};
    Diagnostics d;
    const auto both = join(std::move(*halves[0]), std::move(*halves[1]), d);
    if (!both) return add("both", Standing::changed, d.all().back().message);
    add("both", Standing::holds);
    of_both(*both);
    for (const Item& item : items_)
      if (item.standing == Standing::changed) return nothing_more("what is said of both is not so");
    for (size_t n = 0; n < kHalves.size(); ++n) verify_half(kHalves[n], claims[n]);
  }

  std::vector<std::string> compared_whole() const override {
    return {std::string(kHalves[0]) + "/", std::string(kHalves[1]) + "/"};
  }

  std::optional<Half> half_of(const std::string& half, Diagnostics& d) const {
    const std::string file = half + "/certificate.json";
    const auto claims =
        read_certificate(make_source((folder_ / file).string(), text_of(file)), schema_, d);
    if (!claims) return std::nullopt;
    return read_half(
        half, *claims, [&](const std::string& name) { return text_of(half + "/" + name); }, d);
  }

  void verify_half(const std::string& half, const Claims& claims) {
    const Say say = [&](const std::string& what, const std::string& text, double seconds) {
      say_(half + " " + what, text, seconds);
    };
    for (Item item : Verifier(tools_, folder_ / half, claims, say).run(false)) {
      item.what = half + " " + item.what;
      items_.push_back(std::move(item));
    }
  }

  void of_both(const Both& both) {
    const Json is(training_claims(both));
    for (const auto& [field, value] : is.items())
      if (field != "kernelwright") compare(field, was_[field], value);
    say_same("launch", text_of("launch.h") == header_of(both)
                           ? ""
                           : "launch.h was made from both kernels, is another text");
    const std::string spec = fs::path(was_["spec"]["file"]["name"].get<std::string>()).filename();
    say_same("report",
             draw_training(both, claims_, text_of("forward/from/" + spec)) == text_of(report::kPage)
                 ? ""
                 : "report.html was drawn of this certificate, is another page");
  }

  const Tools& tools_;
  const Json& schema_;  // of a half's certificate
};

}  // namespace

bool is_of_training(const std::string& certificate) {
  std::string why;
  const auto claims = parse_claims(certificate, why);
  return claims && claims->is_object() && claims->value("schema", Claims()) == kTrainingSchema;
}

Verified verify_training(const Tools& tools, const SourcePtr& text, const VerifyOptions& options,
                         const fs::path& folder, const Say& say, Diagnostics& diagnostics) {
  Verified out;
  const auto form = certificate_schema(tools.home, diagnostics, kTrainingForm);
  const auto schema = certificate_schema(tools.home, diagnostics);
  const auto was = form && schema ? read_certificate(text, *form, diagnostics) : std::nullopt;
  if (!was) {
    out.exit = exit_for(diagnostics);
    return out;
  }
  out.items = TrainingVerifier(tools, *schema, folder, *was, say).run(options.quick);
  out.exit = exit_of(*was, out.items);
  return out;
}

}  // namespace kw::driver
