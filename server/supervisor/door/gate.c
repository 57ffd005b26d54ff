/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/door/gate.h"

#include "protocol/printable.h"
#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WHY_MAX 256

/* Who can write to it can make tokens. */
static void
check_mode(const struct gpd_shared_file *file)
{
	if (file->status.st_mode & S_IWOTH)
		gpd_warning("%s: everybody on this machine can change it", file->path);
}

/* Where there usually is a file there need not be one. */
static void
check_file(const struct gpd_gate *gate, const struct gpd_config *config)
{
	const struct gpd_shared_file *file = &gate->store.file;

	check_mode(file);
	if ((gate->option || config->tokens[0]) && !file->status.st_nlink)
		gpd_warning(
			"%s: there is no such file of tokens: until there is one, nobody is let "
			"in by a token",
			file->path);
}

int
gpd_gate_open(struct gpd_gate *gate, const struct gpd_config *config, const char *option,
	      bool insecure, char *error, size_t error_size)
{
	char room[GPD_SHARED_PATH_MAX];
	int r;

	*gate = (struct gpd_gate){ .option = option, .insecure = insecure };
	r = gpd_token_store_open(
		&gate->store,
		gpd_folder_choose(option, config->tokens, GPD_FILE_TOKENS, room, sizeof(room)));
	if (r == 0)
		check_file(gate, config);
	(void)snprintf(error, error_size, "%s", gate->store.file.why);
	return r;
}

void
gpd_gate_reload(struct gpd_gate *gate, const struct gpd_config *config, int64_t now_ms,
		struct gpd_reloaded *reloaded)
{
	static struct gpd_token_store other;
	char room[GPD_SHARED_PATH_MAX];
	const char *path = gpd_folder_choose(gate->option, config->tokens, GPD_FILE_TOKENS, room,
					     sizeof(room));

	if (strcmp(path ? path : "", gate->store.file.path) == 0) {
		gpd_gate_refresh(gate, now_ms);
		if (gate->store.file.wrong)
			gpd_reloaded_say(reloaded, GPD_LOG_ERROR, "the tokens cannot be read: %s",
					 gate->store.file.why);
		return;
	}
	if (gpd_token_store_open(&other, path)) {
		gpd_reloaded_say(reloaded, GPD_LOG_ERROR, "the tokens stay as they were: %s",
				 other.file.why);
		return;
	}
	/* It would end the sessions of all who came by a token of before. */
	if (!other.file.status.st_nlink && gate->store.tokens.count) {
		gpd_reloaded_say(reloaded, GPD_LOG_ERROR, "the tokens stay as they were: %s: %s",
				 path ? path : "no file of tokens is named", strerror(ENOENT));
		gpd_tokens_free(&other.tokens);
		return;
	}
	gpd_tokens_free(&gate->store.tokens);
	gate->store = other;
	check_file(gate, config);
}

void
gpd_gate_close(struct gpd_gate *gate)
{
	gpd_tokens_free(&gate->store.tokens);
	gpd_crl_file_close(&gate->revoked);
}

void
gpd_gate_refresh(struct gpd_gate *gate, int64_t now_ms)
{
	const struct gpd_shared_file *file = &gate->store.file;
	enum gpd_shared_file_news news = gpd_token_store_refresh(&gate->store, now_ms);

	if (news == GPD_SHARED_FILE_WRONG) {
		gpd_error("the tokens cannot be read: nobody is let in by one, and in %d s the "
			  "sessions that came by one end: %s",
			  GPD_GATE_GRACE_MS / 1000, file->why);
	} else if (news == GPD_SHARED_FILE_CHANGED) {
		gpd_info("%s has been read: %zu tokens", file->path, gate->store.tokens.count);
		check_mode(file);
	}
	gpd_gate_refresh_revoked(gate, now_ms);
}

/* For the log: all that is known. */
static void
explain(enum gpd_auth_refusal refusal, const struct gpd_auth_facts *facts,
	const struct gpd_peer *peer, const char *unchecked, char why[WHY_MAX])
{
	const char *name = facts->certificate ? facts->certificate : "";
	const char *serial = gp_conn_certificate_serial(peer->conn);
	const ProtobufCBinaryData *shown = &peer->hello->hello->token;
	struct gp_token token = { .id = "" };
	bool formed = gp_token_parse(shown->data, shown->len, &token) == 0;

	explicit_bzero(token.secret, sizeof(token.secret));
	explicit_bzero(token.text, sizeof(token.text));
	switch (refusal) {
	case GPD_AUTH_NO_CREDENTIALS:
		if (peer->has_uid)
			snprintf(why, WHY_MAX, "no credentials, and user %u is not the daemon's",
				 (unsigned int)peer->uid);
		else
			snprintf(why, WHY_MAX, "no credentials");
		break;
	case GPD_AUTH_IN_CLEAR:
		snprintf(why, WHY_MAX, "the token %s came unencrypted: better revoke it", token.id);
		break;
	case GPD_AUTH_UNKNOWN_TOKEN:
		if (formed)
			snprintf(why, WHY_MAX, "unknown token %s, or not its secret", token.id);
		else
			snprintf(why, WHY_MAX, "what it shows is no token");
		break;
	case GPD_AUTH_REVOKED_TOKEN:
		snprintf(why, WHY_MAX, "the token %s has been revoked", token.id);
		break;
	case GPD_AUTH_EXPIRED_TOKEN:
		snprintf(why, WHY_MAX, "the token %s has expired", token.id);
		break;
	case GPD_AUTH_UNREADABLE_TOKENS:
		snprintf(why, WHY_MAX, "a token, and the tokens cannot be read");
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
		snprintf(why, WHY_MAX, "the certificate of \"%.100s\" is no tenant's",
			 facts->certificate);
		break;
	default:
		snprintf(why, WHY_MAX, "its credentials are not those of tenant \"%.63s\"",
			 facts->claimed);
		break;
	}
}

static void
fill_pass(const struct gpd_gate *gate, struct gpd_peer *peer, const struct gpd_auth *auth,
	  const struct gpd_token *token)
{
	struct gpd_pass *pass = &peer->pass;

	*pass = (struct gpd_pass){
		.by = auth->by,
		.until_s = gp_conn_certificate_until(peer->conn),
		.uid = peer->uid,
		.certified = gp_conn_certificate_serial(peer->conn) != NULL,
	};
	if (auth->tenant)
		snprintf(pass->tenant, sizeof(pass->tenant), "%s", auth->tenant);
	if (auth->by == GPD_AUTH_BY_TOKEN)
		memcpy(pass->token, token->id, sizeof(pass->token));
}

int
gpd_gate_admit(struct gpd_gate *gate, const struct gpd_config *config, struct gpd_peer *peer,
	       int64_t now_ms, const char **text_p)
{
	const Gpupool__Hello *hello = peer->hello->hello;
	unsigned int caps = gp_conn_caps(peer->conn);
	struct gpd_auth_facts facts = {
		.local = caps & GP_CONN_CAP_LOCAL,
		.encrypted = caps & GP_CONN_CAP_ENCRYPTED,
		.own_user = peer->has_uid && gpd_auth_is_own_user(peer->uid, geteuid()),
		.insecure = gate->insecure,
		.certificate = gp_conn_certificate(peer->conn),
		.claimed = hello->tenant ? hello->tenant : "",
	};
	const struct gpd_token *token;
	struct gpd_auth auth;
	char why[WHY_MAX], user[128];
	const char *unchecked;
	int place = -1;

	gpd_gate_refresh(gate, now_ms);
	facts.token = gpd_tokens_check(&gate->store.tokens, hello->token.data, hello->token.len,
				       time(NULL), &token);
	if (gate->store.file.wrong && facts.token != GPD_TOKEN_NONE)
		facts.token = GPD_TOKEN_UNREADABLE;
	facts.token_tenant = token ? token->tenant : NULL;
	if (facts.certificate)
		place = gpd_config_certificate_find(config, facts.certificate);
	if (place >= 0)
		facts.certificate_tenant = config->tenants[place].name;
	facts.certificate_state = gpd_gate_certificate(gate, peer->conn, &unchecked);
	auth = gpd_auth_decide(&facts);
	if (auth.refusal == GPD_AUTH_LET_IN)
		fill_pass(gate, peer, &auth, token);
	else
		explain(auth.refusal, &facts, peer, unchecked, why);
	/* Hello is kept as long as the client is there. */
	if (hello->token.len)
		explicit_bzero(hello->token.data, hello->token.len);
	if (auth.refusal == GPD_AUTH_LET_IN)
		return 0;
	gate->refusals[auth.refusal]++;
	gp_printable_name(user, sizeof(user), hello->user);
	gpd_source_log(peer->source, GPD_LOG_WARNING, "%s (%s, user %s): refused: %s",
		       gp_conn_peer(peer->conn), peer->name, user, why);
	*text_p = gpd_auth_explain(auth.refusal, &facts);
	return GP_E_INVALID;
}

const char *
gpd_gate_check(const struct gpd_gate *gate, const struct gpd_pass *pass, int64_t now_ms)
{
	enum gpd_token_state state;

	if (pass->by == GPD_AUTH_BY_CERTIFICATE)
		return pass->until_s <= time(NULL) ? "its certificate has expired" : NULL;
	if (pass->by != GPD_AUTH_BY_TOKEN)
		return NULL;
	if (gate->store.file.wrong && now_ms - gate->store.file.wrong_ms >= GPD_GATE_GRACE_MS)
		return "its token cannot be checked: the daemon cannot read its tokens";
	state = gpd_tokens_state(&gate->store.tokens, pass->token, time(NULL));
	if (state == GPD_TOKEN_GOOD)
		return NULL;
	return state == GPD_TOKEN_EXPIRED ? "its token has expired" : "its token has been revoked";
}
