GP_LOCAL(AS(cuNobody, Flags))
CUresult cuSample(
        unsigned int Flags);
