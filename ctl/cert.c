/* SPDX-License-Identifier: Apache-2.0 */
/* cert init, client, show, list: manages the certificates of a pool; needs no daemon. */
#include "ctl/cert.h"

#include "ctl/pool_file.h"
#include "ctl/revocation.h"
#include "ctl/value.h"
#include "server/common/base/pool_folder.h"
#include "server/common/config/config_value.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HOSTS_MAX 64
#define AUTHORITY_SECONDS ((int64_t)10 * 365 * 86400)
#define LEAF_TIME "2y"
#define NAME_MAX_LENGTH 64

/* Paths of an identity. */
struct identity_paths {
	char certificate[CTL_PATH_MAX];
	char key[CTL_PATH_MAX];
};

static int
identity_find_paths(const char *folder, const char *certificate, const char *key,
		    struct identity_paths *identity_paths)
{
	return ctl_pool_file(folder, certificate, identity_paths->certificate,
			     sizeof(identity_paths->certificate)) ||
			       ctl_pool_file(folder, key, identity_paths->key,
					     sizeof(identity_paths->key))
		       ? -1
		       : 0;
}

static bool
file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Without `force` neither file may exist. */
static int
pair_check_free(const struct identity_paths *identity_paths, bool force)
{
	if (!force && file_exists(identity_paths->certificate))
		return ctl_fail("%s already exists; use --force to replace it",
				identity_paths->certificate);
	if (!force && file_exists(identity_paths->key))
		return ctl_fail("%s already exists; use --force to replace it",
				identity_paths->key);
	return 0;
}

static int
prepare_key(const char *path, const EVP_PKEY *key)
{
	size_t size;
	char *text;
	int r;

	if (ctl_key_pem(key, &text, &size))
		return -1;
	r = ctl_prepare_file(path, text, size, 0600);
	explicit_bzero(text, size);
	free(text);
	return r;
}

/* Writes the certificate, followed by the authority's if given. */
static int
prepare_certificate(const char *path, const X509 *certificate, const X509 *authority)
{
	char *text, *more = NULL, *both;
	size_t size, more_size = 0;
	int r = -1;

	if (ctl_certificate_pem(certificate, &text, &size))
		return -1;
	if (authority && ctl_certificate_pem(authority, &more, &more_size)) {
		free(text);
		return -1;
	}
	both = realloc(text, size + more_size);
	if (both) {
		if (more)
			memcpy(both + size, more, more_size);
		r = ctl_prepare_file(path, both, size + more_size, 0644);
	} else {
		ctl_fail("out of memory");
	}
	free(more);
	free(both ? both : text);
	return r;
}

/* Both files are written before the first is renamed, as the daemon fails to start with a
 * mismatched pair. The key is renamed first, so that an existing certificate always has its key. */
static int
write_identity(const struct identity_paths *identity_paths, const struct ctl_identity *identity,
	       const X509 *authority, bool force)
{
	if (prepare_key(identity_paths->key, identity->key))
		return -1;
	if (prepare_certificate(identity_paths->certificate, identity->certificate, authority)) {
		ctl_drop_file(identity_paths->key);
		return -1;
	}
	if (ctl_commit_file(identity_paths->key, force)) {
		ctl_drop_file(identity_paths->certificate);
		return -1;
	}
	if (ctl_commit_file(identity_paths->certificate, force) == 0)
		return 0;
	if (!force)
		(void)unlink(identity_paths->key);
	return -1;
}

/* Output. */

static const struct ctl_column list_columns[] = {
	{ "FILE", "file", CTL_TEXT },   { "USE", "use", CTL_TEXT },
	{ "NAME", "name", CTL_TEXT },   { "HOSTS", "hosts", CTL_TEXT },
	{ "STATE", "state", CTL_TEXT }, { "EXPIRES", "expires", CTL_DATE },
};

static const char *
use_name(enum ctl_certificate_use use)
{
	static const char *const names[] = {
		[CTL_CERTIFICATE_AUTHORITY] = "authority",
		[CTL_CERTIFICATE_SERVER] = "daemon",
		[CTL_CERTIFICATE_CLIENT] = "client",
		[CTL_CERTIFICATE_OTHER] = "other",
	};

	return names[use];
}

static void
table_add_certificate(struct ctl_table *table, const char *path,
		      const struct ctl_certificate_facts *facts, bool revoked)
{
	int64_t now = (int64_t)time(NULL);

	ctl_table_text(table, path);
	ctl_table_text(table, use_name(facts->use));
	ctl_table_text(table, facts->name);
	ctl_table_text(table, facts->hosts[0] ? facts->hosts : NULL);
	ctl_table_text(table, revoked                 ? "revoked"
			      : now < facts->from_s   ? "not yet"
			      : now >= facts->until_s ? "expired"
						      : "good");
	ctl_table_number(table, (uint64_t)facts->until_s);
}

/* Certificates that a command has created: printed at once for people, or as a list at the end for
 * programs. */
struct ctl_cert_output {
	enum ctl_format format;
	struct ctl_table table;
};

static void
output_init(const struct ctl *ctl, struct ctl_cert_output *made)
{
	made->format = (enum ctl_format)ctl->format;
	ctl_table_init(&made->table, list_columns, COUNT(list_columns));
}

static void
output_fini(struct ctl_cert_output *made)
{
	if (made->format != CTL_FORMAT_TABLE && made->table.cell_count)
		ctl_table_print(&made->table, made->format, stdout);
	ctl_table_fini(&made->table);
}

static int
output_add(struct ctl_cert_output *made, const char *path, const X509 *certificate,
	   const char *what)
{
	struct ctl_certificate_facts facts;
	char until[CTL_VALUE_MAX];

	if (ctl_certificate_describe(certificate, &facts))
		return -1;
	if (made->format != CTL_FORMAT_TABLE) {
		table_add_certificate(&made->table, path, &facts, false);
		return 0;
	}
	printf("%s: %s%s, until %s\n", path, what, facts.hosts[0] ? facts.hosts : facts.name,
	       ctl_format_utc(facts.until_s, "%Y-%m-%d", until));
	return 0;
}

/* The authority. */

static int
authority_create(const struct identity_paths *identity_paths, struct ctl_cert_output *made,
		 struct ctl_identity *authority)
{
	char host[256] = "", name[NAME_MAX_LENGTH + 1];
	const struct ctl_certificate_params params = { .use = CTL_CERTIFICATE_AUTHORITY,
						       .name = name,
						       .seconds = AUTHORITY_SECONDS };

	(void)gethostname(host, sizeof(host) - 1);
	snprintf(name, sizeof(name), "gpupool authority of %.40s", host);
	if (ctl_certificate_make(&params, NULL, authority))
		return -1;
	if (write_identity(identity_paths, authority, NULL, false) == 0 &&
	    output_add(made, identity_paths->certificate, authority->certificate, "the ") == 0)
		return 0;
	ctl_identity_free(authority);
	return -1;
}

int
ctl_cert_authority(const char *folder, struct ctl_cert_output *made, struct ctl_identity *authority)
{
	struct identity_paths identity_paths;
	bool has_certificate, has_key;

	if (identity_find_paths(folder, GPD_FILE_AUTHORITY, GPD_FILE_AUTHORITY_KEY,
				&identity_paths))
		return -1;
	has_certificate = file_exists(identity_paths.certificate);
	has_key = file_exists(identity_paths.key);
	if (has_certificate && has_key)
		return ctl_identity_read(identity_paths.certificate, identity_paths.key, authority);
	if (has_certificate != has_key)
		return ctl_fail("%s exists without %s: this authority cannot sign",
				has_key ? identity_paths.key : identity_paths.certificate,
				has_key ? identity_paths.certificate : identity_paths.key);
	if (!made)
		return ctl_fail("no authority in %s: create one with gpupoolctl cert init HOST",
				folder);
	return authority_create(&identity_paths, made, authority);
}

int
ctl_cert_parse_lifetime(const char *expires, const X509 *authority, int64_t *seconds_p)
{
	struct ctl_certificate_facts facts;
	int64_t left;

	*seconds_p = INT64_MAX;
	if (expires && (!ctl_parse_duration(expires, seconds_p) || *seconds_p == INT64_MAX))
		return ctl_fail(
			"--expires %s: invalid duration (12h, 30d, 1y; at most 999999 of one)",
			expires);
	if (ctl_certificate_describe(authority, &facts))
		return -1;
	left = facts.until_s - (int64_t)time(NULL);
	if (facts.use != CTL_CERTIFICATE_AUTHORITY)
		return ctl_fail("the certificate of \"%s\" is not a CA certificate", facts.name);
	if (left <= 0)
		return ctl_fail("the authority has expired: remove %s, %s and %s for a new one",
				GPD_FILE_AUTHORITY, GPD_FILE_AUTHORITY_KEY, GPD_FILE_REVOKED);
	if (*seconds_p > left)
		*seconds_p = left;
	return 0;
}

/* Init. */

static int
sign_server(const char *folder, const struct identity_paths *identity_paths, const char *expires,
	    int count, char **hosts, bool force, struct ctl_cert_output *cert_output)
{
	struct ctl_certificate_params params = {
		.use = CTL_CERTIFICATE_SERVER, .name = hosts[0], .hosts = hosts, .host_count = count
	};
	struct ctl_identity authority, made = { 0 };
	int r;

	if (ctl_cert_authority(folder, cert_output, &authority))
		return -1;
	r = ctl_cert_parse_lifetime(expires, authority.certificate, &params.seconds);
	if (r == 0)
		r = ctl_certificate_make(&params, &authority, &made);
	if (r == 0)
		r = write_identity(identity_paths, &made, NULL, force);
	/* The daemon may run as another user, whose group is that of the folder. */
	if (r == 0 && chmod(identity_paths->key, gpd_folder_secret_mode(identity_paths->key)))
		r = ctl_fail("%s: %s", identity_paths->key, strerror(errno));
	if (r == 0)
		r = output_add(cert_output, identity_paths->certificate, made.certificate,
			       "a daemon at ");
	ctl_identity_free(&made);
	ctl_identity_free(&authority);
	return r;
}

static int
init_command(const struct ctl *ctl, int count, char **argv)
{
	const char *folder = NULL, *expires = LEAF_TIME;
	bool force = false;
	const struct ctl_option options[] = { { "--directory", "-D", &folder, NULL },
					      { "--expires", "-e", &expires, NULL },
					      { "--force", NULL, NULL, &force } };
	char path[CTL_PATH_MAX];
	struct ctl_cert_output made;
	struct identity_paths identity_paths;
	int r;

	if (ctl_parse_options(options, COUNT(options), &count, argv))
		return -1;
	if (count < 1)
		return ctl_usage_error(
			"cert init HOST... [--expires 2y] [--directory DIR] [--force]");
	if (count > HOSTS_MAX)
		return ctl_fail("more than %d hosts", HOSTS_MAX);
	for (int i = 0; i < count; i++)
		if (!ctl_is_host(argv[i]))
			return ctl_fail("\"%.100s\" is neither a host's name nor an address "
					"(gpunode, 10.0.0.5, fd00::5)",
					argv[i]);
	if (ctl_pool_folder(folder, path, sizeof(path)))
		return -1;
	ctl_warn_own_folder(folder, path);
	if (ctl_make_folder(path) ||
	    identity_find_paths(path, GPD_FILE_CERTIFICATE, GPD_FILE_KEY, &identity_paths) ||
	    pair_check_free(&identity_paths, force))
		return -1;
	output_init(ctl, &made);
	r = sign_server(path, &identity_paths, expires, count, argv, force, &made);
	output_fini(&made);
	return r;
}

/* Client. */

/* output: folder of the pair, created if necessary; NULL: that of the authority. */
static int
sign_client(const char *folder, const char *output, const struct identity_paths *identity_paths,
	    const char *expires, const char *name, bool force, struct ctl_cert_output *cert_output)
{
	struct ctl_certificate_params params = { .use = CTL_CERTIFICATE_CLIENT, .name = name };
	struct ctl_identity authority, made = { 0 };
	int r;

	if (ctl_cert_authority(folder, NULL, &authority))
		return -1;
	r = ctl_cert_parse_lifetime(expires, authority.certificate, &params.seconds);
	if (r == 0)
		r = ctl_certificate_make(&params, &authority, &made);
	if (r == 0 && output)
		r = ctl_make_folder(output);
	if (r == 0)
		r = write_identity(identity_paths, &made, authority.certificate, force);
	if (r == 0)
		r = output_add(cert_output, identity_paths->certificate, made.certificate,
			       "a client of the name ");
	ctl_identity_free(&made);
	ctl_identity_free(&authority);
	return r;
}

/* The name becomes a file name as well. */
static int
check_name(const char *name)
{
	char buffer[GPD_CONFIG_CERTIFICATE_MAX];
	const char *wrong = gpd_value_parse_certificate(name, buffer);

	if (wrong)
		return ctl_fail("\"%.100s\" %s", name, wrong);
	if (strlen(name) > NAME_MAX_LENGTH || strchr(name, '/') || *name == '.')
		return ctl_fail("\"%.100s\": a client's name has at most %d bytes, no / and no "
				". at its beginning",
				name, NAME_MAX_LENGTH);
	if (strcmp(name, "ca") == 0 || strcmp(name, "server") == 0)
		return ctl_fail("\"%s\": this name is reserved for the daemon's files", name);
	return 0;
}

static int
client_command(const struct ctl *ctl, int count, char **argv)
{
	const char *folder = NULL, *expires = LEAF_TIME, *output = NULL;
	bool force = false;
	const struct ctl_option options[] = { { "--directory", "-D", &folder, NULL },
					      { "--expires", "-e", &expires, NULL },
					      { "--output", "-o", &output, NULL },
					      { "--force", NULL, NULL, &force } };
	char path[CTL_PATH_MAX], certificate[NAME_MAX_LENGTH + 8], key[NAME_MAX_LENGTH + 8];
	struct ctl_cert_output made;
	struct identity_paths identity_paths;
	int r;

	if (ctl_parse_options(options, COUNT(options), &count, argv))
		return -1;
	if (count != 1)
		return ctl_usage_error(
			"cert client NAME [--expires 2y] [-o FOLDER] [--directory DIR] "
			"[--force]");
	if (check_name(argv[0]) || ctl_pool_folder(folder, path, sizeof(path)))
		return -1;
	snprintf(certificate, sizeof(certificate), "%s.pem", argv[0]);
	snprintf(key, sizeof(key), "%s.key", argv[0]);
	if (identity_find_paths(output ? output : path, certificate, key, &identity_paths) ||
	    pair_check_free(&identity_paths, force))
		return -1;
	output_init(ctl, &made);
	r = sign_client(path, output, &identity_paths, expires, argv[0], force, &made);
	output_fini(&made);
	return r;
}

/* Show and list. */

static int
show_command(const struct ctl *ctl, int count, char **argv)
{
	static const struct ctl_column columns[] = {
		{ "file", "file", CTL_TEXT },
		{ "use", "use", CTL_TEXT },
		{ "name", "name", CTL_TEXT },
		{ "hosts", "hosts", CTL_TEXT },
		{ "state", "state", CTL_TEXT },
		{ "expires", "expires", CTL_DATE },
		{ "valid from", "valid_from", CTL_DATE },
		{ "issuer", "issuer", CTL_TEXT },
		{ "serial number", "serial", CTL_TEXT },
		{ "SHA-256", "sha256", CTL_TEXT },
	};
	const char *folder = NULL, *path;
	const struct ctl_option options[] = { { "--directory", "-D", &folder, NULL } };
	char buffer[CTL_PATH_MAX], file[CTL_PATH_MAX];
	struct ctl_certificate_facts facts;
	X509 *certificate;
	struct ctl_table table;
	X509_CRL *list;
	bool revoked;
	int r;

	if (ctl_parse_options(options, COUNT(options), &count, argv))
		return -1;
	if (count > 1)
		return ctl_usage_error("cert show [FILE]");
	if (ctl_pool_folder(folder, buffer, sizeof(buffer)) ||
	    ctl_pool_file(buffer, GPD_FILE_CERTIFICATE, file, sizeof(file)))
		return -1;
	path = count ? argv[0] : file;
	if (ctl_certificate_read(path, &certificate))
		return -1;
	r = ctl_cert_read_crl(buffer, &list);
	revoked = ctl_crl_contains(list, certificate);
	X509_CRL_free(list);
	if (r == 0)
		r = ctl_certificate_describe(certificate, &facts);
	X509_free(certificate);
	if (r)
		return -1;
	ctl_table_init(&table, columns, COUNT(columns));
	table.has_old_keys = true;
	table_add_certificate(&table, path, &facts, revoked);
	ctl_table_number(&table, (uint64_t)facts.from_s);
	ctl_table_text(&table, facts.issuer);
	ctl_table_text(&table, facts.serial);
	ctl_table_text(&table, facts.fingerprint);
	ctl_table_print_records(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	return 0;
}

static int
is_pem(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 4 && entry->d_name[0] != '.' &&
	       strcmp(entry->d_name + length - 4, ".pem") == 0;
}

/* Returns -1 if a file could not be read; the others are listed nevertheless. */
static int
add_files(struct ctl_table *table, const char *folder, struct dirent **entries, int count)
{
	X509_CRL *list;
	int r = ctl_cert_read_crl(folder, &list);

	for (int i = 0; i < count; i++) {
		struct ctl_certificate_facts facts;
		char path[CTL_PATH_MAX];
		X509 *certificate;

		if (ctl_pool_file(folder, entries[i]->d_name, path, sizeof(path)) ||
		    ctl_certificate_read(path, &certificate)) {
			r = -1;
			continue;
		}
		if (ctl_certificate_describe(certificate, &facts) == 0)
			table_add_certificate(table, path, &facts,
					      ctl_crl_contains(list, certificate));
		else
			r = -1;
		X509_free(certificate);
	}
	X509_CRL_free(list);
	return r;
}

static int
list_command(const struct ctl *ctl, int count, char **argv)
{
	const char *folder = NULL;
	const struct ctl_option options[] = { { "--directory", "-D", &folder, NULL } };
	struct dirent **entries;
	char path[CTL_PATH_MAX];
	struct ctl_table table;
	int found, r;

	if (ctl_parse_options(options, COUNT(options), &count, argv))
		return -1;
	if (count)
		return ctl_usage_error("cert list [--directory DIR]");
	if (ctl_pool_folder(folder, path, sizeof(path)))
		return -1;
	found = scandir(path, &entries, is_pem, alphasort);
	if (found < 0)
		return ctl_fail("%s: %s", path, strerror(errno));
	ctl_table_init(&table, list_columns, COUNT(list_columns));
	r = add_files(&table, path, entries, found);
	ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	for (int i = 0; i < found; i++)
		free(entries[i]);
	free(entries);
	return r;
}

int
ctl_cert(const struct ctl *ctl, int count, char **argv)
{
	if (count && strcmp(argv[0], "init") == 0)
		return init_command(ctl, count - 1, argv + 1);
	if (count && strcmp(argv[0], "client") == 0)
		return client_command(ctl, count - 1, argv + 1);
	if (count && strcmp(argv[0], "show") == 0)
		return show_command(ctl, count - 1, argv + 1);
	if (count && strcmp(argv[0], "list") == 0)
		return list_command(ctl, count - 1, argv + 1);
	if (count && strcmp(argv[0], "revoke") == 0)
		return ctl_cert_sign_crl(ctl, true, count - 1, argv + 1);
	if (count && strcmp(argv[0], "crl") == 0)
		return ctl_cert_sign_crl(ctl, false, count - 1, argv + 1);
	if (count && strcmp(argv[0], "revoked") == 0)
		return ctl_cert_revoked(ctl, count - 1, argv + 1);
	return ctl_unknown("cert", count, argv,
			   "cert init HOST... | cert client NAME | cert show [FILE] | cert list | "
			   "cert revoke NAME|FILE|SERIAL | cert revoked | cert crl");
}
