GP_LOCAL(CLIENT_OBJECT(program))
CUresult cuFoo(
        OUT FIXED(7) CUlinkState *x);

GP_KIND(linker, TYPES(CUlinkState), COST(4096), DESTROY(cuLinkDestroy), LIFETIME(context))

