/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/auth/crl_file.h"

#include "server/common/base/log.h"
#include "server/supervisor/auth/tls_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WHY_MAX 320

/* Writes the error of a CRL that is not valid at the current time. */
static int
time_error(const char *path, const char *format, int64_t at_s, char *error, size_t error_size)
{
	time_t time = (time_t)at_s;
	char when[32] = "";
	struct tm date;

	if (gmtime_r(&time, &date))
		(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &date);
	(void)snprintf(error, error_size, "%s: the CRL %s %s", path, format, when);
	return GP_E_INVALID;
}

static int
crl_check_time(const char *path, const struct gp_crl *crl, int64_t now_s, char *error,
	       size_t error_size)
{
	if (gp_crl_get_next_update(crl) <= now_s)
		return time_error(path, "has expired:", gp_crl_get_next_update(crl), error,
				  error_size);
	if (gp_crl_get_this_update(crl) <= now_s)
		return 0;
	(void)time_error(path, "is not valid before", gp_crl_get_this_update(crl), error,
			 error_size);
	/* It becomes valid without a change of the file. */
	return -EAGAIN;
}

/* A configured CRL that has no effect is an error: the operator relies on it. */
static int
unused_crl_error(struct gpd_shared_file *file, bool has_tls)
{
	(void)snprintf(
		file->why, sizeof(file->why),
		"%s: the CRL is not used because clients are not asked for a certificate: no %s",
		file->path,
		has_tls ? "authority that they must be of (--client-authority)"
			: "address with TLS, or no certificate to show there (--listen, "
			  "--certificate)");
	return GP_E_INVALID;
}

static int
crl_parse(const char *path, struct gp_tls *tls, const char *text, size_t size,
	  struct gp_crl **crl_p, char *error, size_t error_size)
{
	char why[WHY_MAX];
	int r = gp_crl_parse(text, size, tls, crl_p, why, sizeof(why));

	if (r) {
		(void)snprintf(error, error_size, "%s: %s", path, why);
		return r;
	}
	r = crl_check_time(path, *crl_p, (int64_t)time(NULL), error, error_size);
	if (r)
		gp_crl_destroy(*crl_p);
	return r;
}

static bool
certificates_are_requested(const struct gp_tls *tls)
{
	return tls && gp_tls_requests_certificate(tls);
}

static int
crl_load(struct gpd_crl_file *crl_file)
{
	struct gpd_shared_file *file = &crl_file->file;
	struct gp_crl *crl = NULL;
	char *text = NULL;
	size_t size = 0;
	int r = 0;

	if (certificates_are_requested(crl_file->tls)) {
		r = gpd_shared_file_read(file->path, &text, &size, file->why, sizeof(file->why));
		if (r == 0)
			r = crl_parse(file->path, crl_file->tls, text, size, &crl, file->why,
				      sizeof(file->why));
		else if (r == -ENOENT && !crl_file->needed)
			r = 0;
		free(text);
	}
	if (r)
		return r;
	gp_crl_destroy(crl_file->crl);
	crl_file->crl = crl;
	/* Deleting the file must not restore revoked certificates. */
	crl_file->needed = crl_file->needed || crl;
	return 0;
}

/* Returns whether the authorities of client certificates may have changed. */
static bool
crl_update_tls(struct gpd_crl_file *file)
{
	struct gp_tls *old = file->tls;

	file->tls = gpd_tls_get();
	gp_tls_unref(old);
	return file->tls != old;
}

int
gpd_crl_file_open(struct gpd_crl_file *file, const char *path, bool named)
{
	int r;

	*file = (struct gpd_crl_file){ .needed = named };
	r = gpd_shared_file_init(&file->file, path);
	if (r || !path)
		return r;
	(void)crl_update_tls(file);
	if (named && !certificates_are_requested(file->tls))
		return unused_crl_error(&file->file, file->tls != NULL);
	return crl_load(file);
}

enum gpd_shared_file_change
gpd_crl_file_refresh(struct gpd_crl_file *file, int64_t now_ms)
{
	bool outdated =
		crl_update_tls(file) || (!file->file.wrong && file->crl &&
					 gp_crl_get_next_update(file->crl) <= (int64_t)time(NULL));

	if (!gpd_shared_file_poll(&file->file, outdated))
		return GPD_SHARED_FILE_UNCHANGED;
	return gpd_shared_file_set_result(&file->file, crl_load(file), now_ms);
}

void
gpd_crl_file_check(const struct gpd_crl_file *file)
{
	int64_t left =
		file->crl ? gp_crl_get_next_update(file->crl) - (int64_t)time(NULL) : INT64_MAX;

	if (left > 0 && left < GPD_CRL_SOON_S)
		gpd_warning("%s: the CRL expires in %d hours, after which client certificates are "
			    "rejected; run gpupoolctl cert crl",
			    file->file.path, (int)(left / 3600));
}

void
gpd_crl_file_close(struct gpd_crl_file *file)
{
	gp_crl_destroy(file->crl);
	gp_tls_unref(file->tls);
	*file = (struct gpd_crl_file){ 0 };
}
