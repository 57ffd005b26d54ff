/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admission/session_owners.h"

#include "protocol/printable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int
gpd_session_owners_init(struct gpd_session_owners *session_owners)
{
	*session_owners = (struct gpd_session_owners){
		.clients = calloc(GPD_LEDGER_SESSIONS, sizeof(*session_owners->clients)),
	};
	return session_owners->clients ? 0 : -ENOMEM;
}

void
gpd_session_owners_fini(struct gpd_session_owners *session_owners)
{
	free(session_owners->clients);
	session_owners->clients = NULL;
}

static uint32_t
assignment_to_device_mask(const struct gpd_assignment *assignment)
{
	uint32_t mask = 0;

	for (int i = 0; i < assignment->count; i++)
		mask |= (uint32_t)1 << assignment->units[i].device;
	return mask;
}

void
gpd_session_owners_set(struct gpd_session_owners *session_owners, uint32_t index, uint64_t session,
		       const Gpupool__Hello *hello, const struct gpd_assignment *assignment,
		       const char *address)
{
	struct gpd_session_owner *client = &session_owners->clients[index];

	*client = (struct gpd_session_owner){
		.session = session,
		.started_s = time(NULL),
		.devices = assignment_to_device_mask(assignment),
		.pid = hello->pid,
	};
	if (hello->program_key.len == sizeof(client->program_key))
		memcpy(client->program_key, hello->program_key.data, sizeof(client->program_key));
	/* Text from clients is displayed on terminals, and must be valid UTF-8 for protobuf. */
	(void)gp_printable_text(client->host, sizeof(client->host), hello->host);
	(void)gp_printable_text(client->user, sizeof(client->user), hello->user);
	(void)gp_printable_text(client->program, sizeof(client->program), hello->program);
	(void)gp_printable_text(client->address, sizeof(client->address), address);
}

void
gpd_session_owner_format_credentials(const struct gpd_principal *principal, const char *name,
				     const char *serial, char *credentials, size_t size)
{
	char text[sizeof(((struct gpd_session_owner *)NULL)->credentials)] = "--insecure";

	switch (principal->by) {
	case GPD_AUTH_BY_TOKEN:
		snprintf(text, sizeof(text), "token %s", principal->token);
		break;
	case GPD_AUTH_BY_CERTIFICATE:
		snprintf(text, sizeof(text), "certificate %.120s, %.40s", name ? name : "",
			 serial ? serial : "");
		break;
	case GPD_AUTH_BY_USER:
		snprintf(text, sizeof(text), "local user %u", (unsigned int)principal->uid);
		break;
	case GPD_AUTH_BY_NONE:
		break;
	}
	(void)gp_printable_text(credentials, size, text);
}

void
gpd_session_owners_set_credentials(struct gpd_session_owners *session_owners, uint32_t index,
				   const struct gpd_principal *principal, const char *name,
				   const char *serial)
{
	gpd_session_owner_format_credentials(principal, name, serial,
					     session_owners->clients[index].credentials,
					     sizeof(session_owners->clients[index].credentials));
}

const struct gpd_session_owner *
gpd_session_owner(const struct gpd_session_owners *session_owners, uint32_t index, uint64_t session)
{
	static const struct gpd_session_owner nobody;
	const struct gpd_session_owner *client = &session_owners->clients[index];

	return client->session == session ? client : &nobody;
}
