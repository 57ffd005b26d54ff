/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/door/crl_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WHY_MAX 320

/* Of a list that holds at another time. */
static int
refuse_time(const char *path, const char *format, int64_t at_s, char *error, size_t error_size)
{
	time_t time = (time_t)at_s;
	char when[32] = "";
	struct tm date;

	if (gmtime_r(&time, &date))
		(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &date);
	(void)snprintf(error, error_size, "%s: this list of revoked certificates %s %s", path,
		       format, when);
	return GP_E_INVALID;
}

static int
check_time(const char *path, const struct gp_crl *crl, int64_t now_s, char *error,
	   size_t error_size)
{
	if (gp_crl_until(crl) <= now_s)
		return refuse_time(path, "has expired:", gp_crl_until(crl), error, error_size);
	if (gp_crl_from(crl) <= now_s)
		return 0;
	(void)refuse_time(path, "holds only from then on:", gp_crl_from(crl), error, error_size);
	/* It will be good by itself. */
	return -EAGAIN;
}

/* status: of the file that was read, all zero if there is none. */
static int
load(const struct gpd_crl_file *file, struct gp_tls *tls, int64_t now_s, struct gp_crl **crl_p,
     struct stat *status, char *error, size_t error_size)
{
	char *text = NULL, why[WHY_MAX];
	size_t size = 0;
	int r;

	*crl_p = NULL;
	if (!tls || !gp_tls_asks(tls)) {
		gpd_shared_file_look(file->path, status);
		return 0;
	}
	r = gpd_shared_file_read(file->path, &text, &size, status, error, error_size);
	if (r)
		return r == -ENOENT && !file->needed ? 0 : r;
	r = gp_crl_parse(text, size, tls, crl_p, why, sizeof(why));
	free(text);
	if (r)
		(void)snprintf(error, error_size, "%s: %s", file->path, why);
	else
		r = check_time(file->path, *crl_p, now_s, error, error_size);
	if (r) {
		gp_crl_free(*crl_p);
		*crl_p = NULL;
	}
	return r;
}

static void
use(struct gpd_crl_file *file, struct gp_crl *crl)
{
	gp_crl_free(file->crl);
	file->crl = crl;
	file->generation++;
	/* What was said once is not taken back by a file that somebody removes. */
	if (crl)
		file->needed = true;
}

static void
use_tls(struct gpd_crl_file *file, struct gp_tls *tls)
{
	struct gp_tls *old = file->tls;

	file->tls = tls ? gp_tls_get(tls) : NULL;
	gp_tls_put(old);
}

/* Who names a list counts on it. */
static int
refuse_unasked(const char *path, const struct gp_tls *tls, char *error, size_t error_size)
{
	(void)snprintf(error, error_size,
		       "%s: this list of revoked certificates would not be read, as no client is "
		       "asked for a certificate: there is no %s",
		       path,
		       tls ? "authority that they must be of (--client-authority)"
			   : "address with TLS, or no certificate to show there (--listen, "
			     "--certificate)");
	return GP_E_INVALID;
}

int
gpd_crl_file_open(struct gpd_crl_file *file, const char *path, bool named, struct gp_tls *tls,
		  int64_t now_s, char *error, size_t error_size)
{
	struct gp_crl *crl;
	int r;

	*file = (struct gpd_crl_file){ .needed = named };
	if (!path)
		return 0;
	if (strlen(path) >= sizeof(file->path)) {
		(void)snprintf(error, error_size, "%.200s...: %s", path, strerror(ENAMETOOLONG));
		return -ENAMETOOLONG;
	}
	memcpy(file->path, path, strlen(path) + 1);
	if (named && (!tls || !gp_tls_asks(tls)))
		return refuse_unasked(path, tls, error, error_size);
	r = load(file, tls, now_s, &crl, &file->status, error, error_size);
	if (r)
		return r;
	use_tls(file, tls);
	use(file, crl);
	return 0;
}

/* What is wrong with it stays so until it is another file; all else may get better by itself. */
static bool
is_of_content(int wrong)
{
	return wrong == GP_E_INVALID || wrong == -EINVAL || wrong == -EFBIG;
}

/* Whether what is known of the file is still what there is to know. */
static bool
is_up_to_date(const struct gpd_crl_file *file, int64_t now_s)
{
	if (file->wrong)
		return is_of_content(file->wrong);
	return !file->crl || now_s < gp_crl_until(file->crl);
}

int
gpd_crl_file_refresh(struct gpd_crl_file *file, struct gp_tls *tls, int64_t now_s, bool *changed_p,
		     char *error, size_t error_size)
{
	struct stat status;
	struct gp_crl *crl;
	bool same, known;
	int r;

	*changed_p = false;
	if (!file->path[0])
		return 0;
	gpd_shared_file_look(file->path, &status);
	same = tls == file->tls && gpd_shared_file_is_same(&status, &file->status);
	if (same && is_up_to_date(file, now_s))
		return 0;
	known = same && file->wrong;
	r = load(file, tls, now_s, &crl, &file->status, error, error_size);
	file->wrong = r;
	*changed_p = r == 0 || !known;
	use_tls(file, tls);
	if (r) {
		file->status = status;
		return known ? 0 : r;
	}
	use(file, crl);
	return 0;
}

void
gpd_crl_file_close(struct gpd_crl_file *file)
{
	gp_crl_free(file->crl);
	gp_tls_put(file->tls);
	*file = (struct gpd_crl_file){ 0 };
}
