"""What the words of a repository name say: the model, its weight format, its variant and date."""

import re
from functools import lru_cache

import msgspec

FORMAT_WORDS: dict[str, str] = {
    "fp32": "fp32", "f32": "fp32", "bf16": "bf16", "fp16": "fp16", "f16": "fp16", "16bit": "bf16",
    "fp8": "fp8", "f8": "fp8", "mxfp8": "mxfp8", "w8a8": "int8", "int8": "int8", "8bit": "int8", "w8a16": "gptq-int8",
    "awq": "awq-int4", "gptq": "gptq-int4", "int4": "int4", "4bit": "int4", "w4a16": "int4", "autoround": "int4",
    "nvfp4": "nvfp4", "fp4": "nvfp4", "mxfp4": "mxfp4", "bnb": "bnb-nf4", "nf4": "bnb-nf4", "bitsandbytes": "bnb-nf4",
    "gguf": "gguf-q4-k-m", "ggml": "gguf-q4-k-m",
}  # fmt: skip
"""Formats by the words that makers of quantized repositories use; a GGUF repository without a type is taken as Q4_K_M,
the type most downloaded."""

_STRONGEST = ("gguf", "ggml", "awq", "gptq", "bnb", "bitsandbytes", "nf4", "nvfp4", "mxfp4", "mxfp8", "autoround")
"""Words that decide over plain widths: ``AWQ-INT4`` and ``bnb-4bit`` are AWQ and bitsandbytes."""

_GGUF_TYPE = re.compile(
    r"(?<![a-z0-9])(i?q\d[_-](?:k|0|1|nl|xs|xxs|s|m)(?:[_-](?:xl|l|m|s|xs|xxs))?|tq\d[_-]0)(?![a-z0-9])"
)
_WIDE_OF = {"gptq-int4": "gptq-int8", "awq-int4": "gptq-int8", "bnb-nf4": "bnb-int8", "int4": "gptq-int8"}
_EIGHT = frozenset({"int8", "8bit", "w8a16"})

VARIANT_WORDS = frozenset({"instruct", "chat", "it", "base", "hf", "pt", "sft", "thinking"})
"""Words that tell releases of one architecture apart."""

TUNING_WORDS = frozenset({
    "abliterated", "uncensored", "heretic", "finetune", "finetuned", "dpo", "orpo", "grpo", "merged", "merge",
    "huihui", "josiefied", "derestricted", "tuned",
})  # fmt: skip
"""Words of fine-tunes that leave the architecture alone."""

NOISE_WORDS = frozenset({
    "meta", "unsloth", "dynamic", "quantized", "quant", "quants", "ud", "mlx", "marlin", "sym", "asym", "g128", "g32",
    "gs128", "ct", "compressed", "tensors", "qat", "unquantized", "channel", "tensor", "static", "i1", "imatrix",
    "modelopt", "hf", "block", "per", "weight", "only", "torchao", "optimum", "dq", "calib",
    "mixed", "safetensors", "official", "group128",
})  # fmt: skip
"""Words about the making of a format, or none."""

REFUSED_WORDS = (
    "pruned", "eagle", "speculator", "draft", "lora", "adapter", "medusa", "dflash", "exl2", "exl3", "minitron",
)  # fmt: skip
"""Words of repositories that hold no whole model of the named architecture, or one in a format without an id here."""

_DATE = re.compile(r"^(?:20)?\d{2}(?:0[1-9]|1[0-2])$|^\d{2}[0-3]\d$|^20\d{2}$")
_OUTSIDE = re.compile(r"\([^()]*\)")
_SPLIT = re.compile(r"[\s\-_/,:+]+")
_UNDERSCORED_VERSION = re.compile(r"(?<=\d)_(?=\d(?:\D|$))")
_LONGEST_NAME = 300


class ModelWords(msgspec.Struct, frozen=True):
    """A name in parts."""

    stem: tuple[str, ...]
    """Words of the model itself, lower case, in order."""
    variant: frozenset[str]
    dates: frozenset[str]
    tuning: frozenset[str]
    weights: str | None
    """Format id, where the name tells one."""
    refused: bool

    @property
    def joined(self) -> str:
        """The stem without separators: ``llama2`` and ``Llama-2`` are one."""
        return "".join(self.stem)


@lru_cache(maxsize=4096)
def read_model_words(name: str) -> ModelWords:
    """Read a name; the organisation counts only for block-wise FP8, which Qwen, GLM, DeepSeek and MiniMax publish."""
    name = name[:_LONGEST_NAME].lower()
    aside = " ".join(_OUTSIDE.findall(name)).strip("()")
    plain = _OUTSIDE.sub(" ", name).strip()
    organisation, _, rest = plain.rpartition("/")
    gguf = _GGUF_TYPE.search(f"{rest} {aside}")
    rest = _GGUF_TYPE.sub(" ", rest)
    words = [word for word in _SPLIT.split(_spelled(rest)) if word]
    told = [word for word in (*words, *_SPLIT.split(_spelled(aside))) if word in FORMAT_WORDS]
    stem = tuple(w for w in words if not _is_attribute(w))
    return ModelWords(
        stem=stem,
        variant=frozenset(words) & VARIANT_WORDS - {"hf"},
        dates=frozenset(word for word in words if _DATE.match(word)),
        tuning=frozenset(words) & TUNING_WORDS,
        weights=_weights(told, gguf.group(1) if gguf else None, organisation, words),
        refused=any(bad in word for word in words for bad in REFUSED_WORDS),
    )


def _spelled(text: str) -> str:
    """One spelling of versions (``3_3``) and of formats with a dot or dash in them (``quantized.w4a16``, ``4-bit``)."""
    text = text.replace("quantized.", "quantized-").replace("auto-round", "autoround")
    text = re.sub(r"\b(4|8|16)[-_ ]bit\b", r"\1bit", text)
    return _UNDERSCORED_VERSION.sub(".", text)


def _is_attribute(word: str) -> bool:
    return (
        word in FORMAT_WORDS
        or word in VARIANT_WORDS
        or word in TUNING_WORDS
        or word in NOISE_WORDS
        or _DATE.match(word) is not None
    )


_BLOCKWISE = frozenset({"qwen", "zai-org", "deepseek-ai", "minimaxai", "xiaomimimo", "stepfun-ai"})


def _gguf_id(named: str) -> str:
    """Format id of a GGUF type; a maker's own mixes (``Q4_K_XL``) count as the common one of the width."""
    if named.startswith("q3-k-") and named.endswith("l"):
        return "gguf-q3-k-l"
    plain = named.removesuffix("-xl").removesuffix("-l")
    return "gguf-" + (f"{plain}-m" if plain in {"q3-k", "q4-k", "q5-k"} else plain)


def _weights(told: list[str], gguf_type: str | None, organisation: str, words: list[str]) -> str | None:
    if gguf_type is not None and ("gguf" in told or "unquantized" not in words):
        return _gguf_id(gguf_type.replace("_", "-"))
    if not told or "unquantized" in words:
        return None
    strong = [word for word in told if word in _STRONGEST]
    found = FORMAT_WORDS[(strong or told)[0]]
    if _EIGHT & set(told):
        found = _WIDE_OF.get(found, found)
    if found == "fp8" and ("block" in words or organisation in _BLOCKWISE):
        return "fp8-block"
    return found
