"""Training of a SELFIES-VAE on the molecules of a data set."""

import json
import logging
import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from rdkit import Chem, rdBase
from torch import Generator, Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from plumbline.core.errors import PlumblineError
from plumbline.core.inputs import Input
from plumbline.core.options import Options
from plumbline.core.seeding import draw_seed, stream_seed
from plumbline.data.features import read_features
from plumbline.models.learned.arrays import Curves
from plumbline.models.learned.selfies_vae import LONGEST, Architecture, SelfiesVAE, padded, write_selfies_vae
from plumbline.models.learned.selfies_vocabulary import selfies_of, smiles_of, split, vocabulary_of
from plumbline.registry.references import canonical_json, short_digest
from plumbline.registry.source_digest import source_digest
from plumbline.trainers.base import Trained, TrainingContext, trainers
from plumbline.trainers.checkpoint import Checkpoint, State

log = logging.getLogger(__name__)

STEEPEST = 1.0
"""Norm to which gradients are clipped."""


class SelfiesVaeOptions(Options):
    """Options of the trainer.

    Attributes:
        dataset: data set whose table of features has the molecules, in its column `smiles`.
        more: another data set, whose molecules are learnt besides; none of it is held out, nor learnt where held out.
        architecture: sizes of the model.
        epochs: number of passes over the molecules.
        batch: number of molecules per step.
        learning_rate: greatest learning rate of Adam: it rises from 0 over `warmup` steps and falls to 0 like a cosine.
        warmup: number of steps of the rise.
        kl_weight: weight in the loss of the Kullback-Leibler divergence from the prior, averaged over the latent
            dimensions; the other term is the cross entropy averaged over tokens, as in the published code.
        holdout: number of held-out molecules, for the share that is reconstructed from the encoding.
        samples: number of draws of the prior after each epoch, for the share that decodes to molecules.
    """

    dataset: Annotated[str, Input("features/{}.parquet")]
    more: Annotated[str, Input("features/{}.parquet")] | None = None
    architecture: Architecture = Architecture()
    epochs: PositiveInt = 100
    batch: PositiveInt = 128
    learning_rate: PositiveFloat = 1e-3
    warmup: NonNegativeInt = 100
    kl_weight: NonNegativeFloat = 0.1
    holdout: PositiveInt = 200
    samples: PositiveInt = Field(default=200, le=10_000)


@trainers.register("selfies-vae", SelfiesVaeOptions)
def selfies_vae(options: SelfiesVaeOptions, context: TrainingContext) -> Trained:
    """A transformer variational autoencoder of molecules, written as SELFIES.

    Raises:
        PlumblineError: the features are missing, or have no or too few molecules; or the loss is infinite or NaN.
    """
    strings = molecules_of(options.dataset, options.architecture, context)
    if len(strings) <= options.holdout:
        raise PlumblineError(f"{len(strings)} molecules, {options.holdout} of them held out: lower `holdout`")
    seed = draw_seed(context.generator)
    order = torch.randperm(len(strings), generator=context.generator).tolist()
    strings = [strings[i] for i in order]
    if options.more is not None:
        known = set(strings)
        strings += [one for one in molecules_of(options.more, options.architecture, context) if one not in known]
    vocabulary = vocabulary_of(strings)
    tokens = [vocabulary.tokens(string) for string in strings]
    identity = [options.model_dump(mode="json"), seed, source_digest(__name__), short_digest("\n".join(strings))]
    checkpoint = Checkpoint(context.unfinished, canonical_json(identity))
    with torch.random.fork_rng(), rdBase.BlockLogs():
        torch.manual_seed(seed)
        model = SelfiesVAE(vocabulary, options.architecture).to(context.device)
        curves = Training(model, tokens[options.holdout :], tokens[: options.holdout], options, seed).run(checkpoint)

    def write(path: Any, origin: dict[str, Any]) -> None:
        write_selfies_vae(path, model, curves, origin)
        checkpoint.remove()

    return Trained(write)


def molecules_of(dataset: str, architecture: Architecture, context: TrainingContext) -> list[str]:
    """Return the molecules of a data set as SELFIES.

    Raises:
        PlumblineError: the features are missing, or have no molecules.
    """
    table = read_features(context.data / "features" / f"{dataset}.parquet")
    if "smiles" not in table:
        raise PlumblineError(f"dataset {dataset!r} has no column smiles: it is not of molecules")
    return readable(table["smiles"].tolist(), architecture.vectors)


def readable(smiles: Sequence[str], least: int) -> list[str]:
    """Return the molecules as SELFIES, without those that have no string, fewer than `least` tokens or too many.

    A warning counts the omitted ones.
    """
    strings = [selfies_of(one) for one in smiles]
    kept = [string for string in strings if string is not None and least <= len(split(string)) + 1 <= LONGEST]
    if len(kept) < len(smiles):
        log.warning("%d of %d molecules left out: not in SELFIES, or too long", len(smiles) - len(kept), len(smiles))
    return kept


def batches(lengths: Sequence[int], size: int, generator: Generator) -> list[list[int]]:
    """Return all row numbers in shuffled batches of at most `size` rows of similar lengths, for little padding."""
    noise = torch.rand(len(lengths), generator=generator)
    rows = torch.argsort(torch.tensor(lengths) + noise).split(size)
    return [rows[i].tolist() for i in torch.randperm(len(rows), generator=generator).tolist()]


def learning_rate(step: int, steps: int, warmup: int, greatest: float) -> float:
    """Return the rate of a step (0, 1, ..., `steps` - 1): linear rise to `greatest`, then cosine decay."""
    if step < warmup:
        return greatest * (step + 1) / warmup
    return greatest * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(steps - warmup, 1)))


def losses(model: SelfiesVAE, tokens: Tensor) -> dict[str, Tensor]:
    """Return the losses of a step on padded tokens `n x T`, at a draw of each molecule's posterior.

    Returns:
        `cross_entropy` in nats per token, `kl` in nats per latent dimension, and `token_accuracy`, the share of tokens
        that are the most likely given the previous ones.
    """
    mean, sd = model.posterior(tokens)
    logits = model.logits(mean + sd * torch.randn_like(sd), tokens)
    stops = tokens == model.vocabulary.stop
    counted = stops.cumsum(dim=1) - stops.long() == 0  # up to the first stop
    right = logits.argmax(dim=-1) == tokens
    return {
        "cross_entropy": functional.cross_entropy(logits[counted], tokens[counted]),
        "kl": 0.5 * (mean**2 + sd**2 - 1 - 2 * sd.log()).mean(),
        "token_accuracy": right[counted].double().mean(),
    }


def reconstruction(model: SelfiesVAE, tokens: Sequence[Sequence[int]]) -> float:
    """Return the share of molecules that are reconstructed from the mean of their posterior by greedy decoding."""
    strings = [model.vocabulary.string(one) for one in tokens]
    decoded = model.decode(model.encode_tokens(tokens))
    return sum(one == other for one, other in zip(strings, decoded, strict=True)) / len(strings)


def validity(model: SelfiesVAE, Z: Tensor) -> float:
    """Return the share of latent points (`n x d`) that decode to a molecule of at least one atom."""
    molecules = (Chem.MolFromSmiles(smiles_of(string)) for string in model.decode(Z))
    return sum(molecule is not None and molecule.GetNumAtoms() > 0 for molecule in molecules) / len(Z)


class Training:
    """Epochs of Adam.

    The random stream of a step is derived from its number, so that no generator state is saved. A resumed training ends
    with the same bytes as an uninterrupted one.

    Args:
        model: the model, which is trained in place.
        tokens: tokens of the training molecules.
        held: tokens of the held-out molecules.
        options: options of the trainer.
        seed: seed of all streams.
    """

    def __init__(
        self,
        model: SelfiesVAE,
        tokens: Sequence[Sequence[int]],
        held: Sequence[Sequence[int]],
        options: SelfiesVaeOptions,
        seed: int,
    ) -> None:
        self.model = model
        self.tokens = tokens
        self.held = held
        self.options = options
        self.seed = seed
        self.optimiser = torch.optim.Adam(model.parameters())
        self.a_epoch = math.ceil(len(tokens) / options.batch)
        self.steps = options.epochs * self.a_epoch
        self.step = 0
        self.sums: dict[str, float] = {}
        self.curves: Curves = []

    def run(self, checkpoint: Checkpoint) -> Curves:
        """Train to the end, from the checkpoint if there is one, and return the curves.

        Raises:
            PlumblineError: the loss is infinite or NaN at a step.
        """
        saved = checkpoint.restore()
        if saved is not None:
            self.load(saved)
            log.info("going on after %d of %d steps", self.step, self.steps)
        for rows in self._rows():
            self._learn(rows)
            if checkpoint.due:
                checkpoint.save(self.state())
        self.model.eval()
        return self.curves

    def state(self) -> State:
        """Return the state that the rest of the training depends on."""
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "step": self.step,
            "sums": self.sums,
            "curves": self.curves,
        }

    def load(self, state: State) -> None:
        """Restore a state."""
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step, self.sums, self.curves = state["step"], dict(state["sums"]), list(state["curves"])

    def _rows(self) -> Iterator[list[int]]:
        """Yield the molecules of each remaining step."""
        lengths = [len(one) for one in self.tokens]
        for epoch in range(self.step // self.a_epoch, self.options.epochs):
            stream = Generator().manual_seed(stream_seed("batches", self.seed, "model", epoch))
            yield from batches(lengths, self.options.batch, stream)[self.step - epoch * self.a_epoch :]

    def _learn(self, rows: Sequence[int]) -> None:
        options, model = self.options, self.model.train()
        torch.manual_seed(stream_seed("step", self.seed, "model", self.step))
        tokens = padded([self.tokens[i] for i in rows], model.vocabulary.stop).to(model.device)
        parts = losses(model, tokens)
        loss = parts["cross_entropy"] + options.kl_weight * parts["kl"]
        if not loss.isfinite():
            raise PlumblineError(f"the loss is {loss:g} at step {self.step}: lower `learning_rate` or raise `warmup`")
        self.optimiser.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), STEEPEST)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.step, self.steps, options.warmup, options.learning_rate)
        self.optimiser.step()
        for name, value in {**parts, "loss": loss}.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value.detach()) * len(rows)
        self.step += 1
        if self.step % self.a_epoch == 0:
            self._measure()

    def _measure(self) -> None:
        """Add the epoch's means over molecules, and the model's reconstruction and validity, to the curves."""
        model = self.model.eval()
        means = {name: total / len(self.tokens) for name, total in self.sums.items()}
        dim = self.options.architecture.dim
        Z = torch.randn(self.options.samples, dim, generator=Generator().manual_seed(self.seed), dtype=torch.float64)
        quality = {"reconstruction": reconstruction(model, self.held), "validity": validity(model, Z)}
        self.curves.append({"epoch": self.step // self.a_epoch, **means, **quality})
        self.sums = {}
        log.info("%s", json.dumps({name: round(value, 4) for name, value in self.curves[-1].items()}))
