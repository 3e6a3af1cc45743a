#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kelvin {

// Words as a shell reads them back.
std::string shell_command(std::vector<std::string> words);

// The command line of this process, quoted so that a shell reads it back.
std::string command_line();

// What a run must remember to be understood later: version, commit, command,
// start (UTC), machine, and `library_versions` as the compute library tells them.
nlohmann::ordered_json run_metadata(const nlohmann::ordered_json& library_versions);

}  // namespace kelvin
