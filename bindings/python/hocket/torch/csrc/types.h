/* SPDX-License-Identifier: Apache-2.0 */
/* types.h - which type and operation of Hocket stands for which of torch's. */
#ifndef HOCKET_TORCH_TYPES_H
#define HOCKET_TORCH_TYPES_H

#include <hocket/hocket.h>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include <cstring>

namespace hocket {

/* Elements as Hocket counts them: a complex number is two real ones. */
struct Elements {
	enum hk_type type;
	uint64_t each; /* of one element of the tensor */
};

/* For data that is moved only, any type of its size will do. */
inline Elements elements_moved(const at::Tensor &tensor)
{
	switch (tensor.element_size()) {
	case 1:
		return { HK_TYPE_UINT8, 1 };
	case 2:
		return { HK_TYPE_UINT16, 1 };
	case 4:
		return { HK_TYPE_UINT32, 1 };
	case 8:
		return { HK_TYPE_UINT64, 1 };
	default:
		return { HK_TYPE_UINT8, static_cast<uint64_t>(tensor.element_size()) };
	}
}

inline Elements elements_reduced(const char *name, const at::Tensor &tensor)
{
	switch (tensor.scalar_type()) {
	case at::kBool:
	case at::kByte:
		return { HK_TYPE_UINT8, 1 };
	case at::kChar:
		return { HK_TYPE_INT8, 1 };
	case at::kShort:
		return { HK_TYPE_INT16, 1 };
	case at::kUInt16:
		return { HK_TYPE_UINT16, 1 };
	case at::kInt:
		return { HK_TYPE_INT32, 1 };
	case at::kUInt32:
		return { HK_TYPE_UINT32, 1 };
	case at::kLong:
		return { HK_TYPE_INT64, 1 };
	case at::kUInt64:
		return { HK_TYPE_UINT64, 1 };
	case at::kHalf:
		return { HK_TYPE_FP16, 1 };
	case at::kBFloat16:
		return { HK_TYPE_BF16, 1 };
	case at::kFloat8_e4m3fn:
		return { HK_TYPE_FP8E4M3, 1 };
	case at::kFloat8_e5m2:
		return { HK_TYPE_FP8E5M2, 1 };
	case at::kFloat:
		return { HK_TYPE_FP32, 1 };
	case at::kDouble:
		return { HK_TYPE_FP64, 1 };
	case at::kComplexHalf:
		return { HK_TYPE_FP16, 2 };
	case at::kComplexFloat:
		return { HK_TYPE_FP32, 2 };
	case at::kComplexDouble:
		return { HK_TYPE_FP64, 2 };
	default:
		TORCH_CHECK_TYPE(false, "hocket: ", name, ": elements of type ",
				 tensor.scalar_type(), " cannot be reduced: convert the tensor");
	}
}

/*
 * An operation, with the factor of a premulsum. Numbers of 0 and 1 in bytes are what
 * booleans are: a sum of them is a logical or, as with NCCL, and never 2.
 */
class Reduction
{
public:
	enum hk_redop op;
	bool has_factor = false;

	Reduction(const char *name, const c10d::ReduceOp &given, const at::Tensor &tensor)
	{
		bool is_bool = tensor.scalar_type() == at::kBool;

		TORCH_CHECK_TYPE(!tensor.is_complex() || c10d::isComplexViewAsRealAllowed(given),
				 "hocket: ", name, ": complex numbers have a sum and an average, ",
				 "no other operation");
		switch (given.op_) {
		case c10d::ReduceOp::SUM:
			op = is_bool ? HK_REDOP_MAX : HK_REDOP_SUM;
			break;
		case c10d::ReduceOp::AVG:
			TORCH_CHECK_TYPE(!is_bool, "hocket: ", name,
					 ": booleans have no average");
			op = HK_REDOP_AVG;
			break;
		case c10d::ReduceOp::PRODUCT:
			op = is_bool ? HK_REDOP_MIN : HK_REDOP_PROD;
			break;
		case c10d::ReduceOp::MIN:
			op = HK_REDOP_MIN;
			break;
		case c10d::ReduceOp::MAX:
			op = HK_REDOP_MAX;
			break;
		case c10d::ReduceOp::BAND:
			op = HK_REDOP_BAND;
			break;
		case c10d::ReduceOp::BOR:
			op = HK_REDOP_BOR;
			break;
		case c10d::ReduceOp::BXOR:
			op = HK_REDOP_BXOR;
			break;
		case c10d::ReduceOp::PREMUL_SUM:
			TORCH_CHECK_TYPE(!is_bool, "hocket: ", name,
					 ": booleans cannot be multiplied by a factor");
			op = HK_REDOP_PREMULSUM;
			take_factor(given, tensor);
			break;
		default:
			TORCH_CHECK_VALUE(false, "hocket: ", name, ": no such operation: ",
					  static_cast<int>(given.op_));
		}
	}

	/* One element, as hk_opts.factor wants it. */
	alignas(8) unsigned char factor[8] = { 0 };

private:
	template <typename T> void put(T value)
	{
		static_assert(sizeof(value) <= sizeof(factor));
		memcpy(factor, &value, sizeof(value));
	}

	void take_factor(const c10d::ReduceOp &given, const at::Tensor &tensor)
	{
		auto *supplement =
			dynamic_cast<c10d::NCCLPreMulSumSupplement *>(given.supplement_.get());

		TORCH_CHECK_VALUE(supplement, "hocket: PREMUL_SUM without a factor: make it by "
					      "torch.distributed._make_nccl_premul_sum");
		bool is_tensor = supplement->tensor_factor.defined();
		double real = is_tensor ? supplement->tensor_factor.item<double>()
					: supplement->double_factor;
		int64_t whole = is_tensor ? supplement->tensor_factor.item<int64_t>()
					  : static_cast<int64_t>(supplement->double_factor);
		has_factor = true;
		switch (elements_reduced("premulsum", tensor).type) {
		case HK_TYPE_FP64:
			put(real);
			break;
		case HK_TYPE_FP32:
		case HK_TYPE_FP16:
		case HK_TYPE_BF16:
		case HK_TYPE_FP8E4M3:
		case HK_TYPE_FP8E5M2:
			put(static_cast<float>(real));
			break;
		default:
			put(whole); /* the low bytes are the number in every width */
		}
	}
};

} /* namespace hocket */

#endif
