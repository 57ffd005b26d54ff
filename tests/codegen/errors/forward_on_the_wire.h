GP_CALL(0x7001, WAIT, FORWARD(cuInit, Flags))
CUresult cuSample(
        unsigned int Flags);

GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);
