/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/certificate.h"
#include "tests/test.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DAY 86400

static struct ctl_identity
make(enum ctl_certificate_use use, const char *name, const struct ctl_identity *authority,
     int host_count, char *const *hosts)
{
	const struct ctl_certificate_params wish = {
		.use = use,
		.name = name,
		.hosts = hosts,
		.host_count = host_count,
		.seconds = 30 * DAY,
	};
	struct ctl_identity made;

	assert_int_equal(ctl_certificate_make(&wish, authority, &made), 0);
	assert_non_null(made.certificate);
	assert_non_null(made.key);
	return made;
}

/* X509_V_OK, or why a peer does not believe it. */
static int
verify(const struct ctl_identity *leaf, const struct ctl_identity *authority, int purpose,
       const char *host, time_t when)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *context = X509_STORE_CTX_new();
	int result;

	assert_int_equal(X509_STORE_add_cert(store, authority->certificate), 1);
	assert_int_equal(X509_STORE_CTX_init(context, store, leaf->certificate, NULL), 1);
	assert_int_equal(X509_STORE_CTX_set_purpose(context, purpose), 1);
	X509_STORE_CTX_set_time(context, 0, when);
	if (host)
		assert_int_equal(
			X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(context), host, 0),
			1);
	result = X509_verify_cert(context) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(context);
	X509_STORE_CTX_free(context);
	X509_STORE_free(store);
	return result;
}

UNIT_TEST(a_daemons_certificate_holds_for_its_hosts_and_its_time)
{
	char *hosts[] = { "gpunode", "*.pool.example", "10.0.0.5", "fd00::5" };
	struct ctl_identity ca = make(CTL_CERTIFICATE_AUTHORITY, "pool", NULL, 0, NULL);
	struct ctl_identity leaf = make(CTL_CERTIFICATE_SERVER, "gpunode", &ca, 4, hosts);
	struct ctl_identity other = make(CTL_CERTIFICATE_AUTHORITY, "pool", NULL, 0, NULL);
	time_t now = time(NULL);

	assert_int_equal(verify(&leaf, &ca, X509_PURPOSE_SSL_SERVER, "gpunode", now), X509_V_OK);
	assert_int_equal(verify(&leaf, &ca, X509_PURPOSE_SSL_SERVER, "a.pool.example", now),
			 X509_V_OK);
	assert_int_equal(verify(&leaf, &ca, X509_PURPOSE_SSL_SERVER, "gpunode2", now),
			 X509_V_ERR_HOSTNAME_MISMATCH);
	assert_int_equal(X509_check_ip_asc(leaf.certificate, "10.0.0.5", 0), 1);
	assert_int_equal(X509_check_ip_asc(leaf.certificate, "fd00::5", 0), 1);
	assert_int_equal(X509_check_ip_asc(leaf.certificate, "10.0.0.6", 0), 0);
	assert_int_equal(verify(&leaf, &ca, X509_PURPOSE_SSL_SERVER, NULL, now + 31 * DAY),
			 X509_V_ERR_CERT_HAS_EXPIRED);
	assert_int_equal(verify(&leaf, &ca, X509_PURPOSE_SSL_SERVER, NULL, now - DAY),
			 X509_V_ERR_CERT_NOT_YET_VALID);
	/* Nobody's clock is exact. */
	assert_int_equal(verify(&leaf, &ca, X509_PURPOSE_SSL_SERVER, NULL, now - 60), X509_V_OK);
	assert_int_not_equal(verify(&leaf, &other, X509_PURPOSE_SSL_SERVER, NULL, now), X509_V_OK);
	ctl_identity_free(&ca);
	ctl_identity_free(&leaf);
	ctl_identity_free(&other);
}

UNIT_TEST(each_certificate_is_for_one_use)
{
	char *hosts[] = { "gpunode" };
	struct ctl_identity ca = make(CTL_CERTIFICATE_AUTHORITY, "pool", NULL, 0, NULL);
	struct ctl_identity server = make(CTL_CERTIFICATE_SERVER, "gpunode", &ca, 1, hosts);
	struct ctl_identity client = make(CTL_CERTIFICATE_CLIENT, "alice", &ca, 0, NULL);
	struct ctl_identity signed_by_client =
		make(CTL_CERTIFICATE_CLIENT, "mallory", &client, 0, NULL);
	time_t now = time(NULL);

	assert_int_equal(verify(&client, &ca, X509_PURPOSE_SSL_CLIENT, NULL, now), X509_V_OK);
	assert_int_equal(verify(&client, &ca, X509_PURPOSE_SSL_SERVER, NULL, now),
			 X509_V_ERR_INVALID_PURPOSE);
	assert_int_equal(verify(&server, &ca, X509_PURPOSE_SSL_CLIENT, NULL, now),
			 X509_V_ERR_INVALID_PURPOSE);
	assert_int_not_equal(verify(&signed_by_client, &client, X509_PURPOSE_SSL_CLIENT, NULL, now),
			     X509_V_OK);
	ctl_identity_free(&ca);
	ctl_identity_free(&server);
	ctl_identity_free(&client);
	ctl_identity_free(&signed_by_client);
}

UNIT_TEST(what_it_says_is_told)
{
	char *hosts[] = { "gpunode", "10.0.0.5", "fd00::5" };
	struct ctl_identity ca = make(CTL_CERTIFICATE_AUTHORITY, "our pool", NULL, 0, NULL);
	struct ctl_identity leaf = make(CTL_CERTIFICATE_SERVER, "gpunode", &ca, 3, hosts);
	struct ctl_identity client = make(CTL_CERTIFICATE_CLIENT, "J\xc3\xb6rg", &ca, 0, NULL);
	struct ctl_certificate_facts facts;
	int64_t now = time(NULL);

	assert_int_equal(ctl_certificate_describe(leaf.certificate, &facts), 0);
	assert_int_equal(facts.use, CTL_CERTIFICATE_SERVER);
	assert_string_equal(facts.name, "gpunode");
	assert_string_equal(facts.hosts, "gpunode, 10.0.0.5, fd00::5");
	assert_string_equal(facts.issuer, "our pool");
	assert_int_equal(strlen(facts.fingerprint), 64);
	assert_true(facts.from_s <= now && now - facts.from_s < 1000);
	assert_true(facts.until_s - now > 30 * DAY - 100 && facts.until_s - now <= 30 * DAY);
	assert_int_equal(ctl_certificate_describe(ca.certificate, &facts), 0);
	assert_int_equal(facts.use, CTL_CERTIFICATE_AUTHORITY);
	assert_string_equal(facts.hosts, "");
	assert_int_equal(ctl_certificate_describe(client.certificate, &facts), 0);
	assert_int_equal(facts.use, CTL_CERTIFICATE_CLIENT);
	assert_string_equal(facts.name, "J\xc3\xb6rg");
	ctl_identity_free(&ca);
	ctl_identity_free(&leaf);
	ctl_identity_free(&client);
}

UNIT_TEST(a_name_that_is_too_long_for_one_leaves_the_hosts)
{
	char host[] = "a-very-long-name-of-a-machine.in-a-very-long-name-of-a-network.pool.example";
	char *hosts[] = { host };
	struct ctl_identity ca = make(CTL_CERTIFICATE_AUTHORITY, "pool", NULL, 0, NULL);
	struct ctl_identity leaf = make(CTL_CERTIFICATE_SERVER, host, &ca, 1, hosts);

	assert_int_equal(verify(&leaf, &ca, X509_PURPOSE_SSL_SERVER, host, time(NULL)), X509_V_OK);
	ctl_identity_free(&ca);
	ctl_identity_free(&leaf);
}

static void
write_text(const char *path, const char *text, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	fclose(file);
}

UNIT_TEST(what_was_written_is_read_back)
{
	char folder[] = "/tmp/gpupool-certificate-XXXXXX", path[64], key_path[64];
	struct ctl_identity ca = make(CTL_CERTIFICATE_AUTHORITY, "pool", NULL, 0, NULL);
	struct ctl_identity other = make(CTL_CERTIFICATE_AUTHORITY, "pool", NULL, 0, NULL), read;
	char *text, *key;
	size_t size, key_size;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/ca.pem", folder);
	snprintf(key_path, sizeof(key_path), "%s/ca.key", folder);
	assert_int_equal(ctl_certificate_pem(ca.certificate, &text, &size), 0);
	assert_int_equal(ctl_key_pem(ca.key, &key, &key_size), 0);
	write_text(path, text, size);
	write_text(key_path, key, key_size);
	free(key);
	assert_int_equal(ctl_identity_read(path, key_path, &read), 0);
	assert_int_equal(X509_cmp(read.certificate, ca.certificate), 0);
	ctl_identity_free(&read);
	/* The key of another one, and what is no key or certificate. */
	assert_int_equal(ctl_key_pem(other.key, &key, &key_size), 0);
	write_text(key_path, key, key_size);
	assert_int_equal(ctl_identity_read(path, key_path, &read), -1);
	assert_null(read.certificate);
	assert_int_equal(ctl_identity_read(path, path, &read), -1);
	assert_int_equal(ctl_identity_read(key_path, key_path, &read), -1);
	write_text(path, text, size / 2);
	assert_int_equal(ctl_identity_read(path, key_path, &read), -1);
	(void)unlink(path);
	(void)unlink(key_path);
	assert_int_equal(ctl_identity_read(path, key_path, &read), -1);
	assert_int_equal(rmdir(folder), 0);
	free(text);
	free(key);
	ctl_identity_free(&ca);
	ctl_identity_free(&other);
}

UNIT_TEST(hosts_are_names_and_addresses)
{
	static const char *const good[] = { "gpunode", "a.b-c.example", "10.0.0.5",
					    "fd00::5", "*.example",     "n_1" };
	static const char *const wrong[] = { "",         "*",          "*.",      "a b", "a,b",
					     "IP:1.2.3", "a..b",       "-a",      ".a",  "a/b",
					     "[fd00::]", "a*.example", "a\nDNS:b" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(ctl_is_host(good[i]));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(ctl_is_host(wrong[i]));
}

UNIT_TEST_MAIN(NULL, NULL)
