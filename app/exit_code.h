#pragma once

namespace kelvin {

constexpr int kSuccess = 0;
constexpr int kUserError = 2;       // the user can fix it
constexpr int kInternalError = 70;  // a mistake of ours

}  // namespace kelvin
