/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - from a call of torch's to calls of Hocket's: tensors become contiguous memory,
 * and results go back where they belong.
 *
 * On the CPU the calls are requests, and their Work ends with them. On a GPU they are
 * enqueued on a stream, beside the caller's: it begins when the caller's stream has come
 * here, and waiting for the Work makes the caller's stream wait. A call that is waited for
 * at once is enqueued on the caller's own stream.
 */
#ifndef HOCKET_TORCH_LAUNCH_H
#define HOCKET_TORCH_LAUNCH_H

#include "engine.h"
#include "types.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <torch/version.h>

#include <dlfcn.h>

#include <new>
#include <optional>
#include <type_traits>

namespace hocket {

/* What the options of a call say of its end. */
struct When {
	bool waits = false; /* the caller waits for it at once */
	uint64_t timeout_ns = 0; /* 0: the group's */
};

/* Before torch 2.8 options do not tell whether the caller waits. */
template <class Opts> auto when_waits(const Opts &opts, int) -> decltype(!opts.asyncOp)
{
	return !opts.asyncOp;
}
template <class Opts> bool when_waits(const Opts &, long)
{
	return false;
}

/* Ten years are as good as for ever, and can be added to any time. */
inline uint64_t timeout_ns(std::chrono::milliseconds timeout)
{
	constexpr int64_t longest_ms = INT64_C(10) * 365 * 86400 * 1000;

	if (timeout.count() <= 0)
		return 0;
	return static_cast<uint64_t>(std::min<int64_t>(timeout.count(), longest_ms)) * 1000000;
}

template <class Opts> When when_of(const Opts &opts)
{
	When when;

	when.waits = when_waits(opts, 0);
	if (opts.timeout != c10d::kUnsetTimeout)
		when.timeout_ns = timeout_ns(opts.timeout);
	return when;
}

/* ---- streams ---- */

/*
 * The CUstream of a stream of torch's. Its headers need those of CUDA; this one function of
 * libc10_cuda does not, and a process that has a CUDA tensor has loaded it.
 */
inline void *stream_handle(const c10::Stream &stream)
{
	using Handle = void *(*)(const c10::Stream *);
	static Handle handle = reinterpret_cast<Handle>([] {
		void *library = dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
		return library ? dlsym(library, "_ZNK3c104cuda10CUDAStream6streamEv") : nullptr;
	}());

	TORCH_CHECK(handle, "hocket: this torch (", TORCH_VERSION, ") does not tell the CUDA ",
		    "stream behind its own: CUDA tensors cannot be used");
	return handle(&stream);
}

/* An operation that was enqueued on a stream. */
class StreamWork : public c10d::Work
{
public:
	StreamWork(int rank, c10d::OpType type, const char *title,
		   const std::vector<at::Tensor> &inputs, std::vector<at::Tensor> outputs_,
		   c10::Device device, uint64_t number)
		: Work(rank, type, title, inputs), outputs(std::move(outputs_)), device_(device),
		  end_(std::make_shared<c10::Event>(device.type())), number_(number)
	{
	}

	std::vector<at::Tensor> outputs;
	uint64_t record = Recorder::NONE;

	/* Everything is enqueued, on this stream. */
	void enqueued(const c10::Stream &stream)
	{
		end_->record(stream);
		Recorder::get().ends_with(record, end_);
		future_ = c10::make_intrusive<c10::ivalue::Future>(
			c10::ListType::create(c10::TensorType::get()),
			std::vector<c10::Device>{ device_ });
		{
			c10::StreamGuard guard(stream); /* whose end the future is */
			future_->markCompleted(c10::IValue(outputs));
		}
		finish();
	}

	bool isCompleted() override
	{
		return end_->query();
	}
	void synchronize() override
	{
		c10::impl::VirtualGuardImpl impl(device_.type());
		end_->block(impl.getStream(device_));
	}
	bool wait(std::chrono::milliseconds = kNoTimeout) override
	{
		synchronize();
		return true;
	}
	std::vector<at::Tensor> result() override
	{
		return outputs;
	}
	uint64_t getSequencenumber() const override
	{
		return number_;
	}
	c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
	{
		return future_;
	}

private:
	const c10::Device device_;
	std::shared_ptr<c10::Event> end_; /* the recorder looks at it, too */
	const uint64_t number_;
	c10::intrusive_ptr<c10::ivalue::Future> future_;
};

/* ---- a call ---- */

/* What a call knows of its group. */
struct Seat {
	std::shared_ptr<Engine> engine;
	int rank;
	uint64_t number;     /* of the operation */
	uint64_t timeout_ns; /* that the group was created with */
	uint64_t usual_ns;   /* of calls that name none */
	/* The stream beside the callers', for a device. */
	std::function<c10::Stream(c10::Device)> stream;
	std::shared_ptr<RecordGroup> group; /* NULL: nothing is recorded */

	uint64_t record(c10d::OpType type, const char *title, const std::vector<at::Tensor> &inputs,
			const std::vector<at::Tensor> &outputs, uint64_t ns, int peer = -1) const
	{
		if (!group)
			return Recorder::NONE;
		return Recorder::get().begin(group, type, title, inputs, outputs,
					     ns ? ns : usual_ns, peer);
	}
};

/* A call to come: a function and what it knows, numbers and addresses; in place. */
class Call
{
public:
	template <class Function> Call(Function function) : run_(run<Function>)
	{
		static_assert(sizeof(Function) <= sizeof(known_));
		static_assert(std::is_trivially_copyable_v<Function>);
		new (known_) Function(function);
	}
	enum hk_status operator()(struct hk_group *group, const struct hk_opts *opts) const
	{
		return run_(known_, group, opts);
	}

private:
	template <class Function>
	static enum hk_status run(const void *known, struct hk_group *group,
				  const struct hk_opts *opts)
	{
		return (*static_cast<const Function *>(known))(group, opts);
	}

	enum hk_status (*run_)(const void *, struct hk_group *, const struct hk_opts *);
	alignas(8) unsigned char known_[64];
};

class Launch
{
public:
	Launch(const Seat &seat, c10d::OpType type, const char *title,
	       const std::vector<at::Tensor> &inputs, const std::vector<at::Tensor> &outputs,
	       When when, int peer = -1)
		: seat_(seat), type_(type), title_(title), inputs_(inputs), when_(when)
	{
		for (const at::Tensor &tensor : inputs)
			check(tensor);
		for (const at::Tensor &tensor : outputs)
			check(tensor);
		record_ = seat.record(type, title, inputs, outputs, when.timeout_ns, peer);
		if (!device_ || device_->is_cpu()) {
			work = c10::make_intrusive<HocketWork>(seat.engine, seat.rank, type, title,
							       inputs, seat.number);
			work->outputs.append(outputs.begin(), outputs.end());
			work->record = record_;
			return;
		}
		outputs_ = outputs;
		c10::impl::VirtualGuardImpl impl(device_->type());
		c10::Stream now = impl.getStream(*device_);
		stream_.emplace(when.waits ? now : seat.stream(*device_));
		if (*stream_ != now) {
			c10::Event here(device_->type());
			here.record(now);
			here.block(*stream_);
		}
		guard_.emplace(*stream_);
	}

	/* ---- memory ---- */

	/* Contiguous, with the tensor's data. */
	at::Tensor in(const at::Tensor &tensor)
	{
		at::NoGradGuard no_grad;

		return tensor.is_contiguous() ? given(tensor) : keep(tensor.contiguous());
	}
	/* Contiguous; what it holds at the end is the tensor's. */
	at::Tensor out(const at::Tensor &tensor)
	{
		if (tensor.is_contiguous())
			return given(tensor);
		at::Tensor memory = keep(at::empty(tensor.sizes(), tensor.options()));
		afterwards([tensor, memory] { tensor.copy_(memory); });
		return memory;
	}
	/* Both. */
	at::Tensor inout(const at::Tensor &tensor)
	{
		if (tensor.is_contiguous())
			return given(tensor);
		at::Tensor memory = in(tensor);
		afterwards([tensor, memory] { tensor.copy_(memory); });
		return memory;
	}
	/* One block behind the other: in place if they are, else copies of them. */
	at::Tensor joined(const std::vector<at::Tensor> &list)
	{
		at::NoGradGuard no_grad;

		if (adjacent(list))
			return keep(list[0]);
		at::Tensor memory = keep(at::empty({ total(list) }, list[0].options()));
		int64_t at = 0;
		for (const at::Tensor &tensor : list) {
			if (tensor.numel())
				memory.narrow(0, at, tensor.numel())
					.view(tensor.sizes())
					.copy_(tensor);
			at += tensor.numel();
		}
		return memory;
	}
	/* The same for blocks to come. */
	at::Tensor parted(const std::vector<at::Tensor> &list)
	{
		if (adjacent(list))
			return keep(list[0]);
		at::Tensor memory = keep(at::empty({ total(list) }, list[0].options()));
		afterwards([list, memory] {
			int64_t at = 0;

			for (const at::Tensor &tensor : list) {
				if (tensor.numel())
					tensor.copy_(memory.narrow(0, at, tensor.numel())
							     .view(tensor.sizes()));
				at += tensor.numel();
			}
		});
		return memory;
	}
	void *at(const at::Tensor &tensor)
	{
		return tensor.defined() ? tensor.data_ptr() : nullptr;
	}
	/* Counts that live as long as the operation. */
	const uint64_t *counts(std::vector<uint64_t> list)
	{
		counts_.push_back(std::make_shared<std::vector<uint64_t>>(std::move(list)));
		auto held = counts_.back();
		afterwards([held] {});
		return held->data();
	}

	/* ---- calls ---- */

	void call(Call call)
	{
		calls_.push_back(call);
	}
	/* Of the calls that follow. */
	void reduces(const Reduction &reduction)
	{
		has_factor_ = reduction.has_factor;
		memcpy(factor_, reduction.factor, sizeof(factor_));
	}

	/* Starts all of it. */
	c10::intrusive_ptr<c10d::Work> go()
	{
		return work ? go_here() : go_stream();
	}

	/* The same in a batch, on a stream: what follows the calls waits until it has ended. */
	c10::intrusive_ptr<c10d::Work> go_later(std::vector<std::function<void()>> &ends)
	{
		auto done = enqueue();

		ends.push_back([done, stream = *stream_, after = std::move(after_)] {
			c10::StreamGuard guard(stream);
			at::NoGradGuard no_grad;

			if (after)
				after();
			done->enqueued(stream);
		});
		return done;
	}

	WorkPtr work; /* NULL: on a stream */

private:
	void check(const at::Tensor &tensor)
	{
		TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "hocket: ", title_ + 7,
				  ": the tensor is ", tensor.layout(), ", not dense");
		TORCH_CHECK_VALUE(!device_ || *device_ == tensor.device(), "hocket: ", title_ + 7,
				  ": tensors on ", *device_, " and on ", tensor.device(),
				  " in one call");
		device_ = tensor.device();
		TORCH_CHECK_VALUE(device_->is_cpu() || device_->is_cuda(), "hocket: ", title_ + 7,
				  ": tensors on ", *device_, " are not supported");
	}
	static int64_t total(const std::vector<at::Tensor> &list)
	{
		int64_t sum = 0;

		for (const at::Tensor &tensor : list)
			sum += tensor.numel();
		return sum;
	}
	static bool adjacent(const std::vector<at::Tensor> &list)
	{
		const char *next = static_cast<const char *>(list[0].data_ptr());

		for (const at::Tensor &tensor : list) {
			if (!tensor.is_contiguous() || tensor.data_ptr() != next)
				return false;
			next += tensor.nbytes();
		}
		return true;
	}
	at::Tensor keep(at::Tensor tensor)
	{
		if (work)
			work->kept.push_back(tensor);
		else if (!when_.waits)
			tensor.record_stream(*stream_);
		return tensor;
	}
	/* The same of the caller, who has it as long as it waits. */
	at::Tensor given(const at::Tensor &tensor)
	{
		return work && when_.waits ? tensor : keep(tensor);
	}
	void afterwards(std::function<void()> what)
	{
		if (!after_) {
			after_ = std::move(what);
			return;
		}
		after_ = [first = std::move(after_), what = std::move(what)] {
			first();
			what();
		};
	}

	/* NULL-like options where the call is as the group expects: its fast way. */
	struct hk_opts options()
	{
		struct hk_opts opts = HK_OPTS_INIT;
		uint64_t ns = when_.timeout_ns ? when_.timeout_ns : seat_.usual_ns;

		opts.timeout_ns = ns == seat_.timeout_ns ? 0 : ns;
		if (has_factor_)
			opts.factor = work ? work->factor : factor_;
		return opts;
	}

	c10::intrusive_ptr<c10d::Work> go_here()
	{
		work->after = std::move(after_);
		memcpy(work->factor, factor_, sizeof(factor_));
		auto start = [this](struct hk_group *group) {
			for (const Call &call : calls_) {
				struct hk_request *request = nullptr;
				struct hk_opts opts = options();

				opts.request = &request;
				enum hk_status status = call(group, &opts);
				if (status == HK_OK)
					work->add(request);
				else
					work->failed(status, seat_.engine->why());
			}
		};
		if (when_.waits)
			seat_.engine->perform(work, start);
		else
			seat_.engine->submit(work, start);
		return work;
	}

	c10::intrusive_ptr<StreamWork> enqueue()
	{
		auto done = c10::make_intrusive<StreamWork>(seat_.rank, type_, title_, inputs_,
							    outputs_, *device_, seat_.number);
		done->record = record_;
		seat_.engine->with_group([this](struct hk_group *group) {
			for (const Call &call : calls_) {
				struct hk_opts opts = options();

				opts.stream = stream_handle(*stream_);
				if (call(group, &opts) != HK_OK)
					C10_THROW_ERROR(DistBackendError, seat_.engine->why());
			}
		});
		return done;
	}

	c10::intrusive_ptr<c10d::Work> go_stream()
	{
		auto done = enqueue();

		if (after_) {
			at::NoGradGuard no_grad;
			after_();
		}
		done->enqueued(*stream_);
		return done;
	}

	const Seat &seat_;
	c10d::OpType type_;
	const char *title_; /* "hocket:" and its name */
	const std::vector<at::Tensor> &inputs_;
	std::vector<at::Tensor> outputs_;
	When when_;
	std::optional<c10::Device> device_;
	std::optional<c10::Stream> stream_;
	std::optional<c10::StreamGuard> guard_;
	std::vector<std::shared_ptr<std::vector<uint64_t>>> counts_;
	c10::SmallVector<Call, 1> calls_;
	std::function<void()> after_;
	uint64_t record_ = Recorder::NONE;
	bool has_factor_ = false;
	unsigned char factor_[8] = { 0 };
};

} /* namespace hocket */

#endif
