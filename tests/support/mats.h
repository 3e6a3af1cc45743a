#pragma once

#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/python.h"

namespace kelvin {

// The files that scipy.io.savemat writes for these arguments after the file, in one start of
// Python; numpy is at hand as np.
inline std::vector<std::string> scipy_mats(const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  std::string script = "import sys, numpy as np\nfrom scipy.io import savemat\n";
  for (size_t i = 0; i < arguments.size(); ++i) {
    script += "savemat(sys.argv[1] + '" + std::to_string(i) + ".mat', " + arguments.at(i) + ")\n";
  }
  python_output(script, {folder / "a"});
  std::vector<std::string> files;
  for (size_t i = 0; i < arguments.size(); ++i) {
    files.push_back(read_file(folder / ("a" + std::to_string(i) + ".mat")));
  }
  return files;
}

}  // namespace kelvin
