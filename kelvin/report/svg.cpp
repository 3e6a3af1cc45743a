#include "kelvin/report/svg.h"

#include "kelvin/report/comparison.h"
#include "kelvin/report/run_figures.h"

namespace kelvin {

std::map<std::string, std::string> figure_svgs(const PageInput& input) {
  std::map<std::string, std::string> files;
  for (const auto& figure : run_figures(input.runs, compare(input.runs))) {
    files[figure.name] =
        standalone_svg(std::visit([](const auto& plot) { return svg_of(plot); }, figure.figure));
  }
  return files;
}

}  // namespace kelvin
