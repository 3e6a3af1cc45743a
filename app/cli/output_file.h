#pragma once

#include <filesystem>
#include <string_view>

namespace kelvin {

// What tells a file that kelvin wrote from anybody else's of the same kind.
constexpr std::string_view kMarkOfPage = "<meta name=\"generator\" content=\"kelvin\">";
constexpr std::string_view kMarkOfFigure = "role=\"img\" class=\"figure\">";
constexpr std::string_view kMarkOfPicture("tEXtSoftware\0kelvin", 19);
constexpr std::string_view kMarkOfArrays = "kelvin";  // the comment of the zip
constexpr std::string_view kMarkOfScores = "population,score";

// The one rule of all that is written where a flag says: a path that is free is taken, and a file
// that kelvin wrote as such is replaced; a folder, or a file of somebody else, is an Error.  Asked
// before anything is computed.  The mark is looked for near the beginning, and at the very end.
void check_replaceable(const std::filesystem::path& path, std::string_view mark);

// The same for a file that has to end in `extension` and to lie in a folder that exists.
void check_output_file(const std::filesystem::path& path, std::string_view extension,
                       std::string_view mark);

// The same for all files of scores in a folder, which need not exist.
void check_scores_folder(const std::filesystem::path& folder);

}  // namespace kelvin
