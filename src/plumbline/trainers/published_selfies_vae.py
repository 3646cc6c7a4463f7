"""The SELFIES-VAE that AABO published: its weights are converted to our file, and nothing is trained."""

from typing import Annotated, Literal

import torch

from plumbline.core.inputs import Input
from plumbline.core.options import Options
from plumbline.models.learned.published_weights import load_weights, read_state_dict
from plumbline.models.learned.selfies_vae import Architecture, SelfiesVAE, write_selfies_vae
from plumbline.models.learned.selfies_vocabulary import PUBLISHED
from plumbline.trainers.base import Trained, TrainingContext, trainers


class PublishedOptions(Options):
    """Options of the trainer.

    Attributes:
        weights: the downloaded file.
        start: beginning of a string. The published code samples with the embedding of the start symbol (`code`), which
            no training step has changed, but trains with zeros in its place (`zeros`).
    """

    weights: Annotated[str, Input("raw/{}")] = "selfies-vae-state-dict.pt"
    start: Literal["code", "zeros"] = "code"


@trainers.register("published-selfies-vae", PublishedOptions)
def published_selfies_vae(options: PublishedOptions, context: TrainingContext) -> Trained:
    """The published SELFIES-VAE, read from the file of its weights.

    Raises:
        PlumblineError: the file is missing, holds other weights, or more than weights.
    """
    path = context.data / "raw" / options.weights
    weights = read_state_dict(path)
    model = SelfiesVAE(PUBLISHED, Architecture())
    load_weights(model, weights, path)
    if options.start == "zeros":
        with torch.no_grad():
            model.decoder_token_embedding.weight[PUBLISHED.start] = 0.0
    return Trained(lambda output, origin: write_selfies_vae(output, model, [], origin))
