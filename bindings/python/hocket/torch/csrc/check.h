/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - what the tensors and ranks of a call have to be, in a group of so many ranks. What
 * is wrong is said before anything is sent.
 */
#ifndef HOCKET_TORCH_CHECK_H
#define HOCKET_TORCH_CHECK_H

#include "types.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <vector>

namespace hocket {

class CheckedBackend : public c10d::Backend
{
protected:
	using Tensors = std::vector<at::Tensor>;
	using c10d::Backend::Backend;

	static const at::Tensor &one(const char *name, const Tensors &tensors)
	{
		TORCH_CHECK_VALUE(tensors.size() == 1, "hocket: ", name, ": ", tensors.size(),
				  " tensors; a rank has one");
		return tensors[0];
	}
	static const Tensors &one_list(const char *name, const std::vector<Tensors> &lists)
	{
		TORCH_CHECK_VALUE(lists.size() == 1, "hocket: ", name, ": ", lists.size(),
				  " lists of tensors; a rank has one");
		return lists[0];
	}
	uint32_t rank_of(const char *name, int64_t rank) const
	{
		TORCH_CHECK_VALUE(rank >= 0 && rank < size_, "hocket: ", name, ": rank ", rank,
				  " is not one of the ", size_, " ranks of the group");
		return static_cast<uint32_t>(rank);
	}
	static void check_type(const char *name, const at::Tensor &a, const at::Tensor &b)
	{
		TORCH_CHECK_TYPE(a.scalar_type() == b.scalar_type(), "hocket: ", name,
				 ": tensors of types ", a.scalar_type(), " and ", b.scalar_type());
	}
	/* A block for each rank. */
	const Tensors &blocks(const char *name, const Tensors &list, const at::Tensor &like) const
	{
		TORCH_CHECK_VALUE(list.size() == static_cast<size_t>(size_), "hocket: ", name, ": a ",
				  "list of ", list.size(), " tensors among ", size_, " ranks");
		for (const at::Tensor &tensor : list)
			check_type(name, tensor, like);
		return list;
	}
	void check_own(const char *name, const Tensors &list, const at::Tensor &own) const
	{
		TORCH_CHECK_VALUE(list[rank_].numel() == own.numel(), "hocket: ", name, ": tensor ",
				  rank_, " of the list has ", list[rank_].numel(),
				  " elements, the tensor of this rank has ", own.numel());
	}
	static void check_pairs(const char *name, const Tensors &outputs, const Tensors &inputs)
	{
		TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "hocket: ", name, ": ",
				  inputs.size(), " inputs and ", outputs.size(), " outputs");
	}
	static bool equal(const Tensors &list)
	{
		for (const at::Tensor &tensor : list) {
			if (tensor.numel() != list[0].numel())
				return false;
		}
		return true;
	}
	static std::vector<uint64_t> counts_of(const Tensors &list, const Elements &elements)
	{
		std::vector<uint64_t> counts;

		for (const at::Tensor &tensor : list)
			counts.push_back(tensor.numel() * elements.each);
		return counts;
	}
	/* Rows of the tensor for each rank, as elements; none are named: equal parts. */
	std::vector<uint64_t> splits(const at::Tensor &tensor, const std::vector<int64_t> &rows,
				     const Elements &elements) const
	{
		int64_t all = tensor.dim() ? tensor.size(0) : 1, sum = 0;
		int64_t row = all ? tensor.numel() / all : 0;
		std::vector<uint64_t> counts;

		TORCH_CHECK_VALUE(rows.empty() ? all % size_ == 0
					       : rows.size() == static_cast<size_t>(size_),
				  "hocket: all_to_all: ", rows.size(), " split sizes of ", all,
				  " rows among ", size_, " ranks");
		for (int rank = 0; rank < size_; rank++) {
			int64_t part = rows.empty() ? all / size_ : rows[rank];

			TORCH_CHECK_VALUE(part >= 0, "hocket: all_to_all: a split size of ", part);
			sum += part;
			counts.push_back(part * row * elements.each);
		}
		TORCH_CHECK_VALUE(sum == all, "hocket: all_to_all: split sizes add up to ", sum,
				  ", the tensor has ", all, " rows");
		return counts;
	}
};

} /* namespace hocket */

#endif
