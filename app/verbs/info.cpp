#include <fmt/format.h>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/human_text.h"
#include "app/cli/machine.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "app/cli/version.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kMemory = "memory_bytes";  // of machine_description()

std::string cell_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const auto& element : value) list += (list.empty() ? "" : " ") + cell_of(element);
  return list;
}

// Nested objects without their names: each key says enough.
void add_rows(Table& table, const Json& facts, TableFormat format) {
  for (const auto& [key, value] : facts.items()) {
    if (value.is_object()) {
      add_rows(table, value, format);
    } else if (is_for_people(format) && key == kMemory) {
      table.rows.push_back({"memory", byte_text(value.get<int64_t>())});
    } else {
      table.rows.push_back({key, cell_of(value)});
    }
  }
}

class Info : public Verb {
 public:
  int run() override {
    const auto format = common().format();
    const auto threads = common().threads();
    const auto library = load_compute_library(threads);
    Json facts;
    facts["version"] = kVersion;
    facts["commit"] = kCommit;
    facts["versions"] = library.run(VersionsRequest{});
    facts["machine"] = machine_description();
    if (format == TableFormat::json) {
      fmt::print("{}\n", json_text(facts, 1));
      return kSuccess;
    }
    Table table{.columns = {{"what"}, {"value"}}};
    add_rows(table, facts, format);
    print_table(table, format);
    return kSuccess;
  }

 private:
};

const bool info_registered =
    verbs().add("info", {
                            .summary = "Versions, threads and CPU features",
                            .make = [] { return std::make_unique<Info>(); },
                        });

}  // namespace
}  // namespace kelvin
