/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/revocation.h"
#include "tests/test.h"

#include <fcntl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DAY 86400

static char folder[64], path[96];
static struct ctl_identity ca, other, alice, bob;

static struct ctl_identity
make(enum ctl_certificate_use use, const char *name, const struct ctl_identity *authority)
{
	const struct ctl_certificate_params wish = { .use = use,
						     .name = name,
						     .seconds = 30 * DAY };
	struct ctl_identity made;

	assert_int_equal(ctl_certificate_make(&wish, authority, &made), 0);
	return made;
}

static int
set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/gpupool-crl-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/ca.crl", folder);
	/* Of one name, so that only the key tells them apart. */
	ca = make(CTL_CERTIFICATE_AUTHORITY, "pool", NULL);
	other = make(CTL_CERTIFICATE_AUTHORITY, "pool", NULL);
	alice = make(CTL_CERTIFICATE_CLIENT, "alice", &ca);
	bob = make(CTL_CERTIFICATE_CLIENT, "bob", &ca);
	return 0;
}

static int
tear_down(void **state)
{
	char lock[128];

	snprintf(lock, sizeof(lock), "%s.lock", path);
	(void)unlink(lock);
	(void)unlink(path);
	ctl_identity_free(&ca);
	ctl_identity_free(&other);
	ctl_identity_free(&alice);
	ctl_identity_free(&bob);
	return rmdir(folder);
}

static X509_CRL *
read_list(void)
{
	X509_CRL *list;

	assert_int_equal(ctl_crl_read(path, ca.certificate, &list), 0);
	return list;
}

static int
revoke_one(const struct ctl_identity *who, int64_t seconds)
{
	return ctl_crl_sign(path, &ca, X509_get0_serialNumber(who->certificate), seconds);
}

static long
number_of(const X509_CRL *list)
{
	ASN1_INTEGER *number = X509_CRL_get_ext_d2i(list, NID_crl_number, NULL, NULL);
	long value = ASN1_INTEGER_get(number);

	ASN1_INTEGER_free(number);
	return value;
}

#define LIST_TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

LIST_TEST(a_list_keeps_what_was_in_it_and_has_a_number_of_its_own)
{
	X509_CRL *list = read_list();

	assert_null(list);
	assert_false(ctl_crl_contains(list, alice.certificate));
	assert_int_equal(ctl_crl_sign(path, &ca, NULL, DAY), 0);
	list = read_list();
	assert_false(ctl_crl_contains(list, alice.certificate));
	assert_int_equal(number_of(list), 1);
	X509_CRL_free(list);
	assert_int_equal(revoke_one(&alice, DAY), 0);
	assert_int_equal(revoke_one(&alice, DAY), -1);
	assert_int_equal(revoke_one(&bob, 2 * DAY), 0);
	list = read_list();
	assert_true(ctl_crl_contains(list, alice.certificate));
	assert_true(ctl_crl_contains(list, bob.certificate));
	assert_int_equal(sk_X509_REVOKED_num(X509_CRL_get_REVOKED(list)), 2);
	assert_int_equal(number_of(list), 3);
	assert_int_equal(X509_CRL_get_version(list), X509_CRL_VERSION_2);
	assert_true(llabs(ctl_crl_get_next_update(list) - time(NULL) - 2 * DAY) < 100);
	/* Nobody's clock is exact. */
	assert_true(X509_cmp_time(X509_CRL_get0_lastUpdate(list), &(time_t){ time(NULL) - 200 }) <
		    0);
	X509_CRL_free(list);
}

/* Of the same number, by another authority. */
LIST_TEST(a_list_is_of_one_authority)
{
	struct ctl_identity theirs = make(CTL_CERTIFICATE_CLIENT, "alice", &other);
	X509_CRL *list;

	assert_int_equal(revoke_one(&alice, DAY), 0);
	assert_int_equal(ctl_crl_read(path, other.certificate, &list), -1);
	assert_null(list);
	assert_int_equal(
		ctl_crl_sign(path, &other, X509_get0_serialNumber(theirs.certificate), DAY), -1);
	list = read_list();
	assert_int_equal(sk_X509_REVOKED_num(X509_CRL_get_REVOKED(list)), 1);
	X509_CRL_free(list);
	ctl_identity_free(&theirs);
}

LIST_TEST(who_may_not_sign_lists_signs_none)
{
	assert_int_equal(ctl_crl_sign(path, &alice, NULL, DAY), -1);
	assert_int_equal(access(path, F_OK), -1);
}

LIST_TEST(a_file_that_is_no_list_stays_as_it_is)
{
	struct stat before, after;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "nonsense\n", 9), 9);
	close(fd);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(revoke_one(&alice, DAY), -1);
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino == after.st_ino && after.st_size == 9);
}

LIST_TEST(everybody_may_read_a_new_list_and_an_old_one_keeps_its_mode)
{
	mode_t before = umask(077);
	struct stat status;

	assert_int_equal(revoke_one(&alice, DAY), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0644);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(revoke_one(&bob, DAY), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0640);
	umask(before);
}

UNIT_TEST(serial_numbers_are_read_as_they_are_written)
{
	static const struct {
		const char *text, *number;
	} good[] = {
		{ "7", "07" },
		{ "00ff", "FF" },
		{ "3F:a2:01", "3FA201" },
		{ "0123456789abcdef0123456789abcdef01234567",
		  "0123456789ABCDEF0123456789ABCDEF01234567" },
	};
	static const char *const bad[] = {
		"", ":", "-1", "0x7", "xyz", "7 ", ":7", "0123456789abcdef0123456789abcdef012345678"
	};
	char text[64];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ASN1_INTEGER *serial = ctl_serial_parse(good[i].text);

		assert_non_null(serial);
		ctl_serial_text(serial, text);
		assert_string_equal(text, good[i].number);
		ASN1_INTEGER_free(serial);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(ctl_serial_parse(bad[i]));
}

UNIT_TEST_MAIN(NULL, NULL)
