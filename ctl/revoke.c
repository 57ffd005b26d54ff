/* SPDX-License-Identifier: Apache-2.0 */
/* cert revoke, crl, revoked: manages the revocation list; needs no daemon. */
#include "ctl/cert.h"
#include "ctl/pool_file.h"
#include "ctl/revocation.h"
#include "ctl/value.h"
#include "server/common/base/pool_folder.h"

#include <dirent.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Shorter hexadecimal strings may be names, such as "dead". */
#define PLAIN_SERIAL_DIGITS 16

/* The certificate to revoke. */
struct target {
	ASN1_INTEGER *serial;
	char name[128]; /* "": only the serial number is known */
};

/* Prints the CRL's state; programs also get the certificate that was revoked. */
static void
print_crl(const struct ctl *ctl, const char *path, const X509_CRL *list, const char *serial,
	  const char *name)
{
	static const struct ctl_column columns[] = { { "serial number", "serial", CTL_TEXT },
						     { "name", "name", CTL_TEXT },
						     { "file", "file", CTL_TEXT },
						     { "revoked", "revoked", CTL_NUMBER },
						     { "until", "until", CTL_DATE } };
	int count = sk_X509_REVOKED_num(X509_CRL_get_REVOKED((X509_CRL *)list));
	struct ctl_table table;
	int64_t end = ctl_crl_get_next_update(list);
	char until[CTL_VALUE_MAX];

	if (ctl->format != CTL_FORMAT_TABLE) {
		ctl_table_init(&table, columns, COUNT(columns));
		ctl_table_text(&table, serial[0] ? serial : NULL);
		ctl_table_text(&table, name[0] ? name : NULL);
		ctl_table_text(&table, path);
		ctl_table_number(&table, count > 0 ? (uint64_t)count : 0);
		ctl_table_number(&table, (uint64_t)end);
		ctl_table_print_records(&table, (enum ctl_format)ctl->format, stdout);
		ctl_table_fini(&table);
		return;
	}
	if (serial[0])
		printf("the certificate %s%s%s is revoked\n", serial, name[0] ? " of " : "", name);
	printf("%s: %d revoked, expires %s\n", path, count > 0 ? count : 0,
	       ctl_format_utc(end, "%Y-%m-%d", until));
}

/* An expired CRL makes daemons reject all certificates, which no other output here shows. */
static void
warn_if_expired(const char *path, const X509_CRL *list)
{
	if (ctl_crl_get_next_update(list) <= (int64_t)time(NULL))
		(void)ctl_fail("%s: CRL expired, so daemons reject client certificates: run "
			       "gpupoolctl cert crl",
			       path);
}

int
ctl_cert_read_crl(const char *folder, X509_CRL **list_p)
{
	char path[CTL_PATH_MAX], authority_path[CTL_PATH_MAX];
	X509 *authority;
	int r;

	*list_p = NULL;
	if (ctl_pool_file(folder, GPD_FILE_REVOKED, path, sizeof(path)) ||
	    ctl_pool_file(folder, GPD_FILE_AUTHORITY, authority_path, sizeof(authority_path)))
		return -1;
	if (access(path, F_OK) || access(authority_path, F_OK))
		return 0;
	if (ctl_certificate_read(authority_path, &authority))
		return -1;
	r = ctl_crl_read(path, authority, list_p);
	X509_free(authority);
	if (*list_p)
		warn_if_expired(path, *list_p);
	return r;
}

/* Find the certificate. */

static int
target_from_file(const char *path, const X509 *authority, struct target *target)
{
	struct ctl_certificate_facts facts;
	X509 *certificate;
	int r = -1;

	if (ctl_certificate_read(path, &certificate))
		return -1;
	if (X509_cmp(certificate, authority) == 0)
		ctl_fail("%s is the authority itself, which its CRL cannot revoke", path);
	else if (X509_NAME_cmp(X509_get_issuer_name(certificate),
			       X509_get_subject_name(authority)) ||
		 X509_verify(certificate, X509_get0_pubkey(authority)) != 1)
		ctl_fail("%s is not signed by the pool's authority", path);
	else
		r = ctl_certificate_describe(certificate, &facts);
	if (r == 0) {
		target->serial = ASN1_INTEGER_dup(X509_get0_serialNumber(certificate));
		snprintf(target->name, sizeof(target->name), "%s", facts.name);
	}
	X509_free(certificate);
	if (r == 0 && !target->serial)
		r = ctl_fail("out of memory");
	return r;
}

static bool
is_pem(const char *name)
{
	size_t length = strlen(name);

	return length > 4 && strcmp(name + length - 4, ".pem") == 0;
}

static ASN1_INTEGER *
parse_serial(const char *arg)
{
	if (strncmp(arg, "0x", 2) == 0)
		return ctl_serial_parse(arg + 2);
	return strlen(arg) >= PLAIN_SERIAL_DIGITS ? ctl_serial_parse(arg) : NULL;
}

static int
target_find(const char *folder, const char *arg, const X509 *authority, struct target *target)
{
	char name[300], path[CTL_PATH_MAX];

	if (strchr(arg, '/') || is_pem(arg))
		return target_from_file(arg, authority, target);
	if ((size_t)snprintf(name, sizeof(name), "%s.pem", arg) < sizeof(name) &&
	    ctl_pool_file(folder, name, path, sizeof(path)) == 0 && access(path, F_OK) == 0)
		return target_from_file(path, authority, target);
	target->serial = parse_serial(arg);
	if (target->serial)
		return 0;
	return ctl_fail("no certificate %.100s.pem in %s, and \"%.100s\" is not a serial number "
			"(16 hexadecimal digits or more; 0x before fewer): see the certificate, "
			"session show or the daemon's log",
			arg, folder, arg);
}

/* Commands. */

static int
crl_sign(const struct ctl *ctl, const char *folder, const char *arg, const char *expires)
{
	struct target target = { 0 };
	struct ctl_identity authority;
	char path[CTL_PATH_MAX], serial[64] = "";
	X509_CRL *list = NULL;
	int64_t seconds;
	int r;

	if (ctl_pool_file(folder, GPD_FILE_REVOKED, path, sizeof(path)) ||
	    ctl_cert_authority(folder, NULL, &authority))
		return -1;
	r = ctl_cert_parse_lifetime(expires, authority.certificate, &seconds);
	if (r == 0 && arg)
		r = target_find(folder, arg, authority.certificate, &target);
	if (r == 0)
		r = ctl_crl_sign(path, &authority, target.serial, seconds);
	if (r == 0)
		r = ctl_crl_read(path, authority.certificate, &list);
	if (r == 0 && target.serial)
		ctl_serial_text(target.serial, serial);
	if (list)
		print_crl(ctl, path, list, serial, target.name);
	X509_CRL_free(list);
	ASN1_INTEGER_free(target.serial);
	ctl_identity_free(&authority);
	return r;
}

int
ctl_cert_sign_crl(const struct ctl *ctl, bool revokes, int count, char **argv)
{
	const char *folder = NULL, *expires = NULL;
	const struct ctl_option options[] = { { "--directory", "-D", &folder, NULL },
					      { "--expires", "-e", &expires, NULL } };
	char path[CTL_PATH_MAX];

	if (ctl_parse_options(options, COUNT(options), &count, argv))
		return -1;
	if (revokes && (count != 1 || !*argv[0]))
		return ctl_usage_error(
			"cert revoke NAME|FILE|SERIAL [--expires 30d] [--directory DIR]");
	if (!revokes && count)
		return ctl_usage_error("cert crl [--expires 30d] [--directory DIR]");
	if (ctl_pool_folder(folder, path, sizeof(path)))
		return -1;
	return crl_sign(ctl, path, revokes ? argv[0] : NULL, expires);
}

/* Finds the file in the folder with this certificate; "": none. */
static void
find_file(const char *folder, X509_REVOKED *wanted, char *path, size_t size)
{
	DIR *files = opendir(folder);
	struct dirent *entry;
	bool found = false;

	while (files && !found && (entry = readdir(files))) {
		FILE *file = NULL;
		X509 *certificate;

		if (entry->d_name[0] == '.' || !is_pem(entry->d_name) ||
		    ctl_pool_file(folder, entry->d_name, path, size))
			continue;
		file = fopen(path, "re");
		certificate = file ? PEM_read_X509(file, NULL, NULL, (void *)"") : NULL;
		if (file)
			(void)fclose(file);
		found = certificate &&
			ASN1_INTEGER_cmp(X509_get0_serialNumber(certificate),
					 X509_REVOKED_get0_serialNumber(wanted)) == 0;
		X509_free(certificate);
	}
	if (files)
		(void)closedir(files);
	ERR_clear_error();
	if (!found)
		path[0] = 0;
}

static void
add_entry(struct ctl_table *table, const char *folder, X509_REVOKED *entry)
{
	const ASN1_TIME *since = X509_REVOKED_get0_revocationDate(entry);
	char serial[64], path[CTL_PATH_MAX] = "";
	struct tm when;

	ctl_serial_text(X509_REVOKED_get0_serialNumber(entry), serial);
	find_file(folder, entry, path, sizeof(path));
	ctl_table_text(table, serial);
	ctl_table_number(table,
			 ASN1_TIME_to_tm(since, &when) ? (uint64_t)timegm(&when) : UINT64_MAX);
	ctl_table_text(table, path[0] ? path : NULL);
}

int
ctl_cert_revoked(const struct ctl *ctl, int count, char **argv)
{
	static const struct ctl_column columns[] = {
		{ "SERIAL NUMBER", "serial", CTL_TEXT },
		{ "REVOKED", "revoked", CTL_DATE },
		{ "FILE", "file", CTL_TEXT },
	};
	const char *folder = NULL;
	const struct ctl_option options[] = { { "--directory", "-D", &folder, NULL } };
	STACK_OF(X509_REVOKED) * entries;
	char path[CTL_PATH_MAX];
	struct ctl_table table;
	X509_CRL *list;

	if (ctl_parse_options(options, COUNT(options), &count, argv))
		return -1;
	if (count)
		return ctl_usage_error("cert revoked [--directory DIR]");
	if (ctl_pool_folder(folder, path, sizeof(path)) || ctl_cert_read_crl(path, &list))
		return -1;
	entries = list ? X509_CRL_get_REVOKED(list) : NULL;
	ctl_table_init(&table, columns, COUNT(columns));
	for (int i = 0; i < sk_X509_REVOKED_num(entries); i++)
		add_entry(&table, path, sk_X509_REVOKED_value(entries, i));
	ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	X509_CRL_free(list);
	return 0;
}
