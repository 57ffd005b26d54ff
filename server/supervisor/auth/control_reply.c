/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/auth/control_reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
gpd_control_reply_refused(struct gpd_connection *connection, Gpupool__Refused__Reason reason,
			  const char *text)
{
	Gpupool__ControlMessage message;
	Gpupool__Refused refused;

	gp_control_fill_refused(&message, &refused, reason, text);
	gpd_connection_send(connection, &message);
}

void
gpd_control_reply_session_error(struct gpd_connection *connection, int result, const char *text)
{
	Gpupool__ControlMessage message;
	Gpupool__SessionError error;

	gp_control_fill_session_error(&message, &error, result, text);
	gpd_connection_send(connection, &message);
}

void
gpd_control_reply_bye(struct gpd_connection *connection, const char *text)
{
	Gpupool__ControlMessage message;
	Gpupool__Bye bye;

	gp_control_fill_bye(&message, &bye, text);
	gpd_connection_send(connection, &message);
}

/* Describes the devices assigned to the client, within its quota. Returns their number, or -1
 * without memory. */
static int
devices_describe(const struct gpd_quota *quota, const struct gpd_connection *connection,
		 const Gpupool__Welcome *facts, const struct gpd_channel_opened *opened,
		 Gpupool__Device *copies, Gpupool__Device **list)
{
	const struct gpd_ledger_session *entry =
		gpd_ledger_find(quota->ledger, connection->session);
	const struct gpd_assignment *assignment = &connection->assignment;

	for (int i = 0; entry && i < assignment->count; i++) {
		uint32_t device = (uint32_t)assignment->units[i].device;

		if (device >= facts->n_devices || device >= opened->device_count ||
		    gpd_quota_describe_device(quota, entry, facts->devices[device],
					      opened->memory_free[device], &copies[i]))
			return -1;
		copies[i].no_context = !(opened->contexts >> device & 1);
		list[i] = &copies[i];
	}
	return entry ? assignment->count : -1;
}

int
gpd_control_reply_welcome(const struct gpd_quota *quota, struct gpd_connection *connection,
			  const Gpupool__Welcome *facts, const struct gpd_channel_opened *opened,
			  struct gp_bytes known)
{
	Gpupool__ControlMessage message = GPUPOOL__CONTROL_MESSAGE__INIT;
	Gpupool__Window window = GPUPOOL__WINDOW__INIT, host = GPUPOOL__WINDOW__INIT;
	Gpupool__Welcome welcome = *facts;
	const struct gpd_ledger_session *entry =
		gpd_ledger_find(quota->ledger, connection->session);
	Gpupool__Limits limits = GPUPOOL__LIMITS__INIT;
	Gpupool__Device copies[GPD_LEDGER_DEVICES] = { 0 }, *list[GPD_LEDGER_DEVICES];
	uint64_t granted[GPD_LEDGER_DEVICES] = { 0 };
	int count = devices_describe(quota, connection, facts, opened, copies, list);

	if (count >= 0 && entry) {
		if (welcome.limits)
			limits = *welcome.limits;
		limits.max_held = entry->deferred_max;
		welcome.limits = &limits;
		window.address = opened->window.address;
		window.size = opened->window.size;
		welcome.minor = GP_VERSION_MINOR;
		welcome.server_version = GPD_VERSION;
		welcome.session_id = connection->session;
		welcome.ticket =
			(ProtobufCBinaryData){ sizeof(connection->ticket), connection->ticket };
		welcome.n_devices = (size_t)count;
		welcome.devices = list;
		for (int i = 0; i < count; i++) {
			if (list[i]->ordinal == opened->granted_device)
				granted[i] = opened->granted;
		}
		welcome.n_granted = (size_t)count;
		welcome.granted = granted;
		welcome.window = &window;
		host.address = opened->host.address;
		host.size = opened->host.size;
		welcome.host = host.size ? &host : NULL;
		welcome.lanes = connection->lanes_max;
		welcome.known_images = (ProtobufCBinaryData){ known.size, (uint8_t *)known.data };
		welcome.features = connection->features;
		if (strcmp(connection->scheme, "unix") != 0)
			welcome.features &= ~(uint64_t)GP_FEATURE_SHM;
		message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_WELCOME;
		message.welcome = &welcome;
		/* Without the list the client only sends its images again, as after an eviction. */
		if (gpupool__control_message__get_packed_size(&message) > connection->send_room)
			welcome.known_images = (ProtobufCBinaryData){ 0 };
		gpd_connection_send(connection, &message);
	}
	for (int i = 0; i < GPD_LEDGER_DEVICES; i++)
		free(copies[i].attributes);
	return count >= 0 ? 0 : -ENOMEM;
}

void
gpd_control_reply_window(struct gpd_connection *connection, const Gpupool__Welcome *facts,
			 const struct gpd_channel_opened *opened)
{
	Gpupool__ControlMessage message = GPUPOOL__CONTROL_MESSAGE__INIT;
	Gpupool__WindowReply reply = GPUPOOL__WINDOW_REPLY__INIT;
	Gpupool__Window window = GPUPOOL__WINDOW__INIT;

	window.address = opened->window.address;
	window.size = opened->window.size;
	reply.window = &window;
	reply.heap_size = facts->limits->heap_size;
	message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REPLY;
	message.window_reply = &reply;
	gpd_connection_send(connection, &message);
}
