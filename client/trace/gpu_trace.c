/* SPDX-License-Identifier: Apache-2.0 */
#include "client/trace/gpu_trace.h"

#include "base/clock.h"
#include "gpc_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The drift between the clocks of two machines is at most 50 ppm. */
#define DRIFT 20000
#define REPORT_NS 1000000000
/* Number of initial exchanges: the one with the shortest round trip gives the smallest error. */
#define FIRST_EXCHANGES 8

uint64_t
gpc_gpu_trace_clock_error(const struct gpc_gpu_trace *gpu, uint64_t now_ns)
{
	return gpu->error_ns + (now_ns - gpu->set_ns) / DRIFT;
}

void
gpc_gpu_trace_sync_clock(struct gpc_gpu_trace *gpu, uint64_t request_ns, uint64_t daemon_ns,
			 uint64_t reply_ns)
{
	uint64_t half = (reply_ns - request_ns) / 2;

	if (gpu->set_ns && half > gpc_gpu_trace_clock_error(gpu, reply_ns))
		return;
	gpu->ahead_ns = request_ns + half - daemon_ns;
	gpu->error_ns = half;
	gpu->set_ns = reply_ns;
}

static const char *
call_get_name(uint32_t call)
{
	const struct gp_call_info *info = call <= UINT16_MAX ? gp_call_find((uint16_t)call) : NULL;

	if (!info)
		return "work";
	return info->shown ? info->shown : info->name;
}

/* Returns the name of a kernel, from this event or an earlier one; for other work the name of the
 * call. */
static const char *
event_get_name(struct gpc_gpu_trace *gpu, const struct gp_trace_event *event)
{
	uint32_t place = gp_trace_get_name_slot(event->kernel);

	if (!event->kernel)
		return call_get_name(event->call);
	if (event->name.size > 0) {
		free(gpu->names[place].name);
		gpu->names[place].name = strndup(event->name.data, event->name.size);
		gpu->names[place].kernel = event->kernel;
	}
	if (gpu->names[place].kernel == event->kernel && gpu->names[place].name)
		return gpu->names[place].name;
	return call_get_name(event->call);
}

static void
stream_write_name(struct gpc_trace_text *text, const struct gpc_gpu_trace *gpu,
		  const struct gp_trace_event *event)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "GPU %u, stream %#x", event->device, event->stream);
	gpc_trace_text_name(text,
			    (struct gpc_trace_track){ gpu->pid, (int)(event->stream & INT32_MAX) },
			    "thread_name", name);
}

/* Clock corrections may reorder events within the clock error; clamps them so that events of a
 * stream stay in order. */
static void
event_write(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
	    const struct gp_trace_event *event)
{
	const struct gpc_trace_track track = { gpu->pid, (int)(event->stream & INT32_MAX) };
	uint64_t begun = event->begin_ns + gpu->ahead_ns, ended = event->end_ns + gpu->ahead_ns;
	uint32_t place = event->stream % GPC_GPU_TRACE_STREAMS;

	if (gpu->streams[place].stream != event->stream) {
		stream_write_name(text, gpu, event);
		gpu->streams[place].stream = event->stream;
		gpu->streams[place].end_ns = 0;
	}
	if (begun < gpu->streams[place].end_ns)
		begun = gpu->streams[place].end_ns;
	if (ended < begun)
		ended = begun;
	gpu->streams[place].end_ns = ended;
	gpc_trace_text_span(text, track, begun, ended, "gpu", event_get_name(gpu, event),
			    event->joined ? "not measured before it" : NULL, event->joined);
}

bool
gpc_gpu_trace_write(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu, struct gp_bytes events)
{
	struct gp_trace_event event;
	struct gp_dec dec;

	gp_dec_init(&dec, events.data, events.size);
	while (gp_trace_event_decode(&dec, &event))
		event_write(text, gpu, &event);
	return gp_dec_ok(&dec);
}

static void
status_write(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
	     const struct gp_reply_gpTraceTake *reply, uint64_t now)
{
	const struct gpc_trace_track track = { gpu->pid, 0 };
	uint64_t error = gpc_gpu_trace_clock_error(gpu, now) + reply->error;

	/* The error decreases quickly in the first exchanges. */
	if (now - gpu->reported_ns > REPORT_NS || error < gpu->reported_error_ns / 2) {
		gpu->reported_ns = now;
		gpu->reported_error_ns = error;
		gpc_trace_text_count(text, track, now, "clock error", "ns", error);
	}
	if (reply->missed == gpu->missed)
		return;
	gpu->missed = reply->missed;
	gpc_trace_text_count(text, track, now, "not measured", "operations", reply->missed);
}

static void
daemon_write_name(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
		  struct gpc_session *session)
{
	char name[256];

	(void)snprintf(name, sizeof(name), "%s%s", gpc_session_peer(session),
		       gpu->unable ? " (GPU times are not known)" : "");
	gpc_trace_text_name(text, (struct gpc_trace_track){ gpu->pid, 0 }, "process_name", name);
	gpu->named = true;
}

/* Does not consume a deferred error, which is left for a call of the program. */
static void
request_done(struct gpc_request *request)
{
	struct gpc_gpu_trace *gpu = request->arg;

	gpu->reply_ns = gp_now_ns();
	atomic_store(&gpu->answered, true);
}

/* Issued without a context. */
static void
request_start(struct gpc_gpu_trace *gpu, struct gpc_session *session)
{
	const struct gp_args_gpTraceTake args = { 0 };
	struct gpc_context no_context = { 0 };

	no_context.scope.session = session;
	gpu->request = (struct gpc_request){ .done = request_done, .arg = gpu };
	atomic_store(&gpu->answered, false);
	gpu->requested = true;
	gpu->request_ns = gp_now_ns();
	if (gpc_start_gpTraceTake(&no_context, &args, &gpu->request) == CUDA_SUCCESS)
		return;
	gpu->requested = false;
	gpu->unable = true;
}

/* Returns false if the reply is an error or malformed. */
static bool
request_recv(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu)
{
	struct gp_reply_gpTraceTake reply = { 0 };
	struct gp_dec dec;

	gp_dec_init(&dec, gpu->request.reply, gpu->request.reply_size);
	gp_reply_gpTraceTake_decode(&dec, &reply);
	if (gpu->request.result != CUDA_SUCCESS || !gp_dec_done(&dec))
		return false;
	gpc_gpu_trace_sync_clock(gpu, gpu->request_ns, reply.now, gpu->reply_ns);
	status_write(text, gpu, &reply, gpu->reply_ns);
	gpu->wanted--;
	if (reply.left && gpu->wanted == 0)
		gpu->wanted = 1;
	return gpc_gpu_trace_write(text, gpu, reply.events);
}

void
gpc_gpu_trace_request(struct gpc_gpu_trace *gpu)
{
	if (!gpu->named && gpu->wanted == 0)
		gpu->wanted = FIRST_EXCHANGES;
	else if (gpu->wanted < 1u + gpu->requested)
		gpu->wanted = 1u + gpu->requested;
}

bool
gpc_gpu_trace_poll(struct gpc_trace_text *text, struct gpc_gpu_trace *gpu,
		   struct gpc_session *session)
{
	bool received = gpu->requested && atomic_load(&gpu->answered);

	if (received) {
		gpu->requested = false;
		gpu->unable = !request_recv(text, gpu);
		free(gpu->request.reply);
	}
	if (!gpu->requested && gpu->wanted > 0 && !gpu->unable)
		request_start(gpu, session);
	if (!gpu->named && (received || gpu->unable))
		daemon_write_name(text, gpu, session);
	return gpu->wanted == 0 || gpu->unable;
}

void
gpc_gpu_trace_fini(struct gpc_gpu_trace *gpu)
{
	for (int i = 0; i < GP_TRACE_NAME_SLOTS; i++)
		free(gpu->names[i].name);
}
