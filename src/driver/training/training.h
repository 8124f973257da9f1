// make, verify, report and certify of a folder for training (halves.h): each does what it does of
// one kernel for both, and then what is said of both.
#pragma once
#include "driver/certificate/verify.h"
#include "driver/make/make.h"
#include "driver/training/training_certificate.h"

namespace kw::driver {

// Makes one kernel (make.cpp), for each half.
using MakeOne = std::function<Made(const MakeOptions&, const Say&, Diagnostics&)>;
Made make_training(const MakeOptions& options, const MakeOne& make_one, const Say& say,
                   Diagnostics& diagnostics);

// `text`: its certificate.json.
Verified verify_training(const Tools& tools, const SourcePtr& text, const VerifyOptions& options,
                         const std::filesystem::path& folder, const Say& say,
                         Diagnostics& diagnostics);

// Whether a certificate's text is of two kernels.
bool is_of_training(const std::string& certificate);

// Writes launch.h, report.html and certificate.json into a folder whose halves stand; returns the
// certificate. Reports training.* where they do not fit.
std::optional<Claims> write_training(const Home& home, const std::filesystem::path& folder,
                                     Diagnostics& diagnostics);

// The page; `certificate` is the folder's, `user_text` the specification's.
std::string draw_training(const Both& both, const Claims& certificate,
                          const std::string& user_text);

}  // namespace kw::driver
