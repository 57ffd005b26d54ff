GP_LOCAL()
CUresult cuEventGetNumber(
        OUT FIELD(number) int *number,
        CUevent event);
