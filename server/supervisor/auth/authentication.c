/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/auth/authentication.h"

#include "protocol/printable.h"
#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WHY_MAX 256

/* A process that can write to the file can create tokens. */
static void
tokens_check_mode(const struct gpd_shared_file *file)
{
	if (file->status.st_mode & S_IWOTH)
		gpd_warning("%s: writable by all users", file->path);
}

/* A file at the default path is optional; a configured one is expected. */
static void
tokens_check_file(const struct gpd_authentication *authentication, const struct gpd_config *config)
{
	const struct gpd_shared_file *file = &authentication->store.file;

	tokens_check_mode(file);
	if ((authentication->option || config->tokens[0]) && !file->status.st_nlink)
		gpd_warning("%s: token file does not exist: tokens are rejected", file->path);
}

int
gpd_authentication_open(struct gpd_authentication *authentication, const struct gpd_config *config,
			const char *option, bool insecure, char *error, size_t error_size)
{
	char buffer[GPD_SHARED_PATH_MAX];
	int r;

	*authentication = (struct gpd_authentication){ .option = option, .insecure = insecure };
	r = gpd_token_store_open(&authentication->store,
				 gpd_folder_select_path(option, config->tokens, GPD_FILE_TOKENS,
							buffer, sizeof(buffer)));
	if (r == 0)
		tokens_check_file(authentication, config);
	(void)snprintf(error, error_size, "%s", authentication->store.file.why);
	return r;
}

void
gpd_authentication_reload(struct gpd_authentication *authentication,
			  const struct gpd_config *config, int64_t now_ms,
			  struct gpd_reload_report *reloaded)
{
	static struct gpd_token_store other;
	char buffer[GPD_SHARED_PATH_MAX];
	const char *path = gpd_folder_select_path(authentication->option, config->tokens,
						  GPD_FILE_TOKENS, buffer, sizeof(buffer));

	if (strcmp(path ? path : "", authentication->store.file.path) == 0) {
		gpd_authentication_refresh(authentication, now_ms);
		if (authentication->store.file.wrong)
			gpd_reload_report_add(reloaded, GPD_LOG_ERROR,
					      "token file not readable: %s",
					      authentication->store.file.why);
		return;
	}
	if (gpd_token_store_open(&other, path)) {
		gpd_reload_report_add(reloaded, GPD_LOG_ERROR, "tokens unchanged: %s",
				      other.file.why);
		return;
	}
	/* Otherwise all sessions that were authenticated by a previous token would end. */
	if (!other.file.status.st_nlink && authentication->store.tokens.count) {
		gpd_reload_report_add(reloaded, GPD_LOG_ERROR, "tokens unchanged: %s: %s",
				      path ? path : "no token file is configured",
				      strerror(ENOENT));
		gpd_tokens_free(&other.tokens);
		return;
	}
	gpd_tokens_free(&authentication->store.tokens);
	authentication->store = other;
	tokens_check_file(authentication, config);
}

void
gpd_authentication_close(struct gpd_authentication *authentication)
{
	gpd_tokens_free(&authentication->store.tokens);
	gpd_crl_file_close(&authentication->crl_state);
}

void
gpd_authentication_refresh(struct gpd_authentication *authentication, int64_t now_ms)
{
	const struct gpd_shared_file *file = &authentication->store.file;
	enum gpd_shared_file_change news = gpd_token_store_refresh(&authentication->store, now_ms);

	if (news == GPD_SHARED_FILE_INVALID) {
		gpd_error("token file not readable: tokens are rejected, and sessions "
			  "authenticated by a token end in %d s: %s",
			  GPD_AUTHENTICATION_GRACE_MS / 1000, file->why);
	} else if (news == GPD_SHARED_FILE_CHANGED) {
		gpd_info("%s has been read: %zu tokens", file->path,
			 authentication->store.tokens.count);
		tokens_check_mode(file);
	}
	gpd_authentication_refresh_crl(authentication, now_ms);
}

/* Writes the full details for the log. */
static void
refusal_explain(enum gpd_auth_refusal refusal, const struct gpd_auth_facts *facts,
		const struct gpd_connection *connection, const char *unchecked, char why[WHY_MAX])
{
	const char *name = facts->certificate ? facts->certificate : "";
	const char *serial = gp_conn_get_certificate_serial(connection->conn);
	const ProtobufCBinaryData *shown = &connection->hello->hello->token;
	struct gp_token token = { .id = "" };
	bool formed = gp_token_parse(shown->data, shown->len, &token) == 0;

	explicit_bzero(token.secret, sizeof(token.secret));
	explicit_bzero(token.text, sizeof(token.text));
	switch (refusal) {
	case GPD_AUTH_NO_CREDENTIALS:
		if (facts->is_daemon_user && facts->is_own_process)
			snprintf(why, WHY_MAX,
				 "no credentials, and process %d is a worker of this daemon, or "
				 "has ended",
				 (int)connection->pid);
		else if (connection->has_uid)
			snprintf(why, WHY_MAX,
				 "no credentials, and user %u is not the daemon's user",
				 (unsigned int)connection->uid);
		else
			snprintf(why, WHY_MAX, "no credentials");
		break;
	case GPD_AUTH_CLEARTEXT_TOKEN:
		snprintf(why, WHY_MAX, "token %s was sent unencrypted: revoke it", token.id);
		break;
	case GPD_AUTH_UNKNOWN_TOKEN:
		if (formed)
			snprintf(why, WHY_MAX, "unknown token %s, or not its secret", token.id);
		else
			snprintf(why, WHY_MAX, "invalid token");
		break;
	case GPD_AUTH_REVOKED_TOKEN:
		snprintf(why, WHY_MAX, "the token %s has been revoked", token.id);
		break;
	case GPD_AUTH_EXPIRED_TOKEN:
		snprintf(why, WHY_MAX, "the token %s has expired", token.id);
		break;
	case GPD_AUTH_UNREADABLE_TOKENS:
		snprintf(why, WHY_MAX, "a token, but the token file is not readable");
		break;
	case GPD_AUTH_REVOKED_CERTIFICATE:
		snprintf(why, WHY_MAX, "the certificate of \"%.100s\", %.40s, has been revoked",
			 name, serial);
		break;
	case GPD_AUTH_UNCHECKED_CERTIFICATE:
		snprintf(why, WHY_MAX, "the certificate of \"%.60s\", %.40s, cannot be checked: %s",
			 name, serial, unchecked);
		break;
	case GPD_AUTH_UNKNOWN_CERTIFICATE:
		snprintf(why, WHY_MAX, "the certificate of \"%.100s\" does not belong to a tenant",
			 facts->certificate);
		break;
	default:
		snprintf(why, WHY_MAX, "its credentials are not those of tenant \"%.63s\"",
			 facts->claimed);
		break;
	}
}

static void
principal_fill(const struct gpd_authentication *authentication, struct gpd_connection *connection,
	       const struct gpd_auth *auth, const struct gpd_token *token)
{
	struct gpd_principal *principal = &connection->principal;

	*principal = (struct gpd_principal){
		.by = auth->by,
		.until_s = gp_conn_get_certificate_not_after(connection->conn),
		.uid = connection->uid,
		.certified = gp_conn_get_certificate_serial(connection->conn) != NULL,
	};
	if (auth->tenant)
		snprintf(principal->tenant, sizeof(principal->tenant), "%s", auth->tenant);
	if (auth->by == GPD_AUTH_BY_TOKEN)
		memcpy(principal->token, token->id, sizeof(principal->token));
}

int
gpd_authentication_authenticate(struct gpd_authentication *authentication,
				const struct gpd_config *config, struct gpd_connection *connection,
				int64_t now_ms, const char **text_p)
{
	const Gpupool__Hello *hello = connection->hello->hello;
	unsigned int caps = gp_conn_caps(connection->conn);
	struct gpd_auth_facts facts = {
		.local = caps & GP_CONN_CAP_LOCAL,
		.encrypted = caps & GP_CONN_CAP_ENCRYPTED,
		.is_daemon_user =
			connection->has_uid && gpd_auth_is_daemon_user(connection->uid, geteuid()),
		.is_own_process = connection->is_own_process,
		.insecure = authentication->insecure,
		.certificate = gp_conn_get_certificate_name(connection->conn),
		.claimed = hello->tenant ? hello->tenant : "",
	};
	const struct gpd_token *token;
	struct gpd_auth auth;
	char why[WHY_MAX], user[128];
	const char *unchecked;
	int config_index = -1;

	gpd_authentication_refresh(authentication, now_ms);
	facts.token = gpd_tokens_check(&authentication->store.tokens, hello->token.data,
				       hello->token.len, time(NULL), &token);
	if (authentication->store.file.wrong && facts.token != GPD_TOKEN_NONE)
		facts.token = GPD_TOKEN_UNREADABLE;
	facts.token_tenant = token ? token->tenant : NULL;
	if (facts.certificate)
		config_index = gpd_config_certificate_find(config, facts.certificate);
	if (config_index >= 0)
		facts.certificate_tenant = config->tenants[config_index].name;
	facts.certificate_state =
		gpd_authentication_check_certificate(authentication, connection->conn, &unchecked);
	auth = gpd_auth_decide(&facts);
	if (auth.refusal == GPD_AUTH_OK)
		principal_fill(authentication, connection, &auth, token);
	else
		refusal_explain(auth.refusal, &facts, connection, unchecked, why);
	/* Hello stays in memory for the lifetime of the connection. */
	if (hello->token.len)
		explicit_bzero(hello->token.data, hello->token.len);
	if (auth.refusal == GPD_AUTH_OK)
		return 0;
	authentication->refusals[auth.refusal]++;
	gp_printable_name(user, sizeof(user), hello->user);
	gpd_client_address_log(connection->client_address, GPD_LOG_WARNING,
			       "%s (%s, user %s): refused: %s", gp_conn_peer(connection->conn),
			       connection->name, user, why);
	*text_p = gpd_auth_explain(auth.refusal, &facts);
	return GP_E_INVALID;
}

const char *
gpd_authentication_recheck(const struct gpd_authentication *authentication,
			   const struct gpd_principal *principal, int64_t now_ms)
{
	enum gpd_token_state state;

	if (principal->by == GPD_AUTH_BY_CERTIFICATE)
		return principal->until_s <= time(NULL) ? "its certificate has expired" : NULL;
	if (principal->by != GPD_AUTH_BY_TOKEN)
		return NULL;
	if (authentication->store.file.wrong &&
	    now_ms - authentication->store.file.wrong_ms >= GPD_AUTHENTICATION_GRACE_MS)
		return "its token cannot be checked: the daemon cannot read its token file";
	state = gpd_tokens_state(&authentication->store.tokens, principal->token, time(NULL));
	if (state == GPD_TOKEN_GOOD)
		return NULL;
	return state == GPD_TOKEN_EXPIRED ? "its token has expired" : "its token has been revoked";
}
