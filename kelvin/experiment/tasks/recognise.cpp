#include "kelvin/experiment/tasks/recognise.h"

#include "kelvin/core/text.h"
#include "kelvin/model/recognition.h"
#include "kelvin/model/tensors_file.h"

namespace kelvin {

Config recognise(const RecogniseRequest& request, const RunContext& context) {
  const auto where = request.weights.string();
  const auto found = recognised_model(read_tensors(request.weights), where);
  Config config;
  config.set("model.name", found.model);
  std::vector<std::string> settings;
  for (const auto& [key, value] : found.settings) {
    config.set("model." + key, value);
    settings.push_back("model." + key + "=" + value.dump());
  }
  context.inform(where + ": is a " + found.model + " of " + std::to_string(found.classes) +
                 " classes" + (settings.empty() ? "" : " with " + join(settings, " ")) + ": its " +
                 std::to_string(found.tensors) + " tensors have the names and shapes of one");
  return config;
}

namespace {

const bool recognise_registered = add_task(recognise);

}  // namespace
}  // namespace kelvin
