/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: occupancy. The words are defined in vocabulary.h; codegen/README.md explains how
 * to add a call. */

GP_CALL(0x0611, WAIT, CLIENT_HOOK, SERVER_HOOK, NO_DTOH_WAIT)
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        OUT int *numBlocks,
        CUfunction func,
        int blockSize,
        size_t dynamicSMemSize,
        unsigned int flags);

GP_LOCAL(FORWARD(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, numBlocks, func, blockSize, dynamicSMemSize, 0), VIA(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags))
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
        OUT int *numBlocks,
        CUfunction func,
        int blockSize,
        size_t dynamicSMemSize);

GP_LOCAL(FORWARD(cuOccupancyMaxPotentialBlockSizeWithFlags, minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, CU_OCCUPANCY_DEFAULT), VIA(gpOccupancyBlocks))
CUresult cuOccupancyMaxPotentialBlockSize(
        OUT int *minGridSize,
        OUT int *blockSize,
        CUfunction func,
        CUoccupancyB2DSize blockSizeToDynamicSMemSize,
        size_t dynamicSMemSize,
        int blockSizeLimit);

GP_LOCAL(VIA(gpOccupancyBlocks))
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(
        OUT int *minGridSize,
        OUT int *blockSize,
        CUfunction func,
        CUoccupancyB2DSize blockSizeToDynamicSMemSize,
        size_t dynamicSMemSize,
        int blockSizeLimit,
        unsigned int flags);

GP_CALL(0x0612, WAIT, CLIENT_HOOK, SERVER_HOOK, NO_DTOH_WAIT)
CUresult cuOccupancyAvailableDynamicSMemPerBlock(
        OUT size_t *dynamicSmemSize,
        CUfunction func,
        int numBlocks,
        int blockSize);

GP_LOCAL(VIA(gpOccupancyCluster))
CUresult cuOccupancyMaxPotentialClusterSize(
        OUT int *clusterSize,
        CUfunction func,
        IN const CUlaunchConfig *config);

GP_LOCAL(VIA(gpOccupancyCluster))
CUresult cuOccupancyMaxActiveClusters(
        OUT int *numClusters,
        CUfunction func,
        IN const CUlaunchConfig *config);
