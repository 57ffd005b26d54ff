/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/auth/authorization.h"
#include "tests/test.h"

#include <string.h>

/* Authorization: the whole table, with every combination of a client's credentials. */

enum shown_certificate {
	NO_CERTIFICATE,
	CERTIFICATE_OF_CAROL,
	CERTIFICATE_OF_NOBODY,
	CERTIFICATES,
};

static const char *const claims[] = { "", "alice", "carol", "other" };

static struct gpd_auth_facts
make_facts(unsigned int bits, enum gpd_token_state token, enum shown_certificate certificate,
	   enum gpd_certificate_state state, const char *claimed)
{
	struct gpd_auth_facts facts = {
		.local = bits & 1,
		.encrypted = bits & 2,
		.is_daemon_user = bits & 4,
		.insecure = bits & 8,
		.is_own_process = bits & 16,
		.token = token,
		.token_tenant = token == GPD_TOKEN_GOOD ? "alice" : NULL,
		.certificate = certificate ? "carol.example" : NULL,
		.certificate_tenant = certificate == CERTIFICATE_OF_CAROL ? "carol" : NULL,
		.certificate_state = certificate ? state : GPD_CERTIFICATE_GOOD,
		.claimed = claimed,
	};

	return facts;
}

/* The rules of authorization.h, written independently of authorization.c. */
static bool
is_let_in(const struct gpd_auth_facts *facts, const char **tenant_p)
{
	bool credentials = facts->token != GPD_TOKEN_NONE || facts->certificate;

	if (facts->certificate_state == GPD_CERTIFICATE_REVOKED)
		return false;
	*tenant_p = facts->token == GPD_TOKEN_GOOD   ? facts->token_tenant
		    : facts->token == GPD_TOKEN_NONE ? facts->certificate_tenant
						     : NULL;
	if (!credentials)
		return facts->insecure ||
		       (facts->local && facts->is_daemon_user && !facts->is_own_process);
	if (facts->token != GPD_TOKEN_NONE && !facts->local && !facts->encrypted)
		return false;
	if (facts->token == GPD_TOKEN_NONE && facts->certificate_state == GPD_CERTIFICATE_UNCHECKED)
		return false;
	return *tenant_p && (!facts->claimed[0] || strcmp(facts->claimed, *tenant_p) == 0);
}

static void
check(const struct gpd_auth_facts *facts)
{
	struct gpd_auth auth = gpd_auth_decide(facts);
	const char *tenant;
	bool expected = is_let_in(facts, &tenant);

	if ((auth.refusal == GPD_AUTH_OK) != expected)
		fail_msg("local %d encrypted %d own %d insecure %d token %d certificate %s %d "
			 "claimed %s: refusal %d",
			 facts->local, facts->encrypted, facts->is_daemon_user, facts->insecure,
			 (int)facts->token,
			 facts->certificate_tenant ? facts->certificate_tenant : "",
			 (int)facts->certificate_state, facts->claimed, (int)auth.refusal);
	if (!expected) {
		assert_string_not_equal(gpd_auth_explain(auth.refusal, facts), "");
		assert_string_not_equal(gpd_auth_name(auth.refusal), "");
		return;
	}
	if (!tenant)
		assert_null(auth.tenant);
	else
		assert_string_equal(auth.tenant, tenant);
	assert_int_equal(auth.by == GPD_AUTH_BY_TOKEN, facts->token == GPD_TOKEN_GOOD);
	if (auth.by == GPD_AUTH_BY_NONE)
		assert_true(facts->insecure &&
			    !(facts->local && facts->is_daemon_user && !facts->is_own_process));
}

static void
check_certificates(unsigned int bits, enum gpd_token_state token, const char *claimed)
{
	for (int certificate = 0; certificate < CERTIFICATES; certificate++)
		for (int state = GPD_CERTIFICATE_GOOD; state <= GPD_CERTIFICATE_UNCHECKED;
		     state++) {
			struct gpd_auth_facts facts =
				make_facts(bits, token, (enum shown_certificate)certificate,
					   (enum gpd_certificate_state)state, claimed);

			check(&facts);
		}
}

UNIT_TEST(the_whole_table_is_as_the_rules_say)
{
	for (unsigned int bits = 0; bits < 32; bits++)
		for (int token = GPD_TOKEN_NONE; token <= GPD_TOKEN_UNREADABLE; token++)
			for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++)
				check_certificates(bits, (enum gpd_token_state)token, claims[i]);
}

static void
expect(const struct gpd_auth_facts *facts, enum gpd_auth_refusal refusal, const char *text)
{
	assert_int_equal(gpd_auth_decide(facts).refusal, refusal);
	if (text && !strstr(gpd_auth_explain(refusal, facts), text))
		fail_msg("\"%s\" is not in \"%s\"", text, gpd_auth_explain(refusal, facts));
}

UNIT_TEST(each_refusal_has_its_reason)
{
	struct gpd_auth_facts remote = { .encrypted = true, .claimed = "" }, facts;

	expect(&remote, GPD_AUTH_NO_CREDENTIALS, "GPUPOOL_TOKEN_FILE");
	facts = (struct gpd_auth_facts){ .local = true, .claimed = "" };
	expect(&facts, GPD_AUTH_NO_CREDENTIALS, "another user");
	facts.is_daemon_user = facts.is_own_process = true;
	expect(&facts, GPD_AUTH_NO_CREDENTIALS, "a worker of the daemon");
	facts = (struct gpd_auth_facts){ .claimed = "" };
	expect(&facts, GPD_AUTH_NO_CREDENTIALS, "tls://");
	facts.token = GPD_TOKEN_GOOD;
	facts.token_tenant = "alice";
	expect(&facts, GPD_AUTH_CLEARTEXT_TOKEN, "unencrypted");
	facts = remote;
	facts.token = GPD_TOKEN_UNKNOWN;
	expect(&facts, GPD_AUTH_UNKNOWN_TOKEN, "unknown token");
	facts.token = GPD_TOKEN_REVOKED;
	expect(&facts, GPD_AUTH_REVOKED_TOKEN, "revoked");
	facts.token = GPD_TOKEN_EXPIRED;
	expect(&facts, GPD_AUTH_EXPIRED_TOKEN, "expired");
	facts.token = GPD_TOKEN_UNREADABLE;
	expect(&facts, GPD_AUTH_UNREADABLE_TOKENS, "cannot read its token file");
	facts = remote;
	facts.certificate = "mallory";
	expect(&facts, GPD_AUTH_UNKNOWN_CERTIFICATE, "does not belong to a tenant");
	facts.certificate_tenant = "carol";
	facts.certificate_state = GPD_CERTIFICATE_REVOKED;
	expect(&facts, GPD_AUTH_REVOKED_CERTIFICATE, "has been revoked");
	facts.certificate_state = GPD_CERTIFICATE_UNCHECKED;
	expect(&facts, GPD_AUTH_UNCHECKED_CERTIFICATE, "cannot check");
	facts.certificate_state = GPD_CERTIFICATE_GOOD;
	facts.claimed = "alice";
	expect(&facts, GPD_AUTH_OTHER_TENANT, "GPUPOOL_TENANT");
}

/* Root, too, gets an error for credentials that are not valid. */
UNIT_TEST(a_certificate_of_nobody_is_refused_whoever_shows_it)
{
	for (unsigned int bits = 0; bits < 16; bits++) {
		struct gpd_auth_facts facts = make_facts(
			bits, GPD_TOKEN_NONE, CERTIFICATE_OF_NOBODY, GPD_CERTIFICATE_GOOD, "");

		expect(&facts, GPD_AUTH_UNKNOWN_CERTIFICATE, "does not belong to a tenant");
	}
}

UNIT_TEST(a_token_goes_before_a_certificate)
{
	struct gpd_auth_facts facts =
		make_facts(2, GPD_TOKEN_GOOD, CERTIFICATE_OF_CAROL, GPD_CERTIFICATE_GOOD, "");

	assert_string_equal(gpd_auth_decide(&facts).tenant, "alice");
	facts.token = GPD_TOKEN_REVOKED;
	expect(&facts, GPD_AUTH_REVOKED_TOKEN, NULL);
}

UNIT_TEST(root_is_everybodys_user_and_the_overflow_user_nobodys)
{
	assert_true(gpd_auth_is_daemon_user(0, 0));
	assert_true(gpd_auth_is_daemon_user(0, 1000));
	assert_true(gpd_auth_is_daemon_user(1000, 1000));
	assert_false(gpd_auth_is_daemon_user(1000, 0));
	assert_false(gpd_auth_is_daemon_user(1000, 1001));
	assert_false(gpd_auth_is_daemon_user(65534, 65534));
}

UNIT_TEST_MAIN(NULL, NULL)
