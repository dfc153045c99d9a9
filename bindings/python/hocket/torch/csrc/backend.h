/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h - torch.distributed's backend "hocket": a c10d::Backend on Hocket's interface.
 * Each group of torch's is a group of Hocket's of its own.
 *
 *	types.h		types and operations
 *	check.h		what tensors have to be
 *	meet.h		how ranks find each other
 *	engine.h	who moves operations on
 *	peer.h		sends and receives
 *	launch.h	from a call with tensors to calls with memory
 *	many.h		several operations as one
 *	recorder.h	the last operations, for torch's own tools
 */
#ifndef HOCKET_TORCH_BACKEND_H
#define HOCKET_TORCH_BACKEND_H

#include "check.h"
#include "engine.h"
#include "launch.h"
#include "many.h"
#include "meet.h"
#include "peer.h"
#include "recorder.h"
#include "types.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <numeric>

namespace hocket {

using c10d::OpType;

struct BackendOptions : c10d::Backend::Options {
	explicit BackendOptions(std::chrono::milliseconds timeout)
		: Options("hocket", timeout)
	{
	}
	/* As struct hk_group_opts has them; "", false: from the environment. */
	std::string net, iface, fabric, gpu;
	bool check = false, encrypt = false;
};

class HocketBackend : public CheckedBackend
{
public:
	HocketBackend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
		      const c10::intrusive_ptr<BackendOptions> &options,
		      std::vector<uint64_t> ranks)
		: CheckedBackend(rank, size), store_(store), options_(options),
		  ranks_(std::move(ranks))
	{
		if (ranks_.empty()) { /* the default group */
			ranks_.resize(size);
			std::iota(ranks_.begin(), ranks_.end(), 0);
		}
		recorder_.name(ranks_.at(rank));
		seat_.rank = rank;
		seat_.timeout_ns = seat_.usual_ns = timeout_ns(options->timeout);
		seat_.stream = [this](c10::Device device) { return stream_of(device); };
		open();
		init();
	}

	~HocketBackend() override
	{
		if (seat_.engine)
			Engine::close(seat_.engine);
	}

	const std::string getBackendName() const override
	{
		return "hocket";
	}
	c10::intrusive_ptr<Options> getBackendOptions() override
	{
		return options_;
	}

	/* ---- collectives ---- */

	Result allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) override
	{
		const at::Tensor &tensor = one("all_reduce", tensors);

		if (tensor.is_sparse())
			return allreduce_sparse(tensors, opts);
		Launch launch(next(), OpType::ALLREDUCE, "hocket:all_reduce", tensors, tensors,
			      when_of(opts));
		add_allreduce(launch, tensor, opts.reduceOp);
		return done(launch.go());
	}

	Result allreduce_coalesced(Tensors &tensors,
				   const c10d::AllreduceCoalescedOptions &opts) override
	{
		Launch launch(next(), OpType::ALLREDUCE_COALESCED, "hocket:all_reduce", tensors,
			      tensors, when_of(opts));

		for (const at::Tensor &tensor : tensors)
			add_allreduce(launch, tensor, opts.reduceOp);
		return done(launch.go());
	}

	Result broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override
	{
		const at::Tensor &tensor = one("broadcast", tensors);
		uint32_t root = rank_of("broadcast", opts.rootRank);
		Launch launch(next(), OpType::BROADCAST, "hocket:broadcast", tensors, tensors,
			      when_of(opts));
		Elements elements = elements_moved(tensor);
		at::Tensor memory = launch.inout(tensor);
		void *at = launch.at(memory);
		uint64_t count = memory.numel() * elements.each;

		launch.call([=](struct hk_group *group, const struct hk_opts *o) {
			return hk_broadcast(group, at, at, count, elements.type, root, o);
		});
		return done(launch.go());
	}

	Result reduce(Tensors &tensors, const c10d::ReduceOptions &opts) override
	{
		const at::Tensor &tensor = one("reduce", tensors);
		uint32_t root = rank_of("reduce", opts.rootRank);
		Launch launch(next(), OpType::REDUCE, "hocket:reduce", tensors, tensors,
			      when_of(opts));
		Elements elements = elements_reduced("reduce", tensor);
		Reduction reduction("reduce", opts.reduceOp, tensor);
		bool is_root = root == static_cast<uint32_t>(rank_);
		at::Tensor memory = is_root ? launch.inout(tensor) : launch.in(tensor);
		void *at = launch.at(memory);
		uint64_t count = memory.numel() * elements.each;

		launch.reduces(reduction);
		launch.call([=, op = reduction.op](struct hk_group *group, const struct hk_opts *o) {
			return hk_reduce(group, at, is_root ? at : nullptr, count, elements.type,
					 op, root, o);
		});
		return done(launch.go());
	}

	Result allgather(std::vector<Tensors> &outputs, Tensors &inputs,
			 const c10d::AllgatherOptions &opts) override
	{
		const at::Tensor &input = one("all_gather", inputs);
		const Tensors &list = one_list("all_gather", outputs);
		Launch launch(next(), OpType::ALLGATHER, "hocket:all_gather", inputs, list,
			      when_of(opts));

		add_allgather_list(launch, list, input);
		return done(launch.go());
	}

	Result allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
				   const c10d::AllgatherOptions &opts) override
	{
		std::vector<Tensors> lists(inputs.size());
		Tensors all;

		TORCH_CHECK_VALUE(outputs.size() == inputs.size() || outputs.size() ==
							static_cast<size_t>(size_),
				  "hocket: all_gather_coalesced: ", outputs.size(), " lists for ",
				  inputs.size(), " tensors");
		/* Lists by rank, as torch has them here: list r has the tensors of rank r. */
		for (size_t i = 0; i < inputs.size(); i++) {
			for (const Tensors &of_rank : outputs)
				lists[i].push_back(of_rank.at(i));
			all.insert(all.end(), lists[i].begin(), lists[i].end());
		}
		Launch launch(next(), OpType::ALLGATHER_COALESCED, "hocket:all_gather", inputs, all,
			      when_of(opts));
		for (size_t i = 0; i < inputs.size(); i++)
			add_allgather_list(launch, lists[i], inputs[i]);
		return done(launch.go());
	}

	Result _allgather_base(at::Tensor &output, at::Tensor &input,
			       const c10d::AllgatherOptions &opts) override
	{
		Tensors ins{ input }, outs{ output };
		Launch launch(next(), OpType::_ALLGATHER_BASE, "hocket:_all_gather_base", ins, outs,
			      when_of(opts));

		add_allgather(launch, output, input);
		return done(launch.go());
	}

	Result allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
					       const c10d::AllgatherOptions &opts) override
	{
		Launch launch(next(), OpType::COALESCED, "hocket:all_gather_into_tensor", inputs,
			      outputs, when_of(opts));

		check_pairs("all_gather_into_tensor_coalesced", outputs, inputs);
		for (size_t i = 0; i < inputs.size(); i++)
			add_allgather(launch, outputs[i], inputs[i]);
		return done(launch.go());
	}

	Result gather(std::vector<Tensors> &outputs, Tensors &inputs,
		      const c10d::GatherOptions &opts) override
	{
		const at::Tensor &input = one("gather", inputs);
		uint32_t root = rank_of("gather", opts.rootRank);
		bool is_root = root == static_cast<uint32_t>(rank_);
		Tensors list;

		if (is_root)
			list = blocks("gather", one_list("gather", outputs), input);
		else
			TORCH_CHECK_VALUE(outputs.empty() || outputs[0].empty(),
					  "hocket: gather: rank ", rank_,
					  " is not the root, but has a list for the result");
		for (const at::Tensor &tensor : list)
			TORCH_CHECK_VALUE(tensor.numel() == input.numel(), "hocket: gather: the list ",
					  "has a tensor of ", tensor.numel(), " elements, ",
					  input.numel(), " are gathered from each rank");
		Launch launch(next(), OpType::GATHER, "hocket:gather", inputs, list, when_of(opts));
		Elements elements = elements_moved(input);
		void *out = is_root ? launch.at(launch.parted(list)) : nullptr;
		void *in = launch.at(launch.in(input));
		uint64_t count = input.numel() * elements.each;

		launch.call([=](struct hk_group *group, const struct hk_opts *o) {
			return hk_gather(group, in, out, count, elements.type, root, o);
		});
		return done(launch.go());
	}

	Result scatter(Tensors &outputs, std::vector<Tensors> &inputs,
		       const c10d::ScatterOptions &opts) override
	{
		const at::Tensor &output = one("scatter", outputs);
		uint32_t root = rank_of("scatter", opts.rootRank);
		bool is_root = root == static_cast<uint32_t>(rank_);
		Tensors list;

		if (is_root)
			list = blocks("scatter", one_list("scatter", inputs), output);
		else
			TORCH_CHECK_VALUE(inputs.empty() || inputs[0].empty(),
					  "hocket: scatter: rank ", rank_,
					  " is not the root, but has a list to scatter");
		for (const at::Tensor &tensor : list)
			TORCH_CHECK_VALUE(tensor.numel() == output.numel(), "hocket: scatter: the ",
					  "list has a tensor of ", tensor.numel(), " elements, ",
					  output.numel(), " go to each rank");
		Launch launch(next(), OpType::SCATTER, "hocket:scatter", list, outputs,
			      when_of(opts));
		Elements elements = elements_moved(output);
		void *in = is_root ? launch.at(launch.joined(list)) : nullptr;
		void *out = launch.at(launch.out(output));
		uint64_t count = output.numel() * elements.each;

		launch.call([=](struct hk_group *group, const struct hk_opts *o) {
			return hk_scatter(group, in, out, count, elements.type, root, o);
		});
		return done(launch.go());
	}

	Result reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
			      const c10d::ReduceScatterOptions &opts) override
	{
		const at::Tensor &output = one("reduce_scatter", outputs);
		const Tensors &list =
			blocks("reduce_scatter", one_list("reduce_scatter", inputs), output);
		Launch launch(next(), OpType::REDUCE_SCATTER, "hocket:reduce_scatter", list, outputs,
			      when_of(opts));
		Elements elements = elements_reduced("reduce_scatter", output);
		Reduction reduction("reduce_scatter", opts.reduceOp, output);
		enum hk_redop op = reduction.op;
		void *in = launch.at(launch.joined(list)), *out = launch.at(launch.out(output));

		check_own("reduce_scatter", list, output);
		launch.reduces(reduction);
		if (!equal(list)) {
			const uint64_t *counts = launch.counts(counts_of(list, elements));
			launch.call([=](struct hk_group *group, const struct hk_opts *o) {
				return hk_reducescatterv(group, in, out, counts, elements.type, op,
							 o);
			});
			return done(launch.go());
		}
		uint64_t count = output.numel() * elements.each;
		launch.call([=](struct hk_group *group, const struct hk_opts *o) {
			return hk_reducescatter(group, in, out, count, elements.type, op, o);
		});
		return done(launch.go());
	}

	Result _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
				    const c10d::ReduceScatterOptions &opts) override
	{
		Tensors ins{ input }, outs{ output };
		Launch launch(next(), OpType::_REDUCE_SCATTER_BASE, "hocket:_reduce_scatter_base",
			      ins, outs, when_of(opts));

		add_reduce_scatter(launch, output, input, opts.reduceOp);
		return done(launch.go());
	}

	Result reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
					       const c10d::ReduceScatterOptions &opts) override
	{
		Launch launch(next(), OpType::COALESCED, "hocket:reduce_scatter_tensor", inputs,
			      outputs, when_of(opts));

		check_pairs("reduce_scatter_tensor_coalesced", outputs, inputs);
		for (size_t i = 0; i < inputs.size(); i++)
			add_reduce_scatter(launch, outputs[i], inputs[i], opts.reduceOp);
		return done(launch.go());
	}

	Result alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &out_splits,
			     std::vector<int64_t> &in_splits,
			     const c10d::AllToAllOptions &opts) override
	{
		Tensors ins{ input }, outs{ output };
		Launch launch(next(), OpType::ALLTOALL_BASE, "hocket:all_to_all", ins, outs,
			      when_of(opts));
		Elements elements = elements_moved(input);

		check_type("all_to_all", output, input);
		void *in = launch.at(launch.in(input)), *out = launch.at(launch.out(output));
		if (in_splits.empty() && out_splits.empty()) {
			TORCH_CHECK_VALUE(input.numel() == output.numel() &&
						  input.numel() % size_ == 0,
					  "hocket: all_to_all: ", input.numel(), " elements in and ",
					  output.numel(), " out are not ", size_, " equal blocks");
			uint64_t count = input.numel() / size_ * elements.each;
			launch.call([=](struct hk_group *group, const struct hk_opts *o) {
				return hk_alltoall(group, in, out, count, elements.type, o);
			});
			return done(launch.go());
		}
		const uint64_t *to = launch.counts(splits(input, in_splits, elements));
		const uint64_t *from = launch.counts(splits(output, out_splits, elements));
		launch.call([=](struct hk_group *group, const struct hk_opts *o) {
			return hk_alltoallv(group, in, to, out, from, elements.type, o);
		});
		return done(launch.go());
	}

	Result alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts) override
	{
		TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(size_) &&
					  inputs.size() == static_cast<size_t>(size_),
				  "hocket: all_to_all: lists of ", inputs.size(), " and ",
				  outputs.size(), " tensors among ", size_, " ranks");
		Launch launch(next(), OpType::ALLTOALL, "hocket:all_to_all", inputs, outputs,
			      when_of(opts));
		Elements elements = elements_moved(inputs[0]);

		for (const at::Tensor &tensor : inputs)
			check_type("all_to_all", tensor, inputs[0]);
		for (const at::Tensor &tensor : outputs)
			check_type("all_to_all", tensor, inputs[0]);
		void *in = launch.at(launch.joined(inputs)), *out = launch.at(launch.parted(outputs));
		const uint64_t *to = launch.counts(counts_of(inputs, elements));
		const uint64_t *from = launch.counts(counts_of(outputs, elements));
		launch.call([=](struct hk_group *group, const struct hk_opts *o) {
			return hk_alltoallv(group, in, to, out, from, elements.type, o);
		});
		return done(launch.go());
	}

	Result barrier(const c10d::BarrierOptions &opts) override
	{
		Launch launch(next(), OpType::BARRIER, "hocket:barrier", {}, {}, when_of(opts));

		launch.call([](struct hk_group *group, const struct hk_opts *o) {
			return hk_barrier(group, o);
		});
		return done(launch.go());
	}

	/* By the store: rank 0 learns who does not come, and the group does not fail of it. */
	void monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks) override
	{
		auto timeout = opts.timeout == c10d::kUnsetTimeout ? options_->timeout : opts.timeout;
		std::string key = "hocket/monitored/" + std::to_string(monitored_++) + "/";

		store_->set(key + std::to_string(rank_), bytes_of("here"));
		if (rank_ == 0)
			monitored_lead(store_, size_, key, timeout, wait_all_ranks);
		else
			monitored_follow(store_, rank_, key, timeout);
	}

	/* ---- point to point ---- */

	Result send(Tensors &tensors, int peer, int tag) override
	{
		const at::Tensor &tensor = one("send", tensors);
		uint32_t to = rank_of("send", peer);

		if (!tensor.is_cpu())
			return transfer_stream("hocket:send", OpType::SEND, tensors, to, tag);
		at::Tensor memory = tensor.contiguous();
		auto work = peer_work(OpType::SEND, "hocket:send", tensors, memory, tag, peer);
		seat_.engine->submit(work, [&](struct hk_group *) { work->send(to); });
		return done(work);
	}

	Result recv(Tensors &tensors, int peer, int tag) override
	{
		const at::Tensor &tensor = one("recv", tensors);
		uint32_t from = rank_of("recv", peer);

		if (!tensor.is_cpu())
			return transfer_stream("hocket:recv", OpType::RECV, tensors, from, tag);
		at::Tensor memory = room_for(tensor);
		auto work = peer_work(OpType::RECV, "hocket:recv", tensors, memory, tag, peer);
		seat_.engine->submit(work, [&](struct hk_group *) { work->receive(from); });
		return done(work);
	}

	Result recvAnysource(Tensors &tensors, int tag) override
	{
		const at::Tensor &tensor = one("recv", tensors);

		TORCH_CHECK_VALUE(tensor.is_cpu(), "hocket: recv from any rank: only into memory of ",
				  "the host; name the rank, or receive into a CPU tensor");
		at::Tensor memory = room_for(tensor);
		auto work = peer_work(OpType::RECVANYSOURCE, "hocket:recvAnySource", tensors, memory,
				      tag, -1);
		seat_.engine->submit(work, [&](struct hk_group *) { work->receive_any(); });
		return done(work);
	}

	/* ---- several as one ---- */

	bool supportsCoalescing() const override
	{
		return true;
	}
	void startCoalescing() override
	{
		TORCH_CHECK(!coalescing_, "hocket: operations are coalesced already");
		coalescing_ = true;
		coalesced_.clear();
	}
	Result endCoalescing() override
	{
		coalescing_ = false;
		if (batching_) {
			batching_ = false;
			seat_.engine->with_group([this](struct hk_group *group) {
				if (hk_batch_end(group) != HK_OK)
					C10_THROW_ERROR(DistBackendError, seat_.engine->why());
			});
			for (auto &end : ends_)
				end();
			ends_.clear();
		}
		return c10::make_intrusive<ManyWork>(rank_, std::move(coalesced_));
	}

	/* ---- the group ---- */

	void setSequenceNumberForGroup() override
	{
	}
	uint64_t getSequenceNumberForGroup() override
	{
		return seat_.number;
	}
	void setTimeout(std::chrono::milliseconds timeout) override
	{
		options_->timeout = timeout;
		seat_.usual_ns = timeout_ns(timeout);
	}
	bool supportsSplitting() const override
	{
		return true;
	}
	c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store> &store,
					  const std::vector<int> &ranks,
					  const c10::intrusive_ptr<Options> &opts) override
	{
		auto at = std::find(ranks.begin(), ranks.end(), rank_);
		auto given = c10::dynamic_intrusive_pointer_cast<BackendOptions>(opts);

		if (at == ranks.end())
			return nullptr;
		auto options = c10::make_intrusive<BackendOptions>(given ? *given : *options_);
		if (opts)
			options->timeout = opts->timeout;
		return c10::make_intrusive<HocketBackend>(store, static_cast<int>(at - ranks.begin()),
							  static_cast<int>(ranks.size()), options,
							  ranks_of_job(ranks));
	}

	/*
	 * Called by the ranks that stay, who know which ones do not. They meet anew, by the
	 * store: that works whatever has become of the group. Virtual where torch has it.
	 */
	bool supportsShrinking() const
	{
		return true;
	}
	c10::intrusive_ptr<Backend> shrink(const std::vector<int64_t> &excluded, int flags = 0,
					   const c10::intrusive_ptr<Options> &opts = nullptr)
	{
		std::string prefix = "hocket/without";
		std::vector<int> ranks;

		for (int rank = 0; rank < size_; rank++) {
			if (std::find(excluded.begin(), excluded.end(), rank) == excluded.end())
				ranks.push_back(rank);
			else
				prefix += "/" + std::to_string(rank);
		}
		TORCH_CHECK_VALUE(std::find(ranks.begin(), ranks.end(), rank_) != ranks.end(),
				  "hocket: shrink: rank ", rank_, " is one of those to exclude");
		if (flags & 1) /* SHRINK_ABORT */
			abort();
		return split(c10::make_intrusive<c10d::PrefixStore>(prefix, store_), ranks, opts);
	}

	/* The survivors agree on who is gone. */
	std::vector<uint32_t> lost(std::chrono::milliseconds timeout)
	{
		return seat_.engine->with_group([&](struct hk_group *group) {
			struct hk_opts opts = HK_OPTS_INIT;
			std::vector<uint32_t> ranks(size_);

			opts.timeout_ns = timeout_ns(timeout);
			if (hk_group_agree(group, nullptr, &opts) != HK_OK)
				C10_THROW_ERROR(DistBackendError, seat_.engine->why());
			ranks.resize(hk_group_lost(group, ranks.data(), size_));
			return ranks;
		});
	}
	c10d::ErrorType getError() override
	{
		enum hk_status status = seat_.engine->with_group(
			[](struct hk_group *group) { return hk_group_state(group); });

		if (status == HK_OK)
			return c10d::ErrorType::SUCCESS;
		if (status == HK_ETIMEDOUT)
			return c10d::ErrorType::TIMEOUT;
		return status == HK_EPEER || status == HK_EREVOKED ? c10d::ErrorType::REMOTE_ERROR
								   : c10d::ErrorType::COMM_ERROR;
	}
	void abort() override
	{
		seat_.engine->abort();
	}
	void shutdown() override
	{
		Engine::close(seat_.engine);
	}

	/* ---- memory that the other ranks of this host read without a copy ---- */

	bool supportsTensorAlloc(c10::DeviceIndex) override
	{
		return true;
	}
	at::Tensor allocateTensor(long elements, at::TensorOptions options) override
	{
		size_t bytes = elements * options.dtype().itemsize();

		if (!options.device().is_cpu())
			return at::empty({ elements }, options);
		std::shared_ptr<Engine> engine = seat_.engine;
		void *memory = engine->lend(bytes);
		auto give_back = [engine](void *at) { engine->take_back(at); };
		return at::from_blob(memory, { elements }, give_back, options);
	}

private:
	/* ---- opening ---- */

	void open()
	{
		struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
		struct hk_group *group = nullptr, *farewell = nullptr;
		struct hk_why why;
		Meeting meeting = meet(store_, rank_, size_, options_->timeout);

		why.text[0] = '\0';
		opts.address = meeting.place.c_str();
		opts.key = meeting.key.c_str();
		opts.rank = static_cast<uint32_t>(rank_);
		opts.nranks = static_cast<uint32_t>(size_);
		opts.timeout_ns = seat_.timeout_ns;
		opts.net = text_or_null(options_->net);
		opts.iface = text_or_null(options_->iface);
		opts.fabric = text_or_null(options_->fabric);
		opts.gpu = text_or_null(options_->gpu);
		opts.check = options_->check;
		opts.encrypt = options_->encrypt;
		if (hk_group_create(&opts, &why, &group) != HK_OK)
			C10_THROW_ERROR(DistBackendError, c10::str("hocket: ", why.text));
		if (hk_group_dup(group, &farewell) != HK_OK) {
			std::string text = hk_group_why(group);
			hk_group_free(group);
			C10_THROW_ERROR(DistBackendError, c10::str("hocket: ", text));
		}
		seat_.engine = std::make_shared<Engine>(group, farewell);
	}
	static const char *text_or_null(const std::string &text)
	{
		return text.empty() ? nullptr : text.c_str();
	}

	/* ---- calls ---- */

	const Seat &next()
	{
		seat_.number++;
		if (C10_UNLIKELY(!seat_.group && recorder_.on()))
			recorded();
		return seat_;
	}
	/* Torch names a group after it is made. */
	void recorded()
	{
		auto group = std::make_shared<RecordGroup>();

		group->name = getGroupUid();
		group->desc = getGroupDesc();
		group->ranks = ranks_;
		group->rank = rank_;
		recorder_.know(group);
		seat_.group = group;
	}
	std::vector<uint64_t> ranks_of_job(const std::vector<int> &ranks) const
	{
		std::vector<uint64_t> list;

		for (int rank : ranks)
			list.push_back(ranks_.at(rank));
		return list;
	}
	Result done(Result work)
	{
		if (coalescing_)
			coalesced_.push_back(work);
		return work;
	}
	c10::Stream stream_of(c10::Device device)
	{
		std::lock_guard<std::mutex> hold(streams_lock_);
		auto found = streams_.find(device.index());

		if (found != streams_.end())
			return found->second;
		c10::impl::VirtualGuardImpl impl(device.type());
		c10::Stream stream = impl.getStreamFromGlobalPool(device);
		streams_.emplace(device.index(), stream);
		return stream;
	}

	/* ---- calls of several functions ---- */

	void add_allreduce(Launch &launch, const at::Tensor &tensor, const c10d::ReduceOp &op)
	{
		Elements elements = elements_reduced("all_reduce", tensor);
		Reduction reduction("all_reduce", op, tensor);
		at::Tensor memory = launch.inout(tensor);
		void *at = launch.at(memory);
		uint64_t count = memory.numel() * elements.each;

		launch.reduces(reduction);
		launch.call([=, op = reduction.op](struct hk_group *group, const struct hk_opts *o) {
			return hk_allreduce(group, at, at, count, elements.type, op, o);
		});
	}
	void add_allgather_list(Launch &launch, const Tensors &given, const at::Tensor &input)
	{
		const Tensors &list = blocks("all_gather", given, input);
		Elements elements = elements_moved(input);

		check_own("all_gather", list, input);
		at::Tensor memory = launch.parted(list);
		void *in = launch.at(launch.in(input)), *out = launch.at(memory);
		if (equal(list)) {
			uint64_t count = input.numel() * elements.each;
			launch.call([=](struct hk_group *group, const struct hk_opts *o) {
				return hk_allgather(group, in, out, count, elements.type, o);
			});
			return;
		}
		const uint64_t *counts = launch.counts(counts_of(list, elements));
		launch.call([=](struct hk_group *group, const struct hk_opts *o) {
			return hk_allgatherv(group, in, out, counts, elements.type, o);
		});
	}
	void add_allgather(Launch &launch, const at::Tensor &output, const at::Tensor &input)
	{
		Elements elements = elements_moved(input);

		check_type("all_gather_into_tensor", output, input);
		TORCH_CHECK_VALUE(output.numel() == input.numel() * size_,
				  "hocket: all_gather_into_tensor: the output has ", output.numel(),
				  " elements, ", size_, " ranks have ", input.numel(), " each");
		void *in = launch.at(launch.in(input)), *out = launch.at(launch.out(output));
		uint64_t count = input.numel() * elements.each;
		launch.call([=](struct hk_group *group, const struct hk_opts *o) {
			return hk_allgather(group, in, out, count, elements.type, o);
		});
	}
	void add_reduce_scatter(Launch &launch, const at::Tensor &output, const at::Tensor &input,
				const c10d::ReduceOp &given)
	{
		Elements elements = elements_reduced("reduce_scatter_tensor", output);
		Reduction reduction("reduce_scatter_tensor", given, output);
		enum hk_redop op = reduction.op;

		check_type("reduce_scatter_tensor", output, input);
		TORCH_CHECK_VALUE(input.numel() == output.numel() * size_,
				  "hocket: reduce_scatter_tensor: the input has ", input.numel(),
				  " elements, ", size_, " ranks get ", output.numel(), " each");
		void *in = launch.at(launch.in(input)), *out = launch.at(launch.out(output));
		uint64_t count = output.numel() * elements.each;
		launch.reduces(reduction);
		launch.call([=](struct hk_group *group, const struct hk_opts *o) {
			return hk_reducescatter(group, in, out, count, elements.type, op, o);
		});
	}

	/* ---- point to point ---- */

	c10::intrusive_ptr<PeerWork> peer_work(OpType type, const char *title, const Tensors &tensors,
					       const at::Tensor &memory, int tag, int peer)
	{
		TORCH_CHECK_VALUE(tag >= 0, "hocket: ", title + 7, ": tag ", tag, " is negative");
		TORCH_CHECK_VALUE(tensors[0].layout() == at::kStrided, "hocket: ", title + 7,
				  ": the tensor is not dense");
		PeerWork::Place place = { memory.data_ptr(), memory.nbytes(),
					  static_cast<uint32_t>(tag), seat_.usual_ns };
		auto work = c10::make_intrusive<PeerWork>(place, seat_.engine, rank_, type, title,
							  tensors, seat_.number);
		at::Tensor tensor = tensors[0];

		work->outputs.append(tensors.begin(), tensors.end());
		work->record = next().record(type, title, tensors, tensors, 0, peer);
		work->kept.push_back(memory);
		if (type != OpType::SEND && !tensor.is_contiguous())
			work->after = [tensor, memory] { tensor.copy_(memory); };
		return work;
	}
	/* On device memory; in a batch, sends and receives do not wait for each other. */
	Result transfer_stream(const char *title, OpType type, Tensors &tensors, uint32_t peer,
			       int tag)
	{
		Launch launch(next(), type, title, tensors, tensors, When(), static_cast<int>(peer));
		Elements elements = elements_moved(tensors[0]);
		bool sends = type == OpType::SEND;
		at::Tensor memory = sends ? launch.in(tensors[0]) : launch.out(tensors[0]);
		void *at = launch.at(memory);
		uint64_t count = memory.numel() * elements.each;

		if (coalescing_ && !batching_) {
			seat_.engine->with_group([this](struct hk_group *group) {
				if (hk_batch_begin(group) != HK_OK)
					C10_THROW_ERROR(DistBackendError, seat_.engine->why());
			});
			batching_ = true;
		}
		launch.call([=](struct hk_group *group, const struct hk_opts *given) {
			struct hk_opts o = *given;

			o.tag = static_cast<uint32_t>(tag);
			return sends ? hk_send(group, at, count, elements.type, peer, &o)
				     : hk_recv(group, at, count, elements.type, peer, &o);
		});
		if (batching_)
			return done(launch.go_later(ends_));
		return done(launch.go());
	}

	c10::intrusive_ptr<c10d::Store> store_;
	c10::intrusive_ptr<BackendOptions> options_;
	std::vector<uint64_t> ranks_; /* of the whole job */
	Recorder &recorder_ = Recorder::get();
	Seat seat_ = {};
	uint64_t monitored_ = 0;
	std::mutex streams_lock_;
	std::map<c10::DeviceIndex, c10::Stream> streams_;
	bool coalescing_ = false;
	bool batching_ = false; /* of device memory */
	std::vector<Result> coalesced_;
	std::vector<std::function<void()>> ends_; /* of operations of the batch */
};

} /* namespace hocket */

#endif
