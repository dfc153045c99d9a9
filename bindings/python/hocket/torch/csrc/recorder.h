/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - the last operations of all groups of this process, for torch's own tools.
 *
 * Torch keeps its FlightRecorder to itself: its library exports no function that records. So
 * there is a ring here, and it is written as torch writes its own, by the same variables.
 * Torch's analyzer knows operations of NCCL alone, by "nccl:" ahead of their names: the file
 * has these names.
 */
#ifndef HOCKET_TORCH_RECORDER_H
#define HOCKET_TORCH_RECORDER_H

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/util/ApproximateClock.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/distributed/c10d/TraceUtils.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hocket {

/* A group, as the records have it. */
struct RecordGroup {
	std::string name, desc;
	std::vector<uint64_t> ranks; /* of the whole job */
	int rank = 0;		     /* of this process in it */
	uint64_t number = 0;	     /* of groups of this process */
	uint64_t collectives = 0, transfers = 0;
};

class Recorder
{
public:
	using Tensors = std::vector<at::Tensor>;
	static constexpr uint64_t NONE = UINT64_MAX;

	/* For ever: threads record until the process is gone. */
	static Recorder &get()
	{
		static Recorder *recorder = new Recorder();
		return *recorder;
	}
	bool on() const
	{
		return size_ > 0;
	}

	/* An operation begins; the answer names it. peer: of a send or receive. */
	uint64_t begin(const std::shared_ptr<RecordGroup> &group, c10d::OpType type, const char *title,
		       const Tensors &inputs, const Tensors &outputs, uint64_t timeout_ns, int peer)
	{
		std::lock_guard<std::mutex> hold(lock_);
		bool transfer = type == c10d::OpType::SEND || type == c10d::OpType::RECV ||
				type == c10d::OpType::RECVANYSOURCE;
		Entry &entry = entries_[next_ % size_];

		(transfer ? group->transfers : group->collectives)++;
		entry.id = next_++;
		if (entry.group != group)
			entry.group = group;
		entry.type = type;
		entry.title = title;
		entry.peer = transfer ? peer : -1;
		entry.transfer = transfer;
		entry.collectives = group->collectives;
		entry.transfers = group->transfers;
		entry.timeout_ms = timeout_ns / 1000000;
		entry.ended = 0;
		entry.retired = false;
		entry.event.reset();
		entry.in.set(inputs, in_blocks(type));
		entry.out.set(outputs, out_blocks(type));
		entry.began = c10::getTime();
		return entry.id;
	}

	/* It is over, well or not. */
	void end(uint64_t id, bool well)
	{
		if (id == NONE)
			return;
		std::lock_guard<std::mutex> hold(lock_);
		Entry &entry = entries_[id % size_];
		if (entry.id != id)
			return;
		entry.retired = true;
		if (well)
			entry.ended = c10::getTime();
	}

	/* It ends with an event of its stream. */
	void ends_with(uint64_t id, const std::shared_ptr<c10::Event> &event)
	{
		if (id == NONE)
			return;
		std::lock_guard<std::mutex> hold(lock_);
		Entry &entry = entries_[id % size_];
		if (entry.id == id)
			entry.event = event;
	}

	/* The rank of this process in the job, by the first group: files are named by it. */
	void name(uint64_t rank)
	{
		std::lock_guard<std::mutex> hold(lock_);

		if (!named_)
			rank_ = rank;
		named_ = true;
	}

	/* A group of this process, until its end. */
	void know(const std::shared_ptr<RecordGroup> &group)
	{
		std::lock_guard<std::mutex> hold(lock_);

		group->number = groups_.size();
		groups_.push_back(group);
	}

	/* All of it, as torch pickles it. */
	std::string pickled()
	{
		std::lock_guard<std::mutex> hold(lock_);
		auto all = c10d::new_dict(), config = c10d::new_dict(), status = c10d::new_dict();
		auto list = c10d::new_list();

		for (const auto &group : groups_) {
			auto one = c10d::new_dict();
			one.insert("name", group->name);
			one.insert("desc", group->desc);
			one.insert("ranks", ranks_text(group->ranks));
			config.insert(group->name, one);
		}
		for (uint64_t id = next_ > size_ ? next_ - size_ : 0; id < next_; id++)
			list.push_back(dict_of(entries_[id % size_]));
		all.insert("version", "2.10");
		all.insert("pg_config", config);
		all.insert("pg_status", status);
		all.insert("comm_lib_version", "hocket");
		all.insert("entries", list);
		return c10d::pickle_str(all);
	}

	/* Where the file is written by default: a prefix, and the rank in the job. */
	std::string place()
	{
		std::string prefix = text_of("TORCH_FR_DUMP_TEMP_FILE",
					     "TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
		return (prefix.empty() ? "/tmp/nccl_trace_rank_" : prefix) + std::to_string(rank_);
	}

	/* An operation has failed: the first time, the file is written, if it is asked for. */
	void failed()
	{
		std::string asked = text_of("TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT");

		if (!on() || asked.empty() || asked == "0" || asked == "false" || asked == "n" ||
		    asked == "no" || written_.exchange(true))
			return;
		std::string file = place();
		std::ofstream out(file, std::ios::binary);
		out << pickled();
		out.close();
		if (!out)
			LOG(ERROR) << "hocket: the flight record cannot be written to " << file;
	}

private:
	/* Types and sizes of tensors. Blocks of all ranks count as one tensor, as with NCCL. */
	struct Shapes {
		c10::SmallVector<int64_t, 8> sizes; /* for each: how many, and they */
		c10::SmallVector<c10::ScalarType, 2> types;

		void set(const Tensors &tensors, bool blocks)
		{
			sizes.clear();
			types.clear();
			if (blocks && !tensors.empty()) {
				int64_t sum = 0;
				for (const at::Tensor &tensor : tensors)
					sum += tensor.numel();
				types.push_back(tensors[0].scalar_type());
				sizes.push_back(1);
				sizes.push_back(sum);
				return;
			}
			for (const at::Tensor &tensor : tensors) {
				types.push_back(tensor.scalar_type());
				sizes.push_back(tensor.dim());
				sizes.append(tensor.sizes().begin(), tensor.sizes().end());
			}
		}
		c10::List<c10::IValue> sizes_list() const
		{
			auto all = c10d::new_list();

			for (size_t i = 0; i < sizes.size(); i += 1 + sizes[i]) {
				auto one = c10d::new_list();
				for (int64_t k = 1; k <= sizes[i]; k++)
					one.push_back(sizes[i + k]);
				all.push_back(one);
			}
			return all;
		}
		std::vector<std::string> type_names() const
		{
			std::vector<std::string> names;

			for (c10::ScalarType type : types)
				names.emplace_back(c10::toString(type));
			return names;
		}
	};

	struct Entry {
		uint64_t id = NONE;
		std::shared_ptr<RecordGroup> group;
		c10d::OpType type = c10d::OpType::UNKNOWN;
		const char *title = "";
		int peer = -1;
		bool transfer = false, retired = false;
		uint64_t collectives = 0, transfers = 0;
		int64_t timeout_ms = 0, began = 0, ended = 0;
		Shapes in, out;
		std::shared_ptr<c10::Event> event;
	};

	/* As many operations as torch's own recorder has. */
	Recorder()
	{
		std::string text = text_of("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE");

		size_ = text.empty() ? 2000 : std::max(0, atoi(text.c_str()));
		entries_.resize(size_);
	}
	static std::string text_of(const char *name, const char *older)
	{
		const char *text = getenv(name);

		if (!text)
			text = getenv(older);
		return text ? text : "";
	}
	/* A list of Python's; torch's own function needs a library that it does not export. */
	static std::string ranks_text(const std::vector<uint64_t> &ranks)
	{
		std::string text;

		for (uint64_t rank : ranks)
			text += (text.empty() ? "" : ", ") + std::to_string(rank);
		return "[" + text + "]";
	}
	static bool in_blocks(c10d::OpType type)
	{
		return type == c10d::OpType::REDUCE_SCATTER || type == c10d::OpType::SCATTER ||
		       type == c10d::OpType::ALLTOALL;
	}
	static bool out_blocks(c10d::OpType type)
	{
		return type == c10d::OpType::ALLGATHER || type == c10d::OpType::GATHER ||
		       type == c10d::OpType::ALLTOALL;
	}

	/* Names that torch's analyzer knows. */
	static std::string name_of(const Entry &entry)
	{
		std::string name = std::string(entry.title).substr(7); /* after "hocket:" */
		std::string self = std::to_string(entry.group->rank);

		if (entry.type == c10d::OpType::SEND)
			return "nccl:send " + self + "->" + std::to_string(entry.peer);
		if (entry.transfer)
			return "nccl:recv " + self + "<-" + std::to_string(entry.peer);
		if (entry.type == c10d::OpType::BARRIER)
			return "nccl:all_reduce_barrier";
		if (entry.type == c10d::OpType::ALLREDUCE_COALESCED)
			return "nccl:allreduce_coalesced";
		if (entry.type == c10d::OpType::COALESCED)
			name += "_coalesced";
		return "nccl:" + name;
	}
	static c10::Dict<c10::IValue, c10::IValue> dict_of(Entry &entry)
	{
		/* Numbers of transfers are not those of collectives: equal ones are one batch. */
		constexpr int64_t apart = INT64_C(1) << 32;
		auto dict = c10d::new_dict();

		if (entry.event && !entry.ended && entry.event->query())
			entry.ended = c10::getTime();
		dict.insert("record_id", static_cast<int64_t>(entry.id));
		dict.insert("pg_id", static_cast<int64_t>(entry.group->number));
		dict.insert("process_group", std::make_tuple(entry.group->name, entry.group->desc));
		dict.insert("collective_seq_id", static_cast<int64_t>(entry.collectives));
		dict.insert("p2p_seq_id", static_cast<int64_t>(entry.transfers) + apart);
		dict.insert("op_id", static_cast<int64_t>(entry.collectives + entry.transfers));
		dict.insert("profiling_name", name_of(entry));
		dict.insert("time_created_ns", entry.began);
		dict.insert("time_discovered_started_ns", entry.began);
		dict.insert("time_discovered_completed_ns",
			    entry.ended ? c10::IValue(entry.ended) : c10::IValue());
		if (entry.ended)
			dict.insert("duration_ms", static_cast<double>(entry.ended - entry.began) / 1e6);
		dict.insert("input_sizes", entry.in.sizes_list());
		dict.insert("input_dtypes", entry.in.type_names());
		dict.insert("output_sizes", entry.out.sizes_list());
		dict.insert("output_dtypes", entry.out.type_names());
		dict.insert("state", entry.ended ? "completed" : "started");
		dict.insert("retired", entry.retired);
		dict.insert("timeout_ms", entry.timeout_ms);
		dict.insert("is_p2p", entry.transfer);
		return dict;
	}

	std::mutex lock_;
	uint64_t size_ = 0; /* 0: nothing is recorded */
	uint64_t next_ = 0;
	uint64_t rank_ = 0; /* in the job */
	bool named_ = false;
	std::vector<Entry> entries_;
	std::vector<std::shared_ptr<RecordGroup>> groups_;
	std::atomic<bool> written_{ false };
};

} /* namespace hocket */

#endif
