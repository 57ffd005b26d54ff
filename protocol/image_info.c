/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/image_info.h"

#include "protocol/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
gp_image_info_encode(const struct gp_image_info *info, void **data_p, size_t *size_p)
{
	size_t size = 16;
	struct gp_enc enc;
	void *data;

	for (uint32_t i = 0; i < info->kernel_count; i++)
		size += GP_ENC_BYTES_SIZE(strlen(info->kernels[i].name)) +
			4 * GP_KERNEL_ATTRIBUTES + 16 + 8 * (size_t)info->kernels[i].param_count;
	data = malloc(size);
	if (!data)
		return -ENOMEM;
	gp_enc_init(&enc, data, size);
	gp_enc_u32(&enc, info->kernel_count);
	for (uint32_t i = 0; i < info->kernel_count; i++) {
		const struct gp_kernel_info *kernel = &info->kernels[i];

		gp_enc_bytes(&enc, (struct gp_bytes){ kernel->name, strlen(kernel->name) });
		gp_enc_u32(&enc, kernel->attributes_known);
		for (int a = 0; a < GP_KERNEL_ATTRIBUTES; a++)
			gp_enc_u32(&enc, (uint32_t)kernel->attributes[a]);
		gp_enc_u32(&enc, kernel->param_count);
		for (uint32_t p = 0; p < kernel->param_count; p++) {
			gp_enc_u32(&enc, kernel->params[p].offset);
			gp_enc_u32(&enc, kernel->params[p].size);
		}
	}
	gp_enc_pad(&enc);
	*data_p = data;
	*size_p = gp_enc_size(&enc);
	return 0;
}

struct sizes {
	size_t params;
	size_t names;
};

static bool
param_is_valid(const struct gp_param_info *param, uint32_t *end)
{
	if (param->offset < *end || param->offset > GP_LAUNCH_PARAMS_MAX ||
	    param->size > GP_LAUNCH_PARAMS_MAX - param->offset)
		return false;
	*end = param->offset + param->size;
	return true;
}

/* The first pass (out NULL) measures sizes, the second fills memory of these sizes. */
static bool
kernels_decode(struct gp_bytes bytes, struct gp_image_info *out, struct sizes *sizes,
	       struct gp_param_info *params, char *names)
{
	struct gp_dec dec;
	uint32_t count;

	gp_dec_init(&dec, bytes.data, bytes.size);
	count = gp_dec_u32(&dec);
	if (count > GP_IMAGE_KERNELS_MAX)
		return false;
	*sizes = (struct sizes){ 0 };
	for (uint32_t i = 0; i < count && gp_dec_ok(&dec); i++) {
		struct gp_kernel_info kernel = { 0 };
		struct gp_bytes name = gp_dec_bytes(&dec);
		uint32_t end = 0;

		kernel.attributes_known = gp_dec_u32(&dec);
		for (int a = 0; a < GP_KERNEL_ATTRIBUTES; a++)
			kernel.attributes[a] = (int32_t)gp_dec_u32(&dec);
		kernel.param_count = gp_dec_u32(&dec);
		if (kernel.param_count > GP_KERNEL_PARAMS_MAX ||
		    (name.size > 0 && memchr(name.data, 0, name.size)))
			return false;
		for (uint32_t p = 0; p < kernel.param_count && gp_dec_ok(&dec); p++) {
			struct gp_param_info param = { .offset = gp_dec_u32(&dec) };

			param.size = gp_dec_u32(&dec);
			if (!param_is_valid(&param, &end))
				return false;
			if (out)
				params[sizes->params + p] = param;
		}
		if (out) {
			kernel.params = params + sizes->params;
			kernel.name = names + sizes->names;
			if (name.size > 0)
				memcpy(names + sizes->names, name.data, name.size);
			names[sizes->names + name.size] = '\0';
			out->kernels[i] = kernel;
		}
		sizes->params += kernel.param_count;
		sizes->names += name.size + 1;
	}
	if (out)
		out->kernel_count = count;
	return gp_dec_done(&dec);
}

int
gp_image_info_decode(struct gp_image_info **info_p, struct gp_bytes bytes)
{
	struct gp_image_info *info;
	struct gp_param_info *params;
	struct sizes sizes;
	struct gp_dec dec;
	uint32_t count;

	if (!kernels_decode(bytes, NULL, &sizes, NULL, NULL))
		return -EPROTO;
	gp_dec_init(&dec, bytes.data, bytes.size);
	count = gp_dec_u32(&dec);
	info = malloc(sizeof(*info) + count * sizeof(*info->kernels) +
		      sizes.params * sizeof(struct gp_param_info) + sizes.names + 1);
	if (!info)
		return -ENOMEM;
	info->prints = false;
	info->kernels = (struct gp_kernel_info *)(info + 1);
	params = (struct gp_param_info *)(info->kernels + count);
	(void)kernels_decode(bytes, info, &sizes, params, (char *)(params + sizes.params));
	*info_p = info;
	return 0;
}

void
gp_image_info_destroy(struct gp_image_info *info)
{
	free(info);
}

int
gp_image_info_digest(struct gp_bytes bytes, uint8_t digest[GP_SHA256_SIZE])
{
	struct gp_image_info *info;
	void *data;
	size_t size;
	int r = gp_image_info_decode(&info, bytes);

	if (r)
		return r;
	for (uint32_t i = 0; i < info->kernel_count; i++) {
		info->kernels[i].attributes_known = 0;
		memset(info->kernels[i].attributes, 0, sizeof(info->kernels[i].attributes));
	}
	r = gp_image_info_encode(info, &data, &size);
	if (r == 0) {
		gp_sha256(data, size, digest);
		free(data);
	}
	gp_image_info_destroy(info);
	return r;
}
