// Python bindings of the window kernel. The caller, models/snippets.py, has checked all arguments.
#pragma once

#include <nanobind/nanobind.h>

namespace slts {

void bind_windows(nanobind::module_& m);

}  // namespace slts
