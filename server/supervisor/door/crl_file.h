/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file with the lists of revoked client certificates (transport/crl.h), as a daemon knows it.
 *
 * It is read again when it is another file, or when clients' certificates may be of other
 * authorities.  It is wrong while it cannot be read, is no such list, is not of the authority,
 * holds no more or not yet, or is not there though it was named or was there before; then no
 * certificate is good.  Where no client is asked for a certificate nobody looks at it, and one that
 * is named is refused.
 *
 * Main thread of the supervisor.  0, GP_E_INVALID or a negative errno, with a text.
 */
#ifndef GPD_CRL_FILE_H
#define GPD_CRL_FILE_H

#include "base/status.h"
#include "server/common/base/shared_file.h"
#include "transport/crl.h"

#include <stdbool.h>
#include <stdint.h>

struct gpd_crl_file {
	char path[GPD_SHARED_PATH_MAX]; /* "": there can be none */
	bool needed;                    /* it is wrong if it is not there */
	struct gp_tls *tls;             /* it was read with; NULL: there was none */
	struct gp_crl *crl;             /* what was read last; NULL: nobody's is revoked */
	struct stat status;  /* of the file that was read last; all zero: there was none */
	int wrong;           /* why it cannot be used; 0: `crl` is what it says */
	uint64_t generation; /* another one whenever it says something new */
};

/* Reads it for the first time.  named: it was asked for, and is not just where it usually is. */
GP_MUST_CHECK int gpd_crl_file_open(struct gpd_crl_file *file, const char *path, bool named,
				    struct gp_tls *tls, int64_t now_s, char *error,
				    size_t error_size);
/* Reads it again if need be.  What is wrong with it the text says once; `crl` stays what it was.
 * *changed_p: it is another one, or can be used again. */
GP_MUST_CHECK int gpd_crl_file_refresh(struct gpd_crl_file *file, struct gp_tls *tls, int64_t now_s,
				       bool *changed_p, char *error, size_t error_size);
void gpd_crl_file_close(struct gpd_crl_file *file);

#endif /* GPD_CRL_FILE_H */
