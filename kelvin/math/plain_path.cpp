#include "kelvin/math/plain_path.h"

namespace kelvin {
namespace {

thread_local bool plain_here = false;

}  // namespace

bool is_plain() { return plain_here; }

PlainScope::PlainScope(bool plain) : was_plain_(plain_here) { plain_here = plain; }

PlainScope::~PlainScope() { plain_here = was_plain_; }

}  // namespace kelvin
