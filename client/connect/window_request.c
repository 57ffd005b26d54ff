/* SPDX-License-Identifier: Apache-2.0 */
/* Negotiation of the session's window, which must also be free in this process. */
#include "client/base/log.h"
#include "client/base/stats.h"
#include "client/connect/opening.h"
#include "client/connect/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_TRIES 4

/* Requests a window that avoids everything mapped in this process. */
static int
window_query_other(struct gpc_opening *opening, struct gpc_link *link)
{
	Gpupool__WindowRequest request = GPUPOOL__WINDOW_REQUEST__INIT;
	Gpupool__ControlMessage message = GPUPOOL__CONTROL_MESSAGE__INIT, *reply;
	Gpupool__Range *avoid = NULL, **pointers = NULL;
	struct gpc_window_range *ranges;
	size_t count;
	int r = gpc_window_occupied(&ranges, &count);

	if (r != 0)
		return gpc_opening_fail(opening, r, ": cannot read /proc/self/maps: %s",
					strerror(-r));
	avoid = calloc(count + 1, sizeof(*avoid));
	pointers = calloc(count + 1, sizeof(*pointers));
	for (size_t i = 0; avoid && pointers && i < count; i++) {
		gpupool__range__init(&avoid[i]);
		avoid[i].address = ranges[i].base;
		avoid[i].size = ranges[i].size;
		pointers[i] = &avoid[i];
	}
	free(ranges);
	request.n_avoid = count;
	request.avoid = pointers;
	message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REQUEST;
	message.window_request = &request;
	r = avoid && pointers ? gp_control_send(link->control, &message) : -ENOMEM;
	free(avoid);
	free(pointers);
	if (r != 0)
		return gpc_opening_fail(opening, r, ": %s",
					r == -ENOMEM ? strerror(ENOMEM)
						     : gp_conn_error(link->control));

	gpc_stats_wait_start(GPC_WAIT_WINDOW);
	r = gpc_opening_recv_message(opening, link->control,
				     GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REPLY, &reply);
	gpc_stats_wait_stop();
	if (r != 0)
		return r;
	if (gpc_window_is_valid(reply->window_reply->window, link->facts.granularity)) {
		link->facts.window_base = reply->window_reply->window->address;
		link->facts.window_size = reply->window_reply->window->size;
	} else {
		r = gpc_opening_fail(opening, GP_E_RESOURCE,
				     ": no range of addresses is free both here and there");
	}
	gp_control_free(reply);
	return r;
}

int
gpc_link_reserve_window(struct gpc_opening *opening, struct gpc_link *link)
{
	struct gpc_session_facts *facts = &link->facts;

	for (int i = 0; i < WINDOW_TRIES; i++) {
		int r = gpc_window_reserve(facts->window_base, facts->window_size);

		if (r == 0)
			return 0;
		if (r == -ENOMEM)
			return gpc_opening_fail(
				opening, GP_E_RESOURCE,
				": the program may not reserve the %llu MiB of addresses for "
				"device memory (ulimit -v, RLIMIT_AS)",
				(unsigned long long)facts->window_size >> 20);
		gpc_log(GPC_LOG_INFO, "%s: %#llx bytes at %#llx are not free here", opening->text,
			(unsigned long long)facts->window_size,
			(unsigned long long)facts->window_base);
		r = window_query_other(opening, link);
		if (r != 0)
			return r;
	}
	return gpc_opening_fail(opening, GP_E_RESOURCE,
				": no range of addresses is free both here and there");
}
