GP_LOCAL(CLIENT_OBJECT(active), REQUIRE(primary))
CUresult cuCtxGetFlags(
        OUT FIELD(flags) unsigned int *flags);
