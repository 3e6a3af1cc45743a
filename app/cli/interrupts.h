#pragma once

namespace kelvin {

// What happens when the user presses Ctrl-C again because the first time has no effect yet.
enum class SecondInterrupt { exits, is_counted };

// From now on SIGINT, SIGTERM and SIGHUP do not end the process but are counted.
void catch_interrupts(SecondInterrupt second);

int interrupts();

// 128 + the signal's number, as shells report a program that a signal ended.
int interrupt_exit_code();

}  // namespace kelvin
