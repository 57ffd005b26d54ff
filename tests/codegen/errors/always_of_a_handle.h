GP_LOCAL(OF(program))
CUresult cuFoo(
        OUT ALWAYS(7) CUlinkState *x);

GP_KIND(linker, TYPES(CUlinkState), COST(4096), OBJECT(cuLinkDestroy), GOES_WITH(context))

