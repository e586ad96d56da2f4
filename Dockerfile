# syntax=docker/dockerfile:1

# The Dormouse server.
#
#   docker build -t dormouse .
#   docker run -v dormouse:/var/lib/dormouse -v ./dormouse.toml:/etc/dormouse.toml:ro \
#     -e DORMOUSE_CONFIG=/etc/dormouse.toml -p 7788:7788 -p 7789:7789 dormouse
#
# Inside a container the server must listen on all addresses, so it wants a token:
# `dormouse config token` makes one and its lines for dormouse.toml. To try it out without one, keep
# it to this machine: -e DORMOUSE_INSECURE=true -p 127.0.0.1:7788:7788

# Tags can be moved. For a release give the images by digest, as the registries show them today:
#   --build-arg BUILD_IMAGE=rust@sha256:... --build-arg RUN_IMAGE=gcr.io/distroless/cc-debian12@sha256:...
ARG BUILD_IMAGE=rust:1.95.0-slim-bookworm
ARG RUN_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    packaging/build-release \
    && cp target/release/dormouse target/release/dormouse.debug / \
    && mkdir /data

# The symbols: docker build --target symbols --output . .
FROM scratch AS symbols
COPY --from=build /dormouse.debug /

FROM ${RUN_IMAGE}
LABEL org.opencontainers.image.title="dormouse" \
      org.opencontainers.image.description="A durable delay queue: put a job now, get it at its time" \
      org.opencontainers.image.source="https://github.com/dormouse-queue/dormouse" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=build /dormouse /usr/bin/dormouse
# A new volume takes over the owner of what it covers.
COPY --from=build --chown=nonroot:nonroot /data /var/lib/dormouse
USER nonroot:nonroot
VOLUME /var/lib/dormouse
ENV DORMOUSE_DATA=/var/lib/dormouse \
    DORMOUSE_HTTP=0.0.0.0:7788 \
    DORMOUSE_RESP=0.0.0.0:7789
# Large buffers go back to the system when they are freed: see "Memory" in docs/operations.md.
ENV MALLOC_MMAP_THRESHOLD_=262144 \
    MALLOC_TRIM_THRESHOLD_=1048576 \
    MALLOC_ARENA_MAX=2
EXPOSE 7788 7789
# It has drained after `drain`, 10s, and `docker stop` kills after 10s: use `docker stop -t 30`.
STOPSIGNAL SIGTERM
# With TLS, set DORMOUSE_URL to a name that the certificate has.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/usr/bin/dormouse", "health"]
ENTRYPOINT ["/usr/bin/dormouse"]
CMD ["serve"]
