// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema negotiates what several API servers accept of one version of a type, and turns the OpenAPI document of
// a built-in type into a CustomResourceDefinition. It is pure: no I/O, no clock, no goroutines.
//
//	n, err := schema.Negotiate(
//		schema.Side{Name: "upstream", Schema: upstream},
//		schema.Side{Name: "cluster-1", Schema: cluster},
//	)
//
// Guaranteed:
//   - What the result accepts, every side accepts: an object that a server with the result as its schema admits (pruned,
//     defaulted and validated as kube-apiserver does it) is admitted by a server with any side's schema, and loses no
//     field there. That holds for types, enums, nullable, bounds, lengths, patterns, formats, list types and their keys,
//     required fields, defaults, unknown fields, embedded resources, allOf, anyOf, oneOf, not, and CEL rules.
//   - The order of the sides does not matter, and negotiating a schema with itself changes nothing.
//   - Every difference is reported as data, with its path, the value on every side, and what became of it.
//   - Where sides have nothing in common, an optional field disappears and is reported; a required one makes its object
//     impossible, up to a [ConflictError] for the whole type.
//   - The sides' schemas are not modified, and the result shares nothing with them.
//
// Not guaranteed:
//   - That the result is as wide as possible. Where a structural schema cannot say exactly what all sides accept, it is
//     narrower: a map and an object with open fields keep the object's fields only; lists that are keyed by different
//     fields must be unique by what they share; a CEL rule that cannot be carried over empties the object it stands at.
//   - That CEL rules of all sides together stay within an API server's cost limits: the server refuses the result then.
//   - Anything about lists where a string with a format is declared: API servers (1.36) take them, and refuse them where
//     the string has no format.
//   - Anything about sides that no API server would take as a CRD.
//
// # Conflicting defaults
//
// A default that all who have one agree on, and that the others accept, is a default of the result. If they disagree, or
// one of them requires that the field is given, it is required without a default: what an absent field means must not
// depend on where an object goes.
package schema
