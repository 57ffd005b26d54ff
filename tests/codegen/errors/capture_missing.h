GP_CALL(0x0001, WAIT, CHARGES_NOTHING)
CUresult cuStreamQuery(
        CUstream hStream);
