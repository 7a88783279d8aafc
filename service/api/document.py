"""The OpenAPI 3.1 document, assembled from the declared operations.

Schemas come from msgspec, which knows the Structs best: docstrings become descriptions, bounds stay exact, unknown
fields are forbidden where the decoder forbids them. The document therefore says what the decoder does.
"""

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Litestar

from service import __version__
from service.api.encoding import schema_hook
from service.api.examples import Example, read_examples
from service.api.field_docs import field_docs, structs_in
from service.api.operation import Operation
from service.api.problems import PROBLEM_MEDIA_TYPE, Problem

Schema = dict[str, Any]

_REF = "#/components/schemas/{name}"
_PAGE = re.compile(r"Page_(\w+)_")
_DESCRIPTION = (
    "Sizes deployments of large language models: VRAM budgets, concurrency, GPU and provider recommendations and cost "
    "per token, from catalogs with sources and dates. Errors are problem documents (RFC 9457); all faults of a request "
    "are reported together. HEAD is answered wherever GET is."
)
_TAGS = {
    "sizing": "What a workload needs and costs.",
    "catalogs": "The facts that answers rest on, with sources and dates.",
    "operations": "Health, metrics, documentation and the meaning of problems.",
}
_REASONS = {
    400: "The request could not be read, or the body is not JSON.",
    404: "Nothing has this id; the closest ids are suggested.",
    410: "The pinned catalog revision is no longer held.",
    413: "The body is too large.",
    414: "Path and query are too long.",
    415: "The body is not declared as JSON in UTF-8.",
    422: "The request was understood but breaks rules; every fault is listed.",
    429: "Too many requests.",
    503: "The service is starting.",
}
_HEADERS: Schema = {
    "X-Request-Id": {
        "description": "Id of the request in the logs: the caller's own, or a new one.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Content-Language": {
        "description": "Language of the human-readable strings.",
        "schema": {"type": "string"},
    },
    "ETag": {"description": "Strong tag of the answer, for If-None-Match.", "schema": {"type": "string"}},
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "string"}},
}


def operations_of(app: Litestar) -> list[Operation]:
    """Every declared operation of an application, by path and method."""
    found = {
        declared.name: declared
        for route in app.routes
        for handler in getattr(route, "route_handlers", ())
        if isinstance(declared := handler.opt.get("operation"), Operation)
    }
    return sorted(found.values(), key=lambda declared: (declared.documented_path, declared.method))


def openapi_document(app: Litestar) -> Schema:
    """The document of an application's operations."""
    return assemble(operations_of(app))


def assemble(operations: Iterable[Operation]) -> Schema:
    """The document of these operations.

    Raises:
        ValueError: two operations share a name, or an example names an operation that does not carry it.

    """
    operations = list(operations)
    kinds: list[object] = [Problem]
    for declared in operations:
        kinds += [kind for kind in (declared.query, declared.body, declared.answer) if kind is not None]
    structs = [struct.cls for struct in structs_in(kinds)]
    schemas, components = msgspec.json.schema_components([*kinds, *structs], schema_hook=schema_hook, ref_template=_REF)
    by_kind = dict(zip(map(_key, kinds), schemas, strict=False))
    for struct, schema in zip(structs, schemas[len(kinds) :], strict=True):
        plain = getattr(struct, "__origin__", struct)
        _describe_fields(components[_name(schema)], plain)
        components[_name(schema)] |= getattr(plain, "member_rule", {})
    paths: dict[str, Schema] = {}
    for declared in operations:
        query = _resolved(by_kind[_key(declared.query)], components)
        paths.setdefault(declared.documented_path, {})[declared.method.lower()] = _operation(declared, query, by_kind)
    for declared in operations:  # records of the query string are documented as parameters, not as schemas
        components.pop(_name(by_kind[_key(declared.query)]), None)
    statuses = sorted({status for declared in operations for status in _errors(declared)})
    document: Schema = {
        "openapi": "3.1.0",
        "info": {"title": "LLM sizing service", "version": __version__, "description": _DESCRIPTION},
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": description} for name, description in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "responses": {f"Problem{status}": _problem(status) for status in statuses},
            "headers": _HEADERS,
        },
    }
    return msgspec.json.decode(_PAGE.sub(r"\1Page", msgspec.json.encode(document).decode("utf-8")), type=Schema)


def _key(kind: object) -> str:
    return repr(kind)


def _name(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _resolved(schema: Schema, components: dict[str, Schema]) -> Schema:
    return components[_name(schema)] if "$ref" in schema else schema


def _describe_fields(schema: Schema, struct: type) -> None:
    properties = schema.get("properties", {})
    if "description" in schema:
        schema["description"] = _markdown(schema["description"])
    for name, text in field_docs(struct).items():
        if name in properties:
            properties[name].setdefault("description", _markdown(text))


def _markdown(text: str) -> str:
    """Docstrings mark code with two backticks, OpenAPI's descriptions with one."""
    return text.replace("``", "`")


def _header(name: str) -> Schema:
    return {"$ref": f"#/components/headers/{name}"}


def _errors(declared: Operation) -> set[int]:
    found = {400, 414, 422, *declared.errors}
    if declared.body is not None:
        found |= {413, 415}
    if declared.path_names:
        found.add(404)
    if declared.uses_catalog:
        found.add(503)
        if "catalog_revision" in declared.query.__struct_fields__:
            found.add(410)
    return found


def _problem(status: int) -> Schema:
    headers = {"X-Request-Id": _header("X-Request-Id"), "Content-Language": _header("Content-Language")}
    if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
        headers["Retry-After"] = _header("Retry-After")
    return {
        "description": _REASONS.get(status, HTTPStatus(status).phrase),
        "headers": headers,
        "content": {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}},
    }


def _operation(declared: Operation, query: Schema, by_kind: dict[str, Schema]) -> Schema:
    examples = {name: read_examples()[name] for name in declared.examples}
    documented: Schema = {
        "operationId": declared.name,
        "summary": declared.summary,
        "tags": [declared.tag],
        "parameters": [*_path_parameters(declared, examples), *_query_parameters(query)],
        "responses": _responses(declared, examples, by_kind),
    }
    if declared.description:
        documented["description"] = _markdown(declared.description)
    if declared.body is not None:
        media: Schema = {"schema": by_kind[_key(declared.body)]}
        if requests := _examples({name: example.request for name, example in examples.items()}, examples):
            media["examples"] = requests
        documented["requestBody"] = {"required": True, "content": {"application/json": media}}
    return documented


def _examples(values: dict[str, object], examples: dict[str, Example]) -> Schema:
    return {
        name: {"summary": examples[name].summary, "value": value} for name, value in values.items() if value is not None
    }


def _path_parameters(declared: Operation, examples: dict[str, Example]) -> list[Schema]:
    found: list[Schema] = []
    for name in declared.path_names:
        parameter: Schema = {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        if f"{{{name}:path}}" in declared.path:
            parameter["description"] = "May hold slashes, raw or as %2F."
        if given := {key: example.parameters.get(name) for key, example in examples.items()}:
            parameter["examples"] = _examples(dict(given), examples)
        found.append(parameter)
    return found


def _query_parameters(query: Schema) -> list[Schema]:
    properties, required = query.get("properties", {}), query.get("required", [])
    found: list[Schema] = []
    for name, schema in properties.items():
        stated = _without_null(schema)
        parameter: Schema = {"name": name, "in": "query", "required": name in required, "schema": stated}
        if description := stated.pop("description", None):
            parameter["description"] = description
        found.append(parameter)
    return found


def _without_null(schema: Schema) -> Schema:
    """A parameter is given or not given, never null."""
    stated = {name: value for name, value in schema.items() if not (name == "default" and value is None)}
    branches = stated.get("anyOf")
    if isinstance(branches, list):
        kept = [branch for branch in branches if branch != {"type": "null"}]
        stated["anyOf"] = kept
        if len(kept) == 1:
            del stated["anyOf"]
            stated = {**kept[0], **stated}
    if isinstance(stated.get("enum"), list):
        stated["enum"] = [choice for choice in stated["enum"] if choice is not None]
    return stated


def _responses(declared: Operation, examples: dict[str, Example], by_kind: dict[str, Schema]) -> Schema:
    headers = {"X-Request-Id": _header("X-Request-Id"), "Content-Language": _header("Content-Language")}
    if declared.cacheable:
        headers["ETag"] = _header("ETag")
    found: Schema = {}
    for status, description in {declared.status: "The answer.", **declared.answers}.items():
        media: Schema = {"schema": by_kind[_key(declared.answer)]}
        answers = {name: example.response for name, example in examples.items() if example.status == status}
        if shown := _examples(dict(answers), examples):
            media["examples"] = shown
        content = {declared.media_type.partition(";")[0]: media}
        found[str(status)] = {"description": description, "headers": headers, "content": content}
    if declared.cacheable:
        found["304"] = {"description": "The caller's copy (If-None-Match) is current.", "headers": headers}
    for status in sorted(_errors(declared) - {declared.status, *declared.answers}):
        found[str(status)] = {"$ref": f"#/components/responses/Problem{status}"}
    return found
