/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes in, and who has to go because what let him in holds no more. */
#include "base/clock.h"
#include "server/supervisor/admission/admission_state.h"
#include "server/supervisor/door/control_reply.h"

#include <string.h>

/* What holds no more ends its sessions within this, and what one look takes. */
#define GATE_MS 1000

void
gpd_admission_tell_refused(struct gpd_admission *admission, struct gpd_peer *peer)
{
	gpd_control_reply_refused(peer, GPUPOOL__REFUSED__REASON__CREDENTIALS, peer->refusal);
	gpd_admission_end_peer(admission, peer, peer->refusal);
}

/* Who tries often waits for the answer, and has one place less meanwhile; who has the right
 * credentials is let in at once, wherever it comes from. */
bool
gpd_admission_let_in(struct gpd_admission *admission, struct gpd_peer *peer)
{
	int64_t delay_ms;

	if (gpd_gate_admit(&admission->gate, admission->quota->tenants.config, peer, gp_now_ms(),
			   &peer->refusal) == 0)
		return true;
	delay_ms = gpd_source_failed(peer->source, gp_now_ms());
	if (delay_ms == 0)
		gpd_admission_tell_refused(admission, peer);
	else
		gpd_admission_set_state(admission, peer, GPD_PEER_REFUSED, delay_ms);
	return false;
}

void
gpd_admission_check_credentials(struct gpd_admission *admission)
{
	int64_t now_ms = gp_now_ms();

	gpd_gate_refresh(&admission->gate, now_ms);
	admission->gate_ms = now_ms + GATE_MS;
	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		const char *text;

		if (p->state == GPD_PEER_ENDING)
			continue;
		text = gpd_gate_check(&admission->gate, &p->pass, now_ms);
		if (!text)
			text = gpd_gate_check_revoked(&admission->gate, &p->pass, p->conn, now_ms);
		if (text)
			gpd_admission_turn_out(admission, p, GPUPOOL__REFUSED__REASON__CREDENTIALS,
					       text);
	}
}

void
gpd_admission_check_certificates(struct gpd_admission *admission)
{
	const struct gpd_config *config = admission->quota->tenants.config;

	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		int place;

		if (p->pass.by != GPD_AUTH_BY_CERTIFICATE || p->state == GPD_PEER_ENDING)
			continue;
		place = gpd_config_certificate_find(config, gp_conn_certificate(p->conn));
		if (place < 0 || strcmp(config->tenants[place].name, p->pass.tenant) != 0)
			gpd_admission_turn_out(
				admission, p, GPUPOOL__REFUSED__REASON__CREDENTIALS,
				"its certificate is not that of its tenant any more");
	}
}
