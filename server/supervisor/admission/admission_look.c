/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that want no session: what their tenant may use and uses, and how full the daemon is. */
#include "protocol/preamble.h"
#include "server/common/base/log.h"
#include "server/supervisor/admission/admission_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OWN_MAX 64

struct look {
	Gpupool__ControlMessage message;
	Gpupool__Account account;
	Gpupool__AccountDevice devices[GPD_LEDGER_DEVICES], *device_list[GPD_LEDGER_DEVICES];
	Gpupool__AccountDevice *by_ordinal[GPD_LEDGER_DEVICES]; /* NULL: not the tenant's */
	Gpupool__AccountSession own[OWN_MAX], *own_list[OWN_MAX];
	char credentials[sizeof(((struct gpd_roster_client *)NULL)->credentials)];
};

static void
add_devices(const struct gpd_admission *admission, const struct gpd_peer *peer, struct look *look)
{
	const struct gpd_tenants *tenants = &admission->quota->tenants;
	const struct gpd_ledger_tenant *tenant =
		&admission->quota->ledger->tenants[peer->grant.tenant];
	int place = tenants->places[peer->grant.tenant];

	look->account.devices = look->device_list;
	for (int d = 0; d < tenants->device_count; d++) {
		const struct gpd_tenants_device *from = &tenants->devices[d];
		const struct gpd_ledger_tenant_line *line = &tenant->devices[d];
		Gpupool__AccountDevice *to = &look->devices[look->account.n_devices];

		if (place >= 0 && !tenants->config->tenants[place].devices[d].allowed)
			continue;
		gpupool__account_device__init(to);
		look->device_list[look->account.n_devices++] = look->by_ordinal[d] = to;
		to->ordinal = d;
		to->name = (char *)from->name;
		to->uuid = (ProtobufCBinaryData){ sizeof(from->uuid), (uint8_t *)from->uuid };
		to->memory = from->memory;
		to->multiprocessors = from->multiprocessors;
		to->quota_memory = atomic_load(&line->memory_max);
		to->quota_used = GPD_LEDGER_IN_USE(line);
		to->quota_sm = atomic_load(&line->sm_wanted);
	}
}

/* Of all tenants, without names. */
static void
sum_up_tenants(const struct gpd_ledger *ledger, struct look *look)
{
	for (int t = 0; t < GPD_LEDGER_TENANTS; t++) {
		const struct gpd_ledger_tenant *tenant = &ledger->tenants[t];

		for (int d = 0; tenant->name[0] && d < GPD_LEDGER_DEVICES; d++) {
			if (!look->by_ordinal[d])
				continue;
			look->by_ordinal[d]->memory_used += GPD_LEDGER_IN_USE(&tenant->devices[d]);
			look->by_ordinal[d]->gpu_ns += atomic_load(&tenant->devices[d].gpu_ns);
		}
	}
}

static void
add_own(const struct gpd_admission *admission, const struct gpd_ledger_session *from,
	const struct gpd_roster_client *client, struct look *look)
{
	Gpupool__AccountSession *to = &look->own[look->account.n_own];

	gpupool__account_session__init(to);
	look->own_list[look->account.n_own++] = to;
	to->id = atomic_load(&from->id);
	to->pid = client->pid;
	to->host = (char *)client->host;
	to->user = (char *)client->user;
	to->program = (char *)client->program;
	to->started_s = client->started_s;
	for (int d = 0; d < admission->quota->tenants.device_count; d++) {
		to->memory += GPD_LEDGER_IN_USE(&from->devices[d]);
		to->gpu_ns += atomic_load(&from->devices[d].gpu_ns);
	}
}

static void
add_sessions(const struct gpd_admission *admission, const struct gpd_peer *peer, struct look *look)
{
	const struct gpd_ledger *ledger = admission->quota->ledger;

	look->account.own = look->own_list;
	for (const struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(ledger, s, GPD_LEDGER_ANY_WORKER));) {
		const struct gpd_roster_client *client = gpd_roster_client(
			&admission->roster, gpd_ledger_index(ledger, s), atomic_load(&s->id));

		for (int d = 0; d < GPD_LEDGER_DEVICES; d++) {
			if (!look->by_ordinal[d] || !(client->devices >> d & 1))
				continue;
			look->by_ordinal[d]->sessions++;
			look->by_ordinal[d]->gpu_ns += atomic_load(&s->devices[d].gpu_ns);
		}
		if (s->tenant == peer->grant.tenant && look->account.n_own < OWN_MAX)
			add_own(admission, s, client, look);
	}
}

static int64_t
expiry(const struct gpd_admission *admission, const struct gpd_pass *pass)
{
	const struct gpd_token *token =
		pass->by == GPD_AUTH_BY_TOKEN
			? gpd_tokens_find(&admission->gate.store.tokens, pass->token)
			: NULL;
	int64_t until_s = token                                 ? token->expires_s
			  : pass->by == GPD_AUTH_BY_CERTIFICATE ? pass->until_s
								: INT64_MAX;

	return until_s == INT64_MAX ? 0 : until_s;
}

static void
fill_account(struct gpd_admission *admission, struct gpd_peer *peer, const char *full,
	     struct look *look)
{
	const struct gpd_tenants *tenants = &admission->quota->tenants;
	const struct gpd_ledger_tenant *tenant =
		&admission->quota->ledger->tenants[peer->grant.tenant];
	int place = tenants->places[peer->grant.tenant];
	uint32_t max = place < 0 ? UINT32_MAX : tenants->config->tenants[place].sessions_max;
	Gpupool__Account *account = &look->account;

	gpd_roster_tell_credentials(&peer->pass, gp_conn_certificate(peer->conn),
				    gp_conn_certificate_serial(peer->conn), look->credentials,
				    sizeof(look->credentials));
	account->minor = GP_VERSION_MINOR;
	account->server_version = GPD_VERSION;
	account->driver_version = tenants->driver_version;
	account->software = tenants->software;
	account->now_s = (int64_t)time(NULL);
	account->tenant = (char *)tenant->name;
	account->credentials = look->credentials;
	account->until_s = expiry(admission, &peer->pass);
	account->full = (char *)full;
	account->sessions = atomic_load(&tenant->sessions);
	account->sessions_max = max == UINT32_MAX ? 0 : max;
	account->sessions_all = (uint32_t)gpd_admission_count_sessions(admission);
	account->sessions_all_max = (uint32_t)gpd_admission_sessions_max(admission);
}

void
gpd_admission_look(struct gpd_admission *admission, struct gpd_peer *peer, const char *full)
{
	char room[GPD_CONFIG_ERROR_MAX] = "";
	struct look *look;

	if (!gpd_admission_admit(admission, peer))
		return;
	look = calloc(1, sizeof(*look));
	if (!look) {
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__FULL,
				     "the daemon has no memory for an answer");
		return;
	}
	if (!full && gpd_tenants_has_room(&admission->quota->tenants, &peer->grant, 0, room))
		full = room;
	gpupool__control_message__init(&look->message);
	gpupool__account__init(&look->account);
	look->message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_ACCOUNT;
	look->message.account = &look->account;
	fill_account(admission, peer, full ? full : "", look);
	add_devices(admission, peer, look);
	sum_up_tenants(admission->quota->ledger, look);
	add_sessions(admission, peer, look);
	gpd_debug("%s (%s): it only looked", gp_conn_peer(peer->conn), peer->name);
	gpd_peer_send(peer, &look->message);
	free(look);
	gpd_admission_end_peer(admission, peer, "it only looked");
}
