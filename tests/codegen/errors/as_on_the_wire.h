GP_CALL(0x7001, WAIT, AS(cuInit, Flags))
CUresult cuSample(
        unsigned int Flags);

GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);
