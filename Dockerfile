# plumbline as a container: docs/guide/containers.md.
FROM python:3.11-slim-bookworm

# locked: all files are checked against envs/hashed.lock, and torch is PyTorch's build for CUDA. cpu, cu126, ...: that
# build of torch in its place, and nothing is checked.
ARG TORCH=locked

WORKDIR /opt/plumbline
COPY envs ./envs
RUN if [ "$TORCH" = locked ]; then \
        pip install --no-cache-dir --require-hashes -r envs/hashed.lock; \
    else \
        pip install --no-cache-dir uv && \
        uv pip install --system --no-cache --torch-backend "$TORCH" -r envs/requirements.lock; \
    fi
COPY pyproject.toml README.md LICENSE CITATION.cff ./
COPY config ./config
COPY profiles ./profiles
COPY results ./results
COPY slurm ./slurm
COPY src ./src
COPY workflow ./workflow
RUN pip install --no-cache-dir --no-deps --no-build-isolation .

# Any user may run it: what commands remember goes to a folder that all can write.
ENV HOME=/tmp MPLBACKEND=agg
WORKDIR /work
CMD ["plumbline", "--help"]
