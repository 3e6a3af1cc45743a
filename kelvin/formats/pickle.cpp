#include "kelvin/formats/pickle.h"

#include <map>
#include <utility>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/formats/cifar.h"
#include "kelvin/formats/pickle_literals.h"

namespace kelvin {
namespace {

constexpr int kMostProtocol = 5;
// CIFAR-100 pushes some 200 000 values; without a limit each byte of a file could claim a hundred.
constexpr size_t kMostPushes = size_t{1} << 20;

// Python's stack machine, without the opcodes that run code.
class PickleMachine {
 public:
  PickleMachine(PickleInput& input, const PickleNames& names) : input_(input), names_(names) {}

  Pickle run() {
    for (auto opcode = input_.opcode(); opcode != '.'; opcode = input_.opcode()) {
      if (auto literal = pickle_literal(opcode, input_, pickle_)) {
        push(std::move(*literal));
      } else if (!on_container(opcode) && !on_stack(opcode) && !on_memo(opcode) &&
                 !on_object(opcode)) {
        fail(": opcode ", static_cast<int>(opcode), " is refused: it makes no plain value");
      }
    }
    pickle_.set_root(pop());
    if (!stack_.empty() || !marks_.empty()) fail(": values are left over at the end");
    return std::move(pickle_);
  }

 private:
  // Apart from check(), so that nothing is put together for a message that is not needed.
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    check(false, input_.here(), parts...);
    __builtin_unreachable();
  }

  void count_pushes(size_t count) {
    pushes_ += count;
    if (pushes_ > kMostPushes) fail(": must have at most ", kMostPushes, " values");
  }

  void push_place(size_t place) {
    count_pushes(1);
    stack_.push_back(place);
  }

  void push(PickleValue value) { push_place(pickle_.add(std::move(value))); }

  size_t top() const {
    const auto floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) fail(": the stack is empty");
    return stack_.back();
  }

  size_t pop() {
    const auto place = top();
    stack_.pop_back();
    return place;
  }

  std::vector<size_t> pop_last(size_t count) {
    std::vector<size_t> items(count);
    for (size_t i = count; i-- > 0;) items.at(i) = pop();
    return items;
  }

  // What was pushed since the last mark.
  std::vector<size_t> pop_marked() {
    if (marks_.empty()) fail(": there is no mark on the stack");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<size_t> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  // Puts values into the list or dict on top of the stack.
  void extend(PickleKind kind, const std::vector<size_t>& items) {
    auto& target = pickle_.at(top());
    if (target.kind == PickleKind::object) return;  // holds nothing
    if (target.kind != kind) {
      fail(": must have a ", kind == PickleKind::list ? "list" : "dict", " to put values into");
    }
    if (kind == PickleKind::dict && items.size() % 2 != 0) {
      fail(": a dict must have a value for each key");
    }
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  // Each of the following says whether the opcode is one of its own.

  bool on_container(uint8_t opcode) {
    switch (opcode) {
      case ']':
        push({.kind = PickleKind::list});
        return true;
      case ')':
        push({.kind = PickleKind::tuple});
        return true;
      case '}':
        push({.kind = PickleKind::dict});
        return true;
      case 'l':
        push({.kind = PickleKind::list, .items = pop_marked()});
        return true;
      case 't':
        push({.kind = PickleKind::tuple, .items = pop_marked()});
        return true;
      case 0x85:
      case 0x86:
      case 0x87:
        push({.kind = PickleKind::tuple, .items = pop_last(opcode - 0x84U)});
        return true;
      case 'd': {
        const auto items = pop_marked();
        push({.kind = PickleKind::dict});
        extend(PickleKind::dict, items);
        return true;
      }
      case 'a':
        extend(PickleKind::list, pop_last(1));
        return true;
      case 'e':
        extend(PickleKind::list, pop_marked());
        return true;
      case 's':
        extend(PickleKind::dict, pop_last(2));
        return true;
      case 'u':
        extend(PickleKind::dict, pop_marked());
        return true;
      case 0x8f:  // a set; of use for nothing we read, but no code either
        push({.kind = PickleKind::list});
        return true;
      case 0x90:
        extend(PickleKind::list, pop_marked());
        return true;
      case 0x91:
        push({.kind = PickleKind::list, .items = pop_marked()});
        return true;
      default:
        return false;
    }
  }

  bool on_stack(uint8_t opcode) {
    switch (opcode) {
      case '(':
        count_pushes(1);
        marks_.push_back(stack_.size());
        return true;
      case '0':
        if (!marks_.empty() && marks_.back() == stack_.size()) {
          marks_.pop_back();
        } else {
          pop();
        }
        return true;
      case '1':
        pop_marked();
        return true;
      case '2':
        push_place(top());
        return true;
      case 0x80: {
        const int protocol = input_.number<uint8_t>();
        if (protocol > kMostProtocol) {
          fail(": protocol must be at most ", kMostProtocol, ", is ", protocol);
        }
        return true;
      }
      case 0x95:  // a frame: a promise of so many bytes
        input_.expect(input_.number<uint64_t>());
        return true;
      default:
        return false;
    }
  }

  bool on_memo(uint8_t opcode) {
    switch (opcode) {
      case 'p':
        memoize(input_.number_of<uint64_t>(input_.line()));
        return true;
      case 'q':
        memoize(input_.number<uint8_t>());
        return true;
      case 'r':
        memoize(input_.number<uint32_t>());
        return true;
      case 0x94:
        memoize(memo_.size());
        return true;
      case 'g':
        push_place(remembered(input_.number_of<uint64_t>(input_.line())));
        return true;
      case 'h':
        push_place(remembered(input_.number<uint8_t>()));
        return true;
      case 'j':
        push_place(remembered(input_.number<uint32_t>()));
        return true;
      default:
        return false;
    }
  }

  void memoize(uint64_t key) {
    count_pushes(1);
    memo_[key] = top();
  }

  size_t remembered(uint64_t key) const {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail(": value ", key, " is not remembered");
    return found->second;
  }

  bool on_object(uint8_t opcode) {
    switch (opcode) {
      case 'c': {
        const auto module = input_.line();
        push(names_.known(pickle_, module, input_.line(), input_.here()));
        return true;
      }
      case 0x93: {
        const auto parts = pop_last(2);
        push(names_.known(pickle_, text_at(parts.at(0)), text_at(parts.at(1)), input_.here()));
        return true;
      }
      case 'R': {
        const auto parts = pop_last(2);
        // Texts are encoded once each; again and again would be a way to exhaust memory.
        if (pickle_.kept_bytes() > 4 * input_.size()) fail(": holds more text than the file");
        auto value = reduced(pickle_.at(parts.at(0)), pickle_.at(parts.at(1)));
        count_pushes(value.items.size());  // what is copied by each of many calls
        push(std::move(value));
        return true;
      }
      case 0x81:  // class.__new__(class, *arguments), and with named arguments
      case 0x92: {
        const auto parts = pop_last(opcode == 0x81 ? 2 : 3);
        return push_object(parts.front());
      }
      case 'i': {
        const auto module = input_.line();
        push(names_.known(pickle_, module, input_.line(), input_.here()));
        const auto type = pop();
        pop_marked();
        return push_object(type);
      }
      case 'o': {
        const auto parts = pop_marked();
        return !parts.empty() && push_object(parts.front());
      }
      case 'b': {
        const auto state = pop();
        if (pickle_.at(top()).kind == PickleKind::object) return true;
        names_.build(pickle_, top(), pickle_.at(state), input_.here());
        return true;
      }
      case 'Q': {
        auto value = names_.persistent(pickle_, pickle_.at(pop()), input_.here());
        if (!value) return false;
        push(std::move(*value));
        return true;
      }
      default:
        return false;
    }
  }

  // An object of a class that is not known.  Those that are known are made by REDUCE alone.
  bool push_object(size_t type) {
    if (pickle_.at(type).kind != PickleKind::object) return false;
    push({.kind = PickleKind::object, .text = pickle_.at(type).text});
    return true;
  }

  PickleValue reduced(const PickleValue& name, const PickleValue& arguments) {
    if (name.kind == PickleKind::object && arguments.kind == PickleKind::tuple) {
      return {.kind = PickleKind::object, .text = name.text};
    }
    if (name.kind != PickleKind::name || arguments.kind != PickleKind::tuple) {
      fail(": REDUCE must have a name and a tuple");
    }
    return names_.reduced(pickle_, name, arguments, input_.here());
  }

  std::string_view text_at(size_t place) const {
    const auto& value = pickle_.at(place);
    if (value.kind != PickleKind::text) fail(": module and name must be text");
    return value.text;
  }

  PickleInput& input_;
  const PickleNames& names_;
  Pickle pickle_;
  std::vector<size_t> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::map<uint64_t, size_t> memo_;
  size_t pushes_ = 0;
};

}  // namespace

Pickle parse_pickle(std::string_view bytes, const std::string& where) {
  return parse_pickle(bytes, where, numpy_names());
}

Pickle parse_pickle(std::string_view bytes, const std::string& where, const PickleNames& names) {
  PickleInput input(bytes, where);
  auto pickle = take_pickle(input, names);
  check(input.left() == 0, input.here(), ": ", input.left(), " bytes follow the end");
  return pickle;
}

Pickle take_pickle(PickleInput& input, const PickleNames& names) {
  return PickleMachine(input, names).run();
}

}  // namespace kelvin
