/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: texture and surface objects. The words are defined in vocabulary.h;
 * codegen/README.md explains how to add a call. */

GP_LOCAL(VIA(gpTextureCreate))
CUresult cuTexObjectCreate(
        OUT CUtexObject *pTexObject,
        IN const CUDA_RESOURCE_DESC *pResDesc,
        IN const CUDA_TEXTURE_DESC *pTexDesc,
        IN OPT const CUDA_RESOURCE_VIEW_DESC *pResViewDesc);

GP_LOCAL(VIA(gpTextureDestroy))
CUresult cuTexObjectDestroy(
        CUtexObject texObject);

GP_LOCAL()
CUresult cuTexObjectGetResourceDesc(
        OUT FIELD(resource) CUDA_RESOURCE_DESC *pResDesc,
        CUtexObject texObject);

GP_LOCAL()
CUresult cuTexObjectGetTextureDesc(
        OUT FIELD(description) CUDA_TEXTURE_DESC *pTexDesc,
        CUtexObject texObject);

GP_LOCAL(REQUIRE(has_view, true))
CUresult cuTexObjectGetResourceViewDesc(
        OUT FIELD(view) CUDA_RESOURCE_VIEW_DESC *pResViewDesc,
        CUtexObject texObject);

GP_LOCAL(VIA(gpSurfaceCreate))
CUresult cuSurfObjectCreate(
        OUT CUsurfObject *pSurfObject,
        IN const CUDA_RESOURCE_DESC *pResDesc);

GP_LOCAL(VIA(gpTextureDestroy))
CUresult cuSurfObjectDestroy(
        CUsurfObject surfObject);

GP_LOCAL()
CUresult cuSurfObjectGetResourceDesc(
        OUT FIELD(resource) CUDA_RESOURCE_DESC *pResDesc,
        CUsurfObject surfObject);

/*
 * Creates a texture object. type: CUresourcetype. array, level: the array; for a mipmapped array,
 * level is 0. address to pitch: the memory of CU_RESOURCE_TYPE_LINEAR (width in bytes, height and
 * pitch 0) or CU_RESOURCE_TYPE_PITCH2D (width in elements, height in rows, pitch in bytes).
 * Parameters that do not belong to the type are 0. has_view: 1 if there is a resource view. object:
 * the driver's number. Kernels get it as a plain argument, so the application must use the same
 * number. Errors: CUDA_ERROR_INVALID_VALUE for an invalid type, level, format, size or address, also
 * if the session may not access the memory; CUDA_ERROR_INVALID_HANDLE for an unknown array; an error
 * of the driver.
 */
GP_MESSAGE(0x0291, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpTextureCreate(
        NEW gp_texture texture,
        int device,
        unsigned int type,
        gp_array array,
        unsigned int level,
        gp_address address,
        unsigned int format,
        unsigned int channels,
        size_t width,
        size_t height,
        size_t pitch,
        unsigned int address_mode_x,
        unsigned int address_mode_y,
        unsigned int address_mode_z,
        unsigned int filter_mode,
        unsigned int flags,
        unsigned int anisotropy,
        unsigned int mipmap_filter_mode,
        float mipmap_bias,
        float mipmap_min,
        float mipmap_max,
        float border_r,
        float border_g,
        float border_b,
        float border_a,
        unsigned int has_view,
        unsigned int view_format,
        size_t view_width,
        size_t view_height,
        size_t view_depth,
        unsigned int view_first_level,
        unsigned int view_last_level,
        unsigned int view_first_layer,
        unsigned int view_last_layer,
        OUT unsigned long long *object);

/*
 * Creates a surface object of an array, or of one level of a mipmapped array. object and errors: as
 * gpTextureCreate.
 */
GP_MESSAGE(0x0292, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpSurfaceCreate(
        NEW gp_texture surface,
        gp_array array,
        unsigned int level,
        OUT unsigned long long *object);

/* Destroys a texture or surface object after all work submitted before. */
GP_MESSAGE(0x0293, POST, SERVER_HOOK, AFTER_ALL)
void gpTextureDestroy(
        DROP gp_texture texture);
