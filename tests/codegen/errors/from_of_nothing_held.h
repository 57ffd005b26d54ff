GP_LOCAL()
CUresult cuEventGetNumber(
        OUT FROM(number) int *number,
        CUevent event);
