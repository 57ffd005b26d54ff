# SPDX-License-Identifier: Apache-2.0
# The daemon's image, from a folder with the .deb files of scripts/packages.sh:
#   docker build -f server.Dockerfile -t gpupool-server OUTDIR
#   docker run --gpus all -p 4833:4833 -v gpupool:/etc/gpupool --ulimit memlock=-1 gpupool-server
# The volume has certificate and tokens, made in it once:
#   docker run --rm -v gpupool:/etc/gpupool --entrypoint gpupoolctl gpupool-server cert init gpunode
FROM debian:12-slim
COPY gpupool-server_*.deb gpupool-tools_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/gpupool-server_*.deb /tmp/gpupool-tools_*.deb && \
    rm -rf /tmp/*.deb /var/lib/apt/lists/*
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
EXPOSE 4833
STOPSIGNAL SIGTERM
ENTRYPOINT ["gpupoold"]
CMD ["--listen", "tls://0.0.0.0:4833", "--listen", "unix:///run/gpupool/gpupool.sock"]
