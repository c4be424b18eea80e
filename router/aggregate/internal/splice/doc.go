// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package splice reads JSON answers of API servers without decoding them, and copies their objects with another name,
// version and region.
//
// It does no I/O. Guaranteed:
//
//   - It accepts an answer only if encoding/json would, and if its objects are objects with metadata. Keys of which it
//     depends on the value may occur once only.
//   - The text of an object with edits decodes to the decoded object with the same edits.
//   - Fingerprint of a decoded object equals Object.Print of its text.
//
// Not guaranteed: an answer with invalid UTF-8 is refused, although encoding/json would replace the invalid bytes.
package splice
