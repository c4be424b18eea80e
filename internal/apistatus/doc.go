// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apistatus writes the error answers of an API server.
//
// Guaranteed: every error becomes a Status with a code of an error, and an error that is no answer of an API server shows
// none of its text, which may name peers and addresses.
//
// Not guaranteed: that the answer arrives.
package apistatus
