/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo.cc - Gloo over TCP, measured by peer.c. It has no launcher: each rank is
 * started with
 *
 *	BENCH_RANK, BENCH_SIZE	who it is, and of how many
 *	BENCH_STORE		an empty folder in which the ranks meet
 *	BENCH_ADDRESS		its own address; 127.0.0.1 if not given
 *
 * Left out is its reduce-scatter, the class ReduceScatterHalvingDoubling: it
 * moves its result to the front of the vector without waiting until what was
 * there has been sent, and with large vectors of two ranks others get that.
 */
#include "peer.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace {

std::shared_ptr<gloo::rendezvous::Context> context;

const char *variable(const char *name, const char *otherwise)
{
	const char *text = getenv(name);

	if (!text && !otherwise)
		peer_die("%s is not set", name);
	return text ? text : otherwise;
}

/* What Gloo throws is the end of the program, with its reason. */
void attempt(const std::function<void()> &what)
{
	try {
		what();
	} catch (const std::exception &error) {
		peer_die("%s", error.what());
	}
}

void init(int *, char ***)
{
	attempt([] {
		gloo::transport::tcp::attr attr(variable("BENCH_ADDRESS", "127.0.0.1"));
		gloo::rendezvous::FileStore store(variable("BENCH_STORE", nullptr));
		auto device = gloo::transport::tcp::CreateDevice(attr);

		context = std::make_shared<gloo::rendezvous::Context>(
			atoi(variable("BENCH_RANK", nullptr)), atoi(variable("BENCH_SIZE", nullptr)));
		context->connectFullMesh(store, device);
	});
}

int rank()
{
	return context->rank;
}

int size()
{
	return context->size;
}

const char *version()
{
	static const std::string text = "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." +
		std::to_string(GLOO_VERSION_MINOR) + "." + std::to_string(GLOO_VERSION_PATCH);

	return text.c_str();
}

void allreduce(const struct peer_job *job)
{
	gloo::AllreduceOptions options(context);

	options.setInput(job->in, job->count);
	options.setOutput(job->out, job->count);
	options.setReduceFunction(static_cast<void (*)(void *, const void *, const void *, size_t)>(
		&gloo::sum<float>));
	gloo::allreduce(options);
}

void allgather(const struct peer_job *job)
{
	gloo::AllgatherOptions options(context);

	options.setInput(job->in, job->count);
	options.setOutput(job->out, job->count * context->size);
	gloo::allgather(options);
}

void alltoall(const struct peer_job *job)
{
	gloo::AlltoallOptions options(context);

	options.setInput(job->in, job->count * context->size);
	options.setOutput(job->out, job->count * context->size);
	gloo::alltoall(options);
}

void broadcast(const struct peer_job *job)
{
	gloo::BroadcastOptions options(context);

	options.setOutput(job->out, job->count);
	options.setRoot(job->root);
	gloo::broadcast(options);
}

void run(const struct peer_job *job)
{
	attempt([job] {
		switch (job->coll) {
		case PEER_ALLREDUCE:
			return allreduce(job);
		case PEER_ALLGATHER:
			return allgather(job);
		case PEER_ALLTOALL:
			return alltoall(job);
		case PEER_BROADCAST:
			return broadcast(job);
		case PEER_REDUCESCATTER:
		case PEER_COLLS:
			break;
		}
	});
}

void barrier()
{
	attempt([] {
		gloo::BarrierOptions options(context);

		gloo::barrier(options);
	});
}

double max(double value)
{
	double most = value;

	attempt([&most] {
		gloo::AllreduceOptions options(context);

		options.setOutput(&most, 1);
		options.setReduceFunction(
			static_cast<void (*)(void *, const void *, const void *, size_t)>(
				&gloo::max<double>));
		gloo::allreduce(options);
	});
	return most;
}

/* Nobody hangs up while another still reads. */
void finish()
{
	barrier();
	context.reset();
}

} // namespace

const struct peer peer = {
	"gloo", PEER_ALL & ~(1u << PEER_REDUCESCATTER),
	 init, rank, size, version, peer_alloc, run, barrier, max, finish,
};
