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
//   - Every side accepts all objects of the result. If a server whose schema is the result admits an object (it
//     prunes, defaults and validates the object as kube-apiserver does), a server with the schema of any side admits
//     the stored object too, and drops no field of it. This holds for types, enums, nullable, bounds, lengths,
//     patterns, formats, list types and their keys, required fields, defaults, unknown fields, embedded resources,
//     allOf, anyOf, oneOf, not, and CEL rules.
//   - The order of the sides does not matter, except for descriptions and other documentation. Negotiating a schema
//     with itself changes nothing.
//   - Every difference is reported as data, with its path, the value on every side, and the value in the result.
//   - If no value of an optional field is accepted by all sides, the result does not accept the field, and the
//     difference is reported. If the field is required, no object that must have it is accepted. If this makes every
//     object of the type impossible, [Negotiate] returns a [ConflictError].
//   - The sides' schemas are not modified, and the result shares no memory with them.
//
// Not guaranteed:
//   - That the result is as wide as possible. It is narrower where a structural schema cannot express the intersection
//     exactly. If one side has a map and another side an object that keeps undeclared fields, the result keeps the
//     declared fields only. Lists with different keys must be unique by the keys that they share. If a CEL rule cannot
//     be carried over, the object that it belongs to is impossible.
//   - That CEL rules of all sides together stay within an API server's cost limits. If they exceed the limits, the
//     server rejects the result.
//   - Anything about list values for a string with a format: API servers (1.36) accept such values, but reject them if
//     the string has no format.
//   - Anything about schemas that an API server would reject in a CRD.
//
// # Conflicting defaults
//
// A default is kept if all sides that have a default agree on it, and all other sides accept it. Otherwise, or if a
// side without a default requires the field, the result requires the field and has no default: an absent field must
// mean the same on every side.
package schema
