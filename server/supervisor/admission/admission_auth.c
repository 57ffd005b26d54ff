/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication of new clients, and the end of sessions whose credentials are no longer valid. */
#include "base/clock.h"
#include "server/supervisor/admission/admission_internal.h"
#include "server/supervisor/auth/control_reply.h"

#include <string.h>

/* Interval of the checks; sessions with invalid credentials end within this time plus the duration
 * of one check. */
#define RECHECK_MS 1000

void
gpd_admission_send_refusal(struct gpd_admission *admission, struct gpd_connection *connection)
{
	gpd_control_reply_refused(connection, GPUPOOL__REFUSED__REASON__CREDENTIALS,
				  connection->refusal);
	gpd_admission_close_conn(admission, connection, connection->refusal);
}

/* After many failed logins from an address the refusal is delayed, and the connection occupies one
 * of the address's slots until then. Correct credentials are accepted at once from any address. */
bool
gpd_admission_authenticate(struct gpd_admission *admission, struct gpd_connection *connection)
{
	int64_t delay_ms;

	connection->is_own_process = gpd_worker_process_is_own(connection->pid);
	if (gpd_authentication_authenticate(&admission->authentication,
					    admission->quota->tenants.config, connection,
					    gp_now_ms(), &connection->refusal) == 0)
		return true;
	delay_ms = gpd_client_address_login_failed(connection->client_address, gp_now_ms());
	if (delay_ms == 0)
		gpd_admission_send_refusal(admission, connection);
	else
		gpd_admission_set_state(admission, connection, GPD_CONNECTION_REFUSED, delay_ms);
	return false;
}

void
gpd_admission_check_credentials(struct gpd_admission *admission)
{
	int64_t now_ms = gp_now_ms();

	gpd_authentication_refresh(&admission->authentication, now_ms);
	admission->recheck_ms = now_ms + RECHECK_MS;
	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		const char *text;

		if (p->state == GPD_CONNECTION_CLOSING)
			continue;
		text = gpd_authentication_recheck(&admission->authentication, &p->principal,
						  now_ms);
		if (!text)
			text = gpd_authentication_recheck_certificate(
				&admission->authentication, &p->principal, p->conn, now_ms);
		if (text)
			gpd_admission_evict(admission, p, GPUPOOL__REFUSED__REASON__CREDENTIALS,
					    text);
	}
}

void
gpd_admission_check_certificates(struct gpd_admission *admission)
{
	const struct gpd_config *config = admission->quota->tenants.config;

	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		int config_index;

		if (p->principal.by != GPD_AUTH_BY_CERTIFICATE ||
		    p->state == GPD_CONNECTION_CLOSING)
			continue;
		config_index =
			gpd_config_certificate_find(config, gp_conn_get_certificate_name(p->conn));
		if (config_index < 0 ||
		    strcmp(config->tenants[config_index].name, p->principal.tenant) != 0)
			gpd_admission_evict(admission, p, GPUPOOL__REFUSED__REASON__CREDENTIALS,
					    "its certificate no longer belongs to its tenant");
	}
}
