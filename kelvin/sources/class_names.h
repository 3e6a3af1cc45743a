#pragma once

#include <map>
#include <string>
#include <vector>

namespace kelvin {

// The files of kelvin/sources/classes by their names without extension, compiled in so that the
// tool works from anywhere: a name per line, in the order of the labels.
const std::map<std::string, std::string>& class_lists();

// The names of one of these lists; an Error for a list that is not there.
std::vector<std::string> class_names(const std::string& list);

}  // namespace kelvin
