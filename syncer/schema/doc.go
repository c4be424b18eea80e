// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema negotiates a schema for one version of a type that several API servers accept, and turns the OpenAPI
// document of a built-in type into a CustomResourceDefinition. It is pure: no I/O, no clock, no goroutines.
//
//	n, err := schema.Negotiate(
//		schema.Side{Name: "upstream", Schema: upstream},
//		schema.Side{Name: "cluster-1", Schema: cluster},
//	)
//
// Guaranteed:
//   - Every side accepts all objects of the result: an object that a server with the result as its schema admits
//     (pruned, defaulted and validated as by kube-apiserver) is admitted by a server with any side's schema, without
//     losing a field. That holds for types, enums, nullable, bounds, lengths, patterns, formats, list types and their
//     keys, required fields, defaults, unknown fields, embedded resources, allOf, anyOf, oneOf, not, and CEL rules.
//   - The order of the sides does not matter, except for descriptions and other documentation. Negotiating a schema with
//     itself changes nothing.
//   - Every difference is reported as data, with its path, the value on every side, and the value in the result.
//   - If no value of a field is accepted by all sides, an optional field is removed and reported. If the field is
//     required, no object that must have it is accepted. If this reaches the root of the type, [Negotiate] returns a
//     [ConflictError].
//   - The sides' schemas are not modified, and the result shares no memory with them.
//
// Not guaranteed:
//   - That the result is as wide as possible. It is narrower where a structural schema cannot express the intersection
//     exactly: a map and an object with open fields keep the object's fields only; lists with different keys must be
//     unique by the keys they share; a CEL rule that cannot be carried over makes its object impossible.
//   - That CEL rules of all sides together stay within an API server's cost limits: the server rejects the result then.
//   - Anything about list values for a string with a format: API servers (1.36) accept them, but reject them if the
//     string has no format.
//   - Anything about schemas that an API server would reject in a CRD.
//
// # Conflicting defaults
//
// A default is kept if all sides that have one agree on it and the others accept it. Otherwise, or if a side without a
// default requires the field, the result requires the field and has no default: an absent field must mean the same on
// every side.
package schema
