/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.h - sends and receives between two ranks, and receives from any of them.
 *
 * Hocket receives from a rank that is named. So that torch can receive from whoever sends
 * first, a notice goes ahead of every message, under a tag of its own: how long the message
 * is. The k-th notice of a peer and tag is about its k-th message. A receive from a named
 * rank takes the next notice, and checks it; one from any asks all ranks for a notice, takes
 * the first that comes, and then receives the message. Notices that were asked for and did
 * not come yet stay: the next receive takes them.
 */
#ifndef HOCKET_TORCH_PEER_H
#define HOCKET_TORCH_PEER_H

#include "engine.h"

namespace hocket {

/* Both are below 2^32: torch's tags are positive integers. */
inline uint32_t tag_message(int tag)
{
	return 2 * static_cast<uint32_t>(tag);
}
inline uint32_t tag_notice(int tag)
{
	return 2 * static_cast<uint32_t>(tag) + 1;
}

/* Where a receive into a tensor puts what comes. */
inline at::Tensor room_for(const at::Tensor &tensor)
{
	return tensor.is_contiguous() ? tensor : at::empty(tensor.sizes(), tensor.options());
}

class PeerWork : public HocketWork
{
public:
	struct Place {
		void *at;
		uint64_t bytes;
		uint32_t tag; /* torch's */
		uint64_t timeout_ns;
	};

	template <typename... Args>
	explicit PeerWork(Place place, Args &&...args)
		: HocketWork(std::forward<Args>(args)...), place_(place)
	{
		in_order = false;
	}

	/* ---- with the lock ---- */

	void send(uint32_t peer)
	{
		notice_ = std::make_unique<Notice>();
		notice_->bytes = place_.bytes;
		start(true, peer, tag_notice(place_.tag), &notice_->bytes, sizeof(uint64_t),
		      place_.timeout_ns);
		start(true, peer, tag_message(place_.tag), place_.at, place_.bytes,
		      place_.timeout_ns);
	}

	void receive(uint32_t peer)
	{
		auto asked = engine_->notices.find({ peer, place_.tag });

		source_ = static_cast<int>(peer);
		if (asked == engine_->notices.end()) {
			notice_ = std::make_unique<Notice>();
			start(false, peer, tag_notice(place_.tag), &notice_->bytes,
			      sizeof(uint64_t), place_.timeout_ns);
		} else {
			notice_ = std::move(asked->second);
			engine_->notices.erase(asked);
			add(notice_->request);
		}
		start(false, peer, tag_message(place_.tag), place_.at, place_.bytes,
		      place_.timeout_ns);
		expects_ = true;
	}

	/* From whoever sends first. */
	void receive_any()
	{
		any_ = true;
		deadline_ = Clock::now() + std::chrono::nanoseconds(place_.timeout_ns);
		ask();
	}

protected:
	void awaited(std::vector<struct hk_request *> &list) override
	{
		if (!any_) {
			HocketWork::awaited(list);
			return;
		}
		for (auto &entry : engine_->notices) {
			if (entry.first.second == place_.tag)
				list.push_back(entry.second->request);
		}
	}

	bool look() override
	{
		if (any_ && !choose())
			return status_ != HK_OK;
		if (!HocketWork::look())
			return false;
		if (expects_ && status_ == HK_OK && notice_->bytes != place_.bytes)
			failed(HK_EINVAL, c10::str("hocket: rank ", source_, " has sent ",
						   notice_->bytes, " bytes, but the receive is for ",
						   place_.bytes));
		return true;
	}

private:
	static constexpr uint64_t NEVER_NS = UINT64_MAX / 4;

	void start(bool sends, uint32_t peer, uint32_t tag, void *at, uint64_t bytes,
		   uint64_t timeout_ns)
	{
		struct hk_request *request = nullptr;
		struct hk_opts opts = HK_OPTS_INIT;

		opts.tag = tag;
		opts.timeout_ns = timeout_ns;
		opts.request = &request;
		enum hk_status status =
			sends ? hk_send(engine_->group(), at, bytes, HK_TYPE_UINT8, peer, &opts)
			      : hk_recv(engine_->group(), at, bytes, HK_TYPE_UINT8, peer, &opts);
		if (status == HK_OK)
			add(request);
		else
			failed(status, engine_->why());
	}

	/* Every rank is asked for a notice, unless it was, and none has come yet. */
	void ask()
	{
		uint32_t size = hk_group_size(engine_->group());

		for (uint32_t peer = 0; peer < size && status_ == HK_OK; peer++) {
			std::unique_ptr<Notice> &notice = engine_->notices[{ peer, place_.tag }];
			struct hk_opts opts = HK_OPTS_INIT;

			if (notice)
				continue;
			notice = std::make_unique<Notice>();
			opts.tag = tag_notice(place_.tag);
			opts.timeout_ns = NEVER_NS;
			opts.request = &notice->request;
			enum hk_status status = hk_recv(engine_->group(), &notice->bytes,
							sizeof(uint64_t), HK_TYPE_UINT8, peer,
							&opts);
			if (status == HK_OK)
				continue;
			failed(status, engine_->why());
			engine_->notices.erase({ peer, place_.tag });
		}
	}

	/* Takes the first notice that has come; false: none has, or the operation has failed. */
	bool choose()
	{
		ask();
		if (status_ != HK_OK)
			return false;
		for (auto &entry : engine_->notices) {
			if (entry.first.second != place_.tag)
				continue;
			if (hk_request_test(entry.second->request) == HK_INPROGRESS)
				continue;
			any_ = false;
			receive(entry.first.first);
			return true;
		}
		if (Clock::now() >= deadline_)
			failed(HK_ETIMEDOUT,
			       c10::str("hocket: no rank has sent anything with tag ", place_.tag,
					" in ", place_.timeout_ns / 1000000000.0, " s"));
		return false;
	}

	Place place_;
	std::unique_ptr<Notice> notice_;
	bool expects_ = false;
	bool any_ = false;
	Clock::time_point deadline_;
};

} /* namespace hocket */

#endif
