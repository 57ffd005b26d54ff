#if 0
GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);
#endif
