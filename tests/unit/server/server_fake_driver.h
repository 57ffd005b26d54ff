/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of server_fake.h: its driver, which fills in gpd_driver.  Tests have no use for
 * this.  Any thread may call fake_called(); the rest is for fake_create().
 */
#ifndef SERVER_FAKE_DRIVER_H
#define SERVER_FAKE_DRIVER_H

#include "server/worker/device/driver.h"

/* Notes a call down in fake_calls; the answer it is to get. */
CUresult fake_called(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A driver that has been asked for nothing yet and that fails nothing. */
void fake_driver_create(void);
/* Its functions of arrays, textures and surfaces, those of images and kernels, and of graphs. */
void fake_driver_add_arrays(void);
void fake_driver_add_images(void);
void fake_driver_add_graphs(void);

#endif /* SERVER_FAKE_DRIVER_H */
