#include "provider_options.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "models/providers/provider_error.h"
#include "models/settings.h"

namespace kw::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kGroup = "Who is asked";

std::string option_name(const char* setting) {
  std::string name = std::string("--") + setting;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// Values are checked where a file's are: in models::read_settings.
void add_setting(CLI::App* command, const models::Setting& setting, Json& said) {
  const std::string name = option_name(setting.name), key = setting.name;
  CLI::Option* option = nullptr;
  switch (setting.type) {
    case models::SettingType::text:
      option = command->add_option_function<std::string>(
          name, [&said, key](const std::string& value) { said[key] = value; }, setting.help);
      break;
    case models::SettingType::number:
      option = command->add_option_function<double>(
          name, [&said, key](const double& value) { said[key] = value; }, setting.help);
      break;
    case models::SettingType::count:
      option = command->add_option_function<int64_t>(
          name, [&said, key](const int64_t& value) { said[key] = value; }, setting.help);
      break;
    case models::SettingType::flag:
      option = command->add_flag_function(
          name, [&said, key](int64_t count) { said[key] = count > 0; }, setting.help);
      break;
    case models::SettingType::object:
      option = command->add_option_function<std::string>(
          name,
          [&said, key, name](const std::string& value) {
            said[key] = Json::parse(value, nullptr, false);
            if (!said[key].is_object()) throw CLI::ValidationError(name, "is not a JSON object");
          },
          setting.help);
      break;
  }
  option->group(kGroup);
}

}  // namespace

void add_provider_options(CLI::App* command, models::Options& options) {
  command
      ->add_option("--provider", options.file,
                   "a JSON file with any of the settings below; an option wins over the file")
      ->group(kGroup);
  for (const models::Setting& setting : models::settings_table())
    add_setting(command, setting, options.said);
}

std::unique_ptr<models::Provider> open_provider(const models::Options& options,
                                                const std::string& transcript,
                                                models::Recorder::Existing existing) {
  auto provider = models::make_provider(options);
  if (transcript.empty()) return provider;
  return std::make_unique<models::Recorder>(std::move(provider), transcript, existing);
}

int finish(const models::ProviderError& error, Diagnostics& diagnostics, const Output& output) {
  diagnostics.error(std::string("model.") + models::name(error.kind), {}, error.what());
  return finish(models::exit_of(error.kind), diagnostics, output);
}

}  // namespace kw::cli
