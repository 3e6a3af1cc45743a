#include "app/common_flags.h"

namespace kelvin {

void CommonFlags::declare(CLI::App& command) {
  command.add_flag("-q,--quiet", is_quiet_, "no progress and no remarks on stderr");
  format_.declare(command);
  data_folder_.declare(command);
  threads_.declare(command);
}

void CommonFlags::check() const {
  format_.format();
  threads_.threads();
}

}  // namespace kelvin
