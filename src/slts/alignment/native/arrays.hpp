// NumPy arrays as the bindings take them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace slts {

template <class T, int N>
using Array = nanobind::ndarray<T, nanobind::ndim<N>, nanobind::c_contig, nanobind::device::cpu>;

}  // namespace slts
