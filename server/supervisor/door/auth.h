/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is let in, and whose he is: what is known of a client, made into a decision.  Pure functions
 * of values; any thread.
 *
 * A token or a certificate that is shown counts, whoever shows it: a certificate that is revoked is
 * refused whatever else comes with it, and one that is nobody's unless a token does.  Without one,
 * the daemon's own user and root are let in from this machine, and everybody if the daemon is
 * --insecure.
 */
#ifndef GPD_AUTH_H
#define GPD_AUTH_H

#include "server/common/config/token.h"

#include <stdbool.h>
#include <sys/types.h>

/* What the list of revoked ones says of a certificate that is good otherwise, whatever its name. */
enum gpd_certificate_state {
	GPD_CERTIFICATE_GOOD, /* also if there is no list, or no certificate */
	GPD_CERTIFICATE_REVOKED,
	GPD_CERTIFICATE_UNCHECKED, /* there is a list, and nobody knows what it says */
};

struct gpd_auth_facts {
	bool local;          /* the client is on this machine */
	bool encrypted;      /* nobody on the way can read or change what is said */
	bool is_daemon_user; /* local, and of the daemon's user or root */
	bool insecure;       /* the daemon lets everybody in */
	enum gpd_token_state token;
	const char *token_tenant;       /* with GPD_TOKEN_GOOD */
	const char *certificate;        /* whom a good certificate names; NULL: none was shown */
	const char *certificate_tenant; /* whose that name is; NULL: nobody's */
	enum gpd_certificate_state certificate_state;
	const char *claimed; /* the tenant that the client names; "": none */
};

enum gpd_auth_refusal {
	GPD_AUTH_OK,
	GPD_AUTH_NO_CREDENTIALS,
	GPD_AUTH_CLEARTEXT_TOKEN, /* a token on a connection that others may read */
	GPD_AUTH_UNKNOWN_TOKEN,
	GPD_AUTH_REVOKED_TOKEN,
	GPD_AUTH_EXPIRED_TOKEN,
	GPD_AUTH_UNREADABLE_TOKENS, /* a token, which the daemon cannot check */
	GPD_AUTH_REVOKED_CERTIFICATE,
	GPD_AUTH_UNCHECKED_CERTIFICATE,
	GPD_AUTH_UNKNOWN_CERTIFICATE, /* its name is no tenant's */
	GPD_AUTH_OTHER_TENANT,        /* the client names one that is not the credentials' */
	GPD_AUTH_HANDSHAKE,           /* of TLS, a bad certificate included; never decided here */
	GPD_AUTH_TICKET,              /* of a lane, or its key; never decided here */
	GPD_AUTH_REFUSALS,
};

enum gpd_auth_by {
	GPD_AUTH_BY_NONE, /* --insecure, or not yet */
	GPD_AUTH_BY_TOKEN,
	GPD_AUTH_BY_CERTIFICATE,
	GPD_AUTH_BY_USER,
};

struct gpd_auth {
	enum gpd_auth_refusal refusal;
	enum gpd_auth_by by; /* with GPD_AUTH_OK */
	const char *tenant;  /* whose the client is; NULL: as it claims */
};

/* What is kept of that with the client's connection. */
struct gpd_principal {
	enum gpd_auth_by by;
	char token[GP_TOKEN_ID_LENGTH + 1]; /* its ID, with GPD_AUTH_BY_TOKEN */
	int64_t until_s;                    /* of the certificate, with GPD_AUTH_BY_CERTIFICATE */
	uid_t uid;                          /* of this machine, with GPD_AUTH_BY_USER */
	bool certified;                     /* a certificate was shown, whatever let it in */
	char tenant[GPD_TENANT_NAME_MAX];   /* of the credentials; "": as the client claims */
};

struct gpd_auth gpd_auth_decide(const struct gpd_auth_facts *facts);

/* What the client is told: nothing that a stranger shall not know. */
const char *gpd_auth_explain(enum gpd_auth_refusal refusal, const struct gpd_auth_facts *facts);
/* In one or two words, for a label: "no_credentials". */
const char *gpd_auth_name(enum gpd_auth_refusal refusal);

/* Whether the user at the other end of a connection within this machine is the daemon's. */
bool gpd_auth_is_daemon_user(uid_t peer, uid_t own);

#endif /* GPD_AUTH_H */
