# SPDX-License-Identifier: Apache-2.0
# A program's image with the client, from a folder with the .deb files of scripts/packages.sh:
#   docker build -f client.Dockerfile -t gpupool-client OUTDIR
#   docker run -e REMOTE_GPU=tls://gpunode -e GPUPOOL_TOKEN_FILE=/run/secrets/token \
#       -v ./alice.token:/run/secrets/token:ro gpupool-client ./app
# An image that exists needs no build: mount /usr/lib/gpupool of a machine that has the client, and
# set LD_LIBRARY_PATH to where it is mounted.
ARG BASE=debian:12-slim
FROM ${BASE}
COPY gpupool-client_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends libssl3 \
    "/tmp/gpupool-client_"*"_$(dpkg --print-architecture).deb" && \
    rm -rf /tmp/*.deb /var/lib/apt/lists/*
