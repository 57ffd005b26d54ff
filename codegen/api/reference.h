/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: texture and surface references. The client stores their settings. Before a
 * launch, it creates a texture or surface object from them, and the variable of the module is set
 * to that object.
 *
 * The words are defined in vocabulary.h; codegen/README.md explains how to add a call.
 */

GP_KIND(texref, TYPES(CUtexref))
GP_KIND(surfref, TYPES(CUsurfref))
GP_CLIENT_OBJECT(texref, TYPES(CUtexref), STRUCT(gpc_texture_reference), KIND(texref), HEADER("client/module/texture_reference.h"))
GP_CLIENT_OBJECT(surfref, TYPES(CUsurfref), STRUCT(gpc_texture_reference), KIND(surfref), HEADER("client/module/texture_reference.h"))

GP_LOCAL(VIA(gpReferenceFind))
CUresult cuModuleGetTexRef(
        OUT CUtexref *pTexRef,
        CUmodule hmod,
        IN_STRING const char *name);

GP_LOCAL(VIA(gpReferenceFind))
CUresult cuModuleGetSurfRef(
        OUT CUsurfref *pSurfRef,
        CUmodule hmod,
        IN_STRING const char *name);

GP_LOCAL()
CUresult cuTexRefCreate(
        OUT CUtexref *pTexRef);

GP_LOCAL()
CUresult cuTexRefDestroy(
        CUtexref hTexRef);

GP_LOCAL(VIA(gpTextureCreate, gpReferenceSet))
CUresult cuTexRefSetArray(
        CUtexref hTexRef,
        CUarray hArray,
        unsigned int Flags);

GP_LOCAL(VIA(gpTextureCreate, gpReferenceSet))
CUresult cuTexRefSetMipmappedArray(
        CUtexref hTexRef,
        CUmipmappedArray hMipmappedArray,
        unsigned int Flags);

GP_LOCAL(VIA(gpTextureCreate, gpReferenceSet))
CUresult cuTexRefSetAddress_v2(
        OUT OPT size_t *ByteOffset,
        CUtexref hTexRef,
        CUdeviceptr dptr,
        size_t bytes);

GP_LOCAL(ALIAS(cuTexRefSetAddress2D_v2), VIA(gpTextureCreate, gpReferenceSet))
CUresult cuTexRefSetAddress2D_v3(
        CUtexref hTexRef,
        IN const CUDA_ARRAY_DESCRIPTOR *desc,
        CUdeviceptr dptr,
        size_t Pitch);

GP_LOCAL()
CUresult cuTexRefSetFormat(
        CUtexref hTexRef,
        CUarray_format fmt,
        int NumPackedComponents);

GP_LOCAL()
CUresult cuTexRefSetAddressMode(
        CUtexref hTexRef,
        int dim,
        CUaddress_mode am);

GP_LOCAL()
CUresult cuTexRefSetFilterMode(
        CUtexref hTexRef,
        STORE(description.filterMode) WITHIN(0, CU_TR_FILTER_MODE_LINEAR) CUfilter_mode fm);

GP_LOCAL()
CUresult cuTexRefSetMipmapFilterMode(
        CUtexref hTexRef,
        STORE(description.mipmapFilterMode) WITHIN(0, CU_TR_FILTER_MODE_LINEAR) CUfilter_mode fm);

GP_LOCAL()
CUresult cuTexRefSetMipmapLevelBias(
        CUtexref hTexRef,
        STORE(description.mipmapLevelBias) float bias);

GP_LOCAL()
CUresult cuTexRefSetMipmapLevelClamp(
        CUtexref hTexRef,
        STORE(description.minMipmapLevelClamp) float minMipmapLevelClamp,
        STORE(description.maxMipmapLevelClamp) float maxMipmapLevelClamp);

GP_LOCAL()
CUresult cuTexRefSetMaxAnisotropy(
        CUtexref hTexRef,
        STORE(description.maxAnisotropy) unsigned int maxAniso);

GP_LOCAL()
CUresult cuTexRefSetBorderColor(
        CUtexref hTexRef,
        IN_N(4) float *pBorderColor);

GP_LOCAL()
CUresult cuTexRefSetFlags(
        CUtexref hTexRef,
        STORE(description.flags) WITHIN(0, GPC_TEXTURE_REFERENCE_FLAGS) unsigned int Flags);

GP_LOCAL(REQUIRE(resource.resType, CU_RESOURCE_TYPE_LINEAR, CU_RESOURCE_TYPE_PITCH2D))
CUresult cuTexRefGetAddress_v2(
        OUT FIELD(resource.res.linear.devPtr) CUdeviceptr *pdptr,
        CUtexref hTexRef);

GP_LOCAL(REQUIRE(resource.resType, CU_RESOURCE_TYPE_ARRAY))
CUresult cuTexRefGetArray(
        OUT FIELD(resource.res.array.hArray) CUarray *phArray,
        CUtexref hTexRef);

GP_LOCAL(REQUIRE(resource.resType, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY))
CUresult cuTexRefGetMipmappedArray(
        OUT FIELD(resource.res.mipmap.hMipmappedArray) CUmipmappedArray *phMipmappedArray,
        CUtexref hTexRef);

GP_LOCAL()
CUresult cuTexRefGetAddressMode(
        OUT CUaddress_mode *pam,
        CUtexref hTexRef,
        int dim);

GP_LOCAL()
CUresult cuTexRefGetFilterMode(
        OUT FIELD(description.filterMode) CUfilter_mode *pfm,
        CUtexref hTexRef);

GP_LOCAL()
CUresult cuTexRefGetFormat(
        OUT FIELD(format) CUarray_format *pFormat,
        OUT FIELD(channels) int *pNumChannels,
        CUtexref hTexRef);

GP_LOCAL()
CUresult cuTexRefGetMipmapFilterMode(
        OUT FIELD(description.mipmapFilterMode) CUfilter_mode *pfm,
        CUtexref hTexRef);

GP_LOCAL()
CUresult cuTexRefGetMipmapLevelBias(
        OUT FIELD(description.mipmapLevelBias) float *pbias,
        CUtexref hTexRef);

GP_LOCAL()
CUresult cuTexRefGetMipmapLevelClamp(
        OUT FIELD(description.minMipmapLevelClamp) float *pminMipmapLevelClamp,
        OUT FIELD(description.maxMipmapLevelClamp) float *pmaxMipmapLevelClamp,
        CUtexref hTexRef);

GP_LOCAL()
CUresult cuTexRefGetMaxAnisotropy(
        OUT COMPUTE(gpc_texture_reference_anisotropy) int *pmaxAniso,
        CUtexref hTexRef);

GP_LOCAL()
CUresult cuTexRefGetBorderColor(
        OUT_N(4) float *pBorderColor,
        CUtexref hTexRef);

GP_LOCAL()
CUresult cuTexRefGetFlags(
        OUT FIELD(description.flags) unsigned int *pFlags,
        CUtexref hTexRef);

GP_LOCAL(VIA(gpSurfaceCreate, gpReferenceSet))
CUresult cuSurfRefSetArray(
        CUsurfref hSurfRef,
        CUarray hArray,
        unsigned int Flags);

GP_LOCAL(REQUIRE(resource.resType, CU_RESOURCE_TYPE_ARRAY))
CUresult cuSurfRefGetArray(
        OUT FIELD(resource.res.array.hArray) CUarray *phArray,
        CUsurfref hSurfRef);

/* A launch uses the settings of all references of its module, so this call has no effect. */
GP_LOCAL()
CUresult cuParamSetTexRef(
        CUfunction hfunc,
        int texunit,
        CUtexref hTexRef);

/*
 * Checks that the image has a texture reference (surface 1: surface reference) of this name.
 *
 * Errors: CUDA_ERROR_NOT_FOUND.
 */
GP_MESSAGE(0x0294, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpReferenceFind(
        gp_context context,
        gp_image image,
        unsigned int surface,
        IN_STRING const char *name);

/* Sets the reference to the resource and the settings of this texture or surface object, for later
 * launches. */
GP_MESSAGE(0x0295, POST, SERVER_HOOK, NO_DTOH_WAIT)
void gpReferenceSet(
        gp_context context,
        gp_image image,
        unsigned int surface,
        IN_STRING const char *name,
        gp_texture texture);
