/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many.h - several operations as one: what torch gets for those that it has coalesced.
 */
#ifndef HOCKET_TORCH_MANY_H
#define HOCKET_TORCH_MANY_H

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <utility>
#include <vector>

namespace hocket {

using Tensors = std::vector<at::Tensor>;
using Result = c10::intrusive_ptr<c10d::Work>;

class ManyWork : public c10d::Work
{
public:
	ManyWork(int rank, std::vector<Result> works)
		: Work(rank, c10d::OpType::COALESCED), works_(std::move(works))
	{
	}
	bool isCompleted() override
	{
		for (const Result &work : works_) {
			if (!work->isCompleted())
				return false;
		}
		return true;
	}
	bool isSuccess() const override
	{
		for (const Result &work : works_) {
			if (!work->isSuccess())
				return false;
		}
		return true;
	}
	std::exception_ptr exception() const override
	{
		for (const Result &work : works_) {
			if (work->exception())
				return work->exception();
		}
		return nullptr;
	}
	bool wait(std::chrono::milliseconds timeout = kNoTimeout) override
	{
		for (const Result &work : works_)
			work->wait(timeout);
		return true;
	}
	void synchronize() override
	{
		for (const Result &work : works_)
			work->synchronize();
	}
	Tensors result() override
	{
		Tensors all;

		for (const Result &work : works_) {
			for (const at::Tensor &tensor : work->result())
				all.push_back(tensor);
		}
		return all;
	}
	c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
	{
		c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(
			c10::FutureType::create(c10::ListType::create(c10::TensorType::get())));

		for (const Result &work : works_)
			futures.push_back(work->getFuture());
		return c10::collectAll(futures);
	}

private:
	std::vector<Result> works_;
};

} /* namespace hocket */

#endif
