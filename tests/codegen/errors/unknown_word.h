GP_CAL(0x1, WAIT)
CUresult cuInit(unsigned int Flags);
