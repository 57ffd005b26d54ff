GP_LOCAL(FORWARD(cuNobody, Flags))
CUresult cuSample(
        unsigned int Flags);
