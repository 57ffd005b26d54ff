/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authorization: maps a client's credentials to a tenant or to a reason for refusal.
 *
 * A token that arrives over an unencrypted network connection is always rejected, because it may
 * have been intercepted. So is a revoked certificate, even if the client presents other valid
 * credentials. Otherwise a token decides if there is one, then a certificate; invalid credentials
 * are rejected even if the client would be admitted without any. Without credentials, the daemon's
 * own user and root are admitted from this machine, but not its own workers, and every client if
 * the daemon runs with --insecure.
 *
 * Ownership: texts that functions return are static, except gpd_auth.tenant.
 * Threads: any; the functions keep no state.
 */
#ifndef GPD_AUTHORIZATION_H
#define GPD_AUTHORIZATION_H

#include "server/common/config/token.h"

#include <stdbool.h>
#include <sys/types.h>

/* Revocation state of a client certificate that is valid otherwise. */
enum gpd_certificate_state {
	GPD_CERTIFICATE_GOOD, /* not revoked; also without a CRL or without a certificate */
	GPD_CERTIFICATE_REVOKED,
	/* The CRL file is invalid, or has no CRL of the certificate's authority. */
	GPD_CERTIFICATE_UNCHECKED,
};

/* Facts about a client on which the decision depends. The caller owns the strings. */
struct gpd_auth_facts {
	bool local;          /* the client is on this machine */
	bool encrypted;      /* the connection uses encryption */
	bool is_daemon_user; /* local, and of the daemon's user or root */
	/* The client is a process that the daemon has started, or may have been one
	 * (gpd_worker_process_is_own() of worker_process.h). */
	bool is_own_process;
	bool insecure; /* the daemon admits every client */
	enum gpd_token_state token;
	/* Tenant of the token; used with GPD_TOKEN_GOOD only. */
	const char *token_tenant;
	/* Name in the client's valid certificate; NULL: the client presented none. */
	const char *certificate;
	const char *certificate_tenant; /* tenant that the name belongs to; NULL: no tenant */
	enum gpd_certificate_state certificate_state;
	/* Name of the tenant that the client requests, not NULL; "": it requests none. */
	const char *claimed;
};

/* Reason for a refusal. */
enum gpd_auth_refusal {
	GPD_AUTH_OK, /* not refused */
	GPD_AUTH_NO_CREDENTIALS,
	GPD_AUTH_CLEARTEXT_TOKEN, /* a token on an unencrypted network connection */
	GPD_AUTH_UNKNOWN_TOKEN,
	GPD_AUTH_REVOKED_TOKEN,
	GPD_AUTH_EXPIRED_TOKEN,
	GPD_AUTH_UNREADABLE_TOKENS, /* the daemon cannot check the token at the moment */
	GPD_AUTH_REVOKED_CERTIFICATE,
	GPD_AUTH_UNCHECKED_CERTIFICATE, /* the daemon cannot check whether it is revoked */
	GPD_AUTH_UNKNOWN_CERTIFICATE,   /* no tenant lists the name of the certificate */
	GPD_AUTH_OTHER_TENANT, /* the client requests another tenant than that of its credentials */
	/* TLS handshake failed, invalid certificate, or a preamble that does not match the
	 * address's use of TLS; counted only, not returned by gpd_auth_decide(). */
	GPD_AUTH_HANDSHAKE,
	/* Invalid ticket or key of a data connection; counted only, not returned by
	 * gpd_auth_decide(). */
	GPD_AUTH_TICKET,
	GPD_AUTH_REFUSALS,
};

/* Credentials by which a client is authenticated. */
enum gpd_auth_by {
	GPD_AUTH_BY_NONE, /* none: --insecure, or not authenticated yet */
	GPD_AUTH_BY_TOKEN,
	GPD_AUTH_BY_CERTIFICATE,
	GPD_AUTH_BY_USER, /* local user: root or the daemon's user */
};

/* A decision. */
struct gpd_auth {
	enum gpd_auth_refusal refusal;
	enum gpd_auth_by by; /* with GPD_AUTH_OK */
	/* With GPD_AUTH_OK: tenant of the client, borrowed from the facts; NULL: the tenant that it
	 * requests. */
	const char *tenant;
};

/* The authenticated identity of a connection. Initialized to zeros: not authenticated. Set by
 * gpd_authentication_authenticate() (authentication.h). */
struct gpd_principal {
	enum gpd_auth_by by;
	char token[GP_TOKEN_ID_LENGTH + 1]; /* ID of the token, with GPD_AUTH_BY_TOKEN */
	/* Expiry of the certificate in seconds since 1970-01-01 UTC, with
	 * GPD_AUTH_BY_CERTIFICATE. */
	int64_t until_s;
	uid_t uid;      /* local user ID; valid with GPD_AUTH_BY_USER */
	bool certified; /* a certificate was presented, even if other credentials decided */
	/* Tenant of the credentials; "": the tenant that the client requests. */
	char tenant[GPD_TENANT_NAME_MAX];
};

/* Decides whether the client is admitted. The result's tenant points into facts. */
struct gpd_auth gpd_auth_decide(const struct gpd_auth_facts *facts);

/* Returns the text that is sent to the refused client; "" if none is sent. It contains no
 * information that only an authenticated client may have. facts: as passed to gpd_auth_decide(). */
const char *gpd_auth_explain(enum gpd_auth_refusal refusal, const struct gpd_auth_facts *facts);
/* Returns a short name for logs and metrics labels, for example "no_credentials". */
const char *gpd_auth_name(enum gpd_auth_refusal refusal);

/* Returns whether peer, the user ID of a local connection, is root's or the same as own, the
 * daemon's user ID. The ID 65534 is never the daemon's, because in a user namespace it represents
 * every user without a mapping. */
bool gpd_auth_is_daemon_user(uid_t peer, uid_t own);

#endif /* GPD_AUTHORIZATION_H */
