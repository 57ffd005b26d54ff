/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of clients that want no session: the tenant's limits and usage, and the load of the
 * daemon. */
#include "protocol/preamble.h"
#include "server/common/base/log.h"
#include "server/supervisor/admission/admission_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OWN_SESSIONS_MAX 64

struct account_reply {
	Gpupool__ControlMessage message;
	Gpupool__Account account;
	Gpupool__AccountDevice devices[GPD_LEDGER_DEVICES], *device_list[GPD_LEDGER_DEVICES];
	Gpupool__AccountDevice *
		by_ordinal[GPD_LEDGER_DEVICES]; /* NULL: the tenant may not use it, or it is sick */
	Gpupool__AccountSession own[OWN_SESSIONS_MAX], *own_list[OWN_SESSIONS_MAX];
	char credentials[sizeof(((struct gpd_session_owner *)NULL)->credentials)];
};

static void
add_devices(const struct gpd_admission *admission, const struct gpd_connection *connection,
	    struct account_reply *account_reply)
{
	const struct gpd_tenants *tenants = &admission->quota->tenants;
	const struct gpd_ledger_tenant *tenant =
		&admission->quota->ledger->tenants[connection->assignment.tenant];
	int config_index = tenants->config_indexes[connection->assignment.tenant];

	account_reply->account.devices = account_reply->device_list;
	for (int d = 0; d < tenants->device_count; d++) {
		const struct gpd_tenants_device *from = &tenants->devices[d];
		const struct gpd_ledger_tenant_line *line = &tenant->devices[d];
		Gpupool__AccountDevice *to =
			&account_reply->devices[account_reply->account.n_devices];

		if (gpd_device_is_sick(&from->health) ||
		    (config_index >= 0 &&
		     !tenants->config->tenants[config_index].devices[d].allowed))
			continue;
		gpupool__account_device__init(to);
		account_reply->device_list[account_reply->account.n_devices++] =
			account_reply->by_ordinal[d] = to;
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

/* Sums over all tenants, without names. */
static void
sum_tenants(const struct gpd_ledger *ledger, struct account_reply *account_reply)
{
	for (int t = 0; t < GPD_LEDGER_TENANTS; t++) {
		const struct gpd_ledger_tenant *tenant = &ledger->tenants[t];

		for (int d = 0; tenant->name[0] && d < GPD_LEDGER_DEVICES; d++) {
			if (!account_reply->by_ordinal[d])
				continue;
			account_reply->by_ordinal[d]->memory_used +=
				GPD_LEDGER_IN_USE(&tenant->devices[d]);
			account_reply->by_ordinal[d]->gpu_ns +=
				atomic_load(&tenant->devices[d].gpu_ns);
		}
	}
}

static void
add_own_session(const struct gpd_admission *admission, const struct gpd_ledger_session *from,
		const struct gpd_session_owner *client, struct account_reply *account_reply)
{
	Gpupool__AccountSession *to = &account_reply->own[account_reply->account.n_own];

	gpupool__account_session__init(to);
	account_reply->own_list[account_reply->account.n_own++] = to;
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
add_sessions(const struct gpd_admission *admission, const struct gpd_connection *connection,
	     struct account_reply *account_reply)
{
	const struct gpd_ledger *ledger = admission->quota->ledger;

	account_reply->account.own = account_reply->own_list;
	for (const struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(ledger, s, GPD_LEDGER_ANY_WORKER));) {
		const struct gpd_session_owner *client =
			gpd_session_owner(&admission->session_owners, gpd_ledger_index(ledger, s),
					  atomic_load(&s->id));

		for (int d = 0; d < GPD_LEDGER_DEVICES; d++) {
			if (!account_reply->by_ordinal[d] || !(client->devices >> d & 1))
				continue;
			account_reply->by_ordinal[d]->sessions++;
			account_reply->by_ordinal[d]->gpu_ns += atomic_load(&s->devices[d].gpu_ns);
		}
		if (s->tenant == connection->assignment.tenant &&
		    account_reply->account.n_own < OWN_SESSIONS_MAX)
			add_own_session(admission, s, client, account_reply);
	}
}

static int64_t
credentials_expiry(const struct gpd_admission *admission, const struct gpd_principal *principal)
{
	const struct gpd_token *token =
		principal->by == GPD_AUTH_BY_TOKEN
			? gpd_tokens_find(&admission->authentication.store.tokens, principal->token)
			: NULL;
	int64_t until_s = token                                      ? token->expires_s
			  : principal->by == GPD_AUTH_BY_CERTIFICATE ? principal->until_s
								     : INT64_MAX;

	return until_s == INT64_MAX ? 0 : until_s;
}

static void
fill_account(struct gpd_admission *admission, struct gpd_connection *connection, const char *full,
	     struct account_reply *account_reply)
{
	const struct gpd_tenants *tenants = &admission->quota->tenants;
	const struct gpd_ledger_tenant *tenant =
		&admission->quota->ledger->tenants[connection->assignment.tenant];
	int config_index = tenants->config_indexes[connection->assignment.tenant];
	uint32_t max =
		config_index < 0 ? UINT32_MAX : tenants->config->tenants[config_index].sessions_max;
	Gpupool__Account *account = &account_reply->account;

	gpd_session_owner_format_credentials(
		&connection->principal, gp_conn_get_certificate_name(connection->conn),
		gp_conn_get_certificate_serial(connection->conn), account_reply->credentials,
		sizeof(account_reply->credentials));
	account->minor = GP_VERSION_MINOR;
	account->server_version = GPD_VERSION;
	account->driver_version = tenants->driver_version;
	account->software = tenants->software;
	account->now_s = (int64_t)time(NULL);
	account->tenant = (char *)tenant->name;
	account->credentials = account_reply->credentials;
	account->until_s = credentials_expiry(admission, &connection->principal);
	account->full = (char *)full;
	account->sessions = atomic_load(&tenant->sessions);
	account->sessions_max = max == UINT32_MAX ? 0 : max;
	account->sessions_all = (uint32_t)gpd_admission_count_sessions(admission);
	account->sessions_all_max = (uint32_t)gpd_admission_sessions_max(admission);
}

void
gpd_admission_probe(struct gpd_admission *admission, struct gpd_connection *connection,
		    const char *full)
{
	char buffer[GPD_CONFIG_ERROR_MAX] = "";
	struct account_reply *account_reply;

	if (!gpd_admission_admit(admission, connection))
		return;
	account_reply = calloc(1, sizeof(*account_reply));
	if (!account_reply) {
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__FULL,
				     "the daemon has no memory for an answer");
		return;
	}
	if (!full &&
	    gpd_tenants_has_room(&admission->quota->tenants, &connection->assignment, 0, buffer))
		full = buffer;
	gpupool__control_message__init(&account_reply->message);
	gpupool__account__init(&account_reply->account);
	account_reply->message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_ACCOUNT;
	account_reply->message.account = &account_reply->account;
	fill_account(admission, connection, full ? full : "", account_reply);
	add_devices(admission, connection, account_reply);
	sum_tenants(admission->quota->ledger, account_reply);
	add_sessions(admission, connection, account_reply);
	gpd_debug("%s (%s): probe finished", gp_conn_peer(connection->conn), connection->name);
	gpd_connection_send(connection, &account_reply->message);
	free(account_reply);
	gpd_admission_close_conn(admission, connection, "probe finished");
}
