GP_CALL(0x1, WAIT, CHARGES_NOTHING)
CUresult cuStreamQuery(CUstream hStream);
