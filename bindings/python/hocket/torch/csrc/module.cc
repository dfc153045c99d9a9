/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.cc - what Python sees of the backend. The one file that the C++ compiler is given:
 * hocket.torch builds it against the torch that is there, on first use.
 */
#include "backend.h"

#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
	namespace py = pybind11;
	using hocket::BackendOptions;
	using hocket::HocketBackend;

	module.doc() = "torch.distributed's backend \"hocket\"; hocket.torch builds and loads it";
	py::class_<BackendOptions, c10::intrusive_ptr<BackendOptions>, c10d::Backend::Options>(
		module, "Options")
		.def(py::init([](std::chrono::milliseconds timeout, std::string net,
				 std::string iface, std::string fabric, std::string gpu, bool check,
				 bool encrypt) {
			     auto options = c10::make_intrusive<BackendOptions>(timeout);
			     options->net = std::move(net);
			     options->iface = std::move(iface);
			     options->fabric = std::move(fabric);
			     options->gpu = std::move(gpu);
			     options->check = check;
			     options->encrypt = encrypt;
			     return options;
		     }),
		     py::arg("timeout") = kBackendDefaultTimeout, py::arg("net") = "",
		     py::arg("iface") = "", py::arg("fabric") = "", py::arg("gpu") = "",
		     py::arg("check") = false, py::arg("encrypt") = false)
		.def_readwrite("net", &BackendOptions::net)
		.def_readwrite("iface", &BackendOptions::iface)
		.def_readwrite("fabric", &BackendOptions::fabric)
		.def_readwrite("gpu", &BackendOptions::gpu)
		.def_readwrite("check", &BackendOptions::check)
		.def_readwrite("encrypt", &BackendOptions::encrypt);
	module.def(
		"create",
		[](const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
		   const c10::intrusive_ptr<BackendOptions> &options, std::vector<uint64_t> ranks)
			-> c10::intrusive_ptr<c10d::Backend> {
			return c10::make_intrusive<HocketBackend>(store, rank, size, options,
								  std::move(ranks));
		},
		py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("options"),
		py::arg("ranks"),
		py::call_guard<py::gil_scoped_release>());
	module.def(
		"lost",
		[](const c10::intrusive_ptr<c10d::Backend> &backend,
		   std::chrono::milliseconds timeout) {
			auto own = c10::dynamic_intrusive_pointer_cast<HocketBackend>(backend);
			TORCH_CHECK_TYPE(own, "hocket: the group is of another backend: ",
					 backend->getBackendName());
			return own->lost(timeout);
		},
		py::arg("backend"), py::arg("timeout"), py::call_guard<py::gil_scoped_release>());
	module.def("flight_record", [] { return py::bytes(hocket::Recorder::get().pickled()); });
	module.def("flight_record_place", [] { return hocket::Recorder::get().place(); });
	module.def(
		"finish",
		[](std::chrono::milliseconds patience) { hocket::Engine::finish(patience); },
		py::arg("patience"), py::call_guard<py::gil_scoped_release>());
}
