/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admission/roster.h"

#include "protocol/printable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int
gpd_roster_init(struct gpd_roster *roster)
{
	*roster = (struct gpd_roster){
		.clients = calloc(GPD_LEDGER_SESSIONS, sizeof(*roster->clients)),
	};
	return roster->clients ? 0 : -ENOMEM;
}

void
gpd_roster_fini(struct gpd_roster *roster)
{
	free(roster->clients);
	roster->clients = NULL;
}

static uint32_t
devices_of(const struct gpd_grant *grant)
{
	uint32_t mask = 0;

	for (int i = 0; i < grant->count; i++)
		mask |= (uint32_t)1 << grant->units[i].device;
	return mask;
}

void
gpd_roster_enter(struct gpd_roster *roster, uint32_t index, uint64_t session,
		 const Gpupool__Hello *hello, const struct gpd_grant *grant, const char *address)
{
	struct gpd_roster_client *client = &roster->clients[index];

	*client = (struct gpd_roster_client){
		.session = session,
		.started_s = time(NULL),
		.devices = devices_of(grant),
		.pid = hello->pid,
	};
	/* What clients say ends up in terminals, and as protobuf's UTF-8. */
	(void)gp_printable(client->host, sizeof(client->host), hello->host);
	(void)gp_printable(client->user, sizeof(client->user), hello->user);
	(void)gp_printable(client->program, sizeof(client->program), hello->program);
	(void)gp_printable(client->address, sizeof(client->address), address);
}

void
gpd_roster_tell_credentials(const struct gpd_pass *pass, const char *name, const char *serial,
			    char *credentials, size_t size)
{
	char text[sizeof(((struct gpd_roster_client *)NULL)->credentials)] = "--insecure";

	switch (pass->by) {
	case GPD_AUTH_BY_TOKEN:
		snprintf(text, sizeof(text), "token %s", pass->token);
		break;
	case GPD_AUTH_BY_CERTIFICATE:
		snprintf(text, sizeof(text), "certificate %.120s, %.40s", name ? name : "",
			 serial ? serial : "");
		break;
	case GPD_AUTH_BY_USER:
		snprintf(text, sizeof(text), "user %u of this machine", (unsigned int)pass->uid);
		break;
	case GPD_AUTH_BY_NOTHING:
		break;
	}
	(void)gp_printable(credentials, size, text);
}

void
gpd_roster_set_credentials(struct gpd_roster *roster, uint32_t index, const struct gpd_pass *pass,
			   const char *name, const char *serial)
{
	gpd_roster_tell_credentials(pass, name, serial, roster->clients[index].credentials,
				    sizeof(roster->clients[index].credentials));
}

const struct gpd_roster_client *
gpd_roster_client(const struct gpd_roster *roster, uint32_t index, uint64_t session)
{
	static const struct gpd_roster_client nobody;
	const struct gpd_roster_client *client = &roster->clients[index];

	return client->session == session ? client : &nobody;
}
