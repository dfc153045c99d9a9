/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - who moves the operations of a group on.
 *
 * Torch may use a group from any thread, and expects operations to end, and their futures to
 * complete, while nobody waits. Hocket lets one thread at a time use a group. So there is a
 * lock, and one thread at a time *drives*: it waits in Hocket, with the lock held, for
 * whatever operation is over first, and completes those that are.
 *
 *	a thread in Work::wait	drives: no other thread has to run for an operation that is
 *				called and waited for
 *	the worker		drives while operations are pending and nobody waits
 *	who calls something	ends the driver's wait (hk_request_wake), has the lock for a
 *				moment, and gives it back
 *
 * Operations are completed without the lock: their callbacks may call anything.
 */
#ifndef HOCKET_TORCH_ENGINE_H
#define HOCKET_TORCH_ENGINE_H

#include "recorder.h"

#include <hocket/hocket.h>

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hocket {

using Clock = std::chrono::steady_clock;

class Engine;

inline std::exception_ptr failure(const std::string &why)
{
	try {
		C10_THROW_ERROR(DistBackendError, why);
	} catch (...) {
		return std::current_exception();
	}
}

/* An operation: requests, what has to live as long, and what is done when all are over. */
class HocketWork : public c10d::Work
{
public:
	HocketWork(std::shared_ptr<Engine> engine, int rank, c10d::OpType type, const char *title,
		   const std::vector<at::Tensor> &inputs, uint64_t number)
		: Work(rank, type, profiled() ? title : nullptr,
		       profiled() ? std::optional<std::vector<at::Tensor>>(inputs) : std::nullopt),
		  engine_(std::move(engine)), number_(number)
	{
	}

	/* ---- as it is made ---- */

	c10::SmallVector<at::Tensor, 1> outputs; /* of the caller: the value of its future */
	c10::SmallVector<at::Tensor, 2> kept;	 /* inputs, and memory in between */
	std::vector<uint64_t> counts;	 /* of a v form, in and out */
	alignas(8) unsigned char factor[8] = { 0 }; /* of a premulsum */
	std::function<void()> after;	 /* copies results to where they belong */
	bool in_order = true;		 /* a collective: those of a group end in order */
	uint64_t record = Recorder::NONE; /* of torch's kind */

	void add(struct hk_request *request)
	{
		requests_.push_back(request);
	}
	/* The first failure counts. */
	void failed(enum hk_status status, std::string why)
	{
		if (status_ != HK_OK)
			return;
		status_ = status;
		why_ = std::move(why);
	}

	/* ---- as torch sees it ---- */

	bool isCompleted() override;
	bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
	void abort() override;
	void synchronize() override
	{
	}
	std::vector<at::Tensor> result() override
	{
		return std::vector<at::Tensor>(outputs.begin(), outputs.end());
	}
	int sourceRank() const override
	{
		return source_;
	}
	uint64_t getSequencenumber() const override
	{
		return number_;
	}
	c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
	{
		std::lock_guard<std::mutex> hold(future_lock_);

		if (!future_) {
			future_ = c10::make_intrusive<c10::ivalue::Future>(
				c10::ListType::create(c10::TensorType::get()));
			if (ended_)
				future_complete(future_);
		}
		return future_;
	}

protected:
	friend class Engine;

	/* ---- with the engine's lock ---- */

	/* Adds the requests that something may come of. */
	virtual void awaited(std::vector<struct hk_request *> &list)
	{
		if (at_ < requests_.size())
			list.push_back(requests_[at_]);
	}
	/* Looks at them; true: the operation is over. */
	virtual bool look();

	/* ---- without it ---- */

	virtual void complete()
	{
		std::exception_ptr error;

		if (status_ != HK_OK) {
			error = failure(why_);
		} else if (after) {
			try {
				at::NoGradGuard no_grad;
				after();
			} catch (...) {
				error = std::current_exception();
			}
		}
		after = nullptr;
		kept.clear();
		if (record != Recorder::NONE) {
			Recorder::get().end(record, !error);
			if (error)
				Recorder::get().failed();
		}
		c10::intrusive_ptr<c10::ivalue::Future> future;
		{
			std::lock_guard<std::mutex> hold(future_lock_);
			ended_ = true;
			error_ = error;
			future = future_;
		}
		finish(error);
		well_.store(!error, std::memory_order_release); /* pairs with wait */
		if (future)
			future_complete(future);
	}

	/* The same where no other thread has seen it yet: without locks, if all is simple. */
	void complete_unseen()
	{
		if (status_ != HK_OK || after || recordFunctionEndCallback_) {
			complete();
			return;
		}
		kept.clear();
		if (record != Recorder::NONE)
			Recorder::get().end(record, true);
		ended_ = completed_ = true;
		well_.store(true, std::memory_order_release);
	}

	/* Somebody completes it; maybe that takes a while: its copies, or a callback. */
	bool await_end(Clock::time_point deadline)
	{
		std::unique_lock<std::mutex> hold(mutex_);

		if (deadline == Clock::time_point::max())
			cv_.wait(hold, [this] { return completed_; });
		else
			cv_.wait_until(hold, deadline, [this] { return completed_; });
		return completed_;
	}

	std::shared_ptr<Engine> engine_;
	c10::SmallVector<struct hk_request *, 2> requests_;
	size_t at_ = 0;		/* of them: those before are over */
	bool taken_ = false;	/* over, and a thread completes it */
	enum hk_status status_ = HK_OK;
	std::string why_;
	int source_ = -1;

private:
	void future_complete(const c10::intrusive_ptr<c10::ivalue::Future> &future)
	{
		if (error_)
			future->setError(error_);
		else
			future->markCompleted(c10::IValue(result()));
	}
	/* Whether anybody wants to know the names of operations. */
	static bool profiled()
	{
		return at::hasCallbacks();
	}

	const uint64_t number_;
	std::atomic<bool> well_{ false }; /* over, and completed */
	std::mutex future_lock_;
	bool ended_ = false;
	std::exception_ptr error_;
	c10::intrusive_ptr<c10::ivalue::Future> future_;
};

using WorkPtr = c10::intrusive_ptr<HocketWork>;

/* How long a message is, sent ahead of it (peer.h). */
struct Notice {
	uint64_t bytes = 0;
	struct hk_request *request = nullptr;
};

class Engine : public std::enable_shared_from_this<Engine>
{
public:
	/*
	 * Both become the engine's. The second is for taking leave alone: whatever the others
	 * are doing in the first, the two are not confused.
	 */
	Engine(struct hk_group *group, struct hk_group *farewell)
		: group_(group), farewell_(farewell), process_(getpid())
	{
	}
	~Engine()
	{
		if (worker_.joinable())
			worker_.detach(); /* it has no engine any more */
		if (getpid() == process_ && group_)
			release(false);
	}
	Engine(const Engine &) = delete;
	Engine &operator=(const Engine &) = delete;

	/* The lock, for a moment: whoever waits in Hocket is woken. */
	class Hold
	{
	public:
		explicit Hold(Engine &engine) : hold(engine.lock_, std::defer_lock)
		{
			if (hold.try_lock())
				return;
			engine.wanted_.fetch_add(1);
			if (!hold.try_lock()) {
				engine.wake();
				hold.lock();
			}
			engine.wanted_.fetch_sub(1);
		}
		std::unique_lock<std::mutex> hold;
	};

	/* Starts an operation: start(group) makes its requests. The worker sees to its end. */
	template <class Start> void submit(const WorkPtr &work, Start start)
	{
		check_open();
		Hold held(*this);

		check_open();
		start(group_);
		if (work->look()) {
			work->taken_ = true;
			held.hold.unlock();
			work->complete_unseen();
			return;
		}
		pending_.push_back(work);
		if (!worker_.joinable())
			start_worker();
		if (idle_)
			ready_.notify_one();
	}

	/* The same, and waits until it is completed. */
	template <class Start> void perform(const WorkPtr &work, Start start)
	{
		std::optional<Waiter> waiter; /* ends after the lock */
		check_open();
		Hold held(*this);

		check_open();
		start(group_);
		if (work->look()) {
			work->taken_ = true;
			held.hold.unlock();
			work->complete_unseen();
			return;
		}
		waiter.emplace(*this);
		pending_.push_back(work);
		(void)drive_until(held.hold, *work, Clock::time_point::max());
	}

	/* Waits until somebody has completed it, and drives meanwhile; false: no time left. */
	bool await(HocketWork &work, std::chrono::milliseconds timeout)
	{
		auto deadline = timeout.count() > 0 ? Clock::now() + timeout
						    : Clock::time_point::max();
		Waiter waiter(*this);
		Hold held(*this);

		return drive_until(held.hold, work, deadline);
	}

	/* Calls something of Hocket that starts no operation. */
	template <class Call> auto with_group(Call call)
	{
		check_open();
		Hold held(*this);

		check_open();
		return call(group_);
	}

	/* A look, if nobody is in the way. */
	void poke()
	{
		std::unique_lock<std::mutex> hold(lock_, std::try_to_lock);

		if (hold.owns_lock())
			collect(hold);
	}

	/* Operations end, here and on the other ranks, with an error. */
	void abort()
	{
		if (closing_)
			return;
		Hold held(*this);

		if (closing_)
			return;
		(void)!hk_group_revoke(group_);
		collect(held.hold);
	}

	/*
	 * The group is not used any more. A thread takes leave of the other ranks and frees it,
	 * so that ranks may shut groups down in any order.
	 */
	static void close(std::shared_ptr<Engine> engine)
	{
		if (getpid() != engine->process_ || engine->closing_)
			return;
		{
			Hold held(*engine);
			if (engine->closing_)
				return;
			engine->closing_ = true;
			engine->ready_.notify_all();
		}
		leaving().fetch_add(1);
		std::thread([engine = std::move(engine)]() mutable {
			engine->leave();
			engine.reset();
			leaving().fetch_sub(1);
		}).detach();
	}

	/* At the end of the process: waits a little for those who take leave. */
	static void finish(std::chrono::milliseconds patience)
	{
		auto deadline = Clock::now() + patience;

		while (leaving().load() > 0 && Clock::now() < deadline)
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
	}

	/* ---- with the lock ---- */

	struct hk_group *group()
	{
		return group_;
	}
	std::string why()
	{
		return hk_group_why(group_);
	}
	/* By peer and tag: notices that were asked for, and that no receive has taken. */
	std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<Notice>> notices;
	uint32_t lent = 0; /* pieces of the group's memory that tensors have */

	/* Memory of the group for a tensor. */
	void *lend(size_t bytes)
	{
		return with_group([&](struct hk_group *group) {
			void *memory = nullptr;
			enum hk_status status =
				hk_mem_alloc(group, std::max<size_t>(bytes, 1), &memory);

			TORCH_CHECK(status == HK_OK, "hocket: no shared memory for ", bytes,
				    " bytes: ", hk_status_text(status));
			lent++;
			return memory;
		});
	}
	/* Memory of the group that a tensor had; the last one may have outlived its use. */
	void take_back(void *memory)
	{
		if (getpid() != process_)
			return;
		Hold held(*this);

		hk_mem_free(group_, memory);
		if (--lent == 0 && left_)
			release(false);
	}

private:
	static constexpr uint64_t SLICE_NS = 100000000;	     /* of a wait that nobody ends */
	static constexpr uint64_t FAREWELL_NS = 60000000000; /* for the others to leave, too */

	/* A thread that drives, or is about to: the worker does not. */
	class Waiter
	{
	public:
		explicit Waiter(Engine &engine) : engine_(engine)
		{
			engine_.waiters_.fetch_add(1);
		}
		~Waiter()
		{
			if (engine_.waiters_.fetch_sub(1) > 1 || !engine_.idle_.load())
				return;
			std::lock_guard<std::mutex> hold(engine_.lock_);
			if (!engine_.pending_.empty())
				engine_.ready_.notify_one();
		}

	private:
		Engine &engine_;
	};

	static std::atomic<int> &leaving()
	{
		static std::atomic<int> count{ 0 };
		return count;
	}

	/* Before the lock is asked for: who takes leave may have it for long. */
	void check_open()
	{
		TORCH_CHECK(!closing_, "hocket: this group was shut down");
	}

	void wake()
	{
		std::lock_guard<std::mutex> hold(wake_lock_);

		hk_request_wake(group_);
	}

	/* Waits for what is over first of all that is pending. */
	void drive(uint64_t slice_ns)
	{
		uint32_t index;

		list_.clear();
		for (const WorkPtr &work : pending_)
			work->awaited(list_);
		if (list_.size() == 1)
			(void)!hk_request_wait(list_[0], slice_ns);
		else if (!list_.empty())
			(void)!hk_request_wait_any(list_.data(), static_cast<uint32_t>(list_.size()),
						   slice_ns, &index);
	}

	/* Completes what is over, without the lock. */
	void collect(std::unique_lock<std::mutex> &hold)
	{
		std::vector<WorkPtr> done;
		bool in_order = true;

		for (auto at = pending_.begin(); at != pending_.end();) {
			HocketWork &work = **at;

			/* Behind a collective that is not over no other is. */
			if ((!work.in_order || in_order) && work.look()) {
				work.taken_ = true;
				done.push_back(std::move(*at));
				at = pending_.erase(at);
				continue;
			}
			in_order = in_order && !work.in_order;
			++at;
		}
		if (done.empty())
			return;
		hold.unlock();
		for (WorkPtr &work : done) {
			work->complete();
			work.reset();
		}
		hold.lock();
	}

	/* Whoever wants the lock gets it. */
	void give_way(std::unique_lock<std::mutex> &hold)
	{
		hold.unlock();
		do {
			std::this_thread::yield();
		} while (wanted_.load() > 0);
		hold.lock();
	}

	static uint64_t slice_of(Clock::time_point deadline)
	{
		if (deadline == Clock::time_point::max())
			return SLICE_NS;
		auto left = std::chrono::nanoseconds(deadline - Clock::now()).count();
		return left <= 0 ? 0 : std::min(SLICE_NS, static_cast<uint64_t>(left));
	}

	bool drive_until(std::unique_lock<std::mutex> &hold, HocketWork &work,
			 Clock::time_point deadline)
	{
		while (!work.taken_) {
			uint64_t slice = slice_of(deadline);

			if (slice == 0)
				return false;
			drive(slice);
			collect(hold);
			if (!work.taken_)
				give_way(hold);
		}
		hold.unlock();
		return work.await_end(deadline);
	}

	/* ---- the worker ---- */

	void start_worker()
	{
		sigset_t all, before;

		/* Signals are for the threads of the program. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		worker_ = std::thread([engine = std::weak_ptr<Engine>(shared_from_this())] {
			pthread_setname_np(pthread_self(), "hocket-torch");
			for (;;) {
				std::shared_ptr<Engine> held = engine.lock();
				if (!held || !held->turn())
					return;
			}
		});
		pthread_sigmask(SIG_SETMASK, &before, nullptr);
	}

	bool has_work() const
	{
		return !pending_.empty() && waiters_.load() == 0;
	}

	/*
	 * A turn of the worker; false: it ends. What was just called is often waited for at once,
	 * so it comes a moment later than a thread that waits.
	 */
	bool turn()
	{
		std::unique_lock<std::mutex> hold(lock_);

		if (!has_work() && !closing_) {
			idle_ = true;
			ready_.wait_for(hold, std::chrono::milliseconds(500),
					[this] { return closing_ || has_work(); });
			idle_ = false;
			hold.unlock();
			std::this_thread::sleep_for(std::chrono::microseconds(20));
			hold.lock();
		}
		if (closing_)
			return false;
		if (!has_work())
			return true;
		drive(SLICE_NS);
		collect(hold);
		give_way(hold);
		return true;
	}

	/* ---- the end ---- */

	/* Nothing is called any more. What is pending ends first, if that is soon. */
	void leave()
	{
		std::unique_lock<std::mutex> hold(lock_);
		auto deadline = Clock::now() + std::chrono::nanoseconds(FAREWELL_NS);
		struct hk_opts opts = HK_OPTS_INIT;

		while (!pending_.empty() && Clock::now() < deadline) {
			drive(SLICE_NS);
			collect(hold);
			give_way(hold);
		}
		opts.timeout_ns = FAREWELL_NS;
		bool together = pending_.empty() && hk_group_state(group_) == HK_OK &&
				hk_barrier(farewell_, &opts) == HK_OK;
		if (!together)
			(void)!hk_group_revoke(group_);
		collect(hold);
		left_ = true;
		if (!lent)
			release(together);
	}

	/* A group that has failed is freed at once; otherwise that waits for the others. */
	void release(bool together)
	{
		struct hk_group *group = group_;

		{
			std::lock_guard<std::mutex> hold(wake_lock_);
			group_ = nullptr;
		}
		if (!together || !notices.empty())
			(void)!hk_group_revoke(group);
		if (!together)
			(void)!hk_group_revoke(farewell_);
		for (auto &entry : notices)
			hk_request_free(entry.second->request);
		notices.clear();
		hk_group_free(farewell_);
		hk_group_free(group);
	}

	struct hk_group *group_, *farewell_;
	const pid_t process_;
	std::mutex lock_;
	std::mutex wake_lock_;		 /* while the group is woken it is not freed */
	std::condition_variable ready_;	 /* for the worker */
	std::atomic<int> wanted_{ 0 };	 /* threads that want the lock for a moment */
	std::atomic<int> waiters_{ 0 };	 /* threads that drive, or are about to */
	std::atomic<bool> idle_{ false }; /* the worker sleeps */
	std::deque<WorkPtr> pending_;
	std::vector<struct hk_request *> list_;
	std::atomic<bool> closing_{ false };
	bool left_ = false;		 /* and only memory is still in use */
	std::thread worker_;
};

inline bool HocketWork::look()
{
	for (; at_ < requests_.size(); at_++) {
		enum hk_status status = hk_request_test(requests_[at_]);

		if (status == HK_INPROGRESS)
			return false;
		if (status != HK_OK)
			failed(status, engine_->why());
		hk_request_free(requests_[at_]);
	}
	return true;
}

inline bool HocketWork::isCompleted()
{
	if (well_.load(std::memory_order_acquire))
		return true;
	if (Work::isCompleted())
		return true;
	engine_->poke();
	return Work::isCompleted();
}

inline bool HocketWork::wait(std::chrono::milliseconds timeout)
{
	if (well_.load(std::memory_order_acquire))
		return true;
	if (!Work::isCompleted() && !engine_->await(*this, timeout))
		C10_THROW_ERROR(DistBackendError,
				c10::str("hocket: ", c10d::opTypeToString(opType_),
					 " is not over after ", timeout.count(),
					 " ms, which is all that this wait was given"));
	std::lock_guard<std::mutex> hold(mutex_);
	if (exception_)
		std::rethrow_exception(exception_);
	return true;
}

inline void HocketWork::abort()
{
	engine_->abort();
}

} /* namespace hocket */

#endif
