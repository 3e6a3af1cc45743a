#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kelvin/core/check.h"

namespace kelvin {

// The message of the Error that `action` throws; any other outcome fails the test.
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a kelvin::Error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace kelvin
