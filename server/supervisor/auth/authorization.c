/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/auth/authorization.h"

#include <string.h>

/* In a user namespace this ID represents all users without a mapping there. */
#define OVERFLOW_UID 65534

static struct gpd_auth
auth_refuse(enum gpd_auth_refusal refusal)
{
	return (struct gpd_auth){ .refusal = refusal };
}

/* Accepts credentials of this tenant. */
static struct gpd_auth
auth_accept(const struct gpd_auth_facts *facts, enum gpd_auth_by by, const char *tenant)
{
	if (facts->claimed[0] && strcmp(facts->claimed, tenant) != 0)
		return auth_refuse(GPD_AUTH_OTHER_TENANT);
	return (struct gpd_auth){ .by = by, .tenant = tenant };
}

struct gpd_auth
gpd_auth_decide(const struct gpd_auth_facts *facts)
{
	/* The token may have been intercepted. */
	if (facts->token != GPD_TOKEN_NONE && !facts->encrypted && !facts->local)
		return auth_refuse(GPD_AUTH_CLEARTEXT_TOKEN);
	/* The certificate's key is compromised, or its owner's access was withdrawn. */
	if (facts->certificate_state == GPD_CERTIFICATE_REVOKED)
		return auth_refuse(GPD_AUTH_REVOKED_CERTIFICATE);
	switch (facts->token) {
	case GPD_TOKEN_GOOD:
		return auth_accept(facts, GPD_AUTH_BY_TOKEN, facts->token_tenant);
	case GPD_TOKEN_UNKNOWN:
		return auth_refuse(GPD_AUTH_UNKNOWN_TOKEN);
	case GPD_TOKEN_REVOKED:
		return auth_refuse(GPD_AUTH_REVOKED_TOKEN);
	case GPD_TOKEN_EXPIRED:
		return auth_refuse(GPD_AUTH_EXPIRED_TOKEN);
	case GPD_TOKEN_UNREADABLE:
		return auth_refuse(GPD_AUTH_UNREADABLE_TOKENS);
	case GPD_TOKEN_NONE:
		break;
	}
	if (facts->certificate && !facts->certificate_tenant)
		return auth_refuse(GPD_AUTH_UNKNOWN_CERTIFICATE);
	if (facts->certificate && facts->certificate_state == GPD_CERTIFICATE_UNCHECKED)
		return auth_refuse(GPD_AUTH_UNCHECKED_CERTIFICATE);
	if (facts->certificate)
		return auth_accept(facts, GPD_AUTH_BY_CERTIFICATE, facts->certificate_tenant);
	if (facts->local && facts->is_daemon_user && !facts->is_own_process)
		return (struct gpd_auth){ .by = GPD_AUTH_BY_USER };
	if (facts->insecure)
		return (struct gpd_auth){ .by = GPD_AUTH_BY_NONE };
	return auth_refuse(GPD_AUTH_NO_CREDENTIALS);
}

/* Short name, and the text for the client; NULL if the text depends on the connection. After
 * HANDSHAKE and TICKET no text is sent. */
static const struct {
	const char *name, *client_text;
} texts[GPD_AUTH_REFUSALS] = {
	[GPD_AUTH_OK] = { "none", "" },
	[GPD_AUTH_NO_CREDENTIALS] = { "no_credentials", NULL },
	[GPD_AUTH_CLEARTEXT_TOKEN] = { "token_in_clear", "token sent over an unencrypted "
							 "connection: it may be compromised" },
	[GPD_AUTH_UNKNOWN_TOKEN] = { "unknown_token", "unknown token" },
	[GPD_AUTH_REVOKED_TOKEN] = { "revoked_token", "the token has been revoked" },
	[GPD_AUTH_EXPIRED_TOKEN] = { "expired_token", "the token has expired" },
	[GPD_AUTH_UNREADABLE_TOKENS] = { "unreadable_tokens",
					 "the daemon cannot read its token file" },
	[GPD_AUTH_REVOKED_CERTIFICATE] = { "revoked_certificate",
					   "the client certificate has been revoked" },
	[GPD_AUTH_UNCHECKED_CERTIFICATE] = { "unchecked_certificate",
					     "the daemon cannot check whether the client "
					     "certificate is revoked" },
	[GPD_AUTH_UNKNOWN_CERTIFICATE] = { "unknown_certificate",
					   "the client certificate does not belong to a tenant" },
	[GPD_AUTH_OTHER_TENANT] = { "other_tenant",
				    "the credentials are not those of the tenant that "
				    "GPUPOOL_TENANT names" },
	[GPD_AUTH_HANDSHAKE] = { "tls_handshake", "" },
	[GPD_AUTH_TICKET] = { "unknown_ticket", "" },
};

const char *
gpd_auth_explain(enum gpd_auth_refusal refusal, const struct gpd_auth_facts *facts)
{
	if (texts[refusal].client_text)
		return texts[refusal].client_text;
	if (facts->encrypted)
		return "credentials are required: a token (GPUPOOL_TOKEN_FILE) or a client "
		       "certificate (GPUPOOL_TLS_CERT)";
	if (facts->local && facts->is_daemon_user && facts->is_own_process)
		return "a worker of the daemon cannot be its client";
	if (facts->local)
		return "the daemon belongs to another user: a token is required "
		       "(GPUPOOL_TOKEN_FILE)";
	return "credentials are required, and this connection is not encrypted: use tls://";
}

const char *
gpd_auth_name(enum gpd_auth_refusal refusal)
{
	return texts[refusal].name;
}

bool
gpd_auth_is_daemon_user(uid_t peer, uid_t own)
{
	return peer == 0 || (peer == own && peer != OVERFLOW_UID);
}
