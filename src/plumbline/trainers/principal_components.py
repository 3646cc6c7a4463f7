"""Principal components of the descriptors of molecules: the best linear autoencoder."""

from typing import Annotated

import torch
from pydantic import PositiveInt
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from plumbline.core.errors import PlumblineError
from plumbline.core.inputs import Input
from plumbline.core.options import Options
from plumbline.data.features import read_features
from plumbline.data.sources.molecules import DESCRIPTORS
from plumbline.models.learned.latent import LinearLatent, write_latent
from plumbline.trainers.base import Trained, TrainingContext, trainers


class ComponentsOptions(Options):
    """Options of the trainer.

    Attributes:
        dataset: data set whose table of features is used.
        components: number of latent inputs.
    """

    dataset: Annotated[str, Input("features/{}.parquet")]
    components: PositiveInt = 6


@trainers.register("principal-components", ComponentsOptions)
def principal_components(options: ComponentsOptions, context: TrainingContext) -> Trained:
    """The principal components of standardised descriptors.

    Raises:
        PlumblineError: there are more components than descriptors or rows, or the features are missing.
    """
    if options.components > len(DESCRIPTORS):
        raise PlumblineError(f"components: {options.components} of {len(DESCRIPTORS)} descriptors")
    table = read_features(context.data / "features" / f"{options.dataset}.parquet")
    if options.components > len(table):
        raise PlumblineError(f"components: {options.components} of a dataset with {len(table)} rows")
    X = table[list(DESCRIPTORS)].to_numpy("float64")
    scaler = StandardScaler().fit(X)
    seed = int(torch.randint(2**31 - 1, (1,), generator=context.generator))
    pca = PCA(options.components, svd_solver="full", random_state=seed).fit(scaler.transform(X))
    latent = LinearLatent(tuple(DESCRIPTORS), scaler.mean_, scaler.scale_, pca.components_)
    return Trained(lambda path, origin: write_latent(path, latent, origin))
